//! The torture folder: models, servers and checks that go wrong, a case a folder, run through the built program.
//!
//! Each `torture/<case>/case.json` says what the model or its server does, and what must hold afterwards: outcome, exit
//! code, files, calls. `project/` beside it holds the files at the start.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use common::{Ended, Sandbox};
use iudex_testkit::server::{ModelServer, Reply};
use serde::Deserialize;
use serde_json::Value;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// What is tried, for the reader of the case.
    #[serde(rename = "about")]
    _about: String,
    /// A script model …
    script: Option<Value>,
    /// … or a server on loopback.
    server: Option<Server>,
    /// The user's configuration.
    #[serde(default)]
    config: String,
    #[serde(default)]
    flags: Vec<String>,
    exit: i32,
    /// The word of the outcome; none when nothing was started.
    outcome: Option<String>,
    /// Parts of why, or of the refusal.
    #[serde(default)]
    why: Vec<String>,
    /// Files with their exact content, null for absence.
    #[serde(default)]
    files: BTreeMap<String, Option<String>>,
    /// Requests that reached the model: least and most.
    calls: [u64; 2],
    passes: Option<u64>,
    retries: Option<u64>,
    /// Interventions that must occur.
    #[serde(default)]
    interventions: Vec<String>,
    /// Interventions that must not.
    #[serde(default)]
    no_interventions: Vec<String>,
    asked_after_budget: Option<bool>,
    /// Values of the result line, by JSON pointer.
    #[serde(default)]
    result: BTreeMap<String, Value>,
    /// Texts of the tool results.
    #[serde(default)]
    tool_results: Vec<String>,
    /// Texts of the directives.
    #[serde(default)]
    directives: Vec<String>,
    /// Text that the file with the whole output of the last check must hold.
    output_file: Option<String>,
    /// How often the client must have hung up on the server.
    hangups: Option<usize>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Server {
    replies: Vec<Value>,
    #[serde(default)]
    repeat_last: bool,
    #[serde(default = "window")]
    window: u64,
}

fn window() -> u64 {
    8192
}

