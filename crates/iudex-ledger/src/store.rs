//! The ledger as its users see it: begin a run, record its events, read them back.
//!
//! Never: SQL beyond what a call needs; writing is in `write`, reading in `read` and `stats`.

use std::cell::RefCell;
use std::path::{Path, PathBuf};

use iudex_core::{Event, NotStarted, Outcome, Snapshot};
use rusqlite::Connection;
use serde_json::Value;

use crate::error::LedgerError;
use crate::mask::Mask;
use crate::open;
use crate::record::{RecordedEvent, RunRow, RunStats};

/// The name of the file in the state directory.
const FILE: &str = "ledger.sqlite";

/// The ledger.
#[derive(Debug)]
pub struct Ledger {
    pub(crate) file: PathBuf,
    pub(crate) connection: Connection,
    pub(crate) mask: RefCell<Mask>,
}

/// A run that begins.
#[derive(Debug, Clone, Default)]
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
    /// What the outcome must say beside its word (`without the configured gates`).
    pub note: Option<String>,
}

/// How long runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// Days (30).
    pub days: u32,
    /// The newest runs, kept always (20).
    pub newest: u32,
}

impl Default for Retention {
    fn default() -> Self {
        Self { days: 30, newest: 20 }
    }
}

impl Ledger {
    /// Opens `state/ledger.sqlite`, creating it (0600, directory 0700) or migrating it. A file from a newer iudex is an
    /// error, never touched.
    pub fn open(state: &Path) -> Result<Self, LedgerError> {
        let file = state.join(FILE);
        let connection = open::open(state, &file)?;
        Ok(Self { file, connection, mask: RefCell::default() })
    }

    /// From now on these values are stored as `[masked]`, wherever they occur. Values under six characters are ignored:
    /// they would tear holes into ordinary text.
    pub fn mask_values(&self, values: Vec<String>) {
        self.mask.borrow_mut().add(values);
    }

    /// Begins a run.
    pub fn begin(&self, run: &NewRun) -> Result<(), LedgerError> {
        self.write_begin(run).map_err(|error| self.failed(&format!("beginning run {}", run.run), &error))
    }

    /// Stores one event: its JSON as it is, and the tables that are made from it. Returns its number and time.
    pub fn record(&self, run: &str, event: &Event) -> Result<(u64, String), LedgerError> {
        self.write_event(run, event)
    }

    /// Ends a run that the loop never started (exit 2), so that it is not taken for one that was killed.
    pub fn not_started(&self, run: &str, why: &NotStarted) -> Result<(), LedgerError> {
        self.write_not_started(run, why).map_err(|error| self.failed(&format!("ending run {run}"), &error))
    }

    /// Puts another outcome and its exit code in place of what a run ended with, and the reason beside it: for a run
    /// whose record turned out to be incomplete. The events stay as they are.
    ///
    /// # Errors
    /// Also for a run that is not there.
    pub fn amend(&self, run: &str, outcome: &Outcome) -> Result<(), LedgerError> {
        let amended = self.write_amendment(run, outcome);
        let found = amended.map_err(|error| self.failed(&format!("amending run {run}"), &error))?;
        if found { Ok(()) } else { Err(self.unknown_run(run)) }
    }

    /// Masks every string of a JSON value as it is masked in what is stored, for output beside the ledger.
    pub fn masked(&self, value: &mut Value) {
        self.mask.borrow().json(value);
    }

    /// The runs, newest first; only those of `directory` when given.
    pub fn runs(&self, directory: Option<&Path>, most: u32) -> Result<Vec<RunRow>, LedgerError> {
        self.read_runs(directory, most).map_err(|error| self.failed("listing the runs", &error))
    }

