//! Arguments of a call, read defensively: a wrong type is an error that says what is wanted.

use serde_json::{Map, Value};

/// A text that must be there.
pub(super) fn text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    match arguments.get(name) {
        Some(Value::String(text)) => Ok(text),
        Some(other) => Err(format!("{name} must be a string, not {}. Send the call again.", kind(other))),
        None => Err(format!("{name} is missing. Send the call again with it.")),
    }
}

/// A text that may be left out; empty counts as left out.
pub(super) fn optional_text<'a>(arguments: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, String> {
    match arguments.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(_) => text(arguments, name).map(|text| Some(text).filter(|text| !text.is_empty())),
    }
}

/// A count that may be left out. Numbers in quotes count; negative ones become zero.
pub(super) fn optional_count(arguments: &Map<String, Value>, name: &str) -> Result<Option<u64>, String> {
    let number = match arguments.get(name) {
        None | Some(Value::Null) => return Ok(None),
        Some(Value::Number(number)) => number.as_f64(),
        Some(Value::String(text)) if text.trim().is_empty() => return Ok(None),
        Some(Value::String(text)) => text.trim().parse().ok(),
        Some(_) => None,
    };
    match number {
        Some(number) if number.is_finite() => Ok(Some(number.clamp(0.0, 1e15) as u64)),
        _ => Err(format!("{name} must be a number. Send the call again.")),
    }
}

/// The name of a JSON type.
pub(super) fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}
