//! From what a caller wants to what the supervisor does: bash, its environment, and the sandbox around it.

use std::ffi::{OsStr, OsString};
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};

use crate::command::{CommandSpec, StartError};
use crate::sandbox::{Backend, Confinement};
use crate::supervise::{Launch, Program, Request, Word};
use crate::{bubblewrap, landlock};

/// Makes the request to the supervisor at `executable`.
pub(crate) fn request(spec: &CommandSpec, executable: &Path) -> Result<Request, StartError> {
    let confinement = resolved(&spec.confinement)?;
    let bash = bash(&spec.env, &confinement).ok_or_else(|| StartError {
        message: "bash was not found in PATH, /bin or /usr/bin. hint: install bash; every command runs in it"
            .to_owned(),
    })?;
    let directory = directory(&spec.cwd)?;
    let arguments =
        vec![bash.into_os_string(), "-o".into(), "pipefail".into(), "-c".into(), OsString::from(&spec.script)];
    let word = || {
        Word::new()
            .map_err(|error| StartError { message: format!("cannot read random bytes from /dev/urandom: {error}") })
    };
    let name = word()?.name();
    let cargo_home = confinement.private_tmp.join(format!("cargo-{name}"));
    let environment = environment(&spec.env, &confinement, &cargo_home);
    let program = Program { arguments, environment, directory };
    let guarded = guarded(&spec.confinement);
    let displaced = beside(&confinement.private_tmp, "displaced").join(&name);
    let descriptors = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    let request = |program, launch, guarded| {
        let (displaced, scratch) = (displaced.clone(), None);
        Ok(Request { program, launch, guarded, displaced, scratch, descriptors, word: word()? })
    };
    match &confinement.backend {
        Backend::None => request(program, Launch::Own, guarded),
        Backend::Bubblewrap { program: bubblewrap } => {
            let outer = Program {
                arguments: bubblewrap::arguments(bubblewrap, &confinement, executable),
                environment: Vec::new(),
                directory: PathBuf::from("/"),
            };
            let inner = request(program, Launch::Inside, Vec::new())?;
            request(outer, Launch::Through(Box::new(inner)), guarded)
        }
        Backend::Landlock => {
            let inside = confinement.hidden.iter().find(|hidden| hidden.starts_with(&confinement.work_dir));
            if let Some(hidden) = inside {
                return Err(StartError {
                    message: format!(
                        "Landlock cannot hide {} from a command that works in {}. hint: install bubblewrap, or put \
                         the state of iudex elsewhere (XDG_STATE_HOME)",
                        hidden.display(),
                        confinement.work_dir.display()
                    ),
                });
            }
            let outer = Program {
                arguments: vec![executable.into(), crate::supervise::ARGUMENT.into()],
                environment: Vec::new(),
                directory: PathBuf::from("/"),
            };
            let rules = landlock::rules(&confinement, cargo_home.clone());
            let inner = request(program, Launch::Confined(rules), Vec::new())?;
            let outer = request(outer, Launch::Through(Box::new(inner)), guarded)?;
            Ok(Request { scratch: Some(cargo_home), ..outer })
        }
    }
}

/// A place of iudex that no command reaches: beside the private directory, of that name with a suffix.
pub(crate) fn beside(private: &Path, suffix: &str) -> PathBuf {
    let mut name = private.file_name().unwrap_or_default().to_owned();
    name.push("-");
    name.push(suffix);
    private.with_file_name(name)
}

/// What the sandbox does not protect by itself: under Landlock everything that is read-only inside of what is
/// writable; under bubblewrap a name that is a link, since a mount protects what it leads to and not the name.
fn guarded(confinement: &Confinement) -> Vec<PathBuf> {
    let needed = |path: &&PathBuf| match confinement.backend {
        Backend::Landlock => true,
        Backend::Bubblewrap { .. } => path.is_symlink(),
        Backend::None => false,
    };
    confinement.read_only.iter().filter(needed).cloned().collect()
}

/// The confinement with every path as the kernel sees it, and the directories of iudex there.
fn resolved(confinement: &Confinement) -> Result<Confinement, StartError> {
    let mut resolved = confinement.clone();
    resolved.work_dir = directory(&confinement.work_dir)?;
    for private in [&mut resolved.private_tmp, &mut resolved.caches] {
        let created = DirBuilder::new().recursive(true).mode(0o700).create(&*private);
        *private = created.and_then(|()| private.canonicalize()).map_err(|error| StartError {
            message: format!("cannot make the private directory {}: {error}", private.display()),
        })?;
    }
    // One that is not there needs no cover.
    let existing = |paths: &[PathBuf]| paths.iter().filter_map(|path| path.canonicalize().ok()).collect();
    resolved.read_only = existing(&confinement.read_only);
    resolved.hidden = existing(&confinement.hidden);
    Ok(resolved)
}

fn directory(path: &Path) -> Result<PathBuf, StartError> {
    path.canonicalize().ok().filter(|path| path.is_dir()).ok_or_else(|| StartError {
        message: format!("the directory {} of the command cannot be entered", path.display()),
    })
}

/// bash from the command's own PATH, but never one that a command could have written.
fn bash(environment: &[(OsString, OsString)], confinement: &Confinement) -> Option<PathBuf> {
    let path = environment.iter().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str());
    let usual = ["/bin", "/usr/bin", "/usr/local/bin"].map(PathBuf::from);
    let directories = std::env::split_paths(path.unwrap_or(OsStr::new(""))).chain(usual);
    directories.filter(|directory| directory.is_absolute()).find_map(|directory| {
        let bash = directory.join("bash");
        // Its real place counts, and so does the place where it is named.
        let places = [directory.canonicalize().ok()?, bash.canonicalize().ok()?];
        let writable = [&confinement.work_dir, &confinement.private_tmp, &confinement.caches];
        let is_safe = !places.iter().any(|place| writable.iter().any(|writable| place.starts_with(writable)));
        (is_safe && is_executable(&bash)).then_some(bash)
    })
}

pub(crate) fn is_executable(path: &Path) -> bool {
    path.is_file() && rustix::fs::access(path, rustix::fs::Access::EXEC_OK).is_ok()
}

fn environment(
    given: &[(OsString, OsString)],
    confinement: &Confinement,
    cargo_home: &Path,
) -> Vec<(OsString, OsString)> {
    let private = confinement.caches.join("cargo");
    let is_private = |value: &OsString| {
        let directory = Path::new(value).parent().and_then(|parent| parent.canonicalize().ok());
        directory.is_some_and(|directory| directory.join("cargo") == private)
    };
    let names_private = given.iter().any(|(name, value)| name == "CARGO_HOME" && is_private(value));
    let mut environment = given.to_vec();
    let mut set = |name: &str, value: &OsStr| {
        environment.retain(|(other, _)| other != name);
        environment.push((name.into(), value.into()));
    };
    let temporary = match confinement.backend {
        Backend::Bubblewrap { .. } => Path::new("/tmp"),
        Backend::Landlock => confinement.private_tmp.as_path(),
        Backend::None => return environment,
    };
    for name in ["TMPDIR", "TMP", "TEMP"] {
        set(name, temporary.as_os_str());
    }
    // Landlock cannot take back what it grants on the caches, and settings must not stay there for the next command.
    if confinement.backend == Backend::Landlock && names_private {
        set("CARGO_HOME", cargo_home.as_os_str());
    }
    if !confinement.network {
        set("CARGO_NET_OFFLINE", OsStr::new("true"));
    }
    environment
}
