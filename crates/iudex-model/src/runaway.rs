//! Notices an answer that runs away: white space or the same segment without end.
//!
//! Small models fall into both, and a server generates on until its token limit while the only slot is blocked.
//! Never: a verdict about content. Honest files are full of repetition (tables, rulers, templates), so only what has
//! gone on for far longer than any of them counts; what is doubtful is left to the token limit.

use std::fmt;

/// Characters of white space in a row that no honest answer has. Escaped ones in JSON strings count as well.
const WHITE_SPACE_LIMIT: usize = 300;
/// Bytes of one sentence or paragraph again and again.
const PROSE_LIMIT: usize = 2_000;
/// Bytes of anything else again and again (tables of zeros are honest, and long).
const DATA_LIMIT: usize = 6_000;
/// The longest segment that is looked for, in bytes.
const LONGEST_PERIOD: usize = 1_000;
/// A segment must have come this often.
const LEAST_REPEATS: usize = 8;
/// How often the tail is looked at, in bytes.
const LOOK_EVERY: usize = 256;
/// As much of the answer as a look needs.
const KEPT: usize = LONGEST_PERIOD * LEAST_REPEATS;

/// What runs on without end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Runaway {
    /// White space.
    WhiteSpace,
    /// The same segment.
    Repetition,
}

impl fmt::Display for Runaway {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::WhiteSpace => "white space without end",
            Self::Repetition => "the same text again and again",
        })
    }
}

/// Reads an answer as it comes and says when it has run away.
#[derive(Debug, Default)]
pub(crate) struct RunawayDetector {
    tail: Vec<u8>,
    unseen: usize,
    white_space: usize,
    after_backslash: bool,
}

impl RunawayDetector {
    /// Takes the next piece; `Some` as soon as the answer so far has run away.
    pub(crate) fn push(&mut self, piece: &str) -> Option<Runaway> {
        if self.counts_too_much_white_space(piece) {
            return Some(Runaway::WhiteSpace);
        }
        self.tail.extend_from_slice(piece.as_bytes());
        self.unseen += piece.len();
        if self.unseen < LOOK_EVERY {
            return None;
        }
        self.unseen = 0;
        let surplus = self.tail.len().saturating_sub(2 * KEPT);
        if surplus > 0 {
            self.tail.drain(..surplus);
        }
        repeats_without_end(&self.tail).then_some(Runaway::Repetition)
    }

    fn counts_too_much_white_space(&mut self, piece: &str) -> bool {
        for character in piece.chars() {
            let escaped = std::mem::replace(&mut self.after_backslash, character == '\\');
            match character {
                // The backslash itself neither counts nor ends the run; what follows it decides.
                '\\' if !escaped => {}
                'n' | 'r' | 't' if escaped => self.white_space += 1,
                c if c.is_whitespace() => self.white_space += 1,
                _ => {
                    self.white_space = 0;
                    self.after_backslash = false;
                }
            }
            if self.white_space > WHITE_SPACE_LIMIT {
                return true;
            }
        }
        false
    }
}

/// The end of the tail is one segment again and again, for long enough.
fn repeats_without_end(tail: &[u8]) -> bool {
    // Twice: short segments show in a short tail already, long ones only in a long one.
    [PROSE_LIMIT, KEPT].into_iter().any(|length| {
        let Some(start) = tail.len().checked_sub(length) else { return false };
        let period = shortest_period(&tail[start..]);
        if period * LEAST_REPEATS > length {
            return false;
        }
        let limit = if is_prose(&tail[tail.len() - period..]) { PROSE_LIMIT } else { DATA_LIMIT };
        periodic_suffix(tail, period) >= limit
    })
}

/// The shortest period of the whole slice (its own length when it has none), by the prefix function of Knuth, Morris
/// and Pratt.
fn shortest_period(text: &[u8]) -> usize {
    let mut borders = vec![0_usize; text.len()];
    for index in 1..text.len() {
        let mut border = borders[index - 1];
        while border > 0 && text[index] != text[border] {
            border = borders[border - 1];
        }
        borders[index] = border + usize::from(text[index] == text[border]);
    }
    text.len() - borders.last().copied().unwrap_or(0)
}

/// How many bytes at the end have this period.
fn periodic_suffix(text: &[u8], period: usize) -> usize {
    let same = text.iter().rev().zip(text.iter().rev().skip(period)).take_while(|(a, b)| a == b).count();
    same + period
}

/// Words and sentences, nothing that looks like code, markup or data.
fn is_prose(segment: &[u8]) -> bool {
    let text = String::from_utf8_lossy(segment);
    let letters = text.chars().filter(|c| c.is_alphabetic() || *c == char::REPLACEMENT_CHARACTER).count();
    let words = text.split_whitespace().filter(|word| word.chars().any(char::is_alphabetic)).count();
    let is_code = text.contains(['<', '>', '{', '}', '[', ']', '=', ';', '|']);
    !is_code && words >= 4 && letters * 10 >= text.chars().count() * 6
}

#[cfg(test)]
mod tests;
