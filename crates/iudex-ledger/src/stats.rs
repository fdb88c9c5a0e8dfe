//! What is known about one run, added up from the tables.
//!
//! Never: a verdict of its own. Where nothing was checked it says so.

use std::fmt::Write;

use iudex_core::{CommandEnd, GateKind, TestCounts};
use rusqlite::{OptionalExtension, Row, params};
use serde_json::{Value, json};

use crate::read::parse;
use crate::record::{RunRow, RunStats};
use crate::store::Ledger;

/// The totals of a run.
struct Totals {
    prompt_tokens: i64,
    output_tokens: i64,
    calls: i64,
    cost_micros: Option<i64>,
    diff: Option<String>,
}

impl Ledger {
    pub(crate) fn read_stats(&self, row: RunRow) -> rusqlite::Result<RunStats> {
        let totals = self.totals(&row.run)?;
        Ok(RunStats {
            validation: self.validation(&row)?,
            rulings: self.rulings(&row.run)?,
            gates: self.gates(&row.run)?,
            interventions: self.interventions(&row.run)?,
            prompt_tokens: totals.prompt_tokens.unsigned_abs(),
            output_tokens: totals.output_tokens.unsigned_abs(),
            calls: u32::try_from(totals.calls).unwrap_or(u32::MAX),
            cost_micros: totals.cost_micros.map(i64::unsigned_abs),
            diff: totals.diff.map_or(Value::Null, |diff| parse(&diff)),
            row,
        })
    }

    /// The totals of the end, or for a run without one the sum of its calls. Its cost is unknown then.
    fn totals(&self, run: &str) -> rusqlite::Result<Totals> {
        self.connection.query_row(
            "SELECT coalesce(prompt_tokens, (SELECT sum(prompt_tokens) FROM calls WHERE calls.run = runs.run), 0),
                    coalesce(output_tokens, (SELECT sum(output_tokens) FROM calls WHERE calls.run = runs.run), 0),
                    coalesce(calls, (SELECT count(*) FROM calls WHERE calls.run = runs.run)),
                    cost_micros, diff
             FROM runs WHERE run = ?",
            [run],
            |row| {
                Ok(Totals {
                    prompt_tokens: row.get(0)?,
                    output_tokens: row.get(1)?,
                    calls: row.get(2)?,
                    cost_micros: row.get(3)?,
                    diff: row.get(4)?,
                })
            },
        )
    }

    fn rulings(&self, run: &str) -> rusqlite::Result<Vec<Value>> {
        let mut statement =
            self.connection.prepare("SELECT gate, pass, json, millis FROM rulings WHERE run = ? ORDER BY seq")?;
        let rulings = statement.query_map([run], |row| {
            Ok(json!({
                "gate": row.get::<_, String>(0)?,
                "pass": row.get::<_, Option<i64>>(1)?,
                "ruling": parse(&row.get::<_, String>(2)?),
                "millis": row.get::<_, i64>(3)?,
            }))
        })?;
        rulings.collect()
    }

    /// One entry a gate, in the order in which the gates are asked. A check and a ratchet use no tokens.
    fn gates(&self, run: &str) -> rusqlite::Result<Vec<Value>> {
        let mut statement = self.connection.prepare(
            "SELECT gate, count(pass), coalesce(sum(millis) FILTER (WHERE pass IS NOT NULL), 0),
                    count(*) - count(pass), coalesce(sum(millis) FILTER (WHERE pass IS NULL), 0)
             FROM rulings WHERE run = ? GROUP BY gate ORDER BY min(seq)",
        )?;
        let gates = statement.query_map([run], |row| {
            let gate: String = row.get(0)?;
            let kind = serde_json::from_value::<GateKind>(Value::String(gate.clone()));
            let free = kind.is_ok_and(|kind| !kind.is_paid()).then_some(0);
            Ok(json!({
                "gate": gate,
                "asked": row.get::<_, i64>(1)?,
                "millis": row.get::<_, i64>(2)?,
                "baselines": row.get::<_, i64>(3)?,
                "baseline_millis": row.get::<_, i64>(4)?,
                "tokens": free,
                "cost_micros": free,
            }))
        })?;
        gates.collect()
    }

    fn interventions(&self, run: &str) -> rusqlite::Result<Vec<Value>> {
        let mut statement = self.connection.prepare(
            "SELECT kind, count(*) FROM interventions WHERE run = ? GROUP BY kind ORDER BY count(*) DESC, kind",
        )?;
        let kinds = statement
            .query_map([run], |row| Ok(json!({ "kind": row.get::<_, String>(0)?, "count": row.get::<_, i64>(1)? })))?;
        kinds.collect()
    }

