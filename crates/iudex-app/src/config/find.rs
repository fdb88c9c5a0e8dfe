//! Finds and reads the files of a project: `iudex.toml`, `AGENTS.md`.
//!
//! Never: a file above the repository, above the file system, or in the home directory itself (unless one works there).

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// The most bytes that a configuration file or AGENTS.md may have.
const LARGEST: u64 = 1024 * 1024;

/// The nearest file of this name: in `directory`, else upwards to the root of the repository, the home directory (itself
/// left out) or the boundary of the file system.
///
/// A name that is there but is no regular file is given too: reading it then says what is wrong. A file that belongs to
/// somebody else (not the user, the owner of `directory` or root) is passed over: anybody may write into `/tmp`.
pub(crate) fn find_upwards(directory: &Path, home: &Path, name: &str) -> Option<PathBuf> {
    let directory = directory.canonicalize().ok()?;
    let home = home.canonicalize().unwrap_or_else(|_| home.to_owned());
    let directory = directory.as_path();
    let place = fs::metadata(directory).ok()?;
    let device = place.dev();
    let owners = [0, place.uid(), rustix::process::getuid().as_raw()];
    for folder in directory.ancestors() {
        if folder != directory && (folder == home || fs::metadata(folder).ok()?.dev() != device) {
            return None;
        }
        let file = folder.join(name);
        if file.symlink_metadata().is_ok_and(|meta| owners.contains(&meta.uid())) {
            return Some(file);
        }
        if folder.join(".git").symlink_metadata().is_ok() {
            return None;
        }
    }
    None
}

/// The bytes of a regular file of bounded size. A pipe or a device, which could hang the reader, is refused.
///
/// # Errors
/// What is wrong, to follow the file's name.
pub(crate) fn read_bounded(file: &Path) -> Result<Vec<u8>, String> {
    let meta = fs::metadata(file).map_err(|error| format!("cannot be read: {error}"))?;
    if !meta.is_file() {
        return Err("is not a regular file".to_owned());
    }
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| format!("cannot be read: {error}"))?;
    opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| format!("cannot be read: {error}"))?;
    if bytes.len() as u64 > LARGEST {
        return Err("is larger than 1 MiB".to_owned());
    }
    Ok(bytes)
}
