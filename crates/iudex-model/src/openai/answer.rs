//! Puts one answer together from the pieces of a stream, or from a message that came whole.
//!
//! Servers disagree about every field; what is null or absent is nothing, and nothing is an error here. Never: content
//! that the server did not send.

use iudex_core::{Tokens, Usage};
use serde_json::Value;

use super::calls::CallBuilder;
use super::think::{Piece, ThinkSplitter, split_lone_close};
use crate::action::is_closed;
use crate::chat::{AssistantCall, ChatRequest, Completion, Delta, Finish, estimate_tokens};
use crate::runaway::{Runaway, RunawayDetector};

/// Bytes a token at most; an answer above that many times its limit comes from a server that ignores the limit.
const BYTES_PER_TOKEN: u64 = 64;

/// An answer in the making.
#[derive(Debug, Default)]
pub(super) struct Answer {
    text: String,
    reasoning: String,
    calls: CallBuilder,
    think: ThinkSplitter,
    finish_reason: Option<String>,
    /// `[DONE]` was seen, or the message came whole.
    pub(super) is_complete: bool,
    /// The message came in one piece.
    is_whole: bool,
    runaway: Option<Runaway>,
    too_long: bool,
    told: Option<Told>,
    text_runs: RunawayDetector,
    reasoning_runs: RunawayDetector,
    calls_run: RunawayDetector,
    limit_bytes: u64,
    max_tokens: u64,
}

/// The use as the server tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    pub(super) prompt: u64,
    pub(super) output: u64,
    cached: u64,
}

impl Answer {
    pub(super) fn new(request: &ChatRequest) -> Self {
        let limit_bytes = request.max_tokens.saturating_mul(BYTES_PER_TOKEN).saturating_add(65_536);
        Self { limit_bytes, max_tokens: request.max_tokens, ..Self::default() }
    }

