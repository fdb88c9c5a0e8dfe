//! Why nothing was started.

use serde::Serialize;

/// A command cannot begin; the message says what, which value, and the hint what to do.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// The exit code: 2 usage or configuration, 6 cannot tell, 7 no model within reach.
    pub exit_code: u8,
    /// What is wrong, with the value.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl Refusal {
    /// A usage or configuration error (exit 2).
    pub fn usage(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit_code: 2, message: message.into(), hint: Some(hint.into()) }
    }

    /// The same without a hint.
    pub fn plain(message: impl Into<String>) -> Self {
        Self { exit_code: 2, message: message.into(), hint: None }
    }

    /// No model within reach (exit 7).
    pub fn no_model(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { exit_code: 7, message: message.into(), hint: Some(hint.into()) }
    }
}

impl From<iudex_core::NotStarted> for Refusal {
    fn from(error: iudex_core::NotStarted) -> Self {
        Self { exit_code: 2, message: error.message, hint: error.hint }
    }
}

impl From<iudex_ledger::LedgerError> for Refusal {
    fn from(error: iudex_ledger::LedgerError) -> Self {
        Self { exit_code: 2, hint: error.hint.clone(), message: error.to_string() }
    }
}

impl From<iudex_repo::SnapshotError> for Refusal {
    fn from(error: iudex_repo::SnapshotError) -> Self {
        Self { exit_code: 2, message: error.message, hint: error.hint }
    }
}

impl From<iudex_repo::Busy> for Refusal {
    fn from(error: iudex_repo::Busy) -> Self {
        Self::usage(error.to_string(), "wait for it to end, or stop it; one run works in a directory at a time")
    }
}

impl From<iudex_repo::OpenError> for Refusal {
    fn from(error: iudex_repo::OpenError) -> Self {
        match error {
            iudex_repo::OpenError::Forbidden(_) => {
                Self::usage(error.to_string(), "start iudex in the directory of a project, or name one with --cwd")
            }
            iudex_repo::OpenError::TooLarge { directory, .. } => Self::usage(
                format!("{} is not in a git repository and holds more than 20,000 files or 1 GiB", directory.display()),
                "start in a smaller directory, make it a git repository, or allow it with --large-directory",
            ),
            iudex_repo::OpenError::Snapshot(error) => error.into(),
        }
    }
}
