//! The tree as git would commit it: `git add -A` with the user's configuration on a copy of the user's index, objects
//! written to the private store. Never: a write to the user's git directory, or a filter program run once an agent could
//! have changed what it runs.

use std::ffi::OsString;
use std::path::Path;

use super::Snapshots;
use super::take::Taken;
use crate::error::SnapshotError;
use crate::git::Git;
use crate::paths;
use crate::place::Repository;

/// The copy of the user's index, in the store.
const INDEX: &str = "git-index";

impl Snapshots {
    /// The tree, or no tree and the reason: what git would refuse to commit (a missing filter program) does not keep
    /// anybody from working. `filter` is a setting that has git run a program which may no longer be trusted: a filter
    /// runs outside of any sandbox, and whatever it reads from the work directory (a module, a configuration file) may
    /// be the agent's, also when its command names no file there.
    pub(super) fn git_tree(
        &self,
        repository: &Repository,
        filter: Result<Option<String>, SnapshotError>,
        left_out: &[OsString],
    ) -> Taken {
        self.try_git_tree(repository, filter, left_out).unwrap_or_else(|error| Taken {
            tree: String::new(),
            not_covered: vec![format!("the tree as git would commit it: {}", error.message)],
        })
    }

    fn try_git_tree(
        &self,
        repository: &Repository,
        filter: Result<Option<String>, SnapshotError>,
        left_out: &[OsString],
    ) -> Result<Taken, SnapshotError> {
        if let Some(name) = filter? {
            return Err(SnapshotError::new(format!(
                "{name} runs a program outside of the sandbox, and an agent has worked here since"
            )));
        }
        let index = self.store.git_dir.join(INDEX);
        copy_with_time(&repository.index(), &index)?;
        let git = self.user(repository).with("GIT_INDEX_FILE", &index);
        let mut arguments = vec!["-c".into(), self.excludes_setting()];
        arguments.extend(["add", "-A", "--ignore-errors"].map(Into::into));
        arguments.extend_from_slice(left_out);
        let output = git.output(&arguments, None)?;
        if !matches!(output.status.code(), Some(0 | 1)) || crate::git::could_not_store(&output) {
            return Err(crate::git::failure("add", &output));
        }
        let tree = git.line(&["write-tree", "--missing-ok"], None)?;
        Ok(Taken { tree, not_covered: Vec::new() })
    }

    /// git on the user's repository; new objects go to the private store.
    pub(super) fn user(&self, repository: &Repository) -> Git {
        let mut git = Git::user(&repository.git_dir, &self.root);
        git.set("GIT_OBJECT_DIRECTORY", self.store.git_dir.join("objects"));
        git.set("GIT_ALTERNATE_OBJECT_DIRECTORIES", paths::alternate(&repository.objects()));
        git
    }

    /// Ignore rules as they were at the base, so that a deleted `.gitignore` does not bring in every dependency.
    fn excludes_setting(&self) -> OsString {
        let mut setting = OsString::from("core.excludesFile=");
        setting.push(self.store.git_dir.join("info/exclude"));
        setting
    }
}

/// Copies the index and its time: git compares the times of files with that of the index to know which entries it
/// cannot trust, and a younger copy would make it trust too many. No index yet is an empty one.
fn copy_with_time(from: &Path, to: &Path) -> Result<(), SnapshotError> {
    let remove = |path: &Path| match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(SnapshotError::io("remove", path, &error)),
        _ => Ok(()),
    };
    let modified = match from.metadata().and_then(|metadata| metadata.modified()) {
        Ok(modified) => modified,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return remove(to),
        Err(error) => return Err(SnapshotError::io("read", from, &error)),
    };
    remove(to)?;
    std::fs::copy(from, to)
        .and_then(|_| std::fs::File::options().write(true).open(to))
        .and_then(|file| file.set_modified(modified))
        .map_err(|error| SnapshotError::io("copy", from, &error))
}
