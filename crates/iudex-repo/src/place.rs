//! Finds the repository that a directory belongs to, by reading files. Never: a write, or a git process.

use std::path::{Path, PathBuf};

/// A repository of the user, with absolute paths.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    /// The top of the working tree: the directory that holds `.git`.
    pub(crate) root: PathBuf,
    /// What `.git` is or points to.
    pub(crate) git_dir: PathBuf,
    /// Where objects and configuration are: `git_dir`, but for linked worktrees.
    pub(crate) common_dir: PathBuf,
    /// True when object names are SHA-256.
    pub(crate) sha256: bool,
}

impl Repository {
    /// The repository whose working tree holds `directory` (canonical). The home directory or `/` as a repository
    /// (dotfiles) does not count for directories beneath it: a snapshot would take in everything the user owns.
    pub(crate) fn find(directory: &Path, home: Option<&Path>) -> Option<Self> {
        let found = directory.ancestors().find_map(Self::at)?;
        let too_wide = found.root.parent().is_none() || Some(found.root.as_path()) == home;
        if too_wide { None } else { Some(found) }
    }

    /// The repository with its `.git` in exactly this directory.
    pub(crate) fn at(root: &Path) -> Option<Self> {
        let git_dir = git_dir_at(root)?;
        let common_dir = match std::fs::read_to_string(git_dir.join("commondir")) {
            Ok(text) => git_dir.join(text.trim_end_matches(['\n', '\r'])),
            Err(_) => git_dir.clone(),
        };
        let common_dir = common_dir.canonicalize().ok()?;
        let valid = git_dir.join("HEAD").symlink_metadata().is_ok() && common_dir.join("objects").is_dir();
        if !valid {
            return None;
        }
        let sha256 = std::fs::read_to_string(common_dir.join("config")).is_ok_and(|config| names_sha256(&config));
        Some(Self { root: root.to_owned(), git_dir, common_dir, sha256 })
    }

    /// The user's index.
    pub(crate) fn index(&self) -> PathBuf {
        self.git_dir.join("index")
    }

    /// The user's object store.
    pub(crate) fn objects(&self) -> PathBuf {
        self.common_dir.join("objects")
    }
}

/// What `.git` in this directory is or points to.
fn git_dir_at(root: &Path) -> Option<PathBuf> {
    let dot_git = root.join(".git");
    if dot_git.metadata().ok()?.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let text = std::fs::read(&dot_git).ok()?;
    let target = text.strip_prefix(b"gitdir: ")?;
    let end = target.iter().rposition(|byte| !matches!(byte, b'\n' | b'\r'))?;
    root.join(crate::paths::from_bytes(&target[..=end])).canonicalize().ok()
}

fn names_sha256(config: &str) -> bool {
    config.lines().any(|line| {
        let line: String = line.to_ascii_lowercase().split_whitespace().collect();
        line == "objectformat=sha256"
    })
}

/// The user's home directory, canonical.
pub(crate) fn home() -> Option<PathBuf> {
    std::env::home_dir().and_then(|home| home.canonicalize().ok())
}

/// True where nobody should let an agent work: `/`, the home directory itself, or inside of a git directory (a working
/// tree that somebody keeps there is fine).
pub(crate) fn is_forbidden(directory: &Path, home: Option<&Path>, repository: Option<&Repository>) -> bool {
    let in_git_directory = |path: &Path| path.components().any(|component| component.as_os_str() == ".git");
    directory.parent().is_none()
        || Some(directory) == home
        || (in_git_directory(directory) && !repository.is_some_and(|found| in_git_directory(&found.root)))
}
