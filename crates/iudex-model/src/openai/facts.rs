//! What is known about a model: name, place, size, and the window, asked from whatever kind of server it is.
//!
//! Never: the length that a model was trained with taken for the window that a server gives it.

use std::time::Duration;

use reqwest::RequestBuilder;
use serde_json::{Value, json};

use super::client::Wire;
use super::locality;
use crate::chat::{ChatRequest, ModelFacts, Price};

/// The source of a window that was not asked for yet.
pub(super) const UNASKED: &str = "unasked";
/// Windows that are assumed when nobody says.
const ASSUMED_LOCAL: u64 = 4096;
const ASSUMED_REMOTE: u64 = 32_768;
/// What Ollama uses when nothing else is set.
const OLLAMA_DEFAULT: u64 = 4096;
/// How long one of these questions may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// The largest answer to such a question, in bytes.
const MOST_BYTES: usize = 8 << 20;

/// What address and name alone tell.
pub(super) fn assumed(base_url: &str, model: &str, host: &str, price: Option<Price>) -> ModelFacts {
    let is_local = locality::is_local(host);
    ModelFacts {
        name: model.into(),
        address: base_url.trim_end_matches('/').into(),
        window: if is_local { ASSUMED_LOCAL } else { ASSUMED_REMOTE },
        window_source: UNASKED.into(),
        is_local,
        is_small: locality::is_small(model, is_local),
        enforces_schema: false,
        price,
    }
}

/// The window and where it comes from.
pub(super) async fn window(wire: &Wire, facts: &ModelFacts) -> (u64, String) {
    let assumed = (facts.window, "assumed".to_owned());
    let name = facts.name.as_str();
    let models = async { from_models(&json_of(wire.get("/models")).await?, name) };
    let (props, models) = tokio::join!(props(wire), models);
    if let Some(found) = told(props, "/props").or_else(|| told(models, "/v1/models")) {
        return found;
    }
    let (lm_studio, ollama) = tokio::join!(lm_studio(wire, name), ollama(wire, name));
    told(lm_studio, "/api/v0/models").or(ollama).unwrap_or(assumed)
}

fn told(window: Option<u64>, source: &str) -> Option<(u64, String)> {
    window.filter(|window| *window > 0).map(|window| (window, source.to_owned()))
}

/// llama.cpp: the window of a slot.
async fn props(wire: &Wire) -> Option<u64> {
    let props = json_of(wire.get_at_root("/props")).await?;
    props.pointer("/default_generation_settings/n_ctx").or_else(|| props.get("n_ctx"))?.as_u64()
}

/// vLLM (`max_model_len`), llama.cpp of late (`meta.n_ctx`), and hosted servers. `n_ctx_train` is not the window.
fn from_models(models: &Value, name: &str) -> Option<u64> {
    // A server with a single model answers whatever the name.
    let all = models.get("data")?.as_array()?;
    let model = entry(models, name).or_else(|| all.first().filter(|_| all.len() == 1))?;
    let places = ["/max_model_len", "/meta/n_ctx", "/context_length", "/context_window", "/max_context_length"];
    places.iter().find_map(|place| model.pointer(place).and_then(Value::as_u64))
}

/// LM Studio: the window that the model was loaded with; its largest possible one says nothing.
async fn lm_studio(wire: &Wire, name: &str) -> Option<u64> {
    let models = json_of(wire.get_at_root("/api/v0/models")).await?;
    entry(&models, name)?.get("loaded_context_length")?.as_u64()
}

/// Ollama: what is loaded now, else the model's own `num_ctx`, else the server's default.
async fn ollama(wire: &Wire, name: &str) -> Option<(u64, String)> {
    let show = json_of(wire.post_at_root("/api/show", json!({"model": name}).to_string())).await?;
    if show.get("details").is_none() && show.get("model_info").is_none() && show.get("parameters").is_none() {
        return None;
    }
    if let Some(loaded) = json_of(wire.get_at_root("/api/ps")).await {
        let window = entry(&loaded, name).and_then(|model| model.get("context_length")?.as_u64());
        if let Some(found) = told(window, "/api/ps") {
            return Some(found);
        }
    }
    let parameters = show.get("parameters").and_then(Value::as_str).unwrap_or_default();
    let num_ctx = parameters.lines().find_map(|line| line.trim().strip_prefix("num_ctx")?.trim().parse().ok());
    told(num_ctx, "/api/show").or_else(|| {
        // Set for the server; on the same machine it is often set for us as well.
        let from_environment = std::env::var("OLLAMA_CONTEXT_LENGTH").ok().and_then(|value| value.trim().parse().ok());
        told(from_environment, "OLLAMA_CONTEXT_LENGTH").or_else(|| told(Some(OLLAMA_DEFAULT), "Ollama's default"))
    })
}

/// The model of this name in a list (`data` or `models`).
fn entry<'a>(list: &'a Value, name: &str) -> Option<&'a Value> {
    let models = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let bare = |name: &str| name.strip_suffix(":latest").unwrap_or(name).to_owned();
    let is_it = |model: &&Value| {
        let named = |key: &str| model.get(key).and_then(Value::as_str).is_some_and(|own| bare(own) == bare(name));
        let aliased = model.get("aliases").and_then(Value::as_array).is_some_and(|all| all.contains(&json!(name)));
        named("id") || named("name") || named("model") || aliased
    };
    models.iter().find(is_it)
}

/// The JSON of a question that may well go unanswered.
pub(crate) async fn json_of(request: Result<RequestBuilder, crate::chat::ModelError>) -> Option<Value> {
    let request = request.ok()?;
    let reading = async {
        let mut response = request.send().await.ok()?;
        if !response.status().is_success() {
            return None;
        }
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.ok()? {
            body.extend_from_slice(&chunk);
            if body.len() > MOST_BYTES {
                return None;
            }
        }
        serde_json::from_slice(&body).ok()
    };
    tokio::time::timeout(PATIENCE, reading).await.ok()?
}

/// The fewest tokens that the texts of a request can have: no tokenizer puts more than eight bytes of ordinary text
/// into one token on average, white space left out because runs of it are cheap.
pub(super) fn fewest_tokens(request: &ChatRequest) -> u64 {
    let bytes = |text: &str| text.bytes().filter(|byte| !byte.is_ascii_whitespace()).count() as u64;
    request.messages.iter().map(|message| bytes(message.text())).sum::<u64>() / 8
}
