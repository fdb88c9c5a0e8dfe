//! Answers by the name of the quirk that they show, and what must come of each.

mod answers;
mod offers;
mod properties;

use serde_json::{Value, json};

use super::*;
use crate::chat::AssistantCall;
use iudex_core::Usage;

/// Tools of the shape that an agent offers.
fn tools() -> Vec<ToolSpec> {
    let text = json!({"type": "string"});
    let edits = json!({"type": "array", "items": {
        "type": "object", "properties": {"old": text, "new": text}, "required": ["old", "new"]
    }});
    vec![
        ToolSpec {
            name: "read",
            description: "show a file",
            parameters: json!({"type": "object", "required": ["path"], "properties": {
                "path": text, "from": {"type": "integer", "description": "first line"}
            }}),
        },
        ToolSpec {
            name: "write",
            description: "create or replace a whole file",
            parameters: json!({"type": "object", "required": ["path", "content"], "properties": {
                "path": text, "content": text
            }}),
        },
        ToolSpec {
            name: "edit",
            description: "replace text in a file",
            parameters: json!({
                "type": "object",
                "required": ["path"],
                "properties": {"path": text, "old": text, "new": text, "edits": edits},
                "anyOf": [{"required": ["old", "new"]}, {"required": ["edits"]}],
            }),
        },
        ToolSpec {
            name: "bash",
            description: "run a command",
            parameters: json!({"type": "object", "required": ["command"], "properties": {"command": text}}),
        },
        ToolSpec {
            name: "search",
            description: "find text or names",
            parameters: json!({"type": "object", "required": ["pattern"], "properties": {
                "pattern": text, "in": {"type": "string", "enum": ["content", "names"]}
            }}),
        },
    ]
}

fn completion(text: &str) -> Completion {
    Completion {
        text: text.to_owned(),
        reasoning: String::new(),
        calls: Vec::new(),
        finish: Finish::Stop,
        usage: Usage::default(),
        retries: 0,
    }
}

fn native(calls: &[(&str, &str, &str)]) -> Completion {
    let call = |(id, name, arguments): &(&str, &str, &str)| AssistantCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    };
    Completion { calls: calls.iter().map(call).collect(), ..completion("") }
}

/// What must come of an answer.
enum Wanted {
    /// These calls, each a tool and its arguments.
    Calls(Vec<(&'static str, Value)>),
    /// Text without a call.
    Plain,
    Cut,
    Broken,
    Ambiguous,
    UnknownTool,
    BadArguments,
}

#[track_caller]
fn expect(quirk: &str, turn: &Turn, wanted: &Wanted) {
    let calls: Vec<(&str, Value)> =
        turn.calls.iter().map(|call| (call.name.as_str(), Value::Object(call.arguments.clone()))).collect();
    let fits = match wanted {
        Wanted::Calls(expected) => {
            turn.trouble.is_none()
                && calls.len() == expected.len()
                && calls.iter().zip(expected).all(|(got, want)| got.0 == want.0 && got.1 == want.1)
        }
        Wanted::Plain => turn.trouble.is_none() && calls.is_empty(),
        Wanted::Cut => turn.trouble == Some(Trouble::Cut),
        Wanted::Broken => matches!(turn.trouble, Some(Trouble::Broken(_))),
        Wanted::Ambiguous => turn.trouble == Some(Trouble::Ambiguous),
        Wanted::UnknownTool => matches!(turn.trouble, Some(Trouble::UnknownTool { .. })),
        Wanted::BadArguments => matches!(turn.trouble, Some(Trouble::BadArguments { .. })),
    };
    assert!(fits, "{quirk}: got {turn:#?}");
    assert!(turn.trouble.is_none() || turn.calls.is_empty(), "{quirk}: trouble and calls together");
}
