//! Guesses the check of a project from its files.
//!
//! Never: runs anything. A guess is a line in a file that the user reads.

use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::find::read_bounded;

/// What `npm init` writes into a package without tests; it always fails.
const NPM_PLACEHOLDER: &str = "no test specified";

/// The most Python test files that are looked into.
const MOST_FILES: usize = 200;

/// A check and why it was guessed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Guess {
    /// The command.
    pub command: String,
    /// The file, or the sign in it, that it was guessed from.
    pub because: String,
}

impl Guess {
    fn new(command: &str, because: impl Into<String>) -> Self {
        Self { command: command.to_owned(), because: because.into() }
    }
}

/// The check of the project in this directory, if its files tell one.
pub fn guess_check(directory: &Path) -> Option<Guess> {
    cargo(directory)
        .or_else(|| npm(directory))
        .or_else(|| python(directory))
        .or_else(|| go(directory))
        .or_else(|| make(directory))
}

fn text(file: &Path) -> Option<String> {
    let bytes = read_bounded(file).ok()?;
    Some(String::from_utf8_lossy(&bytes).into_owned())
}

fn cargo(directory: &Path) -> Option<Guess> {
    directory.join("Cargo.toml").is_file().then(|| Guess::new("cargo test", "Cargo.toml"))
}

fn go(directory: &Path) -> Option<Guess> {
    directory.join("go.mod").is_file().then(|| Guess::new("go test ./...", "go.mod"))
}

fn npm(directory: &Path) -> Option<Guess> {
    let package: serde_json::Value = serde_json::from_str(&text(&directory.join("package.json"))?).ok()?;
    let script = package.get("scripts")?.get("test")?.as_str()?;
    let is_real = !script.trim().is_empty() && !script.contains(NPM_PLACEHOLDER);
    is_real.then(|| Guess::new("npm test", "the test script of package.json"))
}

fn make(directory: &Path) -> Option<Guess> {
    // The order in which make looks for them.
    let name = ["GNUmakefile", "makefile", "Makefile"].into_iter().find(|name| directory.join(name).is_file())?;
    let has_target = text(&directory.join(name))?.lines().any(|line| match line.split_once(':') {
        Some((targets, rest)) if !line.starts_with(['\t', '#']) && !rest.starts_with('=') => {
            targets.split_whitespace().any(|target| target == "test")
        }
        _ => false,
    });
    has_target.then(|| Guess::new("make test", format!("the target test of {name}")))
}

fn python(directory: &Path) -> Option<Guess> {
    let pytest = "python3 -m pytest -q";
    for (file, sign) in [
        ("pytest.ini", ""),
        ("pyproject.toml", "[tool.pytest"),
        ("setup.cfg", "[tool:pytest]"),
        ("tox.ini", "[pytest]"),
        ("conftest.py", ""),
        ("tests/conftest.py", ""),
    ] {
        if text(&directory.join(file)).is_some_and(|text| text.contains(sign)) {
            return Some(Guess::new(pytest, file));
        }
    }
    let (in_root, in_tests) = (test_files(directory), test_files(&directory.join("tests")));
    let mut unittest = None;
    for file in in_root.iter().chain(&in_tests).take(MOST_FILES) {
        let Some(text) = text(file) else { continue };
        let name = file.strip_prefix(directory).unwrap_or(file).display().to_string();
        if text.contains("pytest") || text.lines().any(|line| line.starts_with("def test")) {
            return Some(Guess::new(pytest, name));
        }
        if text.contains("unittest") && unittest.is_none() {
            unittest = Some(name);
        }
    }
    // Discovery from the root enters `tests` only when it is a package.
    let needs_folder = in_root.is_empty() && !directory.join("tests/__init__.py").is_file();
    let command = if needs_folder { "python3 -m unittest discover -s tests" } else { "python3 -m unittest" };
    unittest.map(|name| Guess::new(command, name))
}

/// The Python test files of a folder, by name.
fn test_files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| is_test_file(path)).collect();
    files.sort();
    files
}

fn is_test_file(path: &Path) -> bool {
    let is_python = path.extension().is_some_and(|extension| extension == "py");
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    is_python && (stem.starts_with("test") || stem.ends_with("_test")) && path.is_file()
}
