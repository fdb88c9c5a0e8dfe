//! `undo`, `diff`, `log`, `show`, `stats`.

use serde_json::{Value, json};

use crate::common::{Sandbox, bash, done, write};

/// A project with one run that changed, added and removed a file.
fn after_a_run() -> (Sandbox, String) {
    let sandbox = Sandbox::new();
    sandbox.write("changed.txt", "before\n");
    sandbox.write("removed.txt", "precious\n");
    let replies =
        json!([write("changed.txt", "after\n"), write("new/added.txt", "new\n"), bash("rm removed.txt"), done()]);
    let model = sandbox.script(&json!({"replies": replies}));
    let ended = sandbox.iudex(&["run", "--json", "--until", "test -f new/added.txt", "--model", &model, "change it"]);
    let run = ended.exits(0).result()["run"].as_str().unwrap().to_owned();
    (sandbox, run)
}

#[test]
fn undo_brings_back_the_base() {
    let (sandbox, run) = after_a_run();
    assert_eq!(sandbox.read("changed.txt"), "after\n");
    sandbox.iudex(&["undo", &run]).exits(0).says("3 files brought back");
    assert_eq!(sandbox.read("changed.txt"), "before\n");
    assert_eq!(sandbox.read("removed.txt"), "precious\n");
    assert!(!sandbox.exists("new/added.txt"));
    sandbox.iudex(&["undo", "no-such-run"]).exits(2).says("no-such-run");
}

#[test]
fn undo_keeps_what_others_changed_unless_forced() {
    let (sandbox, _) = after_a_run();
    sandbox.write("changed.txt", "mine, later\n");
    sandbox.iudex(&["undo"]).exits(1).says("changed.txt").says("--force");
    assert_eq!(sandbox.read("changed.txt"), "mine, later\n");
    assert_eq!(sandbox.read("removed.txt"), "precious\n");
    sandbox.iudex(&["undo", "--force"]).exits(0);
    assert_eq!(sandbox.read("changed.txt"), "before\n");
}

#[test]
fn diff_shows_what_the_run_changed() {
    let (sandbox, _) = after_a_run();
    let ended = sandbox.iudex(&["diff"]).exits(0);
    for line in ["-before", "+after", "+new", "-precious"] {
        assert!(ended.out.lines().any(|shown| shown == line), "{line} is not in\n{}", ended.out);
    }
}

#[test]
fn log_lists_the_runs_of_this_directory_newest_first() {
    let (sandbox, first) = after_a_run();
    let model = sandbox.writes("second.txt", "x");
    sandbox.iudex(&["run", "--model", &model, "the second goal"]).exits(0);
    let listed = sandbox.iudex(&["log"]).exits(0);
    let lines: Vec<&str> = listed.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", listed.out);
    assert!(lines[0].contains("the second goal") && lines[0].contains("done (unvalidated)"), "{}", lines[0]);
    assert!(lines[1].contains(&first) && lines[1].contains("done (checked in place only)"), "{}", lines[1]);
    let json: Value = serde_json::from_str(&sandbox.iudex(&["log", "--json"]).exits(0).out).unwrap();
    assert_eq!(json[1]["run"], first.as_str());

    std::fs::create_dir(sandbox.root().join("elsewhere")).unwrap();
    let elsewhere = sandbox.root().join("elsewhere");
    let elsewhere = elsewhere.to_str().unwrap();
    sandbox.iudex(&["log", "--cwd", elsewhere]).exits(0).never_says("the second goal");
    sandbox.iudex(&["log", "--cwd", elsewhere, "--all"]).exits(0).says("the second goal");
}

#[test]
fn show_gives_the_transcript() {
    let (sandbox, run) = after_a_run();
    let shown = sandbox.iudex(&["show", &run]).exits(0);
    shown.says("> write changed.txt").says("=== check: accepted ===").says("rm removed.txt");
    let events: Value = serde_json::from_str(&sandbox.iudex(&["show", "--json"]).exits(0).out).unwrap();
    assert!(events.as_array().unwrap().len() > 10);
}

#[test]
fn stats_show_the_recorded_validation() {
    let (sandbox, run) = after_a_run();
    let shown = sandbox.iudex(&["stats"]).exits(0);
    shown
        .says("done (checked in place only)")
        .says("check before any work: rework")
        .says("check after pass 1: accepted");
    let stats: Value = serde_json::from_str(&sandbox.iudex(&["stats", "--json", &run]).exits(0).out).unwrap();
    assert_eq!(stats["run"], run.as_str());
    assert_eq!(stats["rulings"].as_array().unwrap().len(), 2);
    assert_eq!(stats["calls"], 4);
    assert_eq!(stats["gates"].as_array().unwrap().len(), 1, "cost per gate: {stats}");
}

#[test]
fn a_bare_done_is_shown_nowhere_when_no_check_ran() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x");
    let ran = sandbox.iudex(&["run", "--model", &model, "make it"]).exits(0);
    let shown = [ran, sandbox.iudex(&["log"]), sandbox.iudex(&["stats"]), sandbox.iudex(&["stats", "--json"])];
    for ended in shown {
        assert!(ended.out.contains("done (unvalidated)"), "{}", ended.out);
        let bare = ended.out.replace("done (unvalidated)", "");
        let says_done = bare.lines().any(|line| line.contains("outcome") && line.contains("done"));
        assert!(!says_done, "{}", ended.out);
    }
}

#[test]
fn without_a_run_there_is_nothing_to_show() {
    let sandbox = Sandbox::new();
    for command in ["undo", "diff", "show", "stats"] {
        sandbox.iudex(&[command]).exits(2).says("error:");
    }
    sandbox.iudex(&["log"]).exits(0).says("no runs");
}
