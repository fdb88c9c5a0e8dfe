use serde_json::json;

use super::*;
use crate::chat::{Message, WireTool};

fn overflow(body: &str) -> (Option<u64>, Option<u64>) {
    match Said::from_body(body).overflow() {
        Some(ModelError::Overflow { window, prompt, .. }) => (window, prompt),
        other => panic!("{body} is an overflow, not {other:?}"),
    }
}

#[test]
fn overflow_in_the_words_of_llama_cpp() {
    let fields = r#"{"error":{"code":400,"message":"the request exceeds the available context size, try increasing it",
        "type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}}"#;
    assert_eq!(overflow(fields), (Some(4096), Some(5000)));
    let words = r#"{"error":{"code":400,"message":"request (5000 tokens) exceeds the available context size (4096 tokens), try increasing it"}}"#;
    assert_eq!(overflow(words), (Some(4096), Some(5000)));
    assert_eq!(overflow(r#"{"error":{"code":500,"message":"Context size has been exceeded."}}"#), (None, None));
}

#[test]
fn overflow_in_the_words_of_ollama() {
    assert_eq!(overflow(r#"{"error":{"message":"the input length exceeds the context length"}}"#), (None, None));
    assert_eq!(overflow(r#"{"error":"input length exceeds maximum context length"}"#), (None, None));
    assert_eq!(overflow(r#"{"error":"prompt too long; exceeded max context length by 4 tokens"}"#), (None, None));
}

#[test]
fn overflow_in_the_words_of_vllm() {
    let old = r#"{"object":"error","message":"This model's maximum context length is 4096 tokens. However, you requested 5100 tokens (5000 in the messages, 100 in the completion). Please reduce the length of the messages or completion.","type":"BadRequestError","code":400}"#;
    assert_eq!(overflow(old), (Some(4096), Some(5000)));
    let new = r#"{"error":{"message":"This model's maximum context length is 8192 tokens. However, your request has 9000 input tokens. Please reduce the length of the input messages."}}"#;
    assert_eq!(overflow(new), (Some(8192), Some(9000)));
    let sum = r#"{"error":{"message":"'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens and your request has 1000 input tokens (4096 > 4096 - 1000)."}}"#;
    assert_eq!(overflow(sum), (Some(4096), Some(1000)));
}

#[test]
fn overflow_in_the_words_of_lm_studio() {
    let keep = r#"{"error":"Trying to keep the first 5000 tokens when context the overflows. However, the model is loaded with context length of only 4096 tokens, which is not enough. Try to load the model with a larger context length, or provide a shorter input"}"#;
    assert_eq!(overflow(keep), (Some(4096), Some(5000)));
    let reached = r#"{"error":"Reached context length of 4096 tokens with model (arch: qwen2) that does not currently support mid-generation context overflow."}"#;
    assert_eq!(overflow(reached), (Some(4096), None));
    let greater = r#"{"error":"The number of tokens to keep from the initial prompt is greater than the context length. Try to load the model with a larger context length"}"#;
    assert_eq!(overflow(greater), (None, None));
}

#[test]
fn overflow_in_the_words_of_openai_and_others() {
    let openai = r#"{"error":{"message":"This model's maximum context length is 128,000 tokens. However, your messages resulted in 130000 tokens.","code":"context_length_exceeded"}}"#;
    assert_eq!(overflow(openai), (Some(128_000), Some(130_000)));
    let code = r#"{"error":{"message":"Too much.","code":"context_length_exceeded"}}"#;
    assert_eq!(overflow(code), (None, None));
    let anthropic = r#"{"error":{"message":"prompt is too long: 210000 tokens > 200000 maximum"}}"#;
    assert_eq!(overflow(anthropic), (Some(200_000), Some(210_000)));
    let xai = r#"{"error":"This model's maximum prompt length is 131072 but the request contains 537812 tokens."}"#;
    assert_eq!(overflow(xai), (Some(131_072), Some(537_812)));
}

#[test]
fn other_trouble_is_no_overflow() {
    for body in [
        r#"{"error":{"message":"invalid api key","code":401}}"#,
        r#"{"error":{"message":"Rate limit reached for tokens per minute (TPM): Limit 6000, Requested 7000"}}"#,
        "upstream connect error",
        "",
    ] {
        assert_eq!(Said::from_body(body).overflow(), None, "{body}");
    }
}

fn request(schema: bool, tools: bool) -> ChatRequest {
    let tool = WireTool { name: "read".into(), description: String::new(), parameters: json!({"type": "object"}) };
    ChatRequest {
        messages: vec![Message::User { text: "x".into() }],
        tools: if tools { vec![tool] } else { Vec::new() },
        schema: schema.then(|| json!({"type": "object"})),
        max_tokens: 10,
        temperature: 0.0,
        seed: None,
    }
}

#[test]
fn a_refused_format_is_told_apart_by_what_the_request_carries() {
    let schema = [
        "Invalid parameter: 'response_format' of type 'json_schema' is not supported with this model.",
        "This response_format type is unavailable now",
        "JSON schema conversion failed: unsupported",
        "failed to parse grammar",
    ];
    for message in schema {
        let said = Said::from_body(&json!({"error": {"message": message}}).to_string());
        let refused = Some(ModelError::FormatRefused(message.into()));
        assert_eq!(said.format_refused(400, &request(true, false)), refused, "{message}");
        assert_eq!(said.format_refused(500, &request(true, false)), refused, "{message}");
        assert_eq!(said.format_refused(400, &request(false, false)), None, "{message}");
    }
    let tools = [
        "tools param requires --jinja flag",
        "registry.ollama.ai/library/x does not support tools",
        "\"auto\" tool choice requires --enable-auto-tool-choice and --tool-call-parser to be set",
        "Failed to parse tool call arguments as JSON",
    ];
    for message in tools {
        let said = Said::from_body(&json!({"error": {"message": message}}).to_string());
        assert!(said.format_refused(500, &request(false, true)).is_some(), "{message}");
        assert_eq!(said.format_refused(400, &request(false, false)), None, "{message}");
    }
    let down = Said::from_body("the tool server is down");
    assert_eq!(down.format_refused(503, &request(true, true)), None);
}

#[test]
fn messages_are_found_in_every_shape_and_shortened() {
    let shapes = [
        (r#"{"error":{"message":"m"}}"#, "m"),
        (r#"{"error":"m"}"#, "m"),
        (r#"{"message":"m"}"#, "m"),
        (r#"{"detail":"m"}"#, "m"),
        (r#"[{"error":{"message":"m"}}]"#, "m"),
        (r#"{"detail":[{"loc":["body"],"msg":"extra"}]}"#, r#"[{"loc":["body"],"msg":"extra"}]"#),
        (" plain text \n", "plain text"),
    ];
    for (body, message) in shapes {
        assert_eq!(Said::from_body(body).message, message, "{body}");
    }
    let long = Said::from_body(&"ä".repeat(5_000)).message;
    assert_eq!(long.chars().count(), SHOWN + 1);
}
