//! Names of directories that are not the project's own work. Never: a judgement by anything but the name.

use std::ffi::OsStr;

/// What test runners, compilers and package managers write on every run.
const CACHES: [&str; 9] = [
    "__pycache__",
    ".pytest_cache",
    ".mypy_cache",
    ".ruff_cache",
    "node_modules",
    ".venv",
    ".tox",
    ".nyc_output",
    ".gradle",
];

/// Build output and somebody else's code besides.
const FOREIGN: [&str; 6] = ["target", "venv", "dist", "build", "site-packages", "vendor"];

/// A change in it is no progress of the work.
pub(crate) fn is_cache(name: &OsStr) -> bool {
    CACHES.iter().any(|cache| name == *cache)
}

/// Nobody need read it to know the project.
pub(crate) fn is_foreign(name: &OsStr) -> bool {
    is_cache(name) || FOREIGN.iter().any(|foreign| name == *foreign)
}
