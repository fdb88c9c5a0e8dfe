//! One thing as it stood before the command, and how it comes back.
//!
//! Never: follow a link.

use std::fs::{self, DirBuilder, File, Metadata, OpenOptions, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::Displaced;

#[derive(Debug)]
pub(super) enum Entry {
    Directory {
        mode: u32,
        /// Whether what is new in it stays.
        open: bool,
    },
    Link(PathBuf),
    File {
        stamp: Stamp,
        mode: u32,
        content: Vec<u8>,
    },
    /// Too large or too many for memory.
    Held {
        stamp: Stamp,
        mode: u32,
        /// The file itself, held open; it comes back when its name is gone. `None` beyond what can be held.
        file: Option<File>,
        /// An object of git: git itself touches them when it needs them again.
        object: bool,
    },
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    Same,
    /// The same file of the same size, and someone did something to it.
    Touched,
    Restored,
    Lost,
}

/// When these are the same, so is the content: nobody can set the time of change.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    inode: u64,
    length: u64,
    modified: (i64, i64),
    changed: (i64, i64),
}

impl Stamp {
    pub(super) fn of(metadata: &Metadata) -> Self {
        Self {
            inode: metadata.ino(),
            length: metadata.len(),
            modified: (metadata.mtime(), metadata.mtime_nsec()),
            changed: (metadata.ctime(), metadata.ctime_nsec()),
        }
    }
}

impl Entry {
    pub(super) fn put_back(&self, path: &Path, displaced: &mut Displaced) -> Outcome {
        let now = path.symlink_metadata().ok();
        let now_mode = now.as_ref().map(|now| now.permissions().mode() & 0o7777);
        match self {
            Self::Directory { mode, .. } => {
                if now.is_some_and(|now| now.is_dir()) {
                    return if now_mode == Some(*mode) { Outcome::Same } else { set_mode(path, *mode) };
                }
                displaced.take(path);
                restored(&DirBuilder::new().mode(*mode).create(path))
            }
            Self::Link(target) => {
                if fs::read_link(path).is_ok_and(|now| now == *target) {
                    return Outcome::Same;
                }
                displaced.take(path);
                restored(&symlink(target, path))
            }
            Self::File { stamp, mode, content } => {
                let now = now.filter(Metadata::is_file);
                if now.as_ref().is_some_and(|now| Stamp::of(now) == *stamp) {
                    return Outcome::Same;
                }
                if now.is_some() && fs::read(path).is_ok_and(|now| now == *content) {
                    return if now_mode == Some(*mode) { Outcome::Same } else { set_mode(path, *mode) };
                }
                displaced.take(path);
                restored(&create(path, *mode).and_then(|mut file| file.write_all(content)))
            }
            Self::Held { stamp, mode, file, object } => {
                let now = now.filter(|now| now.is_file() && now.ino() == stamp.inode);
                let Some(now) = now else { return copy_back(path, stamp, *mode, file.as_ref(), displaced) };
                let now = Stamp::of(&now);
                if now == *stamp {
                    return Outcome::Same;
                }
                if now.length != stamp.length || (!object && now.modified != stamp.modified) {
                    return Outcome::Lost;
                }
                if now_mode == Some(*mode) { Outcome::Touched } else { set_mode(path, *mode) }
            }
        }
    }
}

/// Its name is gone or stands for something else.
fn copy_back(path: &Path, stamp: &Stamp, mode: u32, file: Option<&File>, displaced: &mut Displaced) -> Outcome {
    let Some(mut kept) = file else { return Outcome::Lost };
    if !kept.metadata().is_ok_and(|then| then.len() == stamp.length) {
        return Outcome::Lost;
    }
    displaced.take(path);
    restored(&create(path, mode).and_then(|mut file| io::copy(&mut kept, &mut file)))
}

fn create(path: &Path, mode: u32) -> io::Result<File> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.set_permissions(Permissions::from_mode(mode))?;
    Ok(file)
}

fn restored<T>(done: &io::Result<T>) -> Outcome {
    if done.is_ok() { Outcome::Restored } else { Outcome::Lost }
}

/// Of a real file or directory; the callers have looked.
fn set_mode(path: &Path, mode: u32) -> Outcome {
    restored(&fs::set_permissions(path, Permissions::from_mode(mode)))
}
