//! Splits reasoning that stands in the text (`<think>…</think>`) from the answer, piece by piece.
//!
//! Only at the beginning, and again right after a closed one: later on the tag may well be part of a file that is being
//! written. Never: a lost byte; what turns out to be no tag is text.

const TAGS: [(&str, &str); 3] = [("<think>", "</think>"), ("<thinking>", "</thinking>"), ("[THINK]", "[/THINK]")];

/// A piece of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Text(String),
    Reasoning(String),
}

#[derive(Debug, Default)]
enum State {
    /// Nothing but white space so far.
    #[default]
    Beginning,
    /// Within reasoning that ends with this.
    Inside(&'static str),
    /// In the answer; tags mean nothing any more.
    Answer,
}

/// The splitter. Text that may still become a tag is held back.
#[derive(Debug, Default)]
pub(super) struct ThinkSplitter {
    state: State,
    held: String,
    after_reasoning: bool,
}

impl ThinkSplitter {
    /// Takes a piece and gives what is decided by now.
    pub(super) fn push(&mut self, piece: &str) -> Vec<Piece> {
        self.held.push_str(piece);
        let mut decided = Vec::new();
        while self.step(&mut decided) {}
        decided
    }

    /// Bytes that are held back.
    pub(super) fn held(&self) -> usize {
        self.held.len()
    }

    /// The rest, when the answer is over. Reasoning that was never closed stays reasoning.
    pub(super) fn finish(&mut self) -> Option<Piece> {
        let rest = std::mem::take(&mut self.held);
        match self.state {
            _ if rest.is_empty() => None,
            State::Inside(_) => Some(Piece::Reasoning(rest)),
            State::Beginning if self.after_reasoning => non_white(&rest),
            State::Beginning | State::Answer => Some(Piece::Text(rest)),
        }
    }

    /// One step; true when there may be another.
    fn step(&mut self, decided: &mut Vec<Piece>) -> bool {
        match self.state {
            State::Answer => {
                if !self.held.is_empty() {
                    decided.push(Piece::Text(std::mem::take(&mut self.held)));
                }
                false
            }
            State::Beginning => {
                let text = self.held.trim_start();
                if let Some((open, close)) = TAGS.iter().find(|(open, _)| text.starts_with(open)) {
                    self.held = text[open.len()..].into();
                    self.state = State::Inside(close);
                    return true;
                }
                if TAGS.iter().any(|(open, _)| open.starts_with(text)) {
                    return false;
                }
                if self.after_reasoning {
                    self.held = text.into();
                }
                self.state = State::Answer;
                true
            }
            State::Inside(close) => {
                if let Some(end) = self.held.find(close) {
                    let rest = self.held.split_off(end);
                    let reasoning = std::mem::replace(&mut self.held, rest[close.len()..].into());
                    if !reasoning.is_empty() {
                        decided.push(Piece::Reasoning(reasoning));
                    }
                    self.state = State::Beginning;
                    self.after_reasoning = true;
                    return true;
                }
                let keep = possible_start(&self.held, close);
                let rest = self.held.split_off(self.held.len() - keep);
                let reasoning = std::mem::replace(&mut self.held, rest);
                if !reasoning.is_empty() {
                    decided.push(Piece::Reasoning(reasoning));
                }
                false
            }
        }
    }
}

fn non_white(text: &str) -> Option<Piece> {
    (!text.trim().is_empty()).then(|| Piece::Text(text.trim_start().into()))
}

/// How many bytes at the end of the text may be the start of the tag.
fn possible_start(text: &str, tag: &str) -> usize {
    (1..tag.len()).rev().find(|length| text.ends_with(&tag[..*length])).unwrap_or(0)
}

/// Where the chat template itself opened the reasoning, only the closing tag is in the text. True reasoning ends on a
/// line of its own and is followed by an answer; text that begins like a call is never taken apart.
pub(super) fn split_lone_close(text: &str) -> Option<(&str, &str)> {
    if text.trim_start().starts_with(['{', '[', '`', '<']) {
        return None;
    }
    TAGS.iter().find_map(|(open, close)| {
        let (before, after) = text.split_once(close)?;
        let own_line = before.ends_with('\n') || after.starts_with(['\n', '\r']);
        (own_line && !before.contains(open)).then(|| (before, after.trim_start()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Splits the text cut into pieces of this many characters.
    fn split(text: &str, size: usize) -> (String, String) {
        let mut splitter = ThinkSplitter::default();
        let characters: Vec<char> = text.chars().collect();
        let mut pieces: Vec<Piece> =
            characters.chunks(size).flat_map(|chunk| splitter.push(&chunk.iter().collect::<String>())).collect();
        pieces.extend(splitter.finish());
        let (mut answer, mut reasoning) = (String::new(), String::new());
        for piece in pieces {
            match piece {
                Piece::Text(text) => answer.push_str(&text),
                Piece::Reasoning(text) => reasoning.push_str(&text),
            }
        }
        (answer, reasoning)
    }

    #[test]
    fn reasoning_is_split_off_wherever_the_pieces_are_cut() {
        let cases = [
            ("<think>why < so</think>\n\nanswer", "answer", "why < so"),
            ("\n<think>\na</think><think>b</think>c", "c", "\nab"),
            ("<thinking>x</thinking>y", "y", "x"),
            ("[THINK]x[/THINK]y", "y", "x"),
            ("<think>never closed </thi", "", "never closed </thi"),
            ("<think></think>only", "only", ""),
            ("no tags", "no tags", ""),
            ("  indented", "  indented", ""),
            ("<thin", "<thin", ""),
            ("<thing>x</thing>", "<thing>x</thing>", ""),
            ("{\"content\":\"<think>x</think>\"}", "{\"content\":\"<think>x</think>\"}", ""),
            ("a <think>b</think>", "a <think>b</think>", ""),
            ("<think>größe</think>ß", "ß", "größe"),
        ];
        for (text, answer, reasoning) in cases {
            for size in 1..=text.chars().count() {
                assert_eq!(split(text, size), (answer.into(), reasoning.into()), "{text:?} in pieces of {size}");
            }
        }
    }

    #[test]
    fn a_lone_closing_tag_ends_reasoning_that_the_template_opened() {
        assert_eq!(split_lone_close("I think.\n</think>\n\nanswer"), Some(("I think.\n", "answer")));
        assert_eq!(split_lone_close("{\"content\": \"a\n</think>\n\"}"), None);
        assert_eq!(split_lone_close("the tag </think> closes it"), None);
        assert_eq!(split_lone_close("nothing"), None);
    }
}
