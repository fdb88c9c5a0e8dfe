//! Every folder below `tests/edits` is one case: a file before, the arguments of `edit`, and the file after or what the
//! error says. A case is named for what would break.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::path::{Path, PathBuf};

use iudex_agent::ToolResult;
use serde_json::{Map, Value};

mod common;

fn cases() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/edits");
    let mut cases: Vec<PathBuf> =
        std::fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
    cases.sort();
    cases
}

async fn run(case: &Path) -> (ToolResult, Option<Vec<u8>>) {
    let place = common::Place::new();
    let file = place.dir().join("file.txt");
    if let Ok(before) = std::fs::read(case.join("before")) {
        std::fs::write(&file, before).unwrap();
    }
    let mut arguments: Map<String, Value> =
        serde_json::from_slice(&std::fs::read(case.join("edits.json")).unwrap()).unwrap();
    arguments.insert("path".to_owned(), "file.txt".into());
    let result = place.tools().call("edit", &arguments, &mut |_| {}).await;
    let left: Vec<_> = std::fs::read_dir(place.dir()).unwrap().collect();
    assert!(left.len() <= 1, "a temporary file was left in {}", place.dir().display());
    (result, std::fs::read(&file).ok())
}

fn problems(case: &Path, result: &ToolResult, now: Option<&Vec<u8>>) -> Vec<String> {
    let mut problems = Vec::new();
    let lines = |name: &str| {
        std::fs::read_to_string(case.join(name))
            .map(|text| text.lines().map(str::to_owned).collect())
            .unwrap_or_default()
    };
    let (errors, replies): (Vec<String>, Vec<String>) = (lines("error"), lines("reply"));
    for wanted in errors.iter().chain(&replies) {
        if !result.text.contains(wanted.as_str()) {
            problems.push(format!("the answer lacks {wanted:?}"));
        }
    }
    let is_error = case.join("error").exists();
    if result.ok == is_error || result.may_have_changed == is_error {
        problems.push(format!("ok is {}, may_have_changed is {}", result.ok, result.may_have_changed));
    }
    let wanted = std::fs::read(case.join(if is_error { "before" } else { "after" })).ok();
    if now != wanted.as_ref() {
        let show = |bytes: Option<&Vec<u8>>| bytes.map(|bytes| bytes.escape_ascii().to_string());
        problems.push(format!("the file is   {:?}\nand should be {:?}", show(now), show(wanted.as_ref())));
    }
    problems
}

#[tokio::test]
async fn every_case_has_its_effect_and_no_other() {
    let mut wrong = Vec::new();
    let cases = cases();
    assert!(cases.len() >= 50, "only {} cases were found", cases.len());
    for case in cases {
        let (result, now) = run(&case).await;
        let problems = problems(&case, &result, now.as_ref());
        if !problems.is_empty() {
            let name = case.file_name().unwrap().to_string_lossy().into_owned();
            wrong.push(format!("== {name}\n{}\nanswer: {}", problems.join("\n"), result.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
