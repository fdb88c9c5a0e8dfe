//! Answers without end are stopped, and the server notices.

use iudex_model::{Completion, Finish};
use iudex_testkit::server::{ModelServer, Reply};

use crate::ask;

fn stopped(text: &str) -> Completion {
    let server = ModelServer::start([Reply::endless(text)]);
    let completion = ask(&server).unwrap();
    assert_eq!(completion.finish, Finish::Runaway);
    assert!(server.wait_for_hangups(1), "the connection is closed, so that the slot is free");
    assert_eq!(completion.usage.estimated_calls, 1);
    completion
}

#[test]
fn white_space_without_end_is_stopped_and_the_slot_freed() {
    assert!(stopped("\n").text.len() < 2_000);
    stopped(" ");
    stopped("\t \n");
}

#[test]
fn a_sentence_without_end_is_stopped_and_the_slot_freed() {
    assert!(stopped("I will read the file again. ").text.len() < 5_000);
}

#[test]
fn arguments_without_end_are_stopped() {
    let event = r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"write","arguments":"\\n"}}]}}]}"#;
    let server = ModelServer::start([Reply::events(vec![event; 2_000])]);
    assert_eq!(ask(&server).unwrap().finish, Finish::Runaway);
}

#[test]
fn a_server_that_ignores_the_token_limit_is_stopped() {
    let mut events: Vec<String> = Vec::new();
    for number in 0..4_000 {
        let text = format!("line {number} {} of many\n", number * 7);
        events.push(serde_json::json!({"choices": [{"delta": {"content": text.repeat(2)}}]}).to_string());
    }
    let completion = ask(&ModelServer::start([Reply::events(events)])).unwrap();
    assert_eq!(completion.finish, Finish::Length);
}
