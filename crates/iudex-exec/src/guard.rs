//! Puts back what a sandbox could not keep a command from changing: `.git` under Landlock, and a protected name that
//! is a link (a mount would protect what it leads to and not the name).
//!
//! Git's objects are many and named by their content: they are held open, so that removed ones can be copied back, and
//! new ones stay, since nothing in the rest leads to them.
//! Never: follow a link that the command may have made.

use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Files above this are watched and cannot be put back.
const LARGEST: u64 = 8 << 20;

/// What stood there before the command. Dropping it puts things back, too.
#[derive(Debug, Default)]
pub(crate) struct Guard {
    places: Vec<Place>,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Finds a directory that was moved away.
    handle: Option<File>,
    entries: BTreeMap<PathBuf, Entry>,
}

#[derive(Debug)]
enum Entry {
    Directory {
        mode: u32,
        /// Whether what is new in it stays.
        open: bool,
    },
    Link(PathBuf),
    File {
        stamp: Stamp,
        mode: u32,
        content: Option<Vec<u8>>,
    },
    Object {
        mode: u32,
        file: File,
    },
}

/// How many of git's objects are held open at most.
const MOST_OBJECTS: u64 = 50_000;

/// When these are the same, so is the content: nobody can set the time of change.
#[derive(Debug, PartialEq, Eq)]
struct Stamp {
    inode: u64,
    length: u64,
    changed: (i64, i64),
}

impl Guard {
    /// Looks at these files and directories.
    pub(crate) fn over(paths: &[PathBuf]) -> Self {
        if paths.is_empty() {
            return Self::default();
        }
        // Every object held open is a descriptor, and the usual limit is 1,024. The command gets that one.
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(MOST_OBJECTS, |most| most.min(MOST_OBJECTS));
        if limit.current.is_some_and(|current| current < wanted) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
        }
        let places = paths.iter().filter_map(|path| Place::look(path)).collect();
        let _ = setrlimit(Resource::Nofile, limit);
        Self { places }
    }

    /// Puts back what changed and returns its paths.
    pub(crate) fn restore(mut self) -> Vec<PathBuf> {
        self.put_back()
    }

    fn put_back(&mut self) -> Vec<PathBuf> {
        self.places.drain(..).flat_map(Place::put_back).collect()
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.put_back();
    }
}

impl Place {
    fn look(path: &Path) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        let mut entries = BTreeMap::new();
        remember(path, &metadata, false, &mut entries);
        let handle = metadata.is_dir().then(|| File::open(path).ok()).flatten();
        Some(Self { path: path.to_owned(), handle, entries })
    }

    fn put_back(self) -> Vec<PathBuf> {
        let mut restored = Vec::new();
        if self.bring_home() {
            restored.push(self.path.clone());
        }
        // A directory stands before what lies in it.
        for (path, entry) in &self.entries {
            if entry.put_back(path) {
                restored.push(path.clone());
            }
        }
        for (path, entry) in &self.entries {
            if matches!(entry, Entry::Directory { open: false, .. }) {
                remove_strangers(path, &self.entries, &mut restored);
            }
        }
        restored.sort();
        restored.dedup();
        restored
    }

    /// Moves a directory back that was moved away: only so git's objects come back.
    fn bring_home(&self) -> bool {
        let Some(handle) = &self.handle else { return false };
        let Ok(metadata) = handle.metadata() else { return false };
        if self.path.symlink_metadata().is_ok_and(|now| now.is_dir() && now.ino() == metadata.ino()) {
            return false;
        }
        let Ok(away) = fs::read_link(format!("/proc/self/fd/{}", handle.as_raw_fd())) else { return false };
        let is_it = away.symlink_metadata().is_ok_and(|now| now.is_dir() && now.ino() == metadata.ino());
        if !is_it {
            return false;
        }
        let _ = remove(&self.path);
        fs::rename(&away, &self.path).is_ok()
    }
}

