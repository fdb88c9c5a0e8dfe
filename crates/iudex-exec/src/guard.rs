//! Puts back what a sandbox could not keep a command from changing: `.git` under Landlock, and a protected name that
//! is a link (a mount would protect what it leads to and not the name).
//!
//! Git's objects are many and named by their content: they are held open, so that removed ones can be copied back, and
//! new ones stay, since nothing in the rest leads to them. What gives way is kept aside: it may be a commit that the
//! user made meanwhile.
//! Never: follow a link that the command may have made, or call a thing put back that is not as it was.

mod displaced;
mod entry;

use std::collections::BTreeMap;
use std::fs::{self, File, Metadata};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use serde::{Deserialize, Serialize};

use displaced::Displaced;
use entry::{Entry, Outcome, Stamp};

/// Files above this are not kept in memory but held open.
const LARGEST: u64 = 8 << 20;

/// How many files are held open at most.
const MOST_HELD: u64 = 50_000;

/// Descriptors that the process needs besides.
const OTHERS: u64 = 64;

/// What was found in the end.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Report {
    /// Changed and put back.
    pub(crate) restored: Vec<PathBuf>,
    /// Changed, and not to be put back.
    pub(crate) lost: Vec<PathBuf>,
    /// What was not watched and where displaced things are, in sentences.
    pub(crate) notes: Vec<String>,
}

/// What stood there before the command. Dropping it puts things back, too.
#[derive(Debug)]
pub(crate) struct Guard {
    places: Vec<Place>,
    displaced: Displaced,
    directory: PathBuf,
    not_held: u32,
}

#[derive(Debug)]
struct Place {
    path: PathBuf,
    /// Finds a directory that was moved away.
    handle: Option<File>,
    entries: BTreeMap<PathBuf, Entry>,
}

impl Guard {
    /// Looks at these files and directories; what will give way to them is moved to `displaced`. For a process of its
    /// own, whose limit of descriptors is raised for it.
    pub(crate) fn over(paths: &[PathBuf], displaced: &Path) -> Self {
        if paths.is_empty() {
            return Self::looking(paths, displaced, 0);
        }
        // Every object held open is a descriptor, and the usual limit is 1,024.
        let limit = getrlimit(Resource::Nofile);
        let wanted = limit.maximum.map_or(MOST_HELD + OTHERS, |most| most.min(MOST_HELD + OTHERS));
        if limit.current.is_some_and(|current| current < wanted) {
            let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit });
        }
        let allowed = getrlimit(Resource::Nofile).current.unwrap_or(MOST_HELD + OTHERS);
        Self::looking(paths, displaced, allowed.saturating_sub(OTHERS).min(MOST_HELD))
    }

    /// As [`Guard::over`], and holds nothing open: git's objects are compared and do not come back.
    pub(crate) fn without_objects(paths: &[PathBuf], displaced: &Path) -> Self {
        Self::looking(paths, displaced, 0)
    }

    fn looking(paths: &[PathBuf], displaced: &Path, room: u64) -> Self {
        let mut look = Look { room, not_held: 0, entries: BTreeMap::new() };
        let places = paths.iter().filter_map(|path| Place::look(path, &mut look)).collect();
        let not_held = look.not_held;
        Self { places, displaced: Displaced::to(displaced), directory: displaced.to_owned(), not_held }
    }

    /// Puts back what changed.
    pub(crate) fn restore(mut self) -> Report {
        self.put_back()
    }

    /// Forgets what stood there.
    pub(crate) fn disarm(mut self) {
        self.places.clear();
    }

    fn put_back(&mut self) -> Report {
        let mut report = Report::default();
        let mut touched = 0;
        for place in self.places.drain(..) {
            touched += place.put_back(&mut self.displaced, &mut report);
        }
        for paths in [&mut report.restored, &mut report.lost] {
            paths.sort();
            paths.dedup();
        }
        if self.not_held > 0 {
            report.notes.push(format!(
                "{} files of .git were compared by size and time only: they are more than can be held open",
                self.not_held
            ));
        }
        if touched > 0 {
            report.notes.push(format!(
                "{touched} objects of .git were touched by the command or by somebody else: their sizes are the same, \
                 their contents were not compared. hint: git fsck"
            ));
        }
        if self.displaced.kept > 0 {
            report.notes.push(format!(
                "what the command or somebody else had put into .git meanwhile is kept in {}",
                self.directory.display()
            ));
        }
        if self.displaced.not_kept > 0 {
            report.notes.push(format!(
                "{} things that the command or somebody else had put into .git meanwhile are gone: there was no room \
                 for them in {}",
                self.displaced.not_kept,
                self.directory.display()
            ));
        }
        report
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.put_back();
    }
}

