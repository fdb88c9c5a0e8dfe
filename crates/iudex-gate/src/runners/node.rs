//! `node --test`, with the TAP and with the spec reporter.

use std::collections::VecDeque;

use iudex_core::TestCounts;

use super::{Case, Cases, Runner, add, is_number};

/// The keys of a summary, in their order. `suites` is younger than the others.
const KEYS: [&str; 7] = ["tests", "suites", "pass", "fail", "cancelled", "skipped", "todo"];

/// Lines outside of any test that are remembered: a file that cannot be loaded says why there.
const MOST_LOOSE: usize = 20;

#[derive(Debug, Default)]
pub(super) struct Node {
    counts: Option<TestCounts>,
    summary: Option<Summary>,
    /// Whether the last line was the plan (`1..5`). In TAP the summary follows it; whatever a test prints becomes a
    /// comment, the plan of a forger included.
    after_plan: bool,
    cases: Cases,
    state: State,
    loose: VecDeque<String>,
}

/// A summary that is being read.
#[derive(Debug)]
struct Summary {
    mark: char,
    next: usize,
    values: [u64; KEYS.len()],
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Outside,
    /// After `not ok 2 - adds`, before its details.
    NotOk { name: String, indent: usize },
    /// Between `---` and `...`.
    Details { case: Case, indent: usize, only_subtests: bool },
    /// In the list that the spec reporter ends with.
    Failing(Option<Case>, String),
}

impl Runner for Node {
    fn line(&mut self, line: &str) {
        self.count(line);
        self.after_plan = line.strip_prefix("1..").is_some_and(|last| last.bytes().all(|b| b.is_ascii_digit()));
        match std::mem::take(&mut self.state) {
            State::NotOk { name, indent } if line.trim() == "---" => {
                self.state = State::Details { case: Case::test(&name), indent: indent + 2, only_subtests: false };
            }
            State::NotOk { name, .. } => {
                self.cases.push(Case::test(&name));
                self.outside(line);
            }
            State::Details { case, only_subtests, .. } if line.trim() == "..." => {
                if !only_subtests {
                    self.push(case);
                }
            }
            State::Details { mut case, indent, mut only_subtests } => {
                let text = line.get(indent..).unwrap_or_else(|| line.trim_start());
                only_subtests |= text.starts_with("failureType: 'subtestsFailed'");
                if is_useful_detail(text) {
                    case.block.push(text);
                }
                self.state = State::Details { case, indent, only_subtests };
            }
            State::Failing(case, place) => self.failing(line, case, place),
            State::Outside => self.outside(line),
        }
    }

    fn counts(&self) -> Option<TestCounts> {
        self.counts
    }

    fn end(&mut self) -> Cases {
        match std::mem::take(&mut self.state) {
            State::NotOk { name, .. } => self.cases.push(Case::test(&name)),
            State::Details { case, only_subtests: false, .. } | State::Failing(Some(case), _) => self.push(case),
            _ => {}
        }
        std::mem::take(&mut self.cases)
    }
}

impl Node {
    fn outside(&mut self, line: &str) {
        if line == "✖ failing tests:" {
            self.state = State::Failing(None, String::new());
            return;
        }
        if let Some((name, indent)) = not_ok(line) {
            self.state = State::NotOk { name: name.to_owned(), indent };
            return;
        }
        let text = line.strip_prefix("# ").unwrap_or(line);
        let is_loose = !text.trim().is_empty()
            && !text.starts_with("Subtest: ")
            && !text.starts_with("TAP version ")
            && !line.trim_start().starts_with(['✔', '✖', '▶', '﹣', 'ℹ'])
            && !is_internal_frame(text);
        if is_loose {
            if self.loose.len() == MOST_LOOSE {
                self.loose.pop_front();
            }
            self.loose.push_back(text.to_owned());
        }
    }

