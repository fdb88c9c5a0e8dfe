//! `bash` with real processes.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::time::Duration;

use common::Place;
use serde_json::json;

mod common;

fn place() -> Place {
    let own = std::env::current_exe().unwrap();
    let beside = own.parent().and_then(std::path::Path::parent).unwrap().join("examples/agent_supervisor");
    if beside.is_file() {
        iudex_exec::set_supervisor(beside);
    }
    Place::new()
}

#[tokio::test]
async fn the_end_of_a_command_is_told_as_it_was() {
    let place = place();
    let cases = [
        ("echo hello", true, "hello"),
        ("true", true, "(no output, exit code 0)"),
        ("echo out; echo err >&2; exit 3", false, "out\nerr\nExit code 3."),
        ("false | cat", false, "Exit code 1."),
        ("kill -9 $$", false, "Ended by signal 9 (kill)."),
        ("cat; echo closed", true, "closed"),
        ("printf '\\033[31mred\\033[0m\\n10%%\\r100%%\\n'", true, "red\n100%"),
        ("printf '\\033]8;;x\\033\\134link\\n'", true, "link"),
        ("cd sub && pwd | sed 's:.*/::'", true, "sub"),
    ];
    place.put("sub/x", "");
    for (command, ok, text) in cases {
        let result = place.call("bash", json!({"command": command})).await;
        assert_eq!((result.ok, result.text.as_str()), (ok, text), "{command}");
        assert!(result.blocked.is_none() && result.may_have_changed);
    }
    let result = place.call("bash", json!({"command": "no-such-program-here"})).await;
    assert!(!result.ok && result.text.ends_with("Exit code 127."), "{}", result.text);
}

#[tokio::test]
async fn long_output_keeps_head_and_tail_within_the_bound() {
    let place = place();
    let result = place.call("bash", json!({"command": "echo first; seq 1 200000; echo last; exit 1"})).await;
    assert!(result.text.len() <= 8_000, "{}", result.text.len());
    assert!(result.text.starts_with("first\n1\n2\n") && result.text.ends_with("199999\n200000\nlast\nExit code 1."));
}

#[tokio::test]
async fn a_command_over_its_time_is_ended_and_its_output_kept() {
    let mut place = place();
    place.settings().bash_time_limit = Duration::from_secs(2);
    for arguments in [
        json!({"command": "echo before; sleep 600", "timeout": 1}),
        json!({"command": "echo before; sleep 600", "timeout": 100_000}),
        json!({"command": "echo before; sleep 600", "timeout": "1"}),
    ] {
        let result = tokio::time::timeout(Duration::from_mins(1), place.call("bash", arguments.clone())).await.unwrap();
        assert!(!result.ok && result.text.starts_with("before\nNot finished after"), "{arguments}: {}", result.text);
    }
}

#[tokio::test]
async fn background_processes_are_ended_and_that_is_said() {
    let place = place();
    let command = "sleep 600 & sleep 600 & echo started";
    let result =
        tokio::time::timeout(Duration::from_mins(1), place.call("bash", json!({"command": command}))).await.unwrap();
    assert!(result.ok, "{}", result.text);
    assert!(result.text.starts_with("started\n"), "{}", result.text);
    assert!(
        result.text.ends_with("background processes were ended; start a server and use it in one command.")
            || result.text.ends_with("background process was ended; start a server and use it in one command."),
        "{}",
        result.text
    );
}

#[tokio::test]
async fn the_policy_blocks_or_explains_and_nothing_runs() {
    let place = place();
    let result = place.call("bash", json!({"command": "touch ran; git push origin main"})).await;
    assert!(!result.ok && !result.may_have_changed);
    assert_eq!(result.blocked.as_deref(), Some("`git push origin main` would push to a remote (push)"));
    let result = place.call("bash", json!({"command": "touch ran; sudo ls"})).await;
    assert!(!result.ok && result.blocked.is_none() && result.text.contains("without it"), "{}", result.text);
    let home = place.beside("home").display().to_string();
    for command in [format!("rm -rf {home}"), "rm -rf ~".to_owned(), "rm -rf $HOME/*".to_owned()] {
        let result = place.call("bash", json!({"command": format!("touch ran; {command}")})).await;
        assert!(result.blocked.is_some(), "{command}: {}", result.text);
    }
    assert!(!place.dir().join("ran").exists());
    assert!(place.beside("home").exists());
}

#[tokio::test]
async fn a_missing_network_is_named_only_when_the_output_shows_it() {
    let mut place = place();
    let resolution = "echo 'curl: (6) Could not resolve host: example.com' >&2; exit 6";
    let result = place.call("bash", json!({"command": resolution})).await;
    assert!(
        result.text.ends_with("Exit code 6.\nThere is no network here. Work with what is installed."),
        "{}",
        result.text
    );
    let refused = "echo 'connection refused' >&2; exit 7";
    let result = place.call("bash", json!({"command": refused})).await;
    assert!(!result.text.contains("network"), "a loopback server that is down is another thing: {}", result.text);
    place.settings().confinement.network = true;
    let result = place.call("bash", json!({"command": resolution})).await;
    assert!(!result.text.contains("no network"), "{}", result.text);
}

#[tokio::test]
async fn wrong_arguments_are_errors_that_say_what_is_wanted() {
    let place = place();
    for (arguments, text) in [
        (json!({}), "command is missing. Send the call again with it."),
        (json!({"command": ["ls"]}), "command must be a string, not an array. Send the call again."),
        (json!({"command": "  "}), "command is empty. Give a bash command."),
        (json!({"command": "a\0b"}), "command holds a NUL character. Send it again without."),
        (json!({"command": "ls", "timeout": "soon"}), "timeout must be a number. Send the call again."),
    ] {
        let result = place.call("bash", arguments.clone()).await;
        assert_eq!((result.ok, result.text.as_str()), (false, text), "{arguments}");
    }
    let result = place.call("fetch", json!({})).await;
    assert_eq!(result.text, "There is no tool \"fetch\". The tools are: read, write, edit, bash, search.");
}

#[tokio::test]
async fn lines_are_shown_while_the_command_runs() {
    let place = place();
    let mut lines = Vec::new();
    let arguments = json!({"command": "echo one; echo two"});
    place.tools().call("bash", arguments.as_object().unwrap(), &mut |line| lines.push(line.to_owned())).await;
    assert_eq!(lines, ["one", "two"]);
}
