//! Where people's programs keep secrets in files.
//!
//! Never: a place that a build needs, such as `~/.gitconfig` or the whole of `~/.cargo`.

use std::path::{Path, PathBuf};

/// Below the home directory.
const PLACES: &[&str] = &[
    // Keys and passwords.
    ".ssh",
    ".gnupg",
    ".netrc",
    ".git-credentials",
    ".password-store",
    ".local/share/keyrings",
    ".vault-token",
    ".pgpass",
    ".my.cnf",
    // Clouds and machines.
    ".aws",
    ".azure",
    ".config/gcloud",
    ".kube",
    ".docker/config.json",
    ".config/containers/auth.json",
    ".config/rclone",
    ".terraform.d/credentials.tfrc.json",
    // Forges and registries.
    ".config/gh",
    ".config/glab-cli",
    ".config/hub",
    ".config/git/credentials",
    ".cargo/credentials",
    ".cargo/credentials.toml",
    ".npmrc",
    ".pypirc",
    ".gem/credentials",
    // Model providers.
    ".codex",
    ".claude",
    ".claude.json",
    ".claude.json.backup",
    ".gemini",
    ".local/share/opencode/auth.json",
    // Browsers.
    ".mozilla",
    ".config/google-chrome",
    ".config/chromium",
];

/// The files and directories with secrets that are there below this home directory, and cargo's wherever it is. Hide
/// them from commands ([`crate::Confinement::hidden`]).
pub fn secret_places(home: &Path) -> Vec<PathBuf> {
    let of_cargo = crate::bubblewrap::user_cargo_home().into_iter();
    let of_cargo = of_cargo.flat_map(|home| ["credentials", "credentials.toml"].map(|name| home.join(name)));
    let mut places: Vec<PathBuf> =
        PLACES.iter().map(|place| home.join(place)).chain(of_cargo).filter(|place| place.exists()).collect();
    places.sort();
    places.dedup();
    places
}