fn remember(path: &Path, metadata: &Metadata, in_objects: bool, entries: &mut BTreeMap<PathBuf, Entry>) {
    let mode = metadata.permissions().mode() & 0o7777;
    let kind = metadata.file_type();
    if kind.is_symlink() {
        if let Ok(target) = fs::read_link(path) {
            entries.insert(path.to_owned(), Entry::Link(target));
        }
    } else if kind.is_file() && in_objects {
        if let Ok(file) = File::open(path) {
            entries.insert(path.to_owned(), Entry::Object { mode, file });
        }
    } else if kind.is_file() {
        let content = (metadata.len() <= LARGEST).then(|| fs::read(path).ok()).flatten();
        entries.insert(path.to_owned(), Entry::File { stamp: Stamp::of(metadata), mode, content });
    } else if kind.is_dir() {
        let in_objects = in_objects || is_object_store(path);
        entries.insert(path.to_owned(), Entry::Directory { mode, open: in_objects });
        for entry in fs::read_dir(path).into_iter().flatten().flatten() {
            let below = entry.path();
            if let Ok(metadata) = below.symlink_metadata() {
                remember(&below, &metadata, in_objects, entries);
            }
        }
    }
}

/// `objects` beside a `HEAD`, and not a branch of that name.
fn is_object_store(path: &Path) -> bool {
    path.ends_with("objects") && path.with_file_name("HEAD").is_file()
}

fn remove_strangers(directory: &Path, entries: &BTreeMap<PathBuf, Entry>, restored: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        if !entries.contains_key(&path) && remove(&path).is_ok() {
            restored.push(path);
        }
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

impl Stamp {
    fn of(metadata: &Metadata) -> Self {
        Self { inode: metadata.ino(), length: metadata.len(), changed: (metadata.ctime(), metadata.ctime_nsec()) }
    }
}

impl Entry {
    /// Whether it had to be put back.
    fn put_back(&self, path: &Path) -> bool {
        let now = path.symlink_metadata().ok();
        let now_mode = now.as_ref().map(|now| now.permissions().mode() & 0o7777);
        match self {
            Self::Directory { mode, .. } => {
                if now.is_some_and(|now| now.is_dir()) {
                    return now_mode != Some(*mode) && set_mode(path, *mode);
                }
                let _ = remove(path);
                DirBuilder::new().mode(*mode).create(path).is_ok()
            }
            Self::Link(target) => {
                if fs::read_link(path).is_ok_and(|now| now == *target) {
                    return false;
                }
                let _ = remove(path);
                symlink(target, path).is_ok()
            }
            Self::File { stamp, mode, content } => {
                if now.as_ref().is_some_and(|now| now.is_file() && Stamp::of(now) == *stamp) {
                    return false;
                }
                let Some(content) = content else { return true };
                if now.is_some_and(|now| now.is_file()) && fs::read(path).is_ok_and(|now| now == *content) {
                    return now_mode != Some(*mode) && set_mode(path, *mode);
                }
                let _ = remove(path);
                let written = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(*mode)
                    .open(path)
                    .and_then(|mut file| file.write_all(content));
                let _ = set_mode(path, *mode);
                written.is_ok()
            }
            Self::Object { mode, file } => {
                let same = |now: &Metadata| file.metadata().is_ok_and(|then| then.ino() == now.ino());
                if now.as_ref().is_some_and(|now| now.is_file() && same(now)) {
                    return now_mode != Some(*mode) && set_mode(path, *mode);
                }
                let _ = remove(path);
                let mut kept = file;
                let copied = OpenOptions::new()
                    .write(true)
                    .create_new(true)
                    .mode(*mode)
                    .open(path)
                    .and_then(|mut file| io::copy(&mut kept, &mut file));
                copied.is_ok()
            }
        }
    }
}

/// Of a real file or directory; the callers have looked.
fn set_mode(path: &Path, mode: u32) -> bool {
    fs::set_permissions(path, Permissions::from_mode(mode)).is_ok()
}

#[cfg(test)]
mod tests;
