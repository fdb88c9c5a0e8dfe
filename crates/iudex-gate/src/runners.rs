//! The test runners that the check recognises: how many tests a run reports, and which of them failed.
//!
//! Only lines in the exact format of a runner's own summary are counted, and only where their numbers agree with each
//! other: a line that merely looks like one, printed by a program under test, counts nothing.
//! Never: whether a check passed. The exit status says that.

mod cargo;
mod go;
mod jest;
mod nextest;
mod node;
mod pytest;
mod unittest;

use std::collections::VecDeque;

use iudex_core::TestCounts;

use crate::clean::shorten;

/// Failing cases that are kept of one output; more are counted.
const MOST_CASES: usize = 60;

/// Bytes of one kept line.
const MOST_OF_A_LINE: usize = 600;

/// Reads the output of one runner line by line.
pub(crate) trait Runner {
    /// Takes the next line, already cleaned.
    fn line(&mut self, line: &str);

    /// Tests summed over all summaries; `None` when there was none.
    fn counts(&self) -> Option<TestCounts>;

    /// The output has ended: the failing cases that were seen, the last one closed.
    fn end(&mut self) -> Cases;
}

/// All runners. One output may hold the summaries of several.
pub(crate) fn all() -> Vec<Box<dyn Runner>> {
    vec![
        Box::new(cargo::Cargo::default()),
        Box::new(nextest::Nextest::default()),
        Box::new(pytest::Pytest::default()),
        Box::new(unittest::Unittest::default()),
        Box::new(node::Node::default()),
        Box::new(jest::Jest::default()),
        Box::new(jest::Vitest::default()),
        Box::new(go::Go::default()),
    ]
}

/// True for a line that helps nobody to mend a failure.
pub(crate) fn is_noise(line: &str) -> bool {
    cargo::is_hint(line) || node::is_internal_frame(line)
}

/// Adds what one summary reports.
fn add(sum: &mut Option<TestCounts>, counts: TestCounts) {
    let before = sum.unwrap_or_default();
    *sum = Some(TestCounts {
        passed: before.passed.saturating_add(counts.passed),
        failed: before.failed.saturating_add(counts.failed),
        skipped: before.skipped.saturating_add(counts.skipped),
    });
}

/// Sums over several runners.
pub(crate) fn sum(all: impl Iterator<Item = TestCounts>) -> Option<TestCounts> {
    let mut total = None;
    for counts in all {
        add(&mut total, counts);
    }
    total
}

/// One failing case.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    /// Its name, or the first line of a diagnostic.
    pub(crate) name: String,
    /// True for a test, whose name tells it apart from others, digits included.
    pub(crate) is_test: bool,
    /// What was printed about it.
    pub(crate) block: Block,
}

impl Case {
    fn test(name: &str) -> Self {
        Self { name: shorten(name.trim(), MOST_OF_A_LINE), is_test: true, block: Block::new(30, 30) }
    }

    fn diagnostic(name: &str) -> Self {
        Self { is_test: false, ..Self::test(name) }
    }
}

/// The failing cases of one output, bounded.
#[derive(Debug, Clone, Default)]
pub(crate) struct Cases {
    /// The first ones.
    pub(crate) list: Vec<Case>,
    /// How many more there were.
    pub(crate) more: u64,
}

impl Cases {
    /// Takes a case; one that was reported before (runners repeat themselves at the end) is dropped.
    pub(crate) fn push(&mut self, case: Case) {
        if let Some(known) = self.list.iter_mut().find(|known| known.name == case.name && known.is_test == case.is_test)
        {
            if known.block.is_blank() {
                known.block = case.block;
            } else if !case.is_test && !known.block.same_as(&case.block) {
                // Two diagnostics may share their first line and differ in the place.
                self.push_new(case);
            }
            return;
        }
        self.push_new(case);
    }

    fn push_new(&mut self, case: Case) {
        if self.list.len() < MOST_CASES {
            self.list.push(case);
        } else {
            self.more += 1;
        }
    }

    /// Takes all cases of another runner.
    pub(crate) fn append(&mut self, other: Self) {
        for case in other.list {
            self.push(case);
        }
        self.more += other.more;
    }

    fn has(&self, name: &str) -> bool {
        self.list.iter().any(|case| case.name == name)
    }
}

/// Lines with a bounded memory: the first ones and the last ones.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    first: Vec<String>,
    last: VecDeque<String>,
    most_first: usize,
    most_last: usize,
    /// Lines between the two that were not kept.
    omitted: u64,
}

impl Block {
    /// A block that keeps so many lines of its start and its end.
    pub(crate) fn new(most_first: usize, most_last: usize) -> Self {
        Self { first: Vec::new(), last: VecDeque::new(), most_first, most_last, omitted: 0 }
    }

    /// Takes a line. Blank lines at the start are dropped, runs of them become one.
    pub(crate) fn push(&mut self, line: &str) {
        let line = line.trim_end();
        if line.is_empty() && self.last.back().or(self.first.last()).is_none_or(String::is_empty) {
            return;
        }
        let line = shorten(line, MOST_OF_A_LINE);
        if self.first.len() < self.most_first {
            self.first.push(line);
            return;
        }
        if self.last.len() == self.most_last {
            self.last.pop_front();
            self.omitted += 1;
        }
        self.last.push_back(line);
    }

    /// The kept lines of the start.
    pub(crate) fn first(&self) -> &[String] {
        &self.first
    }

    /// The kept lines of the end.
    pub(crate) fn last(&self) -> impl DoubleEndedIterator<Item = &String> {
        self.last.iter()
    }

    /// Lines that were not kept.
    pub(crate) fn omitted(&self) -> u64 {
        self.omitted
    }

    /// All kept lines in order.
    pub(crate) fn lines(&self) -> impl DoubleEndedIterator<Item = &String> {
        self.first.iter().chain(self.last.iter())
    }

    /// True when nothing was printed.
    pub(crate) fn is_blank(&self) -> bool {
        self.lines().all(|line| line.trim().is_empty())
    }

    fn same_as(&self, other: &Self) -> bool {
        self.lines().eq(other.lines())
    }
}

/// `12 passed` as number and word.
fn count_and_word(part: &str) -> Option<(u64, &str)> {
    let (number, word) = part.trim().split_once(' ')?;
    Some((number.parse().ok()?, word.trim()))
}

/// True for `0.17`, `12`, `1.5`.
fn is_number(text: &str) -> bool {
    !text.is_empty() && text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
}

/// True for a line of at least three of one character and nothing else.
fn is_rule(line: &str, of: char) -> bool {
    line.chars().count() >= 3 && line.chars().all(|c| c == of)
}
