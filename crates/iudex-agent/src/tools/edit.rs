//! `edit`: replaces text in a file. Forgiving in matching and exact in effect: every line that is not part of a change
//! keeps its bytes. Several changes are made all or not at all.

use std::fmt::Write as _;

use iudex_model::ToolSpec;
use serde_json::{Map, Value, json};
use similar::{Algorithm, DiffOp, capture_diff_slices};

use super::file::{self, Found as FoundFile};
use super::indent::{self, Mapping};
use super::lead;
use super::matching::{self, Found, NotFound};
use super::place::{Place, Resolved};
use super::text::{self, Document, Encoding, Line};
use super::{ToolResult, arguments, size, write};

/// Larger files are not edited.
const MOST_BYTES: u64 = 32 << 20;
/// Lines that are shown of a change or of the nearest place.
const MOST_SHOWN: usize = 12;

/// Lines of the file that a failed match shows, where it has so many.
const LEAST_SHOWN: usize = 6;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "edit",
        description: "Replace old, copied exactly from the file and found there once, by new. Or several in edits.",
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "old": {"type": "string"},
                "new": {"type": "string"},
                "edits": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {"old": {"type": "string"}, "new": {"type": "string"}},
                        "required": ["old", "new"],
                    },
                },
            },
            "required": ["path"],
            "anyOf": [{"required": ["old", "new"]}, {"required": ["edits"]}],
        }),
    }
}

/// One change that is asked for, with `\n` for every line break.
struct Change {
    old: String,
    new: String,
}

/// One change that was made.
struct Made {
    /// The first line, from 0.
    first: usize,
    /// The lines as they are now.
    now: Vec<String>,
    /// How the match differed.
    how: Option<&'static str>,
    /// What was not done as it was asked for.
    note: Option<&'static str>,
}

pub(super) fn run(place: &Place, arguments: &Map<String, Value>) -> Result<ToolResult, String> {
    let target = place.for_writing(arguments::text(arguments, "path")?)?;
    let changes = changes(arguments)?;
    let facts = match file::look(&target)? {
        FoundFile::Directory => return Err(format!("{} is a directory. Give the path of a file in it.", target.shown)),
        FoundFile::Nothing => return create(place, &target, &changes),
        FoundFile::File(facts) => facts,
    };
    if facts.len() > MOST_BYTES {
        return Err(format!("{} has {}, too much for edit. Use bash (sed).", target.shown, size(facts.len())));
    }
    let bytes = file::read_all(&target, MOST_BYTES)?.unwrap_or_default();
    if let [only] = changes.as_slice()
        && only.old.is_empty()
        && bytes.trim_ascii().is_empty()
    {
        return write::put(place, &target, &only.new);
    }
    let Some(mut document) = Document::decode(&bytes) else {
        return Err(format!("{} is a binary file and cannot be edited. Use bash.", target.shown));
    };
    let mut all_made = Vec::new();
    for (index, change) in changes.iter().enumerate() {
        let which =
            if changes.len() > 1 { format!("Edit {} of {}: ", index + 1, changes.len()) } else { String::new() };
        let one = apply(&mut document, change, &target.shown)
            .map_err(|problem| format!("{which}{problem}\nNothing was changed."))?;
        all_made.push(one);
    }
    let after = document.encode().map_err(|foreign| {
        format!(
            "{} is not in UTF-8, and its encoding has no {foreign:?}. Use other characters.\nNothing was changed.",
            target.shown
        )
    })?;
    if after == bytes {
        return Err(format!(
            "The edits leave {} as it is. Nothing was changed. Check what should differ.",
            target.shown
        ));
    }
    file::replace(place, &target, &after)?;
    Ok(ToolResult::changed(report(&target.shown, &all_made)))
}

fn changes(arguments: &Map<String, Value>) -> Result<Vec<Change>, String> {
    let mut found = Vec::new();
    let has_list = arguments.get("edits").and_then(Value::as_array).is_some_and(|list| !list.is_empty());
    let is_unused = |name: &str| {
        let value = arguments.get(name);
        value.is_none_or(Value::is_null) || (has_list && value.and_then(Value::as_str) == Some(""))
    };
    // A model may fill in both forms and leave one of them empty.
    if !(is_unused("old") && is_unused("new")) {
        found.push(change(arguments)?);
    }
    let wrapped;
    let list = match arguments.get("edits") {
        None | Some(Value::Null) => &[],
        Some(Value::Array(list)) => list.as_slice(),
        Some(Value::Object(one)) => {
            wrapped = [Value::Object(one.clone())];
            wrapped.as_slice()
        }
        Some(other) => {
            let kind = arguments::kind(other);
            return Err(format!("edits must be an array of {{\"old\", \"new\"}}, not {kind}. Send the call again."));
        }
    };
    for item in list {
        let Value::Object(item) = item else {
            let kind = arguments::kind(item);
            return Err(format!("each of edits must be {{\"old\", \"new\"}}, not {kind}. Send the call again."));
        };
        found.push(change(item)?);
    }
    if found.is_empty() {
        return Err("old and new are missing. Give the text to replace and the text to put there.".to_owned());
    }
    Ok(found)
}

