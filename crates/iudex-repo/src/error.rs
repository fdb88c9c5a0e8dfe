//! What can go wrong, in words a user can act on. Never: a decision about whether to go on.

use std::path::{Path, PathBuf};

/// The directory cannot be worked in.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `/`, the home directory itself, or a git directory.
    #[error("refusing to work in {}", .0.display())]
    Forbidden(PathBuf),
    /// A plain directory above the limits; may be allowed by the user.
    #[error("{} holds at least {files} files and {bytes} bytes and is not a git repository", directory.display())]
    TooLarge {
        /// The directory.
        directory: PathBuf,
        /// Files counted until the limit.
        files: u64,
        /// Bytes counted until the limit.
        bytes: u64,
    },
    /// git is missing or fails, or the state directory cannot be written.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
}

/// git or the file system failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct SnapshotError {
    /// What failed, with the command and what it said.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl SnapshotError {
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), hint: None }
    }

    pub(crate) fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// A failed operation of the file system on `path`; `what` reads as "cannot {what} PATH: …".
    pub(crate) fn io(what: &str, path: &Path, error: &std::io::Error) -> Self {
        let failed = Self::new(format!("cannot {what} {}: {error}", path.display()));
        match error.kind() {
            std::io::ErrorKind::StorageFull | std::io::ErrorKind::QuotaExceeded => {
                failed.hint("free some space on that file system and run the command again")
            }
            std::io::ErrorKind::PermissionDenied => failed.hint("check who owns that path and its permissions"),
            _ => failed,
        }
    }
}
