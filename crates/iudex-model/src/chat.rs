//! The conversation with a chat model, whatever the wire.

use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{Usage, Usd};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A chat model.
#[async_trait(?Send)]
pub trait ChatModel {
    /// What is known about the model. Cheap; network questions were asked when it was opened.
    fn facts(&self) -> &ModelFacts;

    /// Asks for one answer. Retries of the wire happen inside; `on_delta` gets text as it comes, and what is waited
    /// for; what was shown before a `Waiting` belongs to a try that failed. Dropping the future closes the connection, so that the server frees its slot.
    async fn complete(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'delta> FnMut(Delta<'delta>),
    ) -> Result<Completion, ModelError>;
}

/// A sign of life during a call.
#[derive(Debug, Clone, Copy)]
pub enum Delta<'a> {
    /// A piece of the answer.
    Text(&'a str),
    /// A piece of the reasoning.
    Reasoning(&'a str),
    /// Waiting before the request is sent again.
    Waiting(&'a str),
    /// What tries used whose answers were lost; told once, right before the call fails. (A completion has it in its
    /// own use.)
    Lost(Usage),
}

/// What is known about a model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelFacts {
    /// The name that the server knows it by.
    pub name: String,
    /// Where it is (`http://127.0.0.1:8080/v1`, `script:FILE`).
    pub address: String,
    /// Tokens that fit into prompt and answer together.
    pub window: u64,
    /// Where the window comes from (`configuration`, `/props`, `/v1/models`, `/api/show`, `assumed`).
    pub window_source: String,
    /// On a loopback or private address.
    pub is_local: bool,
    /// Up to 30 billion parameters, or of unknown size on a local server.
    pub is_small: bool,
    /// Whether the server enforces `response_format: json_schema`.
    pub enforces_schema: bool,
    /// The price, when it is known. Local models are not priced: cost zero is known for them.
    pub price: Option<Price>,
}

impl ModelFacts {
    /// What this use costs, as far as it is known: a given price counts everywhere, a local model without one costs
    /// zero, and everything else is unknown (never zero).
    pub fn cost(&self, usage: &Usage) -> Option<Usd> {
        match self.price {
            Some(price) => Some(price.of(usage)),
            None if self.is_local => Some(Usd::default()),
            None => None,
        }
    }
}

/// A careful estimate of the tokens of a text, for whoever has no count from the server.
///
/// Four bytes a token for letters and white space, two for punctuation and everything beyond ASCII, one and a third for
/// digits (many small models take every digit as a token of its own), rounded up. It errs on the high side for prose and
/// code.
pub fn estimate_tokens(text: &str) -> u64 {
    let twelfths: u64 = text
        .bytes()
        .map(|byte| match byte {
            b'0'..=b'9' => 9,
            b if b.is_ascii_alphabetic() || b.is_ascii_whitespace() => 3,
            _ => 6,
        })
        .sum();
    twelfths.div_ceil(12)
}

/// Price per million tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Price {
    /// Prompt tokens.
    pub prompt: Usd,
    /// Generated tokens.
    pub output: Usd,
}

impl Price {
    /// What a call costs.
    pub fn of(&self, usage: &Usage) -> Usd {
        let part = |tokens: u64, price: Usd| u128::from(tokens) * u128::from(price.micros) / 1_000_000;
        let micros = part(usage.prompt.0, self.prompt) + part(usage.output.0, self.output);
        Usd { micros: u64::try_from(micros).unwrap_or(u64::MAX) }
    }
}

/// One message of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// Instructions.
    System {
        /// The text.
        text: String,
    },
    /// The user, or the harness.
    User {
        /// The text.
        text: String,
    },
    /// The model.
    Assistant {
        /// The text as the model wrote it, reasoning split off.
        text: String,
        /// Native calls, when the format is native.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AssistantCall>,
    },
    /// The result of a native call.
    Tool {
        /// The id of the call that it answers.
        call_id: String,
        /// The result.
        text: String,
    },
}

/// A native call as it was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssistantCall {
    /// The id (made up when the server gave none).
    pub id: String,
    /// The tool.
    pub name: String,
    /// The arguments as JSON text.
    pub arguments: String,
}

