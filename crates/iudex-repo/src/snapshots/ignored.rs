//! Ignored files, small ones, in a tree of their own: what an agent could spoil without anybody seeing it (`.env`).
//! Never: a long walk through dependencies or build output.

use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::raw_tree::{Usability, usability};
use super::take::{BASE, join, listed};
use super::{Snapshots, guard};
use crate::error::SnapshotError;
use crate::git::Git;
use crate::paths;
use crate::survey::{BUILT_IN_IGNORES, private_mode};

/// The index of ignored files, in the store.
pub(super) const INDEX: &str = "ignored-index";

/// The largest ignored file that is kept, in bytes.
const MOST_BYTES_EACH: u64 = 1 << 20;

/// All ignored files that are kept, in bytes.
const MOST_BYTES: u64 = 64 << 20;

/// Entries of one ignored directory; a larger one is not looked into.
const MOST_ENTRIES: usize = 2_000;

/// Ignored places that are remembered.
const MOST_PLACES: usize = 5_000;

/// The ignored files of a snapshot.
#[derive(Debug, Default)]
pub(super) struct Ignored {
    pub(super) tree: Option<String>,
    /// A digest of the present contents, caches left out; `None` without such files.
    pub(super) state: Option<String>,
    pub(super) private_modes: Vec<(String, u32)>,
    pub(super) places: Vec<String>,
    pub(super) not_covered: Vec<String>,
}

/// What git says is ignored.
#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Not in the index: files, and directories (true) that are ignored as such.
    others: Vec<(PathBuf, bool)>,
    /// In the index although ignored.
    pub(super) indexed: Vec<PathBuf>,
}

impl Listing {
    /// git also names a directory that only happens to hold nothing but ignored files, followed by those files. A new
    /// file in it is not ignored, so the directory itself must not count.
    fn drop_mere_holders(&mut self) {
        self.others.sort();
        let mut next: Option<PathBuf> = None;
        let mut kept = Vec::with_capacity(self.others.len());
        // In the order of paths whatever is beneath a directory comes right after it.
        for (path, directory) in std::mem::take(&mut self.others).into_iter().rev() {
            let holder = directory && next.as_ref().is_some_and(|next| next.starts_with(&path));
            next = Some(path.clone());
            if !holder {
                kept.push((path, directory));
            }
        }
        kept.reverse();
        self.others = kept;
    }

    /// Directories that are ignored as a whole.
    pub(super) fn of_directories(directories: &[PathBuf]) -> Self {
        Self { others: directories.iter().map(|path| (path.clone(), true)).collect(), indexed: Vec::new() }
    }
}

/// The paths whose state is kept with every snapshot of a run.
#[derive(Debug, Clone)]
pub(super) struct Watched {
    run: String,
    paths: Vec<PathBuf>,
}

/// Gathers files within the bounds.
#[derive(Default)]
struct Gathering {
    files: Vec<PathBuf>,
    bytes: u64,
    left_out: Vec<(PathBuf, String)>,
}

impl Snapshots {
    pub(super) fn list_ignored(&self, git: &Git) -> Result<Listing, SnapshotError> {
        let arguments = ["ls-files", "-t", "-z", "-c", "-o", "-i", "--exclude-standard", "--directory"];
        let output = git.run(&arguments, None)?;
        let mut listing = Listing::default();
        for record in paths::records(&output) {
            match record {
                [b'?', b' ', path @ .., b'/'] => listing.others.push((paths::from_bytes(path), true)),
                [b'?', b' ', path @ ..] => listing.others.push((paths::from_bytes(path), false)),
                [_, b' ', path @ ..] => listing.indexed.push(paths::from_bytes(path)),
                _ => {}
            }
        }
        listing.others.retain(|(path, _)| !self.root.join(path).starts_with(&self.state));
        listing.drop_mere_holders();
        Ok(listing)
    }

