//! What is read back.

use std::path::{Path, PathBuf};

use iudex_core::{CommandEnd, Event, NotStarted, Outcome, PassNumber, Ruling};
use serde_json::{Value, json};

use crate::events::{
    accepted, call, dead_pid, done, ended, ledger, new_run, pass_started, pinned, raw, record_all, rework, ruled,
    snapshot, void, whole_run,
};

#[test]
fn a_run_is_listed_with_outcome_passes_and_the_first_line_of_its_goal() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(&ledger, "a", &whole_run());
    let row = ledger.runs(None, 10).unwrap().remove(0);
    assert_eq!(row.goal, "make the failing test pass");
    assert_eq!((row.passes, row.exit_code), (2, Some(0)));
    assert_eq!(row.outcome, "done (checked in place only)");
    assert_eq!((row.directory.as_str(), row.model.as_str()), ("/w", "qwen2.5-coder"));
    assert!(row.ended.unwrap() >= row.started);
}

#[test]
fn runs_come_newest_first_and_of_one_directory_only_where_asked() {
    let (_state, ledger) = ledger();
    for (run, directory) in [("r1", "/w/a"), ("r2", "/w/b"), ("r3", "/w/a"), ("r4", "/w/a/sub")] {
        ledger.begin(&new_run(run, directory)).unwrap();
    }
    let names = |directory: Option<&str>, most| -> Vec<String> {
        ledger.runs(directory.map(Path::new), most).unwrap().into_iter().map(|row| row.run).collect()
    };
    assert_eq!(names(None, 10), ["r4", "r3", "r2", "r1"]);
    assert_eq!(names(None, 2), ["r4", "r3"]);
    assert_eq!(names(Some("/w/a"), 10), ["r3", "r1"]);
    assert_eq!(names(Some("/nowhere"), 10), Vec::<String>::new());
}

#[test]
fn a_directory_whose_name_is_not_utf8_is_found_again() {
    use std::os::unix::ffi::OsStringExt;
    let (_state, ledger) = ledger();
    let directory = PathBuf::from(std::ffi::OsString::from_vec(b"/w/caf\xe9".to_vec()));
    let mut new = new_run("a", "");
    new.directory.clone_from(&directory);
    ledger.begin(&new).unwrap();
    assert_eq!(ledger.find(None, &directory).unwrap().unwrap().run, "a");
    assert_eq!(ledger.find(None, Path::new("/w/caf\u{fffd}")).unwrap(), None);
}

#[test]
fn a_run_is_found_by_an_unambiguous_beginning() {
    let (_state, ledger) = ledger();
    for run in ["20261130-1", "20261130-12", "20261201-7"] {
        ledger.begin(&new_run(run, "/w")).unwrap();
    }
    let find = |name: &str| ledger.find(Some(name), Path::new("/elsewhere"));
    assert_eq!(find("202612").unwrap().unwrap().run, "20261201-7");
    assert_eq!(find("20261130-1").unwrap().unwrap().run, "20261130-1", "the whole name wins over a longer one");
    assert_eq!(find("2027").unwrap(), None);
    let error = find("20261130").unwrap_err();
    assert!(error.message.contains("20261130-1, ") || error.message.contains(", 20261130-1"), "{error}");
    assert!(error.message.contains("20261130-12") && error.hint.is_some(), "{error}");
    assert!(!error.message.contains("20261201"), "{error}");
}

#[test]
fn wildcards_and_nothing_find_no_run() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("20261130", "/w")).unwrap();
    for name in ["%", "_", "2026_130", "*", ""] {
        assert_eq!(ledger.find(Some(name), Path::new("/w")).unwrap(), None, "{name:?}");
    }
}

#[test]
fn without_a_name_the_last_run_of_the_directory_is_found() {
    let (_state, ledger) = ledger();
    for (run, directory) in [("r1", "/w/a"), ("r2", "/w/a"), ("r3", "/w/b")] {
        ledger.begin(&new_run(run, directory)).unwrap();
    }
    assert_eq!(ledger.find(None, Path::new("/w/a")).unwrap().unwrap().run, "r2");
    assert_eq!(ledger.find(None, Path::new("/w")).unwrap(), None);
}