    /// The validation result in words.
    fn validation(&self, row: &RunRow) -> rusqlite::Result<String> {
        let mut text = if row.outcome == "not started" {
            let why = row.note.as_deref().unwrap_or("not recorded");
            return Ok(format!("nothing was started: {why}"));
        } else if row.outcome.starts_with("done") && !row.outcome.starts_with("done (unvalidated") {
            self.acceptances(&row.run)?
        } else if row.outcome.starts_with("done") {
            "no check ran: it is the agent's claim, no more".to_owned()
        } else {
            let last = self.last_ruling(&row.run)?;
            last.unwrap_or_else(|| "no gate ruled about a proposal".to_owned())
        };
        match row.outcome.as_str() {
            "running" => text.insert_str(0, "no verdict yet; "),
            "killed" => text.insert_str(0, "no verdict, the run was killed; "),
            _ => {}
        }
        if let Some(note) = &row.note {
            let _ = write!(text, "; {note}");
        }
        Ok(text)
    }

    /// Every gate's acceptance of the last proposal that was asked about.
    fn acceptances(&self, run: &str) -> rusqlite::Result<String> {
        let mut statement = self.connection.prepare(
            "SELECT gate, word, json, pass FROM rulings WHERE run = ?1 AND word = 'accepted'
             AND pass = (SELECT max(pass) FROM rulings WHERE run = ?1) ORDER BY seq",
        )?;
        let accepted = statement.query_map([run], describe_row)?;
        Ok(accepted.collect::<rusqlite::Result<Vec<_>>>()?.join("; "))
    }

    /// The last ruling about the tree that was pinned last: it may be older than the pass, where the ruling stood.
    fn last_ruling(&self, run: &str) -> rusqlite::Result<Option<String>> {
        self.connection
            .query_row(
                "SELECT gate, word, json, pass FROM rulings LEFT JOIN proposals USING (run, pass)
                 WHERE run = ?1 AND (pass IS NOT NULL OR EXISTS (SELECT 1 FROM proposals WHERE run = ?1))
                 ORDER BY coalesce(raw_tree, (SELECT base_raw_tree FROM proposals WHERE run = ?1 LIMIT 1)) =
                     (SELECT raw_tree FROM proposals WHERE run = ?1 ORDER BY pass DESC LIMIT 1) DESC, seq DESC
                 LIMIT 1",
                params![run],
                describe_row,
            )
            .optional()
    }
}

/// A row of gate, word, JSON and pass in words. Without a pass it is the baseline, and says so.
fn describe_row(row: &Row<'_>) -> rusqlite::Result<String> {
    let gate: String = row.get(0)?;
    let word: String = row.get(1)?;
    let before = row.get::<_, Option<i64>>(3)?.is_none();
    let what = if before { format!("{gate} {word} before any work") } else { format!("{gate} {word}") };
    Ok(describe(&what, &parse(&row.get::<_, String>(2)?)))
}

/// One ruling in words: `check accepted: `cargo test` exited 0 (12 passed), in place; red before any work`.
fn describe(what: &str, ruling: &Value) -> String {
    let evidence = ruling.get("evidence").unwrap_or(ruling);
    let mut parts: Vec<String> = Vec::new();
    if let Some(reason) = ruling["reason"].as_str() {
        parts.push(reason.to_owned());
    }
    parts.extend(evidence["commands"].as_array().into_iter().flatten().map(describe_command));
    if parts.is_empty()
        && let Some(what) = ruling["findings"][0]["what"].as_str()
    {
        parts.push(what.lines().next().unwrap_or_default().to_owned());
    }
    let mut text = format!("{what}: {}", parts.join(", "));
    if let Some(place) = evidence["place"].as_str() {
        let _ = write!(text, ", {}", place.replace('-', " "));
    }
    text.push_str(match evidence["baseline_green"].as_bool() {
        Some(true) => "; green before any work, so it can only guard",
        Some(false) => "; red before any work",
        None => "",
    });
    text
}

fn describe_command(command: &Value) -> String {
    let name = command["command"].as_str().unwrap_or("?");
    let end = serde_json::from_value::<CommandEnd>(command["end"].clone());
    let end = end.map_or_else(|_| "ended in an unknown way".to_owned(), |end| end.to_string());
    match serde_json::from_value::<TestCounts>(command["tests"].clone()) {
        Ok(tests) => format!("`{name}` {end} ({} passed, {} failed)", tests.passed, tests.failed),
        Err(_) => format!("`{name}` {end}"),
    }
}
