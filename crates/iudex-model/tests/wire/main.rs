//! The wire against a real server on loopback that goes wrong in every way seen elsewhere.

#![expect(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

mod discovery;
mod facts;
mod overflow;
mod proxy;
mod quirks;
mod retries;
mod runaway;
mod splits;
mod tls;

use std::time::Duration;

use iudex_model::{
    ChatModel, ChatRequest, Completion, Delta, Message, ModelError, OpenAiModel, OpenAiSettings, Timeouts,
};
use iudex_testkit::server::{ModelServer, Reply};
use serde_json::json;

/// Runs a test's future on one thread, with an end to hanging.
fn run<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { tokio::time::timeout(Duration::from_mins(1), future).await.expect("the test hangs") })
}

/// Times in which a test can wait for everything.
fn quick() -> Timeouts {
    Timeouts {
        first_byte: Duration::from_secs(20),
        between_tokens: Duration::from_secs(20),
        connect: Duration::from_secs(5),
        max_retries: 2,
        retry_time: Duration::from_millis(1600),
    }
}

fn settings(server: &ModelServer) -> OpenAiSettings {
    settings_for(&server.base_url())
}

fn settings_for(base_url: &str) -> OpenAiSettings {
    OpenAiSettings {
        base_url: base_url.into(),
        model: "test-model".into(),
        api_key: None,
        window: None,
        price: None,
        timeouts: quick(),
        ca_file: None,
        remembered: None,
    }
}

fn request() -> ChatRequest {
    ChatRequest {
        messages: vec![Message::System { text: "Be short.".into() }, Message::User { text: "Go on.".into() }],
        tools: Vec::new(),
        schema: None,
        max_tokens: 500,
        temperature: 0.2,
        seed: Some(7),
    }
}

fn with_tools(mut request: ChatRequest) -> ChatRequest {
    request.tools = vec![iudex_model::WireTool {
        name: "read".into(),
        description: "reads a file".into(),
        parameters: json!({"type": "object", "properties": {"path": {"type": "string"}}}),
    }];
    request
}

/// What one request to this server gives, and what was shown meanwhile.
async fn ask_with(settings: OpenAiSettings, request: &ChatRequest) -> (Result<Completion, ModelError>, Vec<String>) {
    let model = OpenAiModel::open(settings).await.unwrap();
    let mut shown = Vec::new();
    let result = model
        .complete(request, &mut |delta| {
            shown.push(match delta {
                Delta::Text(text) => format!("text:{text}"),
                Delta::Reasoning(text) => format!("reasoning:{text}"),
                Delta::Waiting(text) => format!("waiting:{text}"),
                Delta::Lost(usage) => format!("lost:{} tries", usage.calls),
            });
        })
        .await;
    (result, shown)
}

fn ask(server: &ModelServer) -> Result<Completion, ModelError> {
    run(ask_with(settings(server), &request())).0
}

fn answer(reply: Reply) -> Completion {
    ask(&ModelServer::start([reply])).unwrap()
}
