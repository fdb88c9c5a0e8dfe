//! `go test`. Only its verbose output names single tests, so only that is counted.

use iudex_core::TestCounts;

use super::{Block, Case, Cases, Runner, add, is_number};

#[derive(Debug)]
pub(super) struct Go {
    counts: Option<TestCounts>,
    cases: Cases,
    open: Option<Case>,
    /// What the running test has printed: verbose output shows it before the test is named as failed.
    printed: Block,
    /// Tests that were named one by one, until the line of their package.
    named: TestCounts,
}

impl Default for Go {
    fn default() -> Self {
        let printed = Block::new(30, 30);
        Self { counts: None, cases: Cases::default(), open: None, printed, named: TestCounts::default() }
    }
}

impl Runner for Go {
    fn line(&mut self, line: &str) {
        if let Some((status, name)) = test_line(line) {
            self.close();
            match status {
                "PASS" => self.named.passed += 1,
                "SKIP" => self.named.skipped += 1,
                _ => {
                    self.named.failed += 1;
                    self.open = Some(Case { block: self.printed.clone(), ..Case::test(name) });
                }
            }
            self.printed = Block::new(30, 30);
        } else if is_package_line(line) {
            self.close();
            let named = std::mem::take(&mut self.named);
            // Without -v only failures are named: nothing can be said about the number of tests.
            if named.passed > 0 || named.skipped > 0 {
                add(&mut self.counts, named);
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some(case) = &mut self.open {
                case.block.push(line.trim_start());
            } else {
                self.printed.push(line.trim_start());
            }
        } else {
            self.close();
            if line.starts_with("=== RUN ") {
                self.printed = Block::new(30, 30);
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

impl Go {
    fn close(&mut self) {
        if let Some(case) = self.open.take() {
            self.cases.push(case);
        }
    }
}

/// `--- FAIL: TestAdd (0.00s)` as status and name.
fn test_line(line: &str) -> Option<(&str, &str)> {
    let (status, rest) = line.strip_prefix("--- ")?.split_once(": ")?;
    let (name, time) = rest.rsplit_once(" (")?;
    let is_time = time.strip_suffix("s)").is_some_and(is_number);
    (is_time && matches!(status, "PASS" | "FAIL" | "SKIP") && !name.contains(' ')).then_some((status, name))
}

/// The line of a package: `ok` or `FAIL`, its path and its time, separated by tabs.
fn is_package_line(line: &str) -> bool {
    let Some(rest) = line.strip_prefix("ok  \t").or_else(|| line.strip_prefix("FAIL\t")) else { return false };
    rest.contains('\t')
}
