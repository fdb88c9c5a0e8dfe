//! The three action formats: how tools are offered to a model and how its calls are read back.
//!
//! A call is recognised wherever a model puts it, and never invented: nothing of a cut answer, nothing of an example in
//! prose, nothing whose JSON can be read in two ways is a call. Never: what a tool does.

mod arguments;
mod extract;
mod meaning;
mod offer;
mod repair;
mod tags;
#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::chat::{Completion, Finish};

pub use offer::{instructions, response_schema};

/// The name of the action that says "the work is finished". It is no tool: [`read_turn`] hands it out as a
/// [`ToolCall`] with this name, in every format, with an optional `summary`; whoever runs the calls ends the pass on it.
pub const DONE: &str = "done";

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
    /// The tool; always a known one, or [`DONE`].
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
        "Your answer was cut off, so nothing was executed. Answer shorter, with one call. Write the first part of a \
         long file, then append each further part with bash: cat >> FILE <<'EOF'"
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

/// True when no JSON, fence or tag of a call is left open in a text, so that it can be a whole answer.
pub(crate) fn is_closed(text: &str) -> bool {
    const MOST_LOOKS: usize = 200;
    let count = |part: &str| text.matches(part).count();
    let tags = ["<tool_call>", "<function=", "<parameter="];
    let closing = ["</tool_call>", "</function>", "</parameter>"];
    if !count("```").is_multiple_of(2) || tags.iter().zip(closing).any(|(tag, end)| count(tag) > count(end)) {
        return false;
    }
    let mut from = 0;
    for _ in 0..MOST_LOOKS {
        let Some(at) = text[from..].find(['{', '[']).map(|at| from + at) else { return true };
        match repair::parse_prefix(&text[at..]) {
            Ok(repair::Prefix { unclosed: true, .. }) => return false,
            Ok(repair::Prefix { end, .. }) => from = at + end,
            Err(_) => from = at + 1,
        }
    }
    true
}

/// Reads an answer. Nothing of a cut answer is a call.
pub fn read_turn(format: ActionFormat, completion: &Completion, tools: &[ToolSpec]) -> Turn {
    if completion.finish != Finish::Stop {
        return Turn::troubled(completion.text.clone(), Trouble::Cut);
    }
    if !completion.calls.is_empty() {
        return read_native(completion, tools);
    }
    match extract::read_text(&completion.text, format == ActionFormat::Json, tools) {
        extract::Found::Nothing => Turn { text: completion.text.clone(), calls: Vec::new(), trouble: None },
        extract::Found::Calls { text, calls } => Turn { text, calls, trouble: None },
        extract::Found::Trouble(trouble) => Turn::troubled(completion.text.clone(), trouble),
    }
}

impl Turn {
    fn troubled(text: String, trouble: Trouble) -> Self {
        Self { text, calls: Vec::new(), trouble: Some(trouble) }
    }
}

/// Native calls: all of them or none, since a later one may rest on an earlier one.
fn read_native(completion: &Completion, tools: &[ToolSpec]) -> Turn {
    let mut calls: Vec<ToolCall> = Vec::new();
    for (index, native) in completion.calls.iter().enumerate() {
        // A server that sends a call again, id and all, means one call.
        if completion.calls[..index].contains(native) {
            continue;
        }
        match meaning::native_call(&native.name, &native.arguments, tools) {
            Ok((name, arguments)) => {
                let id = Some(native.id.clone()).filter(|id| !id.is_empty());
                calls.push(ToolCall { id, name, arguments });
            }
            Err(trouble) => return Turn::troubled(completion.text.clone(), trouble),
        }
    }
    Turn { text: completion.text.clone(), calls, trouble: None }
}
