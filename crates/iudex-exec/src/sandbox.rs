//! What holds a command: bubblewrap, else Landlock with seccomp, else nothing and only when the user said so.
//!
//! Never: a mechanism that was not tried, or one that holds less than its evidence says.

use std::ffi::OsStr;
use std::path::PathBuf;

use crate::{bubblewrap, landlock};

/// The mechanism.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Backend {
    /// bubblewrap, at this path.
    Bubblewrap {
        /// The program.
        program: PathBuf,
    },
    /// Landlock and seccomp, applied by the supervisor to itself before it starts the command.
    Landlock,
    /// Nothing: `--no-sandbox`.
    None,
}

impl Backend {
    /// The word for evidence and messages: `bubblewrap`, `landlock`, `none`.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Bubblewrap { .. } => "bubblewrap",
            Self::Landlock => "landlock",
            Self::None => "none",
        }
    }
}

/// What one command may touch.
#[derive(Debug, Clone)]
pub struct Confinement {
    /// The mechanism.
    pub backend: Backend,
    /// Writable, at its own path.
    pub work_dir: PathBuf,
    /// Inside the work directory, readable only (`.git` of the repository and of nested ones).
    pub read_only: Vec<PathBuf>,
    /// Neither readable nor writable (the state and the configuration of iudex).
    pub hidden: Vec<PathBuf>,
    /// A directory of iudex that is mounted at `/tmp` (bubblewrap) or named by `TMPDIR` (Landlock).
    pub private_tmp: PathBuf,
    /// A persistent directory of iudex for caches; writable.
    pub caches: PathBuf,
    /// Whether a network beyond the command's own loopback is within reach.
    pub network: bool,
}

/// No sandbox works here.
#[derive(Debug, Clone, thiserror::Error)]
#[error("no sandbox works on this machine: {reason}")]
pub struct Unavailable {
    /// What was tried and what it answered.
    pub reason: String,
}

/// Finds the best mechanism that really works here, by trying it (about 10 ms; the answer can be kept).
///
/// # Errors
/// [`Unavailable`] when neither bubblewrap nor Landlock works.
pub fn detect() -> Result<Backend, Unavailable> {
    detect_in(&std::env::var_os("PATH").unwrap_or_default())
}

/// As [`detect`], with another PATH (see [`crate::path_outside`]).
///
/// # Errors
/// As [`detect`].
pub fn detect_in(path: &OsStr) -> Result<Backend, Unavailable> {
    let of_bubblewrap = match bubblewrap::find(path) {
        None => "bwrap: not found in PATH (package bubblewrap)".to_owned(),
        Some(program) => match bubblewrap::probe(&program) {
            Ok(_) => return Ok(Backend::Bubblewrap { program }),
            Err(reason) => reason,
        },
    };
    match landlock::probe() {
        Ok(()) => Ok(Backend::Landlock),
        Err(of_landlock) => Err(Unavailable { reason: format!("{of_bubblewrap}; landlock: {of_landlock}") }),
    }
}

/// What the mechanism holds and what it does not, in a few words for the evidence of a gate.
pub fn evidence(confinement: &Confinement) -> String {
    let network = if confinement.network { ", network open" } else { "" };
    match confinement.backend {
        Backend::Bubblewrap { .. } => format!("bubblewrap{network}"),
        Backend::Landlock => {
            let loopback = if confinement.network { "" } else { "; no own loopback" };
            let guarded = if confinement.read_only.is_empty() { "" } else { "; .git restored after each command" };
            let signals = if landlock::holds_signals() {
                ""
            } else {
                "; the command can send signals to other processes (Linux before 6.12)"
            };
            format!("landlock{network}{loopback}; no unix sockets; file modes not protected{guarded}{signals}")
        }
        Backend::None => "no sandbox, network open".to_owned(),
    }
}
