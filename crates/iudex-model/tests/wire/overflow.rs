//! A prompt that does not fit, in the words of five servers, and without a word.

use iudex_model::{ChatRequest, Message, ModelError};
use iudex_testkit::server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::{ask, ask_with, request, run, settings};

fn overflow(reply: Reply) -> (Option<u64>, Option<u64>) {
    let server = ModelServer::start([reply]);
    let error = ask(&server).unwrap_err();
    assert_eq!(server.chats().len(), 1, "an overflow is not tried again");
    match error {
        ModelError::Overflow { window, prompt, .. } => (window, prompt),
        other => panic!("{other}"),
    }
}

fn status(code: u16, body: &Value) -> (Option<u64>, Option<u64>) {
    overflow(Reply::status_json(code, body))
}

#[test]
fn llama_cpp_says_it_does_not_fit() {
    let message = "the request exceeds the available context size, try increasing it";
    let error = json!({"code": 400, "message": message, "type": "exceed_context_size_error", "n_prompt_tokens": 9000, "n_ctx": 8192});
    assert_eq!(status(400, &json!({"error": error})), (Some(8192), Some(9000)));
}

#[test]
fn ollama_says_it_does_not_fit() {
    let message = "the input length exceeds the context length";
    assert_eq!(status(400, &json!({"error": {"message": message}})), (None, None));
    assert_eq!(status(500, &json!({"error": message})), (None, None));
}

#[test]
fn vllm_says_it_does_not_fit() {
    let message = "This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (5000 in the messages, 100 in the completion). Please reduce the length of the messages or completion.";
    assert_eq!(status(400, &json!({"object": "error", "message": message})), (Some(4096), Some(5000)));
}

#[test]
fn lm_studio_says_it_does_not_fit_within_a_stream() {
    let message = "Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough.";
    let event = json!({"error": {"message": message}}).to_string();
    assert_eq!(overflow(Reply::events([event])), (Some(4096), Some(5000)));
    assert_eq!(status(400, &json!({"error": message})), (Some(4096), Some(5000)));
}

#[test]
fn openai_says_it_does_not_fit() {
    let message =
        "This model's maximum context length is 128000 tokens. However, your messages resulted in 130000 tokens.";
    let error = json!({"message": message, "type": "invalid_request_error", "code": "context_length_exceeded"});
    assert_eq!(status(400, &json!({"error": error})), (Some(128_000), Some(130_000)));
}

#[test]
fn ollama_drops_the_front_of_the_prompt_in_silence() {
    let long = ChatRequest { messages: vec![Message::User { text: "lengthy ".repeat(9_000) }], ..request() };
    for read in [4096, 2100] {
        let server = ModelServer::builder().window(4096).replies([Reply::text("hm").usage(read, 1)]).start();
        let error = run(ask_with(settings(&server), &long)).0.unwrap_err();
        assert!(matches!(&error, ModelError::Overflow { window: Some(4096), .. }), "{error}");
    }
    // The server has a larger window than was told: it read everything, and that is an answer.
    let server = ModelServer::builder().window(4096).replies([Reply::text("fine").usage(9_100, 1)]).start();
    assert_eq!(run(ask_with(settings(&server), &long)).0.unwrap().text, "fine");
}

#[test]
fn a_prompt_that_fills_the_window_to_the_last_token_was_cut() {
    let server = ModelServer::builder()
        .window(4096)
        .replies([Reply::text("a").usage(4096, 1), Reply::text("b").usage(4095, 1)])
        .start();
    assert!(matches!(ask(&server).unwrap_err(), ModelError::Overflow { .. }));
    assert_eq!(ask(&server).unwrap().text, "b");
}
