//! `iudex run`: its stream, where the task comes from, what it refuses before anything is paid.

use std::fs;
use std::io::Read;
use std::process::Stdio;
use std::time::Duration;

use serde_json::{Value, json};

use crate::common::{Sandbox, bash, done, read, wait, wait_until, write};

#[test]
fn the_last_block_shows_outcome_evidence_changes_and_use() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    let ended = sandbox.iudex(&["run", "--until", "test -f made.txt", "--model", &model, "make it"]).exits(0);
    for part in [
        "outcome     done (checked in place only) (exit 0)",
        "check       `test -f made.txt` exited 0",
        "failed before the work",
        "made.txt +1 -0",
        "1 pass, 2 model calls",
        "cost $0.0000",
    ] {
        assert!(ended.out.contains(part), "{part:?} is not in\n{}", ended.out);
    }
    assert!(ended.err.contains("check before any work: red"), "{}", ended.err);
}

#[test]
fn the_stream_has_no_gap_and_ends_with_the_result() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    let ended = sandbox.iudex(&["run", "--json", "--until", "test -f made.txt", "--model", &model, "make it"]).exits(0);
    let mut events = ended.events();
    let result = events.pop().unwrap();
    assert_eq!(result["event"], "result");
    assert_eq!(result["outcome"], "done (checked in place only)");
    assert_eq!(result["validation"]["validation"], "accepted");
    for (index, event) in events.iter().enumerate() {
        assert_eq!(event["seq"], index + 1, "{event}");
    }
    assert_eq!(events.first().unwrap()["event"], "run_started");
    assert_eq!(events.last().unwrap()["event"], "run_ended");
}

#[test]
fn a_slow_reader_loses_nothing_and_does_not_slow_the_run() {
    let sandbox = Sandbox::new();
    // More than a pipe holds, so the writer must wait while the run goes on.
    let mut replies: Vec<_> = (0..12).map(|number| bash(&format!("seq {number} 4000"))).collect();
    replies.extend([write("made.txt", "x\n"), done()]);
    let model = sandbox.script(&json!({"window": 200_000, "replies": replies}));
    let mut child =
        sandbox.command(&["run", "--json", "--model", &model, "make it"]).stdout(Stdio::piped()).spawn().unwrap();
    let mut pipe = child.stdout.take().unwrap();
    // The run reaches its end although nobody has read a byte.
    wait_until("the run ends while nobody reads", || {
        let listed = sandbox.iudex(&["log"]);
        listed.out.contains("done (unvalidated)")
    });
    let (mut text, mut buffer) = (Vec::new(), vec![0; 8192]);
    loop {
        match pipe.read(&mut buffer).unwrap() {
            0 => break,
            count => text.extend_from_slice(&buffer[..count]),
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    assert!(text.len() > 200_000, "{} bytes prove nothing", text.len());
    let text = String::from_utf8(text).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let (result, events) = lines.split_last().unwrap();
    assert_eq!(result["event"], "result");
    assert!(events.iter().enumerate().all(|(index, event)| event["seq"] == index + 1));
    assert_eq!(events.last().unwrap()["event"], "run_ended");
}

#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let sandbox = Sandbox::new();
    let replies = json!([bash("seq 1 3000"), bash("seq 2 3000"), write("made.txt", "x\n"), done()]);
    let model = sandbox.script(&json!({"window": 200_000, "replies": replies}));
    let mut child = sandbox.start(&["run", "--json", "--model", &model, "make it"]);
    drop(child.stdout.take());
    wait(child).exits(0);
    assert_eq!(sandbox.read("made.txt"), "x\n");
}

#[test]
fn the_goal_comes_from_standard_input() {
    let sandbox = Sandbox::new();
    let model = sandbox.script(&json!({"replies": [
        {"action": {"tool": "write", "path": "made.txt", "content": "x"}, "expect": ["a goal that came by a pipe"]}, done()]}));
    sandbox.iudex_with_input(&["run", "--model", &model, "-"], b"a goal that came by a pipe\n").exits(0);
    sandbox.iudex_with_input(&["run", "--model", &model, "-"], b" \n").exits(2);
}

#[test]
fn the_task_comes_from_a_file_with_criteria_and_decisions() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "task.md",
        "Make the file.\n\n## Criteria\n\n- it holds pears\n\n## Decisions\n\n- plain text, not JSON\n",
    );
    let model = sandbox.script(&json!({"replies": [
        {"action": {"tool": "write", "path": "made.txt", "content": "pears"},
         "expect": ["Make the file.", "it holds pears", "plain text, not JSON"]}, done()]}));
    sandbox.iudex(&["run", "--model", &model, "--file", "task.md"]).exits(0);
    sandbox.iudex(&["run", "--model", &model, "--file", "task.md", "and a goal"]).exits(2).says("hint:");
    sandbox.iudex(&["run", "--model", &model, "--file", "missing.md"]).exits(2).says("missing.md");
}

