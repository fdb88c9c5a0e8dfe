//! `python -m unittest`, and what reports like it.

use iudex_core::TestCounts;

use super::{Case, Cases, Runner, add, is_number, is_rule};

/// The length of the lines that unittest draws.
const RULE: usize = 70;

#[derive(Debug, Default)]
pub(super) struct Unittest {
    counts: Option<TestCounts>,
    cases: Cases,
    open: Option<Open>,
    last_rule: Option<char>,
    /// Tests that `Ran N tests` names, until the status line that belongs to it.
    ran: Option<u64>,
}

#[derive(Debug)]
struct Open {
    case: Case,
    rules: u32,
}

impl Runner for Unittest {
    fn line(&mut self, line: &str) {
        let rule = rule(line);
        if let Some(ran) = self.ran.take() {
            if line.is_empty() {
                self.ran = Some(ran);
            } else if let Some(counts) = status(line, ran) {
                add(&mut self.counts, counts);
            }
        }
        if rule == Some('=') {
            self.close();
        } else if self.last_rule == Some('=') {
            let name = line.strip_prefix("FAIL: ").or_else(|| line.strip_prefix("ERROR: "));
            self.open = name.map(|name| Open { case: Case::test(name), rules: 0 });
        } else if self.last_rule == Some('-')
            && let Some(ran) = ran_line(line)
        {
            self.ran = Some(ran);
        } else if let Some(open) = &mut self.open {
            match rule {
                Some(_) => open.rules += 1,
                None => open.case.block.push(line),
            }
            if open.rules > 1 {
                self.close();
            }
        }
        self.last_rule = rule;
    }

    fn counts(&self) -> Option<TestCounts> {
        self.counts
    }

    fn end(&mut self) -> Cases {
        self.close();
        std::mem::take(&mut self.cases)
    }
}

impl Unittest {
    fn close(&mut self) {
        if let Some(open) = self.open.take() {
            self.cases.push(open.case);
        }
    }
}

fn rule(line: &str) -> Option<char> {
    let first = line.chars().next().filter(|c| matches!(c, '=' | '-'))?;
    (line.len() == RULE && is_rule(line, first)).then_some(first)
}

/// `Ran 5 tests in 0.001s`.
fn ran_line(line: &str) -> Option<u64> {
    let (number, rest) = line.strip_prefix("Ran ")?.split_once(' ')?;
    let time = rest.strip_prefix("tests in ").or_else(|| rest.strip_prefix("test in "))?;
    time.strip_suffix('s').is_some_and(is_number).then(|| number.parse().ok())?
}

/// `OK (skipped=1)`, `FAILED (failures=1, errors=1)`, `NO TESTS RAN`, after a line that says how many ran.
fn status(line: &str, ran: u64) -> Option<TestCounts> {
    let (word, rest) = match line.split_once(" (") {
        Some((word, rest)) => (word, rest.strip_suffix(')')?),
        None => (line, ""),
    };
    if !matches!(word, "OK" | "FAILED" | "NO TESTS RAN") {
        return None;
    }
    let mut failed = 0;
    let mut skipped = 0;
    for part in rest.split(", ").filter(|part| !part.is_empty()) {
        let (name, number) = part.split_once('=')?;
        let number: u64 = number.parse().ok()?;
        match name {
            "failures" | "errors" | "unexpected successes" => failed += number,
            "skipped" => skipped += number,
            "expected failures" => {}
            _ => return None,
        }
    }
    Some(TestCounts { passed: ran.saturating_sub(failed).saturating_sub(skipped), failed, skipped })
}
