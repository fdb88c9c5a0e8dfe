//! The sandbox by bubblewrap: its arguments, and whether it works here.
//!
//! Never: a capability. Started by root, bubblewrap keeps them unless told otherwise, and a remount gets through.

use std::collections::HashMap;
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Mutex, PoisonError};

use crate::launch::{beside, is_executable};
use crate::sandbox::Confinement;
use crate::supervise::ARGUMENT;

/// Namespaces and rights, the same for every command.
const BASE: &[&str] = &[
    "--unshare-user",
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-cgroup-try",
    "--cap-drop",
    "ALL",
    "--die-with-parent",
    "--new-session",
];
const NO_NETWORK: &str = "--unshare-net";
/// From 0.8 on; closes nested namespaces, which are no way out but a large surface of the kernel.
const NO_NESTING: &str = "--disable-userns";
/// Where the supervisor stands inside, wherever it is outside.
const SUPERVISOR: &str = "/run/iudex/supervisor";
/// Where something else is mounted inside.
const REPLACED: &[&str] = &["/run", "/var/run", "/tmp", "/var/tmp", "/dev", "/proc"];
/// What programs need from `/run` and no daemon listens on.
const RUN: &[&str] = &["/run/current-system", "/run/booted-system", "/run/opengl-driver", "/run/wrappers"];

/// The program, from an absolute entry of this PATH or its usual places.
pub(crate) fn find(path: &OsStr) -> Option<PathBuf> {
    let usual = ["/usr/bin", "/bin", "/usr/local/bin"].map(PathBuf::from);
    std::env::split_paths(path)
        .chain(usual)
        .filter(|directory| directory.is_absolute())
        .map(|directory| directory.join("bwrap"))
        .find(|program| is_executable(program))
}

/// Tries the full set of flags on `true`, and the set without [`NO_NESTING`] when that one is refused. Returns the
/// flags that work.
///
/// # Errors
/// What bubblewrap answered, with what is known to cause it.
pub(crate) fn probe(program: &Path) -> Result<Vec<&'static str>, String> {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(flags) = known.get(program) {
        return Ok(flags.clone());
    }
    let mut flags: Vec<&str> = BASE.iter().copied().chain([NO_NESTING]).collect();
    if try_flags(program, &flags).is_err() {
        flags.pop();
        try_flags(program, &flags).map_err(|answer| format!("{answer}{}", cause()))?;
    }
    known.insert(program.to_owned(), flags.clone());
    Ok(flags)
}

/// What worked, so that it is tried once in a process.
static KNOWN: Mutex<Option<HashMap<PathBuf, Vec<&'static str>>>> = Mutex::new(None);

fn try_flags(program: &Path, flags: &[&str]) -> Result<(), String> {
    let output = Command::new(program)
        .args(flags)
        .arg(NO_NETWORK)
        .args([
            "--ro-bind",
            "/",
            "/",
            "--dev",
            "/dev",
            "--proc",
            "/proc",
            "--tmpfs",
            "/tmp",
            "--",
            "/bin/sh",
            "-c",
            ":",
        ])
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("bwrap: {}: {error}", program.display()))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.trim().lines().last().unwrap_or_default();
    Err(if said.is_empty() { format!("bwrap: ended with {}", output.status) } else { said.to_owned() })
}

fn cause() -> &'static str {
    let setting = |name: &str| std::fs::read_to_string(Path::new("/proc/sys").join(name)).unwrap_or_default();
    if setting("kernel/apparmor_restrict_unprivileged_userns").trim() == "1" {
        " (AppArmor restricts user namespaces: an AppArmor profile for bwrap, or sysctl \
         kernel.apparmor_restrict_unprivileged_userns=0, permits them)"
    } else if setting("kernel/unprivileged_userns_clone").trim() == "0" {
        " (user namespaces are off: sysctl kernel.unprivileged_userns_clone=1 permits them)"
    } else if setting("user/max_user_namespaces").trim() == "0" {
        " (user namespaces are off: sysctl user.max_user_namespaces is 0)"
    } else {
        ""
    }
}