    /// Takes one event of a stream, or a whole response.
    pub(super) fn take(&mut self, event: &Value, on_delta: &mut dyn for<'d> FnMut(Delta<'d>)) {
        if let Some(told) = told(event) {
            self.told = Some(told);
        }
        let choices = event.get("choices");
        let Some(choice) = choices.and_then(Value::as_array).and_then(|all| all.first()).or(choices) else { return };
        // Only the first choice was asked for.
        if choice.get("index").and_then(Value::as_u64).unwrap_or(0) != 0 {
            return;
        }
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.take_message(delta, false, on_delta);
        } else if let Some(message) = choice.get("message").filter(|message| message.is_object()) {
            // Some servers repeat the whole message at the end of a stream.
            if !self.has_begun() {
                self.is_whole = true;
                self.take_message(message, true, on_delta);
            }
        }
        if let Some(reason) = choice.get("finish_reason").and_then(Value::as_str).filter(|reason| !reason.is_empty()) {
            self.finish_reason = Some(reason.into());
        }
    }

    fn take_message(&mut self, message: &Value, is_whole: bool, on_delta: &mut dyn for<'d> FnMut(Delta<'d>)) {
        let reasoning = ["reasoning_content", "reasoning"]
            .iter()
            .find_map(|key| message.get(*key).and_then(Value::as_str).filter(|text| !text.is_empty()));
        if let Some(reasoning) = reasoning {
            self.add_reasoning(reasoning, on_delta);
        }
        self.take_content(message.get("content").unwrap_or(&Value::Null), on_delta);
        // `refusal` stands where the content would.
        if let Some(refusal) = message.get("refusal").and_then(Value::as_str) {
            self.take_content(&Value::String(refusal.into()), on_delta);
        }
        let added = self.calls.take(message, is_whole);
        if let Some(runaway) = self.calls_run.push(&added) {
            self.runaway.get_or_insert(runaway);
        }
        self.too_long |= self.bytes() as u64 > self.limit_bytes;
    }

    /// Content is a text, or an array of parts.
    fn take_content(&mut self, content: &Value, on_delta: &mut dyn for<'d> FnMut(Delta<'d>)) {
        match content {
            Value::String(text) => {
                // Before the split, which holds back white space at the beginning.
                if let Some(runaway) = self.text_runs.push(text) {
                    self.runaway.get_or_insert(runaway);
                }
                for piece in self.think.push(text) {
                    self.add(&piece, on_delta);
                }
            }
            Value::Array(parts) => {
                for part in parts {
                    match part.get("type").and_then(Value::as_str) {
                        Some("thinking" | "reasoning") => {
                            let mut text = String::new();
                            collect_text(part, &mut text);
                            self.add_reasoning(&text, on_delta);
                        }
                        _ => self.take_content(part.get("text").unwrap_or(part), on_delta),
                    }
                }
            }
            _ => {}
        }
    }

    fn add(&mut self, piece: &Piece, on_delta: &mut dyn for<'d> FnMut(Delta<'d>)) {
        match piece {
            Piece::Text(text) => {
                self.text.push_str(text);
                on_delta(Delta::Text(text));
            }
            Piece::Reasoning(text) => self.add_reasoning(text, on_delta),
        }
    }

    fn add_reasoning(&mut self, text: &str, on_delta: &mut dyn for<'d> FnMut(Delta<'d>)) {
        self.reasoning.push_str(text);
        if let Some(runaway) = self.reasoning_runs.push(text) {
            self.runaway.get_or_insert(runaway);
        }
        on_delta(Delta::Reasoning(text));
    }

    /// Bytes that the model has written.
    pub(super) fn bytes(&self) -> usize {
        self.text.len() + self.reasoning.len() + self.think.held() + self.calls.bytes()
    }

    /// The model has written something.
    pub(super) fn has_begun(&self) -> bool {
        self.bytes() > 0
    }

    /// The model is finished; at most the use is still to come.
    pub(super) fn is_finished(&self) -> bool {
        self.finish_reason.is_some() || self.is_complete
    }

    /// Nothing good can come any more; the connection is to be closed.
    pub(super) fn must_stop(&self) -> bool {
        self.runaway.is_some() || self.too_long
    }

    /// The use that the server told.
    pub(super) fn told(&self) -> Option<Told> {
        self.told
    }

    /// The tokens that were generated, by estimate.
    pub(super) fn estimate_output(&self) -> u64 {
        estimate_tokens(&self.text) + estimate_tokens(&self.reasoning) + self.calls.estimate()
    }

    /// The finished answer. `new_id` makes up ids for calls that have none.
    pub(super) fn into_completion(
        mut self,
        request: &ChatRequest,
        new_id: &mut dyn FnMut() -> String,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
    ) -> Completion {
        if let Some(piece) = self.think.finish() {
            self.add(&piece, on_delta);
        }
        if let Some((before, after)) = split_lone_close(&self.text) {
            self.reasoning.push_str(before);
            self.text = after.into();
        }
        let usage = self.usage(request);
        let finish = self.finish();
        let calls: Vec<AssistantCall> = self.calls.finish(new_id);
        Completion { text: self.text, reasoning: self.reasoning, calls, finish, usage, retries: 0 }
    }

    fn usage(&self, request: &ChatRequest) -> Usage {
        match self.told {
            Some(told) => Usage {
                prompt: Tokens(told.prompt),
                output: Tokens(told.output),
                cached: Tokens(told.cached),
                calls: 1,
                estimated_calls: 0,
            },
            None => Usage {
                prompt: Tokens(request.estimate_prompt()),
                output: Tokens(self.estimate_output()),
                cached: Tokens(0),
                calls: 1,
                estimated_calls: 1,
            },
        }
    }

    fn finish(&self) -> Finish {
        if self.runaway.is_some() {
            return Finish::Runaway;
        }
        // Some servers say "stop" or "tool_calls" also when the limit cut the answer. Beyond the limit it was another
        // count (reasoning apart) and the word of the server stands.
        let at_limit = self.told.is_some_and(|told| told.output == self.max_tokens);
        if self.too_long || at_limit {
            return Finish::Length;
        }
        match self.finish_reason.as_deref() {
            Some("stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn" | "stop_sequence") => {
                Finish::Stop
            }
            Some("length" | "max_tokens" | "model_length" | "limit") => Finish::Length,
            None if self.is_whole || self.is_closed() => Finish::Stop,
            // Unknown words; and `[DONE]` alone also ends what a proxy has cut.
            Some(_) | None => Finish::Other,
        }
    }
}

impl Answer {
    /// Nothing that was opened is still open.
    fn is_closed(&self) -> bool {
        if self.calls.is_empty() { is_closed(&self.text) } else { self.calls.is_closed() }
    }
}

fn collect_text(value: &Value, text: &mut String) {
    match value {
        Value::Array(parts) => parts.iter().for_each(|part| collect_text(part, text)),
        Value::Object(part) => {
            for key in ["text", "thinking", "reasoning"] {
                match part.get(key) {
                    Some(Value::String(own)) => text.push_str(own),
                    Some(inner) => collect_text(inner, text),
                    None => {}
                }
            }
        }
        _ => {}
    }
}

/// `usage` as OpenAI, `DeepSeek` and Groq write it, else llama.cpp's `timings`.
fn told(event: &Value) -> Option<Told> {
    let number = |value: &Value, pointer: &str| value.pointer(pointer).and_then(Value::as_u64);
    let usage = event.get("usage").or_else(|| event.pointer("/x_groq/usage")).filter(|usage| usage.is_object());
    let from_usage = usage.and_then(|usage| {
        Some(Told {
            prompt: number(usage, "/prompt_tokens")?,
            output: number(usage, "/completion_tokens").unwrap_or(0),
            cached: number(usage, "/prompt_tokens_details/cached_tokens")
                .or_else(|| number(usage, "/prompt_cache_hit_tokens"))
                .unwrap_or(0),
        })
    });
    let from_timings = || {
        let timings = event.get("timings")?;
        let cached = number(timings, "/cache_n").unwrap_or(0);
        Some(Told { prompt: number(timings, "/prompt_n")? + cached, output: number(timings, "/predicted_n")?, cached })
    };
    // Nothing at all is a server that does not count.
    from_usage.filter(|told| told.prompt > 0).or_else(from_timings)
}
