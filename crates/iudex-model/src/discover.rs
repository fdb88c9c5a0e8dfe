//! Finds model servers on the usual ports of this machine.
//!
//! Never: anything beyond loopback, and never more than a second for a port.

use std::path::Path;
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::Value;

use crate::chat::ModelError;
use crate::openai::client::{Wire, innermost};
use crate::openai::{json_of, words_of_error};

/// The ports of llama.cpp, Ollama, LM Studio and vLLM.
pub const USUAL_PORTS: [u16; 4] = [8080, 11434, 1234, 8000];
/// The kind of a server that does not tell.
const UNTOLD: &str = "OpenAI-compatible";
const PATIENCE: Duration = Duration::from_secs(1);

/// A server that answered, with its chat models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `llama.cpp`, `Ollama`, `LM Studio`, `vLLM`, or `OpenAI-compatible` when it does not tell.
    pub kind: String,
    /// The base, up to and with `/v1`.
    pub base_url: String,
    /// Names of chat models (embedding models left out).
    pub models: Vec<String>,
}

/// Asks the usual ports at once, each for at most a second. `ports` overrides them (tests, doctor).
pub async fn discover(ports: Option<&[u16]>) -> Vec<Found> {
    let asked = ports
        .unwrap_or(&USUAL_PORTS)
        .iter()
        .map(|port| async move { tokio::time::timeout(PATIENCE, ask(*port)).await.ok().flatten() });
    join_all(asked).await.into_iter().flatten().collect()
}

async fn ask(port: u16) -> Option<Found> {
    let base_url = format!("http://127.0.0.1:{port}/v1");
    let wire = Wire::new(&base_url, None, None, PATIENCE).ok()?;
    let list = json_of(wire.get("/models")).await?;
    let entries = list.get("data").or_else(|| list.get("models"))?.as_array()?;
    let owner = entries.iter().find_map(|entry| entry.get("owned_by").and_then(Value::as_str)).unwrap_or_default();
    let kind = match kind_by_owner(owner) {
        Some(kind) => kind,
        None => tokio::time::timeout(PATIENCE / 2, kind_by_answers(&wire)).await.unwrap_or(UNTOLD),
    };
    let mut models: Vec<String> = entries.iter().filter_map(name_of).filter(|name| is_chat(name)).collect();
    if kind == "LM Studio" {
        let types =
            tokio::time::timeout(PATIENCE / 4, json_of(wire.get_at_root("/api/v0/models"))).await.ok().flatten();
        let entries = types.as_ref().and_then(|types| types.get("data")?.as_array());
        let others: Vec<String> =
            entries.into_iter().flatten().filter(|entry| !is_chat_type(entry)).filter_map(name_of).collect();
        models.retain(|model| !others.contains(model));
    }
    Some(Found { kind: kind.into(), base_url, models })
}

/// The chat models of one server.
///
/// # Errors
/// [`ModelError::Refused`] in the server's own words when it refuses (a wrong key); [`ModelError::Unavailable`] when it
/// does not answer within ten seconds or not with a list of models.
pub async fn list_models(
    base_url: &str,
    api_key: Option<&str>,
    ca_file: Option<&Path>,
) -> Result<Vec<String>, ModelError> {
    const LONG_PATIENCE: Duration = Duration::from_secs(10);
    let wire = Wire::new(base_url, api_key.map(str::to_owned), ca_file.map(Path::to_path_buf), LONG_PATIENCE)?;
    let list = tokio::time::timeout(LONG_PATIENCE, whole_answer(&wire, "/models"))
        .await
        .map_err(|_| ModelError::Unavailable(format!("{base_url}/models: no answer within 10 s")))?
        .map_err(|refused| match refused {
            ModelError::Unavailable(cause) => ModelError::Unavailable(format!("{base_url}/models: {cause}")),
            ModelError::Refused(words) => ModelError::Refused(format!("{base_url}/models: {words}")),
            other => other,
        })?;
    let entries = list.get("data").or_else(|| list.get("models")).and_then(Value::as_array);
    let Some(entries) = entries else {
        return Err(ModelError::Unavailable(format!("{base_url}/models does not answer with a list of models")));
    };
    Ok(entries.iter().filter_map(name_of).filter(|name| is_chat(name)).collect())
}

