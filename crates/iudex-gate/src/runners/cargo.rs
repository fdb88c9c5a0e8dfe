//! `cargo test` (libtest) and the errors of rustc.

use std::collections::VecDeque;

use iudex_core::TestCounts;

use super::{Block, Case, Cases, Runner, add};

/// Panics outside of a captured section that are remembered, for `--nocapture`.
const MOST_PANICS: usize = 40;

#[derive(Debug, Default)]
pub(super) struct Cargo {
    counts: Option<TestCounts>,
    /// Sizes that `running N tests` announced and that no result line has answered yet.
    announced: VecDeque<u64>,
    any_announced: bool,
    /// What result lines say that answer nothing. It counts only where the whole output has no announcement, because
    /// the check cut them off (`cargo test | tail -3`).
    unannounced: Option<TestCounts>,
    cases: Cases,
    state: State,
    panics: VecDeque<(String, Block)>,
    /// Line number and text of an error whose place is expected on the next line.
    error: Option<String>,
}

#[derive(Debug, Default)]
enum State {
    #[default]
    Outside,
    /// In `---- name stdout ----`; the flag is set within a backtrace.
    Section(Case, bool),
    /// After `failures:`, where only names stand.
    Names,
    /// In the message of a panic that was not captured.
    Panic(String, Block),
    /// In a diagnostic of rustc.
    Diagnostic(Case),
}

impl Runner for Cargo {
    fn line(&mut self, line: &str) {
        if matches!(self.state, State::Section(..)) && is_next_binary(line) {
            self.close();
        }
        if self.summary(line) {
            self.close();
            return;
        }
        if let Some(name) = line.strip_prefix("---- ").and_then(section_name) {
            self.close();
            self.state = State::Section(Case::test(name), false);
            return;
        }
        if line == "failures:" {
            self.close();
            self.state = State::Names;
            return;
        }
        match &mut self.state {
            State::Section(case, in_backtrace) => {
                if line == "stack backtrace:" {
                    *in_backtrace = true;
                } else if !(*in_backtrace && is_frame(line)) {
                    *in_backtrace = false;
                    if !is_hint(line) {
                        case.block.push(line);
                    }
                }
            }
            State::Names => match line.strip_prefix("    ") {
                Some(name) if !name.starts_with(' ') => self.named(name.trim_end()),
                _ => {
                    if !line.is_empty() {
                        self.state = State::Outside;
                        self.outside(line);
                    }
                }
            },
            State::Panic(_, block) => {
                let is_end = line.is_empty() || line == "stack backtrace:" || is_hint(line);
                if is_end || (line.starts_with("test ") && line.contains(" ... ")) {
                    self.close();
                } else {
                    block.push(line);
                }
            }
            State::Diagnostic(case) => {
                if line.is_empty() {
                    self.close();
                } else {
                    case.block.push(line);
                }
            }
            State::Outside => self.outside(line),
        }
    }

    fn counts(&self) -> Option<TestCounts> {
        if self.any_announced { self.counts } else { self.unannounced }
    }

    fn end(&mut self) -> Cases {
        self.close();
        std::mem::take(&mut self.cases)
    }
}

impl Cargo {
    /// Counts a result line. It must answer a `running N tests` line whose number is the sum of its own, so one that a
    /// program under test prints beside those of the runner counts nothing.
    fn summary(&mut self, line: &str) -> bool {
        // What a failing test has printed stands in its section, summaries of other programs included.
        let in_section = matches!(self.state, State::Section(..));
        if let Some(number) = announced(line).filter(|_| !in_section) {
            if self.announced.len() == MOST_PANICS {
                self.announced.pop_front();
            }
            self.announced.push_back(number);
            self.any_announced = true;
            return true;
        }
        let Some((counts, total)) = result_line(line) else { return false };
        let Some(at) = self.announced.iter().rposition(|number| *number == total) else {
            add(&mut self.unannounced, counts);
            return false;
        };
        self.announced.remove(at);
        add(&mut self.counts, counts);
        true
    }

