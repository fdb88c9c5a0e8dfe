//! Sets up a small local model through the script that comes with iudex.
//!
//! The script is part of the program, so that an installed binary needs no source tree.

use std::os::unix::process::ExitStatusExt as _;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};

use crate::paths::Paths;
use crate::refusal::Refusal;

const SCRIPT: &str = include_str!("../../../scripts/local-model");
const SERVER: &str = include_str!("../../../scripts/local_server.py");

/// What to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupStep {
    /// Fetch what is missing and start the server.
    Start,
    /// Stop the server that was started.
    Stop,
    /// Say what is there.
    Status,
}

/// Runs a step; its talk goes to standard error, the address of the server to standard output.
///
/// # Errors
/// [`Refusal`] when the script cannot be laid out or fails; what it said stands on standard error.
pub fn run(step: SetupStep, paths: &Paths) -> Result<(), Refusal> {
    let script = lay_out(paths)?;
    let argument = match step {
        SetupStep::Start => "start",
        SetupStep::Stop => "stop",
        SetupStep::Status => "status",
    };
    let status = Command::new("bash")
        .arg(&script)
        .arg(argument)
        .status()
        .map_err(|error| Refusal::usage(format!("bash cannot be started: {error}"), "install bash"))?;
    if status.success() {
        return Ok(());
    }
    let ended = exit_words(status);
    let (exit_code, what, hint) = match step {
        SetupStep::Start => (
            7,
            "the local model could not be set up",
            "read the lines above; the step can be repeated, nothing is fetched twice",
        ),
        SetupStep::Stop => (2, "the local server could not be stopped", "read the lines above"),
        SetupStep::Status => (7, "the local model is not ready", "`iudex setup` sets it up and starts its server"),
    };
    Err(Refusal { exit_code, message: format!("{what} (local-model {argument} {ended})"), hint: Some(hint.to_owned()) })
}

/// How a process ended: `exits 3`, `was ended by signal 9`.
pub(crate) fn exit_words(status: ExitStatus) -> String {
    match (status.code(), status.signal()) {
        (Some(code), _) => format!("exits {code}"),
        (None, Some(signal)) => format!("was ended by signal {signal}"),
        (None, None) => status.to_string(),
    }
}

/// The port of the server that was set up, while its file is there.
pub(crate) fn port(paths: &Paths) -> Option<u16> {
    // The script keeps its things where this variable says, when it is set.
    let folder = std::env::var_os("IUDEX_MODEL_CACHE").filter(|folder| !folder.is_empty());
    let folder = folder.map_or_else(|| paths.cache.join("local-model"), PathBuf::from);
    let text = std::fs::read_to_string(folder.join("server.pid")).ok()?;
    let (_, address) = text.trim().split_once(' ')?;
    address.trim_end_matches("/v1").rsplit(':').next()?.parse().ok()
}

fn lay_out(paths: &Paths) -> Result<PathBuf, Refusal> {
    let folder = paths.cache.join("setup");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text);
    std::fs::create_dir_all(&folder)
        .and_then(|()| write("local-model", SCRIPT))
        .and_then(|()| write("local_server.py", SERVER))
        .map_err(|error| Refusal::usage(format!("cannot write {}: {error}", folder.display()), "set XDG_CACHE_HOME"))?;
    Ok(folder.join("local-model"))
}
