//! The last lines of a running command, for display: clean, short and not too many.
//!
//! Never: slow down the command. Under a flood lines are skipped; the newest is always shown in the end.

use std::time::{Duration, Instant};

/// Characters of a line that are shown.
const WIDTH: usize = 1_000;
/// Bytes of an unfinished line that are kept; more than `WIDTH` characters can need.
const PARTIAL: usize = 4 * WIDTH;
/// Lines that may be shown at once, and again after as many intervals.
const BURST: u32 = 20;
/// One more line may be shown after this.
pub(crate) const INTERVAL: Duration = Duration::from_millis(50);

/// Cuts the stream into lines and says which are shown.
pub(crate) struct Lines {
    partial: Vec<u8>,
    waiting: Option<Vec<u8>>,
    allowance: u32,
    refilled: Instant,
}

impl Lines {
    pub(crate) fn new(now: Instant) -> Self {
        Self { partial: Vec::new(), waiting: None, allowance: BURST, refilled: now }
    }

    /// Takes the next bytes and shows what may be shown.
    pub(crate) fn push(&mut self, bytes: &[u8], now: Instant, show: &mut dyn FnMut(&str)) {
        self.tick(now, show);
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| is_end(*byte)) {
            if self.allowance == 0 {
                self.skip_to_last(rest);
                return;
            }
            let (line, later) = rest.split_at(end);
            rest = &later[1..];
            self.extend(line);
            let line = std::mem::take(&mut self.partial);
            self.show(&line, show);
        }
        self.extend(rest);
    }

    /// Whether a line waits for its turn.
    pub(crate) fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Shows the waiting line when its turn has come.
    pub(crate) fn tick(&mut self, now: Instant, show: &mut dyn FnMut(&str)) {
        let intervals = now.saturating_duration_since(self.refilled).as_millis() / INTERVAL.as_millis();
        if intervals > 0 {
            self.allowance = self.allowance.saturating_add(u32::try_from(intervals).unwrap_or(BURST)).min(BURST);
            self.refilled = now;
        }
        if self.allowance > 0
            && let Some(line) = self.waiting.take()
        {
            self.show(&line, show);
        }
    }

    /// Shows what is left at the end of the stream.
    pub(crate) fn finish(mut self, show: &mut dyn FnMut(&str)) {
        if let Some(line) = self.waiting.take() {
            self.show(&line, show);
        }
        let line = std::mem::take(&mut self.partial);
        self.show(&line, show);
    }

    fn show(&mut self, line: &[u8], show: &mut dyn FnMut(&str)) {
        let text = clean(line);
        if !text.is_empty() {
            self.allowance = self.allowance.saturating_sub(1);
            show(&text);
        }
    }

    /// Under a flood: the last whole line of the piece waits, what stands before is skipped unread.
    fn skip_to_last(&mut self, bytes: &[u8]) {
        let Some(last) = bytes.iter().rposition(|byte| is_end(*byte)) else { return };
        let (lines, unfinished) = (&bytes[..last], &bytes[last + 1..]);
        let mut line = std::mem::take(&mut self.partial);
        if let Some(before) = lines.iter().rposition(|byte| is_end(*byte)) {
            line.clear();
            line.extend_from_slice(cut(&lines[before + 1..]));
        } else {
            line.extend_from_slice(cut(lines));
        }
        self.waiting = Some(line);
        self.extend(unfinished);
    }

    fn extend(&mut self, bytes: &[u8]) {
        let room = PARTIAL.saturating_sub(self.partial.len());
        self.partial.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
}

fn is_end(byte: u8) -> bool {
    byte == b'\n' || byte == b'\r'
}

fn cut(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.len().min(PARTIAL)]
}

/// A line for display: at most `WIDTH` characters, trimmed at the end.
fn clean(line: &[u8]) -> String {
    let text = plain_text(line);
    let shown: String =
        text.chars().filter(|c| *c != '\n').map(|c| if c == '\t' { ' ' } else { c }).take(WIDTH).collect();
    shown.trim_end().to_owned()
}

