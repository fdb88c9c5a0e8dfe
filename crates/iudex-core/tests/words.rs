//! The words: what proves an acceptance, what a directive says, how quantities add up, and the JSON that others read.
#![expect(clippy::unwrap_used, reason = "a test stops where something is missing")]

use std::path::PathBuf;
use std::time::Duration;

use iudex_core::{
    Accepted, CheckEvidence, CommandEnd, CommandEvidence, Decision, DiffStat, Directive, DirectiveFacts, Event,
    FileStat, Finding, Fingerprint, GateKind, Limit, Limits, Meter, Outcome, PassNumber, Place, Rework, Ruling, Spent,
    Task, TestCounts, Tokens, TreeId, Usage, Usd, Validation, directive_tokens, finding_tokens, most_tokens,
};
use serde_json::{Value, json};

fn command(end: CommandEnd) -> CommandEvidence {
    CommandEvidence {
        command: "cargo test".to_owned(),
        end,
        duration: Duration::from_millis(1500),
        tests: Some(TestCounts { passed: 3, failed: 0, skipped: 1 }),
        last_line: "ok".to_owned(),
        output_bytes: 10,
        output_sha256: "00".to_owned(),
        output_file: Some(PathBuf::from("/state/1.log")),
    }
}

fn evidence(ends: &[CommandEnd]) -> CheckEvidence {
    CheckEvidence {
        tree: TreeId::new("t"),
        place: Place::InPlace,
        commands: ends.iter().copied().map(command).collect(),
        baseline_green: Some(false),
        sandbox: "bubblewrap".to_owned(),
        network: false,
        notes: Vec::new(),
    }
}

fn json_of(value: &impl serde::Serialize) -> Value {
    serde_json::to_value(value).unwrap()
}

#[test]
fn only_commands_that_all_exited_0_prove_an_acceptance() {
    let green = CommandEnd::Exited(0);
    for ends in [&[green][..], &[green, green]] {
        assert_eq!(*Accepted::from_check(evidence(ends)).unwrap().evidence(), evidence(ends));
    }
    let refused = [
        (vec![], "no command ran"),
        (vec![CommandEnd::Exited(1)], "`cargo test` exited 1"),
        (vec![green, CommandEnd::Exited(141)], "`cargo test` exited 141"),
        (vec![CommandEnd::Signalled(9), green], "`cargo test` was ended by signal 9"),
        (vec![green, CommandEnd::TimedOut, green], "`cargo test` ran into its time limit"),
    ];
    for (ends, why) in refused {
        assert_eq!(Accepted::from_check(evidence(&ends)).unwrap_err().to_string(), format!("not proven: {why}"));
    }
}

fn rework(findings: Vec<Finding>) -> Rework {
    Rework { findings, fingerprint: Fingerprint("f".to_owned()), evidence: None }
}

fn facts(gate: GateKind, rework: &Rework) -> DirectiveFacts<'_> {
    DirectiveFacts {
        gate,
        rework,
        same_as_last: false,
        changed: Some(&[]),
        unchanged: false,
        from_base: false,
        tried: &[],
        max_tokens: 2_000,
    }
}

#[test]
fn a_directive_reads_like_this() {
    let changed = ["src/lib.rs".to_owned(), "a.txt".to_owned()];
    let rework = rework(vec![Finding::new("`cargo test` exited 101\n\n")]);
    let facts = DirectiveFacts { changed: Some(&changed), same_as_last: true, ..facts(GateKind::Check, &rework) };
    assert_eq!(
        Directive::write(&facts).as_str(),
        "The work is not accepted yet.\n\n`cargo test` exited 101\n\nThis is the same failure as last time.\n\
         Changed in between: src/lib.rs, a.txt.\n\
         Revise the approach, fix the underlying problem, do not change the check, then finish."
    );
}

