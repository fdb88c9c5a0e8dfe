//! Chooses the sandbox of a run and says what is within reach of a command.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use iudex_exec::{Backend, Confinement};
use iudex_repo::Snapshots;

use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::remembered::Memory;

/// The sandbox that works here, remembered while the user, the kernel and the program stay the same.
///
/// A program at or below the work directory is never it: the agent could put its own in its place.
pub(crate) fn choose(paths: &Paths, directory: &Path, wanted: bool) -> Result<Backend, Refusal> {
    if !wanted {
        return Ok(Backend::None);
    }
    let memory = Memory::new(&paths.state);
    let path = iudex_exec::path_outside(directory);
    let key = machine_key(&path);
    if let Some(program) = memory.sandbox(&key) {
        return Ok(Backend::Bubblewrap { program });
    }
    let backend = iudex_exec::detect_in(&path).map_err(|error| {
        Refusal::usage(
            error.to_string(),
            "install bubblewrap (apt-get install bubblewrap), or accept the risk with --no-sandbox",
        )
    })?;
    if let Backend::Bubblewrap { program } = &backend {
        memory.keep_sandbox(&key, program);
    }
    Ok(backend)
}

/// What the answer of the probe depends on.
fn machine_key(path: &OsStr) -> String {
    let kernel = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let user = rustix::process::getuid().as_raw();
    let program = find_in("bwrap", path);
    let changed =
        program.as_deref().and_then(|program| std::fs::metadata(program).ok()).and_then(|meta| meta.modified().ok());
    format!("{} {} {user} {program:?} {changed:?}", kernel.trim(), boot.trim())
}

/// The first file of this name in this PATH.
fn find_in(name: &str, path: &OsStr) -> Option<PathBuf> {
    std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Who runs commands: the agent and the gates have private caches apart from each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hands {
    Agent,
    Gate,
}

/// The confinement of a run's commands.
pub(crate) fn confinement(
    paths: &Paths,
    backend: &Backend,
    snapshots: &Snapshots,
    directory: &Path,
    run: &str,
    hands: Hands,
    network: bool,
) -> Result<Confinement, Refusal> {
    let whose = match hands {
        Hands::Agent => "agent",
        Hands::Gate => "gate",
    };
    let private_tmp = run_directory(paths, run).join(format!("tmp-{whose}"));
    let caches = paths.cache.join("sandbox").join(whose);
    for folder in [&private_tmp, &caches] {
        crate::paths::create_private(folder)?;
    }
    let mut hidden = vec![paths.state.clone()];
    hidden.extend(paths.config.parent().map(Path::to_path_buf));
    // Landlock cannot hide a part of the work directory.
    let can_hide = |place: &PathBuf| *backend != Backend::Landlock || !place.starts_with(directory);
    hidden.extend(std::env::home_dir().iter().flat_map(|home| iudex_exec::secret_places(home)).filter(can_hide));
    Ok(Confinement {
        backend: backend.clone(),
        work_dir: directory.to_owned(),
        read_only: snapshots.git_directories(),
        hidden,
        private_tmp,
        caches,
        network,
    })
}

/// Where a run keeps its files: outputs of checks, the private /tmp.
pub(crate) fn run_directory(paths: &Paths, run: &str) -> PathBuf {
    paths.state.join("runs").join(run)
}