    fn outside(&mut self, line: &str) {
        if let Some(error) = self.error.take()
            && line.trim_start().starts_with("--> ")
        {
            let mut case = Case::diagnostic(&error);
            case.block.push(line);
            self.state = State::Diagnostic(case);
            return;
        }
        if (line.starts_with("error: ") || line.starts_with("error[")) && !is_last_word(line) {
            self.error = Some(line.to_owned());
            return;
        }
        if let Some(name) = panicking_thread(line) {
            let mut block = Block::new(20, 10);
            block.push(line);
            self.state = State::Panic(name.to_owned(), block);
        }
    }

    /// A name in the list of failures: its section came before, or with `--nocapture` only its panic.
    fn named(&mut self, name: &str) {
        if self.cases.has(name) {
            return;
        }
        let mut case = Case::test(name);
        if let Some((_, block)) = self.panics.iter().rev().find(|(thread, _)| thread == name) {
            case.block = block.clone();
        }
        self.cases.push(case);
    }

    fn close(&mut self) {
        match std::mem::take(&mut self.state) {
            State::Section(case, _) | State::Diagnostic(case) => self.cases.push(case),
            State::Panic(thread, block) => {
                if self.panics.len() == MOST_PANICS {
                    self.panics.pop_front();
                }
                self.panics.push_back((thread, block));
            }
            State::Names | State::Outside => {}
        }
    }
}

/// Cargo goes on to another test binary, also when the last one died in the middle of a section.
fn is_next_binary(line: &str) -> bool {
    ["     Running ", "   Doc-tests ", "error: test failed, to rerun"].iter().any(|start| line.starts_with(start))
}

/// `running 4 tests`.
fn announced(line: &str) -> Option<u64> {
    let (number, noun) = line.strip_prefix("running ")?.split_once(' ')?;
    matches!(noun, "test" | "tests").then(|| number.parse().ok())?
}

/// `test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s`, with the number
/// of tests that were announced for it.
fn result_line(line: &str) -> Option<(TestCounts, u64)> {
    let (status, rest) = line.strip_prefix("test result: ")?.split_once(". ")?;
    let mut parts = rest.split("; ");
    let mut next = |word: &str| -> Option<u64> {
        let (number, rest) = parts.next()?.split_once(' ')?;
        (rest == word).then(|| number.parse().ok())?
    };
    let passed = next("passed")?;
    let failed = next("failed")?;
    let skipped = next("ignored")?;
    let measured = next("measured")?;
    next("filtered out")?;
    let agrees = match status {
        "ok" => failed == 0,
        "FAILED" => failed > 0,
        _ => false,
    };
    let total = passed.checked_add(failed)?.checked_add(skipped)?.checked_add(measured)?;
    agrees.then_some((TestCounts { passed: passed + measured, failed, skipped }, total))
}

/// The name in `tests::add stdout ----`.
fn section_name(rest: &str) -> Option<&str> {
    let name = rest.strip_suffix(" ----")?;
    Some(name.strip_suffix(" stdout").or_else(|| name.strip_suffix(" stderr")).unwrap_or(name))
}

/// The name in `thread 'tests::add' (4711) panicked at src/lib.rs:12:34:`.
fn panicking_thread(line: &str) -> Option<&str> {
    let (name, rest) = line.strip_prefix("thread '")?.split_once('\'')?;
    rest.contains(" panicked at ").then_some(name)
}

/// A line of a backtrace: `   0: core::panicking::panic_fmt` or `             at ./src/lib.rs:12:34`.
pub(super) fn is_frame(line: &str) -> bool {
    let text = line.trim_start();
    let numbered = text.split_once(": ").is_some_and(|(n, _)| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    line.starts_with(' ') && (numbered || text.starts_with("at "))
}

/// Advice about backtraces, of no use to whoever mends the failure.
pub(super) fn is_hint(line: &str) -> bool {
    let text = line.trim_start();
    text.starts_with("note: run with `RUST_BACKTRACE=") || text.starts_with("note: Some details are omitted")
}

/// Errors that only say that there were errors.
fn is_last_word(line: &str) -> bool {
    const LAST_WORDS: [&str; 5] = [
        "error: could not compile",
        "error: aborting due to",
        "error: test failed",
        "error: doctest failed",
        "error: test run failed",
    ];
    LAST_WORDS.iter().any(|word| line.starts_with(word)) || line.ends_with(" targets failed:")
}
