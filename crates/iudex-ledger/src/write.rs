//! Writing: each event once word for word, and once into the tables that are made from it, in one transaction.
//!
//! Never: an update of what an earlier event said, apart from the totals of the run.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use iudex_core::{CheckEvidence, CommandEnd, Event, NotStarted, Outcome, Ruling, TreeId};
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Connection, Transaction, TransactionBehavior, params};
use serde::Serialize;
use serde_json::Value;

use crate::error::LedgerError;
use crate::process;
use crate::store::{Ledger, NewRun, Retention};

/// The time as it is stored: RFC 3339, UTC, always three digits of a second, so that it sorts as text.
pub(crate) fn time_text(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.3fZ").to_string()
}

/// SQLite counts to 2^63 - 1.
fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The JSON text of a part of an event.
fn json(value: &impl Serialize) -> Result<Value, rusqlite::Error> {
    serde_json::to_value(value).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))
}

/// The bare word of a value that serialises as a string (`continue`, `with_files`).
fn word(value: &impl Serialize) -> Result<String, rusqlite::Error> {
    Ok(json(value)?.as_str().unwrap_or_default().to_owned())
}

impl Ledger {
    /// The first write makes the WAL file, and SQLite waits for its header to reach the disk: 5 to 10 ms of the start of
    /// every run, for a guarantee that NORMAL does not give to any later write. A checkpoint syncs the whole WAL file
    /// before it touches the database, so none may happen while syncing is off.
    pub(crate) fn write_begin(&self, run: &NewRun) -> rusqlite::Result<()> {
        self.connection.execute_batch("PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = OFF")?;
        let begun = self.insert_run(run);
        self.connection.execute_batch("PRAGMA synchronous = NORMAL; PRAGMA wal_autocheckpoint = 1000")?;
        begun
    }

    fn insert_run(&self, run: &NewRun) -> rusqlite::Result<()> {
        let mask = self.mask.borrow();
        self.connection.execute(
            "INSERT INTO runs (run, directory, goal, model, session, pid, pid_started, started, note)
             VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            params![
                run.run,
                run.directory.as_os_str().as_bytes(),
                mask.text(run.goal.trim().lines().next().unwrap_or_default()),
                mask.text(&run.model),
                run.session,
                run.pid,
                process::started(run.pid),
                time_text(Timestamp::now()),
                run.note.as_deref().map(|note| mask.text(note)),
            ],
        )?;
        Ok(())
    }

    pub(crate) fn write_event(&self, run: &str, event: &Event) -> Result<(u64, String), LedgerError> {
        let failed = |error: rusqlite::Error| {
            if is_unknown_run(&error) {
                return self.unknown_run(run);
            }
            self.failed(&format!("recording an event of run {run}"), &error)
        };
        let mut stored = json(event).map_err(failed)?;
        self.mask.borrow().json(&mut stored);

        let transaction =
            Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate).map_err(failed)?;
        let time = time_text(Timestamp::now());
        let seq = insert_event(&transaction, run, &time, &stored).map_err(failed)?;
        let row = EventRow { connection: &transaction, run, seq, time: &time, stored: &stored };
        row.derive(event).map_err(failed)?;
        transaction.commit().map_err(failed)?;
        Ok((u64::try_from(seq).unwrap_or_default(), time))
    }

    pub(crate) fn write_not_started(&self, run: &str, why: &NotStarted) -> rusqlite::Result<()> {
        self.connection.execute(
            "UPDATE runs SET ended = ?2, outcome = 'not started', exit_code = 2, note = ?3 WHERE run = ?1",
            params![run, time_text(Timestamp::now()), self.mask.borrow().text(&why.message)],
        )?;
        Ok(())
    }

    /// True when the run is there.
    pub(crate) fn write_amendment(&self, run: &str, outcome: &Outcome) -> rusqlite::Result<bool> {
        let why = outcome.why().map(|why| self.mask.borrow().text(&why));
        let rows = self.connection.execute(
            "UPDATE runs SET outcome = ?2, exit_code = ?3, ended = coalesce(ended, ?4),
             note = CASE WHEN ?5 IS NULL THEN note ELSE coalesce(note || '; ', '') || ?5 END WHERE run = ?1",
            params![run, outcome.word(), outcome.exit_code(), time_text(Timestamp::now()), why],
        )?;
        Ok(rows > 0)
    }

    pub(crate) fn write_session(&self, session: &str, directory: &Path, state: &Value) -> rusqlite::Result<()> {
        let mut state = state.clone();
        self.mask.borrow().json(&mut state);
        self.connection.execute(
            "INSERT INTO sessions (session, directory, updated, state) VALUES (?, ?, ?, ?)
             ON CONFLICT (session) DO UPDATE SET directory = excluded.directory, updated = excluded.updated,
             state = excluded.state",
            params![session, directory.as_os_str().as_bytes(), time_text(Timestamp::now()), state.to_string()],
        )?;
        Ok(())
    }

    pub(crate) fn write_expiry(&self, retention: Retention) -> rusqlite::Result<Vec<String>> {
        let age = SignedDuration::from_hours(24 * i64::from(retention.days));
        let oldest = time_text(Timestamp::now().checked_sub(age).unwrap_or(Timestamp::MIN));
        let transaction = Transaction::new_unchecked(&self.connection, TransactionBehavior::Immediate)?;
        let mut dropped = Vec::new();
        {
            let mut statement = transaction.prepare(
                "SELECT run, pid, pid_started, ended IS NULL FROM runs WHERE started < ?1 AND rowid NOT IN
                 (SELECT rowid FROM runs ORDER BY started DESC, rowid DESC LIMIT ?2) ORDER BY started, rowid",
            )?;
            let mut rows = statement.query(params![oldest, retention.newest])?;
            while let Some(row) = rows.next()? {
                let goes_on = row.get(3)? && process::is_alive(row.get(1)?, row.get(2)?);
                if !goes_on {
                    dropped.push(row.get::<_, String>(0)?);
                }
            }
        }
        for run in &dropped {
            transaction.execute("DELETE FROM runs WHERE run = ?", [run])?;
        }
        transaction.execute(
            "DELETE FROM sessions WHERE updated < ?1 AND rowid NOT IN
             (SELECT rowid FROM sessions ORDER BY updated DESC, rowid DESC LIMIT ?2)",
            params![oldest, retention.newest],
        )?;
        transaction.commit()?;
        if !dropped.is_empty() {
            // Gives the space back to the disk. It returns a row a page, so it cannot be a plain statement.
            let mut vacuum = self.connection.prepare("PRAGMA incremental_vacuum")?;
            let mut rows = vacuum.query([])?;
            while rows.next()?.is_some() {}
        }
        Ok(dropped)
    }
}

