//! What `iudex init` writes, and what it guesses.

use std::fs;
use std::path::Path;

use super::{guess_check, init, template};
use crate::config::{Config, Overrides, Source};
use crate::paths::Paths;
use crate::trust::Standing;

/// Name, files, the command that is guessed.
type Case<'a> = (&'a str, &'a [(&'a str, &'a str)], Option<&'a str>);

fn put(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let file = folder.join(name);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }
}

#[test]
fn the_check_is_guessed_from_what_is_there() {
    let npm_default = r#"{"scripts": {"test": "echo \"Error: no test specified\" && exit 1"}}"#;
    let cases: [Case<'_>; 19] = [
        ("nothing", &[], None),
        ("cargo", &[("Cargo.toml", ""), ("Makefile", "test:\n\ttrue\n")], Some("cargo test")),
        ("npm", &[("package.json", r#"{"scripts": {"test": "node --test"}}"#)], Some("npm test")),
        ("npm placeholder", &[("package.json", npm_default)], None),
        ("npm without script", &[("package.json", "{}"), ("Makefile", "test:\n")], Some("make test")),
        ("npm broken", &[("package.json", "{")], None),
        ("pytest.ini", &[("pytest.ini", "")], Some("python3 -m pytest -q")),
        ("pyproject", &[("pyproject.toml", "[tool.pytest.ini_options]\n")], Some("python3 -m pytest -q")),
        ("pyproject alone", &[("pyproject.toml", "[project]\n")], None),
        ("pytest style", &[("tests/test_a.py", "def test_a():\n    assert True\n")], Some("python3 -m pytest -q")),
        (
            "unittest style",
            &[("test_a.py", "import unittest\n\nclass A(unittest.TestCase):\n    def test_a(self): ...\n")],
            Some("python3 -m unittest"),
        ),
        (
            "unittest in a folder",
            &[("tests/test_a.py", "import unittest\n")],
            Some("python3 -m unittest discover -s tests"),
        ),
        (
            "unittest in a package",
            &[("tests/test_a.py", "import unittest\n"), ("tests/__init__.py", "")],
            Some("python3 -m unittest"),
        ),
        ("a script that is no test", &[("tests/run.py", "import unittest\n")], None),
        ("go", &[("go.mod", "module x\n")], Some("go test ./...")),
        ("make", &[("Makefile", "all: x\n\nbuild test: all\n\ttrue\n")], Some("make test")),
        ("make variable", &[("Makefile", "test := x\n")], None),
        ("make comment", &[("Makefile", "# test: not yet\n")], None),
        ("make recipe", &[("Makefile", "all:\n\techo test : x\n")], None),
    ];
    for (name, files, expected) in cases {
        let folder = tempfile::tempdir().unwrap();
        put(folder.path(), files);
        assert_eq!(guess_check(folder.path()).map(|guess| guess.command).as_deref(), expected, "{name}");
    }
}

#[test]
fn the_written_file_loads_and_is_trusted_and_is_never_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    put(&project, &[("Cargo.toml", "")]);
    let paths = Paths::below(folder.path());

    let written = init(&project, &paths, false).unwrap();
    assert_eq!(written.check.unwrap().command, "cargo test");
    let config = Config::load(&project, &Overrides::default(), &paths).unwrap();
    assert_eq!(config.gates.check.value, ["cargo test"]);
    assert!(matches!(config.gates.check.source, Source::Project { .. }));
    assert_eq!(config.project.unwrap().standing, Standing::Trusted);

    fs::write(&written.path, "# mine\n").unwrap();
    let refusal = init(&project, &paths, false).unwrap_err();
    assert!(refusal.message.ends_with("is there already and was left as it is"), "{}", refusal.message);
    assert_eq!(fs::read_to_string(&written.path).unwrap(), "# mine\n");
    init(&project, &paths, true).unwrap();
    assert_ne!(fs::read_to_string(&written.path).unwrap(), "# mine\n");
}

#[test]
fn a_link_in_the_place_of_the_file_is_not_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    put(folder.path(), &[("victim", "safe"), ("project/x", "")]);
    std::os::unix::fs::symlink(folder.path().join("victim"), project.join("iudex.toml")).unwrap();
    assert!(init(&project, &Paths::below(folder.path()), false).is_err());
    init(&project, &Paths::below(folder.path()), true).unwrap();
    assert_eq!(fs::read_to_string(folder.path().join("victim")).unwrap(), "safe");
}

#[test]
fn every_commented_line_of_the_file_is_a_valid_setting() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    let lines: Vec<String> = template(None)
        .lines()
        .map(|line| match line.strip_prefix("# ") {
            Some(rest) if rest.split_once(" = ").is_some_and(|(key, _)| !key.contains(' ')) => rest.to_owned(),
            _ => line.to_owned(),
        })
        .collect();
    put(&project, &[("iudex.toml", &lines.join("\n")), ("ca.pem", "")]);
    let paths = Paths::below(folder.path());
    crate::trust::plan(&project, &paths).unwrap().record(&paths).unwrap();
    let config = Config::load(&project, &Overrides::default(), &paths).unwrap();
    for line in crate::config::config_lines(&config) {
        // Every key stands in the template: none is left at its default.
        assert!(matches!(line.source, Source::Project { .. }), "{} is not in the template", line.key);
    }
}

#[test]
fn a_file_name_cannot_write_into_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let project = folder.path().join("project");
    put(&project, &[("test_a\n[run]\nnet = true\n#_test.py", "def test_a(): ...\n")]);
    let paths = Paths::below(folder.path());
    init(&project, &paths, false).unwrap();
    assert!(!Config::load(&project, &Overrides::default(), &paths).unwrap().run.net.value);
}
