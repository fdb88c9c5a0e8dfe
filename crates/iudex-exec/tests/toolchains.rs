//! What people's checks use works inside.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare itself fails")]

mod common;

use common::{Place, assert_passed, run, sandboxes};

fn has(program: &str) -> bool {
    let found = std::process::Command::new("sh").args(["-c", &format!("command -v {program}")]).output();
    let found = found.is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("SKIPPED: no {program} here");
    }
    found
}

#[test]
fn cargo_test_of_a_project_without_dependencies() {
    for backend in sandboxes() {
        let place = Place::new();
        std::fs::create_dir(place.work.join("src")).unwrap();
        std::fs::write(
            place.work.join("Cargo.toml"),
            "[package]\nname = \"sample\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        )
        .unwrap();
        std::fs::write(place.work.join("src/lib.rs"), "#[test]\nfn works() {}\n").unwrap();
        let mut spec = place.spec(&backend, "cargo test --lib");
        // Of the cargo that runs this test, not of a project.
        spec.env.retain(|(name, _)| !name.to_string_lossy().starts_with("CARGO") || name == "CARGO_HOME");
        let finished = run(spec).unwrap();
        assert_passed(&finished, backend.word());
        assert!(finished.output.text().contains("1 passed"), "{}", finished.output.text());
    }
}

#[test]
fn python_with_its_unit_tests() {
    for backend in sandboxes().into_iter().filter(|_| has("python3")) {
        let place = Place::new();
        let test = "import tempfile, unittest\nclass T(unittest.TestCase):\n def test_it(self):\n  \
                    with tempfile.TemporaryFile() as f: f.write(b'x')\n";
        std::fs::write(place.work.join("test_it.py"), test).unwrap();
        assert_passed(&place.run(&backend, "python3 -m unittest"), backend.word());
    }
}

#[test]
fn node_with_its_test_runner() {
    for backend in sandboxes().into_iter().filter(|_| has("node")) {
        let place = Place::new();
        let test = "const test = require('node:test'); test('it', () => {});";
        std::fs::write(place.work.join("it.test.js"), test).unwrap();
        assert_passed(&place.run(&backend, "node --test"), backend.word());
    }
}

#[test]
fn git_shows_a_repository_that_it_cannot_change() {
    for backend in sandboxes() {
        let place = Place::elsewhere();
        std::fs::remove_dir_all(place.work.join(".git")).unwrap();
        let prepared = std::process::Command::new("sh")
            .arg("-c")
            .arg("git init -q . && echo a > f && git add f && git -c user.name=n -c user.email=e commit -qm m && echo b > f")
            .current_dir(&place.work)
            .status();
        assert!(prepared.unwrap().success());
        let finished = place.run(&backend, "git status --short && git log --oneline | wc -l && git diff --stat");
        assert_passed(&finished, backend.word());
        assert!(finished.output.text().starts_with(" M f\n1\n"), "{}", finished.output.text());
        let before = std::fs::read(place.work.join(".git/index")).unwrap();
        let finished =
            place.run(&backend, "git -c user.name=n -c user.email=e commit -qam evil; git config evil.key 1; true");
        assert_eq!(std::fs::read(place.work.join(".git/index")).unwrap(), before, "{backend:?}");
        let log =
            std::process::Command::new("git").args(["log", "--oneline"]).current_dir(&place.work).output().unwrap();
        assert_eq!(String::from_utf8_lossy(&log.stdout).lines().count(), 1, "{}", finished.output.text());
        assert!(!std::fs::read_to_string(place.work.join(".git/config")).unwrap().contains("evil"));
    }
}
