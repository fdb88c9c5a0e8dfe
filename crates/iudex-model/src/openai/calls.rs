//! Puts native tool calls together from the pieces of a stream.
//!
//! Seen in the wild and read here: `tool_calls` null or absent, one object instead of a list, no `index`, the same index
//! for several calls, no id, the name repeated in every piece or split over pieces, arguments as an object, the call
//! without its `function`, and the old `function_call`. Never: a judgement about names or arguments; that is the reader's.

use serde_json::Value;

use crate::chat::{AssistantCall, estimate_tokens};

#[derive(Debug, Default)]
struct Part {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
}

/// The calls of one answer.
#[derive(Debug, Default)]
pub(super) struct CallBuilder {
    parts: Vec<Part>,
    /// Where the last piece went.
    current: Option<usize>,
    bytes: usize,
}

impl CallBuilder {
    /// Bytes of all names and arguments so far.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Tokens by estimate.
    pub(super) fn estimate(&self) -> u64 {
        self.parts.iter().map(|part| estimate_tokens(&part.name) + estimate_tokens(&part.arguments)).sum()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    /// Every call has a name and arguments that are complete.
    pub(super) fn is_closed(&self) -> bool {
        self.parts.iter().all(|part| !part.name.is_empty() && is_complete(&part.arguments))
    }

    /// Takes the calls of a delta, or of a whole message, where every entry is a call of its own. Gives the arguments
    /// that came with it.
    pub(super) fn take(&mut self, message: &Value, is_whole: bool) -> String {
        let mut added = String::new();
        match message.get("tool_calls") {
            Some(Value::Array(entries)) => {
                for entry in entries {
                    self.take_entry(entry, is_whole, &mut added);
                }
            }
            Some(entry @ Value::Object(_)) => self.take_entry(entry, is_whole, &mut added),
            _ => {}
        }
        if let Some(entry @ Value::Object(_)) = message.get("function_call") {
            self.take_entry(entry, is_whole, &mut added);
        }
        self.bytes += added.len();
        added
    }

    fn take_entry(&mut self, entry: &Value, is_whole: bool, added: &mut String) {
        let function = entry.get("function").filter(|function| function.is_object()).unwrap_or(entry);
        let text = |value: &Value, key: &str| value.get(key).and_then(Value::as_str).unwrap_or_default().to_owned();
        let (id, name) = (text(entry, "id"), text(function, "name"));
        let arguments = function.get("arguments").or_else(|| function.get("parameters")).unwrap_or(&Value::Null);
        if id.is_empty() && name.is_empty() && arguments.is_null() {
            return;
        }
        let index = entry.get("index").and_then(Value::as_u64);
        let place = if is_whole { None } else { self.find(index, &id, &name) };
        let place = place.unwrap_or_else(|| {
            self.parts.push(Part { index, ..Part::default() });
            self.parts.len() - 1
        });
        self.current = Some(place);
        let part = &mut self.parts[place];
        if part.id.is_empty() {
            part.id = id;
        }
        if part.name.is_empty() || part.arguments.is_empty() && !name.is_empty() && part.name != name {
            part.name.push_str(&name);
            self.bytes += name.len();
        }
        match arguments {
            Value::String(piece) => {
                part.arguments.push_str(piece);
                added.push_str(piece);
            }
            Value::Null => {}
            // Whole arguments: they take the place of whatever was there.
            whole => {
                part.arguments = whole.to_string();
                added.push_str(&part.arguments);
            }
        }
    }

    /// The call that this piece belongs to; `None` when it begins a new one.
    fn find(&self, index: Option<u64>, id: &str, name: &str) -> Option<usize> {
        if let Some(index) = index {
            // The latest one with the index: some servers give every call index 0 and only the id differs.
            let place = self.parts.iter().rposition(|part| part.index == Some(index))?;
            let part = &self.parts[place];
            let other_id = !id.is_empty() && !part.id.is_empty() && part.id != id;
            let next_call = id.is_empty() && !name.is_empty() && is_complete(&part.arguments);
            return (!other_id && !next_call).then_some(place);
        }
        if !id.is_empty() {
            return self.parts.iter().rposition(|part| part.id == id);
        }
        let current = self.current?;
        let part = &self.parts[current];
        // A name after complete arguments, or another name after some, begins the next call.
        let next_call =
            !name.is_empty() && (is_complete(&part.arguments) || part.name != name && !part.arguments.is_empty());
        (!next_call).then_some(current)
    }

    /// The calls; `new_id` makes up what the server left out. A call with neither name nor arguments says
    /// nothing and is left out.
    pub(super) fn finish(self, new_id: &mut dyn FnMut() -> String) -> Vec<AssistantCall> {
        let whole = |arguments: String| if arguments.trim().is_empty() { "{}".to_owned() } else { arguments };
        self.parts
            .into_iter()
            .filter(|part| !part.name.is_empty() || !part.arguments.is_empty())
            .map(|part| AssistantCall {
                id: if part.id.is_empty() { new_id() } else { part.id },
                name: part.name,
                arguments: whole(part.arguments),
            })
            .collect()
    }
}

fn is_complete(arguments: &str) -> bool {
    arguments.trim_end().ends_with('}') && serde_json::from_str::<Value>(arguments).is_ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(pieces: &[Value], is_whole: bool) -> Vec<(String, String, String)> {
        let mut calls = CallBuilder::default();
        for piece in pieces {
            calls.take(piece, is_whole);
        }
        let mut number = 0;
        let mut new_id = || {
            number += 1;
            format!("made-up-{number}")
        };
        calls.finish(&mut new_id).into_iter().map(|call| (call.id, call.name, call.arguments)).collect()
    }

    fn call(id: &str, name: &str, arguments: &str) -> (String, String, String) {
        (id.into(), name.into(), arguments.into())
    }

    fn deltas(entries: &[Value]) -> Vec<Value> {
        entries.iter().map(|entry| json!({"tool_calls": [entry]})).collect()
    }

    #[test]
    fn pieces_are_joined_by_index() {
        let pieces = deltas(&[
            json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": ""}}),
            json!({"index": 0, "function": {"arguments": "{\"pa"}}),
            json!({"index": 1, "id": "b", "function": {"name": "bash", "arguments": "{}"}}),
            json!({"index": 0, "function": {"arguments": "th\":1}"}}),
        ]);
        assert_eq!(read(&pieces, false), [call("a", "read", "{\"path\":1}"), call("b", "bash", "{}")]);
    }

    #[test]
    fn null_calls_and_null_fields_are_nothing() {
        let pieces = [
            json!({"tool_calls": null}),
            json!({"content": "x"}),
            json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": "read", "arguments": null}}]}),
            json!({"tool_calls": [{"index": 0, "id": null, "function": {"name": null, "arguments": "{\"a\":1}"}}]}),
            json!({"tool_calls": []}),
        ];
        assert_eq!(read(&pieces, false), [call("made-up-1", "read", "{\"a\":1}")]);
    }

    #[test]
    fn a_call_without_a_name_is_kept_for_whoever_tells_the_model() {
        let nameless = json!({"index": 0, "id": "a", "function": {"arguments": "{\"path\":\"x\"}"}});
        assert_eq!(read(&deltas(&[nameless]), false), [call("a", "", "{\"path\":\"x\"}")]);
        assert_eq!(read(&deltas(&[json!({"index": 0, "id": "a"})]), false), []);
    }

    #[test]
    fn pieces_without_index_are_joined_by_id_or_follow_the_last_one() {
        let pieces = deltas(&[
            json!({"id": "a", "function": {"name": "read", "arguments": "{\"a\""}}),
            json!({"function": {"arguments": ":1}"}}),
            json!({"id": "b", "function": {"name": "read", "arguments": "{"}}),
            json!({"id": "b", "function": {"arguments": "}"}}),
        ]);
        assert_eq!(read(&pieces, false), [call("a", "read", "{\"a\":1}"), call("b", "read", "{}")]);
    }

    #[test]
    fn calls_without_index_and_id_are_told_apart_by_complete_arguments() {
        let pieces = deltas(&[
            json!({"function": {"name": "read", "arguments": "{\"a\":1}"}}),
            json!({"function": {"name": "read", "arguments": "{\"a\":2}"}}),
        ]);
        assert_eq!(
            read(&pieces, false),
            [call("made-up-1", "read", "{\"a\":1}"), call("made-up-2", "read", "{\"a\":2}")]
        );
    }

    #[test]
    fn the_same_index_with_another_id_is_another_call() {
        let pieces = deltas(&[
            json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": "{\"a\":1}"}}),
            json!({"index": 0, "id": "b", "function": {"name": "read", "arguments": "{\"a\":2}"}}),
        ]);
        assert_eq!(read(&pieces, false), [call("a", "read", "{\"a\":1}"), call("b", "read", "{\"a\":2}")]);
    }

    #[test]
    fn a_repeated_name_is_one_name_and_a_split_name_is_joined() {
        let repeated = deltas(&[
            json!({"index": 0, "id": "a", "function": {"name": "write", "arguments": "{\"a\""}}),
            json!({"index": 0, "id": "a", "function": {"name": "write", "arguments": ":1}"}}),
        ]);
        assert_eq!(read(&repeated, false), [call("a", "write", "{\"a\":1}")]);
        let split = deltas(&[
            json!({"index": 0, "id": "a", "function": {"name": "wri"}}),
            json!({"index": 0, "function": {"name": "te", "arguments": "{}"}}),
        ]);
        assert_eq!(read(&split, false), [call("a", "write", "{}")]);
    }

    #[test]
    fn object_arguments_become_their_json_text() {
        let entry = json!({"index": 0, "id": "a", "function": {"name": "read", "arguments": {"path": "x", "n": [1]}}});
        let expected = [call("a", "read", r#"{"path":"x","n":[1]}"#)];
        assert_eq!(read(&deltas(std::slice::from_ref(&entry)), false), expected);
        assert_eq!(read(&deltas(&[entry]), true), expected);
    }

    #[test]
    fn a_whole_message_keeps_equal_calls_apart() {
        let message = json!({"tool_calls": [
            {"function": {"name": "read", "arguments": "{}"}}, {"name": "read", "arguments": {}}, {"function": {"name": "ls"}}]});
        let expected =
            [call("made-up-1", "read", "{}"), call("made-up-2", "read", "{}"), call("made-up-3", "ls", "{}")];
        assert_eq!(read(&[message], true), expected);
    }

    #[test]
    fn one_object_and_the_old_function_call_are_read() {
        let object = json!({"tool_calls": {"id": "a", "function": {"name": "read", "arguments": "{}"}}});
        assert_eq!(read(&[object], true), [call("a", "read", "{}")]);
        let old = [
            json!({"function_call": {"name": "read", "arguments": "{"}}),
            json!({"function_call": {"arguments": "}"}}),
        ];
        assert_eq!(read(&old, false), [call("made-up-1", "read", "{}")]);
    }
}