#[test]
fn a_run_whose_process_is_gone_reads_as_killed() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("alive", "/w")).unwrap();
    let mut killed = new_run("dead", "/w");
    killed.pid = dead_pid();
    ledger.begin(&killed).unwrap();
    record_all(&ledger, "dead", &[pass_started(1, None), call(700, 30)]);
    ledger.begin(&new_run("recycled", "/w")).unwrap();
    raw(&state).execute("UPDATE runs SET pid_started = pid_started - 1 WHERE run = 'recycled'", []).unwrap();

    let outcome = |run: &str| ledger.stats(run).unwrap().row.outcome;
    assert_eq!(outcome("alive"), "running");
    assert_eq!(outcome("dead"), "killed");
    assert_eq!(outcome("recycled"), "killed", "another process got the number");
    let stats = ledger.stats("dead").unwrap();
    assert_eq!((stats.prompt_tokens, stats.output_tokens, stats.calls), (700, 30, 1));
    assert_eq!(stats.cost_micros, None, "what a killed run cost is unknown, not zero");
    assert_eq!((stats.row.ended, stats.row.exit_code), (None, None));
    assert!(stats.validation.starts_with("no verdict, the run was killed"), "{}", stats.validation);
}

#[test]
fn a_run_that_ended_stays_ended_when_its_process_is_gone() {
    let (_state, ledger) = ledger();
    let mut new = new_run("a", "/w");
    new.pid = dead_pid();
    ledger.begin(&new).unwrap();
    ledger.record("a", &ended(Outcome::ValidationFailed, None)).unwrap();
    let row = ledger.runs(None, 1).unwrap().remove(0);
    assert_eq!((row.outcome.as_str(), row.exit_code), ("validation failed", Some(1)));
}

#[test]
fn a_run_that_never_started_says_why_and_is_not_taken_for_killed() {
    let (_state, ledger) = ledger();
    let mut new = new_run("a", "/w");
    new.pid = dead_pid();
    ledger.begin(&new).unwrap();
    let why = NotStarted { message: "the program `pytset` is not on PATH".to_owned(), hint: None };
    ledger.not_started("a", &why).unwrap();
    let stats = ledger.stats("a").unwrap();
    assert_eq!((stats.row.outcome.as_str(), stats.row.exit_code), ("not started", Some(2)));
    assert_eq!(stats.validation, "nothing was started: the program `pytset` is not on PATH");
}

#[test]
fn stats_add_up_gates_interventions_tokens_and_the_difference() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(&ledger, "a", &whole_run());
    let stats = ledger.stats("a").unwrap();
    assert_eq!(
        stats.gates,
        [json!({
            "gate": "check", "asked": 2, "millis": 110, "baselines": 1, "baseline_millis": 40,
            "tokens": 0, "cost_micros": 0
        })]
    );
    assert_eq!(stats.interventions, [json!({ "kind": "repeats", "count": 1 })]);
    assert_eq!((stats.prompt_tokens, stats.output_tokens, stats.calls, stats.cost_micros), (1800, 120, 8, None));
    assert_eq!(stats.diff, json!({ "files": [{ "path": "src/lib.rs", "added": 3, "removed": 1 }] }));
    let words: Vec<&Value> = stats.rulings.iter().map(|ruling| &ruling["ruling"]["ruling"]).collect();
    assert_eq!(words, ["rework", "rework", "accepted"]);
    assert_eq!(stats.rulings[0]["pass"], Value::Null);
    assert_eq!(stats.rulings[2]["ruling"]["commands"][0]["command"], "cargo test");
    assert_eq!(
        stats.validation,
        "check accepted: `cargo test` exited 0 (12 passed, 0 failed), in place; red before any work"
    );
    let flat = serde_json::to_value(&stats).unwrap();
    assert_eq!((&flat["run"], &flat["outcome"]), (&json!("a"), &json!("done (checked in place only)")));
}

#[test]
fn a_note_is_part_of_the_outcome_word() {
    let (_state, ledger) = ledger();
    let mut new = new_run("a", "/w");
    new.note = Some("without the configured gates".to_owned());
    ledger.begin(&new).unwrap();
    record_all(&ledger, "a", &whole_run());
    assert_eq!(ledger.runs(None, 1).unwrap()[0].outcome, "done (checked in place only; without the configured gates)");
    assert!(ledger.stats("a").unwrap().validation.ends_with("; without the configured gates"));
}