#[test]
fn every_part_of_a_finding_is_in_the_directive() {
    let mut finding = Finding::new("off by one");
    finding.place = Some("src/lib.rs:7".to_owned());
    finding.fix = Some("use <=".to_owned());
    finding.covering_test = Some("tests::last".to_owned());
    finding.keep = Some("the early return".to_owned());
    let rework = rework(vec![finding, Finding::new("second")]);
    let directive = Directive::write(&facts(GateKind::Judge, &rework));
    let text = directive.as_str();
    let parts = "\noff by one\nWhere: src/lib.rs:7\nFix: use <=\nCovering test: tests::last\nKeep: the early return\n\
                 \nsecond\n";
    assert!(text.contains(parts), "{text}");
    assert!(!text.contains("the check"), "a judge is no check: {text}");
}

#[test]
fn many_changed_files_and_many_attempts_do_not_swell_a_directive() {
    let changed: Vec<String> = (0..5000).map(|number| format!("file-{number}")).collect();
    let tried: Vec<String> = (1..=50).map(|number| format!("attempt {number} changed nothing.")).collect();
    let rework = rework(vec![Finding::new("red")]);
    let facts = DirectiveFacts { changed: Some(&changed), tried: &tried, ..facts(GateKind::Check, &rework) };
    let directive = Directive::write(&facts);
    let text = directive.as_str();
    assert!(text.contains("file-11 and 4988 more.\n") && !text.contains("file-12"), "{text}");
    assert!(!text.contains("attempt 46 "), "{text}");
    assert!(text.contains("Tried: attempt 47 changed nothing.\nTried: attempt 48"), "{text}");
    assert!(text.len() < 800, "{} bytes", text.len());
}

#[test]
fn a_directive_says_nothing_about_changes_that_are_not_known() {
    let rework = rework(vec![Finding::new("red")]);
    for unchanged in [false, true] {
        let facts = DirectiveFacts { changed: None, unchanged, ..facts(GateKind::Check, &rework) };
        let directive = Directive::write(&facts);
        assert!(!directive.as_str().contains("No file has changed"), "{}", directive.as_str());
    }
}

#[test]
fn long_paths_and_stuck_attempts_never_swell_a_directive_beyond_its_room() {
    let changed: Vec<String> = (0..20).map(|number| format!("{}/{number}.rs", "deep/".repeat(200))).collect();
    let tried = vec![format!("attempt 1 changed a.rs, then got stuck: {}; not accepted.", "why ".repeat(2_000))];
    let rework = rework(vec![Finding::new(format!("{}the reason", "red ".repeat(1_000)))]);
    let written = |max_tokens| {
        let changed = Some(changed.as_slice());
        let facts = DirectiveFacts { changed, tried: &tried, max_tokens, ..facts(GateKind::Check, &rework) };
        let text = Directive::write(&facts).as_str().to_owned();
        let used = most_tokens(&text);
        assert!(used <= max_tokens, "{used} of {max_tokens}");
        assert!(text.ends_with("do not change the check, then finish."), "{text}");
        text
    };
    let wide = written(2_000);
    assert!(!wide.contains("Tried:") && wide.contains("/0.rs") && wide.contains("the reason"), "{wide}");
    let narrow = written(1_300);
    assert!(!narrow.contains("deep") && narrow.contains("Files changed in between: 20."), "{narrow}");
    assert!(narrow.contains("the reason"), "findings go last: {narrow}");
    let tiny = written(300);
    assert!(tiny.contains("red red") && tiny.contains("the rest is left out here"), "{tiny}");
}

#[test]
fn the_room_of_a_directive_is_a_quarter_of_the_window_and_2000_tokens_at_the_most() {
    for (window, room, findings) in [(2_048, 512, 408), (4_096, 1_024, 816), (32_768, 2_000, 1_600)] {
        assert_eq!((directive_tokens(window), finding_tokens(directive_tokens(window))), (room, findings));
    }
}

