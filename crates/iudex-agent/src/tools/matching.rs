//! Finds the text that an edit names: exactly, then apart from white space, then nearly. Never guesses between two.

use std::collections::HashMap;

use similar::TextDiff;

/// Where the old text is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    /// At these bytes of the text.
    Exact {
        /// The first byte.
        start: usize,
        /// Behind the last byte.
        end: usize,
    },
    /// On whole lines that are not exactly the same.
    Lines {
        /// The first line, from 0.
        first: usize,
        /// How they differ, for the model.
        how: &'static str,
    },
}

/// Why it was not found.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum NotFound {
    /// It is there more than once, at these lines (from 0).
    Many(Vec<usize>),
    /// It is not there; the nearest lines begin here (from 0), when there are any.
    Nowhere(Option<usize>),
}

/// Near lines must be this similar, weighted by length.
const NEAR: f32 = 0.88;
/// A single near line must be this similar.
const NEAR_LINE: f32 = 0.92;
/// The next best place must be worse by this much.
const CLEARLY: f32 = 0.08;
/// A line that is changed must itself be this similar.
const NEAR_CHANGED: f32 = 0.75;
/// What is shown as nearest is at least this similar.
const RELATED: f32 = 0.45;
/// Lines that cannot be this similar, by the characters in them, are not compared.
const POSSIBLE: f32 = 0.5;
/// Pairs of lines that are compared at most.
const MOST_PAIRS: usize = 100_000;
/// Characters of a line that are compared.
const LINE_BYTES: usize = 400;

/// A form of a line in which small differences are gone.
type Normal = fn(&str) -> String;

/// The byte offsets at which `old` begins, overlapping ones too; at most `most`.
fn occurrences(text: &str, old: &str, most: usize) -> Vec<usize> {
    let mut found = Vec::new();
    let mut from = 0;
    while found.len() < most
        && let Some(at) = text[from..].find(old)
    {
        found.push(from + at);
        from += at + text[from + at..].chars().next().map_or(1, char::len_utf8);
    }
    found
}

/// The line (from 0) on which a byte lies.
pub(super) fn line_at(text: &str, byte: usize) -> usize {
    memchr::memchr_iter(b'\n', &text.as_bytes()[..byte]).count()
}

/// Finds `old` as it stands.
pub(super) fn exact(text: &str, old: &str) -> Result<Option<Found>, NotFound> {
    match occurrences(text, old, 50).as_slice() {
        [] => Ok(None),
        [only] => Ok(Some(Found::Exact { start: *only, end: only + old.len() })),
        many => Err(NotFound::Many(many.iter().map(|at| line_at(text, *at)).collect())),
    }
}

/// Finds lines that are `old` apart from small differences. `changed` marks the lines of `old` that the edit changes.
pub(super) fn tolerant(lines: &[&str], old: &[&str], changed: &[bool]) -> Result<Found, NotFound> {
    if old.iter().all(|line| line.trim().is_empty()) || old.len() > lines.len() {
        return Err(NotFound::Nowhere(if old.len() > lines.len() { nearest(lines, old) } else { None }));
    }
    let levels: [(Normal, &str); 3] = [
        (|line| line.trim_end().to_owned(), "apart from blanks at line ends"),
        (|line| line.trim().to_owned(), "apart from indentation"),
        (|line| line.chars().filter(|c| !c.is_whitespace()).collect(), "apart from white space"),
    ];
    for (normal, how) in levels {
        let there: Vec<String> = lines.iter().map(|line| normal(line)).collect();
        let wanted: Vec<String> = old.iter().map(|line| normal(line)).collect();
        let starts: Vec<usize> = there
            .windows(wanted.len())
            .enumerate()
            .filter(|(_, window)| *window == wanted.as_slice())
            .map(|(start, _)| start)
            .collect();
        match starts.as_slice() {
            [] => {}
            [first] => return Ok(Found::Lines { first: *first, how }),
            _ => return Err(NotFound::Many(starts)),
        }
    }
    near(lines, old, changed)
}

