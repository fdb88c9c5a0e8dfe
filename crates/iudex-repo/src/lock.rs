//! One run a directory, parents and children included. Never: waiting for another run, or a lock that outlives its
//! process.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::paths;

/// Held while a run works in a directory; released on drop and by the death of the process.
#[derive(Debug)]
pub struct RunLock {
    path: PathBuf,
    /// Closing it releases the lock.
    _file: File,
}

/// Another run holds the directory, a parent or a child of it.
#[derive(Debug, thiserror::Error)]
pub enum Busy {
    /// Another run.
    #[error("run {run} (process {pid}) works in {}", directory.display())]
    Held {
        /// The other run.
        run: String,
        /// Its process.
        pid: u32,
        /// Its directory.
        directory: PathBuf,
    },
    /// The lock file cannot be used.
    #[error("cannot lock {}: {error}", path.display())]
    Io {
        /// The lock file.
        path: PathBuf,
        /// What the system said.
        error: std::io::Error,
    },
}

/// What a lock file says about its holder.
#[derive(Debug, Serialize, Deserialize)]
struct Holder {
    directory: String,
    run: String,
    pid: u32,
}

impl RunLock {
    /// Takes the lock for `directory`, with lock files under `state/locks`. Symbolic links are resolved first.
    pub fn acquire(state: &Path, directory: &Path, run: &str) -> Result<Self, Busy> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |error| Busy::Io { path, error }
        };
        let directory = directory.canonicalize().map_err(io(directory))?;
        let locks = state.join("locks");
        crate::store::make_private_directory(&locks)
            .map_err(|error| Busy::Io { path: locks.clone(), error: std::io::Error::other(error.message) })?;

        // Held only while looking around, so that two runs that start together cannot both find nothing.
        let entrance_path = locks.join("entrance");
        let entrance = open(&entrance_path).map_err(io(&entrance_path))?;
        entrance.lock().map_err(io(&entrance_path))?;

        for entry in std::fs::read_dir(&locks).map_err(io(&locks))?.flatten() {
            let path = entry.path();
            if path.extension().is_some_and(|extension| extension == "lock") {
                refuse_if_related(&path, &directory)?;
            }
        }
        let path = locks.join(format!("{}.lock", paths::digest(&directory)));
        let mut file = open(&path).map_err(io(&path))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::Error(error)) => return Err(Busy::Io { path, error }),
            Err(TryLockError::WouldBlock) => {
                return Err(Busy::Io { path, error: std::io::Error::other("held by an unknown process") });
            }
        }
        let holder = Holder { directory: paths::encode(&directory), run: run.to_owned(), pid: std::process::id() };
        let text = serde_json::to_vec(&holder).map_err(std::io::Error::other);
        text.and_then(|text| file.write_all(&text)).map_err(io(&path))?;
        Ok(Self { path, _file: file })
    }
}

impl Drop for RunLock {
    fn drop(&mut self) {
        // Still locked, so the name is certainly ours. A file that stays behind is found unlocked and removed later.
        let _ = std::fs::remove_file(&self.path);
    }
}

fn open(path: &Path) -> std::io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Refuses when the lock file is held for the same directory, a parent or a child; removes it when its process died.
fn refuse_if_related(path: &Path, directory: &Path) -> Result<(), Busy> {
    let io = |error| Busy::Io { path: path.to_owned(), error };
    let mut file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(io(error)),
    };
    match file.try_lock() {
        Ok(()) => match std::fs::remove_file(path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(io(error)),
            _ => Ok(()),
        },
        Err(TryLockError::Error(error)) => Err(io(error)),
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            file.read_to_string(&mut text).map_err(io)?;
            let holder: Holder = serde_json::from_str(&text)
                .map_err(|error| io(std::io::Error::other(format!("held by an unknown process: {error}"))))?;
            let held = paths::decode(&holder.directory);
            if held.starts_with(directory) || directory.starts_with(&held) {
                return Err(Busy::Held { run: holder.run, pid: holder.pid, directory: held });
            }
            Ok(())
        }
    }
}