#[test]
fn an_output_file_whose_path_is_not_utf8_is_recorded_all_the_same() {
    use std::os::unix::ffi::OsStringExt;

    let mut evidence = evidence(&[CommandEnd::Exited(1)]);
    evidence.commands[0].output_file = Some(std::ffi::OsString::from_vec(b"/state/caf\xe9/1.log".to_vec()).into());
    assert_eq!(json_of(&evidence)["commands"][0]["output_file"], "/state/caf\u{fffd}/1.log");
}

#[test]
fn money_is_never_made_from_what_is_no_amount() {
    assert_eq!(Usd::from_dollars(1.25), Some(Usd { micros: 1_250_000 }));
    assert_eq!(Usd::from_dollars(0.0), Some(Usd { micros: 0 }));
    for dollars in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.01, 1e300] {
        assert_eq!(Usd::from_dollars(dollars), None, "{dollars}");
    }
    assert_eq!(Usd { micros: 1_250_000 }.to_string(), "$1.2500");
    assert_eq!(Usd { micros: 90 }.to_string(), "$0.0000");
}

#[test]
fn sums_stay_at_the_maximum_instead_of_wrapping() {
    assert_eq!(Tokens(u64::MAX).plus(Tokens(1)), Tokens(u64::MAX));
    assert_eq!(Usd { micros: u64::MAX }.plus(Usd { micros: 1 }), Usd { micros: u64::MAX });
    let full = Usage { prompt: Tokens(u64::MAX), calls: u32::MAX, ..Usage::default() };
    assert_eq!(full.plus(full).calls, u32::MAX);
    assert_eq!(Usage::default().minus(full), Usage::default());
}

fn usage(prompt: u64, output: u64) -> Usage {
    Usage { prompt: Tokens(prompt), output: Tokens(output), calls: 1, ..Usage::default() }
}

#[test]
fn the_meter_adds_up_and_one_unknown_price_makes_the_cost_unknown() {
    let meter = Meter::default();
    assert_eq!(meter.spent(), Spent::default());
    assert_eq!(meter.spent().cost, None, "nothing was paid for yet, and that is not known to be free");
    let shared = meter.clone();
    shared.charge(usage(100, 20), Some(Usd { micros: 7 }));
    shared.charge(usage(200, 5), Some(Usd { micros: 3 }));
    assert_eq!(meter.spent().cost, Some(Usd { micros: 10 }));
    assert_eq!((meter.spent().usage.total(), meter.spent().usage.calls), (Tokens(325), 2));
    shared.charge(usage(1, 1), None);
    shared.charge(usage(1, 1), Some(Usd { micros: 3 }));
    assert_eq!(meter.spent().cost, None);
}

#[test]
fn a_limit_is_spent_when_it_is_reached() {
    let meter = Meter::default();
    meter.charge(usage(60, 40), Some(Usd { micros: 50 }));
    let minute = Duration::from_mins(1);
    let exhausted = |limits: Limits, elapsed| meter.exhausted(&limits, elapsed);
    let none = Limits::default();
    assert_eq!(exhausted(none.clone(), Duration::MAX), None);
    for (tokens, expected) in [(101, None), (100, Some(Limit::Tokens)), (0, Some(Limit::Tokens))] {
        assert_eq!(exhausted(Limits { tokens: Some(Tokens(tokens)), ..none.clone() }, minute), expected);
    }
    for (micros, expected) in [(51, None), (50, Some(Limit::Cost))] {
        assert_eq!(exhausted(Limits { cost: Some(Usd { micros }), ..none.clone() }, minute), expected);
    }
    for (seconds, expected) in [(61, None), (60, Some(Limit::Time))] {
        let time = Some(Duration::from_secs(seconds));
        assert_eq!(exhausted(Limits { time, ..none.clone() }, minute), expected);
    }
}

#[test]
fn the_size_of_a_difference_in_one_line() {
    let file = |path: &str, added, removed| FileStat { path: path.to_owned(), added, removed };
    assert_eq!(DiffStat::default().summary(), "no files changed");
    let one = DiffStat { files: vec![file("a", Some(2), Some(0))] };
    assert_eq!(one.summary(), "1 file changed, +2 -0");
    let two = DiffStat { files: vec![file("a", Some(2), Some(1)), file("image.png", None, None)] };
    assert_eq!(two.summary(), "2 files changed, +2 -1");
}

