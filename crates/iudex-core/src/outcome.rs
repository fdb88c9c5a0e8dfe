//! How a run ended, in the one word and the one number that the outside sees.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::ruling::{Accepted, Place};

/// How a run ended. The exit codes are in [`Outcome::exit_code`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "snake_case")]
pub enum Outcome {
    /// Every configured gate accepted.
    Done {
        /// What stands behind it.
        validation: Validation,
    },
    /// The last verdict is rework and its budget is spent.
    ValidationFailed,
    /// No progress after intervention, no move left, the gates did not accept.
    Stuck {
        /// What repeated.
        why: String,
    },
    /// Steps, tokens, money or time are spent and the gates did not accept.
    HitLimit {
        /// Which limit.
        limit: Limit,
    },
    /// A command met the hard-refusal policy.
    Blocked {
        /// The command and the rule.
        why: String,
    },
    /// A gate could not check, or a person must decide.
    NeedsYou {
        /// What a person must look at.
        why: String,
    },
    /// The model or agent cannot be reached or refuses, after retries.
    ModelUnavailable {
        /// What it answered.
        why: String,
    },
    /// Cancelled.
    Aborted,
}

/// What stands behind a `done`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "validation", rename_all = "snake_case")]
pub enum Validation {
    /// No gate was configured: the agent's claim, no more.
    Unvalidated,
    /// These acceptances, one a gate; never empty.
    Accepted {
        /// One acceptance for each gate, in the order asked.
        acceptances: Vec<Accepted>,
    },
}

/// A limit that ended a pass or a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Limit {
    /// Model calls in a pass.
    Steps,
    /// Tokens of the run.
    Tokens,
    /// Money of the run.
    Cost,
    /// Wall clock of the run.
    Time,
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Steps => "steps",
            Self::Tokens => "tokens",
            Self::Cost => "cost",
            Self::Time => "time",
        })
    }
}

impl Limit {
    /// True for a limit of the whole run: no other pass can follow.
    pub fn ends_run(self) -> bool {
        self != Self::Steps
    }
}

impl Outcome {
    /// The exit code of the process: 0 done, 1 validation failed, 3 stuck, 4 hit limit, 5 blocked, 6 needs you,
    /// 7 model unavailable, 130 aborted. (2 is a usage error: nothing was started, so there is no outcome.)
    pub fn exit_code(&self) -> u8 {
        match self {
            Self::Done { .. } => 0,
            Self::ValidationFailed => 1,
            Self::Stuck { .. } => 3,
            Self::HitLimit { .. } => 4,
            Self::Blocked { .. } => 5,
            Self::NeedsYou { .. } => 6,
            Self::ModelUnavailable { .. } => 7,
            Self::Aborted => 130,
        }
    }

    /// The outcome for people. Weaker evidence is part of the word.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Done { validation: Validation::Unvalidated } => "done (unvalidated)",
            Self::Done { validation: Validation::Accepted { acceptances } } if acceptances.is_empty() => {
                "done (unvalidated)"
            }
            Self::Done { validation: Validation::Accepted { acceptances } } => {
                let in_place = acceptances.iter().any(|accepted| accepted.evidence().place == Place::InPlace);
                if in_place { "done (checked in place only)" } else { "done" }
            }
            Self::ValidationFailed => "validation failed",
            Self::Stuck { .. } => "stuck",
            Self::HitLimit { .. } => "hit limit",
            Self::Blocked { .. } => "blocked",
            Self::NeedsYou { .. } => "needs you",
            Self::ModelUnavailable { .. } => "model unavailable",
            Self::Aborted => "aborted",
        }
    }

    /// Why, where the outcome carries a reason.
    pub fn why(&self) -> Option<String> {
        match self {
            Self::Stuck { why } | Self::Blocked { why } | Self::NeedsYou { why } | Self::ModelUnavailable { why } => {
                Some(why.clone())
            }
            Self::HitLimit { limit } => Some(format!("the {limit} limit is reached")),
            Self::Done { .. } | Self::ValidationFailed | Self::Aborted => None,
        }
    }
}