/// The whole command line: bubblewrap, and inside it the supervisor at `executable`.
pub(crate) fn arguments(program: &Path, confinement: &Confinement, executable: &Path) -> Vec<OsString> {
    let mut arguments: Vec<OsString> = vec![program.into()];
    // Where none works the start will fail and say why.
    let flags = probe(program).unwrap_or_else(|_| BASE.to_vec());
    arguments.extend(flags.into_iter().map(OsString::from));
    if !confinement.network {
        arguments.push(NO_NETWORK.into());
    }
    let empty = empty_file(&confinement.private_tmp);
    let mut add = |parts: &[&Path]| arguments.extend(parts.iter().map(OsString::from));
    let ro_bind = Path::new("--ro-bind");
    add(&[ro_bind, Path::new("/"), Path::new("/")]);
    add(&[Path::new("--dev"), Path::new("/dev")]);
    add(&[Path::new("--proc"), Path::new("/proc")]);
    for path in machine() {
        add(&[ro_bind, &path, &path]);
    }
    for mount in mounts(confinement) {
        match &mount.what {
            What::Writable(source) => add(&[Path::new("--bind"), source, &mount.path]),
            What::ReadOnly(source) => add(&[ro_bind, source, &mount.path]),
            What::Nothing | What::Fresh if mount.path.is_dir() => add(&[Path::new("--tmpfs"), &mount.path]),
            What::Nothing if empty.is_some() && mount.path.is_file() => {
                add(&[ro_bind, empty.as_deref().unwrap_or(Path::new("/dev/null")), &mount.path]);
            }
            // A socket; or a file, which then cannot be opened at all.
            What::Nothing | What::Fresh => add(&[ro_bind, Path::new("/dev/null"), &mount.path]),
        }
    }
    add(&[ro_bind, executable, Path::new(SUPERVISOR)]);
    // Nothing is put into what covers, in the end.
    for mount in mounts(confinement) {
        if mount.what == What::Nothing && mount.path.is_dir() {
            add(&[Path::new("--remount-ro"), &mount.path]);
        }
    }
    add(&[Path::new("--chdir"), Path::new("/"), Path::new("--"), Path::new(SUPERVISOR), Path::new(ARGUMENT)]);
    arguments
}

/// Parts of a fresh `/proc` that are the machine's and not a process's. Root owns them, inside a user namespace too:
/// without capabilities it could still write to `/proc/sys/kernel/core_pattern` (bubblewrap 0.8 leaves that open).
fn machine() -> Vec<PathBuf> {
    let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let mut paths: Vec<PathBuf> = entries
        .filter(|entry| !entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter(|entry| {
            entry.metadata().is_ok_and(|metadata| {
                metadata.is_dir() || (metadata.is_file() && metadata.permissions().mode() & 0o222 != 0)
            })
        })
        .map(|entry| entry.path())
        .collect();
    paths.sort();
    paths
}

#[derive(Debug, PartialEq, Eq)]
enum What {
    Writable(PathBuf),
    ReadOnly(PathBuf),
    /// Covered by emptiness.
    Nothing,
    /// The same, and writable as long as the command runs.
    Fresh,
}

#[derive(Debug)]
struct Mount {
    path: PathBuf,
    what: What,
}

/// All mounts over the read-only root, a directory before what lies in it: so the deeper rule wins, and of two rules
/// for the same place the later one in this list.
fn mounts(confinement: &Confinement) -> Vec<Mount> {
    let Confinement { work_dir, read_only, hidden, private_tmp, caches, network, .. } = confinement;
    let mut mounts = Vec::new();
    let mut mount = |path: &Path, what: What| mounts.push(Mount { path: path.to_owned(), what });
    for covered in ["/run", "/var/run"] {
        let covered = Path::new(covered);
        // Daemons listen there; a read-only mount does not keep anyone from connecting.
        if covered.is_dir() && !covered.is_symlink() {
            mount(covered, What::Nothing);
        }
    }
    let resolver = Path::new("/etc/resolv.conf").canonicalize().ok().filter(|_| *network);
    let needed = RUN.iter().map(PathBuf::from).chain(resolver);
    for path in needed.filter(|path| path.starts_with("/run") && path.exists()) {
        mount(&path, What::ReadOnly(path.clone()));
    }
    for temporary in ["/tmp", "/var/tmp"] {
        let temporary = Path::new(temporary);
        if temporary.is_dir() && !temporary.is_symlink() {
            mount(temporary, What::Writable(private_tmp.clone()));
        }
    }
    let own = [work_dir, caches, private_tmp];
    for path in hidden {
        // What a command needs stays: a cover of a directory above it comes first, one of itself not at all. Where
        // something else is mounted over it anyway it needs no cover, whose place would tell its name.
        let is_gone =
            REPLACED.iter().any(|replaced| path.starts_with(replaced)) && !own.iter().any(|own| path.starts_with(own));
        if !own.contains(&path) && !is_gone {
            mount(path, What::Nothing);
        }
    }
    for path in listeners(&own) {
        mount(&path, What::Nothing);
    }
    for path in own {
        mount(path, What::Writable(path.clone()));
    }
    for path in read_only {
        mount(path, What::ReadOnly(path.clone()));
    }
    for (path, what) in cargo(confinement) {
        mount(&path, what);
    }
    // Stable: rules for the same depth stay in the order above.
    mounts.sort_by_key(|mount| mount.path.components().count());
    mounts
}

/// The unix sockets that someone listens on outside of what is covered anyway. Most talk to a daemon with more rights.
fn listeners(own: &[&PathBuf]) -> Vec<PathBuf> {
    let table = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut found: Vec<PathBuf> = table
        .lines()
        // The last column; sockets without a file have none, or one that starts with `@`.
        .filter_map(|line| line.find(" /").map(|before| &line[before + 1..]))
        .filter_map(|path| Path::new(path).canonicalize().ok())
        .filter(|path| !REPLACED.iter().any(|replaced| path.starts_with(replaced)))
        .filter(|path| !own.iter().any(|own| path.starts_with(own)))
        .filter(|path| path.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_socket()))
        .collect();
    found.sort();
    found.dedup();
    found
}

