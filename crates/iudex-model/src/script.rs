//! A scripted model: a provider like any other whose answers come from a file (`model = "script:FILE"`).
//!
//! The file is one JSON object, or JSON lines whose first line may be the settings and whose other lines are replies:
//!
//! ```json
//! { "window": 8192, "enforces_schema": true, "local": true, "small": true, "then": "error",
//!   "price": { "prompt": 1.0, "output": 2.0 }, "enforce_window": false,
//!   "replies": [
//!     { "action": { "tool": "write", "path": "a.txt", "content": "x" } },
//!     { "text": "hello", "reasoning": "…", "finish": "stop", "prompt_tokens": 10, "output_tokens": 2 },
//!     { "calls": [ { "name": "read", "arguments": { "path": "a.txt" } } ], "delay_ms": 5 },
//!     { "error": { "unavailable": "gone" } },
//!     { "when": "exit code 1", "repeat": true, "text": "only when the last message contains this" },
//!     { "expect": ["some words", "of the request"], "text": "refused with a clear text when one is missing" } ] }
//! ```
//!
//! Every setting has a default (those shown, without a price). A reply is one of `text`, `action` (the text is that JSON), `calls` (with or
//! without `text`; string arguments are passed on as they are) and `error` (`unavailable`, `refused`, `format_refused`,
//! `overflow`: a text, the last one also `{message, window, prompt}`). `finish` is `stop`, `length`, `runaway` or
//! `other`. For each request the first unused reply whose `when` is in the last message is taken (used again with
//! `repeat`); else the next one without `when`. At the end, `then` says: `error` (model unavailable), `repeat_last`, or
//! `stop` (the text `done`, no call). Prices are dollars per million tokens. `enforce_window` answers a prompt above
//! the window with an overflow.
//!
//! Never: anything random, and no answer that is not in the file.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{Tokens, Usage, Usd};
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::chat::{
    AssistantCall, ChatModel, ChatRequest, Completion, Delta, Finish, ModelError, ModelFacts, Price, estimate_tokens,
};

