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

fn ruling(gate: &CheckGate, status: i32, output: Captured) -> Ruling {
    let finished = Finished {
        end: End::Exited(status),
        duration: Duration::from_secs(1),
        output,
        left_behind: 2,
        restored: vec!["/work/.git/config".into()],
    };
    let mut asked =
        Asked { evidence: gate.evidence(&TreeId::new("tree")), scans: Vec::new(), limits: Vec::new(), machine: None };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(asked.take("make test", &finished, Duration::from_secs(1)));
    gate.rule(asked, &GateContext { events: &Nowhere, clock: &Nowhere, finding_bytes: 1_000, last_call: false })
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
fn what_was_left_behind_and_put_back_is_noted() {
    let Ruling::Accepted(accepted) = ruling(&gate(), 0, captured("ok", 0, None)) else { panic!("not accepted") };
    let notes = &accepted.evidence().notes;
    assert!(notes.contains(&"`make test` changed /work/.git/config, put back by iudex".to_owned()), "{notes:?}");
    assert!(notes.contains(&"`make test` left 2 processes behind, ended by iudex".to_owned()), "{notes:?}");
    assert!(accepted.evidence().sandbox.starts_with("landlock; "), "{:?}", accepted.evidence());
}
