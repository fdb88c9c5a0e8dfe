//! The three action formats: how tools are offered to a model and how its calls are read back.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::Completion;

/// How a model calls tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ActionFormat {
    /// One schema-constrained JSON action a turn, enforced by the server.
    Json,
    /// Native tool calls.
    Native,
    /// Calls as text, read leniently.
    Text,
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// The name.
    pub name: &'static str,
    /// What it does, in a line.
    pub description: &'static str,
    /// JSON Schema of its arguments (`type: object`).
    pub parameters: Value,
}

/// A call that was recognised and whose arguments are valid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The native id, when there is one.
    pub id: Option<String>,
    /// The tool; always a known one.
    pub name: String,
    /// Arguments that fit its schema.
    pub arguments: Map<String, Value>,
}

/// What an answer says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    /// Text besides the calls.
    pub text: String,
    /// The calls, in order. Empty whenever `trouble` is set.
    pub calls: Vec<ToolCall>,
    /// Why nothing may be executed although the model seems to have meant a call.
    pub trouble: Option<Trouble>,
}

/// A call that cannot be executed. `Display` is what the model is told.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Trouble {
    /// The answer was cut or ran away.
    #[error(
        "Your answer was cut off, so nothing was executed. Answer shorter: one call, and write long files in parts."
    )]
    Cut,
    /// Something that looks like a call is not valid JSON, and mending it would invent content.
    #[error("The call is not valid JSON ({0}), so nothing was executed. Send it again.")]
    Broken(String),
    /// Several fences or sample JSON in prose: which one is meant is unknown.
    #[error("It is not clear which call is meant, so nothing was executed. Send exactly one call and nothing else.")]
    Ambiguous,
    /// The tool is not known.
    #[error("There is no tool {name:?}. The tools are: {known}.")]
    UnknownTool {
        /// What was called.
        name: String,
        /// The names that there are.
        known: String,
    },
    /// The arguments do not fit.
    #[error("{tool}: {problem}. Nothing was executed. Send the call again.")]
    BadArguments {
        /// The tool.
        tool: String,
        /// What does not fit.
        problem: String,
    },
}

/// The lines of the system prompt that explain tools and format (`done` among them in the json format).
pub fn instructions(format: ActionFormat, tools: &[ToolSpec]) -> String {
    let _ = (format, tools);
    todo!()
}

/// The schema of one action, for `response_format` (json format).
pub fn response_schema(tools: &[ToolSpec]) -> Value {
    let _ = tools;
    todo!()
}

/// Reads an answer. Nothing of a cut answer is a call.
pub fn read_turn(format: ActionFormat, completion: &Completion, tools: &[ToolSpec]) -> Turn {
    let _ = (format, completion, tools);
    todo!()
}