/// A `CARGO_HOME` for one command: (where, what). What was downloaded and unpacked stays; anything else would be
/// settings (`config.toml` names a program that runs the tests) and tools, and those are the user's or none. Without a
/// network the user's registry is there, too.
fn cargo(confinement: &Confinement) -> Vec<(PathBuf, What)> {
    let private = confinement.caches.join("cargo");
    let home = user_cargo_home().filter(|home| *home != private);
    if !make_real_directory(&private) {
        return Vec::new();
    }
    let mut parts = vec![(private.clone(), What::Fresh)];
    for stays in ["registry", "git"].map(|part| private.join(part)) {
        if make_real_directory(&stays) {
            parts.push((stays.clone(), What::Writable(stays)));
        }
    }
    // Cargo's lock over them.
    let lock = private.join(".package-cache");
    if make_real_file(&lock) {
        parts.push((lock.clone(), What::Writable(lock)));
    }
    let Some(home) = home else { return parts };
    let mut shared = vec!["bin", "config.toml", "config"];
    if !confinement.network {
        // The sources stay private and writable: cargo unpacks there what lies packed in the user's cache.
        shared.extend(["registry/index", "registry/cache", "git"]);
    }
    for part in shared {
        let (place, source) = (private.join(part), home.join(part));
        // In the registry Landlock leaves links; nothing is mounted over a link.
        if part.starts_with("registry/") && place.is_symlink() {
            let _ = std::fs::remove_file(&place);
        }
        if source.exists() {
            parts.push((place, What::ReadOnly(source)));
        }
    }
    parts
}

/// Where the user's cargo has its files.
pub(crate) fn user_cargo_home() -> Option<PathBuf> {
    let named = std::env::var_os("CARGO_HOME").filter(|home| !home.is_empty()).map(PathBuf::from);
    let home = named.or_else(|| std::env::var_os("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    home.canonicalize().ok().filter(|home| home.is_dir())
}

/// Makes a directory in the caches; a command may have left a link or a file there, which gives way.
fn make_real_directory(path: &Path) -> bool {
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_dir()) {
        let _ = std::fs::remove_file(path);
    }
    path.is_dir() || std::fs::create_dir(path).is_ok()
}

/// The same for an empty file.
fn make_real_file(path: &Path) -> bool {
    if path.symlink_metadata().is_ok_and(|metadata| !metadata.is_file()) {
        let _ = std::fs::remove_file(path).or_else(|_| std::fs::remove_dir_all(path));
    }
    std::fs::OpenOptions::new().create(true).append(true).open(path).is_ok()
}

/// An empty file where no command can write.
fn empty_file(private_tmp: &Path) -> Option<PathBuf> {
    let path = beside(private_tmp, "empty");
    make_real_file(&path).then_some(path)
}
