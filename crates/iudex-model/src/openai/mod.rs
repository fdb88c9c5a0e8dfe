//! The OpenAI-compatible chat completions wire.
//!
//! A request goes out as a stream, is sent again while that can help, and what comes back is put together whatever the
//! server's dialect. Never: an answer out of a response that was cut, a key in a message, a wait without an end.

mod answer;
mod calls;
pub(crate) mod client;
mod facts;
pub(crate) mod locality;
mod probe;
mod refusal;
mod request;
mod retry;
mod stream;
mod think;

pub(crate) use self::facts::json_of;

use std::cell::Cell;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use iudex_core::{Tokens, Usage};
use reqwest::{Response, StatusCode};
use tokio::time::{Instant, timeout_at};

use self::answer::Answer;
use self::client::{Wire, chain, innermost};
use self::refusal::Said;
use self::request::Dialect;
use self::retry::{Again, Retries, retry_after, seconds};
use self::stream::Broken;
use crate::chat::{ChatModel, ChatRequest, Completion, Delta, ModelError, ModelFacts, Price, Timeouts};

/// The source of a window that the settings give.
const CONFIGURED: &str = "configuration";
/// How a cause begins when nobody answered at the address.
const CANNOT_CONNECT: &str = "cannot connect";
/// The most of an error's body that is read, in bytes.
const ERROR_BYTES: usize = 256 << 10;

/// How to reach a model.
#[derive(Clone)]
pub struct OpenAiSettings {
    /// The base, up to and with `/v1`.
    pub base_url: String,
    /// The model's name.
    pub model: String,
    /// The key, sent as a bearer token; never logged.
    pub api_key: Option<String>,
    /// The window from the configuration; it wins over what the server says.
    pub window: Option<u64>,
    /// The price from the configuration.
    pub price: Option<Price>,
    /// Times.
    pub timeouts: Timeouts,
    /// A PEM file with further certificate authorities.
    pub ca_file: Option<PathBuf>,
    /// Facts remembered from an earlier run for this server and model; given, nothing is asked.
    pub remembered: Option<ModelFacts>,
}

impl std::fmt::Debug for OpenAiSettings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OpenAiSettings")
            .field("base_url", &self.base_url)
            .field("model", &self.model)
            .field("api_key", &self.api_key.as_ref().map(|_| "***"))
            .field("window", &self.window)
            .field("price", &self.price)
            .field("timeouts", &self.timeouts)
            .field("ca_file", &self.ca_file)
            .field("remembered", &self.remembered)
            .finish()
    }
}

/// A model behind the wire.
#[derive(Debug)]
pub struct OpenAiModel {
    wire: Wire,
    timeouts: Timeouts,
    facts: ModelFacts,
    dialect: Cell<Dialect>,
    made_up_ids: Cell<u64>,
}

/// Why one try gave no answer.
enum Failure {
    /// Another try may help.
    Again(Again),
    /// The server says no, with this status.
    No { status: u16, said: Said },
    /// Nothing can help.
    Final(ModelError),
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        Self::Final(error)
    }
}

/// An error, with the status that the server gave when it refused.
struct Refusal {
    error: ModelError,
    status: Option<u16>,
}

impl From<ModelError> for Refusal {
    fn from(error: ModelError) -> Self {
        Self { error, status: None }
    }
}

impl OpenAiModel {
    /// Opens the model: asks for the window and probes whether the schema is enforced, unless remembered.
    ///
    /// # Errors
    /// [`ModelError::Refused`] for a base URL, certificate file, key or model that is not taken;
    /// [`ModelError::Unavailable`] when the server does not answer, after retries.
    pub async fn open(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let timeouts = settings.timeouts;
        let wire = Wire::new(&settings.base_url, settings.api_key, settings.ca_file, timeouts.connect)?;
        let facts = match settings.remembered {
            Some(remembered) => ModelFacts { price: settings.price.or(remembered.price), ..remembered },
            None => facts::assumed(&settings.base_url, &settings.model, wire.host(), settings.price),
        };
        let is_remembered = facts.window_source != facts::UNASKED;
        // A window that only the configuration gave is not one that the server told.
        let knows_window = is_remembered && facts.window_source != CONFIGURED;
        let dialect = Cell::new(Dialect::default());
        let mut model = Self { wire, timeouts, facts, dialect, made_up_ids: Cell::new(0) };
        if !is_remembered {
            // First the chat, with all patience: a server that still reads its weights answers nothing else either.
            model.facts.enforces_schema = probe::enforces_schema(&model).await?;
        }
        if let Some(window) = settings.window {
            model.facts.window = window;
            model.facts.window_source = CONFIGURED.into();
        } else if !knows_window {
            let found = facts::window(&model.wire, &model.facts).await;
            (model.facts.window, model.facts.window_source) = found;
        }
        Ok(model)
    }

