//! The private git directory of one work directory: objects, index, refs. Written without `git init`, to save time.
//! Never: anything in the user's repository.

use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::error::SnapshotError;
use crate::git::Git;
use crate::paths;

/// Raw bytes whatever `.gitattributes` files say: this file ranks above them, and an unset attribute is also not
/// expanded when a file defines a macro of that name.
const ATTRIBUTES: &str = "* -text -eol -crlf -filter -ident -working-tree-encoding\n";

const A_DAY: Duration = Duration::from_hours(24);

const CONFIGURATION: &str = "\
[core]
	bare = false
	logAllRefUpdates = false
	fileMode = true
	symlinks = true
	ignoreCase = false
	autocrlf = false
	safecrlf = false
	attributesFile = /dev/null
	excludesFile = /dev/null
	hooksPath = /dev/null
	fsmonitor = false
	untrackedCache = false
	splitIndex = false
	protectNTFS = false
	protectHFS = false
	precomposeUnicode = false
	quotePath = false
	looseCompression = 1
[gc]
	auto = 0
[maintenance]
	auto = false
[advice]
	addEmbeddedRepo = false
";

/// The private git directory.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    /// Where it is.
    pub(crate) git_dir: PathBuf,
}

/// What a snapshot keeps beside its raw tree, in the message of its commit. Paths are encoded ([`paths::encode`]) and
/// relative to the top of the raw tree.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Meta {
    /// The work directory within the raw tree; empty when it is the top.
    pub(crate) prefix: String,
    /// The tree as git would commit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) git: Option<String>,
    /// The tree of ignored files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) ignored: Option<String>,
    /// Permission bits of files that only their owner may use.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) private_modes: Vec<(String, u32)>,
    /// Files that were too large to be stored.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) large: Vec<String>,
    /// Every ignored place that existed, covered or not: directories end in `/`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) ignored_places: Vec<String>,
    /// Directories that held a `.git`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) nested: Vec<String>,
    /// Directories without entries.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) empty: Vec<String>,
}

impl Store {
    /// The store of `directory` (canonical) under `state`. Nothing is written.
    pub(crate) fn new(state: &Path, directory: &Path, sha256: bool) -> Self {
        let suffix = if sha256 { "-sha256" } else { "" };
        Self { git_dir: state.join("snapshots").join(format!("{}{suffix}", paths::digest(directory))) }
    }

    /// True when a snapshot was ever taken of this directory, or of one beneath or above it.
    pub(crate) fn any_within(&self, root: &Path) -> bool {
        let stores = self.git_dir.parent().and_then(|stores| std::fs::read_dir(stores).ok());
        stores.into_iter().flatten().flatten().map(|entry| entry.path()).any(|store| {
            store.join("index").exists()
                && std::fs::read_to_string(store.join("directory")).is_ok_and(|directory| {
                    let directory = paths::decode(&directory);
                    directory.starts_with(root) || root.starts_with(directory)
                })
        })
    }

    /// Creates the git directory, or completes one whose creation was cut short.
    pub(crate) fn prepare(&self, directory: &Path, sha256: bool) -> Result<(), SnapshotError> {
        let version = if sha256 { "1\n[extensions]\n\tobjectFormat = sha256\n" } else { "0\n" };
        let configuration = format!("{CONFIGURATION}[core]\n\trepositoryFormatVersion = {version}");
        // HEAD is written last: a directory with it is complete.
        if self.git_dir.join("HEAD").exists() && self.holds("config", configuration.as_bytes()) {
            return Ok(());
        }
        for part in ["objects/info", "objects/pack", "refs/runs", "info"] {
            make_private_directory(&self.git_dir.join(part))?;
        }
        self.write("info/attributes", ATTRIBUTES.as_bytes())?;
        self.write("directory", paths::encode(directory).as_bytes())?;
        self.write("config", configuration.as_bytes())?;
        self.write("HEAD", b"ref: refs/heads/none\n")
    }

    /// Removes the lock files that a killed run left behind. Only while holding the run lock of the directory.
    pub(crate) fn remove_stale_locks(&self) {
        for name in ["index.lock", "git-index.lock", "ignored-index.lock"] {
            // Missing is the rule.
            let _ = std::fs::remove_file(self.git_dir.join(name));
        }
    }

