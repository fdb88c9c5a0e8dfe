//! Finds model servers on the usual ports of this machine.

/// A server that answered, with its chat models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// `llama.cpp`, `Ollama`, `LM Studio`, `vLLM`.
    pub kind: String,
    /// The base, up to and with `/v1`.
    pub base_url: String,
    /// Names of chat models (embedding models left out).
    pub models: Vec<String>,
}

/// Asks the usual ports at once, each for at most a second. `ports` overrides them (tests, doctor).
pub async fn discover(ports: Option<&[u16]>) -> Vec<Found> {
    let _ = ports;
    todo!()
}
