//! Where the executable of the supervisor is: this one.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

static CHOSEN: OnceLock<PathBuf> = OnceLock::new();

/// Names the executable that calls [`crate::supervise_main`] first thing, for a program that is not it itself (tests).
/// The first call counts.
pub fn set_supervisor(program: PathBuf) {
    let _ = CHOSEN.set(program);
}

/// Why there is no supervisor.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExecutableError {
    #[error("the path of the running iudex cannot be found: {0}")]
    Unknown(std::io::Error),
    #[error("this test has no supervisor beside it. hint: cargo build -p iudex-exec --example supervisor")]
    NotBuilt,
    #[error("the running iudex is no longer at {0}. hint: it was replaced; start iudex again")]
    Gone(PathBuf),
}

/// The executable to run as a supervisor.
pub(crate) fn supervisor() -> Result<PathBuf, ExecutableError> {
    if let Some(chosen) = CHOSEN.get() {
        return Ok(chosen.clone());
    }
    let own = std::env::current_exe().map_err(ExecutableError::Unknown)?;
    if let Some(directory) = directory_of_a_test(&own) {
        let mut programs = ["examples/supervisor", "iudex"].iter().map(|name| directory.join(name));
        return programs.find(|program| program.is_file()).ok_or(ExecutableError::NotBuilt);
    }
    if is_this_program(&own) { Ok(own) } else { Err(ExecutableError::Gone(own)) }
}

/// True when this file is the program that runs. The kernel calls one that was replaced `PATH (deleted)`, and an agent
/// that may write there could make a file of that very name.
fn is_this_program(own: &Path) -> bool {
    let Ok(file) = std::fs::metadata(own) else { return false };
    let running = std::fs::metadata("/proc/self/exe");
    file.is_file() && running.map_or(true, |running| (running.dev(), running.ino()) == (file.dev(), file.ino()))
}

/// A test program has no way to call `supervise_main`; cargo builds one that has beside it. Not in a release build.
fn directory_of_a_test(own: &Path) -> Option<&Path> {
    own.parent().filter(|directory| cfg!(debug_assertions) && directory.ends_with("deps"))?.parent()
}
