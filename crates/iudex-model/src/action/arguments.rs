//! Fits the arguments of a call to the schema of its tool.
//!
//! A value is converted only where nothing is lost (`"5"` for 5). Never: a default for what is missing, and nothing that
//! the schema asks for is dropped.

use serde_json::{Map, Value};

use super::repair;

/// Other names that models give to a parameter. Used only when the parameter itself is missing and exactly one of them
/// is there.
const OTHER_NAMES: [(&str, &[&str]); 6] = [
    ("path", &["file_path", "filepath", "filename", "file_name", "file"]),
    ("content", &["contents", "file_content", "text", "code"]),
    ("command", &["cmd", "script"]),
    ("pattern", &["query", "regex"]),
    ("old", &["old_string", "old_str", "old_text", "search"]),
    ("new", &["new_string", "new_str", "new_text", "replace"]),
];

/// Checks arguments against `schema` (`type: object`) and converts what can be converted without loss. Arguments that
/// the schema does not know are left out.
pub(super) fn fit(schema: &Value, given: &Map<String, Value>) -> Result<Map<String, Value>, String> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    let required: Vec<&str> = required_names(schema).collect();
    let mut fitted = Map::new();
    for (name, property) in properties {
        let is_required = required.contains(&name.as_str());
        let value = given.get(name).or_else(|| by_other_name(name, given, properties));
        match value {
            // Models write null for what they leave out.
            None | Some(Value::Null) if !is_required => {}
            None => {
                return Err(format!("the argument {name:?} is missing (it takes {})", required.join(", ")));
            }
            Some(value) => {
                fitted.insert(name.clone(), convert(name, property, value)?);
            }
        }
    }
    let ways = alternatives(schema);
    if !ways.is_empty() && !ways.iter().any(|way| way.iter().all(|name| fitted.contains_key(*name))) {
        let ways: Vec<String> = ways.iter().map(|way| way.join(" and ")).collect();
        return Err(format!("it takes {} with {}", required.join(", "), ways.join(", or ")));
    }
    Ok(fitted)
}

/// The sets of properties of which one must be there besides the required ones: `anyOf` over `required` only.
pub(super) fn alternatives(schema: &Value) -> Vec<Vec<&str>> {
    let ways = schema.get("anyOf").and_then(Value::as_array).into_iter().flatten();
    ways.map(|way| required_names(way).collect()).collect()
}

/// The names of the required properties of an object schema.
pub(super) fn required_names(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}

fn by_other_name<'a>(name: &str, given: &'a Map<String, Value>, properties: &Map<String, Value>) -> Option<&'a Value> {
    let (_, others) = OTHER_NAMES.iter().find(|(known, _)| *known == name)?;
    let mut found =
        others.iter().filter(|other| !properties.contains_key(**other)).filter_map(|other| given.get(*other));
    let value = found.next()?;
    found.next().is_none().then_some(value)
}

fn convert(name: &str, schema: &Value, value: &Value) -> Result<Value, String> {
    let converted = match schema.get("type").and_then(Value::as_str) {
        Some("string") => to_string(name, value)?,
        Some("integer") => to_integer(value).ok_or_else(|| wrong(name, "an integer", value))?,
        Some("number") => to_number(value).ok_or_else(|| wrong(name, "a number", value))?,
        Some("boolean") => to_boolean(value).ok_or_else(|| wrong(name, "true or false", value))?,
        Some("array") => to_array(name, schema, value)?,
        Some("object") => {
            let object = as_json_text(value, Value::is_object);
            let object = object.as_ref().unwrap_or(value);
            let map = object.as_object().ok_or_else(|| wrong(name, "an object", value))?;
            Value::Object(fit(schema, map).map_err(|problem| format!("in {name:?}: {problem}"))?)
        }
        _ => value.clone(),
    };
    let Some(allowed) = schema.get("enum").and_then(Value::as_array) else { return Ok(converted) };
    if allowed.contains(&converted) {
        return Ok(converted);
    }
    let same_but_case = |other: &&Value| match (other.as_str(), converted.as_str()) {
        (Some(one), Some(two)) => one.eq_ignore_ascii_case(two.trim()),
        _ => false,
    };
    match allowed.iter().find(same_but_case) {
        Some(value) => Ok(value.clone()),
        None => Err(wrong(name, &format!("one of {}", Value::Array(allowed.clone())), &converted)),
    }
}

fn wrong(name: &str, wanted: &str, value: &Value) -> String {
    format!("{name:?} must be {wanted}, not {}", repair::excerpt(&value.to_string()))
}

fn to_string(name: &str, value: &Value) -> Result<Value, String> {
    match value {
        Value::String(_) => Ok(value.clone()),
        // A number has one obvious text as long as it is whole.
        Value::Number(number) if number.is_i64() || number.is_u64() => Ok(Value::String(number.to_string())),
        // How an object or a list would be laid out as text is a guess.
        _ => Err(wrong(name, "a string", value)),
    }
}

fn to_integer(value: &Value) -> Option<Value> {
    match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(value.clone()),
        Value::Number(number) => {
            let float = number.as_f64()?;
            (float.fract() == 0.0 && float.abs() < 9e15).then(|| Value::from(float as i64))
        }
        Value::String(text) => text.trim().parse::<i64>().ok().map(Value::from),
        _ => None,
    }
}

fn to_number(value: &Value) -> Option<Value> {
    match value {
        Value::Number(_) => Some(value.clone()),
        Value::String(text) => serde_json::from_str::<serde_json::Number>(text.trim()).ok().map(Value::Number),
        _ => None,
    }
}

fn to_boolean(value: &Value) -> Option<Value> {
    match value {
        Value::Bool(_) => Some(value.clone()),
        Value::String(text) => match text.trim().to_ascii_lowercase().as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        },
        _ => None,
    }
}

/// An array; a single item stands for an array of it.
fn to_array(name: &str, schema: &Value, value: &Value) -> Result<Value, String> {
    let items = schema.get("items").unwrap_or(&Value::Null);
    let wants_text = items.get("type").and_then(Value::as_str) == Some("string");
    let parsed = as_json_text(value, |parsed| parsed.is_array() || (parsed.is_object() && !wants_text));
    let value = parsed.as_ref().unwrap_or(value);
    let list = match value {
        Value::Array(list) => list.as_slice(),
        Value::Null => return Err(wrong(name, "a list", value)),
        single => std::slice::from_ref(single),
    };
    list.iter().map(|item| convert(name, items, item)).collect::<Result<Vec<_>, _>>().map(Value::Array)
}

/// A value that was written as JSON inside a string.
fn as_json_text(value: &Value, fits: impl Fn(&Value) -> bool) -> Option<Value> {
    let text = value.as_str()?;
    repair::parse_whole(text).ok().filter(|parsed| fits(parsed))
}
