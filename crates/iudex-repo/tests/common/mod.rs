//! A directory with state beside it, git as a user would run it, and a way to see every byte of a directory.
#![allow(dead_code, unreachable_pub, missing_docs, reason = "each test file uses its own part")]

use std::collections::BTreeMap;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::Command;

use iudex_core::Snapshot;
use iudex_repo::{SizeLimits, Snapshots};

pub struct Place {
    _temporary: tempfile::TempDir,
    pub root: PathBuf,
    pub state: PathBuf,
}

impl Place {
    pub fn plain() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let base = temporary.path().canonicalize().unwrap();
        let (root, state) = (base.join("a work dir"), base.join("state"));
        std::fs::create_dir(&root).unwrap();
        Self { _temporary: temporary, root, state }
    }

    /// A repository with two commits' worth of files.
    pub fn repository() -> Self {
        let place = Self::plain();
        place.git(&["init", "-q", "-b", "main"]);
        place.write("a.txt", "one\n");
        place.write("src/b.txt", "two\n");
        place.git(&["add", "-A"]);
        place.git(&["commit", "-q", "-m", "start"]);
        place
    }

    pub fn write(&self, path: &str, contents: impl AsRef<[u8]>) {
        let path = self.root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, contents).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        String::from_utf8(std::fs::read(self.root.join(path)).unwrap()).unwrap()
    }

    pub fn exists(&self, path: &str) -> bool {
        self.root.join(path).symlink_metadata().is_ok()
    }

    pub fn remove(&self, path: &str) {
        let path = self.root.join(path);
        if path.symlink_metadata().unwrap().is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        git_in(&self.root, arguments)
    }

    pub fn open(&self) -> Snapshots {
        self.open_at(&self.root)
    }

    pub fn open_at(&self, directory: &Path) -> Snapshots {
        Snapshots::open(&self.state, directory, SizeLimits::default()).unwrap()
    }
}

/// The paths that differ.
pub fn changed(snapshots: &Snapshots, from: &Snapshot, to: &Snapshot) -> Vec<String> {
    snapshots.diff_stat(from, to).unwrap().files.into_iter().map(|file| file.path).collect()
}

pub fn git_in(directory: &Path, arguments: &[&str]) -> String {
    let output = Command::new("git")
        .args(["-c", "user.name=Test", "-c", "user.email=test@localhost", "-c", "protocol.file.allow=always"])
        .arg("-C")
        .arg(directory)
        .args(arguments)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
}

/// Everything that can be told apart about a directory: kinds, permissions, bytes, and times of index files.
pub fn picture(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut picture = BTreeMap::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(next) = pending.pop() {
        for entry in std::fs::read_dir(&next).unwrap() {
            let path = entry.unwrap().path();
            let metadata = path.symlink_metadata().unwrap();
            let mode = metadata.permissions().mode();
            let contents = if metadata.is_symlink() {
                std::fs::read_link(&path).unwrap().display().to_string()
            } else if metadata.is_file() {
                let time = path
                    .file_name()
                    .filter(|name| *name == "index")
                    .map(|_| format!("{}.{}", metadata.mtime(), metadata.mtime_nsec()));
                format!("{:?} {time:?}", std::fs::read(&path).unwrap())
            } else {
                String::new()
            };
            if metadata.is_dir() {
                pending.push(path.clone());
            }
            picture.insert(path.strip_prefix(directory).unwrap().to_owned(), format!("{mode:o} {contents}"));
        }
    }
    picture
}

/// The same without git directories.
pub fn files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = picture(directory);
    files.retain(|path, _| !path.components().any(|component| component.as_os_str() == ".git"));
    files
}

/// The git directories alone.
pub fn git_files(directory: &Path) -> BTreeMap<PathBuf, String> {
    let mut files = picture(directory);
    files.retain(|path, _| path.components().any(|component| component.as_os_str() == ".git"));
    files
}
