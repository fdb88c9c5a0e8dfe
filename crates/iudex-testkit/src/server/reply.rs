//! What the test server answers, and what goes wrong with it.
//!
//! Never: chance. The same reply gives the same bytes.

use std::time::Duration;

use serde_json::{Value, json};

/// One scripted answer to a chat request.
///
/// ```
/// use iudex_testkit::server::Reply;
/// let honest = Reply::text("hello").usage(10, 2);
/// let cut = Reply::text("hello").cut_after("hell");
/// let busy = Reply::status(429, "slow down").header("retry-after", "1");
/// ```
#[derive(Debug, Clone)]
pub struct Reply {
    pub(super) kind: Kind,
    pub(super) headers: Vec<(String, String)>,
    pub(super) fault: Fault,
    pub(super) split: Split,
    pub(super) delay: Duration,
    pub(super) whole: bool,
    pub(super) close_delimited: bool,
    crlf: bool,
    without_done: bool,
    without_finish: bool,
    reasoning: String,
    finish: String,
    usage: Option<Value>,
}

#[derive(Debug, Clone)]
pub(super) enum Kind {
    /// Text and native calls.
    Message { text: String, calls: Value },
    /// The data of these events, as they are.
    Events(Vec<String>),
    /// Body bytes, as they are, with their content type.
    Raw { content_type: String, body: Vec<u8> },
    /// An error status with a body.
    Status { code: u16, body: Vec<u8> },
    /// This text as a delta, again and again, until the client hangs up.
    Endless(String),
    /// The connection is reset before any answer.
    Reset,
}

/// Where the answer goes wrong.
#[derive(Debug, Clone)]
pub(super) enum Fault {
    None,
    /// Nothing comes at all.
    StallFirst,
    /// The head comes, no body.
    StallAfterHead,
    StallAt(Place),
    CutAt(Place),
}

#[derive(Debug, Clone)]
pub(super) enum Place {
    Byte(usize),
    After(String),
}

/// How the body is cut into chunks.
#[derive(Debug, Clone, Copy)]
pub(super) enum Split {
    /// A chunk an event.
    Events,
    /// Two chunks.
    At(usize),
    /// Chunks of so many bytes.
    Every(usize),
}

impl Reply {
    fn new(kind: Kind) -> Self {
        Self {
            kind,
            headers: Vec::new(),
            fault: Fault::None,
            split: Split::Events,
            delay: Duration::ZERO,
            whole: false,
            close_delimited: false,
            crlf: false,
            without_done: false,
            without_finish: false,
            reasoning: String::new(),
            finish: "stop".into(),
            usage: Some(json!({"prompt_tokens": 10, "completion_tokens": 5, "total_tokens": 15})),
        }
    }

