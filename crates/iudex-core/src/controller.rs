//! Chooses what changes in the next pass. A retry that changes nothing is not worth its price.

use serde::{Deserialize, Serialize};

use crate::ruling::Fingerprint;
use crate::traits::PassEnd;

/// How the first message of a new conversation is built.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptStrategy {
    /// Task and gates; the agent looks for itself.
    #[default]
    Plain,
    /// Task, gates, and the project's files where they are small.
    WithFiles,
}

impl PromptStrategy {
    /// The other of the two.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Plain => Self::WithFiles,
            Self::WithFiles => Self::Plain,
        }
    }
}

/// What the controller does with a ruling of rework.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Move {
    /// The same conversation goes on.
    Continue,
    /// A new conversation on the files as they are.
    Fresh,
    /// A new conversation on the files as they were at the base.
    Resample,
}

/// Remembers what was tried and chooses the next move.
///
/// The rules: a first failure continues; the same failure again, or files that were refused before, start a fresh
/// conversation with the other prompt strategy; the third time in a row goes back to the base. A pass that ended stuck or at a limit is never
/// continued: it starts fresh, and the second time in a row goes back to the base.
#[derive(Debug, Clone)]
pub struct Controller {
    strategy: PromptStrategy,
    last_failure: Option<Fingerprint>,
    same_failures: u32,
    bad_ends: u32,
}

impl Controller {
    /// A controller whose first pass uses `strategy`.
    pub fn new(strategy: PromptStrategy) -> Self {
        Self { strategy, last_failure: None, same_failures: 0, bad_ends: 0 }
    }

    /// The strategy of the present conversation.
    pub fn strategy(&self) -> PromptStrategy {
        self.strategy
    }

    /// True when this failure is the one that was seen last.
    pub fn is_same_failure(&self, failure: &Fingerprint) -> bool {
        self.last_failure.as_ref() == Some(failure)
    }

    /// Takes note of a failed pass and chooses the move that follows. `unchanged`: the files are in a state that was
    /// ruled about before, so a change was made and taken back.
    pub fn choose(&mut self, failure: &Fingerprint, end: &PassEnd, unchanged: bool) -> Move {
        let is_again = unchanged || self.is_same_failure(failure);
        self.same_failures = if is_again { self.same_failures + 1 } else { 1 };
        self.last_failure = Some(failure.clone());
        self.bad_ends = if *end == PassEnd::Finished { 0 } else { self.bad_ends + 1 };

        let chosen = match self.same_failures.max(if self.bad_ends > 0 { self.bad_ends + 1 } else { 0 }) {
            0 | 1 => Move::Continue,
            2 => Move::Fresh,
            _ => Move::Resample,
        };
        if chosen != Move::Continue {
            self.strategy = self.strategy.other();
        }
        chosen
    }
}
