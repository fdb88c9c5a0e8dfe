//! What the tools cost in every request.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use common::Place;
use serde_json::json;

mod common;

#[test]
fn the_tools_in_native_form_stay_small() {
    let place = Place::new();
    let tools: Vec<_> = place
        .tools()
        .specs()
        .iter()
        .map(|tool| {
            json!({"type": "function", "function": {
                "name": tool.name, "description": tool.description, "parameters": tool.parameters,
            }})
        })
        .collect();
    let text = serde_json::to_string(&tools).unwrap();
    let tokens = tiktoken_rs::o200k_base().unwrap().encode_ordinary(&text).len();
    assert!(tokens <= 350, "{tokens} tokens: {text}");
}

#[test]
fn the_tools_are_the_same_bytes_every_time() {
    let (first, second) = (Place::new().tools(), Place::new().tools());
    assert_eq!(format!("{:?}", first.specs()), format!("{:?}", second.specs()));
    let names: Vec<_> = first.specs().iter().map(|tool| tool.name).collect();
    assert_eq!(names, ["read", "write", "edit", "bash", "search"]);
}

#[test]
fn the_subject_is_one_short_line() {
    let tools = Place::new().tools();
    let long = "echo a\n".repeat(100);
    for (tool, arguments, subject) in [
        ("read", json!({"path": "src/a.rs"}), "src/a.rs"),
        ("search", json!({"pattern": "x y"}), "x y"),
        ("search", json!({"pattern": "x", "path": "src"}), "x in src"),
        ("bash", json!({"command": "cd a &&\n  make\u{1b}[0m"}), "cd a && make[0m"),
        ("edit", json!({"path": 3}), ""),
    ] {
        assert_eq!(tools.subject(tool, arguments.as_object().unwrap()), subject);
    }
    let subject = tools.subject("bash", json!({"command": long}).as_object().unwrap());
    assert!(subject.chars().count() == 100 && subject.ends_with('…'), "{subject}");
}
