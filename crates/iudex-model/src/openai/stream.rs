//! Reads the body of a response: events as they come, or one JSON document.
//!
//! Chunks may end anywhere, within a character or between CR and LF. Never: an answer from a stream that was cut.

use std::time::Duration;

use reqwest::Response;
use serde_json::Value;
use tokio::time::{Instant, timeout, timeout_at};

use super::answer::Answer;
use super::client::innermost;
use super::refusal::{Said, shortened};
use super::retry::seconds;
use crate::chat::{Delta, Timeouts};

/// The longest line and the largest document that are read, in bytes.
const MOST_BYTES: usize = 64 << 20;
/// How long the use may follow the end of the answer.
const USE_FOLLOWS: Duration = Duration::from_secs(3);
/// How long the end of the response may follow its `[DONE]`.
const END_FOLLOWS: Duration = Duration::from_millis(100);

/// Why a body gave no answer.
#[derive(Debug)]
pub(super) enum Broken {
    /// It ended, stalled or could not be read; another try may help. In words.
    Cut(String),
    /// The server reports an error within the stream.
    Error(Said),
    /// This is no model server.
    NotAnAnswer(String),
}

/// Reads the answer. On failure `answer` holds what had come until then.
pub(super) async fn read(
    mut response: Response,
    timeouts: &Timeouts,
    sent: Instant,
    answer: &mut Answer,
    on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
) -> Result<(), Broken> {
    let is_html = content_type(&response).contains("text/html");
    let mut body = Body::default();
    let mut deadline = sent + timeouts.first_byte;
    loop {
        let chunk = match timeout_at(deadline, response.chunk()).await {
            Ok(Ok(Some(chunk))) => chunk,
            Ok(Ok(None)) => break,
            _ if answer.is_finished() => break,
            Ok(Err(error)) => {
                return Err(Broken::Cut(format!("the connection broke: {}", innermost(&error))));
            }
            Err(_) => return Err(Broken::Cut(stalled(answer.has_begun(), timeouts))),
        };
        let before = answer.bytes();
        body.take(&chunk, answer, on_delta)?;
        if answer.must_stop() {
            // Dropping the response closes the connection, and the server frees its slot.
            return Ok(());
        }
        if answer.is_complete {
            // A response that is read to its end leaves a connection that serves again.
            let _ = timeout(END_FOLLOWS, response.chunk()).await;
            return Ok(());
        }
        if answer.is_finished() {
            deadline = deadline.min(Instant::now() + USE_FOLLOWS);
        } else if body.is_document() || answer.bytes() != before {
            // Comments and empty events are no sign that the model is alive.
            deadline = Instant::now() + timeouts.between_tokens;
        }
    }
    body.end(answer, on_delta, is_html)?;
    if answer.is_finished() || answer.must_stop() {
        Ok(())
    } else {
        Err(Broken::Cut("the stream ended before the answer did".into()))
    }
}

fn stalled(has_begun: bool, timeouts: &Timeouts) -> String {
    if has_begun {
        format!("the answer stalled: nothing for {}", seconds(timeouts.between_tokens))
    } else {
        format!("no answer within {}", seconds(timeouts.first_byte))
    }
}

fn content_type(response: &Response) -> String {
    let value = response.headers().get("content-type").and_then(|value| value.to_str().ok());
    value.unwrap_or_default().to_ascii_lowercase()
}

/// Bytes that are not read yet.
#[derive(Debug, Default)]
struct Body {
    buffer: Vec<u8>,
    kind: Kind,
    /// Data lines that make no JSON yet.
    data: String,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Kind {
    #[default]
    Unknown,
    Events,
    /// One JSON document, although a stream was asked for.
    Document,
}

impl Body {
    fn is_document(&self) -> bool {
        self.kind == Kind::Document
    }