    /// A line of the list of failures: `test at FILE:LINE:COLUMN`, `✖ name (1.6ms)`, then the error, indented.
    fn failing(&mut self, line: &str, mut case: Option<Case>, mut place: String) {
        if let Some(at) = line.strip_prefix("test at ") {
            if let Some(case) = case.take() {
                self.push(case);
            }
            at.clone_into(&mut place);
        } else if let Some(name) = line.strip_prefix("✖ ") {
            if let Some(case) = case.take() {
                self.push(case);
            }
            let mut next = Case::test(without_duration(name));
            if !place.is_empty() {
                next.block.push(&format!("at {place}"));
                place.clear();
            }
            case = Some(next);
        } else if line.is_empty() || line.starts_with(' ') {
            if let Some(case) = &mut case
                && !is_internal_frame(line)
            {
                case.block.push(line.strip_prefix("  ").unwrap_or(line));
            }
        } else {
            if let Some(case) = case.take() {
                self.push(case);
            }
            self.outside(line);
            return;
        }
        self.state = State::Failing(case, place);
    }

    /// A file that could not be loaded fails as one test that says only `test failed`: the reason stands outside.
    fn push(&mut self, mut case: Case) {
        if case.block.lines().any(|line| line.trim() == "'test failed'" || line.trim() == "error: 'test failed'") {
            for line in &self.loose {
                case.block.push(line);
            }
        }
        self.cases.push(case);
    }

    /// A summary is all of its lines in order, each with the same mark, and numbers that add up.
    fn count(&mut self, line: &str) {
        let Some((mark, key, value)) = summary_line(line) else {
            self.summary = None;
            return;
        };
        if key == KEYS[0] {
            if mark == '#' && !self.after_plan {
                return;
            }
            self.summary = value.parse().ok().map(|tests| {
                let mut values = [0; KEYS.len()];
                values[0] = tests;
                Summary { mark, next: 1, values }
            });
            return;
        }
        let Some(mut summary) = self.summary.take() else { return };
        if summary.next == 1 && key == KEYS[2] {
            summary.next = 2;
        }
        if summary.mark != mark {
            return;
        }
        if summary.next < KEYS.len() {
            if let (true, Ok(number)) = (key == KEYS[summary.next], value.parse()) {
                summary.values[summary.next] = number;
                summary.next += 1;
                self.summary = Some(summary);
            }
        } else if key == "duration_ms" && is_number(value) {
            let [tests, _, passed, failed, cancelled, skipped, todo] = summary.values;
            let parts = [passed, failed, cancelled, skipped, todo];
            if parts.iter().try_fold(0_u64, |sum, part| sum.checked_add(*part)) == Some(tests) {
                add(&mut self.counts, TestCounts { passed, failed: failed + cancelled, skipped: skipped + todo });
            }
        }
    }
}

/// `ℹ pass 2` or `# pass 2`.
fn summary_line(line: &str) -> Option<(char, &str, &str)> {
    let mark = line.chars().next().filter(|c| matches!(c, 'ℹ' | '#'))?;
    let (key, value) = line[mark.len_utf8()..].strip_prefix(' ')?.split_once(' ')?;
    Some((mark, key, value))
}

/// The name and the indentation of `not ok 2 - adds`, unless it is a test that may fail.
fn not_ok(line: &str) -> Option<(&str, usize)> {
    let text = line.trim_start_matches(' ');
    let (number, name) = text.strip_prefix("not ok ")?.split_once(" - ")?;
    let may_fail = name.contains(" # TODO") || name.contains(" # SKIP");
    (number.bytes().all(|b| b.is_ascii_digit()) && !may_fail).then_some((name, line.len() - text.len()))
}

fn is_useful_detail(text: &str) -> bool {
    let noise = ["duration_ms: ", "type: ", "failureType: ", "stack: ", "signal: ~", "code: 'ERR_TEST_FAILURE'"];
    !noise.iter().any(|start| text.starts_with(start)) && !is_internal_frame(text)
}

/// A frame of a stack that lies in node itself.
pub(super) fn is_internal_frame(line: &str) -> bool {
    let text = line.trim();
    text.contains("node:internal/")
        || text.contains("(node:async_hooks:")
        || text.starts_with("at new Promise (<anonymous>)")
        || text == "new Promise (<anonymous>)"
        || text == "Array.map (<anonymous>)"
        || text == "at Array.map (<anonymous>)"
}

/// `adds (1.64ms)` without its time.
fn without_duration(name: &str) -> &str {
    match name.rsplit_once(" (") {
        Some((name, time)) if time.strip_suffix("ms)").is_some_and(is_number) => name,
        _ => name,
    }
}
