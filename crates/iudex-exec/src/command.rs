//! The words about one command: what to run, how it ended, what it printed.
//!
//! Never: what a result means.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::sandbox::Confinement;
use crate::spool;

/// What to run and within which bounds.
#[derive(Debug, Clone)]
pub struct CommandSpec {
    /// The script, run by `bash -o pipefail -c` with closed standard input.
    pub script: String,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The whole environment; nothing is inherited. See [`crate::child_environment`].
    pub env: Vec<(OsString, OsString)>,
    /// After this the command and all its descendants are killed.
    pub time_limit: Duration,
    /// How much output is kept.
    pub output: OutputSpec,
    /// What holds it.
    pub confinement: Confinement,
}

/// How much of the output (both streams, in the order of arrival) is kept, and where.
#[derive(Debug, Clone)]
pub struct OutputSpec {
    /// Bytes from the start that are kept in memory.
    pub head: usize,
    /// Bytes from the end that are kept in memory.
    pub tail: usize,
    /// A file for the output (first 8 and last 56 MiB); `None` keeps none. Created with mode 0600.
    pub file: Option<PathBuf>,
}

/// A command that has ended. Nothing that it started is alive any more, but for `survivors`.
#[derive(Debug, Clone)]
pub struct Finished {
    /// How it ended.
    pub end: End,
    /// From start to end.
    pub duration: Duration,
    /// What it printed.
    pub output: Captured,
    /// Processes that it left behind and that were killed (counted where that is possible).
    pub left_behind: u32,
    /// Processes that it left behind and that could not be killed: they may still change files, so that nothing holds
    /// of what is found afterwards.
    pub survivors: u32,
    /// What it (or somebody else meanwhile) changed where it must not and what was put back (only where the sandbox
    /// cannot keep it from that; see [`crate::evidence`]).
    pub restored: Vec<PathBuf>,
    /// What weakens the evidence, in sentences: what could not be watched, and where displaced files are now.
    pub notes: Vec<String>,
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Killed at its time limit; what it printed until then is kept.
    TimedOut,
}

/// What a command printed, bounded.
#[derive(Debug, Clone)]
pub struct Captured {
    /// The first bytes.
    pub head: Vec<u8>,
    /// The last bytes that are not in `head`.
    pub tail: Vec<u8>,
    /// Bytes between the two that were not kept in memory.
    pub omitted: u64,
    /// Bytes in all.
    pub total: u64,
    /// SHA-256 over the whole stream, lower-case hexadecimal.
    pub sha256: String,
    /// The file with the output, when one could be written to the end.
    pub file: Option<PathBuf>,
    /// Why no complete file was kept, when one was asked for (`no space left on device`).
    pub file_error: Option<String>,
}

impl Captured {
    /// Head and tail as text, with a line that says how many bytes are missing in between.
    pub fn text(&self) -> String {
        let mut text = String::from_utf8_lossy(&self.head).into_owned();
        if self.omitted > 0 {
            text.push_str(&spool::marker(self.omitted));
        } else if !self.tail.is_empty() {
            // The border may lie within a character.
            let whole = [self.head.as_slice(), self.tail.as_slice()].concat();
            return String::from_utf8_lossy(&whole).into_owned();
        }
        text.push_str(&String::from_utf8_lossy(&self.tail));
        text
    }
}

/// The command could not be started, or what came of it is worth nothing, and that is the machine's fault: no process,
/// no memory, sandbox refused, its supervisor killed, protected files changed that could not be put back.
#[derive(Debug, Clone, thiserror::Error)]
#[error("{message}")]
pub struct StartError {
    /// What failed.
    pub message: String,
}