    /// The run of this name or unambiguous beginning of a name; the last one of `directory` for `None`.
    ///
    /// # Errors
    /// Also when several runs begin with this; the message lists them.
    pub fn find(&self, run: Option<&str>, directory: &Path) -> Result<Option<RunRow>, LedgerError> {
        let Some(prefix) = run else {
            return Ok(self.runs(Some(directory), 1)?.pop());
        };
        let failed = |error| self.failed(&format!("looking for run {prefix}"), &error);
        if let Some(exact) = self.read_run(prefix).map_err(failed)? {
            return Ok(Some(exact));
        }
        let mut rows = self.read_runs_beginning(prefix).map_err(failed)?;
        if rows.len() < 2 {
            return Ok(rows.pop());
        }
        let names = rows.iter().map(|row| row.run.as_str()).collect::<Vec<_>>().join(", ");
        Err(LedgerError::new(
            &self.file,
            format!("several runs begin with `{prefix}`: {names}"),
            Some("give more of the name; `iudex log` lists the runs".to_owned()),
        ))
    }

    /// What is known about a run.
    pub fn stats(&self, run: &str) -> Result<RunStats, LedgerError> {
        let row = self.row_of(run)?;
        self.read_stats(row).map_err(|error| self.failed(&format!("reading run {run}"), &error))
    }

    /// The base and the last pinned snapshot of a run.
    pub fn snapshots(&self, run: &str) -> Result<(Option<Snapshot>, Option<Snapshot>), LedgerError> {
        self.row_of(run)?;
        let (base, last) =
            self.read_snapshots(run).map_err(|error| self.failed(&format!("reading run {run}"), &error))?;
        Ok((self.parse_snapshot(run, base)?, self.parse_snapshot(run, last)?))
    }

    /// The events of a run, in order.
    pub fn events(&self, run: &str) -> Result<Vec<RecordedEvent>, LedgerError> {
        self.row_of(run)?;
        self.read_events(run).map_err(|error| self.failed(&format!("reading the events of run {run}"), &error))
    }

    /// Drops runs beyond the retention and returns their names, so that their files and snapshots can go too. A run that
    /// still goes on stays. Sessions follow the same rule.
    pub fn expire(&self, retention: Retention) -> Result<Vec<String>, LedgerError> {
        self.write_expiry(retention).map_err(|error| self.failed("dropping old runs", &error))
    }

    /// Keeps a session's conversation (opaque JSON) for `--continue`.
    pub fn keep_session(&self, session: &str, directory: &Path, state: &Value) -> Result<(), LedgerError> {
        self.write_session(session, directory, state)
            .map_err(|error| self.failed(&format!("keeping session {session}"), &error))
    }

    /// The newest session of a directory.
    pub fn last_session(&self, directory: &Path) -> Result<Option<(String, Value)>, LedgerError> {
        let found = self.read_session(directory).map_err(|error| self.failed("reading the last session", &error))?;
        let Some((session, state)) = found else { return Ok(None) };
        match serde_json::from_str(&state) {
            Ok(state) => Ok(Some((session, state))),
            Err(error) => Err(LedgerError::new(&self.file, format!("session {session} cannot be read: {error}"), None)),
        }
    }

    pub(crate) fn failed(&self, doing: &str, error: &rusqlite::Error) -> LedgerError {
        LedgerError::from_sqlite(&self.file, doing, error)
    }

    fn row_of(&self, run: &str) -> Result<RunRow, LedgerError> {
        let row = self.read_run(run).map_err(|error| self.failed(&format!("reading run {run}"), &error))?;
        row.ok_or_else(|| self.unknown_run(run))
    }

    pub(crate) fn unknown_run(&self, run: &str) -> LedgerError {
        LedgerError::new(&self.file, format!("there is no run `{run}`"), Some("`iudex log` lists the runs".to_owned()))
    }

    fn parse_snapshot(&self, run: &str, json: Option<String>) -> Result<Option<Snapshot>, LedgerError> {
        let Some(json) = json else { return Ok(None) };
        serde_json::from_str(&json).map(Some).map_err(|error| {
            LedgerError::new(&self.file, format!("a snapshot of run {run} cannot be read: {error}"), None)
        })
    }
}

#[cfg(test)]
mod tests;
