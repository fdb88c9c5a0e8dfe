//! What is found out about a server before the first request.

use iudex_core::{Usage, Usd};
use iudex_model::{ChatModel as _, ModelError, ModelFacts, OpenAiModel, OpenAiSettings, Price};
use iudex_testkit::server::{ModelServer, Reply, ServerBuilder};
use serde_json::json;

use crate::{request, run, settings, settings_for};

fn open(server: &ModelServer) -> ModelFacts {
    run(OpenAiModel::open(settings(server))).unwrap().facts().clone()
}

fn window(builder: ServerBuilder) -> (u64, String) {
    let facts = open(&builder.start());
    (facts.window, facts.window_source)
}

fn found(window: u64, source: &str) -> (u64, String) {
    (window, source.into())
}

#[test]
fn llama_cpp_tells_its_window_under_props_and_not_the_trained_length() {
    let trained = json!({"data": [{"id": "test-model", "owned_by": "llamacpp", "meta": {"n_ctx_train": 32768}}]});
    let builder = ModelServer::builder().window(16384).endpoint("/v1/models", trained.clone());
    assert_eq!(window(builder), found(16384, "/props"));
    assert_eq!(window(ModelServer::builder().bare().endpoint("/v1/models", trained)), found(4096, "assumed"));
}

#[test]
fn vllm_tells_its_window_under_models() {
    let models = json!({"data": [{"id": "other", "max_model_len": 1}, {"id": "test-model", "max_model_len": 20000}]});
    assert_eq!(window(ModelServer::builder().bare().endpoint("/v1/models", models)), found(20000, "/v1/models"));
}

#[test]
fn lm_studio_tells_the_loaded_window_and_not_the_largest() {
    let models = |loaded: serde_json::Value| json!({"data": [{"id": "test-model", "max_context_length": 32768, "loaded_context_length": loaded}]});
    let builder = |loaded| ModelServer::builder().bare().endpoint("/api/v0/models", models(loaded));
    assert_eq!(window(builder(json!(6000))), found(6000, "/api/v0/models"));
    assert_eq!(window(builder(json!(null))), found(4096, "assumed"));
}

#[test]
fn ollama_tells_num_ctx_or_what_is_loaded_and_not_the_trained_length() {
    let show = |parameters: &str| json!({"parameters": parameters, "details": {}, "model_info": {"qwen2.context_length": 32768}});
    let ollama = |parameters: &str| ModelServer::builder().bare().endpoint("/api/show", show(parameters));
    assert_eq!(window(ollama("stop  \"x\"\nnum_ctx                        12000\n")), found(12000, "/api/show"));
    assert_eq!(window(ollama("")), found(4096, "Ollama's default"));
    let loaded = json!({"models": [{"name": "test-model:latest", "context_length": 10000}]});
    assert_eq!(window(ollama("num_ctx 12000").endpoint("/api/ps", loaded)), found(10000, "/api/ps"));
}

#[test]
fn a_configured_window_wins() {
    let server = ModelServer::builder().window(16384).start();
    let settings = OpenAiSettings { window: Some(6000), ..settings(&server) };
    let facts = run(OpenAiModel::open(settings)).unwrap().facts().clone();
    assert_eq!((facts.window, facts.window_source.as_str()), (6000, "configuration"));
}

#[test]
fn the_schema_is_probed_once_and_believed_only_when_enforced() {
    let enforcing = ModelServer::start([]);
    assert!(open(&enforcing).enforces_schema);
    assert_eq!(enforcing.probes(), 1);
    assert!(!open(&ModelServer::builder().enforces_schema(false).start()).enforces_schema);
    let probe =
        |reply: Reply| open(&ModelServer::builder().probe_from_replies().replies([reply]).start()).enforces_schema;
    assert!(!probe(Reply::status(400, "response_format is not supported")));
    assert!(!probe(Reply::status(422, "extra fields not permitted")));
    assert!(!probe(Reply::text("{\"word\": \"hello\"}")));
    assert!(!probe(Reply::text("```json\n{\"word\": \"quokka-7319\"}\n```")));
    assert!(probe(Reply::text(" {\"word\": \"quokka-7319\"}\n")));
}