macro_rules! cases {
    ($($name:ident)*) => {
        $( #[test] fn $name() { run(stringify!($name)); } )*
        const CASES: &[&str] = &[$( stringify!($name) ),*];
    };
}

cases! {
    alternating_pair
    background_child_holds_the_output
    bare_json_in_the_middle_of_prose
    call_as_bare_json
    call_as_fence
    call_as_function_tag
    call_as_tool_call_tag
    call_as_tools_tag
    check_program_is_missing
    check_runs_into_its_time_limit
    check_script_is_not_there_yet
    claims_done_and_does_nothing_while_green
    claims_done_and_does_nothing_while_red
    claims_done_in_prose_while_red
    claims_done_without_a_gate
    connection_reset
    cut_stream
    cut_stream_that_looks_like_an_end
    done_after_an_edit_that_failed
    edit_and_test_eight_times
    empty_answers
    every_answer_cut_by_length
    every_check_runs
    harmless_words_are_not_blocked
    missing_id_and_type
    missing_index
    money_is_spent
    native_format_and_the_call_lies_in_the_text
    native_write_cut_by_length
    null_tool_calls
    object_arguments
    output_of_16_megabytes
    overflow_as_llama_cpp
    overflow_as_lm_studio
    overflow_as_ollama
    overflow_as_openai
    overflow_as_vllm
    overflow_at_the_first_request
    pipe_hides_a_failure
    prints_the_words_of_success_over_a_red_check
    prose_and_then_one_fenced_call
    pushes_to_a_remote
    removes_everything
    removes_everything_behind_words
    repetition_without_end
    sample_json_in_the_middle_of_prose
    several_fences
    stall_before_the_first_byte
    stall_forever
    stall_in_the_middle
    status_401
    status_429_with_retry_after
    status_500_forever
    steps_are_spent
    steps_are_spent_and_the_check_is_green
    stuck_and_right
    sudo_is_an_ordinary_error
    tests_are_deleted
    the_same_call_40_times
    the_same_call_40_times_with_a_gate
    the_same_prompt_count_for_every_request
    time_is_spent_and_the_check_is_red
    time_is_spent_in_the_middle_of_a_pass
    tokens_are_spent_and_the_check_is_green
    tokens_are_spent_and_the_check_is_red
    trailing_comma
    utf8_split_anywhere
    white_space_without_end
    write_cut_by_length
    writes_outside
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/torture")
}

#[test]
fn every_folder_is_run() {
    let mut folders: Vec<String> =
        fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    folders.sort();
    let mut listed = CASES.to_vec();
    listed.sort_unstable();
    assert_eq!(folders, listed);
}

fn run(name: &str) {
    let folder = folder().join(name);
    let text = fs::read_to_string(folder.join("case.json")).unwrap();
    let case: Case = serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
    let mut sandbox = Sandbox::new();
    copy(&folder.join("project"), sandbox.project());
    sandbox.configure(&case.config);
    let server = case.server.as_ref().map(start_server);
    let model = match (&server, &case.script) {
        (Some(server), None) => {
            sandbox.set_env("IUDEX_BASE_URL", server.base_url());
            "test-model".to_owned()
        }
        (None, Some(script)) => sandbox.script(script),
        _ => panic!("{name}: either a script or a server"),
    };
    let mut arguments = vec!["run", "--json", "--model", &model];
    arguments.extend(case.flags.iter().map(String::as_str));
    arguments.push("Make it so.");

    let ended = sandbox.iudex(&arguments).exits(case.exit);
    for (path, content) in &case.files {
        match content {
            Some(content) => assert_eq!(sandbox.read(path), *content, "{path}"),
            None => assert!(!sandbox.exists(path), "{path} must not exist"),
        }
    }
    for chat in server.iter().flat_map(ModelServer::chats) {
        assert!(chat["messages"].to_string().contains("Make it so."), "the task is lost: {chat}");
    }
    let chats = server.as_ref().map(|server| server.chats().len() as u64);
    match &case.outcome {
        Some(outcome) => judge(&case, outcome, chats, &ended),
        None => judge_refusal(&case, chats, &ended),
    }
    if let (Some(hangups), Some(server)) = (case.hangups, &server) {
        assert!(server.wait_for_hangups(hangups), "{} of {hangups} hang-ups", server.hangups());
    }
}

fn judge(case: &Case, outcome: &str, chats: Option<u64>, ended: &Ended) {
    let result = ended.result();
    assert_eq!(result["outcome"], outcome, "{result}");
    assert_eq!(result["exit_code"], case.exit, "{result}");
    let why = result["why"].as_str().unwrap_or_default();
    for part in &case.why {
        assert!(why.contains(part), "{part:?} is not in {why:?}");
    }
    let calls = chats.unwrap_or_else(|| result["spent"]["usage"]["calls"].as_u64().unwrap());
    let [least, most] = case.calls;
    assert!((least..=most).contains(&calls), "{calls} calls, not {least} to {most}");
    for (number, expected) in [("passes", case.passes), ("retries", case.retries)] {
        if let Some(expected) = expected {
            assert_eq!(result[number], expected, "{number} in {result}");
        }
    }
    if let Some(asked) = case.asked_after_budget {
        assert_eq!(result["asked_after_budget"], asked, "{result}");
    }
    for (pointer, expected) in &case.result {
        assert_eq!(result.pointer(pointer), Some(expected), "{pointer} of {result}");
    }
    let happened = ended.interventions();
    for kind in &case.interventions {
        assert!(happened.contains(kind), "{kind} is not in {happened:?}");
    }
    for kind in &case.no_interventions {
        assert!(!happened.contains(kind), "{kind} is in {happened:?}");
    }
    let results = ended.tool_results();
    for text in &case.tool_results {
        assert!(results.iter().any(|result| result.contains(text)), "{text:?} is in no result: {results:#?}");
    }
    let events = ended.events();
    let directives: Vec<&str> = events.iter().filter_map(|event| event["directive"].as_str()).collect();
    for text in &case.directives {
        assert!(directives.iter().any(|told| told.contains(text)), "{text:?} is in no directive: {directives:#?}");
    }
    if let Some(text) = &case.output_file {
        let evidence = &result["last_ruling"]["ruling"]["evidence"]["commands"][0];
        let file = evidence["output_file"].as_str().unwrap_or_else(|| panic!("no output file in {result}"));
        let output = fs::read(file).unwrap();
        assert!(String::from_utf8_lossy(&output).contains(text), "{text:?} is not in {file}");
    }
}

/// Nothing was started and nothing paid.
fn judge_refusal(case: &Case, chats: Option<u64>, ended: &Ended) {
    assert_eq!(ended.result()["outcome"], "not started");
    assert!(!ended.out.contains("model_call_started"), "{}", ended.out);
    assert_eq!(chats.unwrap_or_default(), 0);
    for part in &case.why {
        assert!(ended.err.contains(part), "{part:?} is not in {}", ended.err);
    }
}

fn copy(from: &Path, to: &Path) {
    let Ok(entries) = fs::read_dir(from) else { return };
    for entry in entries {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            fs::create_dir_all(&target).unwrap();
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn start_server(server: &Server) -> ModelServer {
    let builder = ModelServer::builder().window(server.window).replies(server.replies.iter().enumerate().map(reply));
    if server.repeat_last { builder.repeat_last().start() } else { builder.start() }
}

/// A reply as a case writes it: one kind, and what goes wrong with it. What the server counts rises from reply to reply,
/// as a conversation does: a count that stays is a prompt of which a part was left out.
fn reply((index, value): (usize, &Value)) -> Reply {
    const FIRST_PROMPT: u64 = 300;
    const GROWTH: u64 = 20;
    let object = value.as_object().unwrap_or_else(|| panic!("no reply: {value}"));
    let text = |name: &str| object.get(name).and_then(Value::as_str);
    let number = |name: &str| object.get(name).and_then(Value::as_u64);
    let known = [
        "text",
        "action",
        "calls",
        "events",
        "status",
        "body",
        "endless",
        "reset",
        "finish",
        "retry_after",
        "stall_first",
        "stall_after",
        "cut_after",
        "close_delimited",
        "split_every",
        "crlf",
        "without_usage",
        "prompt_tokens",
    ];
    if let Some(unknown) = object.keys().find(|key| !known.contains(&key.as_str())) {
        panic!("a reply has no {unknown}");
    }
    let mut reply = if let Some(code) = number("status") {
        let code = u16::try_from(code).unwrap();
        object.get("body").map_or_else(|| Reply::status(code, "went wrong"), |body| Reply::status_json(code, body))
    } else if let Some(action) = object.get("action") {
        Reply::action(action)
    } else if let Some(calls) = object.get("calls") {
        let reply = Reply::calls(calls.clone());
        if calls.is_null() { reply.finish("stop") } else { reply }
    } else if let Some(text) = text("endless") {
        Reply::endless(text)
    } else if let Some(events) = object.get("events").and_then(Value::as_array) {
        Reply::events(events.iter().map(|event| event.as_str().unwrap()))
    } else if object.contains_key("reset") {
        Reply::reset()
    } else {
        Reply::text(text("text").unwrap_or_else(|| panic!("a reply without a kind: {value}")))
    };
    reply = reply.usage(number("prompt_tokens").unwrap_or(FIRST_PROMPT + GROWTH * index as u64), 5);
    if let Some(reason) = text("finish") {
        reply = reply.finish(reason);
    }
    if let Some(seconds) = text("retry_after") {
        reply = reply.header("retry-after", seconds);
    }
    if object.contains_key("stall_first") {
        reply = reply.stall_first();
    }
    if let Some(after) = text("stall_after") {
        reply = reply.stall_after(after);
    }
    if let Some(after) = text("cut_after") {
        reply = reply.cut_after(after);
    }
    if object.contains_key("close_delimited") {
        reply = reply.close_delimited().without_done().without_finish();
    }
    if let Some(bytes) = number("split_every") {
        reply = reply.split_every(usize::try_from(bytes).unwrap());
    }
    if object.contains_key("crlf") {
        reply = reply.crlf();
    }
    if object.contains_key("without_usage") {
        reply = reply.without_usage();
    }
    reply.delay(Duration::ZERO)
}
