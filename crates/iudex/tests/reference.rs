//! The generated reference is what the program prints.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::process::Command;

#[track_caller]
fn is_current(page: &str, file: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_iudex")).args(["reference", page]).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference").join(file);
    let kept = std::fs::read_to_string(&path).unwrap();
    let printed = String::from_utf8(output.stdout).unwrap();
    assert!(kept == printed, "docs/reference/{file} is stale: iudex reference {page} > docs/reference/{file}");
}

#[test]
fn the_command_line_reference_is_current() {
    is_current("cli", "cli.md");
}

#[test]
fn the_configuration_reference_is_current() {
    is_current("configuration", "configuration.md");
}