fn change(arguments: &Map<String, Value>) -> Result<Change, String> {
    let clean = |text: &str| text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n");
    Ok(Change { old: clean(arguments::text(arguments, "old")?), new: clean(arguments::text(arguments, "new")?) })
}

fn create(place: &Place, target: &Resolved, changes: &[Change]) -> Result<ToolResult, String> {
    match changes {
        [only] if only.old.is_empty() => write::put(place, target, &only.new),
        _ => Err(format!("{} does not exist.{} Use write to create it.", target.shown, place.missing(target))),
    }
}

fn apply(document: &mut Document, change: &Change, shown: &str) -> Result<Made, String> {
    if change.old.is_empty() {
        return Err(format!(
            "old is empty, but {shown} has content. Put the text to replace into old, or use write for the whole file."
        ));
    }
    if change.old == change.new {
        return Err("old and new are the same, so nothing would change. Put the changed text into new.".to_owned());
    }
    let flat = document.flat();
    let found = matching::exact(&flat, &change.old).and_then(|found| match found {
        None if document.encoding == Encoding::MostlyUtf8 => exact_visible(&flat, &change.old),
        found => Ok(found),
    });
    match found {
        Ok(Some(Found::Exact { start, end })) => {
            let new = restore(&change.new, &flat[start..end])?;
            if let Some(rest) = lead::rest(&flat, start, end, &new) {
                let made = splice(document, &flat, rest.start, rest.end, &flat[rest.start..rest.end], rest.new);
                return Ok(Made { note: Some("the lines of new that stand above it already were left out"), ..made });
            }
            Ok(splice(document, &flat, start, end, &change.old, new))
        }
        Ok(_) => on_lines(document, &flat, change, shown),
        Err(problem) => Err(not_found(document, &flat, change, &problem, shown)),
    }
}

/// Finds `old` where U+FFFD stands for a byte that is no UTF-8.
fn exact_visible(flat: &str, old: &str) -> Result<Option<Found>, NotFound> {
    let visible = text::visible(flat);
    let Some(Found::Exact { start, end }) = matching::exact(&visible, old)? else { return Ok(None) };
    let offset = |byte: usize| {
        let characters = visible[..byte].chars().count();
        flat.char_indices().nth(characters).map_or(flat.len(), |(at, _)| at)
    };
    Ok(Some(Found::Exact { start: offset(start), end: offset(end) }))
}

/// The new text with the bytes that U+FFFD stands for.
fn restore(new: &str, matched: &str) -> Result<String, String> {
    let bytes: Vec<char> = matched.chars().filter(|c| text::escaped_byte(*c).is_some()).collect();
    let marks = new.matches(char::REPLACEMENT_CHARACTER).count();
    if marks == 0 || matched.contains(char::REPLACEMENT_CHARACTER) {
        return Ok(new.to_owned());
    }
    if marks != bytes.len() {
        return Err(
            "new holds \u{fffd}, which stands for bytes that cannot be shown. Choose an old without them.".to_owned()
        );
    }
    let mut bytes = bytes.into_iter();
    Ok(new.chars().map(|c| if c == char::REPLACEMENT_CHARACTER { bytes.next().unwrap_or(c) } else { c }).collect())
}

/// Replaces a part of the text that was found as it stands.
fn splice(document: &mut Document, flat: &str, start: usize, mut end: usize, old: &str, mut new: String) -> Made {
    let mut note = None;
    let at_line_start = start == 0 || flat[..start].ends_with('\n');
    if new.is_empty() && at_line_start && !old.ends_with('\n') && flat[end..].starts_with('\n') {
        // Whole lines are taken out, and no empty line stays.
        end += 1;
    } else if old.ends_with('\n') && !new.is_empty() && !new.ends_with('\n') && end < flat.len() {
        // The line break of `old` was forgotten in `new`; the next line must not be glued to it.
        new.push('\n');
        note = Some("the line break at the end of old was kept");
    }
    let (first, last) = (matching::line_at(flat, start), matching::line_at(flat, end));
    let line_start = flat[..start].rfind('\n').map_or(0, |at| at + 1);
    let line_end = flat[end..].find('\n').map_or(flat.len(), |at| end + at);
    let whole = format!("{}{new}{}", &flat[line_start..start], &flat[end..line_end]);
    let pieces: Vec<String> = whole.split('\n').map(str::to_owned).collect();
    let before: Vec<String> = document.lines[first..=last].iter().map(|line| line.body.clone()).collect();
    Made { note, ..rebuild(document, first, &before, &pieces, None) }
}

