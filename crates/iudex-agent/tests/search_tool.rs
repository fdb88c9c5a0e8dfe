//! `search` over real directories.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::os::unix::fs::symlink;

use common::Place;
use serde_json::json;

mod common;

fn project() -> Place {
    let place = Place::new();
    place.put("src/main.rs", "fn main() {\n    Greet();\n}\n");
    place.put("src/greet.rs", "pub fn Greet() {}\n");
    place.put(".github/ci.yml", "run: greet\n");
    place.put("docs/notes.md", "greet people\n");
    place.put(".gitignore", "target/\n*.tmp\n");
    place.put("target/greet.rs", "greet\n");
    place.put("x.tmp", "greet\n");
    place.put(".git/greet", "greet\n");
    place.put("image.png", b"greet\0greet\n");
    place
}

#[tokio::test]
async fn contents_and_names_are_found_and_ignored_files_are_not() {
    let place = project();
    let result = place.call("search", json!({"pattern": "greet"})).await;
    assert!(result.ok && !result.may_have_changed);
    assert_eq!(
        result.text,
        "File names:\nsrc/greet.rs\nLines:\n.github/ci.yml:1: run: greet\ndocs/notes.md:1: greet people\n\
         src/greet.rs:1: pub fn Greet() {}\nsrc/main.rs:2:     Greet();"
    );
}

#[tokio::test]
async fn gitignore_counts_in_a_repository_and_only_up_to_its_root() {
    let place = project();
    std::fs::write(place.beside(".gitignore"), "*\n").unwrap();
    for in_repository in [false, true] {
        if in_repository {
            std::fs::remove_file(place.dir().join(".git/greet")).unwrap();
            std::fs::remove_dir(place.dir().join(".git")).unwrap();
            assert!(
                std::process::Command::new("git")
                    .args(["init", "-q"])
                    .current_dir(place.dir())
                    .status()
                    .unwrap()
                    .success()
            );
        }
        let result = place.call("search", json!({"pattern": "greet", "path": "src"})).await;
        assert!(result.text.contains("src/main.rs:2:"), "repository: {in_repository}: {}", result.text);
        let result = place.call("search", json!({"pattern": "greet"})).await;
        assert!(!result.text.contains("target") && !result.text.contains("x.tmp"), "{}", result.text);
    }
}

#[tokio::test]
async fn path_glob_and_case_narrow_the_search() {
    let place = project();
    let cases = [
        (json!({"pattern": "greet", "glob": "*.md"}), "docs/notes.md:1: greet people"),
        (json!({"pattern": "greet", "path": "docs"}), "docs/notes.md:1: greet people"),
        (json!({"pattern": "greet", "path": "docs/notes.md"}), "docs/notes.md:1: greet people"),
        (json!({"pattern": "Greet\\(\\);"}), "src/main.rs:2:     Greet();"),
        (
            json!({"pattern": "greet", "glob": "!*.rs", "path": "docs"}),
            "No file matches the glob in docs (ignored files are not searched).",
        ),
        (json!({"pattern": "absent"}), "No line and no file name matches absent (ignored files are not searched)."),
        (
            json!({"pattern": "Greet("}),
            "The pattern is no valid regular expression; it was searched for as plain text.\n\
             src/greet.rs:1: pub fn Greet() {}\nsrc/main.rs:2:     Greet();",
        ),
        // A glob cannot bring back what is ignored.
        (json!({"pattern": "greet", "glob": "*.tmp"}), "No file matches the glob (ignored files are not searched)."),
    ];
    for (arguments, text) in cases {
        let result = place.call("search", arguments.clone()).await;
        assert_eq!((result.ok, result.text.as_str()), (true, text), "{arguments}");
    }
    for arguments in [
        json!({"pattern": ""}),
        json!({}),
        json!({"pattern": 1}),
        json!({"pattern": "x", "path": "nowhere"}),
        json!({"pattern": "x", "glob": "[a"}),
    ] {
        let result = place.call("search", arguments.clone()).await;
        assert!(!result.ok, "{arguments}: {}", result.text);
    }
}

#[tokio::test]
async fn links_are_not_followed_and_results_are_bounded() {
    let place = Place::new();
    std::fs::write(place.beside("secret"), "needle\n").unwrap();
    symlink(place.beside("secret"), place.dir().join("link")).unwrap();
    symlink(".", place.dir().join("circle")).unwrap();
    place.put("many", "needle in a line\n".repeat(100_000));
    place.put("long", format!("{}needle{}", "x".repeat(1_000_000), "y".repeat(1_000_000)));
    let result = place.call("search", json!({"pattern": "needle"})).await;
    assert!(result.text.len() <= 8_000, "{}", result.text.len());
    assert!(!result.text.contains("link") && !result.text.contains("circle"), "{}", result.text);
    assert!(result.text.contains("xneedley"), "the match in a long line is shown: {}", result.text);
    assert!(result.text.ends_with("[there are more; narrow the pattern, path or glob]"), "{}", result.text);
}

#[tokio::test]
async fn what_could_not_be_searched_is_said() {
    let place = Place::new();
    place.put("a", "needle\n");
    // A hole of one line without end, longer than what is held in memory, behind a text.
    place.put("b", "text\n");
    let file = std::fs::OpenOptions::new().append(true).open(place.dir().join("b")).unwrap();
    for _ in 0..20 {
        std::io::Write::write_all(&mut &file, "x".repeat(1 << 20).as_bytes()).unwrap();
    }
    let result = place.call("search", json!({"pattern": "needle"})).await;
    assert_eq!(result.text, "a:1: needle\n[1 file could not be searched to the end]");
}

#[tokio::test]
async fn crlf_and_utf_16_files_are_searched() {
    let place = Place::new();
    place.put("crlf", "one\r\nneedle\r\n");
    place.put("lf", "needle\n");
    place.put("wide", b"\xff\xfen\0e\0e\0d\0l\0e\0\n\0");
    let result = place.call("search", json!({"pattern": "needle$"})).await;
    assert_eq!(result.text, "crlf:2: needle\nlf:1: needle\nwide:1: needle");
}
