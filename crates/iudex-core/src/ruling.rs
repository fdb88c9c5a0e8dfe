//! What a gate answers, and the evidence without which nothing is accepted.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::units::{FindingId, TreeId};

/// One gate's answer about one proposal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "ruling", rename_all = "snake_case")]
pub enum Ruling {
    /// The gate has checked and says yes.
    Accepted(Accepted),
    /// The gate has checked and sends it back.
    Rework(Rework),
    /// The gate could not check.
    Void(Void),
}

/// A yes. It can be built only from evidence that proves it; there is no other constructor.
///
/// Neither by its field:
/// ```compile_fail,E0451
/// # fn claim(evidence: iudex_core::CheckEvidence) {
/// let accepted = iudex_core::Accepted { evidence };
/// # }
/// ```
/// nor by a default:
/// ```compile_fail,E0277
/// fn default<T: Default>() -> T {
///     T::default()
/// }
/// let accepted: iudex_core::Accepted = default();
/// ```
/// nor from what was stored or sent:
/// ```compile_fail,E0277
/// let accepted: iudex_core::Accepted = serde_json::from_str("{}").unwrap();
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Accepted {
    evidence: CheckEvidence,
}

/// The evidence does not prove acceptance; the text says why.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("not proven: {0}")]
pub struct NotProven(pub String);

impl Accepted {
    /// Builds the acceptance of a check: there is at least one command, and every one of them ran and exited 0.
    ///
    /// # Errors
    /// [`NotProven`] with the first reason why the evidence does not carry it.
    pub fn from_check(evidence: CheckEvidence) -> Result<Self, NotProven> {
        if evidence.commands.is_empty() {
            return Err(NotProven("no command ran".to_owned()));
        }
        match evidence.commands.iter().find(|command| command.end != CommandEnd::Exited(0)) {
            Some(red) => Err(NotProven(format!("`{}` {}", red.command, red.end))),
            None => Ok(Self { evidence }),
        }
    }

    /// What proves it.
    pub fn evidence(&self) -> &CheckEvidence {
        &self.evidence
    }
}

/// Findings that go back to the agent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rework {
    /// At least one finding.
    pub findings: Vec<Finding>,
    /// Equal for two failures that are the same but for paths, numbers and times.
    pub fingerprint: Fingerprint,
    /// What the gate ran, when it ran anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<CheckEvidence>,
}

/// Why a gate could not check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Void {
    /// What happened, with the value that it happened to.
    pub reason: String,
    /// False when asking again cannot change it.
    pub may_change: bool,
    /// What the gate ran before it failed, when it ran anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<CheckEvidence>,
}

/// One thing to mend.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The name, given by the loop; `None` until then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<FindingId>,
    /// What is wrong: for a red check the command, how it ended, and the failing part of its output.
    pub what: String,
    /// Where, when the gate knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// What to do, when the gate knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// The test that would have caught it; a red check is one itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub covering_test: Option<String>,
    /// What is right already and must stay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<String>,
}

impl Finding {
    /// A finding that is only a description.
    pub fn new(what: impl Into<String>) -> Self {
        Self { id: None, what: what.into(), place: None, fix: None, covering_test: None, keep: None }
    }
}

/// A digest of a failure with paths, numbers and times normalised.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Fingerprint(pub String);

/// What a check did, for the record and for acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CheckEvidence {
    /// The raw tree that was checked.
    pub tree: TreeId,
    /// Where the commands ran.
    pub place: Place,
    /// Every command, in order; all run, even after a red one.
    pub commands: Vec<CommandEvidence>,
    /// Whether the same commands passed before any work; `None` while taking the baseline itself.
    pub baseline_green: Option<bool>,
    /// The sandbox that held the commands, in words (`bubblewrap`, `landlock`, `none`).
    pub sandbox: String,
    /// Whether the commands could reach a network beyond their own loopback.
    pub network: bool,
    /// Anything a reader must know to weigh it (`the check passed before any work, so it can only guard`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
}

/// Where a check ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Place {
    /// In the directory that the agent works in.
    InPlace,
}

/// One command of a check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandEvidence {
    /// The command line as the user gave it.
    pub command: String,
    /// How it ended.
    pub end: CommandEnd,
    /// How long it took.
    pub duration: Duration,
    /// Tests that its output reports, summed over all summaries; `None` when no summary was recognised.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tests: Option<TestCounts>,
    /// The last line of its output that is not blank.
    #[serde(default)]
    pub last_line: String,
    /// Bytes of output in all.
    pub output_bytes: u64,
    /// SHA-256 of the whole output, hexadecimal.
    pub output_sha256: String,
    /// The file with the output (first 8 and last 56 MiB), when one could be kept.
    #[serde(default, skip_serializing_if = "Option::is_none", serialize_with = "path_as_text")]
    pub output_file: Option<PathBuf>,
}

/// A path may be any bytes, JSON may not: what is not UTF-8 is replaced, so that the record of the check is kept.
#[expect(clippy::ref_option, reason = "serde hands the field over like this")]
fn path_as_text<S: serde::Serializer>(path: &Option<PathBuf>, serializer: S) -> Result<S::Ok, S::Error> {
    path.as_ref().map(|path| path.to_string_lossy()).serialize(serializer)
}

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CommandEnd {
    /// With this exit status.
    Exited(i32),
    /// By this signal.
    Signalled(i32),
    /// Ended by iudex at its time limit.
    TimedOut,
}

impl std::fmt::Display for CommandEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Exited(status) => write!(f, "exited {status}"),
            Self::Signalled(signal) => write!(f, "was ended by signal {signal}"),
            Self::TimedOut => f.write_str("ran into its time limit"),
        }
    }
}

/// Tests as a runner's summaries count them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TestCounts {
    /// Passed.
    pub passed: u64,
    /// Failed or in error.
    pub failed: u64,
    /// Skipped or ignored.
    pub skipped: u64,
}

impl TestCounts {
    /// Tests that really ran.
    pub fn ran(&self) -> u64 {
        self.passed.saturating_add(self.failed)
    }
}