    /// Keeps the ignored files at the base, remembers every ignored place, and freezes the ignore rules for them.
    pub(super) fn ignored_first(
        &self,
        run: &str,
        listing: &Listing,
        outdated: &[&Path],
    ) -> Result<Ignored, SnapshotError> {
        *guard(&self.watched) = None;
        if listing.others.is_empty() && outdated.is_empty() {
            return Ok(Ignored::default());
        }
        let others = listing.others.iter().map(|(path, directory)| (path.as_path(), *directory));
        let places = others.chain(outdated.iter().map(|path| (*path, false))).collect();
        let (places, gathering) = self.gather(places);
        let patterns: Vec<Vec<u8>> = places
            .iter()
            .take(MOST_PLACES)
            .filter_map(|(path, directory)| paths::ignore_pattern(path, *directory))
            .collect();
        self.write_exclude(&patterns)?;

        let (tree, state) = std::thread::scope(|scope| {
            let state = scope.spawn(|| self.state_of(&gathering.files));
            (self.ignored_tree(&gathering.files, true), join(state.join()))
        });
        let left_out = gathering.left_out.iter().map(|(path, why)| (path.as_path(), why.clone()));
        let ignored = Ignored {
            tree: tree?,
            state,
            private_modes: self.private_modes(&gathering.files),
            places: places
                .iter()
                .take(MOST_PLACES)
                .map(|(path, directory)| format!("{}{}", paths::encode(path), if *directory { "/" } else { "" }))
                .collect(),
            not_covered: listed(left_out.collect::<Vec<_>>().into_iter()),
        };
        *guard(&self.watched) = Some(Watched { run: run.to_owned(), paths: gathering.files });
        Ok(ignored)
    }

    /// Gathers what is in these places within the bounds, single files first: they are the ones that somebody wrote.
    fn gather<'a>(&self, mut places: Vec<(&'a Path, bool)>) -> (Vec<(&'a Path, bool)>, Gathering) {
        let mut gathering = Gathering::default();
        places.sort_by_key(|(path, directory)| (*directory, path.to_owned()));
        for (path, directory) in &places {
            if *directory { gathering.add_directory(&self.root, path) } else { gathering.add_file(&self.root, path) }
        }
        (places, gathering)
    }

    /// The digest of the ignored files of this moment, those that the base does not have included.
    pub(super) fn ignored_state(&self, git: &Git) -> Result<Option<String>, SnapshotError> {
        let listing = self.list_ignored(git)?;
        let places = listing.others.iter().map(|(path, directory)| (path.as_path(), *directory)).collect();
        Ok(self.state_of(&self.gather(places).1.files))
    }

    /// A digest of paths, kinds and contents. What lies in a directory of a built-in name is a cache or a product: a
    /// check that writes it does not make another state.
    fn state_of(&self, files: &[PathBuf]) -> Option<String> {
        let is_cache =
            |path: &Path| path.components().any(|part| BUILT_IN_IGNORES.iter().any(|name| part.as_os_str() == *name));
        let mut files: Vec<&PathBuf> = files.iter().filter(|path| !is_cache(path)).collect();
        if files.is_empty() {
            return None;
        }
        files.sort();
        let mut digest = Sha256::new();
        for path in files {
            let full = self.root.join(path);
            let (kind, contents) = match full.symlink_metadata() {
                Ok(metadata) if metadata.is_symlink() => {
                    (b'l', std::fs::read_link(&full).unwrap_or_default().into_os_string().into_vec())
                }
                Ok(metadata) => {
                    let kind = if metadata.permissions().mode() & 0o100 == 0 { b'f' } else { b'x' };
                    (kind, std::fs::read(&full).unwrap_or_default())
                }
                Err(_) => continue,
            };
            digest.update(path.as_os_str().as_bytes());
            digest.update([0, kind]);
            digest.update(Sha256::digest(&contents));
        }
        Some(paths::hex(&digest.finalize()))
    }

    /// Keeps the present state of the ignored files that were kept at the base of the run.
    pub(super) fn ignored_again(&self, run: &str) -> Result<Ignored, SnapshotError> {
        let watched = guard(&self.watched).clone().filter(|watched| watched.run == run);
        let (files, fresh) = match watched {
            Some(watched) => (watched.paths, false),
            None => (self.ignored_at_base(run)?, true),
        };
        if files.is_empty() {
            return Ok(Ignored::default());
        }
        let tree = self.ignored_tree(&files, fresh)?;
        let ignored = Ignored { tree, private_modes: self.private_modes(&files), ..Ignored::default() };
        *guard(&self.watched) = Some(Watched { run: run.to_owned(), paths: files });
        Ok(ignored)
    }

    fn ignored_at_base(&self, run: &str) -> Result<Vec<PathBuf>, SnapshotError> {
        let Some(base) = self.store.kept(run, BASE) else { return Ok(Vec::new()) };
        let Some(tree) = self.meta_of(&iudex_core::CommitId::new(base))?.ignored else { return Ok(Vec::new()) };
        let output = self.private().run(&["ls-tree", "-r", "-z", "--name-only", "--full-tree", &tree], None)?;
        Ok(paths::records(&output).map(paths::from_bytes).collect())
    }

    /// The tree of the present contents of these files.
    fn ignored_tree(&self, files: &[PathBuf], fresh: bool) -> Result<Option<String>, SnapshotError> {
        if files.is_empty() {
            return Ok(None);
        }
        let index = self.store.git_dir.join(INDEX);
        let mut usable = Vec::new();
        let mut rebuild = fresh;
        for path in files {
            match usability(&self.root, path) {
                Usability::Readable | Usability::Missing => usable.push(path.as_path()),
                // The entry must go, and update-index would stumble over it.
                Usability::Unreadable | Usability::NotAFile => rebuild = true,
            }
        }
        if rebuild {
            let _ = std::fs::remove_file(&index);
        }
        let git = self.store.git(&self.root).with("GIT_INDEX_FILE", &index);
        let arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        git.run(&arguments, Some(&paths::joined(usable)))?;
        Ok(Some(git.line(&["write-tree"], None)?))
    }

    fn private_modes(&self, files: &[PathBuf]) -> Vec<(String, u32)> {
        let mode = |path: &PathBuf| {
            let metadata = self.root.join(path).symlink_metadata().ok()?;
            private_mode(&metadata).map(|mode| (paths::encode(path), mode))
        };
        files.iter().filter_map(mode).collect()
    }
}