/// Replaces whole lines that were found apart from small differences.
fn on_lines(document: &mut Document, flat: &str, change: &Change, shown: &str) -> Result<Made, String> {
    let (old, new) = (lines_of(&change.old), lines_of(&change.new));
    let (old, new) = without_blank_ends(&old, &new);
    let mut changed = vec![true; old.len()];
    for op in capture_diff_slices(Algorithm::Myers, old, new) {
        if let DiffOp::Equal { old_index, len, .. } = op {
            changed[old_index..old_index + len].fill(false);
        }
    }
    let bodies: Vec<&str> = document.lines.iter().map(|line| line.body.as_str()).collect();
    match matching::tolerant(&bodies, old, &changed) {
        Ok(Found::Lines { first, how }) => {
            if new.iter().any(|line| line.contains(char::REPLACEMENT_CHARACTER))
                && document.encoding == Encoding::MostlyUtf8
            {
                restore(&new.join("\n"), "")?;
            }
            let mapping = Mapping::learn(old.iter().zip(&bodies[first..]).map(|(old, body)| (*old, *body)));
            let before: Vec<String> = old.iter().map(|line| (*line).to_owned()).collect();
            let after: Vec<String> = new.iter().map(|line| (*line).to_owned()).collect();
            let mut made = rebuild(document, first, &before, &after, Some(&mapping));
            made.how = Some(how);
            Ok(made)
        }
        Ok(Found::Exact { .. }) => Err(format!("old was not found in {shown}.")),
        Err(problem) => Err(not_found(document, flat, change, &problem, shown)),
    }
}

/// The lines of a text; a line break at its end opens no further line, and no text is no line.
fn lines_of(text: &str) -> Vec<&str> {
    let text = text.strip_suffix('\n').unwrap_or(text);
    if text.is_empty() { Vec::new() } else { text.split('\n').collect() }
}

