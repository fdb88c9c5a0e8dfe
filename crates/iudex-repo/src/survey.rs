//! One bounded walk over a directory: its size, nested repositories, empty directories, and what no snapshot can hold.
//! Never: following a symbolic link, reading a file, or walking into dependencies and build output.

use std::ffi::OsStr;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};

/// Names that are ignored in a plain directory (one without a repository) whatever stands in it, and not walked into.
pub(crate) const BUILT_IN_IGNORES: [&str; 16] = [
    "node_modules",
    "target",
    ".venv",
    "venv",
    "__pycache__",
    ".tox",
    ".nox",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".gradle",
    ".terraform",
    ".next",
    ".nuxt",
    ".cache",
    ".direnv",
];

/// Names that are not walked into even in a repository: they hold dependencies, never the user's own work.
const NEVER_WALKED: [&str; 4] = ["node_modules", ".venv", "venv", "__pycache__"];

/// Entries after which the walk stops.
const MOST_ENTRIES: u64 = 200_000;

/// Empty directories that are remembered.
const MOST_EMPTY: usize = 2_000;

/// The largest file that is stored unless the user's repository tracks it, in bytes.
pub(crate) const MOST_BYTES_UNTRACKED: u64 = 1 << 30;

/// Files with private permissions that are remembered.
const MOST_PRIVATE: usize = 10_000;

/// What a walk found. Paths are relative to the root.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Survey {
    /// Files, symbolic links included.
    pub(crate) files: u64,
    /// Bytes of the files; counted only with limits.
    pub(crate) bytes: u64,
    /// Directories beneath the root that hold a `.git`.
    pub(crate) nested: Vec<PathBuf>,
    /// FIFOs, sockets and devices.
    pub(crate) special: Vec<PathBuf>,
    /// Directories without any entry.
    pub(crate) empty: Vec<PathBuf>,
    /// Directories that are ignored by the built-in list, in a plain directory.
    pub(crate) built_in: Vec<PathBuf>,
    /// Files above [`MOST_BYTES_UNTRACKED`], with their sizes.
    pub(crate) large: Vec<(PathBuf, u64)>,
    /// Files that only their owner may use, with their permission bits.
    pub(crate) private: Vec<(PathBuf, u32)>,
    /// True when there is a `.gitignore`, or may be one in a place that was not walked into.
    pub(crate) ignore_rules: bool,
    /// True when the walk stopped before the end.
    pub(crate) cut: bool,
}

/// What to walk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Walk<'a> {
    /// Where to start.
    pub(crate) root: &'a Path,
    /// A directory to leave out (iudex's own state), absolute.
    pub(crate) leave_out: &'a Path,
    /// True for a directory without a repository.
    pub(crate) plain: bool,
    /// Stop when there are more files or bytes.
    pub(crate) limits: Option<(u64, u64)>,
}

impl Walk<'_> {
    /// Walks. Directories that cannot be read are passed over; git names them.
    pub(crate) fn survey(&self) -> Survey {
        let mut survey = Survey::default();
        let mut entries_left = MOST_ENTRIES;
        let mut pending = vec![PathBuf::new()];
        while let Some(relative) = pending.pop() {
            let Ok(read) = std::fs::read_dir(self.root.join(&relative)) else { continue };
            let entries: Vec<_> = read.flatten().collect();
            let at_root = relative.as_os_str().is_empty();
            if entries.is_empty() && !at_root && survey.empty.len() < MOST_EMPTY {
                survey.empty.push(relative);
                continue;
            }
            if !at_root && entries.iter().any(|entry| entry.file_name() == "CACHEDIR.TAG") {
                survey.ignore_rules = true;
                continue;
            }
            for entry in entries {
                if entries_left == 0 {
                    survey.cut = true;
                    survey.ignore_rules = true;
                    return survey;
                }
                entries_left -= 1;
                let name = entry.file_name();
                if name == ".git" {
                    if !at_root {
                        survey.nested.push(relative.clone());
                    }
                    continue;
                }
                let Ok(kind) = entry.file_type() else { continue };
                let path = relative.join(&name);
                if kind.is_dir() {
                    if self.skips(&name) {
                        survey.ignore_rules |= !self.plain;
                        survey.built_in.push(path);
                    } else if self.root.join(&path) != self.leave_out {
                        pending.push(path);
                    }
                } else if kind.is_fifo() || kind.is_socket() || kind.is_char_device() || kind.is_block_device() {
                    survey.special.push(path);
                } else {
                    survey.files += 1;
                    survey.ignore_rules |= name == ".gitignore";
                    let metadata = entry.metadata().ok();
                    let bytes = metadata.as_ref().map_or(0, std::fs::Metadata::len);
                    if bytes > MOST_BYTES_UNTRACKED {
                        survey.large.push((path.clone(), bytes));
                    }
                    let private = metadata.as_ref().and_then(private_mode);
                    if let Some(mode) = private.filter(|_| survey.private.len() < MOST_PRIVATE) {
                        survey.private.push((path, mode));
                    }
                    if let Some((most_files, most_bytes)) = self.limits {
                        survey.bytes += bytes;
                        if survey.files > most_files || survey.bytes > most_bytes {
                            survey.cut = true;
                            return survey;
                        }
                    }
                }
            }
        }
        survey.nested.sort();
        survey.special.sort();
        survey.empty.sort();
        survey.large.sort();
        survey
    }

    fn skips(&self, name: &OsStr) -> bool {
        let names: &[&str] = if self.plain { &BUILT_IN_IGNORES } else { &NEVER_WALKED };
        names.iter().any(|skipped| name == *skipped)
    }

    /// Counts files and bytes again as git will see them: without what `.gitignore` files leave out. Slower than the
    /// walk, so only for a directory that looks too large. Returns the counts when they are above the limits.
    pub(crate) fn is_too_large(&self) -> Option<(u64, u64)> {
        let (most_files, most_bytes) = self.limits?;
        let leave_out = self.leave_out.to_owned();
        let walk = ignore::WalkBuilder::new(self.root)
            .standard_filters(false)
            .git_ignore(true)
            .require_git(false)
            .filter_entry(move |entry| {
                let skipped =
                    entry.file_name() == ".git" || BUILT_IN_IGNORES.iter().any(|name| entry.file_name() == *name);
                entry.depth() == 0 || (!skipped && entry.path() != leave_out)
            })
            .build();
        let (mut files, mut bytes) = (0, 0);
        for entry in walk.flatten().filter(|entry| !entry.file_type().is_some_and(|kind| kind.is_dir())) {
            files += 1;
            bytes += entry.metadata().map_or(0, |metadata| metadata.len());
            if files > most_files || bytes > most_bytes {
                return Some((files, bytes));
            }
        }
        None
    }
}

/// The permission bits of a file that only its owner may use.
pub(crate) fn private_mode(metadata: &std::fs::Metadata) -> Option<u32> {
    let mode = metadata.mode() & 0o7777;
    (metadata.is_file() && mode.trailing_zeros() >= 6).then_some(mode)
}