    fn take(
        &mut self,
        chunk: &[u8],
        answer: &mut Answer,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
    ) -> Result<(), Broken> {
        if self.buffer.len() + chunk.len() > MOST_BYTES {
            return Err(Broken::NotAnAnswer("the response is larger than any answer".into()));
        }
        self.buffer.extend_from_slice(chunk);
        if self.kind == Kind::Unknown {
            match self.buffer.iter().find(|byte| !byte.is_ascii_whitespace()) {
                None => return Ok(()),
                Some(b'{' | b'[' | b'<') => self.kind = Kind::Document,
                Some(_) => self.kind = Kind::Events,
            }
        }
        if self.kind == Kind::Document {
            return Ok(());
        }
        let Some(end) = self.buffer.iter().rposition(|byte| *byte == b'\n') else { return Ok(()) };
        let rest = self.buffer.split_off(end + 1);
        let lines = std::mem::replace(&mut self.buffer, rest);
        for line in lines.split(|byte| *byte == b'\n') {
            if answer.is_complete || answer.must_stop() {
                return Ok(());
            }
            self.take_line(line, answer, on_delta)?;
        }
        Ok(())
    }

    fn take_line(
        &mut self,
        line: &[u8],
        answer: &mut Answer,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
    ) -> Result<(), Broken> {
        let line =
            std::str::from_utf8(line).map_err(|_| Broken::Cut("the server sent bytes that are no text".into()))?;
        let line = line.trim_end_matches('\r');
        // llama.cpp wrote errors under a field name of their own.
        let payload = ["data:", "error:"].iter().find_map(|field| line.strip_prefix(field));
        let payload = match payload {
            Some(payload) => payload.strip_prefix(' ').unwrap_or(payload),
            None if line.starts_with('{') => line,
            None if line.is_empty() && !self.data.trim().is_empty() => {
                return Err(Broken::Cut(format!("the server sent what cannot be read: {:?}", shortened(&self.data))));
            }
            // Blank lines, comments, and fields that say nothing about the answer.
            None => return Ok(()),
        };
        if payload.trim() == "[DONE]" {
            answer.is_complete = true;
            return Ok(());
        }
        if !self.data.is_empty() {
            self.data.push('\n');
        }
        self.data.push_str(payload);
        if self.data.trim().is_empty() {
            self.data.clear();
            return Ok(());
        }
        let Ok(event) = serde_json::from_str::<Value>(&self.data) else { return Ok(()) };
        let raw = std::mem::take(&mut self.data);
        take_event(&event, &raw, answer, on_delta)
    }

    /// The body is over.
    fn end(
        mut self,
        answer: &mut Answer,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
        is_html: bool,
    ) -> Result<(), Broken> {
        if answer.is_complete {
            return Ok(());
        }
        let rest = std::mem::take(&mut self.buffer);
        if self.kind != Kind::Document {
            // A last line without its end may still hold `[DONE]` or the last event.
            let result = self.take_line(&rest, answer, on_delta);
            return if answer.is_finished() { Ok(()) } else { result };
        }
        let text = String::from_utf8_lossy(&rest);
        let Ok(document) = serde_json::from_str::<Value>(&text) else {
            if is_html || text.trim_start().starts_with('<') {
                let shown = shortened(text.trim());
                return Err(Broken::NotAnAnswer(format!("it answers with a web page, not as a model server: {shown}")));
            }
            return Err(Broken::Cut("the response ended within its JSON, or is none".into()));
        };
        take_event(&document, &text, answer, on_delta)?;
        if document.get("choices").is_none() {
            return Err(Broken::NotAnAnswer(format!("it answers without choices: {}", shortened(text.trim()))));
        }
        answer.is_complete = true;
        Ok(())
    }
}

fn take_event(
    event: &Value,
    raw: &str,
    answer: &mut Answer,
    on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
) -> Result<(), Broken> {
    let has_choices = event.get("choices").is_some_and(|choices| !choices.is_null());
    let is_error = event.get("error").is_some_and(|error| !error.is_null())
        || !has_choices && event.get("message").is_some_and(Value::is_string) && event.get("usage").is_none();
    if is_error {
        return Err(Broken::Error(Said::from_value(event, raw)));
    }
    answer.take(event, on_delta);
    Ok(())
}