#[test]
fn the_validation_of_a_failed_run_is_the_last_ruling_in_words() {
    let (_state, ledger) = ledger();
    for (run, ruling, expected) in [
        ("red", rework("cargo test", CommandEnd::Exited(101)), "check rework: `cargo test` exited 101"),
        ("late", rework("make", CommandEnd::TimedOut), "check rework: `make` ran into its time limit"),
        ("void", void("no space left on /state"), "check void: no space left on /state"),
    ] {
        ledger.begin(&new_run(run, "/w")).unwrap();
        record_all(&ledger, run, &[pinned(1, "1"), ruled(Some(1), ruling, 5), ended(Outcome::ValidationFailed, None)]);
        let validation = ledger.stats(run).unwrap().validation;
        assert!(validation.starts_with(expected), "{run}: {validation}");
    }
    ledger.begin(&new_run("unasked", "/w")).unwrap();
    ledger.record("unasked", &ended(Outcome::Aborted, None)).unwrap();
    assert_eq!(ledger.stats("unasked").unwrap().validation, "no gate ruled about a proposal");
}

#[test]
fn where_a_ruling_stands_the_one_about_that_tree_is_shown() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(
        &ledger,
        "a",
        &[
            pinned(1, "x"),
            ruled(Some(1), rework("first", CommandEnd::Exited(1)), 5),
            pinned(2, "y"),
            ruled(Some(2), rework("second", CommandEnd::Exited(2)), 5),
            pinned(3, "x"),
            Event::RulingStands { pass: PassNumber(3) },
            ended(Outcome::ValidationFailed, None),
        ],
    );
    assert!(ledger.stats("a").unwrap().validation.contains("`first` exited 1"));
    // A proposal that is the base again: the baseline's ruling stands.
    ledger.begin(&new_run("b", "/w")).unwrap();
    record_all(
        &ledger,
        "b",
        &[
            ruled(None, rework("baseline", CommandEnd::Exited(7)), 5),
            pinned(1, "x"),
            ruled(Some(1), rework("first", CommandEnd::Exited(1)), 5),
            pinned(2, "base"),
            Event::RulingStands { pass: PassNumber(2) },
            ended(Outcome::ValidationFailed, None),
        ],
    );
    let validation = ledger.stats("b").unwrap().validation;
    assert!(validation.starts_with("check rework before any work: `baseline` exited 7"), "{validation}");
}

#[test]
fn a_green_baseline_and_no_change_does_not_read_as_a_check_of_the_work() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let green = Ruling::Accepted(accepted("cargo test"));
    let needs_you = Outcome::NeedsYou { why: "nothing was changed".to_owned() };
    record_all(&ledger, "a", &[ruled(None, green, 5), pinned(1, "base"), ended(needs_you, None)]);
    let validation = ledger.stats("a").unwrap().validation;
    assert!(validation.starts_with("check accepted before any work: `cargo test` exited 0"), "{validation}");
}

#[test]
fn a_done_whose_acceptance_was_lost_reads_as_unvalidated_whatever_its_word() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let events = whole_run();
    let lost = |event: &Event| matches!(event, Event::GateRuled { ruling: Ruling::Accepted(_), .. });
    let rest: Vec<Event> = events.into_iter().filter(|event| !lost(event)).collect();
    record_all(&ledger, "a", &rest);
    assert_eq!(ledger.runs(None, 1).unwrap()[0].outcome, "done (unvalidated)");
    let validation = ledger.stats("a").unwrap().validation;
    assert_eq!(validation, "no check ran: it is the agent's claim, no more");
}

#[test]
fn a_run_whose_record_is_incomplete_can_be_amended() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(&ledger, "a", &whole_run());
    let before = ledger.events("a").unwrap();
    let incomplete = Outcome::NeedsYou { why: "3 events could not be recorded".to_owned() };
    ledger.amend("a", &incomplete).unwrap();
    let stats = ledger.stats("a").unwrap();
    assert_eq!((stats.row.outcome.as_str(), stats.row.exit_code), ("needs you", Some(6)));
    assert!(stats.validation.ends_with("; 3 events could not be recorded"), "{}", stats.validation);
    assert_eq!(ledger.events("a").unwrap(), before, "what was recorded stays");
    assert!(ledger.amend("nobody", &incomplete).unwrap_err().to_string().contains("there is no run `nobody`"));
}

#[test]
fn a_difference_that_is_not_known_is_null_and_never_empty() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let mut events = whole_run();
    for event in &mut events {
        if let Event::Pinned { stat, .. } | Event::RunEnded { stat, .. } = event {
            *stat = None;
        }
    }
    record_all(&ledger, "a", &events);
    assert_eq!(ledger.stats("a").unwrap().diff, Value::Null);
}