impl Report {
    pub(crate) fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

impl Place {
    fn look(path: &Path, look: &mut Look) -> Option<Self> {
        let metadata = path.symlink_metadata().ok()?;
        look.remember(path, &metadata, false);
        let handle = metadata.is_dir().then(|| File::open(path).ok()).flatten();
        Some(Self { path: path.to_owned(), handle, entries: std::mem::take(&mut look.entries) })
    }

    /// Returns how many files were touched and look the same.
    fn put_back(self, displaced: &mut Displaced, report: &mut Report) -> u32 {
        let mut touched = 0;
        if self.bring_home(displaced) {
            report.restored.push(self.path.clone());
        }
        // A directory stands before what lies in it.
        for (path, entry) in &self.entries {
            match entry.put_back(path, displaced) {
                Outcome::Same => {}
                Outcome::Touched => touched += 1,
                Outcome::Restored => report.restored.push(path.clone()),
                Outcome::Lost => report.lost.push(path.clone()),
            }
        }
        for (path, entry) in &self.entries {
            if matches!(entry, Entry::Directory { open: false, .. }) {
                self.remove_strangers(path, displaced, report);
            }
        }
        touched
    }

    fn remove_strangers(&self, directory: &Path, displaced: &mut Displaced, report: &mut Report) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            if !self.entries.contains_key(&path) {
                let gone = displaced.take(&path);
                if gone { &mut report.restored } else { &mut report.lost }.push(path);
            }
        }
    }

    /// Moves a directory back that was moved away: only so git's objects come back.
    fn bring_home(&self, displaced: &mut Displaced) -> bool {
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
        displaced.take(&self.path);
        fs::rename(&away, &self.path).is_ok()
    }
}

/// The walk over what stands there.
struct Look {
    /// Files that may still be held open.
    room: u64,
    not_held: u32,
    entries: BTreeMap<PathBuf, Entry>,
}

impl Look {
    fn remember(&mut self, path: &Path, metadata: &Metadata, in_objects: bool) {
        let mode = metadata.permissions().mode() & 0o7777;
        let kind = metadata.file_type();
        if kind.is_symlink() {
            if let Ok(target) = fs::read_link(path) {
                self.entries.insert(path.to_owned(), Entry::Link(target));
            }
        } else if kind.is_file() {
            let content = (!in_objects && metadata.len() <= LARGEST).then(|| fs::read(path).ok()).flatten();
            let stamp = Stamp::of(metadata);
            let entry = match content {
                Some(content) => Entry::File { stamp, mode, content },
                None => Entry::Held { stamp, mode, file: self.hold(path), object: in_objects },
            };
            self.entries.insert(path.to_owned(), entry);
        } else if kind.is_dir() {
            let in_objects = in_objects || is_object_store(path);
            self.entries.insert(path.to_owned(), Entry::Directory { mode, open: in_objects });
            for entry in fs::read_dir(path).into_iter().flatten().flatten() {
                let below = entry.path();
                if let Ok(metadata) = below.symlink_metadata() {
                    self.remember(&below, &metadata, in_objects);
                }
            }
        }
    }

    fn hold(&mut self, path: &Path) -> Option<File> {
        let file = if self.room > 0 { File::open(path).ok() } else { None };
        match file {
            Some(_) => self.room -= 1,
            None => self.not_held += 1,
        }
        file
    }
}

/// `objects` beside a `HEAD`, and not a branch of that name.
fn is_object_store(path: &Path) -> bool {
    path.ends_with("objects") && path.with_file_name("HEAD").is_file()
}

#[cfg(test)]
mod tests;
