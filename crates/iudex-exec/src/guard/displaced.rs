//! Where things go that give way to what stood there before: they may be somebody else's work.
//!
//! Never: follow a link, or leave a thing where it is because it cannot be kept.

use std::fs::{self, DirBuilder};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, symlink};
use std::path::{Path, PathBuf};

/// Bytes that are copied at most where moving is not possible (another file system).
const MOST_COPIED: u64 = 256 << 20;

/// A private directory; made when the first thing comes.
#[derive(Debug)]
pub(super) struct Displaced {
    directory: PathBuf,
    room: u64,
    pub(super) kept: u32,
    pub(super) not_kept: u32,
}

impl Displaced {
    pub(super) fn to(directory: &Path) -> Self {
        Self { directory: directory.to_owned(), room: MOST_COPIED, kept: 0, not_kept: 0 }
    }

    /// Afterwards nothing is at `path`; false when something is still there.
    pub(super) fn take(&mut self, path: &Path) -> bool {
        if path.symlink_metadata().is_err() {
            return true;
        }
        if self.keep(path).is_ok() {
            self.kept += 1;
        } else {
            self.not_kept += 1;
        }
        path.symlink_metadata().is_err() || remove(path).is_ok()
    }

    fn keep(&mut self, path: &Path) -> io::Result<()> {
        let below = path.strip_prefix("/").unwrap_or(path);
        let mut place = self.directory.join(below);
        let mut number = 1;
        while place.symlink_metadata().is_ok() {
            number += 1;
            place = self.directory.join(number.to_string()).join(below);
        }
        if let Some(parent) = place.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
        }
        if fs::rename(path, &place).is_ok() {
            return Ok(());
        }
        self.copy(path, &place)
    }

    fn copy(&mut self, path: &Path, place: &Path) -> io::Result<()> {
        let metadata = path.symlink_metadata()?;
        if metadata.is_symlink() {
            return symlink(fs::read_link(path)?, place);
        }
        if metadata.is_dir() {
            DirBuilder::new().mode(0o700).create(place)?;
            for entry in fs::read_dir(path)? {
                let entry = entry?;
                self.copy(&entry.path(), &place.join(entry.file_name()))?;
            }
            return Ok(());
        }
        if !metadata.is_file() {
            // A socket or a pipe holds nothing.
            return Ok(());
        }
        self.room = self.room.checked_sub(metadata.len()).ok_or(io::ErrorKind::QuotaExceeded)?;
        fs::copy(path, place).map(drop)
    }
}

fn remove(path: &Path) -> io::Result<()> {
    if path.symlink_metadata()?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}
