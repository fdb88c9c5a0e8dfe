//! Where iudex keeps its state, its configuration and its caches (the XDG base directories).
//!
//! Never: a place inside the user's project.

use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use etcetera::base_strategy::{BaseStrategy, Xdg};

use crate::refusal::Refusal;

/// The places of iudex on this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Paths {
    /// Ledger, snapshots, trust, sessions: `$XDG_STATE_HOME/iudex`, else `~/.local/state/iudex`.
    pub state: PathBuf,
    /// The user's configuration file: `$XDG_CONFIG_HOME/iudex/config.toml`, else `~/.config/iudex/config.toml`.
    pub config: PathBuf,
    /// What can be built again: `$XDG_CACHE_HOME/iudex`, else `~/.cache/iudex`.
    pub cache: PathBuf,
    /// The home directory; the search for a project file never goes up to it.
    pub home: PathBuf,
}

impl Paths {
    /// The places that the environment names. Nothing is created.
    ///
    /// # Errors
    /// [`Refusal`] when `HOME` is missing or is not an absolute path.
    pub fn from_env() -> Result<Self, Refusal> {
        let home = std::env::var_os("HOME").map(PathBuf::from).filter(|home| home.is_absolute()).ok_or_else(|| {
            Refusal::usage(
                "HOME is not set to an absolute path, so there is no place for state and configuration",
                "set it, for example: export HOME=/home/you",
            )
        })?;
        let base = Xdg::new().map_err(|error| Refusal::usage(error.to_string(), "set HOME to an absolute path"))?;
        let state = base.state_dir().unwrap_or_else(|| home.join(".local/state"));
        Ok(Self {
            state: state.join("iudex"),
            config: base.config_dir().join("iudex").join("config.toml"),
            cache: base.cache_dir().join("iudex"),
            home,
        })
    }

    /// All places below one directory, for tests.
    pub fn below(root: &Path) -> Self {
        Self {
            state: root.join("state"),
            config: root.join("config").join("config.toml"),
            cache: root.join("cache"),
            home: root.join("home"),
        }
    }
}

/// Creates a directory and its missing parents for the user alone (0700); one that is there is made so.
///
/// # Errors
/// [`Refusal`] with the path and what the system said.
pub fn create_private(directory: &Path) -> Result<(), Refusal> {
    let refuse = |doing: &str, error: &std::io::Error| {
        Refusal::usage(
            format!("cannot {doing} {}: {error}", directory.display()),
            "make the place writable for you, or choose another with XDG_STATE_HOME and XDG_CACHE_HOME",
        )
    };
    DirBuilder::new().recursive(true).mode(0o700).create(directory).map_err(|error| refuse("create", &error))?;
    let mode = fs::metadata(directory).map_err(|error| refuse("read", &error))?.permissions().mode();
    if mode & 0o077 != 0 {
        fs::set_permissions(directory, Permissions::from_mode(0o700))
            .map_err(|error| refuse("make private", &error))?;
    }
    Ok(())
}