/// A model that answers from a file (`model = "script:FILE"`).
#[derive(Debug)]
pub struct ScriptModel {
    facts: ModelFacts,
    enforce_window: bool,
    replies: Vec<Reply>,
    used: RefCell<Vec<bool>>,
    last: Cell<Option<usize>>,
    answers: Cell<u64>,
    then: Then,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Settings {
    #[serde(default = "default_window")]
    window: u64,
    #[serde(default = "yes")]
    enforces_schema: bool,
    #[serde(default = "yes")]
    local: bool,
    #[serde(default = "yes")]
    small: bool,
    #[serde(default)]
    then: Then,
    #[serde(default)]
    price: Option<DollarPrice>,
    #[serde(default)]
    enforce_window: bool,
    #[serde(default)]
    replies: Vec<Reply>,
}

fn default_window() -> u64 {
    8192
}

fn yes() -> bool {
    true
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DollarPrice {
    prompt: f64,
    output: f64,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Then {
    #[default]
    Error,
    RepeatLast,
    Stop,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reply {
    text: Option<String>,
    action: Option<Value>,
    calls: Option<Vec<ScriptCall>>,
    error: Option<ScriptError>,
    #[serde(default)]
    reasoning: String,
    #[serde(default = "stop")]
    finish: Finish,
    prompt_tokens: Option<u64>,
    output_tokens: Option<u64>,
    #[serde(default)]
    cached_tokens: u64,
    #[serde(default)]
    delay_ms: u64,
    when: Option<String>,
    #[serde(default)]
    repeat: bool,
    #[serde(default)]
    expect: Vec<String>,
}

fn stop() -> Finish {
    Finish::Stop
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCall {
    name: String,
    #[serde(default)]
    arguments: Value,
    id: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum ScriptError {
    Unavailable(String),
    Refused(String),
    FormatRefused(String),
    Overflow(ScriptOverflow),
}

#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum ScriptOverflow {
    Text(String),
    Full { message: String, window: Option<u64>, prompt: Option<u64> },
}

impl ScriptModel {
    /// Reads the script.
    ///
    /// # Errors
    /// [`ModelError::Refused`] when the file cannot be read or is not a script; the text names file and place.
    pub fn open(file: &Path) -> Result<Self, ModelError> {
        let refused = |problem: String| ModelError::Refused(format!("the script {}: {problem}", file.display()));
        let text = std::fs::read_to_string(file).map_err(|error| refused(format!("cannot be read: {error}")))?;
        let settings = parse(&text).map_err(refused)?;
        let dollars = |amount: f64| Usd::from_dollars(amount).ok_or_else(|| refused(format!("{amount} is no price")));
        let price = match &settings.price {
            Some(price) => Some(Price { prompt: dollars(price.prompt)?, output: dollars(price.output)? }),
            None => None,
        };
        let facts = ModelFacts {
            name: file.file_stem().map_or_else(|| "script".into(), |stem| stem.to_string_lossy().into_owned()),
            address: format!("script:{}", file.display()),
            window: settings.window,
            window_source: "script".into(),
            is_local: settings.local,
            is_small: settings.small,
            enforces_schema: settings.enforces_schema,
            price,
        };
        Ok(Self {
            facts,
            enforce_window: settings.enforce_window,
            used: RefCell::new(vec![false; settings.replies.len()]),
            replies: settings.replies,
            last: Cell::new(None),
            answers: Cell::new(0),
            then: settings.then,
        })
    }

    /// The reply to this request, marked as used.
    fn pick(&self, request: &ChatRequest) -> Option<usize> {
        let last_message = request.messages.last().map_or("", |message| message.text());
        let mut used = self.used.borrow_mut();
        let fits = |index: usize, reply: &Reply| {
            reply.when.as_ref().is_some_and(|when| (reply.repeat || !used[index]) && last_message.contains(when))
        };
        let conditional = self.replies.iter().enumerate().find(|(index, reply)| fits(*index, reply));
        let next = || self.replies.iter().enumerate().find(|(index, reply)| reply.when.is_none() && !used[*index]);
        let (index, reply) = conditional.or_else(next)?;
        if !(reply.when.is_none() && reply.repeat) {
            used[index] = true;
        }
        self.last.set(Some(index));
        Some(index)
    }

    fn usage(request: &ChatRequest, reply: Option<&Reply>, output: u64) -> Usage {
        let told = |get: fn(&Reply) -> Option<u64>| reply.and_then(get);
        let prompt = told(|reply| reply.prompt_tokens);
        let generated = told(|reply| reply.output_tokens);
        Usage {
            prompt: Tokens(prompt.unwrap_or_else(|| request.estimate_prompt())),
            output: Tokens(generated.unwrap_or(output)),
            cached: Tokens(reply.map_or(0, |reply| reply.cached_tokens)),
            calls: 1,
            estimated_calls: u32::from(prompt.is_none() || generated.is_none()),
        }
    }
}

/// One object with `replies`, or JSON lines.
fn parse(text: &str) -> Result<Settings, String> {
    let broken = |error: serde_json::Error| format!("is not a script: {error}");
    let mut values = Vec::new();
    for value in serde_json::Deserializer::from_str(text).into_iter::<Value>() {
        values.push(value.map_err(broken)?);
    }
    let is_settings = |value: &Value| {
        let reply_keys = ["text", "action", "calls", "error"];
        value.as_object().is_some_and(|object| !reply_keys.iter().any(|key| object.contains_key(*key)))
    };
    let head = if values.first().is_some_and(is_settings) { values.remove(0) } else { Value::Object(Map::default()) };
    let mut settings: Settings = serde_json::from_value(head).map_err(broken)?;
    for value in values {
        settings.replies.push(serde_json::from_value(value).map_err(broken)?);
    }
    for (index, reply) in settings.replies.iter().enumerate() {
        let kinds = [reply.action.is_some(), reply.error.is_some(), reply.text.is_some() || reply.calls.is_some()];
        if kinds.iter().filter(|kind| **kind).count() != 1 {
            return Err(format!("reply {} must have one of text, action, calls, error", index + 1));
        }
    }
    Ok(settings)
}

#[async_trait(?Send)]
impl ChatModel for ScriptModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'delta> FnMut(Delta<'delta>),
    ) -> Result<Completion, ModelError> {
        let prompt = request.estimate_prompt();
        if self.enforce_window && prompt > self.facts.window {
            let message = format!("the script enforces its window: {prompt} tokens do not fit {}", self.facts.window);
            return Err(ModelError::Overflow { message, window: Some(self.facts.window), prompt: Some(prompt) });
        }
        let index = match (self.pick(request), self.then) {
            (Some(index), _) => Some(index),
            (None, Then::Stop) => None,
            (None, Then::RepeatLast) if self.last.get().is_some() => self.last.get(),
            (None, _) => {
                let address = &self.facts.address;
                let count = self.answers.get();
                return Err(ModelError::Unavailable(format!(
                    "the script has no more replies ({address}, {count} given)"
                )));
            }
        };
        self.answers.set(self.answers.get() + 1);
        let Some(reply) = index.map(|index| &self.replies[index]) else {
            on_delta(Delta::Text("done"));
            let usage = Self::usage(request, None, 1);
            return Ok(answer("done".into(), String::new(), Vec::new(), Finish::Stop, usage));
        };
        if reply.delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(reply.delay_ms)).await;
        }
        self.check_expectations(request, reply)?;
        if let Some(error) = &reply.error {
            return Err(error.to_model_error());
        }
        let text = match (&reply.text, &reply.action) {
            (Some(text), _) => text.clone(),
            (None, Some(action)) => action.to_string(),
            (None, None) => String::new(),
        };
        let calls = self.calls(reply);
        let call_tokens: u64 =
            calls.iter().map(|call| estimate_tokens(&call.name) + estimate_tokens(&call.arguments)).sum();
        let output = estimate_tokens(&text) + estimate_tokens(&reply.reasoning) + call_tokens;
        if !reply.reasoning.is_empty() {
            on_delta(Delta::Reasoning(&reply.reasoning));
        }
        if !text.is_empty() {
            on_delta(Delta::Text(&text));
        }
        let usage = Self::usage(request, Some(reply), output);
        Ok(answer(text, reply.reasoning.clone(), calls, reply.finish, usage))
    }
}

