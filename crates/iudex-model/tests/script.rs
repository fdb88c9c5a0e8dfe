//! The scripted model: order, conditions, errors and the end of the script.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::path::PathBuf;

use iudex_core::{Tokens, Usd};
use iudex_model::{ChatModel, ChatRequest, Completion, Delta, Finish, Message, ModelError, ScriptModel};
use tempfile::TempDir;

fn script(text: &str) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("model.json");
    std::fs::write(&file, text).unwrap();
    (folder, file)
}

fn open(text: &str) -> ScriptModel {
    let (_folder, file) = script(text);
    ScriptModel::open(&file).unwrap()
}

fn request(last: &str) -> ChatRequest {
    ChatRequest {
        messages: vec![Message::System { text: "Be short.".into() }, Message::User { text: last.into() }],
        tools: Vec::new(),
        schema: None,
        max_tokens: 100,
        temperature: 0.2,
        seed: None,
    }
}

fn ask(model: &ScriptModel, last: &str) -> Result<Completion, ModelError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(model.complete(&request(last), &mut |_| {}))
}

#[test]
fn replies_come_in_order_and_the_end_is_an_error() {
    let model = open(r#"{"replies": [{"text": "one"}, {"action": {"tool": "done", "summary": "x"}}]}"#);
    assert_eq!(ask(&model, "a").unwrap().text, "one");
    assert_eq!(ask(&model, "a").unwrap().text, r#"{"tool":"done","summary":"x"}"#);
    let end = ask(&model, "a").unwrap_err();
    assert!(matches!(&end, ModelError::Unavailable(text) if text.contains("no more replies")), "{end}");
}

#[test]
fn then_says_what_happens_at_the_end() {
    let repeat = open(r#"{"then": "repeat_last", "replies": [{"text": "one"}, {"text": "two"}]}"#);
    let texts: Vec<String> = (0..4).map(|_| ask(&repeat, "a").unwrap().text).collect();
    assert_eq!(texts, ["one", "two", "two", "two"]);
    let stop = open(r#"{"then": "stop", "replies": []}"#);
    let answer = ask(&stop, "a").unwrap();
    assert_eq!((answer.text.as_str(), answer.calls.len(), answer.finish), ("done", 0, Finish::Stop));
}

#[test]
fn a_reply_with_when_waits_for_its_message() {
    let model = open(
        r#"{"replies": [{"when": "exit code 1", "text": "mend"}, {"when": "again", "repeat": true, "text": "loop"},
            {"text": "first"}, {"text": "second"}]}"#,
    );
    assert_eq!(ask(&model, "go").unwrap().text, "first");
    assert_eq!(ask(&model, "it ended with exit code 1").unwrap().text, "mend");
    assert_eq!(ask(&model, "it ended with exit code 1").unwrap().text, "second");
    assert_eq!(ask(&model, "again").unwrap().text, "loop");
    assert_eq!(ask(&model, "again").unwrap().text, "loop");
}

#[test]
fn json_lines_are_a_script_too() {
    let model = open("{\"window\": 4096, \"enforces_schema\": false}\n{\"text\": \"one\"}\n{\"text\": \"two\"}\n");
    assert_eq!((model.facts().window, model.facts().enforces_schema), (4096, false));
    assert_eq!(ask(&model, "a").unwrap().text, "one");
    assert_eq!(ask(&model, "a").unwrap().text, "two");
}

#[test]
fn native_calls_are_given_as_calls() {
    let model = open(r#"{"replies": [{"text": "I look.", "calls": [{"name": "read", "arguments": {"path": "a"}}]}]}"#);
    let answer = ask(&model, "a").unwrap();
    assert_eq!(answer.text, "I look.");
    assert_eq!(answer.calls.len(), 1);
    assert_eq!((answer.calls[0].name.as_str(), answer.calls[0].arguments.as_str()), ("read", r#"{"path":"a"}"#));
    assert!(!answer.calls[0].id.is_empty());
}

#[test]
fn every_error_can_be_scripted() {
    let model = open(
        r#"{"replies": [{"error": {"unavailable": "gone"}}, {"error": {"refused": "no key"}},
            {"error": {"format_refused": "no tools"}}, {"error": {"overflow": "too long"}},
            {"error": {"overflow": {"message": "m", "window": 4096, "prompt": 5000}}}]}"#,
    );
    assert_eq!(ask(&model, "a").unwrap_err(), ModelError::Unavailable("gone".into()));
    assert_eq!(ask(&model, "a").unwrap_err(), ModelError::Refused("no key".into()));
    assert_eq!(ask(&model, "a").unwrap_err(), ModelError::FormatRefused("no tools".into()));
    let overflow = |message: &str, window, prompt| ModelError::Overflow { message: message.into(), window, prompt };
    assert_eq!(ask(&model, "a").unwrap_err(), overflow("too long", None, None));
    assert_eq!(ask(&model, "a").unwrap_err(), overflow("m", Some(4096), Some(5000)));
}

#[test]
fn an_expected_text_that_is_missing_is_refused_by_name() {
    let model = open(r#"{"replies": [{"expect": ["Be short", "cargo test"], "text": "one"}]}"#);
    let error = ask(&model, "no check here").unwrap_err();
    assert!(matches!(&error, ModelError::Refused(text) if text.contains("\"cargo test\"")), "{error}");
}

#[test]
fn use_and_cost_are_as_told_or_estimated() {
    let model = open(
        r#"{"local": false, "price": {"prompt": 1.5, "output": 4}, "replies":
            [{"text": "x", "prompt_tokens": 1000000, "output_tokens": 500000, "cached_tokens": 7}, {"text": "abcdefgh"}]}"#,
    );
    let told = ask(&model, "a").unwrap().usage;
    assert_eq!((told.prompt, told.output, told.cached), (Tokens(1_000_000), Tokens(500_000), Tokens(7)));
    assert_eq!((told.calls, told.estimated_calls), (1, 0));
    assert_eq!(model.facts().cost(&told), Usd::from_dollars(3.5));
    let estimated = ask(&model, "a").unwrap().usage;
    assert_eq!((estimated.output, estimated.estimated_calls), (Tokens(2), 1));
    let unpriced = open(r#"{"local": false, "replies": []}"#);
    assert_eq!(unpriced.facts().cost(&told), None);
    let local = open(r#"{"replies": []}"#);
    assert_eq!(local.facts().cost(&told), Some(Usd::default()));
}

#[test]
fn the_window_is_enforced_when_asked() {
    let model = open(r#"{"window": 100, "enforce_window": true, "replies": [{"text": "one"}]}"#);
    let error = ask(&model, &"word ".repeat(200)).unwrap_err();
    assert!(matches!(error, ModelError::Overflow { window: Some(100), prompt: Some(prompt), .. } if prompt > 200));
    assert_eq!(ask(&model, "short").unwrap().text, "one");
}

#[test]
fn text_and_reasoning_are_shown_as_they_come() {
    let model = open(r#"{"replies": [{"text": "answer", "reasoning": "because", "delay_ms": 1, "finish": "length"}]}"#);
    let mut seen = Vec::new();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let answer = runtime.block_on(model.complete(&request("a"), &mut |delta| match delta {
        Delta::Text(text) => seen.push(format!("text {text}")),
        Delta::Reasoning(text) => seen.push(format!("reasoning {text}")),
        Delta::Waiting(text) => seen.push(format!("waiting {text}")),
        Delta::Lost(usage) => seen.push(format!("lost {}", usage.calls)),
    }));
    let answer = answer.unwrap();
    assert_eq!(seen, ["reasoning because", "text answer"]);
    assert_eq!((answer.reasoning.as_str(), answer.finish), ("because", Finish::Length));
}

#[test]
fn a_broken_script_is_refused_with_file_and_reason() {
    let cases = [
        ("{\"replies\": [{\"txet\": \"x\"}]}", "txet"),
        ("{\"replies\": [{\"when\": \"x\"}]}", "reply 1 must have one of"),
        ("{\"window\": 10", "EOF"),
        ("{\"windows\": 10}", "windows"),
    ];
    for (text, reason) in cases {
        let (_folder, file) = script(text);
        let error = ScriptModel::open(&file).unwrap_err().to_string();
        assert!(error.contains(reason) && error.contains("model.json"), "{text}: {error}");
    }
    let error = ScriptModel::open(&PathBuf::from("/nonexistent/model.json")).unwrap_err().to_string();
    assert!(error.contains("/nonexistent/model.json"), "{error}");
}
