//! Snapshots of a work directory through a private index into a private object store, undo, diffs, and the run lock.
//!
//! Never: a byte of the user's index, HEAD, stash, hooks or configuration; a decision about what a snapshot is worth.

mod lock;
mod snapshots;

pub use lock::{Busy, RunLock};
pub use snapshots::{ChangeKind, ChangedPath, OpenError, RestoreReport, SizeLimits, SnapshotError, Snapshots};
