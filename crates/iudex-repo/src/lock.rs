//! One run a directory, parents and children included.

use std::path::{Path, PathBuf};

/// Held while a run works in a directory; released on drop and by the death of the process.
#[derive(Debug)]
pub struct RunLock {}

/// Another run holds the directory, a parent or a child of it.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Another run.
    #[error("run {run} (process {pid}) works in {}", directory.display())]
    Held {
        /// The other run.
        run: String,
        /// Its process.
        pid: u32,
        /// Its directory.
        directory: PathBuf,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}: {error}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

impl RunLock {
    /// Takes the lock for `directory`, with lock files under `state/locks`.
    pub fn acquire(state: &Path, directory: &Path, run: &str) -> Result<Self, Busy> {
        let _ = (state, directory, run);
        todo!()
    }
}
