//! Why the ledger cannot be used, with the next step.
//!
//! Never: a repair. A file that cannot be read is named and left as it is.

use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;

/// The ledger cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the ledger {}: {message}", path.display())]
pub struct LedgerError {
    /// The file.
    pub path: PathBuf,
    /// What failed.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl LedgerError {
    pub(crate) fn new(path: &Path, message: impl Into<String>, hint: Option<String>) -> Self {
        Self { path: path.to_owned(), message: message.into(), hint }
    }

    /// A file that is no ledger, or no longer one.
    pub(crate) fn corrupt(path: &Path, what: &str) -> Self {
        let shown = path.display();
        Self::new(
            path,
            format!("it is damaged or not a ledger ({what}); it was left as it is"),
            Some(format!("move it away and a new one is made: mv '{shown}' '{shown}.broken'")),
        )
    }

    pub(crate) fn from_io(path: &Path, doing: &str, error: &std::io::Error) -> Self {
        let hint = match error.kind() {
            std::io::ErrorKind::StorageFull => Some(FREE_SPACE.to_owned()),
            std::io::ErrorKind::PermissionDenied | std::io::ErrorKind::ReadOnlyFilesystem => {
                Some(format!("make {} writable, or set XDG_STATE_HOME to another directory", path.display()))
            }
            _ => None,
        };
        Self::new(path, format!("{doing}: {error}"), hint)
    }

    pub(crate) fn from_sqlite(path: &Path, doing: &str, error: &rusqlite::Error) -> Self {
        let hint = match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => {
                return Self::corrupt(path, &format!("{doing}: {error}"));
            }
            Some(ErrorCode::DiskFull) => Some(FREE_SPACE.to_owned()),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
                Some("another program holds it; close that one and try again".to_owned())
            }
            Some(ErrorCode::ReadOnly | ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => {
                Some(format!("make {} writable, or set XDG_STATE_HOME to another directory", path.display()))
            }
            _ => None,
        };
        Self::new(path, format!("{doing}: {error}"), hint)
    }
}

const FREE_SPACE: &str = "free some space on that disk, or set XDG_STATE_HOME to another one";