    /// True when a large snapshot was written as a pack; packs are not cleaned piece by piece.
    pub(crate) fn has_packs(&self) -> bool {
        std::fs::read_dir(self.git_dir.join("objects/pack")).is_ok_and(|mut entries| entries.next().is_some())
    }

    /// True at most once a day: writing the packs anew takes a while.
    pub(crate) fn is_time_to_repack(&self) -> bool {
        let mark = self.git_dir.join("repacked");
        let last = mark.metadata().and_then(|metadata| metadata.modified()).ok();
        let recent = last.and_then(|last| last.elapsed().ok()).is_some_and(|age| age < A_DAY);
        !recent && std::fs::write(&mark, "").is_ok()
    }

    /// git on this store.
    pub(crate) fn git(&self, root: &Path) -> Git {
        Git::private(&self.git_dir, root)
    }

    fn holds(&self, name: &str, contents: &[u8]) -> bool {
        std::fs::read(self.git_dir.join(name)).is_ok_and(|present| present == contents)
    }

    /// Writes a file of the store, whole or not at all.
    pub(crate) fn write(&self, name: &str, contents: &[u8]) -> Result<(), SnapshotError> {
        if self.holds(name, contents) {
            return Ok(());
        }
        let path = self.git_dir.join(name);
        let mut temporary = path.clone().into_os_string();
        temporary.push(".new");
        let temporary = PathBuf::from(temporary);
        let written = std::fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| file.write_all(contents))
            .and_then(|()| std::fs::rename(&temporary, &path));
        written.map_err(|error| SnapshotError::io("write", &path, &error))
    }

    fn run_directory(&self, run: &str) -> Result<PathBuf, SnapshotError> {
        check_name("run", run)?;
        Ok(self.git_dir.join("refs/runs").join(run))
    }

    /// Names an object, so that cleaning keeps it. Plain ref files, written here to save a process.
    pub(crate) fn keep(&self, run: &str, label: &str, object: &str) -> Result<(), SnapshotError> {
        check_name("label", label)?;
        make_private_directory(&self.run_directory(run)?)?;
        self.write(&format!("refs/runs/{run}/{label}"), format!("{object}\n").as_bytes())
    }

    /// The object that is kept under a name.
    pub(crate) fn kept(&self, run: &str, label: &str) -> Option<String> {
        let directory = self.run_directory(run).ok()?;
        let text = std::fs::read_to_string(directory.join(label)).ok()?;
        Some(text.trim_end().to_owned())
    }

    /// Drops all names of a run. True when there were any.
    pub(crate) fn forget(&self, run: &str) -> Result<bool, SnapshotError> {
        let directory = self.run_directory(run)?;
        match std::fs::remove_dir_all(&directory) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(SnapshotError::io("remove", &directory, &error)),
        }
    }
}

impl Meta {
    const TITLE: &'static str = "iudex snapshot\n\n";

    pub(crate) fn to_message(&self) -> Result<String, SnapshotError> {
        let json = serde_json::to_string(self)
            .map_err(|error| SnapshotError::new(format!("cannot describe the snapshot: {error}")))?;
        Ok(format!("{}{json}\n", Self::TITLE))
    }

    /// Reads the description back from the text of a commit object.
    pub(crate) fn from_commit(commit: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(commit).ok()?;
        let (_, json) = text.split_once(Self::TITLE)?;
        serde_json::from_str(json).ok()
    }
}

/// Creates a directory that only its owner may enter, with its parents.
pub(crate) fn make_private_directory(path: &Path) -> Result<(), SnapshotError> {
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|error| SnapshotError::io("create", path, &error))
}

fn check_name(what: &str, name: &str) -> Result<(), SnapshotError> {
    let plain = |character: char| character.is_ascii_alphanumeric() || matches!(character, '.' | '-' | '_');
    let wrong = name.is_empty()
        || name.starts_with(['.', '-'])
        || name.contains("..")
        || Path::new(name).extension().is_some_and(|extension| extension.eq_ignore_ascii_case("lock"))
        || name.ends_with('.')
        || !name.chars().all(plain);
    if wrong {
        return Err(
            SnapshotError::new(format!("`{name}` cannot name a {what}")).hint("use letters, digits, `-`, `_` and `.`")
        );
    }
    Ok(())
}