/// A tool as the native format sends it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WireTool {
    /// The name.
    pub name: String,
    /// What it does, in a line.
    pub description: String,
    /// JSON Schema of its arguments.
    pub parameters: Value,
}

/// One request.
#[derive(Debug, Clone)]
pub struct ChatRequest {
    /// The conversation.
    pub messages: Vec<Message>,
    /// Native tools; empty in the other formats.
    pub tools: Vec<WireTool>,
    /// The schema that the server must enforce (json format).
    pub schema: Option<Value>,
    /// The most tokens that the answer may take. Always sent.
    pub max_tokens: u64,
    /// The sampling temperature.
    pub temperature: f32,
    /// A fixed seed, when there is one.
    pub seed: Option<u64>,
}

/// One answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// The text, reasoning split off.
    pub text: String,
    /// The reasoning (`reasoning_content`, `<think>`).
    pub reasoning: String,
    /// Native calls.
    pub calls: Vec<AssistantCall>,
    /// Why it ended.
    pub finish: Finish,
    /// What it used; estimated where the server did not tell (`estimated_calls` is 1 then).
    pub usage: Usage,
    /// Times that the request was sent again.
    pub retries: u32,
}

impl ChatRequest {
    /// A careful estimate of the prompt's tokens: every message with its frame, and the tools.
    pub fn estimate_prompt(&self) -> u64 {
        const FRAME: u64 = 4;
        let messages: u64 = self.messages.iter().map(|message| FRAME + message.estimate()).sum();
        let tools: u64 = self
            .tools
            .iter()
            .map(|tool| {
                FRAME
                    + estimate_tokens(&tool.name)
                    + estimate_tokens(&tool.description)
                    + estimate_tokens(&tool.parameters.to_string())
            })
            .sum();
        messages + tools
    }
}

impl Message {
    /// The text of the message; for the model's own message without its native calls.
    pub fn text(&self) -> &str {
        match self {
            Self::System { text } | Self::User { text } | Self::Assistant { text, .. } | Self::Tool { text, .. } => {
                text
            }
        }
    }

    fn estimate(&self) -> u64 {
        let calls: u64 = match self {
            Self::Assistant { calls, .. } => {
                calls.iter().map(|call| estimate_tokens(&call.name) + estimate_tokens(&call.arguments)).sum()
            }
            _ => 0,
        };
        estimate_tokens(self.text()) + calls
    }
}

/// Why an answer ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Finish {
    /// The model was finished.
    Stop,
    /// At the token limit. Nothing of it may be executed.
    Length,
    /// Stopped here: white space or repetition without end. Nothing of it may be executed.
    Runaway,
    /// Anything else that leaves the answer incomplete (content filter, unknown). Nothing of it may be executed.
    Other,
}

/// Times and numbers of tries on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timeouts {
    /// Until the first byte of the answer.
    pub first_byte: Duration,
    /// Between two pieces of it.
    pub between_tokens: Duration,
    /// Until the connection stands.
    pub connect: Duration,
    /// The most tries after the first.
    pub max_retries: u32,
    /// The most time spent in retries.
    pub retry_time: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            first_byte: Duration::from_mins(10),
            between_tokens: Duration::from_mins(2),
            connect: Duration::from_secs(10),
            max_retries: 5,
            retry_time: Duration::from_mins(5),
        }
    }
}

/// No answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ModelError {
    /// The server cannot be reached or keeps failing, after retries.
    #[error("{0}")]
    Unavailable(String),
    /// The server refuses the request and trying again cannot change that (400, 401, 404, …).
    #[error("{0}")]
    Refused(String),
    /// The prompt does not fit the window.
    #[error("the prompt does not fit the window: {message}")]
    Overflow {
        /// What the server said.
        message: String,
        /// The window that the server named, if it did.
        window: Option<u64>,
        /// The prompt's tokens that the server named, if it did.
        prompt: Option<u64>,
    },
    /// The server refuses the schema or the native tools; another format may work.
    #[error("the server does not take this format: {0}")]
    FormatRefused(String),
}
