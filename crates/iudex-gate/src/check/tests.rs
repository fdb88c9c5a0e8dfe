//! What cannot be brought about with real processes without harm: a full disk.

use iudex_core::{Clock, Event, EventSink};
use iudex_exec::{Captured, Finished};

use super::*;

struct Nowhere;

#[async_trait(?Send)]
impl Clock for Nowhere {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {}
}

impl EventSink for Nowhere {
    fn emit(&self, _: Event) {}

    fn progress(&self, _: Progress<'_>) {}
}

const CONTEXT: GateContext<'static> =
    GateContext { events: &Nowhere, clock: &Nowhere, finding_tokens: 250, time_left: None, last_call: false };

fn gate() -> CheckGate {
    CheckGate::new(CheckSettings {
        commands: vec!["make test".to_owned()],
        work_dir: "/work".into(),
        time_limit: Duration::from_secs(1),
        env: Vec::new(),
        confinement: Confinement {
            backend: Backend::Landlock,
            work_dir: "/work".into(),
            read_only: Vec::new(),
            hidden: Vec::new(),
            private_tmp: "/tmp".into(),
            caches: "/caches".into(),
            network: false,
        },
        output_dir: "/outputs".into(),
    })
}

fn finished(status: i32, output: Captured) -> Finished {
    Finished {
        end: End::Exited(status),
        duration: Duration::from_secs(1),
        output,
        left_behind: 2,
        survivors: 0,
        restored: vec!["/work/.git/config".into()],
        notes: vec!["the network was not watched".to_owned()],
    }
}

fn ruling(gate: &CheckGate, status: i32, output: Captured) -> Ruling {
    rule(gate, &finished(status, output))
}

fn rule(gate: &CheckGate, finished: &Finished) -> Ruling {
    let mut asked =
        Asked { evidence: gate.evidence(&TreeId::new("tree")), scans: Vec::new(), limits: Vec::new(), machine: None };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(asked.take("make test", finished, Duration::from_secs(1)));
    gate.rule(asked, &CONTEXT)
}

fn captured(text: &str, omitted: u64, file_error: Option<&str>) -> Captured {
    Captured {
        head: text.as_bytes().to_vec(),
        tail: Vec::new(),
        omitted,
        total: text.len() as u64 + omitted,
        sha256: String::new(),
        file: None,
        file_error: file_error.map(str::to_owned),
    }
}

#[test]
fn a_full_disk_under_iudex_is_void_whatever_the_exit_status() {
    for status in [0, 1] {
        for error in ["cannot write the output file: No space left on device (os error 28)", "Disk quota exceeded"] {
            let Ruling::Void(void) = ruling(&gate(), status, captured("ok", 0, Some(error))) else {
                panic!("{status} {error} must be void");
            };
            assert!(void.may_change && void.reason.contains(error), "{void:?}");
            assert_eq!(void.evidence.unwrap().commands.len(), 1);
        }
    }
}

#[test]
fn a_full_disk_in_the_project_itself_is_rework() {
    let output = captured("write: No space left on device", 0, None);
    assert!(matches!(ruling(&gate(), 1, output), Ruling::Rework(_)));
}

#[test]
fn a_summary_that_may_lie_in_the_lost_part_is_neither_missing_nor_there() {
    let mut gate = gate();
    let tests = TestCounts { passed: 3, failed: 0, skipped: 0 };
    gate.baseline = Some(Before { green: true, tests: vec![Some(tests)] });
    let lost = ruling(&gate, 0, captured("start", 1 << 20, Some("permission denied")));
    assert!(matches!(lost, Ruling::Void(Void { may_change: true, .. })), "{lost:?}");
    let whole = ruling(&gate, 0, captured("start", 0, Some("permission denied")));
    assert!(matches!(whole, Ruling::Rework(_)), "{whole:?}");
}

#[test]
fn an_output_beyond_what_is_kept_is_the_works_own_doing_and_rework() {
    let mut gate = gate();
    let tests = TestCounts { passed: 3, failed: 0, skipped: 0 };
    gate.baseline = Some(Before { green: false, tests: vec![Some(tests)] });
    let directory = tempfile::tempdir().unwrap();
    let mut flood = captured("start", 65 << 20, None);
    flood.file = Some(directory.path().join("1.log"));
    std::fs::write(directory.path().join("1.log"), "start\nend\n").unwrap();
    let Ruling::Rework(rework) = ruling(&gate, 0, flood.clone()) else { panic!("a flood must be rework") };
    assert!(rework.findings[0].what.contains("print less"), "{rework:?}");
    // The same output whose kept file is gone: then the machine is the cause.
    std::fs::remove_file(directory.path().join("1.log")).unwrap();
    assert!(matches!(ruling(&gate, 0, flood), Ruling::Void(_)));
}

#[test]
fn the_time_of_a_run_bounds_all_commands_together_but_leaves_them_one_time_limit() {
    let gate = gate();
    let second = Duration::from_secs(1);
    for (time_left, last_call, expected) in [
        (None, false, None),
        (None, true, Some(second)),
        (Some(Duration::ZERO), false, Some(second)),
        (Some(second / 2), false, Some(second)),
        (Some(second * 90), false, Some(second * 90)),
        (Some(second * 90), true, Some(second)),
    ] {
        let context = GateContext { time_left, last_call, ..CONTEXT };
        assert_eq!(gate.time_for_all(&context), expected, "{time_left:?} {last_call}");
    }
}

#[test]
fn a_process_that_cannot_be_ended_is_void_whatever_the_exit_status() {
    for (status, survivors, told) in [(0, 1, "left 1 process that"), (1, 2, "left 2 processes that")] {
        let ended = Finished { survivors, ..finished(status, captured("ok", 0, None)) };
        let Ruling::Void(void) = rule(&gate(), &ended) else { panic!("{status} must be void") };
        assert!(void.may_change && void.reason.contains(told), "{void:?}");
    }
}

#[test]
fn what_was_left_behind_and_put_back_is_noted() {
    let Ruling::Accepted(accepted) = ruling(&gate(), 0, captured("ok", 0, None)) else { panic!("not accepted") };
    let notes = &accepted.evidence().notes;
    assert!(notes.contains(&"`make test` changed /work/.git/config, put back by iudex".to_owned()), "{notes:?}");
    assert!(notes.contains(&"`make test` left 2 processes behind, ended by iudex".to_owned()), "{notes:?}");
    assert!(notes.contains(&"`make test`: the network was not watched".to_owned()), "{notes:?}");
    assert!(accepted.evidence().sandbox.starts_with("landlock; "), "{:?}", accepted.evidence());
}