impl ScriptModel {
    fn check_expectations(&self, request: &ChatRequest, reply: &Reply) -> Result<(), ModelError> {
        let said = |wanted: &String| {
            request.messages.iter().any(|message| message.text().contains(wanted))
                || request.tools.iter().any(|tool| tool.name.contains(wanted) || tool.description.contains(wanted))
        };
        match reply.expect.iter().find(|wanted| !said(wanted)) {
            None => Ok(()),
            Some(missing) => Err(ModelError::Refused(format!(
                "{}: the request lacks the expected text {missing:?} (reply {})",
                self.facts.address,
                self.answers.get()
            ))),
        }
    }

    fn calls(&self, reply: &Reply) -> Vec<AssistantCall> {
        let arguments = |value: &Value| match value {
            Value::String(text) => text.clone(),
            Value::Null => "{}".into(),
            other => other.to_string(),
        };
        let id = |index: usize, call: &ScriptCall| {
            call.id.clone().unwrap_or_else(|| format!("script-{}-{index}", self.answers.get()))
        };
        reply
            .calls
            .iter()
            .flatten()
            .enumerate()
            .map(|(index, call)| AssistantCall {
                id: id(index, call),
                name: call.name.clone(),
                arguments: arguments(&call.arguments),
            })
            .collect()
    }
}

impl ScriptError {
    fn to_model_error(&self) -> ModelError {
        match self {
            Self::Unavailable(text) => ModelError::Unavailable(text.clone()),
            Self::Refused(text) => ModelError::Refused(text.clone()),
            Self::FormatRefused(text) => ModelError::FormatRefused(text.clone()),
            Self::Overflow(ScriptOverflow::Text(message)) => {
                ModelError::Overflow { message: message.clone(), window: None, prompt: None }
            }
            Self::Overflow(ScriptOverflow::Full { message, window, prompt }) => {
                ModelError::Overflow { message: message.clone(), window: *window, prompt: *prompt }
            }
        }
    }
}

fn answer(text: String, reasoning: String, calls: Vec<AssistantCall>, finish: Finish, usage: Usage) -> Completion {
    Completion { text, reasoning, calls, finish, usage, retries: 0 }
}
