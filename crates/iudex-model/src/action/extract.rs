//! Finds the calls in the text of an answer: tagged, in the only fence, or as the whole answer.
//!
//! Never: a call from an example. A fence counts only when it is the only one and nothing follows it; JSON in the middle
//! of prose counts never, and when it looks like a call the model is asked for one.

use serde_json::Value;

use super::meaning::{self, Meaning};
use super::repair::{self, Fault};
use super::tags;
use super::{ToolCall, ToolSpec, Trouble};

/// Sample JSON is looked for at so many opening braces at most.
const MOST_SAMPLES: usize = 200;

/// What the text of an answer holds.
#[derive(Debug)]
pub(super) enum Found {
    /// No call, and nothing that looks like one.
    Nothing,
    /// Calls, and the text before them.
    Calls {
        /// The prose.
        text: String,
        /// At least one call.
        calls: Vec<ToolCall>,
    },
    /// A call seems to be meant, and nothing may be executed.
    Trouble(Trouble),
}

impl Found {
    /// Judges what was written in one place: all calls, or none.
    pub(super) fn from_meanings(text: &str, meanings: Vec<Meaning>) -> Self {
        let mut calls = Vec::new();
        let (mut data, mut trouble) = (false, None);
        for meaning in meanings {
            match meaning {
                Meaning::Call(call) => calls.push(call),
                Meaning::Data => data = true,
                Meaning::Trouble(found) => trouble = trouble.or(Some(found)),
            }
        }
        match trouble {
            Some(trouble) => Self::Trouble(trouble),
            None if calls.is_empty() => Self::Nothing,
            None if data => Self::Trouble(Trouble::Ambiguous),
            None => Self::Calls { text: text.trim().to_owned(), calls },
        }
    }
}

/// Reads the text of an answer that is complete. `only_json`: the format allows nothing but a call.
pub(super) fn read_text(answer: &str, only_json: bool, tools: &[ToolSpec]) -> Found {
    let body = without_tokens(after_thoughts(answer));
    let body = body.strip_prefix("json\n").unwrap_or(body).trim();
    if body.starts_with(['{', '[']) && tags::find(body, 0) != Some(0) {
        return whole_answer(body, only_json, tools);
    }
    let (tag, fence) = (tags::find(body, 0), body.find("```"));
    if let Some(tag) = tag.filter(|tag| fence.is_none_or(|fence| *tag < fence)) {
        match tags::read(body, tag, tools) {
            Found::Nothing => {}
            found => return found,
        }
    }
    if let Some(fence) = fence {
        match in_fence(body, fence, tools) {
            Found::Nothing => {}
            found => return found,
        }
    }
    if looks_like_code(body, tools) {
        return Found::Trouble(Trouble::Broken("it is written as code; a call is a JSON object".to_owned()));
    }
    if has_sample(body, tools) { Found::Trouble(Trouble::Ambiguous) } else { Found::Nothing }
}

/// Text without reasoning that the wire did not split off.
fn after_thoughts(answer: &str) -> &str {
    match answer.rsplit_once("</think>") {
        Some((thoughts, rest)) if thoughts.trim_start().starts_with("<think>") => rest,
        _ => answer,
    }
}

/// Text without the end tokens of chat templates that servers let through.
fn without_tokens(text: &str) -> &str {
    const TOKENS: [&str; 9] = [
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end|>",
        "<|endoftext|>",
        "<|end_of_text|>",
        "<end_of_turn>",
        "<|return|>",
        "</s>",
    ];
    let mut rest = text.trim();
    while let Some(shorter) = TOKENS.iter().find_map(|token| rest.strip_suffix(token)) {
        rest = shorter.trim_end();
    }
    rest
}

/// A run of JSON values.
#[derive(Debug)]
pub(super) struct Run<'a> {
    /// The values, lists unfolded.
    pub values: Vec<Value>,
    /// What follows them, without surplus brackets and white space.
    pub rest: &'a str,
}

/// Reads JSON values one after the other, as far as they go. An error only when the first one is none.
pub(super) fn read_run(text: &str) -> Result<Run<'_>, Fault> {
    let mut values = Vec::new();
    let mut rest = text;
    let mut unclosed = false;
    loop {
        let read = match repair::parse_prefix(rest) {
            Ok(read) => read,
            Err(fault) if values.is_empty() => return Err(fault),
            Err(_) => break,
        };
        unclosed |= read.unclosed;
        unfold(read.value, &mut values);
        rest = after_value(&rest[read.end..]);
        if !rest.starts_with('{') {
            break;
        }
    }
    if unclosed && !tags::after_closing(rest.strip_prefix("```").unwrap_or(rest)).is_empty() {
        return Err(Fault(format!("a bracket is missing before {:?}", repair::excerpt(rest))));
    }
    Ok(Run { values, rest })
}

fn after_value(text: &str) -> &str {
    text.trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ']' | ',' | ';'))
}