/// Both without the blank lines at the ends of `old`, where `new` has them too or has nothing.
fn without_blank_ends<'l>(mut old: &'l [&'l str], mut new: &'l [&'l str]) -> (&'l [&'l str], &'l [&'l str]) {
    let blank = |line: &&str| line.trim().is_empty();
    while let Some((_, rest)) = old.split_first().filter(|(line, _)| blank(line)) {
        old = rest;
        new = new.split_first().filter(|(line, _)| blank(line)).map_or(new, |(_, rest)| rest);
    }
    while let Some((_, rest)) = old.split_last().filter(|(line, _)| blank(line)) {
        old = rest;
        new = new.split_last().filter(|(line, _)| blank(line)).map_or(new, |(_, rest)| rest);
    }
    (old, new)
}

/// Puts `after` in place of the lines from `first` that correspond to `before`. Lines that `before` and `after` share
/// stay as they are in the file, byte for byte.
fn rebuild(
    document: &mut Document,
    first: usize,
    before: &[String],
    after: &[String],
    mapping: Option<&Mapping>,
) -> Made {
    let region: Vec<Line> = document.lines[first..first + before.len()].to_vec();
    let has_last_line = first + before.len() == document.lines.len();
    let default = default_ending(document, first, &region);
    let mut made: Vec<Line> = Vec::with_capacity(after.len());
    let body_of = |line: &String| mapping.map_or_else(|| line.clone(), |mapping| mapping.apply(line));
    for op in capture_diff_slices(Algorithm::Myers, before, after) {
        match op {
            DiffOp::Equal { old_index, len, .. } => made.extend_from_slice(&region[old_index..old_index + len]),
            DiffOp::Delete { .. } => {}
            DiffOp::Insert { new_index, new_len, .. } => {
                for line in &after[new_index..new_index + new_len] {
                    let ending = made.last().map_or(default, |line| line.ending);
                    made.push(Line { body: body_of(line), ending });
                }
            }
            DiffOp::Replace { old_index, old_len, new_index, new_len } => {
                for (offset, line) in after[new_index..new_index + new_len].iter().enumerate() {
                    let counterpart = (offset < old_len).then_some(old_index + offset);
                    let ending = match counterpart {
                        Some(index) => region[index].ending,
                        None => made.last().map_or(default, |line| line.ending),
                    };
                    let body = match counterpart {
                        Some(index) if mapping.is_some() && indent::of(line) == indent::of(&before[index]) => {
                            format!("{}{}", indent::of(&region[index].body), line.trim_start())
                        }
                        _ => body_of(line),
                    };
                    made.push(Line { body, ending });
                }
            }
        }
    }
    for line in made.iter_mut().filter(|line| line.ending.is_empty()) {
        line.ending = default;
    }
    if has_last_line && let Some(last) = made.last_mut() {
        last.ending = "";
    }
    let now = made.iter().map(|line| line.body.clone()).collect();
    document.lines.splice(first..first + before.len(), made);
    if document.lines.last().is_none_or(|line| !line.ending.is_empty()) {
        document.lines.push(Line { body: String::new(), ending: "" });
    }
    Made { first, now, how: None, note: None }
}

/// The line ending of the neighbourhood.
fn default_ending(document: &Document, first: usize, region: &[Line]) -> &'static str {
    let before = first.checked_sub(1).and_then(|index| document.lines.get(index));
    let after = document.lines.get(first + region.len()..).unwrap_or_default();
    let mut near = region.iter().chain(before).chain(after).chain(&document.lines);
    near.find(|line| !line.ending.is_empty()).map_or("\n", |line| line.ending)
}

fn not_found(document: &Document, flat: &str, change: &Change, problem: &NotFound, shown: &str) -> String {
    let nearest = match problem {
        NotFound::Many(lines) => {
            let more = if lines.len() > 10 { " and more" } else { "" };
            let numbers: Vec<String> = lines.iter().take(10).map(|line| (line + 1).to_string()).collect();
            return format!(
                "old is in {shown} {} times, at lines {}{more}. Add the lines around it to old, so that it fits one place only.",
                if lines.len() >= 50 { "50 or more".to_owned() } else { lines.len().to_string() },
                numbers.join(", ")
            );
        }
        NotFound::Nowhere(nearest) => *nearest,
    };
    let mut message = format!("old was not found in {shown}.");
    if let Some(line) = already_there(flat, &change.new) {
        let _ = write!(message, " But new is already there, at line {}: the change may be done.", line + 1);
    }
    let Some(first) = nearest else {
        message.push_str(" Nothing there is like it. Read the file and copy old from it.");
        return message;
    };
    // A model that has not read the file needs more than the line that it guessed.
    let most = lines_of(&change.old).len().clamp(LEAST_SHOWN, MOST_SHOWN);
    let lines: Vec<String> = document.lines[first..].iter().take(most).map(|line| text::visible(&line.body)).collect();
    let lines = lines.join("\n");
    let _ = write!(message, " The nearest text is at line {}:\n{lines}\nCopy old exactly from the file.", first + 1);
    message
}

/// The line on which the whole new text is, when it is long enough to mean something.
fn already_there(flat: &str, new: &str) -> Option<usize> {
    let wanted = new.trim_matches('\n');
    if wanted.trim().len() < 4 {
        return None;
    }
    if let Some(at) = flat.find(wanted) {
        return Some(matching::line_at(flat, at));
    }
    let normal = |text: &str| text.split('\n').map(|line| line.trim().to_owned()).collect::<Vec<_>>();
    let (there, wanted) = (normal(flat), normal(wanted));
    there.windows(wanted.len()).position(|window| window == wanted)
}

fn report(shown: &str, made: &[Made]) -> String {
    let mut answer = format!("Edited {shown}.");
    for one in made.iter().take(4) {
        let how = one.how.map(|how| format!(" (old matched {how})"));
        let how = how.or_else(|| one.note.map(|note| format!(" ({note})"))).unwrap_or_default();
        if one.now.is_empty() {
            let _ = write!(answer, "\nLines taken out before line {}{how}.", one.first + 1);
            continue;
        }
        let _ = write!(answer, "\nFrom line {} it now reads{how}:", one.first + 1);
        for line in one.now.iter().take(MOST_SHOWN) {
            answer.push('\n');
            answer.push_str(&text::visible(line));
        }
        if one.now.len() > MOST_SHOWN {
            let _ = write!(answer, "\n[{} more lines]", one.now.len() - MOST_SHOWN);
        }
    }
    if made.len() > 4 {
        let _ = write!(answer, "\n[{} more edits were made]", made.len() - 4);
    }
    answer
}
