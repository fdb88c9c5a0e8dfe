//! Events and runs to record.

use std::path::{Path, PathBuf};
use std::time::Duration;

use iudex_core::{
    Accepted, CheckEvidence, CommandEnd, CommandEvidence, CommitId, DiffStat, Event, FileStat, Finding, Fingerprint,
    GateBrief, GateKind, Limits, Move, Outcome, PassEnd, PassNumber, PassReport, Place, PromptStrategy, Proposal,
    Rework, Ruling, Snapshot, Spent, Task, TestCounts, Tokens, TreeId, Usage, Usd, Validation, Void,
};
use iudex_ledger::{Ledger, NewRun};
use rusqlite::Connection;
use tempfile::TempDir;

/// A ledger in a directory of its own.
pub fn ledger() -> (TempDir, Ledger) {
    let state = TempDir::new().unwrap();
    let ledger = Ledger::open(state.path()).unwrap();
    (state, ledger)
}

/// The same file, past the ledger.
pub fn raw(state: &TempDir) -> Connection {
    Connection::open(state.path().join("ledger.sqlite")).unwrap()
}

pub fn new_run(run: &str, directory: &str) -> NewRun {
    NewRun {
        run: run.to_owned(),
        directory: PathBuf::from(directory),
        goal: "make the failing test pass\nand nothing else".to_owned(),
        model: "qwen2.5-coder".to_owned(),
        session: None,
        pid: std::process::id(),
        note: None,
    }
}

/// The id of a process that has ended.
pub fn dead_pid() -> u32 {
    let mut child = std::process::Command::new("true").spawn().unwrap();
    let pid = child.id();
    child.wait().unwrap();
    pid
}

pub fn snapshot(name: &str) -> Snapshot {
    Snapshot {
        raw: TreeId::new(format!("raw-{name}")),
        git: Some(TreeId::new(format!("git-{name}"))),
        ignored: None,
        commit: CommitId::new(format!("commit-{name}")),
        not_covered: Vec::new(),
    }
}

pub fn command(line: &str, end: CommandEnd) -> CommandEvidence {
    CommandEvidence {
        command: line.to_owned(),
        end,
        duration: Duration::from_millis(1500),
        tests: Some(TestCounts { passed: 12, failed: 0, skipped: 1 }),
        last_line: "test result: ok".to_owned(),
        output_bytes: 4096,
        output_sha256: "ab".repeat(32),
        output_file: Some(PathBuf::from("/state/outputs/1.log")),
    }
}

pub fn evidence(commands: Vec<CommandEvidence>, baseline_green: Option<bool>) -> CheckEvidence {
    CheckEvidence {
        tree: TreeId::new("raw-1"),
        place: Place::InPlace,
        commands,
        baseline_green,
        sandbox: "bubblewrap".to_owned(),
        network: false,
        notes: Vec::new(),
    }
}

pub fn accepted(line: &str) -> Accepted {
    Accepted::from_check(evidence(vec![command(line, CommandEnd::Exited(0))], Some(false))).unwrap()
}

pub fn rework(line: &str, end: CommandEnd) -> Ruling {
    Ruling::Rework(Rework {
        findings: vec![Finding::new(format!("`{line}` {end}\nassertion failed"))],
        fingerprint: Fingerprint("f1".to_owned()),
        evidence: Some(evidence(vec![command(line, end)], Some(false))),
    })
}

pub fn void(reason: &str) -> Ruling {
    Ruling::Void(Void { reason: reason.to_owned(), may_change: false, evidence: None })
}

pub fn ruled(pass: Option<u32>, ruling: Ruling, millis: u64) -> Event {
    Event::GateRuled { gate: GateKind::Check, pass: pass.map(PassNumber), ruling, millis }
}

pub fn pinned(pass: u32, tree: &str) -> Event {
    Event::Pinned {
        proposal: Proposal { pass: PassNumber(pass), base: snapshot("base"), snapshot: snapshot(tree) },
        stat: Some(stat()),
    }
}

pub fn stat() -> DiffStat {
    DiffStat { files: vec![FileStat { path: "src/lib.rs".to_owned(), added: Some(3), removed: Some(1) }] }
}

pub fn pass_started(pass: u32, by: Option<Move>) -> Event {
    Event::PassStarted { pass: PassNumber(pass), by, strategy: PromptStrategy::WithFiles }
}

pub fn call(prompt: u64, output: u64) -> Event {
    Event::ModelCallFinished {
        step: 1,
        usage: Usage {
            prompt: Tokens(prompt),
            output: Tokens(output),
            cached: Tokens(10),
            calls: 1,
            estimated_calls: 0,
        },
        millis: 200,
        finish: "stop".to_owned(),
        retries: 0,
    }
}

pub fn pass_ended(pass: u32) -> Event {
    let report = PassReport {
        end: PassEnd::Finished,
        summary: "fixed it, verified".to_owned(),
        steps: 4,
        usage: Usage { prompt: Tokens(900), output: Tokens(60), calls: 4, ..Usage::default() },
    };
    Event::PassEnded { pass: PassNumber(pass), report }
}

pub fn ended(outcome: Outcome, cost: Option<u64>) -> Event {
    let usage = Usage { prompt: Tokens(1800), output: Tokens(120), calls: 8, ..Usage::default() };
    Event::RunEnded { outcome, spent: Spent { usage, cost: cost.map(|micros| Usd { micros }) }, stat: Some(stat()) }
}

pub fn done(acceptances: Vec<Accepted>) -> Outcome {
    Outcome::Done { validation: Validation::Accepted { acceptances } }
}

/// The events of a run: red baseline, a red pass that is sent back, a green pass.
pub fn whole_run() -> Vec<Event> {
    vec![
        Event::RunStarted {
            task: Task::from_goal("make the failing test pass"),
            gates: vec![GateBrief {
                kind: GateKind::Check,
                name: "check".to_owned(),
                requirements: vec!["cargo test".to_owned()],
            }],
            limits: Limits::default(),
        },
        Event::BaseTaken { base: snapshot("base") },
        Event::GateStarted { gate: GateKind::Check, pass: None },
        ruled(None, rework("cargo test", CommandEnd::Exited(101)), 40),
        pass_started(1, None),
        call(500, 30),
        Event::Intervention { kind: "repeats".to_owned(), text: "the same call three times".to_owned() },
        pass_ended(1),
        pinned(1, "1"),
        Event::GateStarted { gate: GateKind::Check, pass: Some(PassNumber(1)) },
        ruled(Some(1), rework("cargo test", CommandEnd::Exited(101)), 50),
        Event::DirectiveSent {
            directive: "The work is not accepted yet.".to_owned(),
            chosen: Move::Continue,
            retries: 1,
            rounds: 0,
        },
        pass_started(2, Some(Move::Continue)),
        call(700, 40),
        pass_ended(2),
        pinned(2, "2"),
        Event::GateStarted { gate: GateKind::Check, pass: Some(PassNumber(2)) },
        ruled(Some(2), Ruling::Accepted(accepted("cargo test")), 60),
        ended(done(vec![accepted("cargo test")]), None),
    ]
}

pub fn record_all(ledger: &Ledger, run: &str, events: &[Event]) {
    for event in events {
        ledger.record(run, event).unwrap();
    }
}

/// Every file of the directory with its bytes.
pub fn contents(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), std::fs::read(path).unwrap()))
        .collect();
    files.sort();
    files
}
