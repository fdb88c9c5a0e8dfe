//! The body of a chat request, in the dialect that the server understands.
//!
//! Never: a request without a token limit.

use serde_json::{Map, Value, json};

use crate::chat::{ChatRequest, Message};

/// Which optional fields the server takes. Everything is tried; what it refuses by name is left out from then on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Dialect {
    pub(super) stream: bool,
    pub(super) stream_options: bool,
    pub(super) temperature: bool,
    pub(super) seed: bool,
    /// The limit is called `max_tokens`; else `max_completion_tokens`.
    pub(super) max_tokens: bool,
    /// The chat template knows the system role; else its text opens the first user message.
    pub(super) system_role: bool,
    /// The same role may speak twice in a row; else its messages are joined.
    pub(super) repeated_roles: bool,
}

impl Default for Dialect {
    fn default() -> Self {
        Self {
            stream: true,
            stream_options: true,
            temperature: true,
            seed: true,
            max_tokens: true,
            system_role: true,
            repeated_roles: true,
        }
    }
}

impl Dialect {
    /// What to leave out after this refusal; `None` when it names nothing that can be left out.
    pub(super) fn without_what_is_refused(self, message: &str) -> Option<Self> {
        let text = message.to_ascii_lowercase();
        let mut next = self;
        if self.stream_options && (text.contains("stream_options") || text.contains("include_usage")) {
            next.stream_options = false;
        } else if self.max_tokens && text.contains("max_completion_tokens") && text.contains("max_tokens") {
            next.max_tokens = false;
        } else if self.seed && mentions(&text, "seed") {
            next.seed = false;
        } else if self.temperature && mentions(&text, "temperature") {
            next.temperature = false;
        } else if self.stream && (mentions(&text, "stream") || mentions(&text, "streaming")) {
            next.stream = false;
            next.stream_options = false;
        } else {
            return None;
        }
        Some(next)
    }

    /// Templates of small models raise errors about roles, which some servers send as status 500.
    pub(super) fn with_simpler_roles(self, message: &str) -> Option<Self> {
        let text = message.to_ascii_lowercase();
        if self.system_role && text.contains("system role not supported") {
            return Some(Self { system_role: false, ..self });
        }
        if self.repeated_roles && text.contains("roles must alternate") {
            return Some(Self { repeated_roles: false, ..self });
        }
        None
    }
}

/// The word stands alone in the text (not as a part of `upstream`).
fn mentions(text: &str, word: &str) -> bool {
    text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).any(|part| part == word)
}

/// The body as JSON text.
pub(super) fn body(model: &str, request: &ChatRequest, dialect: Dialect) -> String {
    let mut body = Map::new();
    body.insert("model".into(), json!(model));
    body.insert("messages".into(), messages(&request.messages, dialect));
    if !request.tools.is_empty() {
        let tool = |tool: &crate::chat::WireTool| {
            json!({"type": "function", "function":
                {"name": tool.name, "description": tool.description, "parameters": tool.parameters}})
        };
        body.insert("tools".into(), request.tools.iter().map(tool).collect());
    }
    if let Some(schema) = &request.schema {
        let format = json!({"name": "action", "strict": true, "schema": schema});
        body.insert("response_format".into(), json!({"type": "json_schema", "json_schema": format}));
    }
    let limit = if dialect.max_tokens { "max_tokens" } else { "max_completion_tokens" };
    body.insert(limit.into(), json!(request.max_tokens));
    if dialect.temperature {
        // Through text, so that 0.2 goes out as 0.2 and not as the nearest 32-bit number.
        let temperature: f64 = request.temperature.to_string().parse().unwrap_or_default();
        body.insert("temperature".into(), json!(temperature));
    }
    if let Some(seed) = request.seed.filter(|_| dialect.seed) {
        body.insert("seed".into(), json!(seed));
    }
    body.insert("stream".into(), json!(dialect.stream));
    if dialect.stream && dialect.stream_options {
        body.insert("stream_options".into(), json!({"include_usage": true}));
    }
    Value::Object(body).to_string()
}

/// The messages, in roles that the template takes.
fn messages(messages: &[Message], dialect: Dialect) -> Value {
    let mut out: Vec<Value> = Vec::with_capacity(messages.len());
    for each in messages {
        let mut value = message(each);
        if !dialect.system_role && matches!(each, Message::System { .. }) {
            value["role"] = json!("user");
        }
        let joins_last = out.last().is_some_and(|last| {
            let was_system = !dialect.system_role && out.len() == 1 && matches!(messages[0], Message::System { .. });
            let same_role = last["role"] == value["role"] && value["role"] != "tool";
            same_role && (was_system || !dialect.repeated_roles) && last.get("tool_calls").is_none()
        });
        match out.last_mut() {
            Some(last) if joins_last && value.get("tool_calls").is_none() => {
                let text = |value: &Value| value["content"].as_str().unwrap_or_default().to_owned();
                last["content"] = json!(format!("{}\n\n{}", text(last), text(&value)));
            }
            _ => out.push(value),
        }
    }
    Value::Array(out)
}

fn message(message: &Message) -> Value {
    match message {
        Message::System { text } => json!({"role": "system", "content": text}),
        Message::User { text } => json!({"role": "user", "content": text}),
        Message::Tool { call_id, text } => json!({"role": "tool", "tool_call_id": call_id, "content": text}),
        Message::Assistant { text, calls } if calls.is_empty() => json!({"role": "assistant", "content": text}),
        Message::Assistant { text, calls } => {
            let call = |call: &crate::chat::AssistantCall| {
                json!({"id": call.id, "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments}})
            };
            json!({"role": "assistant", "content": text, "tool_calls": calls.iter().map(call).collect::<Value>()})
        }
    }
}
