//! What is recorded, and that nothing is lost or renumbered.

use iudex_core::{CommandEnd, Event, Outcome, Ruling, Validation};
use iudex_ledger::Retention;
use serde_json::json;

use crate::events::{
    accepted, dead_pid, done, ended, ledger, new_run, pass_started, raw, record_all, rework, ruled, whole_run,
};

#[test]
fn events_are_numbered_from_one_without_gaps_in_each_run() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w/a")).unwrap();
    ledger.begin(&new_run("b", "/w/b")).unwrap();
    let mut numbers = Vec::new();
    for event in whole_run() {
        numbers.push(ledger.record("a", &event).unwrap().0);
        ledger.record("b", &Event::Notice { text: "between".to_owned() }).unwrap();
    }
    assert_eq!(numbers, (1..=19).collect::<Vec<u64>>());
    let stored: Vec<u64> = ledger.events("a").unwrap().iter().map(|event| event.seq).collect();
    assert_eq!(stored, numbers);
    assert_eq!(ledger.events("b").unwrap().len(), 19);
}

#[test]
fn an_event_comes_back_word_for_word() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let events = whole_run();
    let mut times = Vec::new();
    for event in &events {
        times.push(ledger.record("a", event).unwrap().1);
    }
    let stored = ledger.events("a").unwrap();
    for ((event, time), stored) in events.iter().zip(times).zip(stored) {
        assert_eq!(stored.event, serde_json::to_value(event).unwrap());
        assert_eq!(stored.time, time);
        assert_eq!((time.len(), &time[10..11], &time[23..]), (24, "T", "Z"), "not RFC 3339 in UTC with milliseconds");
    }
}

#[test]
fn a_recorded_event_is_flat_json_with_its_number_and_time() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    let (_, time) = ledger.record("a", &Event::Notice { text: "hello".to_owned() }).unwrap();
    let stored = ledger.events("a").unwrap().remove(0);
    assert_eq!(
        serde_json::to_value(stored).unwrap(),
        json!({ "seq": 1, "time": time, "event": "notice", "text": "hello" })
    );
}

#[test]
fn the_tables_hold_what_the_events_said() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    record_all(&ledger, "a", &whole_run());
    let sqlite = raw(&state);
    let text = |sql: &str| -> String {
        let mut statement = sqlite.prepare(sql).unwrap();
        let columns = statement.column_count();
        let rows = statement
            .query_map([], |row| {
                let cells = (0..columns).map(|column| match row.get_ref(column).unwrap() {
                    rusqlite::types::ValueRef::Null => "-".to_owned(),
                    rusqlite::types::ValueRef::Integer(number) => number.to_string(),
                    other => other.as_str().unwrap().to_owned(),
                });
                Ok(cells.collect::<Vec<_>>().join(" "))
            })
            .unwrap();
        rows.map(Result::unwrap).collect::<Vec<_>>().join("\n")
    };
    assert_eq!(
        text("SELECT pass, chosen, strategy, ended, steps, prompt_tokens, output_tokens FROM passes ORDER BY pass"),
        "1 - with_files {\"end\":\"finished\"} 4 900 60\n2 continue with_files {\"end\":\"finished\"} 4 900 60"
    );
    assert_eq!(
        text("SELECT pass, commit_id, raw_tree, git_tree, base_raw_tree FROM proposals ORDER BY pass"),
        "1 commit-1 raw-1 git-1 raw-base\n2 commit-2 raw-2 git-2 raw-base"
    );
    assert_eq!(
        text("SELECT seq, gate, pass, word, millis FROM rulings ORDER BY seq"),
        "4 check - rework 40\n11 check 1 rework 50\n18 check 2 accepted 60"
    );
    assert_eq!(
        text(
            "SELECT seq, number, command, place, end, status, millis, output_file, output_bytes, passed, failed,
             skipped, baseline_green FROM commands ORDER BY seq"
        ),
        "4 1 cargo test in-place exited 101 1500 /state/outputs/1.log 4096 12 0 1 0\n\
         11 1 cargo test in-place exited 101 1500 /state/outputs/1.log 4096 12 0 1 0\n\
         18 1 cargo test in-place exited 0 1500 /state/outputs/1.log 4096 12 0 1 0"
    );
    assert_eq!(text("SELECT DISTINCT output_sha256 FROM commands"), "ab".repeat(32));
    assert_eq!(text("SELECT pass, kind, text FROM interventions"), "1 repeats the same call three times");
    assert_eq!(
        text("SELECT pass, step, prompt_tokens, output_tokens, cached_tokens, estimated, finish FROM calls"),
        "1 1 500 30 10 0 stop\n2 1 700 40 10 0 stop"
    );
    assert_eq!(text("SELECT pass, chosen, retries, rounds FROM directives"), "1 continue 1 0");
}

#[test]
fn signals_and_time_outs_are_told_apart_from_exit_codes() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &ruled(Some(1), rework("x", CommandEnd::Signalled(9)), 1)).unwrap();
    ledger.record("a", &ruled(Some(1), rework("x", CommandEnd::TimedOut), 1)).unwrap();
    let ends: Vec<(String, Option<i64>)> = raw(&state)
        .prepare("SELECT end, status FROM commands ORDER BY seq")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(ends, [("signalled".to_owned(), Some(9)), ("timed_out".to_owned(), None)]);
}

#[test]
fn an_event_of_a_run_that_was_never_begun_is_refused() {
    let (_state, ledger) = ledger();
    let error = ledger.record("ghost", &Event::Notice { text: String::new() }).unwrap_err();
    assert!(error.to_string().contains("there is no run `ghost`"), "{error}");
    assert_eq!(ledger.runs(None, 10).unwrap(), []);
}

