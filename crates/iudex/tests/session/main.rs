//! The line session in a real pseudo-terminal, driven by `driver.py`.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

use std::process::{Command, Stdio};

use common::{Sandbox, bash, done, processes_with, wait, wait_until, write};
use serde_json::{Value, json};

/// Runs `iudex` in a terminal through these steps and gives the screen.
#[track_caller]
fn in_a_terminal(sandbox: &Sandbox, arguments: &[&str], steps: &Value) -> String {
    let program = sandbox.command(arguments);
    let driver = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/session/driver.py");
    let mut command = Command::new("python3");
    command.arg(driver).arg(steps.to_string()).arg(program.get_program()).args(program.get_args());
    command.env_clear().current_dir(sandbox.project()).stdin(Stdio::null());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait(child).exits(0).out
}

/// A sandbox whose session talks to this script.
fn with_script(replies: &Value) -> Sandbox {
    let mut sandbox = Sandbox::new();
    let model = sandbox.script(&json!({ "replies": replies }));
    sandbox.set_env("IUDEX_MODEL", model);
    sandbox
}

#[test]
fn a_turn_its_record_its_changes_and_undo() {
    let sandbox = with_script(&json!([write("made.txt", "pears\n"), done()]));
    let screen = in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "no check: results are unvalidated"],
            ["expect", "iudex> "],
            ["type", "make a file"],
            ["expect", "done (unvalidated) (exit 0)"],
            ["expect", "iudex> "],
            ["type", "/stats"],
            ["expect", "validation  "],
            ["expect", "2 model calls"],
            ["expect", "iudex> "],
            ["type", "/diff"],
            ["expect", "+pears"],
            ["expect", "iudex> "],
            ["type", "/context"],
            ["expect", " tokens"],
            ["expect", "iudex> "],
            ["type", "/undo"],
            ["expect", "1 file brought back"],
            ["expect", "iudex> "],
            ["type", "/model"],
            ["expect", "script "],
            ["expect", "iudex> "],
            ["type", "/quit"],
            ["exit", 0]
        ]),
    );
    assert!(!sandbox.exists("made.txt"), "{screen}");
}

#[test]
fn validate_shows_the_baseline_and_gates_the_following_turns() {
    let sandbox = with_script(&json!([write("other.txt", "x"), done(), write("made.txt", "x"), done(), done()]));
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "/validate test -f made.txt"],
            ["expect", "now: red, `test -f made.txt` exited 1"],
            ["expect", "iudex> "],
            ["type", "make the file"],
            ["expect", "sent back"],
            ["expect", "done (checked in place only) (exit 0)"],
            ["expect", "iudex> "],
            ["type", "/validate no-such-runner-of-tests"],
            ["expect", "error: "],
            ["expect", "iudex> "],
            ["type", "/validate"],
            ["expect", "check: test -f made.txt"],
            ["expect", "iudex> "],
            ["type", "/validate test -f made.txt || false"],
            ["expect", "now: green"],
            ["expect", "iudex> "],
            ["type", "/validate off"],
            ["expect", "no check: results are unvalidated"],
            ["expect", "iudex> "],
            ["type", "nothing more"],
            ["expect", "done (unvalidated)"],
            ["expect", "iudex> "],
            ["end-of-input"],
            ["exit", 0]
        ]),
    );
    sandbox.iudex(&["log"]).exits(0).says("make the file").says("nothing more");
}

#[test]
fn an_unknown_slash_command_names_the_nearest_and_is_no_prompt() {
    let sandbox = with_script(&json!([done()]));
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "/valdate cargo test"],
            ["expect", "did you mean /validate?"],
            ["expect", "iudex> "],
            ["type", "/no/such/thing at all"],
            ["expect", "there is no command /no/such/thing"],
            ["expect", "iudex> "],
            ["type", "/stats"],
            ["expect", "no turn yet"],
            ["expect", "iudex> "],
            ["type", "/help"],
            ["expect", "/validate CMD|off"],
            ["expect", "iudex> "],
            ["type", "/quit"],
            ["exit", 0]
        ]),
    );
    sandbox.iudex(&["log"]).exits(0).says("no runs");
}

#[test]
fn ctrl_c_stops_the_pass_with_its_tools_and_the_session_lives_on() {
    let sleeping = format!("sleep 4101.{}", std::process::id());
    let command = format!("setsid {sleeping} & touch begun; {sleeping}");
    let sandbox = with_script(&json!([bash(&command), write("made.txt", "x"), done()]));
    let begun = sandbox.project().join("begun");
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "hang"],
            ["file", begun],
            ["interrupt"],
            ["expect", "aborted (exit 130)"],
            ["expect", "iudex> "],
            ["interrupt"],
            ["expect", "nothing runs"],
            ["expect", "iudex> "],
            ["type", "and now work"],
            ["expect", "done (unvalidated)"],
            ["expect", "iudex> "],
            ["type", "/quit"],
            ["exit", 0]
        ]),
    );
    wait_until("the processes of the pass are gone", || processes_with(&sleeping).is_empty());
    assert_eq!(sandbox.read("made.txt"), "x");
}

