//! Servers on this machine are found and told apart.

use iudex_model::{Found, discover, list_models};
use iudex_testkit::server::ModelServer;
use serde_json::json;

use crate::run;

fn found(kind: &str, server: &ModelServer, models: &[&str]) -> Found {
    Found { kind: kind.into(), base_url: server.base_url(), models: models.iter().map(|name| (*name).into()).collect() }
}

#[test]
fn each_kind_is_told_by_its_answers_and_embedding_models_are_left_out() {
    let llama = ModelServer::builder().models(&["qwen"], "llamacpp").start();
    let ollama = ModelServer::builder().bare().models(&["qwen:1.5b", "nomic-embed-text:latest"], "library").start();
    let vllm = ModelServer::builder().bare().models(&["Qwen/Qwen2.5", "BAAI/bge-m3"], "vllm").start();
    let types = json!({"data": [{"id": "chat", "type": "llm"}, {"id": "vector", "type": "embeddings"}]});
    let lm_studio = ModelServer::builder()
        .bare()
        .models(&["chat", "vector"], "organization_owner")
        .endpoint("/api/v0/models", types)
        .start();
    let silent = ModelServer::builder().models(&["x"], "somebody").start();
    let other = ModelServer::builder().bare().models(&["y"], "somebody").start();
    let closed = { std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port() };
    let ports = [llama.port(), closed, ollama.port(), vllm.port(), lm_studio.port(), silent.port(), other.port()];
    let expected = [
        found("llama.cpp", &llama, &["qwen"]),
        found("Ollama", &ollama, &["qwen:1.5b"]),
        found("vLLM", &vllm, &["Qwen/Qwen2.5"]),
        found("LM Studio", &lm_studio, &["chat"]),
        found("llama.cpp", &silent, &["x"]),
        found("OpenAI-compatible", &other, &["y"]),
    ];
    assert_eq!(run(discover(Some(&ports))), expected);
}

#[test]
fn a_port_that_is_something_else_is_no_server() {
    let web = ModelServer::builder().bare().start();
    let mute = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let ports = [web.port(), mute.local_addr().unwrap().port()];
    assert_eq!(run(discover(Some(&ports))), []);
    assert_eq!(run(discover(Some(&[]))), []);
}

#[test]
fn a_refused_list_of_models_says_what_the_server_said() {
    let body = json!({"error": {"message": "Incorrect API key provided: sk-123456"}});
    let server = ModelServer::builder().bare().endpoint_status("/v1/models", 401, body).start();
    let error = run(list_models(&server.base_url(), Some("sk-123456"), None)).unwrap_err().to_string();
    assert!(error.contains("401") && error.contains("Incorrect API key provided: ***"), "{error}");
}
