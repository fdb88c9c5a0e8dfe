//! Whether a JSON value is a call, of which tool, and with which arguments.
//!
//! Never: a call of a tool that is not offered, and never one whose arguments do not fit.

use serde_json::{Map, Value};

use super::arguments;
use super::repair;
use super::{DONE, ToolCall, ToolSpec, Trouble};

/// Keys under which models write the name of a tool, the surest first.
const NAME_KEYS: [&str; 6] = ["tool", "name", "function", "action", "tool_name", "function_name"];

/// Keys under which models write the arguments.
const ARGUMENT_KEYS: [&str; 8] =
    ["arguments", "args", "parameters", "input", "params", "tool_input", "action_input", "function_arguments"];

/// What a JSON value means.
#[derive(Debug)]
pub(super) enum Meaning {
    /// Data, not a call.
    Data,
    /// A call that can be executed.
    Call(ToolCall),
    /// It is meant as a call and cannot be executed.
    Trouble(Trouble),
}

/// Reads a value as a call. With `surely` it stands where only a call can stand (a tag, the json format).
pub(super) fn of_value(value: &Value, surely: bool, tools: &[ToolSpec]) -> Meaning {
    let Some(object) = value.as_object() else {
        let problem = "a call is an object with a tool's name".to_owned();
        return if surely { Meaning::Trouble(Trouble::Broken(problem)) } else { Meaning::Data };
    };
    // {"type": "function", "function": {"name": …, "arguments": …}}
    for key in ["function", "tool_call", "function_call"] {
        if let Some(inner @ Value::Object(fields)) = object.get(key)
            && NAME_KEYS.iter().any(|key| fields.get(*key).is_some_and(Value::is_string))
        {
            return of_value(inner, surely, tools);
        }
    }
    let named = NAME_KEYS.iter().filter_map(|key| Some((*key, object.get(*key)?.as_str()?)));
    let mut first = None;
    for (key, name) in named {
        first = first.or(Some((key, name)));
        if let Some(known) = known_name(name, tools) {
            return of_fields(known, key, object, surely, tools);
        }
    }
    if let Some((key, name)) = first {
        let has_arguments = ARGUMENT_KEYS.iter().any(|key| object.get(*key).is_some_and(Value::is_object));
        return if surely || has_arguments || key == "tool" {
            Meaning::Trouble(unknown(name, tools))
        } else {
            Meaning::Data
        };
    }
    // {"write": {"path": …, "content": …}}
    if let Some((name, Value::Object(fields))) = object.iter().next()
        && object.len() == 1
        && let Some(known) = known_name(name, tools)
    {
        return finish(known, fields, tools);
    }
    if surely { Meaning::Trouble(Trouble::Broken("the name of a tool is missing".to_owned())) } else { Meaning::Data }
}

/// The arguments of an object that names a known tool under `name_key`.
fn of_fields(tool: &str, name_key: &str, object: &Map<String, Value>, surely: bool, tools: &[ToolSpec]) -> Meaning {
    let schema = schema_of(tool, tools);
    let is_parameter = |name: &str| schema["properties"].get(name).is_some();
    let mut fields = Map::new();
    let mut wrapped = false;
    for key in ARGUMENT_KEYS.iter().filter(|key| !is_parameter(key)) {
        let Some(value) = object.get(*key) else { continue };
        match wrapped_arguments(value, &schema) {
            Ok(arguments) => {
                wrapped = true;
                fields.extend(arguments);
            }
            Err(problem) => return Meaning::Trouble(problem),
        }
    }
    // Beside a wrapper only what the tool knows counts (`"id"` and `"thought"` do not).
    for (key, value) in object.iter().filter(|(key, _)| *key != name_key) {
        let is_wrapper = ARGUMENT_KEYS.contains(&key.as_str()) && !is_parameter(key);
        if !is_wrapper && (!wrapped || is_parameter(key)) {
            fields.entry(key.clone()).or_insert_with(|| value.clone());
        }
    }
    let meaning = finish(tool, &fields, tools);
    // {"name": "search", "version": "1.0"} is a manifest rather than a call.
    if !surely && !wrapped && name_key != "tool" && matches!(meaning, Meaning::Trouble(_)) {
        return Meaning::Data;
    }
    meaning
}

