//! Reads what a server says when it does not answer: too long, format not taken, try again, or no.
//!
//! The wordings are those of llama.cpp, Ollama, vLLM, LM Studio, OpenAI and a few hosted servers. Never: a guess that
//! turns a failing server into a full window; only words that speak of the window count.

use regex::Regex;
use serde_json::Value;

use super::request::Dialect;
use crate::chat::{ChatRequest, ModelError};

/// The most characters of a server's message that are passed on.
const SHOWN: usize = 500;

/// The error of a server, read from a body or from an event in a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Said {
    /// Its words.
    pub(super) message: String,
    /// Everything it sent, lower case, for the search of words.
    haystack: String,
    /// The numbers that llama.cpp gives as fields.
    window: Option<u64>,
    prompt: Option<u64>,
    /// The status that an error in a stream names.
    code: Option<u16>,
}

impl Said {
    /// Reads a body: `{"error": {"message": …}}`, `{"error": "…"}`, `{"message"/"detail": …}`, or plain text.
    pub(super) fn from_body(body: &str) -> Self {
        let parsed = serde_json::from_str::<Value>(body).unwrap_or(Value::Null);
        Self::from_value(&parsed, body)
    }

    /// Reads the value of an event or a body whose raw text is given too.
    pub(super) fn from_value(value: &Value, raw: &str) -> Self {
        let value = value.as_array().and_then(|items| items.first()).unwrap_or(value);
        let error = value.get("error").filter(|error| !error.is_null()).unwrap_or(value);
        let text = |value: &Value| match value {
            Value::String(text) => Some(text.clone()),
            Value::Array(_) => Some(value.to_string()),
            _ => None,
        };
        let message = text(error)
            .or_else(|| ["message", "detail", "msg", "error"].iter().find_map(|key| error.get(key).and_then(text)))
            .unwrap_or_else(|| raw.trim().into());
        let number = |key: &str| error.get(key).and_then(Value::as_u64);
        Self {
            message: shortened(&message),
            haystack: raw.to_lowercase(),
            window: number("n_ctx"),
            prompt: number("n_prompt_tokens"),
            code: number("code").or_else(|| number("status")).and_then(|code| u16::try_from(code).ok()),
        }
    }

    /// The prompt does not fit.
    pub(super) fn overflow(&self) -> Option<ModelError> {
        const WORDS: [&str; 19] = [
            "exceed_context_size_error",
            "exceeds the available context size",
            "context size has been exceeded",
            "context_length_exceeded",
            "maximum context length",
            "context length is only",
            "when context the overflows",
            "context length of only",
            "reached context length",
            "greater than the context length",
            "exceeds the context length",
            "exceeds maximum context length",
            "exceeded max context length",
            "exceeds the context window",
            "exceeds the model's context",
            "prompt is too long",
            "maximum prompt length",
            "exceeds the maximum number of tokens",
            "reduce the length of the messages",
        ];
        if !WORDS.iter().any(|words| self.haystack.contains(words)) {
            return None;
        }
        let window = self.window.or_else(|| {
            number_in(
                &self.haystack,
                &[
                    r"context length (?:is|of)(?: only)? (\d+)",
                    r"context size \((\d+)",
                    r"maximum prompt length is (\d+)",
                    r"with (\d+) maximum context length",
                    r"tokens > (\d+) maximum",
                    r"maximum number of tokens allowed \(?(\d+)",
                    r"context window of (?:this model \()?(\d+)",
                ],
            )
        });
        let prompt = self.prompt.or_else(|| {
            number_in(
                &self.haystack,
                &[
                    r"\((\d+) in the messages",
                    r"(?:has|contains|resulted in) (\d+)(?: input)? tokens",
                    r"request \((\d+) tokens\)",
                    r"keep the first (\d+) tokens",
                    r"prompt is too long: (\d+)",
                    r"you requested (\d+) tokens",
                    r"input token count \(?(\d+)",
                    r"prompt contains (\d+) tokens",
                    r"request contains (\d+) tokens",
                ],
            )
        });
        Some(ModelError::Overflow { message: self.message.clone(), window, prompt })
    }

    /// The server does not take the schema or the tools that this request carries.
    pub(super) fn format_refused(&self, status: u16, request: &ChatRequest) -> Option<ModelError> {
        // Words that mean it whatever the status: some servers answer 500 when a grammar or a call cannot be read.
        const SURE_SCHEMA: [&str; 5] =
            ["response_format", "json_schema", "grammar", "json schema", "structured output"];
        const SURE_TOOLS: [&str; 10] = [
            "support tool use",
            "--jinja",
            "does not support tools",
            "does not support function",
            "tool choice requires",
            "tool_use_failed",
            "failed to parse tool call",
            "failed to parse input",
            "tools param",
            "tool-call-parser",
        ];
        let says = |words: &[&str]| words.iter().any(|word| self.haystack.contains(word));
        let is_refusal = matches!(status, 400 | 415 | 422 | 501);
        let schema = request.schema.is_some() && (says(&SURE_SCHEMA) || is_refusal && says(&["schema"]));
        let tools = !request.tools.is_empty() && (says(&SURE_TOOLS) || is_refusal && says(&["tool", "function call"]));
        (schema || tools).then(|| ModelError::FormatRefused(self.message.clone()))
    }

    /// The status that an error within a stream stands for: its own code, else what its type says, else 500.
    pub(super) fn status(&self) -> u16 {
        let says = |words: &[&str]| words.iter().any(|word| self.haystack.contains(word));
        match self.code.filter(|code| (400..600).contains(code)) {
            Some(code) => code,
            None if says(&["authentication_error", "invalid_api_key"]) => 401,
            None if says(&["invalid_request_error", "badrequesterror"]) => 400,
            None => 500,
        }
    }

    /// The account is empty: waiting does not fill it.
    pub(super) fn is_out_of_money(&self) -> bool {
        self.haystack.contains("insufficient_quota")
    }

    /// The chat template of the model does not take the roles of the conversation.
    pub(super) fn is_about_roles(&self) -> bool {
        Dialect::default().with_simpler_roles(&self.haystack).is_some()
    }

    /// llama.cpp answers 503 while it reads the weights.
    pub(super) fn is_starting(&self) -> bool {
        self.haystack.contains("loading model")
    }
}

fn number_in(text: &str, patterns: &[&str]) -> Option<u64> {
    // Thousands may be grouped.
    let text = Regex::new(r"(\d),(\d{3})").ok()?.replace_all(text, "$1$2").into_owned();
    patterns.iter().find_map(|pattern| Regex::new(pattern).ok()?.captures(&text)?.get(1)?.as_str().parse().ok())
}

/// The first characters of a text.
pub(super) fn shortened(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.into(),
    }
}

#[cfg(test)]
mod tests;
