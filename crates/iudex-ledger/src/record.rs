//! What is read back.

use serde::Serialize;
use serde_json::Value;

/// One run as `iudex log` lists it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunRow {
    /// The run.
    pub run: String,
    /// RFC 3339, UTC.
    pub started: String,
    /// RFC 3339, UTC; `None` while it runs or when it was killed.
    pub ended: Option<String>,
    /// The work directory.
    pub directory: String,
    /// The first line of the goal.
    pub goal: String,
    /// The outcome's word with its validation (`done (checked in place only)`), or `running`, `killed`, `not started`.
    pub outcome: String,
    /// The exit code, when it ended.
    pub exit_code: Option<i64>,
    /// The model.
    pub model: String,
    /// Passes.
    pub passes: u32,
    /// What the outcome must say beside its word, as it was given at the start; for `not started` and
    /// for an outcome that was amended, why.
    pub note: Option<String>,
    /// The session that it belongs to.
    pub session: Option<String>,
}

/// What `iudex stats` shows. Everything is as recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunStats {
    /// The run.
    #[serde(flatten)]
    pub row: RunRow,
    /// The validation in words; never a bare `done` where no check ran.
    pub validation: String,
    /// One entry a ruling, in order, as recorded (gate, pass, ruling with evidence, milliseconds).
    pub rulings: Vec<Value>,
    /// One entry a gate: times asked, milliseconds, tokens and cost (a check costs time only).
    pub gates: Vec<Value>,
    /// Interventions by kind.
    pub interventions: Vec<Value>,
    /// Prompt tokens.
    pub prompt_tokens: u64,
    /// Output tokens.
    pub output_tokens: u64,
    /// Model calls.
    pub calls: u32,
    /// Millionths of a dollar; `None` when unknown.
    pub cost_micros: Option<u64>,
    /// Lines and files that differ from the base; null when that is not known.
    pub diff: Value,
}

/// One event as it was stored.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecordedEvent {
    /// From 1, without gaps.
    pub seq: u64,
    /// RFC 3339, UTC, with milliseconds.
    pub time: String,
    /// The event (`event` names its kind).
    #[serde(flatten)]
    pub event: Value,
}
