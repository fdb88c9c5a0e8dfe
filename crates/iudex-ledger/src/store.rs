//! The store: schema, migrations, writing and reading.

use std::path::{Path, PathBuf};

use iudex_core::{Event, Snapshot};

use crate::record::{RecordedEvent, RunRow, RunStats};

/// The ledger.
#[derive(Debug)]
pub struct Ledger {}

/// A run that begins.
#[derive(Debug, Clone)]
pub struct NewRun {
    /// Its name.
    pub run: String,
    /// The work directory.
    pub directory: PathBuf,
    /// The first line of the goal.
    pub goal: String,
    /// The model.
    pub model: String,
    /// The session that it belongs to, if any.
    pub session: Option<String>,
    /// This process.
    pub pid: u32,
}

/// How long runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Days (30).
    pub days: u32,
    /// The newest runs, kept always (20).
    pub newest: u32,
}

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

impl Ledger {
    /// Opens `state/ledger.sqlite`, creating it (0600, directory 0700) or migrating it. A file from a newer iudex is an
    /// error, never touched.
    pub fn open(state: &Path) -> Result<Self, LedgerError> {
        let _ = state;
        todo!()
    }

    /// Begins a run.
    pub fn begin(&self, run: &NewRun) -> Result<(), LedgerError> {
        let _ = run;
        todo!()
    }

    /// Stores one event: its JSON as it is, and the tables that are made from it. Returns its number and time.
    pub fn record(&self, run: &str, event: &Event) -> Result<(u64, String), LedgerError> {
        let _ = (run, event);
        todo!()
    }

    /// The runs, newest first; only those of `directory` when given.
    pub fn runs(&self, directory: Option<&Path>, most: u32) -> Result<Vec<RunRow>, LedgerError> {
        let _ = (directory, most);
        todo!()
    }

    /// The run of this name or unambiguous beginning of a name; the last one of `directory` for `None`.
    pub fn find(&self, run: Option<&str>, directory: &Path) -> Result<Option<RunRow>, LedgerError> {
        let _ = (run, directory);
        todo!()
    }

    /// What is known about a run.
    pub fn stats(&self, run: &str) -> Result<RunStats, LedgerError> {
        let _ = run;
        todo!()
    }

    /// The base and the last pinned snapshot of a run.
    pub fn snapshots(&self, run: &str) -> Result<(Option<Snapshot>, Option<Snapshot>), LedgerError> {
        let _ = run;
        todo!()
    }

    /// The events of a run, in order.
    pub fn events(&self, run: &str) -> Result<Vec<RecordedEvent>, LedgerError> {
        let _ = run;
        todo!()
    }

    /// Drops runs beyond the retention and returns their names, so that their files and snapshots can go too.
    pub fn expire(&self, retention: Retention) -> Result<Vec<String>, LedgerError> {
        let _ = retention;
        todo!()
    }

    /// Keeps a session's conversation (opaque JSON) for `--continue`.
    pub fn keep_session(&self, session: &str, directory: &Path, state: &serde_json::Value) -> Result<(), LedgerError> {
        let _ = (session, directory, state);
        todo!()
    }

    /// The newest session of a directory.
    pub fn last_session(&self, directory: &Path) -> Result<Option<(String, serde_json::Value)>, LedgerError> {
        let _ = directory;
        todo!()
    }
}
