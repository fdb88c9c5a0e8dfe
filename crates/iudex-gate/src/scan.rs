//! Reads an output once, line by line and in bounded memory: tests, failing cases, start and end, errors of the shell.
//!
//! Never: what follows from it.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Read;
use std::path::Path;

use iudex_core::TestCounts;
use iudex_exec::Captured;

use crate::clean::{Lines, shorten};
use crate::runners::{self, Block, Cases, Runner};

/// Lines of the start and of the end that are kept for outputs without a known failing part.
const FIRST_LINES: usize = 20;
const LAST_LINES: usize = 60;

/// Lines after the last summary that are kept.
const LINES_AFTER_SUMMARY: usize = 6;

/// Errors of the shell that are kept.
const MOST_SHELL_ERRORS: usize = 8;

/// What a kept file holds of an output at the most (first 8 and last 56 MiB).
const KEPT_IN_FILE: u64 = 64 * 1024 * 1024;

/// Bytes of the kept file that are read between two chances to be cancelled.
const READ_AT_ONCE: usize = 256 * 1024;

/// What one output says.
#[derive(Debug)]
pub(crate) struct Scan {
    /// Tests, summed over all summaries of all runners; `None` when no summary was recognised.
    pub(crate) counts: Option<TestCounts>,
    /// The failing cases.
    pub(crate) cases: Cases,
    /// Start and end.
    pub(crate) edges: Block,
    /// The last lines that are not blank and come after the last summary.
    pub(crate) after_summary: VecDeque<String>,
    /// The last line that is not blank.
    pub(crate) last_line: String,
    /// What bash, `env` and `timeout` said about commands that they could not start, the last ones.
    pub(crate) shell_errors: Vec<String>,
    /// How much of the output was read.
    pub(crate) kept: Kept,
}

/// How much of an output was there to be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kept {
    /// All of it.
    Whole,
    /// It is longer than what iudex keeps of any output: the command's own doing.
    Capped,
    /// A part could not be kept or read: the machine's doing.
    Lost,
}

/// Reads a stream of bytes.
pub(crate) struct Scanner {
    lines: Lines,
    reader: Reader,
}

struct Reader {
    runners: Vec<Box<dyn Runner>>,
    edges: Block,
    after_summary: VecDeque<String>,
    last_line: String,
    shell_errors: Vec<String>,
}

impl Scanner {
    pub(crate) fn new() -> Self {
        let reader = Reader {
            runners: runners::all(),
            edges: Block::new(FIRST_LINES, LAST_LINES),
            after_summary: VecDeque::new(),
            last_line: String::new(),
            shell_errors: Vec::new(),
        };
        Self { lines: Lines::default(), reader }
    }

    /// Takes the next bytes.
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        let Self { lines, reader } = self;
        lines.push(bytes, &mut |line| reader.line(line));
    }

    /// The end of the output.
    pub(crate) fn finish(mut self, kept: Kept) -> Scan {
        self.end_line();
        let mut cases = Cases::default();
        for runner in &mut self.reader.runners {
            cases.append(runner.end());
        }
        Scan {
            counts: runners::sum(self.reader.runners.iter().filter_map(|runner| runner.counts())),
            cases,
            edges: self.reader.edges,
            after_summary: self.reader.after_summary,
            last_line: self.reader.last_line,
            shell_errors: self.reader.shell_errors,
            kept,
        }
    }

    fn end_line(&mut self) {
        let Self { lines, reader } = self;
        lines.finish(&mut |line| reader.line(line));
    }
}

impl Reader {
    fn line(&mut self, line: &str) {
        let mut is_summary = false;
        for runner in &mut self.runners {
            let before = runner.counts();
            runner.line(line);
            is_summary |= runner.counts() != before;
        }
        self.edges.push(line);
        if is_summary {
            self.after_summary.clear();
        } else if !line.trim().is_empty() && !runners::is_noise(line) {
            if self.after_summary.len() == LINES_AFTER_SUMMARY {
                self.after_summary.pop_front();
            }
            self.after_summary.push_back(shorten(line.trim_end(), 300));
        }
        if !line.trim().is_empty() {
            self.last_line.clear();
            self.last_line.push_str(&shorten(line.trim(), 300));
        }
        if is_of_a_starter(line) {
            if self.shell_errors.len() == MOST_SHELL_ERRORS {
                self.shell_errors.remove(0);
            }
            self.shell_errors.push(shorten(line, 300));
        }
    }
}

/// True for what bash (with or without its path), `env` and `timeout` print when they cannot start something.
fn is_of_a_starter(line: &str) -> bool {
    line.split_once(": ").is_some_and(|(name, _)| {
        matches!(name.rsplit('/').next(), Some("bash" | "sh" | "env" | "timeout" | "nice" | "nohup" | "stdbuf"))
    })
}

/// Reads what a command printed: from memory, or from the kept file where memory does not hold all of it.
pub(crate) async fn scan(output: &Captured) -> Scan {
    if output.omitted > 0
        && let Some(file) = &output.file
        && let Some(scan) = scan_file(file, output.total).await
    {
        return scan;
    }
    let mut scanner = Scanner::new();
    scanner.push(&output.head);
    if output.omitted > 0 {
        scanner.end_line();
    }
    scanner.push(&output.tail);
    scanner.finish(if output.omitted == 0 { Kept::Whole } else { Kept::Lost })
}

/// `None` when the file cannot be read.
async fn scan_file(path: &Path, total: u64) -> Option<Scan> {
    let mut file = File::open(path).ok()?;
    let kept = if total <= KEPT_IN_FILE { Kept::Whole } else { Kept::Capped };
    let mut scanner = Scanner::new();
    let mut buffer = vec![0; READ_AT_ONCE];
    loop {
        match file.read(&mut buffer).ok()? {
            0 => return Some(scanner.finish(kept)),
            read => scanner.push(&buffer[..read]),
        }
        tokio::task::yield_now().await;
    }
}