#[test]
fn continue_takes_the_last_session_up_again() {
    let mut sandbox = with_script(&json!([{"text": "Noted: pears."}]));
    let quit = json!(["type", "/quit"]);
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "remember the pears"],
            ["expect", "Noted: pears."],
            ["expect", "iudex> "],
            quit,
            ["exit", 0]
        ]),
    );
    let reply = json!({"text": "Pears it was.", "expect": ["remember the pears", "Noted: pears.", "what was it"]});
    let model = sandbox.script(&json!({"replies": [reply]}));
    sandbox.set_env("IUDEX_MODEL", model);
    in_a_terminal(
        &sandbox,
        &["--continue"],
        &json!([
            ["expect", "iudex> "],
            ["type", "what was it"],
            ["expect", "Pears it was."],
            ["expect", "done (unvalidated)"],
            ["expect", "iudex> "],
            quit,
            ["exit", 0]
        ]),
    );
}

#[test]
fn a_session_that_was_interrupted_goes_on_with_every_call_closed() {
    use iudex_testkit::server::{ModelServer, Reply};
    let call = json!([{"index": 0, "id": "call-1", "type": "function",
        "function": {"name": "bash", "arguments": "{\"command\": \"touch begun; sleep 4102\"}"}}]);
    let server = ModelServer::start([Reply::calls(call), Reply::text("Went on.")]);
    let mut sandbox = Sandbox::new();
    sandbox.configure("[model]\nformat = \"native\"\n");
    sandbox.set_env("IUDEX_BASE_URL", server.base_url());
    let begun = sandbox.project().join("begun");
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "hang"],
            ["file", begun],
            ["interrupt"],
            ["expect", "aborted"],
            ["expect", "iudex> "],
            ["type", "/quit"],
            ["exit", 0]
        ]),
    );
    in_a_terminal(
        &sandbox,
        &["--continue"],
        &json!([
            ["expect", "iudex> "],
            ["type", "go on"],
            ["expect", "Went on."],
            ["expect", "iudex> "],
            ["type", "/quit"],
            ["exit", 0]
        ]),
    );
    let request = server.chats().pop().unwrap();
    let messages = request["messages"].as_array().unwrap();
    let open = messages.iter().position(|message| message["tool_calls"][0]["id"] == "call-1").unwrap();
    assert_eq!(messages[open + 1]["role"], "tool", "{request:#}");
    assert_eq!(messages[open + 1]["tool_call_id"], "call-1", "{request:#}");
}

#[test]
fn continue_without_a_session_is_a_usage_error() {
    let sandbox = with_script(&json!([done()]));
    in_a_terminal(&sandbox, &["--continue"], &json!([["expect", "no session was kept"], ["exit", 2]]));
    sandbox.iudex(&["--continue", "log"]).exits(2).says("--continue");
}

#[test]
fn sigterm_saves_the_turn_and_ends_the_session() {
    let sandbox = with_script(&json!([write("made.txt", "x"), bash("touch begun; sleep 4102"), done()]));
    let begun = sandbox.project().join("begun");
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "hang"],
            ["file", begun],
            ["terminate"],
            ["expect", "aborted (exit 130)"],
            ["exit", 130]
        ]),
    );
    sandbox.iudex(&["diff"]).exits(0).says("+x");
    in_a_terminal(&sandbox, &["--continue"], &json!([["expect", "iudex> "], ["terminate"], ["exit", 130]]));
}

#[test]
fn a_check_of_the_session_never_hides_the_configured_ones() {
    let sandbox = with_script(&json!([write("made.txt", "x"), done()]));
    sandbox.configure("[run]\nrequire-gate = true\n[gates]\ncheck = [\"exit 1\"]\n");
    in_a_terminal(
        &sandbox,
        &[],
        &json!([
            ["expect", "iudex> "],
            ["type", "/validate off"],
            ["expect", "require-gate is set"],
            ["expect", "iudex> "],
            ["type", "/validate test -f made.txt"],
            ["expect", "left out, and the outcome says so: exit 1"],
            ["expect", "iudex> "],
            ["type", "make it"],
            ["expect", "done (checked in place only; left out by /validate: exit 1)"],
            ["expect", "iudex> "],
            ["type", "/quit"],
            ["exit", 0]
        ]),
    );
    // The check outside of a run leaves neither files nor a snapshot behind.
    let runs = std::fs::read_dir(sandbox.state().join("runs")).unwrap().count();
    assert_eq!(runs, 1);
}
