//! How tools are offered: the lines of the system prompt, and the schema that a server enforces.
//!
//! Both are byte-stable for the same tools, and short: prompt tokens are what a small model costs.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::arguments::{alternatives, required_names};
use super::{ActionFormat, DONE, ToolSpec};

/// The first field of an action in the json format. A constrained answer begins with the choice of a tool; a small model
/// that first says what is wrong chooses better.
const THOUGHT: &str = "thought";

/// The most characters of a thought: a small model that goes on thinking goes round in circles.
const MOST_OF_A_THOUGHT: u32 = 200;

/// What `done` is for, as the model reads it.
const DONE_LINE: &str = "The task is finished.";

/// The lines of the system prompt that explain tools and format (`done` among them in the json format).
pub fn instructions(format: ActionFormat, tools: &[ToolSpec]) -> String {
    match format {
        ActionFormat::Json => json_lines(tools),
        ActionFormat::Text => text_lines(tools),
        ActionFormat::Native => "When the task is finished, reply without a tool call.".to_owned(),
    }
}

fn json_lines(tools: &[ToolSpec]) -> String {
    let mut text = format!(
        "Each reply is one JSON object. It begins with \"{THOUGHT}\", one short sentence about what is wrong or missing and what \
         to do about it, and then calls one tool:\n"
    );
    for spec in tools {
        let lead = format!("{{\"tool\":\"{}\"", spec.name);
        let ways: Vec<String> = ways(&spec.parameters).iter().map(|way| format!("{lead}{way}}}")).collect();
        let _ = writeln!(text, "{}{}  {}", ways.join(" or "), optional(&spec.parameters), spec.description);
    }
    if !tools.iter().any(|spec| spec.name == DONE) {
        let _ = writeln!(text, "{{\"tool\":\"{DONE}\",\"summary\":…}}  {DONE_LINE}");
    }
    text.truncate(text.trim_end().len());
    text
}

fn text_lines(tools: &[ToolSpec]) -> String {
    let mut text = String::from(
        "To use a tool, end your reply with one block like this and nothing after it:\n```json\n{\"name\":\"read\",\
         \"arguments\":{\"path\":\"a.txt\"}}\n```\nOne tool a reply; the result comes back. The tools and their \
         arguments:\n",
    );
    for spec in tools {
        let bare = |way: &String| format!("{{{}}}", way.strip_prefix(',').unwrap_or(way));
        let ways: Vec<String> = ways(&spec.parameters).iter().map(bare).collect();
        let _ =
            writeln!(text, "{} {}{}  {}", spec.name, ways.join(" or "), optional(&spec.parameters), spec.description);
    }
    text.push_str("When the task is finished, reply in plain words without a block.");
    text
}

/// The required arguments as `,"path":…`, once for each alternative.
fn ways(schema: &Value) -> Vec<String> {
    let required: Vec<&str> = required_names(schema).collect();
    let alternatives = alternatives(schema);
    let alternatives = if alternatives.is_empty() { vec![Vec::new()] } else { alternatives };
    let way = |more: Vec<&str>| {
        let wanted = |name: &str| required.contains(&name) || more.contains(&name);
        properties(schema).filter(|(name, _)| wanted(name)).fold(String::new(), |mut text, (name, property)| {
            let _ = write!(text, ",\"{name}\":{}", sample(property));
            text
        })
    };
    alternatives.into_iter().map(way).collect()
}

/// The optional arguments, as a remark.
fn optional(schema: &Value) -> String {
    let mut needed: Vec<&str> = required_names(schema).collect();
    needed.extend(alternatives(schema).into_iter().flatten());
    let parts: Vec<String> = properties(schema)
        .filter(|(name, _)| !needed.contains(&name.as_str()))
        .map(|(name, property)| format!("\"{name}\":{}", sample(property)))
        .collect();
    if parts.is_empty() { String::new() } else { format!(" (also {})", parts.join(", ")) }
}

fn properties(schema: &Value) -> impl Iterator<Item = (&String, &Value)> {
    schema.get("properties").and_then(Value::as_object).into_iter().flatten()
}

/// A placeholder for a value of this schema; never a value that a model could copy.
fn sample(schema: &Value) -> String {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        return allowed.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("boolean") => "true|false".to_owned(),
        Some("array") => format!("[{}]", schema.get("items").map_or_else(String::new, sample)),
        Some("object") => {
            let way = ways(schema).swap_remove(0);
            format!("{{{}}}", way.strip_prefix(',').unwrap_or(&way))
        }
        _ => "…".to_owned(),
    }
}

/// The schema of one action, for `response_format` (json format): `anyOf` over the tools, a thought first and then `tool`, in the simple
/// features that the grammar compilers of local servers share (`anyOf`, `const`, `enum`, `required`,
/// `additionalProperties: false`, `maxLength`). llama.cpp keeps the order of the properties.
///
/// A tool whose parameters have alternatives (`anyOf` over `required`) becomes one action for each of them, so that no
/// answer fits the schema and not the tool.
pub fn response_schema(tools: &[ToolSpec]) -> Value {
    let mut actions: Vec<Value> = tools.iter().flat_map(|spec| actions_of(spec.name, &spec.parameters)).collect();
    if !tools.iter().any(|spec| spec.name == DONE) {
        let summary = json!({"properties": {"summary": {"type": "string"}}, "required": ["summary"]});
        actions.extend(actions_of(DONE, &summary));
    }
    json!({ "anyOf": actions })
}

fn actions_of(name: &str, parameters: &Value) -> Vec<Value> {
    let alternatives = alternatives(parameters);
    if alternatives.is_empty() {
        return vec![action(name, parameters, &[], &[])];
    }
    let all: Vec<&str> = alternatives.iter().flatten().copied().collect();
    let one = |more: &Vec<&str>| {
        let others: Vec<&str> = all.iter().copied().filter(|name| !more.contains(name)).collect();
        action(name, parameters, more, &others)
    };
    alternatives.iter().map(one).collect()
}

/// One action: `more` is required too, `without` is not in it.
fn action(name: &str, parameters: &Value, more: &[&str], without: &[&str]) -> Value {
    let mut kept = Map::new();
    kept.insert(THOUGHT.to_owned(), json!({"type": "string", "maxLength": MOST_OF_A_THOUGHT}));
    kept.insert("tool".to_owned(), json!({"type": "string", "const": name}));
    let wanted = properties(parameters).filter(|(name, _)| !without.contains(&name.as_str()));
    kept.extend(wanted.map(|(name, schema)| (name.clone(), plain(schema))));
    let mut required = vec![Value::from(THOUGHT), Value::from("tool")];
    required.extend(required_names(parameters).chain(more.iter().copied()).map(Value::from));
    json!({"type": "object", "properties": kept, "required": required, "additionalProperties": false})
}

/// A schema without what only people read, and closed where it is an object.
fn plain(schema: &Value) -> Value {
    let Some(fields) = schema.as_object() else { return schema.clone() };
    let mut out = Map::new();
    for (key, value) in fields {
        let value = match key.as_str() {
            "description" | "title" | "default" | "examples" => continue,
            "items" => plain(value),
            "properties" => match value.as_object() {
                Some(inner) => {
                    Value::Object(inner.iter().map(|(name, schema)| (name.clone(), plain(schema))).collect())
                }
                None => value.clone(),
            },
            _ => value.clone(),
        };
        out.insert(key.clone(), value);
    }
    if out.get("type").and_then(Value::as_str) == Some("object") {
        out.insert("additionalProperties".to_owned(), Value::Bool(false));
    }
    Value::Object(out)
}
