//! Snapshots of a work directory through a private index into a private object store, undo, diffs, and the run lock.
//!
//! Never: a byte of the user's index, HEAD, stash, hooks or configuration; a decision about what a snapshot is worth.

mod error;
mod git;
mod lock;
mod object;
mod paths;
mod place;
mod snapshots;
mod store;
mod survey;
mod writer;

pub use error::{OpenError, SnapshotError};
pub use lock::{Busy, RunLock};
pub use snapshots::{RestoreReport, SizeLimits, Snapshots};