/// True for a broken reference: the event's run was never begun.
fn is_unknown_run(error: &rusqlite::Error) -> bool {
    error.sqlite_error().is_some_and(|error| error.extended_code == rusqlite::ffi::SQLITE_CONSTRAINT_FOREIGNKEY)
}

fn insert_event(connection: &Connection, run: &str, time: &str, stored: &Value) -> rusqlite::Result<i64> {
    connection.query_row(
        "INSERT INTO events (run, seq, time, json)
         SELECT ?1, coalesce(max(seq), 0) + 1, ?2, ?3 FROM events WHERE run = ?1 RETURNING seq",
        params![run, time, stored.to_string()],
        |row| row.get(0),
    )
}

/// One event on its way into the tables.
struct EventRow<'a> {
    connection: &'a Connection,
    run: &'a str,
    seq: i64,
    time: &'a str,
    /// The event's JSON, masked.
    stored: &'a Value,
}

impl EventRow<'_> {
    fn derive(&self, event: &Event) -> rusqlite::Result<()> {
        match event {
            Event::BaseTaken { .. } => {
                self.execute("UPDATE runs SET base = ? WHERE run = ?", params![self.text("base"), self.run])
            }
            Event::GateRuled { gate, pass, ruling, millis } => {
                let (ruling_word, evidence) = match ruling {
                    Ruling::Accepted(accepted) => ("accepted", Some(accepted.evidence())),
                    Ruling::Rework(rework) => ("rework", rework.evidence.as_ref()),
                    Ruling::Void(void) => ("void", void.evidence.as_ref()),
                };
                self.execute(
                    "INSERT INTO rulings (run, seq, gate, pass, word, json, millis) VALUES (?, ?, ?, ?, ?, ?, ?)",
                    params![
                        self.run,
                        self.seq,
                        word(gate)?,
                        pass.map(|pass| pass.0),
                        ruling_word,
                        self.text("ruling"),
                        int(*millis)
                    ],
                )?;
                evidence.map_or(Ok(()), |evidence| self.commands(evidence))
            }
            Event::PassStarted { pass, by, strategy } => {
                self.execute(
                    "INSERT INTO passes (run, pass, chosen, strategy) VALUES (?, ?, ?, ?)",
                    params![self.run, pass.0, by.as_ref().map(word).transpose()?, word(strategy)?],
                )?;
                self.execute("UPDATE runs SET passes = ? WHERE run = ?", params![pass.0, self.run])
            }
            Event::PassEnded { pass, report } => self.execute(
                "UPDATE passes SET ended = ?, steps = ?, prompt_tokens = ?, output_tokens = ?
                 WHERE run = ? AND pass = ?",
                params![
                    self.stored["report"]["end"].to_string(),
                    report.steps,
                    int(report.usage.prompt.0),
                    int(report.usage.output.0),
                    self.run,
                    pass.0
                ],
            ),
            Event::ModelCallFinished { step, usage, millis, finish, retries } => self.execute(
                "INSERT INTO calls (run, seq, pass, step, prompt_tokens, output_tokens, cached_tokens, estimated,
                 millis, finish, retries) VALUES (?1, ?2, nullif((SELECT passes FROM runs WHERE run = ?1), 0),
                 ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)",
                params![
                    self.run,
                    self.seq,
                    step,
                    int(usage.prompt.0),
                    int(usage.output.0),
                    int(usage.cached.0),
                    usage.estimated_calls > 0,
                    int(*millis),
                    finish,
                    retries
                ],
            ),
            Event::Intervention { kind, .. } => self.execute(
                "INSERT INTO interventions (run, seq, pass, kind, text)
                 VALUES (?1, ?2, nullif((SELECT passes FROM runs WHERE run = ?1), 0), ?3, ?4)",
                params![self.run, self.seq, kind, self.stored["text"].as_str()],
            ),
            Event::Pinned { proposal, .. } => {
                self.execute(
                    "INSERT INTO proposals (run, pass, commit_id, raw_tree, git_tree, base_raw_tree, stat)
                     VALUES (?, ?, ?, ?, ?, ?, ?)",
                    params![
                        self.run,
                        proposal.pass.0,
                        proposal.snapshot.commit.as_str(),
                        proposal.snapshot.raw.as_str(),
                        proposal.snapshot.git.as_ref().map(TreeId::as_str),
                        proposal.base.raw.as_str(),
                        self.text("stat")
                    ],
                )?;
                self.execute(
                    "UPDATE runs SET last = ?, diff = ? WHERE run = ?",
                    params![self.stored["proposal"]["snapshot"].to_string(), self.known("stat"), self.run],
                )
            }
            Event::DirectiveSent { chosen, retries, rounds, .. } => self.execute(
                "INSERT INTO directives (run, seq, pass, chosen, retries, rounds)
                 VALUES (?1, ?2, nullif((SELECT passes FROM runs WHERE run = ?1), 0), ?3, ?4, ?5)",
                params![self.run, self.seq, word(chosen)?, retries, rounds],
            ),
            Event::RunEnded { outcome, spent, .. } => self.execute(
                "UPDATE runs SET ended = ?, outcome = ?, exit_code = ?, prompt_tokens = ?, output_tokens = ?,
                 calls = ?, cost_micros = ?, diff = coalesce(?, diff) WHERE run = ?",
                params![
                    self.time,
                    outcome.word(),
                    outcome.exit_code(),
                    int(spent.usage.prompt.0),
                    int(spent.usage.output.0),
                    spent.usage.calls,
                    spent.cost.map(|cost| int(cost.micros)),
                    self.known("stat"),
                    self.run
                ],
            ),
            Event::RunStarted { .. }
            | Event::GateStarted { .. }
            | Event::ModelCallStarted { .. }
            | Event::Message { .. }
            | Event::ToolStarted { .. }
            | Event::ToolFinished { .. }
            | Event::RulingStands { .. }
            | Event::Notice { .. } => Ok(()),
        }
    }

    /// The commands of a ruling. Their strings come from the masked JSON.
    fn commands(&self, evidence: &CheckEvidence) -> rusqlite::Result<()> {
        let ruling = &self.stored["ruling"];
        let stored = ruling.get("commands").or_else(|| ruling["evidence"].get("commands"));
        for (index, command) in evidence.commands.iter().enumerate() {
            let stored = stored.map_or(&Value::Null, |commands| &commands[index]);
            let (end, status) = match command.end {
                CommandEnd::Exited(status) => ("exited", Some(status)),
                CommandEnd::Signalled(signal) => ("signalled", Some(signal)),
                CommandEnd::TimedOut => ("timed_out", None),
            };
            self.execute(
                "INSERT INTO commands (run, seq, number, command, place, end, status, millis, output_file,
                 output_sha256, output_bytes, passed, failed, skipped, baseline_green)
                 VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                params![
                    self.run,
                    self.seq,
                    int(index as u64 + 1),
                    stored["command"].as_str().unwrap_or_default(),
                    word(&evidence.place)?,
                    end,
                    status,
                    i64::try_from(command.duration.as_millis()).unwrap_or(i64::MAX),
                    stored["output_file"].as_str(),
                    command.output_sha256,
                    int(command.output_bytes),
                    command.tests.map(|tests| int(tests.passed)),
                    command.tests.map(|tests| int(tests.failed)),
                    command.tests.map(|tests| int(tests.skipped)),
                    evidence.baseline_green
                ],
            )?;
        }
        Ok(())
    }

    /// One field of the event as JSON text, masked.
    fn text(&self, field: &str) -> String {
        self.stored[field].to_string()
    }

    /// The same; `None` for a field that is null, since nothing is known then.
    fn known(&self, field: &str) -> Option<String> {
        (!self.stored[field].is_null()).then(|| self.text(field))
    }

    fn execute(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> rusqlite::Result<()> {
        self.connection.execute(sql, values).map(drop)
    }
}
