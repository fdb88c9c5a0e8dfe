//! The environment that a command gets: that of this process without what a stranger's command must not have.
//!
//! Never: a provider key, an agent socket, a variable that makes bash or git do something that was not asked for.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// The environment of this process for a child: without `GIT_*`, without provider keys and other secret-looking names
/// (`*_API_KEY`, `*TOKEN*`, `*SECRET*`, `*PASSWORD*`, …), without agent sockets, and with the private caches named
/// (`XDG_CACHE_HOME`, `GOCACHE`, `npm_config_cache`, `PIP_CACHE_DIR`, `CARGO_HOME`, …) below `caches`.
pub fn child_environment(caches: &Path) -> Vec<(OsString, OsString)> {
    child_environment_without(caches, &[])
}

/// As [`child_environment`], also without the variables named in `secrets` (the configured key variables, whatever
/// they are called).
pub fn child_environment_without(caches: &Path, secrets: &[&str]) -> Vec<(OsString, OsString)> {
    child_environment_from(std::env::vars_os(), caches, secrets)
}

/// As [`child_environment_without`], from the given variables. Sorted by name, each name once.
pub(crate) fn child_environment_from(
    variables: impl IntoIterator<Item = (OsString, OsString)>,
    caches: &Path,
    secrets: &[&str],
) -> Vec<(OsString, OsString)> {
    let mut environment: BTreeMap<OsString, OsString> = variables
        .into_iter()
        .filter(|(name, _)| is_passed_on(name) && !secrets.iter().any(|secret| OsStr::new(secret) == name))
        .collect();
    for (name, value) in SET {
        environment.insert((*name).into(), (*value).into());
    }
    for (name, directory) in CACHES {
        environment.insert((*name).into(), caches.join(directory).into_os_string());
    }
    environment.into_iter().collect()
}

/// The names of these variables that no command gets because they look like secrets, sorted. A check may need one
/// (`DJANGO_SECRET_KEY`): its user should be told.
pub fn withheld(variables: impl IntoIterator<Item = (OsString, OsString)>) -> Vec<String> {
    let names = variables.into_iter().filter_map(|(name, _)| name.into_string().ok());
    let mut names: Vec<String> = names.filter(|name| !is_dropped(name) && is_secret(name)).collect();
    names.sort();
    names.dedup();
    names
}

/// PATH without relative entries and without those at or below `directory`: an agent may write there, and what iudex
/// itself runs, outside the sandbox, must not come from its hands (an activated virtual environment is such an entry).
pub fn path_outside(directory: &Path) -> OsString {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let is_outside =
        |entry: &PathBuf| entry.is_absolute() && entry.canonicalize().is_ok_and(|entry| !entry.starts_with(&directory));
    std::env::join_paths(std::env::split_paths(&path).filter(is_outside)).unwrap_or_default()
}

/// No prompt, no pager, no lock for a mere look, no colour in what is parsed later.
const SET: &[(&str, &str)] = &[
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_OPTIONAL_LOCKS", "0"),
    ("GIT_PAGER", "cat"),
    ("PAGER", "cat"),
    ("TERM", "dumb"),
    ("NO_COLOR", "1"),
    ("PIP_DISABLE_PIP_VERSION_CHECK", "1"),
    ("npm_config_update_notifier", "false"),
];

/// The variable and its directory below the private caches.
const CACHES: &[(&str, &str)] = &[
    ("XDG_CACHE_HOME", "xdg"),
    ("GOCACHE", "go-build"),
    ("npm_config_cache", "npm"),
    ("YARN_CACHE_FOLDER", "yarn"),
    ("PIP_CACHE_DIR", "pip"),
    ("UV_CACHE_DIR", "uv"),
    ("CARGO_HOME", "cargo"),
];

/// Names that are dropped as they are.
const DROPPED: &[&str] = &[
    // They make bash run or read something first, or change what a script means (`SHELLOPTS=noexec` passes every check).
    "BASH_ENV",
    "ENV",
    "PROMPT_COMMAND",
    "SHELLOPTS",
    "BASHOPTS",
    "BASH_XTRACEFD",
    "CDPATH",
    "GLOBIGNORE",
    "PS4",
    // Code in every process.
    "LD_PRELOAD",
    "LD_AUDIT",
    // Ways to programs that act with the user's rights, outside of any sandbox.
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "GPG_AGENT_INFO",
    "GNOME_KEYRING_CONTROL",
    "DBUS_SESSION_BUS_ADDRESS",
    "DBUS_SYSTEM_BUS_ADDRESS",
    "DOCKER_HOST",
    "CONTAINER_HOST",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "XDG_RUNTIME_DIR",
    // They ask for colour against `NO_COLOR`.
    "FORCE_COLOR",
    "CLICOLOR_FORCE",
    "CARGO_TERM_COLOR",
];

/// Parts of a name, in upper case, that mark a secret.
const SECRET_PARTS: &[&str] = &[
    "APIKEY",
    "API_KEY",
    "ACCESS_KEY",
    "PRIVATE_KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
];

/// Ends of a name, in upper case, that mark a secret.
const SECRET_ENDS: &[&str] = &["_KEY", "_PAT", "_PASS", "_PWD"];

fn is_passed_on(name: &OsStr) -> bool {
    // A name that is not text is none that a build needs, and it cannot be judged.
    let Some(name) = name.to_str() else { return false };
    !is_dropped(name) && !is_secret(name)
}

fn is_dropped(name: &str) -> bool {
    name.to_ascii_uppercase().starts_with("GIT_") || name.starts_with("BASH_FUNC_") || DROPPED.contains(&name)
}

fn is_secret(name: &str) -> bool {
    // A number of tokens, or a tokenizer, is no secret.
    let upper = name.to_ascii_uppercase().replace("TOKENIZER", "").replace("TOKENS", "");
    SECRET_PARTS.iter().any(|part| upper.contains(part)) || SECRET_ENDS.iter().any(|end| upper.ends_with(end))
}

#[cfg(test)]
mod tests;
