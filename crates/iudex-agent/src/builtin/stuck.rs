//! Notices that a pass goes round in circles. Progress is a change of state, not of text.
//!
//! Never: a verdict about a step that was taken for the first time since the files last changed.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

/// After an intervention, so many further repeats end the pass.
const REPEATS_AFTER_INTERVENTION: u32 = 2;

/// A call that follows itself so often, with the same result, is a repeat even though some file changes each time (a log
/// that the command writes).
const TIMES_IN_A_ROW: u32 = 10;

/// What a step means for the pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// Something new.
    Moving,
    /// Seen before since the files last changed, with the very same result.
    SeenBefore,
    /// The third of its kind: the model must be told what repeats.
    Intervene(Repeats),
    /// It went on after the intervention.
    Stuck(Repeats),
}

/// What repeats how.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Repeats {
    /// How often it was seen.
    pub times: u32,
    /// It followed itself although a file changed each time; else no file has changed in between.
    pub with_changes: bool,
}

impl std::fmt::Display for Repeats {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.with_changes {
            write!(f, "{} times in a row with the same result", self.times)
        } else {
            write!(f, "{} times with the same result, and no file changed in between", self.times)
        }
    }
}

/// Counts steps that change nothing.
#[derive(Debug)]
pub(super) struct StuckDetector {
    threshold: u32,
    /// Steps since the files last changed, numbers in the results left out.
    seen: HashMap<u64, u32>,
    /// The same with the whole results.
    exact: HashSet<u64>,
    intervened: bool,
    repeats_after: u32,
    last: Option<u64>,
    in_a_row: u32,
}

impl StuckDetector {
    /// A detector that steps in at the `threshold`th repeat.
    pub(super) fn new(threshold: u32) -> Self {
        Self {
            threshold: threshold.max(2),
            seen: HashMap::new(),
            exact: HashSet::new(),
            intervened: false,
            repeats_after: 0,
            last: None,
            in_a_row: 0,
        }
    }

    /// Takes a step: what was done, what came of it, and whether a file has changed by it.
    pub(super) fn step(&mut self, what: &str, result: &str, changed: bool) -> Progress {
        let key = digest(what, &without_numbers(result));
        self.in_a_row = if self.last == Some(key) { self.in_a_row + 1 } else { 1 };
        self.last = Some(key);
        if changed && self.in_a_row < TIMES_IN_A_ROW {
            self.seen.clear();
            self.exact.clear();
            self.intervened = false;
            self.repeats_after = 0;
            return Progress::Moving;
        }
        let count = self.seen.entry(key).or_insert(0);
        *count += 1;
        let times = (*count).max(self.in_a_row);
        let is_known = !self.exact.insert(digest(what, result));
        let repeats = Repeats { times, with_changes: changed };
        if times >= self.threshold && !self.intervened {
            self.intervened = true;
            return Progress::Intervene(repeats);
        }
        // Only a change of a file makes up for repeats: something new in between does not.
        if times >= self.threshold {
            self.repeats_after += 1;
            if self.repeats_after >= REPEATS_AFTER_INTERVENTION {
                return Progress::Stuck(repeats);
            }
        }
        if is_known { Progress::SeenBefore } else { Progress::Moving }
    }
}

fn digest(what: &str, result: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    (what, result).hash(&mut hasher);
    hasher.finish()
}

/// A text in which every number is the same: times and counts that differ are no progress.
fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_number = false;
    for c in text.chars() {
        if c.is_ascii_digit() {
            if !in_number {
                out.push('0');
            }
            in_number = true;
        } else {
            in_number = false;
            out.push(c);
        }
    }
    out
}

#[cfg(test)]
mod tests;
