//! The pinned result of a pass.

use serde::{Deserialize, Serialize};

use crate::units::{CommitId, PassNumber, TreeId};

/// The state of a work directory at one moment, stored out of the agent's reach.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Snapshot {
    /// The tree of the raw bytes, nested repositories included: what gates and undo use.
    pub raw: TreeId,
    /// The tree as git would commit it; `None` outside a repository.
    pub git: Option<TreeId>,
    /// A digest of the small ignored files (`.env`), caches left out; `None` without any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ignored: Option<String>,
    /// The private commit that keeps both trees.
    pub commit: CommitId,
    /// What is not in it, in words (`data/big.bin: ignored, 80 MiB`).
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub not_covered: Vec<String>,
}

impl Snapshot {
    /// What a gate that is asked in place sees: the raw tree, and the digest of the ignored files.
    pub fn state(&self) -> (TreeId, Option<String>) {
        (self.raw.clone(), self.ignored.clone())
    }
}

/// What an agent proposes: the state after a pass, pinned. Its author's own words are not in it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proposal {
    /// The pass that made it.
    pub pass: PassNumber,
    /// The state at the start of the run.
    pub base: Snapshot,
    /// The state that is proposed.
    pub snapshot: Snapshot,
}

impl Proposal {
    /// True when no file differs from the base, ignored ones aside.
    pub fn is_unchanged(&self) -> bool {
        self.base.raw == self.snapshot.raw
    }
}

/// The size of a difference.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiffStat {
    /// Files that differ, by path, each with lines added and removed (`None` for binary files).
    pub files: Vec<FileStat>,
}

/// One file of a [`DiffStat`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileStat {
    /// The path, relative to the work directory, lossily as text.
    pub path: String,
    /// Lines added.
    pub added: Option<u64>,
    /// Lines removed.
    pub removed: Option<u64>,
}

impl DiffStat {
    /// One line for people: `2 files changed, +10 -3`.
    pub fn summary(&self) -> String {
        if self.files.is_empty() {
            return "no files changed".to_owned();
        }
        let added: u64 = self.files.iter().filter_map(|file| file.added).sum();
        let removed: u64 = self.files.iter().filter_map(|file| file.removed).sum();
        let noun = if self.files.len() == 1 { "file" } else { "files" };
        format!("{} {noun} changed, +{added} -{removed}", self.files.len())
    }
}