/// Output as plain text: bytes that are no text replaced, without terminal sequences and without control characters
/// but line ends and tabs. A carriage return goes, too.
pub fn plain_text(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let mut plain = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '\u{1b}' => skip_sequence(&mut characters),
            '\n' | '\t' => plain.push(character),
            character if character.is_control() => {}
            character => plain.push(character),
        }
    }
    plain
}

/// Skips the rest of a terminal sequence: `[…letter`, `]…BEL`, `]…ESC \`, or one character.
fn skip_sequence(characters: &mut std::iter::Peekable<std::str::Chars<'_>>) {
    match characters.next() {
        Some('[') => {
            for character in characters.by_ref() {
                if ('\u{40}'..='\u{7e}').contains(&character) {
                    break;
                }
            }
        }
        Some(']' | 'P' | '_' | '^') => {
            while let Some(character) = characters.next() {
                if character == '\u{7}' {
                    break;
                }
                if character == '\u{1b}' {
                    characters.next_if_eq(&'\\');
                    break;
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(chunks: &[&[u8]]) -> Vec<String> {
        let now = Instant::now();
        let mut shown = Vec::new();
        let mut lines = Lines::new(now);
        for chunk in chunks {
            lines.push(chunk, now, &mut |line| shown.push(line.to_owned()));
        }
        lines.finish(&mut |line| shown.push(line.to_owned()));
        shown
    }

    #[test]
    fn each_line_is_shown_also_the_last_one_without_an_end() {
        assert_eq!(shown(&[b"one\ntw", b"o\r\n\nthree"]), ["one", "two", "three"]);
    }

    #[test]
    fn a_progress_line_that_is_written_over_counts_as_lines() {
        assert_eq!(shown(&[b"10%\r20%\r", b"30%\n"]), ["10%", "20%", "30%"]);
    }

    #[test]
    fn colours_titles_and_control_characters_are_gone() {
        assert_eq!(shown(&[b"\x1b[31mred\x1b[0m\x07 \x1b]0;title\x07end\x1b]8;;x\x1b\\!\n"]), ["red end!"]);
        assert_eq!(shown(&[b"a\tb\x00c\n"]), ["a bc"]);
    }

    #[test]
    fn plain_text_keeps_lines_and_tabs_and_nothing_else_that_steers() {
        assert_eq!(plain_text(b"\x1b[1;31ma\x1b[0m\tb\r\n\x1b]0;title\x07c\x08\xff\n"), "a\tb\nc\u{fffd}\n");
    }

    #[test]
    fn a_line_without_end_is_cut_at_a_thousand_characters() {
        let long = "ü".repeat(100_000);
        let shown = shown(&[long.as_bytes(), b"\n"]);
        assert_eq!(shown, ["ü".repeat(1_000)]);
    }

    #[test]
    fn bytes_that_are_no_text_are_replaced() {
        assert_eq!(shown(&[b"a\xffb\n"]), ["a\u{fffd}b"]);
    }

    #[test]
    fn under_a_flood_few_lines_are_shown_and_the_newest_is_among_them() {
        use std::fmt::Write as _;
        let mut flood = String::new();
        for number in 0..100_000 {
            writeln!(flood, "line {number}").unwrap();
        }
        let chunks: Vec<&[u8]> = flood.as_bytes().chunks(65_536).collect();
        let shown = shown(&chunks);
        assert!(shown.len() <= 22, "{}", shown.len());
        assert_eq!(shown[0], "line 0");
        assert_eq!(shown.last().unwrap(), "line 99999");
    }

    #[test]
    fn a_line_that_had_to_wait_is_shown_when_its_turn_comes() {
        let start = Instant::now();
        let mut lines = Lines::new(start);
        let mut seen = Vec::new();
        let many = "x\n".repeat(30) + "newest\n";
        lines.push(many.as_bytes(), start, &mut |line| seen.push(line.to_owned()));
        assert!(lines.is_waiting());
        assert_eq!(seen.len(), 20);
        lines.tick(start + INTERVAL, &mut |line| seen.push(line.to_owned()));
        assert!(!lines.is_waiting());
        assert_eq!(seen.last().unwrap(), "newest");
    }
}
