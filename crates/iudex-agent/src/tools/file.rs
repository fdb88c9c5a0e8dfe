//! Opens regular files only, and replaces them as a whole: a temporary file in the same directory, then a rename.

use std::fs::{File, Metadata, OpenOptions, Permissions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt, chown};
use std::path::Path;

use super::place::{Place, Resolved};

/// What lies at a path.
pub(super) enum Found {
    /// Nothing.
    Nothing,
    /// A directory.
    Directory,
    /// A regular file.
    File(Metadata),
}

/// Looks without opening: a FIFO or a device is an error.
pub(super) fn look(target: &Resolved) -> Result<Found, String> {
    let facts = match target.path.symlink_metadata() {
        Ok(facts) => facts,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Nothing),
        Err(error) => return Err(format!("{} cannot be read: {}.", target.shown, plain(&error))),
    };
    let kind = facts.file_type();
    if kind.is_dir() {
        return Ok(Found::Directory);
    }
    if kind.is_file() {
        return Ok(Found::File(facts));
    }
    let what = if kind.is_fifo() {
        "a named pipe"
    } else if kind.is_socket() {
        "a socket"
    } else if kind.is_block_device() || kind.is_char_device() {
        "a device"
    } else {
        "no regular file"
    };
    Err(format!("{} is {what} and was not opened. Choose a regular file.", target.shown))
}

/// Opens a regular file for reading; never waits on anything else.
pub(super) fn open(target: &Resolved) -> Result<File, String> {
    let flags = rustix::fs::OFlags::NONBLOCK | rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::CLOEXEC;
    let cannot = |error: &io::Error| format!("{} cannot be read: {}.", target.shown, plain(error));
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(i32::try_from(flags.bits()).unwrap_or(0))
        .open(&target.path)
        .map_err(|error| cannot(&error))?;
    if !file.metadata().map_err(|error| cannot(&error))?.is_file() {
        return Err(format!("{} is no regular file. Choose a regular file.", target.shown));
    }
    Ok(file)
}

/// Reads a file to its end, at most `most` bytes; `None` when it is longer.
pub(super) fn read_all(target: &Resolved, most: u64) -> Result<Option<Vec<u8>>, String> {
    let mut bytes = Vec::new();
    open(target)?
        .take(most + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("{} cannot be read: {}.", target.shown, plain(&error)))?;
    Ok((bytes.len() as u64 <= most).then_some(bytes))
}

/// Replaces or creates a file; mode and owner of an existing one stay.
pub(super) fn replace(place: &Place, target: &Resolved, bytes: &[u8]) -> Result<(), String> {
    let parent = target.path.parent().unwrap_or(&place.work_dir);
    let cannot = |error: &io::Error| {
        format!("{} cannot be written: {}. Nothing was changed. Check the path.", target.shown, plain(error))
    };
    std::fs::create_dir_all(parent).map_err(|error| cannot(&error))?;
    let before = target.path.symlink_metadata().ok();
    write_beside(parent, &target.path, before.as_ref(), bytes).map_err(|error| cannot(&error))
}

fn write_beside(parent: &Path, path: &Path, before: Option<&Metadata>, bytes: &[u8]) -> io::Result<()> {
    let mut temporary = tempfile::Builder::new()
        .prefix(".iudex-")
        .suffix(".tmp")
        .permissions(Permissions::from_mode(0o666))
        .tempfile_in(parent)?;
    temporary.write_all(bytes)?;
    if let Some(before) = before {
        let fresh = temporary.as_file().metadata()?;
        if (fresh.uid(), fresh.gid()) != (before.uid(), before.gid()) {
            // Possible for root only; the content matters more than the owner.
            let _ = chown(temporary.path(), Some(before.uid()), Some(before.gid()));
        }
        temporary.as_file().set_permissions(Permissions::from_mode(before.mode() & 0o7777))?;
    }
    temporary.persist(path)?;
    Ok(())
}

/// An error of the system without its number.
pub(super) fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or(&text).to_lowercase()
}
