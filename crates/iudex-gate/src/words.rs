//! Says in words how a red command ended: exit status, signal or time limit, and what that usually means.
//!
//! Never: advice to change the check itself, which the agent must not do.

use std::fmt::Write as _;
use std::time::Duration;

use iudex_core::{CommandEnd, CommandEvidence, TestCounts};

use crate::clean::shorten;
use crate::scan::{Kept, Scan};

/// Bytes of a command line that are repeated in messages.
const MOST_OF_A_COMMAND: usize = 200;

/// The exit status of a shell for a command that a signal ended is this plus the signal.
const SIGNAL_BASE: i32 = 128;

/// What bash says about a script whose `#!` names a program that does not exist.
const NO_INTERPRETER: &str = "cannot execute: required file not found";

/// `` `cargo test` `` for messages: one line, bounded.
pub(crate) fn quoted(command: &str) -> String {
    let one_line = command.split('\n').map(str::trim).collect::<Vec<_>>().join(" ");
    format!("`{}`", shorten(&one_line, MOST_OF_A_COMMAND))
}

/// One or two sentences about a red command.
pub(crate) fn of_red(evidence: &CommandEvidence, limit: Duration, scan: &Scan) -> String {
    let mut text = format!("The check {} ", quoted(&evidence.command));
    match evidence.end {
        CommandEnd::Exited(status) => text.push_str(&of_status(status, scan)),
        CommandEnd::Signalled(signal) => {
            let _ = write!(text, "was ended by signal {}.", named_signal(signal));
        }
        CommandEnd::TimedOut if evidence.duration.is_zero() => {
            text.push_str("did not run: no time was left for it after the checks before it.");
        }
        CommandEnd::TimedOut => {
            let _ = write!(
                text,
                "ran into its time limit of {} and was ended. Something in it never finishes, waits for input or is \
                 too slow.",
                in_words(limit)
            );
        }
    }
    if let Some(counts) = evidence.tests {
        let _ = write!(text, " {}", of_counts(counts));
    }
    text
}

/// A command that exited 0 although no test ran.
pub(crate) fn of_no_tests(command: &str, now: Option<TestCounts>, before: TestCounts, kept: Kept) -> String {
    let ran = before.ran();
    let tests = if ran == 1 { "1 test" } else { &format!("{ran} tests") };
    let beyond = match kept {
        Kept::Capped => " Only the first 8 and the last 56 MiB of an output are read: print less.",
        Kept::Whole | Kept::Lost => "",
    };
    match now {
        Some(_) => format!(
            "The check {} exited 0, but zero tests ran; before the work it ran {tests}. Nothing was tested, so \
             nothing is shown. Let the tests be found and run again.",
            quoted(command)
        ),
        None => format!(
            "The check {} exited 0, but its output has no test summary; before the work it had one ({tests}). Nothing \
             shows that the tests ran. Let them run and report again.{beyond}",
            quoted(command)
        ),
    }
}

fn of_counts(counts: TestCounts) -> String {
    let mut text = format!("Tests: {} failed, {} passed", counts.failed, counts.passed);
    if counts.skipped > 0 {
        let _ = write!(text, ", {} skipped", counts.skipped);
    }
    text.push('.');
    text
}

fn of_status(status: i32, scan: &Scan) -> String {
    match status {
        126 => {
            let what = subject(scan, &["Permission denied", "Is a directory", "cannot execute"]);
            let what = what.map_or("a file in it".to_owned(), |what| format!("`{what}`"));
            format!("exited 126: {what} is there but cannot be executed (not executable, or not a program).")
        }
        127 => match subject(scan, &[NO_INTERPRETER, "command not found", "No such file or directory"]) {
            _ if scan.shell_errors.last().is_some_and(|line| line.contains(NO_INTERPRETER)) => {
                let what = subject(scan, &[NO_INTERPRETER]).unwrap_or_default();
                format!("exited 127: `{what}` is there, but the interpreter that its first line names was not found.")
            }
            Some(what) if what.contains('/') => format!("exited 127: `{what}` was not found."),
            Some(what) => format!("exited 127: the command `{what}` was not found."),
            None => "exited 127: a command in it was not found.".to_owned(),
        },
        141 => "exited 141, a broken pipe: the reader of a pipe (often `head`) ended before the program that writes \
                into it. Checks run with `pipefail`, so that counts as a failure. Print less, or let the reader read \
                to the end."
            .to_owned(),
        status if status > SIGNAL_BASE && signal_name(status - SIGNAL_BASE).is_some() => {
            let signal = named_signal(status - SIGNAL_BASE);
            format!("exited {status}, as a shell does when a program in it is ended by signal {signal}.")
        }
        status => format!("exited {status}."),
    }
}

/// What the shell says it could not start: `./run.sh` in `bash: line 1: ./run.sh: No such file or directory`.
fn subject(scan: &Scan, complaints: &[&str]) -> Option<String> {
    scan.shell_errors.iter().rev().find_map(|line| {
        let (before, _) = complaints.iter().find_map(|complaint| line.split_once(complaint))?;
        let before = before.trim_end_matches([':', ' ']);
        let what = before.rsplit(": ").next()?.trim_start_matches("failed to run command ");
        let what = what.trim_matches(['\'', '‘', '’', '"', '`']);
        (!what.is_empty()).then(|| shorten(what, MOST_OF_A_COMMAND))
    })
}

/// `11 (SIGSEGV)`.
fn named_signal(signal: i32) -> String {
    match signal_name(signal) {
        Some(name) => format!("{signal} ({name})"),
        None => signal.to_string(),
    }
}

/// The names of the signals that end programs, with their numbers on Linux; those up to 15 are the same elsewhere
/// but for SIGBUS.
fn signal_name(signal: i32) -> Option<&'static str> {
    Some(match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        10 => "SIGUSR1",
        11 => "SIGSEGV",
        12 => "SIGUSR2",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        _ => return None,
    })
}

/// `10 min`, `90 s`, `500 ms`.
pub(crate) fn in_words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        0 => format!("{} ms", duration.as_millis()),
        60.. if seconds.is_multiple_of(60) => format!("{} min", seconds / 60),
        _ => format!("{seconds} s"),
    }
}
