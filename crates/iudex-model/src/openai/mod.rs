//! The OpenAI-compatible chat completions wire.

use async_trait::async_trait;

use crate::chat::{ChatModel, ChatRequest, Completion, Delta, ModelError, ModelFacts, Price, Timeouts};

/// How to reach a model.
#[derive(Debug, Clone)]
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
    pub ca_file: Option<std::path::PathBuf>,
    /// Facts remembered from an earlier run for this server and model; given, nothing is asked.
    pub remembered: Option<ModelFacts>,
}

/// A model behind the wire.
#[derive(Debug)]
pub struct OpenAiModel {}

impl OpenAiModel {
    /// Opens the model: asks for the window and probes whether the schema is enforced, unless remembered.
    pub async fn open(settings: OpenAiSettings) -> Result<Self, ModelError> {
        let _ = settings;
        todo!()
    }
}

#[async_trait(?Send)]
impl ChatModel for OpenAiModel {
    fn facts(&self) -> &ModelFacts {
        todo!()
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'delta> FnMut(Delta<'delta>),
    ) -> Result<Completion, ModelError> {
        let _ = (request, on_delta);
        todo!()
    }
}
