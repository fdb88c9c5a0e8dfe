//! Takes, compares and restores snapshots.

use std::path::{Path, PathBuf};

use iudex_core::{DiffStat, Snapshot};

/// Bounds for a plain directory (one that is not in a repository).
#[derive(Debug, Clone, Copy)]
pub struct SizeLimits {
    /// Files (20,000).
    pub files: u64,
    /// Bytes (1 GiB).
    pub bytes: u64,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 1 << 30 }
    }
}

/// The snapshots of one work directory.
#[derive(Debug)]
pub struct Snapshots {}

/// The directory cannot be worked in.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// `/` or the home directory itself.
    #[error("refusing to work in {}", .0.display())]
    Forbidden(PathBuf),
    /// A plain directory above the limits; may be allowed by the user.
    #[error("{} holds {files} files and {bytes} bytes and is not a git repository", directory.display())]
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
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct SnapshotError {
    /// What failed, with the command and what it said.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

/// One path that differs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChangedPath {
    /// Relative to the work directory.
    pub path: PathBuf,
    /// How it differs.
    pub kind: ChangeKind,
}

/// How a path differs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChangeKind {
    /// Only in the later one.
    Added,
    /// In both, different (bytes, mode or type).
    Modified,
    /// Only in the earlier one.
    Deleted,
}

/// What a restore did.
#[derive(Debug, Clone, Default)]
pub struct RestoreReport {
    /// Brought back or removed.
    pub restored: Vec<PathBuf>,
    /// Changed by somebody else since the last snapshot of iudex, and kept.
    pub kept: Vec<PathBuf>,
}

impl Snapshots {
    /// Opens the snapshots of `directory` (absolute, existing), stored under `state/snapshots/…`.
    pub fn open(state: &Path, directory: &Path, limits: SizeLimits) -> Result<Self, OpenError> {
        let _ = (state, directory, limits);
        todo!()
    }

    /// The directories named `.git` (or what a `.git` file points to, when it lies in the work directory) that a
    /// sandbox must make read-only: the repository's and those of nested repositories.
    pub fn git_directories(&self) -> Vec<PathBuf> {
        todo!()
    }

    /// Takes the base: raw tree, tree as git would commit it, and ignored files up to 1 MiB each and 64 MiB in all.
    /// Kept under the name of the run until [`Snapshots::forget`].
    pub fn take_base(&self, run: &str) -> Result<Snapshot, SnapshotError> {
        let _ = run;
        todo!()
    }

    /// Takes a snapshot of the present state and keeps it under `run` and `label` (`pass-1`, `undo`).
    pub fn take(&self, run: &str, label: &str) -> Result<Snapshot, SnapshotError> {
        let _ = (run, label);
        todo!()
    }

    /// The paths that differ from `from` to `to`.
    pub fn changed(&self, from: &Snapshot, to: &Snapshot) -> Result<Vec<ChangedPath>, SnapshotError> {
        let _ = (from, to);
        todo!()
    }

    /// The same with lines added and removed.
    pub fn diff_stat(&self, from: &Snapshot, to: &Snapshot) -> Result<DiffStat, SnapshotError> {
        let _ = (from, to);
        todo!()
    }

    /// The unified diff as bytes, for people (`colour` with ANSI colours).
    pub fn diff(&self, from: &Snapshot, to: &Snapshot, colour: bool) -> Result<Vec<u8>, SnapshotError> {
        let _ = (from, to, colour);
        todo!()
    }

    /// Brings the work directory from its present state back to `target`. `ours` is the last state that iudex saw:
    /// paths that differ between it and the present state were changed by somebody else and are kept and reported,
    /// unless `force`. Saves a snapshot of the present state first, under `run` and `before-undo`.
    pub fn restore(
        &self,
        run: &str,
        target: &Snapshot,
        ours: &Snapshot,
        force: bool,
    ) -> Result<RestoreReport, SnapshotError> {
        let _ = (run, target, ours, force);
        todo!()
    }

    /// Drops the snapshots of a run; their objects go with the next cleaning.
    pub fn forget(&self, run: &str) -> Result<(), SnapshotError> {
        let _ = run;
        todo!()
    }
}
