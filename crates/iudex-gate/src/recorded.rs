//! The recorded outputs of real runners in `tests/outputs`, a folder a case: what is counted, which cases fail, what
//! an agent gets to see, and whether a second run of the same failure is known again.
//!
//! `output.txt` and `again.txt` are two runs in two places, of cargo 1.95, nextest, pytest 9.2 and unittest (Python
//! 3.11), node 20, jest 30 and vitest 4.1; those of go and `fake-summaries` are written by hand.
//! `UPDATE_EXCERPTS=1` writes the excerpts anew; they are then to be read before they are committed.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use iudex_core::{TestCounts, most_tokens};
use serde::Deserialize;

use crate::excerpt::failing_part;
use crate::fingerprint;
use crate::scan::{Kept, Scan, Scanner};

/// Room of the excerpts that are kept beside the outputs.
const ROOM: usize = 2_000;

#[derive(Debug, Deserialize)]
struct Expected {
    /// Passed, failed, skipped.
    tests: Option<[u64; 3]>,
    failing: Vec<String>,
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/outputs")
}

fn read(case: &Path, file: &str) -> Option<Vec<u8>> {
    std::fs::read(case.join(file)).ok()
}

fn scan_of(bytes: &[u8]) -> Scan {
    let mut scanner = Scanner::new();
    scanner.push(bytes);
    scanner.finish(Kept::Whole)
}

fn cases() -> BTreeMap<String, PathBuf> {
    let entries = std::fs::read_dir(folder()).unwrap();
    let cases: BTreeMap<_, _> = entries
        .map(|entry| entry.unwrap())
        .map(|entry| (entry.file_name().into_string().unwrap(), entry.path()))
        .collect();
    assert!(cases.len() >= 40, "the recorded outputs are missing: {cases:?}");
    cases
}

#[test]
fn tests_and_failing_cases_are_counted_as_the_runner_reports_them() {
    for (name, case) in cases() {
        let expected: Expected = serde_json::from_slice(&read(&case, "expected.json").unwrap()).unwrap();
        let scan = scan_of(&read(&case, "output.txt").unwrap());
        let counts = expected.tests.map(|[passed, failed, skipped]| TestCounts { passed, failed, skipped });
        assert_eq!(scan.counts, counts, "{name}");
        let failing: Vec<_> = scan.cases.list.iter().map(|case| case.name.clone()).collect();
        assert_eq!(failing, expected.failing, "{name}");
    }
}

#[test]
fn an_agent_sees_the_failing_part() {
    for (name, case) in cases() {
        if read(&case, "again.txt").is_none() {
            continue;
        }
        let excerpt = failing_part(&scan_of(&read(&case, "output.txt").unwrap()), ROOM) + "\n";
        if std::env::var_os("UPDATE_EXCERPTS").is_some() {
            std::fs::write(case.join("excerpt.txt"), &excerpt).unwrap();
        }
        let expected = String::from_utf8(read(&case, "excerpt.txt").unwrap()).unwrap();
        assert_eq!(excerpt, expected, "{name}");
    }
}

#[test]
fn the_same_failure_in_another_place_at_another_time_has_the_same_fingerprint() {
    let mut seen: BTreeMap<String, String> = BTreeMap::new();
    for (name, case) in cases() {
        let Some(again) = read(&case, "again.txt") else { continue };
        let first = read(&case, "output.txt").unwrap();
        assert!(first != again, "{name}: the second run must differ in its bytes");
        let print = fingerprint::of_failure("check", "exited 1", &scan_of(&first));
        assert_eq!(print, fingerprint::of_failure("check", "exited 1", &scan_of(&again)), "{name}");
        if let Some(other) = seen.insert(print, name.clone()) {
            // The same run of a runner shown in another way is the same failure.
            let runner = |case: &str| case.split('-').next().map(|runner| runner.replace("nextest", "cargo"));
            assert_eq!(runner(&name), runner(&other), "{name} and {other} are different failures");
        }
    }
}

#[test]
fn one_failing_case_more_or_another_error_is_another_failure() {
    for (name, from, to) in [
        ("pytest-red", "E       assert -1 == 5", "E       TypeError: unsupported operand"),
        ("pytest-red", "test_add", "test_sum"),
        ("cargo-red", "no such thing", "no such other thing"),
        ("unittest-red", "ValueError: boom", "KeyError: boom"),
        ("node-red-spec", "nested boom", "nested bang"),
        ("cargo-compile-error", "E0277", "E0308"),
    ] {
        let output = String::from_utf8(read(&folder().join(name), "output.txt").unwrap()).unwrap();
        let changed = output.replace(from, to);
        assert_ne!(output, changed);
        let print = |text: &str| fingerprint::of_failure("check", "exited 1", &scan_of(text.as_bytes()));
        assert_ne!(print(&output), print(&changed), "{name}: {from}");
    }
}

#[test]
fn windows_line_ends_colours_and_cuts_change_nothing() {
    for (name, case) in cases() {
        let output = read(&case, "output.txt").unwrap();
        let whole = scan_of(&output);
        let text = String::from_utf8(output.clone()).unwrap();
        let windows = text.replace('\n', "\r\n");
        let coloured = text.lines().flat_map(|line| ["\u{1b}[31m", line, "\u{1b}[0m\n"]).collect::<String>();
        for other in [windows, coloured] {
            let other = scan_of(other.as_bytes());
            assert_eq!(other.counts, whole.counts, "{name}");
            assert_eq!(failing_part(&other, ROOM), failing_part(&whole, ROOM), "{name}");
        }
        let mut scanner = Scanner::new();
        output.chunks(7).for_each(|piece| scanner.push(piece));
        assert_eq!(failing_part(&scanner.finish(Kept::Whole), ROOM), failing_part(&whole, ROOM), "{name}");
    }
}

#[test]
fn an_excerpt_never_outgrows_its_room() {
    for (name, case) in cases() {
        let scan = scan_of(&read(&case, "output.txt").unwrap());
        for room in [0, 1, 7, 40, 100, 333, 1_000, 5_000] {
            let excerpt = failing_part(&scan, room);
            assert!(excerpt.len() <= room, "{name}: {} bytes in {room}", excerpt.len());
        }
    }
}

#[test]
fn tokens_are_not_underestimated() {
    let vocabulary = tiktoken_rs::o200k_base().unwrap();
    for (name, case) in cases() {
        let scan = scan_of(&read(&case, "output.txt").unwrap());
        let whole = scan.edges.lines().flat_map(|line| [line, "\n"]).collect::<String>();
        for text in [whole, failing_part(&scan, ROOM)] {
            let real = vocabulary.encode_ordinary(&text).len() as u64;
            let estimated = most_tokens(&text);
            assert!(estimated >= real, "{name}: {estimated} for {real}");
            assert!(estimated <= real * 2 + 10, "{name}: {estimated} for {real}");
        }
    }
}