    /// An answer with this text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::new(Kind::Message { text: text.into(), calls: Value::Null })
    }

    /// An answer whose text is this JSON (one action of the json format).
    pub fn action(action: &Value) -> Self {
        Self::text(action.to_string())
    }

    /// An answer with these native calls: `tool_calls` exactly as given, in one delta.
    pub fn calls(tool_calls: Value) -> Self {
        Self::new(Kind::Message { text: String::new(), calls: tool_calls }).finish("tool_calls")
    }

    /// A stream of these events; each is the text after `data: `. No `[DONE]` is added.
    pub fn events<S: Into<String>>(events: impl IntoIterator<Item = S>) -> Self {
        Self::new(Kind::Events(events.into_iter().map(Into::into).collect()))
    }

    /// A body of exactly these bytes.
    pub fn raw(content_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self::new(Kind::Raw { content_type: content_type.into(), body: body.into() })
    }

    /// One JSON document with status 200, whatever was asked for.
    pub fn json(body: &Value) -> Self {
        Self::raw("application/json", body.to_string())
    }

    /// An error with this status and `{"error": {"message": …}}`.
    pub fn status(code: u16, message: &str) -> Self {
        Self::status_json(code, &json!({"error": {"message": message, "code": code}}))
    }

    /// An error with this status and body.
    pub fn status_json(code: u16, body: &Value) -> Self {
        Self::new(Kind::Status { code, body: body.to_string().into() })
    }

    /// This text as a delta again and again until the client hangs up.
    pub fn endless(text: &str) -> Self {
        Self::new(Kind::Endless(text.into()))
    }

    /// The connection is reset without an answer.
    pub fn reset() -> Self {
        Self::new(Kind::Reset)
    }

    /// With a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    /// With reasoning before the text.
    #[must_use]
    pub fn reasoning(mut self, text: &str) -> Self {
        self.reasoning = text.into();
        self
    }

    /// With this `finish_reason`.
    #[must_use]
    pub fn finish(mut self, reason: &str) -> Self {
        self.finish = reason.into();
        self
    }

    /// With this use of tokens.
    #[must_use]
    pub fn usage(mut self, prompt: u64, output: u64) -> Self {
        let total = prompt + output;
        self.usage = Some(json!({"prompt_tokens": prompt, "completion_tokens": output, "total_tokens": total}));
        self
    }

    /// With this `usage` object.
    #[must_use]
    pub fn usage_json(mut self, usage: Value) -> Self {
        self.usage = Some(usage);
        self
    }

    /// Without any word about use.
    #[must_use]
    pub fn without_usage(mut self) -> Self {
        self.usage = None;
        self
    }

    /// The stream ends without `[DONE]`.
    #[must_use]
    pub fn without_done(mut self) -> Self {
        self.without_done = true;
        self
    }

    /// No `finish_reason` comes.
    #[must_use]
    pub fn without_finish(mut self) -> Self {
        self.without_finish = true;
        self
    }

    /// Lines end with CR and LF.
    #[must_use]
    pub fn crlf(mut self) -> Self {
        self.crlf = true;
        self
    }

    /// As one JSON document, although a stream was asked for.
    #[must_use]
    pub fn whole(mut self) -> Self {
        self.whole = true;
        self
    }

    /// The body ends with the connection, without length or chunks: a cut cannot be told from the end.
    #[must_use]
    pub fn close_delimited(mut self) -> Self {
        self.close_delimited = true;
        self
    }

    /// Waits before the answer.
    #[must_use]
    pub fn delay(mut self, delay: Duration) -> Self {
        self.delay = delay;
        self
    }

    /// Nothing comes, not even a status, until the client hangs up.
    #[must_use]
    pub fn stall_first(mut self) -> Self {
        self.fault = Fault::StallFirst;
        self
    }

    /// Status and headers come, then nothing.
    #[must_use]
    pub fn stall_after_head(mut self) -> Self {
        self.fault = Fault::StallAfterHead;
        self
    }

    /// Nothing comes after this many bytes of the body.
    #[must_use]
    pub fn stall_at(mut self, byte: usize) -> Self {
        self.fault = Fault::StallAt(Place::Byte(byte));
        self
    }

    /// Nothing comes after this text in the body (texts come in pieces of four characters; a text that is not in the
    /// body is status 400).
    #[must_use]
    pub fn stall_after(mut self, text: &str) -> Self {
        self.fault = Fault::StallAt(Place::After(text.into()));
        self
    }

    /// The connection is closed after this many bytes of the body.
    #[must_use]
    pub fn cut_at(mut self, byte: usize) -> Self {
        self.fault = Fault::CutAt(Place::Byte(byte));
        self
    }

    /// The connection is closed after this text in the body (see [`Reply::stall_after`]).
    #[must_use]
    pub fn cut_after(mut self, text: &str) -> Self {
        self.fault = Fault::CutAt(Place::After(text.into()));
        self
    }

    /// The body comes in two chunks with the border at this byte.
    #[must_use]
    pub fn split_at(mut self, byte: usize) -> Self {
        self.split = Split::At(byte);
        self
    }

    /// The body comes in chunks of this many bytes.
    #[must_use]
    pub fn split_every(mut self, bytes: usize) -> Self {
        self.split = Split::Every(bytes.max(1));
        self
    }

    /// The bytes of the body as a stream, to know where it can be split.
    pub fn body(&self) -> Vec<u8> {
        self.events_of_stream().concat()
    }

    pub(super) fn events_of_stream(&self) -> Vec<Vec<u8>> {
        let end = if self.crlf { "\r\n\r\n" } else { "\n\n" };
        let event = |data: &str| format!("data: {data}{end}").into_bytes();
        match &self.kind {
            Kind::Message { text, calls } => self.deltas(text, calls).iter().map(|data| event(data)).collect(),
            Kind::Events(events) => events.iter().map(|data| event(data)).collect(),
            Kind::Raw { body, .. } | Kind::Status { body, .. } => vec![body.clone()],
            Kind::Endless(text) => vec![event(&chunk(&json!({"content": text}), None).to_string())],
            Kind::Reset => Vec::new(),
        }
    }

    /// The data of each event of a message.
    fn deltas(&self, text: &str, calls: &Value) -> Vec<String> {
        let mut data = vec![chunk(&json!({"role": "assistant", "content": null}), None)];
        for piece in pieces(&self.reasoning) {
            data.push(chunk(&json!({"reasoning_content": piece}), None));
        }
        for piece in pieces(text) {
            data.push(chunk(&json!({"content": piece}), None));
        }
        if !calls.is_null() {
            data.push(chunk(&json!({"tool_calls": calls}), None));
        }
        if !self.without_finish {
            data.push(chunk(&json!({}), Some(&self.finish)));
        }
        if let Some(usage) = &self.usage {
            data.push(json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}));
        }
        let mut data: Vec<String> = data.iter().map(Value::to_string).collect();
        if !self.without_done {
            data.push("[DONE]".into());
        }
        data
    }

    /// The answer as one document.
    pub(super) fn document(&self) -> Vec<u8> {
        let Kind::Message { text, calls } = &self.kind else { return self.body() };
        let mut message = json!({"role": "assistant", "content": text});
        if !calls.is_null() {
            message["tool_calls"] = calls.clone();
        }
        if !self.reasoning.is_empty() {
            message["reasoning_content"] = json!(self.reasoning);
        }
        let mut choice = json!({"index": 0, "message": message});
        if !self.without_finish {
            choice["finish_reason"] = json!(self.finish);
        }
        let mut document = json!({"id": "chatcmpl-1", "object": "chat.completion", "choices": [choice]});
        if let Some(usage) = &self.usage {
            document["usage"] = usage.clone();
        }
        document.to_string().into()
    }
}

fn chunk(delta: &Value, finish: Option<&str>) -> Value {
    json!({"id": "chatcmpl-1", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})
}

/// Pieces of four characters, about a token each.
fn pieces(text: &str) -> Vec<String> {
    let characters: Vec<char> = text.chars().collect();
    characters.chunks(4).map(|piece| piece.iter().collect()).collect()
}
