//! How tools are offered: the lines of the system prompt, and the schema that a server enforces.
//!
//! Both are byte-stable for the same tools, and short: prompt tokens are what a small model costs.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::arguments::required_names;
use super::{ActionFormat, DONE, ToolSpec};

/// What `done` is for, as the model reads it.
const DONE_LINE: &str = "the task is finished";

/// The lines of the system prompt that explain tools and format (`done` among them in the json format).
pub fn instructions(format: ActionFormat, tools: &[ToolSpec]) -> String {
    match format {
        ActionFormat::Json => json_lines(tools),
        ActionFormat::Text => text_lines(tools),
        ActionFormat::Native => "When the task is finished, reply without a tool call.".to_owned(),
    }
}

fn json_lines(tools: &[ToolSpec]) -> String {
    let mut text = String::from("Each reply is one JSON object that calls one tool:\n");
    for spec in tools {
        let (needed, more) = shape(&spec.parameters);
        let _ = writeln!(text, "{{\"tool\":\"{}\"{needed}}}{more}  {}", spec.name, spec.description);
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
        let (needed, more) = shape(&spec.parameters);
        let needed = needed.strip_prefix(',').unwrap_or(&needed);
        let _ = writeln!(text, "{} {{{needed}}}{more}  {}", spec.name, spec.description);
    }
    text.push_str("When the task is finished, reply in plain words without a block.");
    text
}

/// The required arguments as `,"path":…`, and the optional ones as a remark.
fn shape(schema: &Value) -> (String, String) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = required_names(schema).collect();
    let (mut needed, mut more) = (String::new(), String::new());
    for (name, property) in properties {
        let part = format!("\"{name}\":{}", sample(property));
        if required.contains(&name.as_str()) {
            let _ = write!(needed, ",{part}");
        } else {
            let _ = write!(more, "{}{part}", if more.is_empty() { " (also " } else { ", " });
        }
    }
    if !more.is_empty() {
        more.push(')');
    }
    (needed, more)
}

/// A placeholder for a value of this schema.
fn sample(schema: &Value) -> String {
    if let Some(allowed) = schema.get("enum").and_then(Value::as_array) {
        return allowed.iter().map(Value::to_string).collect::<Vec<_>>().join("|");
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("integer" | "number") => "0".to_owned(),
        Some("boolean") => "true".to_owned(),
        Some("array") => format!("[{}]", schema.get("items").map_or_else(String::new, sample)),
        Some("object") => {
            let (needed, _) = shape(schema);
            format!("{{{}}}", needed.strip_prefix(',').unwrap_or(&needed))
        }
        _ => "…".to_owned(),
    }
}

/// The schema of one action, for `response_format` (json format): `anyOf` over the tools, `tool` first, in the simple
/// features that the grammar compilers of local servers share (`anyOf`, `const`, `enum`, `required`,
/// `additionalProperties: false`). llama.cpp keeps the order of the properties.
pub fn response_schema(tools: &[ToolSpec]) -> Value {
    let mut actions: Vec<Value> = tools.iter().map(|spec| action(spec.name, &spec.parameters)).collect();
    if !tools.iter().any(|spec| spec.name == DONE) {
        let summary = json!({"properties": {"summary": {"type": "string"}}, "required": ["summary"]});
        actions.push(action(DONE, &summary));
    }
    json!({ "anyOf": actions })
}

fn action(name: &str, parameters: &Value) -> Value {
    let mut properties = Map::new();
    properties.insert("tool".to_owned(), json!({"type": "string", "const": name}));
    if let Some(given) = parameters.get("properties").and_then(Value::as_object) {
        properties.extend(given.iter().map(|(name, schema)| (name.clone(), plain(schema))));
    }
    let mut required = vec![Value::from("tool")];
    required.extend(required_names(parameters).map(Value::from));
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
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
