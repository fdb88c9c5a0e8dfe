//! jest and vitest.

use iudex_core::TestCounts;

use super::{Case, Cases, Runner, add, count_and_word};

#[derive(Debug, Default)]
pub(super) struct Jest {
    counts: Option<TestCounts>,
    cases: Cases,
    open: Option<Case>,
    after_suites: bool,
}

impl Runner for Jest {
    fn line(&mut self, line: &str) {
        let after_suites = std::mem::replace(&mut self.after_suites, line.starts_with("Test Suites: "));
        if self.after_suites {
            self.close();
        } else if let Some(parts) = line.strip_prefix("Tests:       ").filter(|_| after_suites) {
            if let Some(counts) = parts.rsplit_once(", ").or(Some(("", parts))).and_then(|(parts, total)| {
                let (total, word) = count_and_word(total)?;
                (word == "total").then(|| counts(parts, ", ", total))?
            }) {
                add(&mut self.counts, counts);
            }
        } else if let Some(name) = line.strip_prefix("  ● ") {
            self.close();
            self.open = Some(Case::test(name));
        } else if line.starts_with("PASS ") || line.starts_with("FAIL ") {
            self.close();
        } else if let Some(case) = &mut self.open
            && !line.contains("/node_modules/")
        {
            case.block.push(line.strip_prefix("    ").unwrap_or(line));
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

impl Jest {
    fn close(&mut self) {
        if let Some(case) = self.open.take() {
            self.cases.push(case);
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Vitest {
    counts: Option<TestCounts>,
    cases: Cases,
    open: Option<Case>,
    after_files: bool,
}

impl Runner for Vitest {
    fn line(&mut self, line: &str) {
        let after_files = std::mem::replace(&mut self.after_files, line.starts_with(" Test Files  "));
        if self.after_files || line.starts_with("⎯⎯⎯") {
            self.close();
        } else if let Some(parts) = line.strip_prefix("      Tests  ").filter(|_| after_files) {
            // `2 failed | 1 passed (3)`, or `no tests`.
            let counts = match parts.rsplit_once(" (") {
                Some((parts, total)) => {
                    total.strip_suffix(')').and_then(|n| n.parse().ok()).and_then(|n| counts(parts, " | ", n))
                }
                None => (parts == "no tests").then(TestCounts::default),
            };
            if let Some(counts) = counts {
                add(&mut self.counts, counts);
            }
        } else if let Some(name) = line.strip_prefix(" FAIL  ") {
            self.close();
            self.open = Some(Case::test(name));
        } else if let Some(case) = &mut self.open {
            case.block.push(line);
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

impl Vitest {
    fn close(&mut self) {
        if let Some(case) = self.open.take() {
            self.cases.push(case);
        }
    }
}

/// The parts of a summary, which must add up to its total.
fn counts(parts: &str, separator: &str, total: u64) -> Option<TestCounts> {
    let mut counts = TestCounts::default();
    for part in parts.split(separator).filter(|part| !part.is_empty()) {
        let (number, word) = count_and_word(part)?;
        match word {
            "passed" | "expected fail" => counts.passed += number,
            "failed" => counts.failed += number,
            "skipped" | "todo" => counts.skipped += number,
            _ => return None,
        }
    }
    (counts.ran().checked_add(counts.skipped) == Some(total)).then_some(counts)
}
