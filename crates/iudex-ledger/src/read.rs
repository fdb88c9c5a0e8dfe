//! Reading runs, events, snapshots and sessions back as they were recorded.
//!
//! Never: a write, or an error about a field that an older iudex did not record.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rusqlite::{OptionalExtension, Row, params};
use serde_json::Value;

use crate::process;
use crate::record::{RecordedEvent, RunRow};
use crate::store::Ledger;

/// The columns of [`row`], in its order.
const COLUMNS: &str =
    "run, started, ended, directory, goal, outcome, exit_code, model, passes, note, session, pid, pid_started,
     EXISTS (SELECT 1 FROM rulings WHERE rulings.run = runs.run AND word = 'accepted' AND pass IS NOT NULL)";

/// An error lists at most so many runs.
const MOST_LISTED: u32 = 10;

/// The base and the last pinned snapshot, as JSON text.
type SnapshotTexts = (Option<String>, Option<String>);

impl Ledger {
    pub(crate) fn read_runs(&self, directory: Option<&Path>, most: u32) -> rusqlite::Result<Vec<RunRow>> {
        let directory = directory.map(|directory| directory.as_os_str().as_bytes());
        self.rows(
            &format!(
                "SELECT {COLUMNS} FROM runs WHERE ?1 IS NULL OR directory = ?1
                 ORDER BY started DESC, rowid DESC LIMIT ?2"
            ),
            params![directory, most],
        )
    }

    pub(crate) fn read_run(&self, run: &str) -> rusqlite::Result<Option<RunRow>> {
        Ok(self.rows(&format!("SELECT {COLUMNS} FROM runs WHERE run = ?"), params![run])?.pop())
    }

    pub(crate) fn read_runs_beginning(&self, prefix: &str) -> rusqlite::Result<Vec<RunRow>> {
        self.rows(
            &format!(
                "SELECT {COLUMNS} FROM runs WHERE ?1 <> '' AND substr(run, 1, length(?1)) = ?1
                 ORDER BY started DESC, rowid DESC LIMIT ?2"
            ),
            params![prefix, MOST_LISTED],
        )
    }

    pub(crate) fn read_snapshots(&self, run: &str) -> rusqlite::Result<SnapshotTexts> {
        self.connection
            .query_row("SELECT base, last FROM runs WHERE run = ?", [run], |row| Ok((row.get(0)?, row.get(1)?)))
    }

    pub(crate) fn read_events(&self, run: &str) -> rusqlite::Result<Vec<RecordedEvent>> {
        let mut statement = self.connection.prepare("SELECT seq, time, json FROM events WHERE run = ? ORDER BY seq")?;
        let events = statement.query_map([run], |row| {
            Ok(RecordedEvent {
                seq: row.get::<_, i64>(0)?.unsigned_abs(),
                time: row.get(1)?,
                event: parse(&row.get::<_, String>(2)?),
            })
        })?;
        events.collect()
    }

    pub(crate) fn read_session(&self, directory: &Path) -> rusqlite::Result<Option<(String, String)>> {
        self.connection
            .query_row(
                "SELECT session, state FROM sessions WHERE directory = ? ORDER BY updated DESC, rowid DESC LIMIT 1",
                [directory.as_os_str().as_bytes()],
                |row| Ok((row.get(0)?, row.get(1)?)),
            )
            .optional()
    }

    fn rows(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<Vec<RunRow>> {
        self.connection.prepare(sql)?.query_map(values, row)?.collect()
    }
}

/// JSON as it was stored; text that is none is given back as a string, so that nothing is lost.
pub(crate) fn parse(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| Value::String(text.to_owned()))
}

fn row(row: &Row<'_>) -> rusqlite::Result<RunRow> {
    let ended: Option<String> = row.get(2)?;
    let note: Option<String> = row.get(9)?;
    let accepted: bool = row.get(13)?;
    let outcome = match row.get::<_, Option<String>>(5)? {
        // Its acceptance is not in the record: lost, or never given.
        Some(word) if word.starts_with("done") && !accepted => "done (unvalidated)".to_owned(),
        Some(word) => word,
        None if process::is_alive(row.get(11)?, row.get(12)?) => "running".to_owned(),
        None => "killed".to_owned(),
    };
    let outcome = match &note {
        Some(note) if outcome.starts_with("done") => with_note(&outcome, note),
        _ => outcome,
    };
    Ok(RunRow {
        run: row.get(0)?,
        started: row.get(1)?,
        ended,
        directory: OsStr::from_bytes(&row.get::<_, Vec<u8>>(3)?).to_string_lossy().into_owned(),
        goal: row.get(4)?,
        outcome,
        exit_code: row.get(6)?,
        model: row.get(7)?,
        passes: row.get(8)?,
        note,
        session: row.get(10)?,
    })
}

/// `done (checked in place only)` and a note become `done (checked in place only; the note)`.
fn with_note(outcome: &str, note: &str) -> String {
    match outcome.strip_suffix(')') {
        Some(open) => format!("{open}; {note})"),
        None => format!("{outcome} ({note})"),
    }
}
