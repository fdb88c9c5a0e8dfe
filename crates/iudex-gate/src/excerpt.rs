//! Shortens an output to what an agent can use: the failing cases and the last lines, else start and end.
//!
//! Never: more than the room it is given, and no mark of its own that could be taken for a part of the output.

use std::fmt::Write as _;

use crate::clean::{floor_boundary, shorten};
use crate::runners::{Block, Case};
use crate::scan::Scan;

/// The least room for a case before others are only named.
const ROOM_OF_A_CASE: usize = 500;

/// Room that a mark for left-out lines may take.
const ROOM_OF_A_MARK: usize = 48;

/// The failing part of an output in at most `room` bytes. Empty when nothing was printed.
pub(crate) fn failing_part(scan: &Scan, room: usize) -> String {
    if scan.cases.list.is_empty() {
        return fit(&scan.edges, room, 3);
    }
    let tail = tail(scan, room / 6);
    let mut text = cases(scan, room.saturating_sub(tail.len() + 6));
    if !tail.is_empty() {
        text.push_str("\n...\n");
        text.push_str(&tail);
    }
    clip(&text, room)
}

/// As many failing cases as the room takes; the others are named, at least counted.
fn cases(scan: &Scan, room: usize) -> String {
    let list = &scan.cases.list;
    let whole: Vec<String> = list.iter().map(|case| render(case, usize::MAX)).collect();
    if scan.cases.more == 0 && whole.iter().map(|text| text.len() + 1).sum::<usize>() <= room {
        return whole.join("\n");
    }
    let for_names = room / 5;
    let for_cases = room - for_names;
    let each = (for_cases / list.len()).max(ROOM_OF_A_CASE.min(for_cases));
    let mut text = String::new();
    let mut shown = 0;
    for (case, whole) in list.iter().zip(whole) {
        let left = for_cases.saturating_sub(text.len());
        // What earlier, shorter cases did not need goes to this one.
        let share = each.max(left / (list.len() - shown));
        let rendered = if whole.len() <= share { whole } else { render(case, share) };
        if rendered.len() > left {
            break;
        }
        text.push_str(&rendered);
        text.push('\n');
        shown += 1;
    }
    let hidden = (list.len() - shown) as u64 + scan.cases.more;
    if hidden > 0 {
        let names = list[shown..].iter().map(|case| case.name.as_str()).collect::<Vec<_>>().join(", ");
        let line = if shown == 0 { format!("{hidden} failing") } else { format!("{hidden} more failing") };
        let _ = write!(text, "{}", shorten(&format!("{line}: {names}"), for_names.max(20)));
    }
    text.trim_end().to_owned()
}

/// One case, cut in its middle where it does not fit.
fn render(case: &Case, room: usize) -> String {
    let says_it = !case.is_test || case.name.starts_with("ERROR ");
    let heading = if says_it { case.name.clone() } else { format!("FAILED {}", case.name) };
    let heading = shorten(&heading, room);
    if case.block.is_blank() {
        return heading;
    }
    let body = fit(&case.block, room.saturating_sub(heading.len() + 1), 2);
    format!("{heading}\n{body}")
}

/// The last lines after the last summary, without those that a case shows already: what failed apart from the tests.
fn tail(scan: &Scan, room: usize) -> String {
    let shown = |line: &str| {
        let cases = &scan.cases.list;
        cases.iter().any(|case| {
            line.trim_end().ends_with(&case.name) || case.block.lines().any(|other| other.trim() == line.trim())
        })
    };
    let mut kept = Vec::new();
    let mut used = 0;
    for line in scan.after_summary.iter().rev() {
        if shown(line) {
            continue;
        }
        if used + line.len() + 1 > room {
            break;
        }
        used += line.len() + 1;
        kept.push(line.as_str());
    }
    kept.reverse();
    kept.join("\n")
}

/// A block in at most `room` bytes: one part of `head_share` from its start, the rest from its end.
fn fit(block: &Block, room: usize, head_share: usize) -> String {
    let lines: Vec<&str> = block.lines().map(String::as_str).collect();
    let end = lines.iter().rposition(|line| !line.trim().is_empty()).map_or(0, |at| at + 1);
    let lines = &lines[..end];
    let needed: usize = lines.iter().map(|line| line.len() + 1).sum();
    if block.omitted() == 0 && needed <= room {
        return lines.join("\n");
    }
    let first_kept = block.first().len().min(lines.len());
    let room_left = room.saturating_sub(ROOM_OF_A_MARK);
    let longest = (room_left / 3).max(40);

    let mut head = Vec::new();
    let mut used = 0;
    let (from_first, from_last) = lines.split_at(if block.omitted() > 0 { first_kept } else { lines.len() });
    for line in from_first {
        let line = shorten(line, longest);
        if used + line.len() + 1 > room_left / head_share {
            break;
        }
        used += line.len() + 1;
        head.push(line);
    }
    let mut tail = Vec::new();
    let rest = if block.omitted() > 0 { from_last } else { &lines[head.len()..] };
    for line in rest.iter().rev() {
        let line = shorten(line, longest);
        if used + line.len() + 1 > room_left {
            break;
        }
        used += line.len() + 1;
        tail.push(line);
    }
    tail.reverse();
    let left_out = lines.len() as u64 + block.omitted() - (head.len() + tail.len()) as u64;
    if left_out > 0 {
        head.push(format!("[iudex shows not all: {left_out} lines left out here]"));
    }
    head.append(&mut tail);
    clip(&head.join("\n"), room)
}

/// The text cut to `room` bytes.
pub(crate) fn clip(text: &str, room: usize) -> String {
    text[..floor_boundary(text, room)].trim_end().to_owned()
}
