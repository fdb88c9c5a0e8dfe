//! `read`, `write` and `edit` on real files: where they reach, what they open, what they keep.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "helpers of tests")]

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::os::unix::net::UnixListener;
use std::time::Duration;

use common::Place;
use serde_json::json;

mod common;

fn make_fifo(path: &std::path::Path) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// `word 1`, `word 2`, … as lines.
fn numbered(word: &str, lines: usize) -> String {
    let lines: Vec<String> = (1..=lines).map(|number| format!("{word} {number}\n")).collect();
    lines.concat()
}

#[tokio::test]
async fn paths_that_lead_outside_are_errors_for_every_tool() {
    let place = Place::new();
    std::fs::write(place.beside("secret"), "secret text\n").unwrap();
    symlink(place.beside("secret"), place.dir().join("link")).unwrap();
    symlink(place.beside(""), place.dir().join("up")).unwrap();
    symlink("nowhere", place.dir().join("dangling")).unwrap();
    symlink("circle", place.dir().join("circle")).unwrap();
    symlink(place.beside("not-there-yet"), place.dir().join("dangling-outside")).unwrap();
    place.put("sub/file", "x\n");
    let secret = place.beside("secret").display().to_string();
    let outside = [
        "../secret",
        "sub/../../secret",
        "link",
        "up/secret",
        "up/new",
        secret.as_str(),
        "/etc/passwd",
        "/",
        "..",
        "/dev/null",
        "nothing/../../secret",
        "dangling",
        "circle",
        "dangling-outside",
        "",
        "  ",
        "a\0b",
        "sub/file/below",
    ];
    let mut wrong = Vec::new();
    for path in outside {
        for (tool, arguments) in [
            ("read", json!({"path": path})),
            ("write", json!({"path": path, "content": "gone"})),
            ("edit", json!({"path": path, "old": "secret", "new": "gone"})),
            ("edit", json!({"path": path, "old": "", "new": "gone"})),
        ] {
            let result = place.call(tool, arguments).await;
            if result.ok || result.may_have_changed || result.text.contains("secret text") {
                wrong.push(format!("{tool} {path:?}: {}", result.text));
            }
        }
    }
    for path in ["../secret", "up", secret.as_str(), "/etc"] {
        let result = place.call("search", json!({"pattern": "secret", "path": path})).await;
        if result.ok || result.text.contains("secret text") {
            wrong.push(format!("search {path:?}: {}", result.text));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert_eq!(std::fs::read_to_string(place.beside("secret")).unwrap(), "secret text\n");
    assert!(!place.beside("not-there-yet").exists() && !place.beside("new").exists());
    let result = place.call("read", json!({"path": "/etc/passwd"})).await;
    assert!(result.text.contains("outside the work directory") && result.text.contains("bash"), "{}", result.text);
}

#[tokio::test]
async fn a_link_inside_the_work_directory_stays_a_link_and_its_target_is_written() {
    let place = Place::new();
    place.put("real/file", "a\n");
    symlink("real/file", place.dir().join("link")).unwrap();
    symlink("real", place.dir().join("dir")).unwrap();
    assert!(place.call("edit", json!({"path": "link", "old": "a", "new": "b"})).await.ok);
    assert_eq!(place.get("real/file"), b"b\n");
    assert!(place.call("write", json!({"path": "dir/file", "content": "c\n"})).await.ok);
    assert_eq!(place.get("real/file"), b"c\n");
    assert!(place.call("write", json!({"path": "dir/new", "content": "n\n"})).await.ok);
    assert_eq!(place.get("real/new"), b"n\n");
    assert!(place.dir().join("link").is_symlink() && place.dir().join("dir").is_symlink());
}

#[tokio::test]
async fn an_absolute_path_beneath_the_work_directory_is_taken_also_through_a_link() {
    let place = Place::new();
    place.put("a", "1\n");
    let absolute = place.dir().join("a").display().to_string();
    assert_eq!(place.call("read", json!({"path": absolute})).await.text, "1\n");
    symlink(place.dir(), place.beside("alias")).unwrap();
    let alias = place.beside("alias/a").display().to_string();
    assert_eq!(place.call("read", json!({"path": alias})).await.text, "1\n");
    let alias = place.beside("alias/sub/b").display().to_string();
    let result = place.call("write", json!({"path": alias, "content": "2\n"})).await;
    assert_eq!(result.text, "Created sub/b (1 line).");
    assert_eq!(place.get("sub/b"), b"2\n");
}

#[tokio::test]
async fn git_is_never_written_also_not_through_a_link() {
    let place = Place::new();
    place.put(".git/config", "[core]\n");
    place.put("nested/.git/hooks/x", "x\n");
    symlink(".git", place.dir().join("plain")).unwrap();
    for path in [".git/config", ".git/hooks/pre-commit", "plain/config", "nested/.git/hooks/x", "./sub/../.git/config"]
    {
        let result = place.call("write", json!({"path": path, "content": "bad"})).await;
        assert!(!result.ok && !result.may_have_changed, "{path}: {}", result.text);
        let result = place.call("edit", json!({"path": path, "old": "[core]", "new": "bad"})).await;
        assert!(!result.ok, "{path}: {}", result.text);
    }
    assert_eq!(place.get(".git/config"), b"[core]\n");
    assert!(place.call("read", json!({"path": ".git/config"})).await.ok);
    assert!(place.call("write", json!({"path": ".gitignore", "content": "target\n"})).await.ok);
}

#[tokio::test]
async fn a_pipe_a_socket_and_a_device_are_never_opened() {
    let place = Place::new();
    make_fifo(&place.dir().join("fifo"));
    let _socket = UnixListener::bind(place.dir().join("socket")).unwrap();
    let calls = async {
        for (path, what) in [("fifo", "named pipe"), ("socket", "socket")] {
            for (tool, arguments) in [
                ("read", json!({"path": path})),
                ("write", json!({"path": path, "content": "x"})),
                ("edit", json!({"path": path, "old": "a", "new": "b"})),
            ] {
                let result = place.call(tool, arguments).await;
                assert!(!result.ok && result.text.contains(what), "{tool} {path}: {}", result.text);
            }
        }
        let found = place.call("search", json!({"pattern": "x"})).await;
        assert!(found.text.starts_with("No line and no file name matches"), "{}", found.text);
    };
    tokio::time::timeout(Duration::from_secs(30), calls).await.expect("a tool waits on a pipe");
}

#[tokio::test]
async fn the_mode_is_kept_and_a_new_file_has_the_usual_one() {
    let place = Place::new();
    for mode in [0o755, 0o600, 0o4755] {
        place.put("run.sh", "echo a\n");
        std::fs::set_permissions(place.dir().join("run.sh"), Permissions::from_mode(mode)).unwrap();
        assert!(place.call("edit", json!({"path": "run.sh", "old": "echo a", "new": "echo b"})).await.ok);
        assert_eq!(place.dir().join("run.sh").metadata().unwrap().mode() & 0o7777, mode);
        assert!(place.call("write", json!({"path": "run.sh", "content": "echo c\n"})).await.ok);
        assert_eq!(place.dir().join("run.sh").metadata().unwrap().mode() & 0o7777, mode);
    }
    assert!(place.call("write", json!({"path": "new", "content": "x"})).await.ok);
    place.put("usual", "x");
    let mode = |name: &str| place.dir().join(name).metadata().unwrap().mode();
    assert_eq!(mode("new"), mode("usual"));
}

#[tokio::test]
async fn write_creates_replaces_and_says_when_nothing_is_new() {
    let place = Place::new();
    let result = place.call("write", json!({"path": "a/b/c.txt", "content": "one\ntwo\n"})).await;
    assert_eq!(
        (result.ok, result.text.as_str(), result.may_have_changed),
        (true, "Created a/b/c.txt (2 lines).", true)
    );
    let before = place.dir().join("a/b/c.txt").metadata().unwrap();
    let result = place.call("write", json!({"path": "a/b/c.txt", "content": "one\ntwo\n"})).await;
    assert!(
        result.ok && !result.may_have_changed && result.text.contains("already has this content"),
        "{}",
        result.text
    );
    let after = place.dir().join("a/b/c.txt").metadata().unwrap();
    assert_eq!((before.ino(), before.mtime_nsec()), (after.ino(), after.mtime_nsec()));
    let result = place.call("write", json!({"path": "a/b/c.txt", "content": ""})).await;
    assert_eq!(result.text, "Replaced a/b/c.txt (0 lines).");
    assert_eq!(place.get("a/b/c.txt"), b"");
    for path in ["a", ".", "a/b/"] {
        let result = place.call("write", json!({"path": path, "content": "x"})).await;
        assert!(!result.ok && result.text.contains("directory"), "{path}: {}", result.text);
    }
    assert_eq!(std::fs::read_dir(place.dir().join("a/b")).unwrap().count(), 1);
}

#[tokio::test]
async fn write_keeps_crlf_and_mark_of_the_file_that_it_replaces() {
    let cases: [(&[u8], &str, &[u8]); 9] = [
        (b"a\r\nb\r\n", "a\nc\n", b"a\r\nc\r\n"),
        (b"a\r\nb\r\n", "a\r\nc\n", b"a\r\nc\n"),
        (b"a\r\nb\n", "a\nc\n", b"a\nc\n"),
        (b"\xef\xbb\xbfa\n", "b\n", b"\xef\xbb\xbfb\n"),
        (b"\xef\xbb\xbfa\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n"),
        (b"a\n", "\u{feff}b\n", b"\xef\xbb\xbfb\n"),
        (b"\xff\xfea\0\r\0\n\0", "b\n", b"\xff\xfeb\0\r\0\n\0"),
        (b"caf\xe9\n", "caf\u{e9}s\n", b"caf\xe9s\n"),
        (b"caf\xe9\n", "\u{4e2d}\n", "\u{4e2d}\n".as_bytes()),
    ];
    for (before, content, after) in cases {
        let place = Place::new();
        place.put("f", before);
        let result = place.call("write", json!({"path": "f", "content": content})).await;
        assert!(result.ok, "{}", result.text);
        assert_eq!(place.get("f").escape_ascii().to_string(), after.escape_ascii().to_string(), "{content:?}");
    }
}

#[tokio::test]
async fn read_shows_the_asked_lines_and_says_which() {
    let place = Place::new();
    place.put("f", numbered("line", 30));
    place.put("open", "a\nb");
    place.put("empty", "");
    place.put("crlf", "a\r\nb\r\n");
    place.put("mark", b"\xef\xbb\xbfa\n");
    place.put("latin", b"caf\xe9\n");
    place.put("utf16", b"\xff\xfea\0\n\0b\0");
    place.put("bin", b"\x7fELF\0\0\0");
    place.put("bad", b"gr\xc3\xbcn \xff\n");
    let cases = [
        (json!({"path": "f", "offset": 2, "limit": 2}), true, "line 2\nline 3\n[lines 2-3 of 30; go on with offset 4]"),
        (json!({"path": "f", "offset": 30}), true, "line 30\n[line 30 of 30]"),
        (json!({"path": "f", "offset": "29"}), true, "line 29\nline 30\n[lines 29-30 of 30]"),
        (json!({"path": "f", "limit": 1}), true, "line 1\n[line 1 of 30; go on with offset 2]"),
        (json!({"path": "f", "offset": -5, "limit": 1}), true, "line 1\n[line 1 of 30; go on with offset 2]"),
        (json!({"path": "f", "offset": 31}), false, "f has 30 lines; line 31 is beyond its end. Use a smaller offset."),
        (json!({"path": "f", "offset": [1]}), false, "offset must be a number. Send the call again."),
        (json!({"path": "open"}), true, "a\nb"),
        (json!({"path": "open", "offset": 2}), true, "b\n[line 2 of 2]"),
        (json!({"path": "empty"}), true, "empty is empty."),
        (json!({"path": "crlf"}), true, "a\nb\n"),
        (json!({"path": "mark"}), true, "a\n"),
        (json!({"path": "latin"}), true, "caf\u{e9}\n"),
        (json!({"path": "utf16"}), true, "a\nb"),
        (json!({"path": "bad"}), true, "gr\u{fc}n \u{fffd}\n"),
        (json!({"path": "bin"}), false, "bin is a binary file of 7 bytes and is not shown. Use bash to look into it."),
        (json!({"path": 3}), false, "path must be a string, not a number. Send the call again."),
        (json!({}), false, "path is missing. Send the call again with it."),
    ];
    for (arguments, ok, text) in cases {
        let result = place.call("read", arguments.clone()).await;
        assert_eq!((result.ok, result.text.as_str()), (ok, text), "{arguments}");
        assert!(!result.may_have_changed);
    }
}

#[tokio::test]
async fn what_was_read_can_be_read_on_without_a_gap() {
    let mut place = Place::new();
    place.settings().result_bytes = 1_000;
    let whole = numbered("line number", 500);
    place.put("f", &whole);
    let (mut offset, mut got) = (1, String::new());
    for _ in 0..100 {
        let result = place.call("read", json!({"path": "f", "offset": offset})).await;
        assert!(result.ok && result.text.len() <= 1_000, "{}", result.text);
        let (lines, note) = result.text.rsplit_once("\n[lines ").unwrap();
        got.push_str(lines);
        got.push('\n');
        match note.split_once("go on with offset ") {
            Some((_, next)) => offset = next.trim_end_matches(']').parse().unwrap(),
            None => break,
        }
    }
    assert_eq!(got, whole);
}

#[tokio::test]
async fn a_very_long_line_and_a_very_long_file_are_bounded() {
    let place = Place::new();
    place.put("long", "x".repeat(1_000_000));
    let result = place.call("read", json!({"path": "long"})).await;
    assert!(result.ok && result.text.len() <= 8_000, "{}", result.text.len());
    assert!(
        result.text.ends_with("[line 1 of 1, which is cut here because it is very long]"),
        "{}",
        &result.text[7_800..]
    );

    // 800 MB, nearly all of it a hole; only what is asked for is read.
    let file = std::fs::File::create(place.dir().join("huge")).unwrap();
    std::io::Write::write_all(&mut &file, &b"first line\nsecond line\n".repeat(2_000)).unwrap();
    file.set_len(800_000_000).unwrap();
    let before = peak_memory();
    let result = place.call("read", json!({"path": "huge", "limit": 2})).await;
    assert_eq!(result.text, "first line\nsecond line\n[lines 1-2 of a file of 800 MB; go on with offset 3]");
    let result = place.call("edit", json!({"path": "huge", "old": "first", "new": "1st"})).await;
    assert!(!result.ok && result.text.contains("too much for edit"), "{}", result.text);
    assert!(peak_memory() - before < 64_000, "memory grew by {} kB", peak_memory() - before);
}

/// The most memory that this process has had, in kB.
fn peak_memory() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn a_directory_is_listed_and_a_wrong_path_is_helped() {
    let place = Place::new();
    place.put("src/deep/main.py", "x\n");
    place.put("README", "x\n");
    place.put(".git/HEAD", "x\n");
    std::fs::create_dir(place.dir().join("void")).unwrap();
    assert_eq!(place.call("read", json!({"path": "."})).await.text, "README\nsrc/\nvoid/");
    assert_eq!(place.call("read", json!({"path": "void/"})).await.text, "void is an empty directory.");
    let result = place.call("read", json!({"path": "main.py"})).await;
    assert_eq!(
        result.text,
        "main.py does not exist. There is src/deep/main.py. Use search or bash to find the right path, or write to create it."
    );
    let result = place.call("edit", json!({"path": "main.py", "old": "a", "new": "b"})).await;
    assert_eq!(result.text, "main.py does not exist. There is src/deep/main.py. Use write to create it.");
}

#[tokio::test]
async fn the_state_digest_changes_exactly_when_files_do() {
    let place = Place::new();
    place.put(".gitignore", "ignored/\n*.log\n");
    place.put("a", "1\n");
    place.put("ignored/x", "1\n");
    place.put(".git/index", "1\n");
    place.put("__pycache__/a.pyc", "1\n");
    let tools = place.tools();
    let first = tools.state_digest();
    assert_eq!(tools.state_digest(), first);
    place.put("ignored/x", "2\n");
    place.put("b.log", "2\n");
    place.put(".git/index", "22\n");
    place.put("__pycache__/a.pyc", "22\n");
    assert_eq!(tools.state_digest(), first, "ignored files and caches are no change");
    place.call("read", json!({"path": "a"})).await;
    place.call("write", json!({"path": "a", "content": "1\n"})).await;
    assert_eq!(tools.state_digest(), first, "a write of the same content is no change");
    place.call("write", json!({"path": "a", "content": "2\n"})).await;
    let second = tools.state_digest();
    assert_ne!(second, first, "same size, other content");
    std::fs::rename(place.dir().join("a"), place.dir().join("c")).unwrap();
    let third = tools.state_digest();
    assert_ne!(third, second, "another name");
    std::fs::set_permissions(place.dir().join("c"), Permissions::from_mode(0o755)).unwrap();
    let fourth = tools.state_digest();
    assert_ne!(fourth, third, "another mode");
    std::fs::remove_file(place.dir().join("c")).unwrap();
    assert_ne!(tools.state_digest(), fourth, "removed");
}

#[tokio::test]
async fn a_hidden_path_that_is_reached_through_a_link_stays_hidden() {
    let mut place = Place::new();
    place.put("state/secret", "secret\n");
    symlink("state", place.dir().join("other")).unwrap();
    let link = place.dir().join("other");
    place.settings().confinement.hidden.push(link.clone());
    place.settings().read_only.push(link);
    assert!(!place.call("read", json!({"path": "state/secret"})).await.ok);
    assert!(!place.call("write", json!({"path": "state/new", "content": "x"})).await.ok);
}

#[tokio::test]
async fn an_encoding_that_changes_or_stays_is_said() {
    let place = Place::new();
    place.put("f", b"caf\xe9\n");
    let kept = place.call("write", json!({"path": "f", "content": "caf\u{e9}s\n"})).await;
    assert!(kept.text.contains("windows-1252"), "{}", kept.text);
    let changed = place.call("write", json!({"path": "f", "content": "\u{4e2d}\n"})).await;
    assert!(changed.text.contains("UTF-8 now"), "{}", changed.text);
}

#[tokio::test]
async fn a_whole_file_in_a_fence_is_written_without_it() {
    let place = Place::new();
    let fenced = "```python\ndef one():\n    return 1\n```";
    let result = place.call("write", json!({"path": "one.py", "content": fenced})).await;
    assert!(result.ok && result.text.contains("fence"), "{}", result.text);
    assert_eq!(place.get("one.py"), b"def one():\n    return 1\n");
    place.call("write", json!({"path": "open.py", "content": "```python\na = 1\n"})).await;
    assert_eq!(place.get("open.py"), b"a = 1\n");
    for (path, content) in [
        ("README.md", "```sh\nmake\n```\n"),
        ("two.py", "```python\na = 1\n```\nand\n```python\nb = 2\n```\n"),
        ("three.py", "text = '''\n```python\n'''\n"),
    ] {
        place.call("write", json!({"path": path, "content": content})).await;
        assert_eq!(place.get(path), content.as_bytes(), "{path}");
    }
}

#[tokio::test]
async fn a_write_that_forgets_a_function_of_the_file_says_which() {
    let place = Place::new();
    place.put("a.py", "import os\n\ndef one(x):\n    return x\n\ndef two():\n    return 2\n");
    let result = place.call("write", json!({"path": "a.py", "content": "def one(x, y):\n    return y\n"})).await;
    assert!(result.ok && result.text.ends_with("No longer in it: `def two():`"), "{}", result.text);
    let result = place.call("write", json!({"path": "a.py", "content": "def one(x):\n    return x\n"})).await;
    assert!(!result.text.contains("No longer"), "{}", result.text);
}

#[tokio::test]
async fn a_function_that_a_small_model_writes_alone_is_put_in_its_place() {
    let mut place = Place::new();
    place.settings().writes_in_parts = true;
    place.put("a.py", "def one(x):\r\n    return x\r\n\r\n\r\ndef two():\r\n    return 2\r\n");
    let content = "```python\ndef one(x):\n    return 1\n```";
    let result = place.call("write", json!({"path": "a.py", "content": content})).await;
    assert!(result.ok && result.may_have_changed, "{}", result.text);
    assert!(result.text.starts_with("a.py has the new `def one(x):` now, and all else as before."), "{}", result.text);
    assert_eq!(place.get("a.py"), b"def one(x):\r\n    return 1\r\n\r\n\r\ndef two():\r\n    return 2\r\n");
    let again = place.call("write", json!({"path": "a.py", "content": content})).await;
    assert!(!again.may_have_changed && again.text.contains("already has this content"), "{}", again.text);
}

#[tokio::test]
async fn what_is_no_part_of_the_file_has_to_be_sent_twice_by_a_small_model() {
    let mut place = Place::new();
    place.settings().writes_in_parts = true;
    let before = "def one(x):\n    return x\n";
    place.put("a.py", before);
    let tools = place.tools();
    let write = |content: &str| json!({"path": "a.py", "content": content}).as_object().unwrap().clone();
    let (short, other) = (write("a.py:1: def one(x):"), write("x = 3\n"));
    for refused in [&short, &other, &short] {
        let result = tools.call("write", refused, &mut |_| {}).await;
        assert!(!result.ok && !result.may_have_changed && result.text.contains("would lose `def one(x):`"));
        assert_eq!(place.get("a.py"), before.as_bytes());
    }
    assert!(tools.call("write", &short, &mut |_| {}).await.ok, "it was sent again as it was");
    assert_eq!(place.get("a.py"), b"a.py:1: def one(x):");
}

#[tokio::test]
async fn a_change_of_a_test_has_to_be_sent_twice_by_a_small_model() {
    let mut place = Place::new();
    place.settings().writes_in_parts = true;
    place.put("test_a.py", "assert 1 == 2\n");
    let tools = place.tools();
    let edit = json!({"path": "test_a.py", "old": "2", "new": "1"}).as_object().unwrap().clone();
    let refused = tools.call("edit", &edit, &mut |_| {}).await;
    assert!(!refused.ok && refused.text.contains("test_a.py is a test"), "{}", refused.text);
    assert_eq!(place.get("test_a.py"), b"assert 1 == 2\n");
    assert!(tools.call("edit", &edit, &mut |_| {}).await.ok);
    assert_eq!(place.get("test_a.py"), b"assert 1 == 1\n");
    let new = json!({"path": "tests/test_b.py", "content": "assert True\n"}).as_object().unwrap().clone();
    assert!(tools.call("write", &new, &mut |_| {}).await.ok, "a new test is welcome");
}

#[tokio::test]
async fn a_placeholder_and_uses_of_what_is_gone_are_told() {
    let place = Place::new();
    place.put("a.py", "def f(x):\n    return x\n\ndef two():\n    return f(2)\n");
    place.put("b.py", "from a import f\n\nprint(f\"{f(1)}\")\n");
    let result = place.call("edit", json!({"path": "a.py", "old": "def f(x)", "new": "def add(x)"})).await;
    let wanted =
        "`f` is defined no longer and still used at:\na.py:5:     return f(2)\nb.py:1: from a import f\nb.py:3: print(";
    assert!(result.text.contains(wanted), "{}", result.text);
    let stub = "def g():\n    # Your implementation here\n";
    let result = place.call("write", json!({"path": "c.py", "content": stub})).await;
    assert!(result.ok && result.text.contains("placeholder") && result.text.contains("implementation here"));
}