impl Gathering {
    fn add_file(&mut self, root: &Path, path: &Path) {
        let Ok(metadata) = root.join(path).symlink_metadata() else { return };
        let bytes = metadata.len();
        if metadata.is_file() && bytes > MOST_BYTES_EACH {
            self.leave_out(path, format!("ignored, {}", size(bytes)));
            return;
        }
        match usability(root, path) {
            Usability::Readable if self.bytes + bytes > MOST_BYTES => {
                self.leave_out(path, "ignored, beyond 64 MiB in all".to_owned());
            }
            Usability::Readable => {
                self.bytes += bytes;
                self.files.push(path.to_owned());
            }
            Usability::Unreadable => self.leave_out(path, "ignored, cannot be read".to_owned()),
            Usability::Missing | Usability::NotAFile => {}
        }
    }

    /// Takes a directory whole or not at all, but for single files that are too large.
    fn add_directory(&mut self, root: &Path, directory: &Path) {
        let name = directory.file_name().unwrap_or_default();
        let full = root.join(directory);
        let known = BUILT_IN_IGNORES.iter().any(|known| name == *known) || full.join("CACHEDIR.TAG").exists();
        if known {
            self.leave_out_directory(directory, "ignored, dependencies or build output");
            return;
        }
        let mut files = Vec::new();
        let mut bytes = 0;
        let mut entries = 0;
        let mut pending = vec![directory.to_owned()];
        while let Some(next) = pending.pop() {
            let Ok(read) = std::fs::read_dir(root.join(&next)) else {
                self.leave_out_directory(&next, "ignored, cannot be read");
                continue;
            };
            for entry in read.flatten() {
                entries += 1;
                if entries > MOST_ENTRIES {
                    self.leave_out_directory(directory, "ignored, more than 2000 entries");
                    return;
                }
                let Ok(metadata) = entry.metadata() else { continue };
                let path = next.join(entry.file_name());
                if !metadata.is_dir() {
                    bytes += if metadata.len() > MOST_BYTES_EACH { 0 } else { metadata.len() };
                    files.push(path);
                } else if entry.file_name() != ".git" {
                    pending.push(path);
                }
            }
        }
        if self.bytes + bytes > MOST_BYTES {
            self.leave_out_directory(directory, "ignored, beyond 64 MiB in all");
            return;
        }
        for path in files {
            self.add_file(root, &path);
        }
    }

    fn leave_out(&mut self, path: &Path, why: String) {
        self.left_out.push((path.to_owned(), why));
    }

    fn leave_out_directory(&mut self, path: &Path, why: &str) {
        // With its slash, as people write directories.
        self.leave_out(&path.join(""), why.to_owned());
    }
}

pub(super) fn size(bytes: u64) -> String {
    if bytes >= 1 << 30 {
        format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
    } else {
        format!("{} MiB", (bytes >> 20).max(1))
    }
}
