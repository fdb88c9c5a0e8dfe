//! Task files as people write them.

use std::fs;
use std::path::PathBuf;

use iudex_core::{Decision, Task, TaskKind};

use super::{read_task_file, task_from_bytes};

fn read(name: &str, bytes: &[u8]) -> Result<Task, crate::Refusal> {
    let folder = tempfile::tempdir().unwrap();
    let file: PathBuf = folder.path().join(name);
    fs::write(&file, bytes).unwrap();
    read_task_file(&file)
}

fn decision(choice: &str, rejected: &[&str]) -> Decision {
    Decision { choice: choice.to_owned(), rejected: rejected.iter().map(|text| (*text).to_owned()).collect() }
}

const MARKDOWN: &str = "\
# Merge intervals

Write `merge(list)`.

```md
## Criteria
- not a criterion: this is code
```

## Criteria

- an **empty** list
  gives an empty list
- [ ] touching intervals are one
* errors:
  - raise `ValueError`
  - name the interval

## Decisions

- sort first (rejected: a tree; brute force)
- plain tuples
  - rejected: a class
  - named tuples
1. no (new) dependency

---

## Notes

Keep it short.
";

#[test]
fn a_markdown_task_has_its_goal_criteria_and_decisions() {
    let task = read("task.md", MARKDOWN.as_bytes()).unwrap();
    let goal = "# Merge intervals\n\nWrite `merge(list)`.\n\n```md\n## Criteria\n- not a criterion: this is code\n```\n\n\
                ## Notes\n\nKeep it short.";
    assert_eq!(task.goal, goal);
    assert_eq!(
        task.criteria,
        [
            "an **empty** list gives an empty list",
            "touching intervals are one",
            "errors: raise `ValueError`; name the interval",
        ]
    );
    assert_eq!(
        task.decisions,
        [
            decision("sort first", &["a tree", "brute force"]),
            decision("plain tuples", &["a class", "named tuples"]),
            decision("no (new) dependency", &[]),
        ]
    );
    assert_eq!(task.kind, TaskKind::Code);
}

#[test]
fn line_ends_and_byte_order_mark_change_nothing() {
    let windows = format!("\u{feff}{}", MARKDOWN.replace('\n', "\r\n"));
    assert_eq!(read("task.md", windows.as_bytes()).unwrap(), read("task.md", MARKDOWN.as_bytes()).unwrap());
    let toml = "\u{feff}goal = \"one\"\r\ncriteria = [\"two\"]\r\n";
    assert_eq!(read("task.toml", toml.as_bytes()).unwrap().criteria, ["two"]);
    assert_eq!(task_from_bytes("standard input", b"\xef\xbb\xbfone\r\ntwo\r\n").unwrap().goal, "one\ntwo");
}

#[test]
fn a_file_without_lists_is_a_goal() {
    assert_eq!(read("task.txt", b"Fix the bug.\n").unwrap(), Task::from_goal("Fix the bug."));
    assert_eq!(read("TASK", b"# Fix\n\n- a list of the goal\n").unwrap().goal, "# Fix\n\n- a list of the goal");
}

#[test]
fn a_toml_task_has_every_field() {
    let text = r#"
goal = """
Write it.
"""
criteria = ["it works"]
kind = "research"

[[decisions]]
choice = "one file"
rejected = ["two files"]
"#;
    let task = read("task.toml", text.as_bytes()).unwrap();
    let expected = Task {
        goal: "Write it.".to_owned(),
        criteria: vec!["it works".to_owned()],
        decisions: vec![decision("one file", &["two files"])],
        kind: TaskKind::Research,
    };
    assert_eq!(task, expected);
}

#[test]
fn what_is_no_task_is_refused_with_its_place() {
    let cases: [(&str, &[u8], &str, &str); 11] = [
        ("a.md", b"", "has no goal", "write the goal"),
        ("a.md", b"## Criteria\n- one\n", "has no goal", "write the goal"),
        ("a.md", b"Do.\n\n## Criteria\n\nprose, not a list\n", "a.md:5: this text", "make it an entry"),
        ("a.md", b"Do.\n\n## Criteria\n", "a.md:3: this section has no list", "write its entries"),
        (
            "a.md",
            b"Do.\n\n## Decisions\n- \n",
            "a.md:3: this section has no list, or an empty item",
            "write its entries",
        ),
        ("a.md", b"Do \0 it", "holds a NUL character (byte 3)", "give text"),
        ("a.md", b"Do \xff it", "is not UTF-8 (byte 3)", "save it as UTF-8"),
        (
            "a.toml",
            b"goal = \"x\"\ncritera = [\"y\"]\n",
            "a.toml:2: unknown field `critera`",
            "did you mean `criteria`?",
        ),
        ("a.toml", b"criteria = [\"y\"]\n", "has no goal", "goal = "),
        ("a.toml", b"goal = \"x\"\ncriteria = [\" \"]\n", "an empty criterion", "fill it in"),
        ("a.toml", b"goal = \"x\"\nkind = \"poem\"\n", "a.toml:2: unknown variant `poem`", "infrastructure"),
    ];
    for (name, bytes, message, hint) in cases {
        let refusal = read(name, bytes).unwrap_err();
        assert!(refusal.message.contains(message), "{message:?} is not in {:?}", refusal.message);
        assert!(refusal.hint.as_deref().unwrap_or_default().contains(hint), "{hint:?} is not in {:?}", refusal.hint);
        assert_eq!(refusal.exit_code, 2);
    }
}

#[test]
fn an_empty_goal_is_an_error() {
    for bytes in [&b""[..], b" \r\n\t", b"\xef\xbb\xbf\n"] {
        let refusal = task_from_bytes("standard input", bytes).unwrap_err();
        assert_eq!(refusal.message, "standard input is empty");
    }
    assert!(task_from_bytes("the goal", b"a\0b").is_err());
    assert!(read_task_file(std::path::Path::new("/nowhere/task.md")).unwrap_err().message.contains("/nowhere/task.md"));
}

proptest::proptest! {
    #[test]
    fn no_text_breaks_the_reader_and_text_without_headings_is_the_goal(text in "[-*#>`:;()a-z \\n\\tü]{0,80}") {
        let read = super::markdown::read("task.md", &text);
        if !text.contains('#') {
            proptest::prop_assert_eq!(read.unwrap().goal, text.trim());
        }
    }

    #[test]
    fn no_list_breaks_the_reader_or_is_lost(list in "[-*>`:;()a-z0-9. \\n\\t]{0,80}") {
        let text = format!("Do.\n\n## Criteria\n\n- first\n{list}");
        if let Ok(task) = super::markdown::read("task.md", &text) {
            let kept = task.criteria.concat() + &task.goal;
            for word in list.split(|character: char| !character.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
                proptest::prop_assert!(kept.contains(word), "{word:?} is lost in {task:?}");
            }
        }
    }
}
