//! The tree as git would commit it: `git add -A` with the user's configuration on a copy of the user's index, objects
//! written to the private store. Never: a write to the user's git directory, or a program of the work directory run as
//! a filter once the agent could have changed it.

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
    /// anybody from working.
    pub(super) fn git_tree(&self, repository: &Repository, is_base: bool) -> Taken {
        self.try_git_tree(repository, is_base).unwrap_or_else(|error| Taken {
            tree: String::new(),
            not_covered: vec![format!("the tree as git would commit it: {}", error.message)],
        })
    }

    fn try_git_tree(&self, repository: &Repository, is_base: bool) -> Result<Taken, SnapshotError> {
        let index = self.store.git_dir.join(INDEX);
        copy_with_time(&repository.index(), &index)?;
        let git = self.user(repository).with("GIT_INDEX_FILE", &index);
        if !is_base {
            self.refuse_own_filters(&git)?;
        }
        let mut arguments = vec!["-c".into(), self.excludes_setting()];
        arguments.extend(["add", "-A", "--ignore-errors"].map(Into::into));
        arguments.extend(self.leave_out_state());
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
    fn excludes_setting(&self) -> std::ffi::OsString {
        let mut setting = std::ffi::OsString::from("core.excludesFile=");
        setting.push(self.store.git_dir.join("info/exclude"));
        setting
    }

    /// A clean filter runs outside of any sandbox. One whose command names a file of the work directory could have
    /// been rewritten by the agent, so after the base it is not run.
    fn refuse_own_filters(&self, git: &Git) -> Result<(), SnapshotError> {
        if !self.configuration_may_set("filter") {
            return Ok(());
        }
        let output = git.output(&["config", "-z", "--get-regexp", r"^filter\..*\.(clean|process)$"], None)?;
        for record in paths::records(&output.stdout) {
            let text = String::from_utf8_lossy(record);
            let Some((name, command)) = text.split_once('\n') else { continue };
            let words = command.split(|character: char| character.is_whitespace() || "'\"|;&()<>=".contains(character));
            if let Some(word) = words.into_iter().find(|word| self.names_own_file(word)) {
                return Err(SnapshotError::new(format!("{name} runs `{word}`, a file of the work directory")));
            }
        }
        Ok(())
    }

    fn names_own_file(&self, word: &str) -> bool {
        if word.is_empty() || word == "." {
            return false;
        }
        let path = self.root.join(word);
        let beneath = path.canonicalize().is_ok_and(|path| path.starts_with(&self.root) && path != self.root);
        beneath && Path::new(word) != Path::new("/")
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