#[test]
fn a_model_that_reasons_first_gets_room_for_the_probe() {
    let replies = [
        Reply::text("").reasoning("Let me think about").finish("length"),
        Reply::text("{\"word\":\"quokka-7319\"}").reasoning("x"),
    ];
    let server = ModelServer::builder().probe_from_replies().replies(replies).start();
    assert!(open(&server).enforces_schema);
    let chats = server.chats();
    assert!(chats[0]["max_tokens"].as_u64() < chats[1]["max_tokens"].as_u64());
}

#[test]
fn what_was_remembered_is_not_asked_again() {
    let server = ModelServer::start([Reply::text("ok")]);
    let remembered = open(&server);
    let asked = server.requests().len();
    let settings = OpenAiSettings { remembered: Some(remembered.clone()), ..settings(&server) };
    run(async {
        let model = OpenAiModel::open(settings).await.unwrap();
        assert_eq!(model.facts(), &remembered);
        model.complete(&request(), &mut |_| {}).await.unwrap();
    });
    assert_eq!(server.requests().len(), asked + 1, "only the chat");
}

#[test]
fn a_wrong_key_is_a_refusal_when_the_model_is_opened() {
    let server = ModelServer::builder().probe_from_replies().replies([Reply::status(401, "no key")]).start();
    let error = run(OpenAiModel::open(settings(&server))).unwrap_err();
    assert!(matches!(&error, ModelError::Refused(text) if text.contains("401") && text.contains("no key")), "{error}");
}

#[test]
fn a_base_url_that_is_none_is_refused() {
    for url in ["", "127.0.0.1:8080", "ftp://x/v1", "http://"] {
        let error = run(OpenAiModel::open(settings_for(url))).unwrap_err();
        assert!(matches!(&error, ModelError::Refused(text) if text.contains("base URL")), "{url}: {error}");
    }
}

#[test]
fn local_and_small_are_told_by_address_and_name() {
    let facts = open(&ModelServer::start([]));
    assert!(facts.is_local && facts.is_small);
    let server = ModelServer::start([]);
    let settings = OpenAiSettings { model: "big-70b".into(), ..settings(&server) };
    let facts = run(OpenAiModel::open(settings)).unwrap().facts().clone();
    assert!(facts.is_local && !facts.is_small);
}

#[test]
fn cost_is_zero_near_known_with_a_price_and_else_unknown() {
    let usage = Usage { prompt: iudex_core::Tokens(1_000_000), ..Usage::default() };
    let local = open(&ModelServer::start([]));
    assert_eq!(local.cost(&usage), Some(Usd::default()));
    assert_eq!(ModelFacts { is_local: false, ..local.clone() }.cost(&usage), None);
    let price = Price { prompt: Usd { micros: 2_000_000 }, output: Usd::default() };
    assert_eq!(
        ModelFacts { is_local: false, price: Some(price), ..local }.cost(&usage),
        Some(Usd { micros: 2_000_000 })
    );
}

#[test]
fn a_certificate_file_that_is_none_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("ca.pem");
    std::fs::write(&file, "not a certificate").unwrap();
    for ca_file in [file, folder.path().join("missing.pem")] {
        let settings = OpenAiSettings { ca_file: Some(ca_file.clone()), ..settings_for("https://127.0.0.1:9/v1") };
        let error = run(OpenAiModel::open(settings)).unwrap_err();
        assert!(
            matches!(&error, ModelError::Refused(text) if text.contains(&ca_file.display().to_string())),
            "{error}"
        );
    }
}

#[test]
fn a_window_remembered_from_the_configuration_is_asked_when_the_configuration_is_gone() {
    let server = ModelServer::builder().window(16384).start();
    let configured = OpenAiSettings { window: Some(6000), ..settings(&server) };
    let remembered = run(OpenAiModel::open(configured)).unwrap().facts().clone();
    let settings = OpenAiSettings { remembered: Some(remembered), ..settings(&server) };
    let facts = run(OpenAiModel::open(settings)).unwrap().facts().clone();
    assert_eq!((facts.window, facts.window_source.as_str()), (16384, "/props"));
    assert_eq!(server.probes(), 1, "the schema is not probed again");
}

#[test]
fn another_model_that_is_loaded_tells_nothing_about_this_one() {
    let show = json!({"parameters": "", "details": {}});
    let loaded = json!({"models": [{"name": "another:7b", "context_length": 32768}]});
    let server = ModelServer::builder().bare().endpoint("/api/show", show).endpoint("/api/ps", loaded);
    assert_eq!(window(server), found(4096, "Ollama's default"));
}