#[test]
fn a_dry_run_shows_the_plan_and_runs_nothing() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    let arguments =
        ["run", "--dry-run", "--until", "touch checked", "--max-retries", "7", "--model", &model, "make it"];
    let ended = sandbox.iudex(&arguments).exits(0).says("touch checked").says("7 retries").says("nothing was run");
    assert!(ended.out.contains("make it"), "{}", ended.out);
    assert!(!sandbox.exists("checked") && !sandbox.exists("made.txt"));
    sandbox.iudex(&["log"]).never_says("make it");
}

#[test]
fn variables_that_no_command_gets_are_named_and_their_values_are_not() {
    let mut sandbox = Sandbox::new();
    sandbox.set_env("DJANGO_SECRET_KEY", "never-shown");
    let model = sandbox.writes("made.txt", "x\n");
    let run = ["run", "--dry-run", "--until", "true", "--model", &model, "make it"];
    sandbox.iudex(&run).exits(0).says("withheld    DJANGO_SECRET_KEY").never_says("never-shown");
    sandbox.iudex(&["doctor"]).says("DJANGO_SECRET_KEY").never_says("never-shown");
}

#[test]
fn a_bare_run_is_gated_by_the_configuration() {
    let sandbox = Sandbox::new();
    sandbox.configure("[gates]\ncheck = [\"test -f made.txt\"]\n");
    let model = sandbox.writes("made.txt", "x\n");
    sandbox.iudex(&["run", "--model", &model, "make it"]).exits(0).says("`test -f made.txt` exited 0");
}

#[test]
fn configured_gates_that_were_left_out_are_named() {
    let sandbox = Sandbox::new();
    sandbox.configure("[gates]\ncheck = [\"exit 1\"]\n");
    let model = sandbox.writes("made.txt", "x\n");
    let ended = sandbox.iudex(&["run", "--no-config-gates", "--model", &model, "make it"]).exits(0);
    ended.says("done (unvalidated; left out by --no-config-gates: exit 1)");
}

/// What the first message of each conversation shows of the files.
fn openings(sandbox: &Sandbox, settings: &Value) -> Vec<String> {
    sandbox.write("fruit.txt", "apple\n");
    let mut script = json!({"then": "repeat_last", "replies": [
        write("made.txt", "1"), done(), write("made.txt", "2"), done(), write("made.txt", "3"), done()]});
    script.as_object_mut().unwrap().extend(settings.as_object().unwrap().clone());
    let model = sandbox.script(&script);
    let arguments = ["run", "--json", "--until", "exit 1", "--max-retries", "2", "--model", &model, "make it"];
    let ended = sandbox.iudex(&arguments).exits(1);
    let events = ended.events();
    let told = events.iter().filter(|event| event["event"] == "message" && event["role"] == "user");
    told.filter_map(|event| event["text"].as_str()?.split_once("Task: make it")).map(|it| it.0.to_owned()).collect()
}

#[test]
fn a_small_model_is_shown_the_files_anew_in_each_pass_and_in_a_fresh_conversation_their_names() {
    let openings = openings(&Sandbox::new(), &json!({"small": true}));
    let [first, again, fresh] = &openings[..] else { panic!("three openings: {openings:?}") };
    assert!(first.contains("=== fruit.txt\napple\n") && !first.contains("made.txt"), "{first}");
    assert!(again.contains("=== fruit.txt\napple\n=== made.txt\n1\n"), "{again}");
    assert!(fresh.contains("Files: fruit.txt, made.txt") && !fresh.contains("apple"), "{fresh}");
}

#[test]
fn a_large_model_is_told_the_names_and_a_configured_strategy_wins() {
    let large = openings(&Sandbox::new(), &json!({"small": false}));
    assert!(large[0].contains("Files: fruit.txt") && !large[0].contains("apple"), "{large:?}");
    let sandbox = Sandbox::new();
    sandbox.configure("[agent]\nstrategy = \"plain\"\n");
    let plain = openings(&sandbox, &json!({"small": true}));
    assert!(plain[0].contains("Files: fruit.txt") && !plain[0].contains("apple"), "{plain:?}");
}

#[test]
fn a_run_without_a_gate_can_be_forbidden() {
    let sandbox = Sandbox::new();
    sandbox.configure("[run]\nrequire-gate = true\n");
    let model = sandbox.writes("made.txt", "x\n");
    sandbox.iudex(&["run", "--model", &model, "make it"]).exits(2).says("require-gate").says("--until");
    assert!(!sandbox.exists("made.txt"));
}