    /// Sends the request until there is an answer or no hope.
    async fn ask(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
    ) -> Result<Completion, Refusal> {
        let mut lost = Usage::default();
        match self.ask_until_answered(request, on_delta, &mut lost).await {
            Ok(mut completion) => {
                completion.usage = completion.usage.plus(lost);
                Ok(completion)
            }
            Err(refusal) => {
                if lost != Usage::default() {
                    on_delta(Delta::Lost(lost));
                }
                Err(refusal)
            }
        }
    }

    /// `lost` is what tries used that gave no answer.
    async fn ask_until_answered(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
        lost: &mut Usage,
    ) -> Result<Completion, Refusal> {
        let mut retries = Retries::new(self.timeouts);
        loop {
            match self.try_once(request, on_delta, lost).await {
                Ok(mut completion) => {
                    completion.retries = retries.count;
                    if let Err(overflow) = self.notice_silent_truncation(request, &completion) {
                        *lost = lost.plus(completion.usage);
                        return Err(overflow.into());
                    }
                    return Ok(completion);
                }
                Err(Failure::Again(again)) => {
                    let wait = retries.wait_after(&again).map_err(|cause| {
                        let hint = if cause.starts_with(CANNOT_CONNECT) { "; is the server running?" } else { "" };
                        ModelError::Unavailable(self.at(&format!("{cause}{hint}")))
                    })?;
                    on_delta(Delta::Waiting(&self.wire.masked(&format!("{}, waiting {}", again.cause, seconds(wait)))));
                    tokio::time::sleep(wait).await;
                }
                Err(Failure::No { status, said }) => {
                    if let Some(error) = said.overflow().or_else(|| said.format_refused(status, request)) {
                        return Err(self.masked(error).into());
                    }
                    let dialect = self.dialect.get();
                    let simpler = dialect.with_simpler_roles(&said.message);
                    match simpler.or_else(|| dialect.without_what_is_refused(&said.message)) {
                        Some(next) if simpler.is_some() || matches!(status, 400 | 422 | 501) => self.dialect.set(next),
                        _ => return Err(Refusal { error: self.refused(status, &said), status: Some(status) }),
                    }
                }
                Err(Failure::Final(error)) => return Err(error.into()),
            }
        }
    }

