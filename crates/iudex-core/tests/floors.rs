//! The house: which crate may import which, how long a file may be, and that the core does no I/O.
#![expect(clippy::unwrap_used, reason = "a test stops where something is missing")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use toml::{Table, Value};

/// The table of the design: a crate imports only from lower floors. A new crate must be entered here.
const FLOORS: [(&str, u32); 9] = [
    ("iudex-core", 0),
    ("iudex-exec", 1),
    ("iudex-model", 1),
    ("iudex-repo", 2),
    ("iudex-agent", 3),
    ("iudex-ledger", 3),
    ("iudex-gate", 4),
    ("iudex-app", 5),
    ("iudex", 7),
];

/// Outside the house: for tests, never in a release build.
const TESTKIT: &str = "iudex-testkit";

/// No file is longer.
const MOST_LINES: usize = 600;

fn crates() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

fn floor(name: &str) -> Option<u32> {
    FLOORS.iter().find(|(known, _)| *known == name).map(|(_, floor)| *floor)
}

/// The crates of this workspace that a manifest imports for more than its tests.
fn imports(manifest: &Table) -> Vec<String> {
    let mut tables: Vec<&Table> = Vec::new();
    let targets = manifest.get("target").and_then(Value::as_table);
    let targets = targets.into_iter().flat_map(Table::values).filter_map(Value::as_table);
    for section in std::iter::once(manifest).chain(targets) {
        for kind in ["dependencies", "build-dependencies"] {
            tables.extend(section.get(kind).and_then(Value::as_table));
        }
    }
    let name = |(key, value): (&String, &Value)| {
        value.get("package").and_then(Value::as_str).unwrap_or(key.as_str()).to_owned()
    };
    let names = tables.into_iter().flat_map(|table| table.iter().map(name));
    names.filter(|name| name == "iudex" || name.starts_with("iudex-")).collect()
}

/// What breaks the rule in one manifest.
fn faults(manifest: &str) -> Vec<String> {
    let manifest: Table = manifest.parse().unwrap();
    let name = manifest["package"]["name"].as_str().unwrap();
    if name == TESTKIT {
        return Vec::new();
    }
    let Some(own) = floor(name) else { return vec![format!("{name} has no floor: enter it in the table")] };
    let fault = |import: &String| match floor(import) {
        Some(lower) if lower < own => None,
        Some(other) => Some(format!("{name} on floor {own} imports {import} on floor {other}")),
        None => Some(format!("{name} imports {import}, which is in no release build")),
    };
    imports(&manifest).iter().filter_map(fault).collect()
}

#[test]
fn no_crate_imports_from_its_own_floor_or_above() {
    let mut seen = Vec::new();
    for entry in fs::read_dir(crates()).unwrap() {
        let Ok(manifest) = fs::read_to_string(entry.unwrap().path().join("Cargo.toml")) else { continue };
        assert_eq!(faults(&manifest), Vec::<String>::new());
        seen.push(manifest.parse::<Table>().unwrap()["package"]["name"].as_str().unwrap().to_owned());
    }
    for (name, _) in FLOORS {
        assert!(seen.iter().any(|other| other == name), "{name} is in the table and not in the workspace");
    }
}

#[test]
fn an_import_from_the_wrong_floor_is_seen_however_it_is_written() {
    let wrong = [
        "[dependencies]\niudex-agent.workspace = true",
        "[dependencies]\niudex-ledger = { path = \"../iudex-ledger\" }",
        "[build-dependencies]\niudex-app.workspace = true",
        "[target.'cfg(unix)'.dependencies]\niudex-gate.workspace = true",
        "[dependencies]\nhelper = { package = \"iudex\", path = \"../iudex\" }",
        "[dependencies]\niudex-testkit.workspace = true",
    ];
    for dependencies in wrong {
        let manifest = format!("[package]\nname = \"iudex-agent\"\n{dependencies}\n");
        assert_eq!(faults(&manifest).len(), 1, "{manifest}");
    }
    let right = "[dependencies]\niudex-repo.workspace = true\niudex-core.workspace = true\nserde = \"1\"\n\
                 [dev-dependencies]\niudex-testkit.workspace = true\n";
    assert_eq!(faults(&format!("[package]\nname = \"iudex-agent\"\n{right}")), Vec::<String>::new());
    assert_eq!(faults("[package]\nname = \"iudex-new\"\n").len(), 1, "a crate without a floor");
}

/// Every file beneath a directory with its text, where it is text.
fn texts(directory: &Path, found: &mut BTreeMap<PathBuf, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let kind = entry.file_type().unwrap();
        if kind.is_dir() && entry.file_name() != "target" {
            texts(&entry.path(), found);
        } else if kind.is_file()
            && let Ok(text) = fs::read_to_string(entry.path())
        {
            found.insert(entry.path(), text);
        }
    }
}

#[test]
fn no_file_is_longer_than_600_lines() {
    let mut files = BTreeMap::new();
    texts(&crates(), &mut files);
    assert!(files.len() > 30, "only {} files were found", files.len());
    let long: Vec<String> = files
        .iter()
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > MOST_LINES)
        .map(|(path, lines)| format!("{}: {lines} lines", path.display()))
        .collect();
    assert_eq!(long, Vec::<String>::new());
}

#[test]
fn every_module_opens_with_what_it_is_for() {
    let mut files = BTreeMap::new();
    texts(&crates(), &mut files);
    let is_module = |path: &Path| {
        // Tests are named by what broke, and files beneath a fixtures directory are data.
        let other = ["tests", "tests.rs", "fixtures"];
        path.extension().is_some_and(|end| end == "rs")
            && !path.components().any(|part| other.iter().any(|name| part.as_os_str() == *name))
    };
    let silent: Vec<&PathBuf> = files
        .iter()
        .filter(|(path, text)| is_module(path.strip_prefix(crates()).unwrap()) && !text.starts_with("//!"))
        .map(|(path, _)| path)
        .collect();
    assert_eq!(silent, Vec::<&PathBuf>::new());
}

/// I/O and time, as paths or as names that are imported.
const OUTSIDE: [&str; 18] = [
    "std::fs",
    "std::net",
    "std::process",
    "std::env",
    "std::io",
    "std::os",
    "std::thread",
    "std::time::Instant",
    "std::time::SystemTime",
    "std::{",
    "Instant::",
    "SystemTime",
    "tokio::time",
    "tokio::fs",
    "tokio::net",
    "tokio::process",
    "tokio::spawn",
    "println!",
];

#[test]
fn the_core_does_no_io_and_asks_no_clock() {
    let mut files = BTreeMap::new();
    texts(&crates().join("iudex-core/src"), &mut files);
    assert!(files.len() > 10, "only {} files were found", files.len());
    for (path, text) in &files {
        for (number, line) in text.lines().enumerate() {
            let code = line.trim_start();
            let found = OUTSIDE.iter().find(|outside| code.contains(**outside));
            assert!(code.starts_with("//") || found.is_none(), "{}:{}: {code}", path.display(), number + 1);
        }
    }
}