#[test]
fn a_run_name_is_never_used_twice() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &Event::Notice { text: "first".to_owned() }).unwrap();
    ledger.begin(&new_run("a", "/other")).unwrap_err();
    assert_eq!(ledger.runs(None, 10).unwrap()[0].directory, "/w");
    assert_eq!(ledger.events("a").unwrap().len(), 1);
}

#[test]
fn an_event_that_cannot_be_stored_whole_leaves_nothing() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &pass_started(1, None)).unwrap();
    // The second start of a pass breaks the key of `passes` after its event was written.
    ledger.record("a", &pass_started(1, None)).unwrap_err();
    assert_eq!(ledger.events("a").unwrap().len(), 1);
    let (seq, _) = ledger.record("a", &Event::Notice { text: "goes on".to_owned() }).unwrap();
    assert_eq!(seq, 2, "the failed event must not take a number");
    drop(ledger);
    assert_eq!(raw(&state).query_row("PRAGMA integrity_check", [], |row| row.get::<_, String>(0)).unwrap(), "ok");
}

/// Ends a run `age` days ago.
fn run_of_age(ledger: &iudex_ledger::Ledger, state: &tempfile::TempDir, run: &str, age: u32) {
    let mut new = new_run(run, "/w");
    new.pid = dead_pid();
    ledger.begin(&new).unwrap();
    record_all(ledger, run, &whole_run());
    let set = "UPDATE runs SET started = strftime('%Y-%m-%dT%H:%M:%fZ', 'now', ?2) WHERE run = ?1";
    assert_eq!(raw(state).execute(set, [run, &format!("-{age} days")]).unwrap(), 1);
}

#[test]
fn old_runs_go_but_the_newest_stay_whatever_their_age() {
    let (state, ledger) = ledger();
    for (run, age) in [("a", 90), ("b", 60), ("c", 45), ("d", 10)] {
        run_of_age(&ledger, &state, run, age);
    }
    assert_eq!(ledger.expire(Retention { days: 30, newest: 4 }).unwrap(), Vec::<String>::new());
    assert_eq!(ledger.expire(Retention { days: 30, newest: 2 }).unwrap(), ["a", "b"]);
    let left: Vec<String> = ledger.runs(None, 10).unwrap().into_iter().map(|row| row.run).collect();
    assert_eq!(left, ["d", "c"]);
    assert_eq!(ledger.expire(Retention { days: 30, newest: 0 }).unwrap(), ["c"]);
    assert_eq!(ledger.expire(Retention { days: 30, newest: 0 }).unwrap(), Vec::<String>::new());
}

#[test]
fn nothing_of_an_expired_run_is_left_in_any_table() {
    let (state, ledger) = ledger();
    run_of_age(&ledger, &state, "a", 90);
    ledger.expire(Retention { days: 30, newest: 0 }).unwrap();
    let sqlite = raw(&state);
    let tables: Vec<String> = sqlite
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite_%'")
        .unwrap()
        .query_map([], |row| row.get(0))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert!(tables.len() >= 9, "{tables:?}");
    for table in tables {
        let rows: i64 = sqlite.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap();
        assert_eq!(rows, 0, "{table}");
    }
}

#[test]
fn a_run_that_still_goes_on_does_not_expire() {
    let (state, ledger) = ledger();
    ledger.begin(&new_run("long", "/w")).unwrap();
    raw(&state).execute("UPDATE runs SET started = '2001-01-01T00:00:00.000Z'", []).unwrap();
    assert_eq!(ledger.expire(Retention { days: 30, newest: 0 }).unwrap(), Vec::<String>::new());
}

#[test]
fn the_space_of_expired_runs_is_given_back() {
    let (state, ledger) = ledger();
    let file = state.path().join("ledger.sqlite");
    run_of_age(&ledger, &state, "a", 90);
    ledger.record("a", &Event::Notice { text: "x".repeat(2_000_000) }).unwrap();
    drop(ledger);
    let before = file.metadata().unwrap().len();
    let ledger = iudex_ledger::Ledger::open(state.path()).unwrap();
    ledger.expire(Retention { days: 30, newest: 0 }).unwrap();
    drop(ledger);
    let after = file.metadata().unwrap().len();
    assert!(before > 2_000_000 && after < 500_000, "{before} bytes before, {after} after");
}

#[test]
fn a_done_without_a_check_never_reads_as_a_bare_done() {
    let (state, ledger) = ledger();
    for (run, outcome) in [("none", Outcome::Done { validation: Validation::Unvalidated }), ("empty", done(Vec::new()))]
    {
        ledger.begin(&new_run(run, "/w")).unwrap();
        ledger.record(run, &ended(outcome, None)).unwrap();
        let stats = ledger.stats(run).unwrap();
        assert_eq!(stats.row.outcome, "done (unvalidated)", "{run}");
        assert!(stats.validation.contains("no check ran"), "{run}: {}", stats.validation);
    }
    // Not even when the file says so.
    raw(&state).execute("UPDATE runs SET outcome = 'done'", []).unwrap();
    assert_eq!(ledger.runs(None, 10).unwrap()[0].outcome, "done (unvalidated)");
}

#[test]
fn a_done_with_a_check_shows_where_it_ran() {
    let (_state, ledger) = ledger();
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &ruled(Some(1), Ruling::Accepted(accepted("cargo test")), 5)).unwrap();
    ledger.record("a", &ended(done(vec![accepted("cargo test")]), Some(2500))).unwrap();
    let stats = ledger.stats("a").unwrap();
    assert_eq!(stats.row.outcome, "done (checked in place only)");
    assert_eq!(stats.row.exit_code, Some(0));
    assert_eq!(stats.cost_micros, Some(2500));
}