    /// One try.
    async fn try_once(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'d> FnMut(Delta<'d>),
        lost: &mut Usage,
    ) -> Result<Completion, Failure> {
        let body = request::body(&self.facts.name, request, self.dialect.get());
        let sending = self.wire.post("/chat/completions", body)?;
        let sent = Instant::now();
        let response = match timeout_at(sent + self.timeouts.first_byte, sending.send()).await {
            Ok(Ok(response)) => response,
            Ok(Err(error)) => return Err(not_sent(error)),
            Err(_) => {
                return Err(Failure::Again(Again::new(format!(
                    "no answer within {}",
                    seconds(self.timeouts.first_byte)
                ))));
            }
        };
        if !response.status().is_success() {
            return Err(self.read_failure(response, request).await);
        }
        let mut answer = Answer::new(request);
        match stream::read(response, &self.timeouts, sent, &mut answer, on_delta).await {
            Ok(()) => Ok(answer.into_completion(request, &mut || self.new_id(), on_delta)),
            Err(broken) => {
                if answer.has_begun() {
                    // What was generated before the cut is paid for all the same.
                    let told = answer.told();
                    *lost = lost.plus(Usage {
                        prompt: Tokens(told.map_or_else(|| request.estimate_prompt(), |told| told.prompt)),
                        output: Tokens(answer.estimate_output()),
                        cached: Tokens(0),
                        calls: 1,
                        estimated_calls: 1,
                    });
                }
                Err(match broken {
                    Broken::Cut(cause) => Failure::Again(Again::new(cause)),
                    Broken::Error(said) => Self::judge(said.status(), said, None, request),
                    Broken::NotAnAnswer(problem) => Failure::Final(ModelError::Refused(self.at(&problem))),
                })
            }
        }
    }

    /// What a status that is no success means.
    async fn read_failure(&self, mut response: Response, request: &ChatRequest) -> Failure {
        let status = response.status();
        let after = retry_after(response.headers(), SystemTime::now());
        if status.is_redirection() {
            let target =
                response.headers().get("location").and_then(|value| value.to_str().ok()).unwrap_or("elsewhere");
            let message = format!("{status}: the server redirects to {target}; give that address as the base URL");
            return Failure::Final(ModelError::Refused(self.at(&message)));
        }
        let deadline = Instant::now() + self.timeouts.between_tokens;
        let mut body = Vec::new();
        while let Ok(Ok(Some(chunk))) = timeout_at(deadline, response.chunk()).await {
            body.extend_from_slice(&chunk);
            if body.len() >= ERROR_BYTES {
                break;
            }
        }
        let said = Said::from_body(&String::from_utf8_lossy(&body));
        Self::judge(status.as_u16(), said, after, request)
    }

    /// Whether trying again can mend what the server said.
    fn judge(status: u16, said: Said, after: Option<Duration>, request: &ChatRequest) -> Failure {
        let is_transient = matches!(status, 408 | 425 | 429 | 500..=599) && status != 501;
        // A full window or a refused format stays what it is, whatever status it comes with.
        let is_settled = said.is_out_of_money()
            || status != 429
                && (said.overflow().is_some()
                    || said.format_refused(status, request).is_some()
                    || said.is_about_roles());
        if !is_transient || is_settled {
            return Failure::No { status, said };
        }
        let words = if said.message.is_empty() { reason(status) } else { format!(": {}", said.message) };
        Failure::Again(Again {
            cause: format!("{status} from the server{words}"),
            after,
            is_starting: status == 503 && said.is_starting(),
        })
    }

    fn refused(&self, status: u16, said: &Said) -> ModelError {
        let hint = match status {
            401 | 403 => " (is the key right?)",
            404 => " (are the base URL and the model's name right?)",
            _ => "",
        };
        let words = if said.message.is_empty() { reason(status) } else { format!(": {}", said.message) };
        ModelError::Refused(self.at(&format!("{status}{words}{hint}")))
    }

    /// The text with the address before it and the key masked.
    fn at(&self, text: &str) -> String {
        self.wire.masked(&format!("{}: {text}", self.facts.address))
    }

    fn masked(&self, error: ModelError) -> ModelError {
        match error {
            ModelError::Overflow { message, window, prompt } => {
                ModelError::Overflow { message: self.wire.masked(&message), window, prompt }
            }
            ModelError::FormatRefused(message) => ModelError::FormatRefused(self.wire.masked(&message)),
            other => other,
        }
    }

    /// Ollama and LM Studio drop a part of a prompt that is too long and answer without a word about it.
    ///
    /// Two signs are sure enough: the prompt that was read fills the window to the last token, which leaves no room for
    /// the answer that came; or even the fewest tokens that the text can have are more than the window, and the server
    /// read no more than the window. Everything between is left alone: an estimate is no proof.
    fn notice_silent_truncation(&self, request: &ChatRequest, completion: &Completion) -> Result<(), ModelError> {
        if completion.usage.estimated_calls > 0 {
            return Ok(());
        }
        let (window, read) = (self.facts.window, completion.usage.prompt.0);
        let fewest = facts::fewest_tokens(request);
        if read == window || fewest > window && read <= window {
            let message = format!(
                "{} read {read} tokens of a longer prompt and left out the rest without a word (window {window})",
                self.facts.address
            );
            return Err(ModelError::Overflow { message, window: Some(window), prompt: None });
        }
        Ok(())
    }

    fn new_id(&self) -> String {
        let number = self.made_up_ids.get() + 1;
        self.made_up_ids.set(number);
        format!("call_{number}")
    }
}

/// What a server says in the body of an error.
pub(crate) fn words_of_error(body: &str) -> String {
    Said::from_body(body).message
}

/// The standard words for a status, when the server has none.
fn reason(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(String::new, |reason| format!(" {reason}"))
}

/// Why the request did not get through.
fn not_sent(error: reqwest::Error) -> Failure {
    if error.is_builder() {
        return Failure::Final(ModelError::Refused(format!(
            "the request cannot be sent: {}",
            chain(&error.without_url())
        )));
    }
    let cause = innermost(&error);
    if cause.contains("certificate") {
        let hint = "name the authority with ca_file, SSL_CERT_FILE or SSL_CERT_DIR";
        return Failure::Final(ModelError::Refused(format!("the server is not trusted: {cause}; {hint}")));
    }
    let what = if error.is_connect() { CANNOT_CONNECT } else { "the connection broke" };
    Failure::Again(Again::new(format!("{what}: {cause}")))
}

#[async_trait(?Send)]
impl ChatModel for OpenAiModel {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'delta> FnMut(Delta<'delta>),
    ) -> Result<Completion, ModelError> {
        self.ask(request, on_delta).await.map_err(|refusal| refusal.error)
    }
}
