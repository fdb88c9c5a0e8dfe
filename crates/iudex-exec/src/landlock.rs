//! The sandbox where bubblewrap does not work: Landlock for files, seccomp for the network, no capabilities.
//!
//! Never: less than it says. What the kernel cannot enforce is a failure and not a smaller sandbox.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::sandbox::Confinement;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(target_os = "linux")]
pub(crate) use linux::{apply, holds_signals, probe, scope_sockets};

/// What a confined process may touch.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Rules {
    /// Readable and executable with everything below.
    pub(crate) readable: Vec<PathBuf>,
    /// Writable with everything below.
    pub(crate) writable: Vec<PathBuf>,
    pub(crate) network: bool,
    pub(crate) cargo: Option<Cargo>,
}

/// A `CARGO_HOME` for one command, made of links.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Cargo {
    /// The new directory.
    pub(crate) place: PathBuf,
    /// The private directory that stays, for what is downloaded and unpacked.
    pub(crate) store: PathBuf,
    /// The user's, for the settings and the tools.
    pub(crate) user: Option<PathBuf>,
}

/// The rules for a command. Landlock cannot take back below a directory what it grants on it, so what is hidden is
/// left out on the way down from the root, and what lies read-only in the work directory is put back afterwards (see
/// [`crate::guard`]).
pub(crate) fn rules(confinement: &Confinement, cargo_home: PathBuf) -> Rules {
    let mut readable = Vec::new();
    grant(Path::new("/"), &confinement.hidden, &mut readable);
    Rules {
        readable,
        writable: [&confinement.work_dir, &confinement.caches, &confinement.private_tmp].map(Clone::clone).to_vec(),
        network: confinement.network,
        cargo: Some(Cargo {
            place: cargo_home,
            store: confinement.caches.join("cargo"),
            user: crate::bubblewrap::user_cargo_home(),
        }),
    }
}

/// Grants `path` as a whole when nothing hidden lies in it, else each of its entries.
fn grant(path: &Path, hidden: &[PathBuf], granted: &mut Vec<PathBuf>) {
    if hidden.iter().any(|hidden| path.starts_with(hidden)) {
        return;
    }
    if !hidden.iter().any(|hidden| hidden.starts_with(path)) {
        granted.push(path.to_owned());
        return;
    }
    for entry in std::fs::read_dir(path).into_iter().flatten().flatten() {
        // A link would grant what it leads to; that has its own place on the way down.
        if entry.file_type().is_ok_and(|kind| !kind.is_symlink()) {
            grant(&entry.path(), hidden, granted);
        }
    }
}

/// There is no Landlock on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn probe() -> Result<(), String> {
    Err("this system has none".to_owned())
}

/// There is no Landlock on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn apply(_: &Rules) -> Result<(), String> {
    probe()
}

/// There is no Landlock on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn scope_sockets() {}

/// There is no Landlock on this system.
#[cfg(not(target_os = "linux"))]
pub(crate) fn holds_signals() -> bool {
    false
}