#[test]
fn money_without_a_price_is_refused_before_anything_is_asked() {
    let mut sandbox = Sandbox::new();
    // An address that is never answered: asking it would hang.
    sandbox.set_env("IUDEX_BASE_URL", "http://192.0.2.1/v1");
    let ended = sandbox.iudex(&["run", "--max-cost", "1", "--model", "far-away", "make it"]).exits(2);
    ended.says("--max-cost").says("price").says("far-away");
    sandbox.configure("[model]\nprice-prompt = 1.0\n");
    sandbox.iudex(&["run", "--max-cost", "1", "--model", "far-away", "make it"]).exits(2).says("price-output");
}

#[test]
fn a_task_above_half_the_window_is_refused_with_both_sizes() {
    let sandbox = Sandbox::new();
    let model = sandbox.script(&json!({"window": 1500, "replies": [done()]}));
    let goal = "many words ".repeat(1000);
    let ended = sandbox.iudex(&["run", "--model", &model, &goal]).exits(2).says("1500");
    let tokens = ended.err.split_whitespace().find_map(|word| word.parse::<u64>().ok()).unwrap();
    assert!((1500..5000).contains(&tokens), "{tokens} in {}", ended.err);
}

#[test]
fn a_path_with_spaces_and_quotes_is_a_path() {
    let sandbox = Sandbox::with_project("my project's \"files\"");
    let model = sandbox.script(&json!({"replies": [bash("echo x > 'a file'"), read("a file"), done()]}));
    sandbox.iudex(&["run", "--until", "test -f 'a file'", "--model", &model, "make it"]).exits(0);
    assert_eq!(sandbox.read("a file"), "x\n");
    sandbox.iudex(&["undo"]).exits(0);
    assert!(!sandbox.exists("a file"));
}

#[test]
fn another_directory_is_named_by_cwd() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.project().join("below")).unwrap();
    let model = sandbox.writes("made.txt", "x\n");
    sandbox.iudex(&["run", "--cwd", "below", "--model", &model, "make it"]).exits(0);
    assert_eq!(sandbox.read("below/made.txt"), "x\n");
    sandbox.iudex(&["run", "--cwd", "nowhere", "--model", &model, "make it"]).exits(2).says("nowhere").says("hint:");
}

#[test]
fn the_root_and_the_home_directory_are_refused() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    let home = sandbox.home();
    for place in ["/", home.to_str().unwrap()] {
        sandbox.iudex(&["run", "--cwd", place, "--model", &model, "make it"]).exits(2).says("--cwd");
    }
    assert!(!home.join("made.txt").exists());
}

#[test]
fn a_second_run_in_the_same_directory_names_the_first() {
    let sandbox = Sandbox::new();
    let slow = sandbox.script(&json!({"replies": [bash("touch begun; sleep 302")]}));
    let first = sandbox.start(&["run", "--json", "--model", &slow, "the first"]);
    wait_until("the first run works", || sandbox.exists("begun"));
    fs::create_dir(sandbox.project().join("below")).unwrap();
    let model = sandbox.writes("made.txt", "x\n");
    let pid = first.id().to_string();
    sandbox.iudex(&["run", "--model", &model, "the second"]).exits(2).says(&pid);
    sandbox.iudex(&["run", "--cwd", "below", "--model", &model, "a child"]).exits(2).says(&pid);
    assert!(!sandbox.exists("made.txt"));
    crate::common::signal(first.id(), "INT");
    let ended = wait(first).exits(130);
    let run = ended.result()["run"].as_str().unwrap().to_owned();
    assert!(!run.is_empty());
    sandbox.iudex(&["run", "--model", &model, "after the first"]).exits(0);
}

#[test]
fn a_check_that_can_not_run_is_void_three_times_and_then_a_person_is_asked() {
    let mut sandbox = Sandbox::new();
    let path = std::env::var("PATH").unwrap();
    let Some(bubblewrap) = std::env::split_paths(&path).map(|folder| folder.join("bwrap")).find(|file| file.is_file())
    else {
        eprintln!("left out: bubblewrap is not installed");
        return;
    };
    // A copy that the test can take away in the middle of the run.
    let folder = sandbox.root().join("bin");
    fs::create_dir(&folder).unwrap();
    fs::copy(bubblewrap, folder.join("bwrap")).unwrap();
    sandbox.set_env("PATH", format!("{}:{path}", folder.display()));
    let command = "touch begun; until test -e go; do sleep 0.05; done";
    let model = sandbox.script(&json!({"replies": [write("made.txt", "x"), bash(command), done()]}));
    let child = sandbox.start(&["run", "--json", "--until", "test -f made.txt", "--model", &model, "make it"]);
    wait_until("the agent works", || sandbox.exists("begun"));
    fs::remove_file(folder.join("bwrap")).unwrap();
    sandbox.write("go", "");
    let ended = wait(child).exits(6);
    assert_eq!(ended.result()["outcome"], "needs you");
    let voids = ended.events().iter().filter(|event| event["ruling"]["ruling"] == "void").count();
    assert_eq!(voids, 3, "{}", ended.out);
    assert_eq!(sandbox.read("made.txt"), "x", "the work is kept");
}
