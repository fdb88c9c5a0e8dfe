//! Ctrl-C, SIGTERM, SIGKILL: work is saved, and no process stays behind.

use std::process::Child;

use serde_json::json;

use crate::common::{Sandbox, bash, done, processes_with, signal, wait, wait_until, write};

/// A number of seconds that no other process of this machine sleeps.
fn seconds(number: u32) -> String {
    format!("400{number}.{}", std::process::id())
}

/// A run whose agent has written a file and started processes that hold on.
fn at_work(sandbox: &Sandbox, seconds: &str) -> Child {
    let command = format!("setsid sleep {seconds} & (sleep {seconds} &) ; touch begun; sleep {seconds}");
    let model = sandbox.script(&json!({"replies": [write("work.txt", "half done\n"), bash(&command), done()]}));
    let child = sandbox.start(&["run", "--json", "--until", "test -f never", "--model", &model, "make it"]);
    wait_until("the agent works", || sandbox.exists("begun"));
    child
}

fn none_left(seconds: &str) {
    wait_until("every process of the run is gone", || processes_with(&format!("sleep {seconds}")).is_empty());
}

#[test]
fn ctrl_c_saves_and_ends_every_process() {
    let sandbox = Sandbox::new();
    let child = at_work(&sandbox, &seconds(1));
    signal(child.id(), "INT");
    let ended = wait(child).exits(130);
    assert_eq!(ended.result()["outcome"], "aborted");
    none_left(&seconds(1));
    sandbox.iudex(&["log"]).exits(0).says("aborted");
    sandbox.iudex(&["diff"]).exits(0).says("+half done");
    sandbox.iudex(&["undo"]).exits(0);
    assert!(!sandbox.exists("work.txt"));
}

#[test]
fn sigterm_and_sighup_do_the_same() {
    for (name, number) in [("TERM", 2), ("HUP", 3)] {
        let seconds = seconds(number);
        let sandbox = Sandbox::new();
        let child = at_work(&sandbox, &seconds);
        signal(child.id(), name);
        wait(child).exits(130);
        none_left(&seconds);
        sandbox.iudex(&["diff"]).exits(0).says("+half done");
    }
}

#[test]
fn sigkill_leaves_no_process_and_the_base_can_be_brought_back() {
    let sandbox = Sandbox::new();
    let child = at_work(&sandbox, &seconds(4));
    signal(child.id(), "KILL");
    assert_eq!(wait(child).code, None);
    none_left(&seconds(4));
    sandbox.iudex(&["log"]).exits(0).never_says("done");
    sandbox.iudex(&["undo"]).exits(1).says("by the run, which was killed in a pass").says("work.txt");
    sandbox.iudex(&["undo", "--force"]).exits(0);
    assert!(!sandbox.exists("work.txt"));
    let model = sandbox.writes("made.txt", "x");
    sandbox.iudex(&["run", "--model", &model, "the lock is free"]).exits(0);
}

#[test]
fn ctrl_c_stops_a_check_with_its_processes() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x");
    let sleeping = format!("sleep {}", seconds(5));
    let check = format!("test -f made.txt || exit 1; setsid {sleeping} & touch checking; {sleeping}");
    let child = sandbox.start(&["run", "--json", "--until", &check, "--model", &model, "make it"]);
    wait_until("the check runs", || sandbox.exists("checking"));
    signal(child.id(), "INT");
    wait(child).exits(130);
    none_left(&seconds(5));
}

#[test]
fn a_background_process_of_the_agent_ends_with_its_command() {
    let sandbox = Sandbox::new();
    let command = format!("setsid sleep {} & echo started", seconds(6));
    let model = sandbox.script(&json!({"replies": [bash(&command), write("made.txt", "x"), done()]}));
    let ended = sandbox.iudex(&["run", "--json", "--model", &model, "make it"]).exits(0);
    none_left(&seconds(6));
    assert!(ended.tool_results()[0].contains("background"), "{:?}", ended.tool_results());
}

#[test]
fn ctrl_c_twice_ends_at_once_and_leaves_no_process() {
    let sandbox = Sandbox::new();
    let child = at_work(&sandbox, &seconds(7));
    for _ in 0..2 {
        // The first may have ended the program already.
        let _ = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).output().unwrap();
    }
    wait(child).exits(130);
    none_left(&seconds(7));
}