fn near(lines: &[&str], old: &[&str], changed: &[bool]) -> Result<Found, NotFound> {
    let mut table = Similarity::new(lines, old);
    let windows = lines.len() - old.len() + 1;
    let mut scores = Vec::with_capacity(windows);
    for start in 0..windows {
        scores.push(table.window(start));
    }
    let Some((best, score)) = scores.iter().copied().enumerate().max_by(|a, b| a.1.total_cmp(&b.1)) else {
        return Err(NotFound::Nowhere(None));
    };
    let second = scores
        .iter()
        .enumerate()
        .filter(|(start, _)| start.abs_diff(best) >= old.len())
        .map(|(_, score)| *score)
        .fold(0.0, f32::max);
    let enough = if old.len() == 1 { NEAR_LINE } else { NEAR };
    let changed_lines_fit = changed.iter().enumerate().filter(|(_, changed)| **changed).all(|(index, _)| {
        let (there, wanted) = (lines[best + index].trim(), old[index].trim());
        // Part of a longer line: replacing the whole line would lose the rest of it.
        let is_part = there != wanted && !wanted.is_empty() && there.contains(wanted);
        !is_part && table.pair(best + index, index) >= NEAR_CHANGED
    });
    let weight: usize = old.iter().map(|line| line.trim().len()).sum();
    if score >= enough && second < score - CLEARLY && changed_lines_fit && weight >= 12 {
        return Ok(Found::Lines { first: best, how: "nearly" });
    }
    Err(NotFound::Nowhere((score >= RELATED).then_some(best)))
}

/// The place of a longer `old` that its first lines resemble most.
fn nearest(lines: &[&str], old: &[&str]) -> Option<usize> {
    let first = old.iter().find(|line| !line.trim().is_empty())?;
    let one = [*first];
    let mut table = Similarity::new(lines, &one);
    (0..lines.len())
        .map(|start| (start, table.window(start)))
        .filter(|(_, score)| *score >= RELATED)
        .max_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(start, _)| start)
}

/// How similar lines are, each pair computed once.
struct Similarity<'t> {
    lines: &'t [&'t str],
    old: &'t [&'t str],
    known: HashMap<(&'t str, usize), f32>,
}

impl<'t> Similarity<'t> {
    fn new(lines: &'t [&'t str], old: &'t [&'t str]) -> Self {
        Self { lines, old, known: HashMap::new() }
    }

    fn pair(&mut self, line: usize, old: usize) -> f32 {
        let (there, wanted) = (cut(self.lines[line].trim()), cut(self.old[old].trim()));
        if there == wanted {
            return 1.0;
        }
        if let Some(known) = self.known.get(&(there, old)) {
            return *known;
        }
        let ratio = if self.known.len() > MOST_PAIRS || most_possible(there, wanted) < POSSIBLE {
            0.0
        } else {
            TextDiff::from_chars(there, wanted).ratio()
        };
        self.known.insert((there, old), ratio);
        ratio
    }

    /// The similarity of the lines from `start`, weighted by length.
    fn window(&mut self, start: usize) -> f32 {
        let (mut sum, mut weight) = (0.0, 0.0);
        for index in 0..self.old.len() {
            let length =
                self.lines[start + index].trim().len().max(self.old[index].trim().len()).min(LINE_BYTES) as f32;
            sum += self.pair(start + index, index) * length;
            weight += length;
        }
        if weight > 0.0 { sum / weight } else { 0.0 }
    }
}

fn cut(line: &str) -> &str {
    &line[..line.floor_char_boundary(LINE_BYTES)]
}

/// The most that two texts can have in common, by the bytes that they are made of.
fn most_possible(a: &str, b: &str) -> f32 {
    let mut counts = [0_i32; 256];
    for byte in a.bytes() {
        counts[usize::from(byte)] += 1;
    }
    let mut common = 0;
    for byte in b.bytes() {
        let count = &mut counts[usize::from(byte)];
        common += i32::from(*count > 0);
        *count -= 1;
    }
    let length = a.len() + b.len();
    if length == 0 { 1.0 } else { 2.0 * common as f32 / length as f32 }
}
