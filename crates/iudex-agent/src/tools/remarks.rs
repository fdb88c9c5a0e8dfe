//! What is said about a change besides that it was made: a placeholder in place of code, and names that are gone and
//! still used. Small models overlook both.
//!
//! Never: a judgement about the work. Each remark is a fact about files.

use std::fmt::Write as _;
use std::path::Path;

use super::place::{Place, Resolved};
use super::{SUBJECT_CHARACTERS, ToolResult, blocks, file, one_line, search};

/// Larger files are not compared.
const MOST_BYTES: u64 = 1 << 20;

/// Names that are gone and whose uses are looked for after one change.
const MOST_NAMES_GONE: usize = 3;

/// Places that are named of each.
const MOST_USES: usize = 5;

/// What models write where code should stand, in lower case.
const PLACEHOLDERS: [&str; 7] = [
    "your implementation here",
    "your code here",
    "implementation goes here",
    "code goes here",
    "rest of the code here",
    "existing code here",
    "remaining code here",
];

/// The text of a file, when it can be compared.
pub(super) fn text_of(target: &Resolved) -> Option<String> {
    let bytes = file::read_all(target, MOST_BYTES).ok().flatten()?;
    String::from_utf8(bytes).ok()
}

/// Adds what is to be said about a change that was made.
pub(super) async fn add(result: &mut ToolResult, place: &Place, target: &Resolved, before: &str) {
    let Some(after) = text_of(target) else { return };
    if let Some(line) = placeholder(before, &after) {
        let line = one_line(line, SUBJECT_CHARACTERS);
        let _ = write!(result.text, "\nIt holds a placeholder and no code yet: {line}\nPut the code itself there.");
        result.is_open = true;
    }
    for name in names_gone(before, &after).into_iter().take(MOST_NAMES_GONE) {
        let Ok(found) = search::lines(place, &uses_of(&name), MOST_USES).await else { continue };
        let is_definition = |line: &String| line.splitn(3, ':').nth(2).is_some_and(blocks::is_definition);
        let uses: Vec<String> = found.into_iter().filter(|line| !is_definition(line)).collect();
        if !uses.is_empty() {
            let _ = write!(result.text, "\n`{name}` is defined no longer and still used at:\n{}", uses.join("\n"));
            result.is_open = true;
        }
    }
}

/// The placeholder that is in `after` and was not in `before`, as it stands there.
fn placeholder<'t>(before: &str, after: &'t str) -> Option<&'t str> {
    let is_comment = |line: &str| ["#", "//", "/*", "--", "<!--"].iter().any(|mark| line.trim().starts_with(mark));
    let is_one = |line: &&str| {
        let line = line.to_lowercase();
        is_comment(&line) && PLACEHOLDERS.iter().any(|known| line.contains(known))
    };
    after.lines().find(|line| is_one(line) && !before.contains(line.trim())).map(str::trim)
}

/// True for a path under which the usual test runners look for tests.
pub(super) fn is_test(path: &Path) -> bool {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let by_name =
        stem.starts_with("test_") || ["_test", ".test", ".spec", "_spec"].iter().any(|end| stem.ends_with(end));
    let places = ["test", "tests", "spec", "__tests__"];
    let mut above = path.parent().into_iter().flat_map(Path::components);
    by_name || stem == "tests" || above.any(|part| places.iter().any(|place| part.as_os_str() == *place))
}

/// Names of functions and classes that `before` defines at the left edge and `after` does not.
fn names_gone(before: &str, after: &str) -> Vec<String> {
    let there = blocks::defined(after);
    let mut gone: Vec<String> =
        blocks::defined(before).into_iter().filter(|name| !there.contains(name)).map(str::to_owned).collect();
    gone.sort();
    gone
}

/// A pattern for places that call a name or import it.
fn uses_of(name: &str) -> String {
    format!(r"(?-i:(?:^|[^.\w]){name}\s*\(|\b(import|use|require)\b.*\b{name}\b)")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_new_placeholders_in_comments_count() {
        let stub = "def merge(a):\n    # Your implementation here\n";
        assert_eq!(placeholder("", stub), Some("# Your implementation here"));
        assert_eq!(placeholder(stub, stub), None);
        assert_eq!(placeholder("", "print('your code here')\n"), None);
    }

    #[test]
    fn tests_are_known_by_their_names_and_places() {
        for path in
            ["test_a.py", "a_test.go", "src/a.test.ts", "a.spec.js", "a_spec.rb", "tests/run.rs", "src/tests.rs"]
        {
            assert!(is_test(Path::new(path)), "{path}");
        }
        for path in ["latest.py", "contest.go", "src/testing.rs", "spec.md", "a.py"] {
            assert!(!is_test(Path::new(path)), "{path}");
        }
    }

    #[test]
    fn names_that_are_gone_are_found_by_their_words() {
        let before = "def f(a):\n    return a\n\nclass Two:\n    x = 1\n\nfn three() {\n    1\n}\n";
        let after = "def add(a):\n    return a\n\nclass Two(One):\n    x = 1\n";
        assert_eq!(names_gone(before, after), ["f", "three"]);
    }
}