/// The JSON of an answer (null when it is none), or why there is none.
async fn whole_answer(wire: &Wire, path: &str) -> Result<Value, ModelError> {
    const MOST_BYTES: usize = 8 << 20;
    let cut = |error: &reqwest::Error| ModelError::Unavailable(innermost(error));
    let mut response = wire.get(path)?.send().await.map_err(|error| cut(&error))?;
    let status = response.status();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| cut(&error))? {
        body.extend_from_slice(&chunk);
        if body.len() > MOST_BYTES {
            return Err(ModelError::Unavailable("the answer is larger than any list of models".to_owned()));
        }
    }
    if status.is_success() {
        return Ok(serde_json::from_slice(&body).unwrap_or_default());
    }
    let words = wire.masked(&format!("{status}: {}", words_of_error(&String::from_utf8_lossy(&body))));
    Err(if status.is_client_error() { ModelError::Refused(words) } else { ModelError::Unavailable(words) })
}

fn name_of(entry: &Value) -> Option<String> {
    ["id", "name", "model"].iter().find_map(|key| entry.get(key)?.as_str().map(str::to_owned))
}

fn kind_by_owner(owner: &str) -> Option<&'static str> {
    match owner {
        "llamacpp" => Some("llama.cpp"),
        "library" => Some("Ollama"),
        "vllm" => Some("vLLM"),
        "organization_owner" | "organization-owner" => Some("LM Studio"),
        _ => None,
    }
}

/// Asked when the list of models does not tell.
async fn kind_by_answers(wire: &Wire) -> &'static str {
    let (props, version, lm_studio) = tokio::join!(
        json_of(wire.get_at_root("/props")),
        json_of(wire.get_at_root("/api/version")),
        json_of(wire.get_at_root("/api/v0/models"))
    );
    if props.is_some_and(|props| props.get("default_generation_settings").is_some()) {
        "llama.cpp"
    } else if lm_studio.is_some_and(|models| models.get("data").is_some()) {
        "LM Studio"
    } else if version.is_some_and(|version| version.get("version").is_some()) {
        "Ollama"
    } else {
        UNTOLD
    }
}

/// LM Studio tells the type: `llm` and `vlm` chat.
fn is_chat_type(entry: &Value) -> bool {
    entry.get("type").and_then(Value::as_str).is_none_or(|kind| matches!(kind, "llm" | "vlm"))
}

/// Models that embed, rank, hear or speak have it in their names.
fn is_chat(name: &str) -> bool {
    const OTHERS: [&str; 12] =
        ["embed", "rerank", "bge-", "gte-", "e5-", "minilm", "whisper", "-tts", "tts-", "clip", "colbert", "jina-"];
    let name = name.to_ascii_lowercase();
    let base = name.rsplit('/').next().unwrap_or(&name);
    !OTHERS.iter().any(|part| match *part {
        // Only at the start of a word: `moe5-` is no `e5-`.
        "e5-" => base.split(['-', '_', ':']).any(|word| word == "e5"),
        part => base.contains(part),
    })
}

#[cfg(test)]
mod tests {
    use super::is_chat;

    #[test]
    fn models_that_do_not_chat_are_told_by_their_names() {
        for name in [
            "nomic-embed-text:latest",
            "text-embedding-3-small",
            "BAAI/bge-m3",
            "intfloat/multilingual-e5-large",
            "all-minilm:22m",
            "bge-reranker-v2-m3",
            "whisper-1",
        ] {
            assert!(!is_chat(name), "{name}");
        }
        for name in ["qwen2.5-coder:1.5b", "Qwen/Qwen2.5-Coder-0.5B-Instruct", "gemma3", "gpt-oss-20b", "mistral-7b"] {
            assert!(is_chat(name), "{name}");
        }
    }
}