#[test]
fn base_and_last_snapshot_come_back() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    assert_eq!(ledger.snapshots("a").unwrap(), (None, None));
    ledger.record("a", &Event::BaseTaken { base: snapshot("base") }).unwrap();
    assert_eq!(ledger.snapshots("a").unwrap(), (Some(snapshot("base")), None));
    record_all(&ledger, "a", &[pinned(1, "1"), pinned(2, "2")]);
    assert_eq!(ledger.snapshots("a").unwrap(), (Some(snapshot("base")), Some(snapshot("2"))));
}

#[test]
fn an_unknown_run_is_an_error_that_says_where_the_list_is() {
    let (_state, ledger) = ledger();
    let errors =
        [ledger.stats("nope").unwrap_err(), ledger.snapshots("nope").unwrap_err(), ledger.events("nope").unwrap_err()];
    for error in errors {
        assert!(error.message.contains("`nope`"), "{error}");
        assert_eq!(error.hint.as_deref(), Some("`iudex log` lists the runs"));
    }
}

#[test]
fn new_readers_take_old_data_and_keep_what_they_do_not_know() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let sqlite = raw(&state);
    let rulings = [
        r#"{"ruling":"accepted"}"#,
        r#"{"ruling":"rework","findings":[]}"#,
        r#"{"ruling":"later_word","commands":[{"end":{"evaporated":3},"from_the_future":true}]}"#,
        "not json at all",
    ];
    for (seq, json) in rulings.iter().enumerate() {
        let seq = i64::try_from(seq).unwrap();
        sqlite.execute("INSERT INTO rulings VALUES ('a', ?, 'tea_leaves', 1, 'rework', ?, 1)", (seq, json)).unwrap();
        sqlite.execute("INSERT INTO events VALUES ('a', ?, '2026-01-01T00:00:00.000Z', ?)", (seq + 1, json)).unwrap();
    }
    sqlite.execute("UPDATE runs SET base = ?", [r#"{"raw":"r","git":null,"commit":"c","shape":"round"}"#]).unwrap();

    let stats = ledger.stats("a").unwrap();
    assert_eq!(stats.rulings.len(), 4);
    assert_eq!(stats.gates[0]["cost_micros"], Value::Null, "what an unknown gate cost is unknown");
    assert_eq!(ledger.events("a").unwrap()[2].event["commands"][0]["from_the_future"], json!(true));
    assert_eq!(ledger.snapshots("a").unwrap().0.unwrap().commit.as_str(), "c");
}

#[test]
fn the_newest_session_of_a_directory_comes_back_whole() {
    let (_state, ledger) = ledger();
    let directory = Path::new("/w");
    assert_eq!(ledger.last_session(directory).unwrap(), None);
    let first = json!({ "messages": [{ "role": "user", "content": "hi" }] });
    ledger.keep_session("s1", directory, &first).unwrap();
    ledger.keep_session("s2", directory, &json!({ "messages": [] })).unwrap();
    ledger.keep_session("s3", Path::new("/other"), &json!(3)).unwrap();
    assert_eq!(ledger.last_session(directory).unwrap(), Some(("s2".to_owned(), json!({ "messages": [] }))));
    // Time has thousandths: a session that is kept again later is the newest.
    std::thread::sleep(std::time::Duration::from_millis(3));
    ledger.keep_session("s1", directory, &first).unwrap();
    assert_eq!(ledger.last_session(directory).unwrap(), Some(("s1".to_owned(), first)));
}

#[test]
fn a_done_run_of_several_checks_names_each() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let evidence = crate::events::evidence(
        vec![
            crate::events::command("cargo test", CommandEnd::Exited(0)),
            crate::events::command("cargo fmt --check", CommandEnd::Exited(0)),
        ],
        Some(true),
    );
    let accepted = iudex_core::Accepted::from_check(evidence).unwrap();
    record_all(
        &ledger,
        "a",
        &[pinned(1, "1"), ruled(Some(1), Ruling::Accepted(accepted.clone()), 9), ended(done(vec![accepted]), None)],
    );
    assert_eq!(
        ledger.stats("a").unwrap().validation,
        "check accepted: `cargo test` exited 0 (12 passed, 0 failed), `cargo fmt --check` exited 0 (12 passed, 0 \
         failed), in place; green before any work, so it can only guard"
    );
}