#[test]
fn the_task_as_the_agent_reads_it() {
    let mut task = Task::from_goal("Add a flag.\n");
    assert_eq!(task.to_prompt(), "Add a flag.");
    task.criteria = vec!["--help names it".to_owned(), "it is off by default".to_owned()];
    task.decisions = vec![
        Decision { choice: "clap".to_owned(), rejected: vec!["by hand".to_owned(), "lexopt".to_owned()] },
        Decision { choice: "no short form".to_owned(), rejected: Vec::new() },
    ];
    assert_eq!(
        task.to_prompt(),
        "Add a flag.\n\nCriteria:\n- --help names it\n- it is off by default\n\nDecisions, already made:\n\
         - clap (rejected: by hand; lexopt)\n- no short form"
    );
}

#[test]
fn an_outcome_is_read_by_machines_like_this() {
    let accepted = Accepted::from_check(evidence(&[CommandEnd::Exited(0)])).unwrap();
    let done = Outcome::Done { validation: Validation::Accepted { acceptances: vec![accepted] } };
    let value = json_of(&done);
    assert_eq!((&value["outcome"], &value["validation"]["validation"]), (&json!("done"), &json!("accepted")));
    assert_eq!(value["validation"]["acceptances"][0]["place"], "in-place");
    assert_eq!(value["validation"]["acceptances"][0]["commands"][0]["end"], json!({ "exited": 0 }));
    let unvalidated = Outcome::Done { validation: Validation::Unvalidated };
    assert_eq!(json_of(&unvalidated), json!({ "outcome": "done", "validation": { "validation": "unvalidated" } }));
    assert_eq!(json_of(&Outcome::ValidationFailed), json!({ "outcome": "validation_failed" }));
    assert_eq!(json_of(&Outcome::HitLimit { limit: Limit::Time }), json!({ "outcome": "hit_limit", "limit": "time" }));
}

#[test]
fn a_ruling_is_read_by_machines_like_this() {
    let rework = Ruling::Rework(rework(vec![Finding::new("red")]));
    let event = Event::GateRuled { gate: GateKind::Check, pass: Some(PassNumber(2)), ruling: rework, millis: 5 };
    assert_eq!(
        json_of(&event),
        json!({
            "event": "gate_ruled", "gate": "check", "pass": 2, "millis": 5,
            "ruling": { "ruling": "rework", "findings": [{ "what": "red" }], "fingerprint": "f" }
        })
    );
    let accepted = Ruling::Accepted(Accepted::from_check(evidence(&[CommandEnd::Exited(0)])).unwrap());
    assert_eq!(json_of(&accepted)["ruling"], "accepted");
    assert_eq!(json_of(&accepted)["commands"][0]["command"], "cargo test");
}

#[test]
fn old_records_are_read_by_new_readers() {
    let evidence: CheckEvidence = serde_json::from_value(json!({
        "tree": "t", "place": "in-place", "baseline_green": null, "sandbox": "none", "network": false,
        "commands": [{
            "command": "x", "end": { "exited": 1 }, "duration": { "secs": 1, "nanos": 0 },
            "output_bytes": 0, "output_sha256": "", "field_of_tomorrow": 1
        }]
    }))
    .unwrap();
    assert_eq!((evidence.commands[0].tests, evidence.commands[0].output_file.clone()), (None, None));
    let usage: Usage = serde_json::from_value(json!({ "prompt": 1, "output": 2, "calls": 3 })).unwrap();
    assert_eq!((usage.cached, usage.estimated_calls), (Tokens(0), 0));
    let task: Task = serde_json::from_value(json!({ "goal": "g" })).unwrap();
    assert_eq!(task, Task::from_goal("g"));
}