/// Arguments as an object, as JSON text, or as the bare text of the only required parameter.
fn wrapped_arguments(value: &Value, schema: &Value) -> Result<Map<String, Value>, Trouble> {
    match value {
        Value::Object(map) => Ok(map.clone()),
        Value::Null => Ok(Map::new()),
        Value::String(text) => arguments_of_text(text, schema),
        Value::Array(list) if list.len() == 1 && list[0].is_object() => wrapped_arguments(&list[0], schema),
        Value::Array(list) if list.is_empty() => Ok(Map::new()),
        other => {
            only_required(schema).map(|name| Map::from_iter([(name.to_owned(), other.clone())])).ok_or_else(|| {
                Trouble::Broken(format!("the arguments must be an object, not {}", repair::excerpt(&other.to_string())))
            })
        }
    }
}

fn arguments_of_text(text: &str, schema: &Value) -> Result<Map<String, Value>, Trouble> {
    let trimmed = text.trim();
    if trimmed.is_empty() || trimmed == "null" {
        return Ok(Map::new());
    }
    let parsed = repair::parse_whole(trimmed);
    match (parsed, only_required(schema)) {
        (Ok(Value::Object(map)), _) => Ok(map),
        // Encoded twice.
        (Ok(Value::String(inner)), _) if inner.trim_start().starts_with('{') => arguments_of_text(&inner, schema),
        (_, Some(name)) if !trimmed.starts_with('{') => {
            Ok(Map::from_iter([(name.to_owned(), Value::String(text.to_owned()))]))
        }
        (Err(repair::Fault(fault)), _) => Err(Trouble::Broken(fault)),
        (Ok(_), _) => Err(Trouble::Broken("the arguments must be an object".to_owned())),
    }
}

/// The name of the one required parameter, when it is a string.
fn only_required(schema: &Value) -> Option<&str> {
    let mut required = arguments::required_names(schema);
    let name = required.next()?;
    (required.next().is_none() && schema["properties"][name]["type"] == "string").then_some(name)
}

/// A native call: name and arguments apart.
pub(super) fn native_call(
    name: &str,
    arguments: &str,
    tools: &[ToolSpec],
) -> Result<(String, Map<String, Value>), Trouble> {
    if name.trim().is_empty() {
        return Err(Trouble::Broken("the name of a tool is missing".to_owned()));
    }
    let tool = known_name(name, tools).ok_or_else(|| unknown(name, tools))?;
    let given = arguments_of_text(arguments, &schema_of(tool, tools))?;
    match finish(tool, &given, tools) {
        Meaning::Call(call) => Ok((call.name, call.arguments)),
        Meaning::Trouble(trouble) => Err(trouble),
        Meaning::Data => Err(Trouble::Ambiguous),
    }
}

/// A call whose arguments are apart from the name: `<function=name>` with a JSON object or with `<parameter=…>` texts.
pub(super) fn of_parts(name: &str, given: &Map<String, Value>, tools: &[ToolSpec]) -> Meaning {
    match known_name(name, tools) {
        Some(tool) => finish(tool, given, tools),
        None => Meaning::Trouble(unknown(name, tools)),
    }
}

fn finish(tool: &str, given: &Map<String, Value>, tools: &[ToolSpec]) -> Meaning {
    match arguments::fit(&schema_of(tool, tools), given) {
        Ok(arguments) => Meaning::Call(ToolCall { id: None, name: tool.to_owned(), arguments }),
        Err(problem) => Meaning::Trouble(Trouble::BadArguments { tool: tool.to_owned(), problem }),
    }
}

/// The schema of a tool's arguments. The summary of `done` is asked for and not insisted on.
fn schema_of(tool: &str, tools: &[ToolSpec]) -> Value {
    match tools.iter().find(|spec| spec.name == tool) {
        Some(spec) => spec.parameters.clone(),
        None => serde_json::json!({"type": "object", "properties": {"summary": {"type": "string"}}}),
    }
}

/// The tool that is meant: letter case and a prefix such as `functions.` do not count.
pub(super) fn known_name<'a>(name: &str, tools: &'a [ToolSpec]) -> Option<&'a str> {
    let bare = name.trim();
    let bare = bare.rsplit_once(['.', ':']).map_or(bare, |(_, last)| last);
    let names = tools.iter().map(|spec| spec.name).chain([DONE]);
    names.into_iter().find(|known| known.eq_ignore_ascii_case(bare))
}

fn unknown(name: &str, tools: &[ToolSpec]) -> Trouble {
    let mut known: Vec<&str> = tools.iter().map(|spec| spec.name).collect();
    if !known.contains(&DONE) {
        known.push(DONE);
    }
    Trouble::UnknownTool { name: repair::excerpt(name), known: known.join(", ") }
}
