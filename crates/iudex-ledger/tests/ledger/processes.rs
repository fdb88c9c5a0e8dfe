//! Several iudex at once: real processes on one file. The test program starts itself again as the other process.

use std::process::{Child, Command, Stdio};

use iudex_core::Event;
use iudex_ledger::Ledger;
use tempfile::TempDir;

use crate::events::{new_run, record_all, whole_run};

const STATE: &str = "IUDEX_TEST_LEDGER_STATE";
const RUN: &str = "IUDEX_TEST_LEDGER_RUN";
const EVENTS: usize = 200;

/// Not a test of its own: what the other process does. Without the variables it has nothing to do.
#[test]
#[ignore = "the body of the child processes of this file"]
fn child() {
    let (Ok(state), Ok(run)) = (std::env::var(STATE), std::env::var(RUN)) else { return };
    let ledger = Ledger::open(state.as_ref()).unwrap();
    ledger.begin(&new_run(&run, &format!("/w/{run}"))).unwrap();
    for number in 0..EVENTS {
        ledger.record(&run, &Event::Notice { text: format!("{run} {number}") }).unwrap();
    }
    record_all(&ledger, &run, &whole_run());
}

fn start(state: &TempDir, run: &str, umask: &str) -> Child {
    Command::new("sh")
        .arg("-c")
        .arg(format!("umask {umask}; exec \"$0\" --exact processes::child --ignored --nocapture"))
        .arg(std::env::current_exe().unwrap())
        .env(STATE, state.path().join("iudex"))
        .env(RUN, run)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn succeeds(child: Child) {
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn runs_in_several_directories_write_at_once_from_the_first_moment() {
    let state = TempDir::new().unwrap();
    // None of them finds a file: making it and its schema is part of the race.
    let children: Vec<Child> = ["a", "b", "c", "d"].map(|run| start(&state, run, "022")).into();
    children.into_iter().for_each(succeeds);

    let ledger = Ledger::open(&state.path().join("iudex")).unwrap();
    for run in ["a", "b", "c", "d"] {
        let events = ledger.events(run).unwrap();
        assert_eq!(events.len(), EVENTS + whole_run().len(), "{run}");
        assert!(events.iter().zip(1..).all(|(event, number)| event.seq == number), "{run} has gaps");
        assert_eq!(events[EVENTS - 1].event["text"], format!("{run} {}", EVENTS - 1));
        assert_eq!(ledger.stats(run).unwrap().row.outcome, "done (checked in place only)");
    }
}

#[test]
fn a_umask_that_opens_everything_opens_nothing_here() {
    use std::os::unix::fs::PermissionsExt;
    let state = TempDir::new().unwrap();
    succeeds(start(&state, "a", "000"));
    let mode = |name: &str| state.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode("iudex"), mode("iudex/ledger.sqlite")), (0o700, 0o600));
}

#[test]
fn a_reader_is_not_disturbed_by_a_writer() {
    let state = TempDir::new().unwrap();
    let writer = start(&state, "a", "022");
    let ledger = Ledger::open(&state.path().join("iudex")).unwrap();
    let mut seen = 0;
    for _ in 0..50 {
        let known = ledger.runs(None, 10).unwrap();
        if known.len() == 1 {
            let events = ledger.events("a").unwrap().len();
            assert!(events >= seen, "events vanished");
            seen = events;
        }
    }
    succeeds(writer);
    assert_eq!(ledger.events("a").unwrap().len(), EVENTS + whole_run().len());
}
