//! pytest.

use iudex_core::TestCounts;

use super::{Case, Cases, Runner, add, count_and_word, is_number};

#[derive(Debug, Default)]
pub(super) struct Pytest {
    counts: Option<TestCounts>,
    cases: Cases,
    section: Section,
    open: Option<Case>,
    /// `FAILED test_calc.py::test_add - assert -1 == 5`: used where tracebacks are switched off.
    short: Cases,
}

#[derive(Debug, Default, PartialEq, Eq)]
enum Section {
    #[default]
    Other,
    Failures,
    Short,
}

impl Runner for Pytest {
    fn line(&mut self, line: &str) {
        let title = framed(line, '=');
        if let Some(counts) = summary(title.unwrap_or(line)) {
            self.close();
            self.section = Section::Other;
            add(&mut self.counts, counts);
            return;
        }
        if let Some(title) = title {
            self.close();
            self.section = match title {
                "FAILURES" | "ERRORS" => Section::Failures,
                "short test summary info" => Section::Short,
                _ => Section::Other,
            };
            return;
        }
        match self.section {
            Section::Failures => {
                if let Some(name) = framed(line, '_') {
                    self.close();
                    self.open = Some(Case::test(name));
                } else if let Some(case) = &mut self.open
                    && !is_worker(line)
                {
                    case.block.push(line);
                }
            }
            Section::Short => {
                let failed = line.strip_prefix("FAILED ").or_else(|| line.strip_prefix("ERROR "));
                if let Some(rest) = failed {
                    let (name, why) = rest.split_once(" - ").unwrap_or((rest, ""));
                    let mut case = Case::test(name);
                    case.block.push(why);
                    self.short.push(case);
                }
            }
            Section::Other => {}
        }
    }

    fn counts(&self) -> Option<TestCounts> {
        self.counts
    }

    fn end(&mut self) -> Cases {
        self.close();
        let full = std::mem::take(&mut self.cases);
        let short = std::mem::take(&mut self.short);
        if full.list.is_empty() { short } else { full }
    }
}

impl Pytest {
    fn close(&mut self) {
        if let Some(case) = self.open.take() {
            self.cases.push(case);
        }
    }
}

/// `===== 1 failed, 2 passed in 0.06s =====`, with `-q` without the frame, or `no tests ran in 0.01s`.
fn summary(text: &str) -> Option<TestCounts> {
    let (parts, time) = text.rsplit_once(" in ")?;
    let seconds = time.split_once(" (").map_or(time, |(seconds, _)| seconds);
    if !seconds.strip_suffix('s').is_some_and(is_number) {
        return None;
    }
    let mut counts = TestCounts::default();
    let mut known = false;
    if parts == "no tests ran" {
        return Some(counts);
    }
    for part in parts.split(", ") {
        let (number, word) = count_and_word(part)?;
        match word {
            // What was expected to fail and did has run and is as it should be.
            "passed" | "xfailed" | "xpassed" => counts.passed += number,
            "failed" | "error" | "errors" => counts.failed += number,
            "skipped" => counts.skipped += number,
            "deselected" => {}
            // Warnings, and the words of plugins.
            _ => continue,
        }
        known = true;
    }
    known.then_some(counts)
}

/// The title in a line like `==== FAILURES ====`.
fn framed(line: &str, with: char) -> Option<&str> {
    let inner = line.trim_start_matches(with);
    let title = inner.trim_end_matches(with);
    let framed = inner.len() < line.len() && title.len() < inner.len();
    (framed && title.len() > 2 && title.starts_with(' ') && title.ends_with(' ')).then(|| title.trim())
}

/// `[gw1] linux -- Python 3.11.7 /usr/bin/python`: which worker it was differs from run to run.
fn is_worker(line: &str) -> bool {
    line.starts_with("[gw") && line.contains("] ") && line.contains(" -- Python ")
}
