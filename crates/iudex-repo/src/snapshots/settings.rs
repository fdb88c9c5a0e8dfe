//! What the user's git configuration says that matters for a snapshot, asked of git itself: which files it reads depends
//! on how it was built. Never: a guess about a filter; where git does not answer there may be one.

use std::path::PathBuf;

use super::Snapshots;
use crate::error::SnapshotError;
use crate::git::Git;
use crate::paths;

/// Commands of git-lfs, as `git lfs install` writes them. They run nothing of the work directory.
const LFS: [&str; 4] =
    ["git-lfs clean -- %f", "git-lfs clean %f", "git-lfs filter-process", "git-lfs filter-process --skip"];

/// The settings, from one process.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Settings {
    /// `core.excludesFile`.
    pub(super) excludes: Option<PathBuf>,
    /// A setting that has `git add` run a program, git-lfs aside.
    pub(super) filter: Option<String>,
}

impl Snapshots {
    /// Asks git.
    ///
    /// # Errors
    /// When git does not answer, or a setting is not what git expects.
    pub(super) fn settings(&self) -> Result<Settings, SnapshotError> {
        let git = match &self.repository {
            Some(repository) => self.user(repository),
            None => Git::user_configuration(&self.root),
        };
        let wanted = r"^(core\.excludesfile|(filter|lfs\.extension)\..*\.(clean|process))$";
        let arguments = ["config", "-z", "--type=path", "--get-regexp", wanted];
        let output = git.output(&arguments, None)?;
        // 1 means that nothing is set.
        match output.status.code() {
            Some(0 | 1) => Ok(read(&output.stdout)),
            _ => Err(crate::git::failure("config", &output)),
        }
    }
}

fn read(answer: &[u8]) -> Settings {
    let mut settings = Settings::default();
    for record in paths::records(answer) {
        let mut parts = record.splitn(2, |byte| *byte == b'\n');
        let name = String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
        let value = parts.next().unwrap_or_default();
        if name == "core.excludesfile" {
            // The last one holds.
            settings.excludes = Some(paths::from_bytes(value));
        } else if !LFS.iter().any(|command| value == command.as_bytes()) && !value.is_empty() {
            settings.filter = Some(name);
        }
    }
    settings
}