/// A list of calls, also in the wrapping `{"tool_calls": […]}`, is several values.
fn unfold(value: Value, into: &mut Vec<Value>) {
    match value {
        Value::Array(items) if items.iter().any(Value::is_object) => into.extend(items),
        Value::Object(mut map) if map.len() == 1 => {
            let key =
                ["tool_calls", "calls", "actions"].into_iter().find(|key| map.get(*key).is_some_and(Value::is_array));
            match key.and_then(|key| map.remove(key)) {
                Some(Value::Array(items)) => into.extend(items),
                _ => into.push(Value::Object(map)),
            }
        }
        other => into.push(other),
    }
}

/// An answer that begins with JSON: it counts when it is nothing else.
fn whole_answer(body: &str, only_json: bool, tools: &[ToolSpec]) -> Found {
    let run = match read_run(body) {
        Ok(run) => run,
        Err(Fault(fault)) if only_json || names_a_tool(body, tools) => return Found::Trouble(Trouble::Broken(fault)),
        Err(_) if looks_like_code(body, tools) => {
            return Found::Trouble(Trouble::Broken("it is written as code; a call is a JSON object".to_owned()));
        }
        Err(_) => return Found::Nothing,
    };
    let meanings: Vec<Meaning> = run.values.iter().map(|value| meaning::of_value(value, only_json, tools)).collect();
    let rest = tags::after_closing(run.rest.trim_start_matches('`'));
    if rest.is_empty() {
        return Found::from_meanings("", meanings);
    }
    let is_call = |meaning: &Meaning| !matches!(meaning, Meaning::Data);
    if meanings.iter().any(is_call) || has_sample(rest, tools) {
        return Found::Trouble(Trouble::Ambiguous);
    }
    Found::Nothing
}

/// The first fence: it counts when it holds nothing but JSON and nothing follows it.
fn in_fence(body: &str, fence: usize, tools: &[ToolSpec]) -> Found {
    let before = &body[..fence];
    let inside = body[fence..].trim_start_matches('`');
    let inside = inside.trim_start_matches(|c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '+'));
    let inside = inside.trim_start();
    if tags::find(inside, 0) == Some(0) {
        let (tagged, after) = inside.split_once("```").unwrap_or((inside, ""));
        return match tags::read(tagged, 0, tools) {
            Found::Calls { .. } if !after.trim().is_empty() || has_sample(before, tools) => {
                Found::Trouble(Trouble::Ambiguous)
            }
            Found::Calls { calls, .. } => Found::Calls { text: before.trim().to_owned(), calls },
            other => other,
        };
    }
    if !inside.starts_with(['{', '[']) {
        return Found::Nothing;
    }
    let run = match read_run(inside) {
        Ok(run) => run,
        Err(Fault(fault)) if names_a_tool(inside, tools) => return Found::Trouble(Trouble::Broken(fault)),
        Err(_) => return Found::Nothing,
    };
    let found = Found::from_meanings(before, run.values.iter().map(|v| meaning::of_value(v, false, tools)).collect());
    let after = run.rest.strip_prefix("```").unwrap_or(run.rest);
    match found {
        Found::Nothing => Found::Nothing,
        _ if !tags::after_closing(after).is_empty() || has_sample(before, tools) => Found::Trouble(Trouble::Ambiguous),
        found => found,
    }
}

/// True when somewhere in the text stands JSON that would be a call by itself.
fn has_sample(text: &str, tools: &[ToolSpec]) -> bool {
    let mut from = 0;
    for _ in 0..MOST_SAMPLES {
        let Some(at) = text[from..].find('{').map(|at| from + at) else { return false };
        match repair::parse_prefix(&text[at..]) {
            Ok(repair::Prefix { value, end, .. }) => {
                let is_call = |trouble: &Trouble| !matches!(trouble, Trouble::UnknownTool { .. });
                match meaning::of_value(&value, false, tools) {
                    Meaning::Call(_) => return true,
                    Meaning::Trouble(trouble) if is_call(&trouble) => return true,
                    Meaning::Trouble(_) | Meaning::Data => from = at + end,
                }
            }
            Err(_) => from = at + 1,
        }
    }
    false
}

/// True when broken JSON begins by naming a known tool.
fn names_a_tool(text: &str, tools: &[ToolSpec]) -> bool {
    const LOOK_AT: usize = 160;
    let head: String = text.chars().take(LOOK_AT).collect();
    let words: Vec<&str> = head.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|w| !w.is_empty()).collect();
    words.windows(2).any(|pair| {
        matches!(pair[0], "tool" | "name" | "function" | "action") && meaning::known_name(pair[1], tools).is_some()
    })
}

/// True for `[read(path="a.py")]`, the way some models write calls.
fn looks_like_code(body: &str, tools: &[ToolSpec]) -> bool {
    let inner = body.trim_matches('`').trim().trim_start_matches('[').trim_end_matches(']').trim();
    inner.ends_with(')')
        && inner.split_once('(').is_some_and(|(name, _)| {
            name.chars().all(|c| c.is_alphanumeric() || c == '_') && meaning::known_name(name, tools).is_some()
        })
}
