//! `cargo nextest run`.

use iudex_core::TestCounts;

use super::cargo::{is_frame, is_hint};
use super::{Case, Cases, Runner, add, count_and_word, is_number, is_rule};

#[derive(Debug, Default)]
pub(super) struct Nextest {
    counts: Option<TestCounts>,
    cases: Cases,
    open: Option<Case>,
    in_backtrace: bool,
    /// The failures are listed once more after the summary, without their output.
    after_summary: bool,
}

impl Runner for Nextest {
    fn line(&mut self, line: &str) {
        if let Some(counts) = summary(line) {
            add(&mut self.counts, counts);
            self.close();
            self.after_summary = true;
            return;
        }
        if let Some((status, name)) = status_line(line) {
            self.close();
            if is_failure(status) && !self.after_summary {
                self.open = Some(Case::test(name));
            }
            return;
        }
        if is_rule(line, '─') || line.starts_with("  Cancelling due to ") {
            self.close();
            return;
        }
        if line.starts_with("    Starting ") {
            self.after_summary = false;
        }
        let Some(case) = &mut self.open else { return };
        let text = line.strip_prefix("    ").unwrap_or(line);
        if text == "stack backtrace:" {
            self.in_backtrace = true;
        } else if !(self.in_backtrace && is_frame(text)) {
            self.in_backtrace = false;
            if !is_hint(text) && !is_frame_of_libtest(text, &case.name) {
                case.block.push(text);
            }
        }
    }

    fn counts(&self) -> Option<TestCounts> {
        self.counts
    }

    fn end(&mut self) -> Cases {
        self.close();
        std::mem::take(&mut self.cases)
    }
}

impl Nextest {
    fn close(&mut self) {
        self.in_backtrace = false;
        if let Some(case) = self.open.take() {
            self.cases.push(case);
        }
    }
}

/// `     Summary [   0.176s] 5 tests run: 2 passed (1 slow), 3 failed, 1 skipped`, `3/5 tests run` when it stopped
/// early. The parts must add up to the number of tests that ran.
fn summary(line: &str) -> Option<TestCounts> {
    let (time, rest) = line.strip_prefix("     Summary [")?.split_once("s] ")?;
    if !is_number(time.trim()) {
        return None;
    }
    let (ran, parts) = rest.split_once(" run: ")?;
    let ran = ran.strip_suffix(" tests").or_else(|| ran.strip_suffix(" test"))?;
    let ran: u64 = ran.split('/').next()?.parse().ok()?;

    let mut counts = TestCounts::default();
    for part in without_parentheses(parts).split(',') {
        let (number, word) = count_and_word(part)?;
        match word {
            "passed" => counts.passed += number,
            "failed" | "exec failed" | "timed out" => counts.failed += number,
            "skipped" => counts.skipped += number,
            _ => {}
        }
    }
    (counts.ran() == ran).then_some(counts)
}

fn without_parentheses(text: &str) -> String {
    let mut depth = 0_usize;
    text.chars()
        .filter(|c| {
            match c {
                '(' => depth += 1,
                ')' => {
                    depth = depth.saturating_sub(1);
                    return false;
                }
                _ => {}
            }
            depth == 0
        })
        .collect()
}

/// `        FAIL [   0.142s] (2/5) sample tests::adds` as status and name.
fn status_line(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.strip_prefix("  ")?.trim_start().split_once(" [")?;
    let (time, name) = rest.split_once("s] ")?;
    let is_status = !status.is_empty()
        && status.chars().all(|c| c.is_ascii_uppercase() || c.is_ascii_digit() || matches!(c, ' ' | '-' | '+'));
    if !is_status || !is_number(time.trim_start_matches(['>', ' '])) {
        return None;
    }
    let name = match name.trim_start().strip_prefix('(') {
        Some(numbered) => numbered.split_once(") ")?.1,
        None => name,
    };
    Some((status, name.trim()))
}

fn is_failure(status: &str) -> bool {
    let last = status.rsplit(' ').next().unwrap_or(status);
    matches!(last, "FAIL" | "TIMEOUT" | "ABORT" | "XFAIL" | "LEAK-FAIL" | "FAIL+LEAK") || last.starts_with("SIG")
}

/// What libtest and nextest print around the output of every single test.
fn is_frame_of_libtest(line: &str, name: &str) -> bool {
    let text = line.trim();
    let test_name = name.rsplit(' ').next().unwrap_or(name);
    let is_heading = text.starts_with("stdout ─") || text.starts_with("stderr ─") || {
        let bare = text.trim_start_matches(['-', '─', ' ']);
        bare.len() < text.len() && (bare.starts_with("STDOUT:") || bare.starts_with("STDERR:"))
    };
    is_heading
        || text == "running 1 test"
        || text == "failures:"
        || text == test_name
        || text.starts_with("test result: ")
        || (text.starts_with("test ") && text.ends_with(" ... FAILED"))
}
