//! Turns the bytes that a command printed into plain lines: no escapes, no progress bars, no broken UTF-8.
//!
//! Never: what a line means.

/// Bytes of one line that are kept; the rest of a longer line is skipped.
const MOST_OF_A_LINE: usize = 16 * 1024;

/// Cuts a stream of bytes into cleaned lines, in bounded memory.
#[derive(Debug, Default)]
pub(crate) struct Lines {
    pending: Vec<u8>,
    /// Whether anything of the present line was seen, so that an empty last line is not made up.
    open: bool,
}

impl Lines {
    /// Takes the next bytes and hands every finished line to `take`.
    pub(crate) fn push(&mut self, bytes: &[u8], take: &mut dyn FnMut(&str)) {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.keep(&rest[..end]);
            take(&clean_line(&self.pending));
            self.pending.clear();
            self.open = false;
            rest = &rest[end + 1..];
        }
        if !rest.is_empty() {
            self.keep(rest);
            self.open = true;
        }
    }

    /// Hands out a last line that has no line end.
    pub(crate) fn finish(&mut self, take: &mut dyn FnMut(&str)) {
        if self.open {
            take(&clean_line(&self.pending));
            self.pending.clear();
            self.open = false;
        }
    }

    fn keep(&mut self, bytes: &[u8]) {
        // A progress bar redraws one line for minutes. Only what stands after the last return is ever seen, so a
        // full buffer starts anew there instead of keeping the oldest state.
        let room = MOST_OF_A_LINE.saturating_sub(self.pending.len());
        if bytes.len() <= room {
            self.pending.extend_from_slice(bytes);
            return;
        }
        let visible = match bytes.iter().rposition(|byte| *byte == b'\r') {
            Some(at) if at + 1 < bytes.len() => {
                self.pending.clear();
                &bytes[at + 1..]
            }
            _ => bytes,
        };
        let room = MOST_OF_A_LINE.saturating_sub(self.pending.len());
        self.pending.extend_from_slice(&visible[..visible.len().min(room)]);
    }
}

/// One line as a terminal would show it in the end, as valid text.
pub(crate) fn clean_line(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    let plain = without_escapes(text.trim_end_matches('\r'));
    match plain.rsplit('\r').find(|part| !part.trim().is_empty()) {
        Some(part) if part.len() < plain.len() => part.to_owned(),
        Some(_) => plain,
        None => String::new(),
    }
}

/// Removes terminal escapes and control characters; a tab and a carriage return stay.
fn without_escapes(text: &str) -> String {
    if !text.chars().any(|c| c.is_control() && c != '\t' && c != '\r') {
        return text.to_owned();
    }
    let mut plain = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_control_sequence(&mut chars),
            '\u{8}' => {
                plain.pop();
            }
            '\t' | '\r' => plain.push(c),
            c if c.is_control() => {}
            c => plain.push(c),
        }
    }
    plain
}

fn skip_escape(chars: &mut std::str::Chars<'_>) {
    match chars.next() {
        Some('[') => skip_control_sequence(chars),
        // Operating system commands and other strings end with BEL or ESC \.
        Some(']' | 'P' | 'X' | '^' | '_') => {
            while let Some(c) = chars.next() {
                match c {
                    '\u{7}' => return,
                    '\u{1b}' => {
                        chars.next();
                        return;
                    }
                    _ => {}
                }
            }
        }
        Some('(' | ')' | '*' | '+' | '#' | '%') => {
            chars.next();
        }
        _ => {}
    }
}

fn skip_control_sequence(chars: &mut std::str::Chars<'_>) {
    for c in chars.by_ref() {
        if ('\u{40}'..='\u{7e}').contains(&c) {
            return;
        }
    }
}

/// The text cut to `most` bytes at a character boundary, with a mark when something was cut.
pub(crate) fn shorten(text: &str, most: usize) -> String {
    if text.len() <= most {
        return text.to_owned();
    }
    let mark = "…";
    let kept = floor_boundary(text, most.saturating_sub(mark.len()));
    format!("{}{mark}", &text[..kept])
}

/// The largest character boundary of `text` that is not above `at`.
pub(crate) fn floor_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines_of(pieces: &[&[u8]]) -> Vec<String> {
        let mut lines = Lines::default();
        let mut out = Vec::new();
        for piece in pieces {
            lines.push(piece, &mut |line| out.push(line.to_owned()));
        }
        lines.finish(&mut |line| out.push(line.to_owned()));
        out
    }

    #[test]
    fn colours_links_and_controls_are_stripped() {
        assert_eq!(clean_line(b"\x1b[31m\x1b[1mE   \x1b[0mboom"), "E   boom");
        assert_eq!(clean_line(b"\x1b]8;;file:///x\x07name\x1b]8;;\x1b\\ end"), "name end");
        assert_eq!(clean_line(b"\x1b(Bab\x08c\x07\td"), "ac\td");
    }

    #[test]
    fn only_the_last_state_of_a_progress_line_is_kept() {
        assert_eq!(clean_line(b" 10%\r 50%\r100%"), "100%");
        assert_eq!(clean_line(b"working\r\x1b[K\r"), "working");
        assert_eq!(clean_line(b"line of windows\r"), "line of windows");
    }

    #[test]
    fn invalid_utf8_becomes_a_replacement_character() {
        assert_eq!(clean_line(b"caf\xe9 ok"), "caf\u{fffd} ok");
    }

    #[test]
    fn lines_survive_being_cut_anywhere() {
        let whole = "größe\r\n\nlast".as_bytes();
        let expected = vec!["größe".to_owned(), String::new(), "last".to_owned()];
        for cut in 0..=whole.len() {
            assert_eq!(lines_of(&[&whole[..cut], &whole[cut..]]), expected, "cut at {cut}");
        }
        assert_eq!(lines_of(&[b"a\n"]), ["a"]);
    }

    #[test]
    fn a_line_without_end_stays_bounded_and_shows_its_last_state() {
        let mut flood = vec![b'x'; 4 * 1024 * 1024];
        assert_eq!(lines_of(&[&flood])[0].len(), MOST_OF_A_LINE);
        flood.extend_from_slice(b"\rdone\nnext");
        assert_eq!(lines_of(&[&flood]), ["done", "next"]);
    }

    #[test]
    fn shorten_never_cuts_a_character() {
        assert_eq!(shorten("äöü", 6), "äöü");
        assert_eq!(shorten("äöüß", 6), "ä…");
    }
}
