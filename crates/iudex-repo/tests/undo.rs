//! What undo brings back, what it keeps, and what it never touches.
#![allow(clippy::unwrap_used, reason = "a test stops where something is missing")]

mod common;

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;

use common::{Place, changed, files, git_in};
use iudex_core::Restored;

fn paths(list: &[&str]) -> Vec<PathBuf> {
    list.iter().map(PathBuf::from).collect()
}

#[test]
fn filters_and_line_endings_never_touch_the_raw_bytes() {
    let place = Place::repository();
    let ran = place.root.with_file_name("filter-ran");
    place.git(&["config", "core.autocrlf", "true"]);
    place.git(&["config", "filter.loud.clean", &format!("touch '{}'; tr a-z A-Z", ran.display())]);
    place.git(&["config", "filter.loud.smudge", "tr A-Z a-z"]);
    place.write(
        ".gitattributes",
        "* text=auto eol=crlf\n*.loud filter=loud\n[attr]text filter=loud\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n",
    );
    place.write("mixed.txt", "a\r\nb\nc\r\n");
    place.write("x.loud", "Quiet\n");
    place.write("y.id", "$Id$ and $Id: 123 $\n");
    place.write("z.u16", "not really\n");
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    assert!(ran.exists(), "the git tree must be made with the user's filter");
    for path in ["mixed.txt", "x.loud", "y.id", "z.u16", ".gitattributes"] {
        place.remove(path);
    }
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    std::fs::remove_file(&ran).unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn a_filter_is_not_run_once_an_agent_could_have_changed_what_it_reads() {
    let place = Place::repository();
    place.write("tool.sh", "cat\n");
    // Like `python -m tool`: the command names no file, and the program reads one of the work directory.
    place.git(&["config", "filter.own.clean", "sh -c '. ./tool*'"]);
    place.write(".gitattributes", "*.own filter=own\n");
    place.write("x.own", "x\n");
    let snapshots = place.open();
    assert!(snapshots.take_base("run-1").unwrap().git.is_some());
    let ran = place.root.with_file_name("escaped");
    place.write("tool.sh", format!("touch '{}'; cat\n", ran.display()));
    place.write("x.own", "y\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    let next = place.open().take_base("run-2").unwrap();
    let beneath = place.open_at(&place.root.join("src")).take_base("run-3").unwrap();
    assert!(!ran.exists(), "a program of the agent ran outside of the sandbox");
    for snapshot in [pass, next, beneath] {
        assert_eq!(snapshot.git, None);
        let named = snapshot.not_covered.iter().any(|line| line.contains("filter.own.clean"));
        assert!(named, "{:?}", snapshot.not_covered);
    }
}

#[test]
fn git_lfs_alone_keeps_the_tree_as_git_would_commit_it() {
    let place = Place::repository();
    place.git(&["config", "filter.lfs.clean", "git-lfs clean -- %f"]);
    place.git(&["config", "filter.lfs.process", "git-lfs filter-process"]);
    let snapshots = place.open();
    snapshots.take_base("run-1").unwrap();
    assert!(snapshots.take("run-1", "pass-1").unwrap().git.is_some());
    place.git(&["config", "lfs.extension.own.clean", "own %f"]);
    assert_eq!(snapshots.take("run-1", "pass-2").unwrap().git, None);
}

#[test]
fn a_filter_of_an_included_file_that_the_agent_wrote_is_not_run() {
    let place = Place::repository();
    place.git(&["config", "include.path", "../team.gitconfig"]);
    let snapshots = place.open();
    assert!(snapshots.take_base("run-1").unwrap().git.is_some());
    let ran = place.root.with_file_name("escaped");
    let command = format!("touch '{}'; cat", ran.display());
    git_in(&place.root, &["config", "-f", "team.gitconfig", "filter.own.clean", &command]);
    place.write(".gitattributes", "* filter=own\n");
    assert_eq!(snapshots.take("run-1", "pass-1").unwrap().git, None);
    assert!(!ran.exists(), "a program of the agent ran outside of the sandbox");
}

#[test]
fn a_filter_that_is_missing_does_not_keep_anybody_from_working() {
    let place = Place::repository();
    place.git(&["config", "filter.gone.clean", "/nowhere/filter"]);
    place.git(&["config", "filter.gone.required", "true"]);
    place.write(".gitattributes", "*.txt filter=gone\n");
    let base = place.open().take_base("run-1").unwrap();
    assert_eq!(base.git, None);
    assert!(base.not_covered.iter().any(|line| line.contains("as git would commit it")), "{:?}", base.not_covered);
}

#[test]
fn files_changed_by_others_are_kept_and_named() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("a.txt", "agent\n");
    place.write("src/b.txt", "agent\n");
    place.write("agent.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    place.write("a.txt", "user\n");
    place.write("user.txt", "user\n");
    let report = snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(report.kept, paths(&["a.txt", "user.txt"]));
    assert_eq!(report.restored, paths(&["agent.txt", "src/b.txt"]));
    assert_eq!(place.read("a.txt"), "user\n");
    assert_eq!(place.read("user.txt"), "user\n");
    assert_eq!(place.read("src/b.txt"), "two\n");

    let report = snapshots.restore("run-1", &base, &pass, true).unwrap();
    assert_eq!(report.restored, paths(&["a.txt", "user.txt"]));
    assert_eq!(place.read("a.txt"), "one\n");
    assert!(!place.exists("user.txt"));
}

#[test]
fn a_resample_touches_nothing_when_somebody_else_is_in_the_way() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("a.txt", "agent\n");
    place.write("src/b.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    place.write("a.txt", "user\n");
    place.write("notes.txt", "user\n");
    let restored = snapshots.restore_unless_in_the_way("run-1", &base, &pass).unwrap();
    assert_eq!(restored, Restored::InTheWay { paths: paths(&["a.txt"]) });
    assert_eq!(place.read("src/b.txt"), "agent\n");

    place.write("a.txt", "agent\n");
    let restored = snapshots.restore_unless_in_the_way("run-1", &base, &pass).unwrap();
    assert_eq!(restored, Restored::Done { kept: paths(&["notes.txt"]) });
    assert_eq!(place.read("src/b.txt"), "two\n");
    assert_eq!(place.read("notes.txt"), "user\n");
}

#[test]
fn ignored_files_come_back_and_large_ones_are_named() {
    let place = Place::repository();
    place.write(".gitignore", ".env\n*.bin\nlogs/\nnode_modules/\n");
    place.write(".env", "SECRET=1\n");
    std::fs::set_permissions(place.root.join(".env"), std::fs::Permissions::from_mode(0o600)).unwrap();
    place.write("logs/today.log", "line\n");
    place.write("huge.bin", vec![7; 3 << 20]);
    place.write("node_modules/x/index.js", "x\n");
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    assert_eq!(base.not_covered, ["huge.bin: ignored, 3 MiB", "node_modules/: ignored, dependencies or build output"]);
    let before = files(&place.root);
    place.remove(".env");
    place.write("logs/today.log", "spoiled\n");
    place.write("a.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    // A new process knows nothing of the first one.
    let report = place.open().restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(report.restored, paths(&[".env", "a.txt", "logs/today.log"]));
    assert_eq!(files(&place.root), before);
}

#[test]
fn an_ignored_file_that_the_user_changed_is_kept() {
    let place = Place::repository();
    place.write(".gitignore", ".env\n");
    place.write(".env", "A=1\n");
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    place.write(".env", "A=2\n");
    let report = snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(report.kept, paths(&[".env"]));
    assert_eq!(place.read(".env"), "A=2\n");
}

#[test]
fn a_deleted_gitignore_neither_brings_dependencies_in_nor_undo_deletes_them() {
    let place = Place::repository();
    place.write(".gitignore", "node_modules/\n*.bin\n");
    place.write("node_modules/x/index.js", "x\n");
    place.write("huge.bin", vec![7; 3 << 20]);
    place.write("sp ace/[x]*.bin", vec![7; 2 << 20]);
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.remove(".gitignore");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!(changed(&snapshots, &base, &pass), [".gitignore"]);
    assert_ne!(pass.git, base.git);
    // Stronger than the frozen rules: the files show, and still must not go.
    place.write(".gitignore", "!node_modules/\n!*.bin\n");
    let pass = snapshots.take("run-1", "pass-2").unwrap();
    assert!(changed(&snapshots, &base, &pass).len() > 1);
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn a_new_file_beside_nothing_but_ignored_files_is_seen() {
    let place = Place::repository();
    place.write(".gitignore", "*.o\n");
    place.write("out/deep/main.o", "object\n");
    std::fs::create_dir(place.root.join("empty")).unwrap();
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("out/deep/main.c", "source\n");
    place.write("out/new.c", "source\n");
    place.write("empty/new.c", "source\n");
    place.write("out/deep/main.o", "spoiled\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!(changed(&snapshots, &base, &pass), ["empty/new.c", "out/deep/main.c", "out/new.c"]);
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn files_that_the_agent_made_ignored_go_too() {
    let place = Place::repository();
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write(".gitignore", "junk/\n");
    place.write("junk/a", "junk\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn tracked_files_that_match_an_ignore_rule_are_covered() {
    let place = Place::repository();
    place.write("keep.log", "tracked\n");
    place.write(".gitignore", "*.log\n");
    place.git(&["add", "-f", "keep.log"]);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("keep.log", "changed\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!(snapshots.diff_stat(&base, &pass).unwrap().summary(), "1 file changed, +1 -1");
}

#[test]
fn names_of_any_bytes_links_and_special_files() {
    let place = Place::repository();
    let odd = place.root.join(OsStr::from_bytes(b"odd \xff\n\"name\"\t%41"));
    std::fs::write(&odd, "odd\n").unwrap();
    place.write("Case", "upper\n");
    place.write("case", "lower\n");
    place.write("git~1", "fine on Linux\n");
    place.write("run.sh", "#!/bin/sh\n");
    std::fs::set_permissions(place.root.join("run.sh"), std::fs::Permissions::from_mode(0o755)).unwrap();
    symlink("loop", place.root.join("loop")).unwrap();
    symlink("/nowhere/at all", place.root.join("dangling")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, place.root.join("pipe"), rustix::fs::Mode::RUSR).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(place.root.join("sock")).unwrap();
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    assert_eq!(base.not_covered.len(), 2, "{:?}", base.not_covered);
    for path in ["Case", "git~1", "loop", "dangling"] {
        place.remove(path);
    }
    std::fs::remove_file(&odd).unwrap();
    std::fs::set_permissions(place.root.join("run.sh"), std::fs::Permissions::from_mode(0o644)).unwrap();
    place.write("dangling", "a file now\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn undo_never_writes_through_a_link() {
    let place = Place::repository();
    let outside = place.root.with_file_name("outside");
    std::fs::create_dir(&outside).unwrap();
    std::fs::write(outside.join("b.txt"), "mine\n").unwrap();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.remove("src");
    symlink(&outside, place.root.join("src")).unwrap();
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    let before_undo = files(&outside);
    // Somebody else's link now: it stays, and nothing goes through it.
    place.remove("src");
    symlink(outside.join("."), place.root.join("src")).unwrap();
    let report = snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&outside), before_undo);
    assert!(report.kept.contains(&PathBuf::from("src")), "{report:?}");
    snapshots.restore("run-1", &base, &pass, true).unwrap();
    assert_eq!(files(&outside), before_undo);
    assert_eq!(place.read("src/b.txt"), "two\n");
}

#[test]
fn empty_directories_come_back_and_those_of_the_agent_go() {
    let place = Place::plain();
    place.write("a.txt", "one\n");
    for directory in ["empty", "filled"] {
        std::fs::create_dir(place.root.join(directory)).unwrap();
    }
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    std::fs::remove_dir(place.root.join("empty")).unwrap();
    place.write("filled/x", "x\n");
    std::fs::create_dir_all(place.root.join("made/by/agent")).unwrap();
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn a_repository_that_the_agent_created_is_kept_and_named() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("made/x.txt", "x\n");
    git_in(&place.root.join("made"), &["init", "-q"]);
    git_in(&place.root.join("made"), &["add", "-A"]);
    git_in(&place.root.join("made"), &["commit", "-q", "-m", "x"]);
    // And one around files that were there.
    git_in(&place.root.join("src"), &["init", "-q"]);
    place.write("src/b.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    let report = snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(report.kept, paths(&["made/.git", "src/.git"]));
    assert!(!place.exists("made/x.txt"));
    assert_eq!(place.read("src/b.txt"), "two\n");
}

#[test]
fn an_undo_that_was_cut_short_can_be_repeated() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    for number in 0..20 {
        place.write(&format!("new/{number}.txt"), "agent\n");
    }
    place.write("a.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    // As left by a kill: some files back, a temporary file, and a lock of git.
    place.write("a.txt", "one\n");
    place.remove("new/3.txt");
    place.write("src/.iudex-restore-4711", "half");
    let locks: Vec<_> = std::fs::read_dir(place.state.join("snapshots")).unwrap().flatten().collect();
    std::fs::write(locks[0].path().join("index.lock"), "").unwrap();
    let report = place.open().restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(report.kept, paths(&[]));
    assert!(!place.exists("new"));
    assert!(!place.exists("src/.iudex-restore-4711"));
    let again = place.open().restore("run-1", &base, &pass, false).unwrap();
    assert_eq!((again.restored, again.kept), (paths(&[]), paths(&[])));
}

#[test]
fn permissions_of_a_replaced_file_stay() {
    let place = Place::repository();
    let file = place.root.join("a.txt");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    std::fs::write(&file, "agent\n").unwrap();
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o640);
}

#[test]
fn private_permissions_come_back_with_a_deleted_file() {
    let place = Place::repository();
    place.write("untracked.key", "secret\n");
    for path in ["a.txt", "untracked.key"] {
        std::fs::set_permissions(place.root.join(path), std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let before = files(&place.root);
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.remove("a.txt");
    place.remove("untracked.key");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
}

#[test]
fn an_untracked_file_above_a_gigabyte_is_named_and_not_stored() {
    let sparse = |path: PathBuf| std::fs::File::create(path).unwrap().set_len((1 << 30) + 1).unwrap();
    for in_repository in [true, false] {
        let place = if in_repository { Place::repository() } else { Place::plain() };
        place.write("grows.log", "small\n");
        let snapshots = place.open();
        let base = snapshots.take_base("run-1").unwrap();
        place.write(".gitignore", "ignored.bin\n");
        for path in ["data.bin", "grows.log", "ignored.bin"] {
            sparse(place.root.join(path));
        }
        let pass = snapshots.take("run-1", "pass-1").unwrap();
        assert_eq!(pass.not_covered, ["data.bin: untracked, 1.0 GiB", "grows.log: untracked, 1.0 GiB"]);
        assert_eq!(pass.git.is_some(), in_repository);
        assert_eq!(changed(&snapshots, &base, &pass), [".gitignore", "grows.log"]);
        let report = snapshots.restore("run-1", &base, &pass, false).unwrap();
        assert!(report.kept.contains(&PathBuf::from("data.bin")), "{report:?}");
        assert_eq!(place.read("grows.log"), "small\n");
    }
}

#[test]
fn work_in_ignored_files_alone_is_another_state_and_caches_are_not() {
    let place = Place::repository();
    place.write(".gitignore", ".env\n/build/\n__pycache__/\n*.log\n");
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    let pass = |label: &str| snapshots.take("run-1", label).unwrap();
    assert_eq!(pass("idle").state(), base.state());
    place.write("src/__pycache__/b.pyc", "cache\n");
    assert_eq!(pass("cache").state(), base.state(), "a check that only wrote its cache must not be asked again");
    place.write(".env", "A=1\n");
    let first = pass("env");
    assert_eq!(first.raw, base.raw);
    assert_ne!(first.state(), base.state());
    place.write("build/out/app.js", "product\n");
    let second = pass("build");
    assert_ne!(second.state(), first.state());
    assert_eq!(place.open().take_base("run-2").unwrap().state(), second.state(), "a base sees what a pass sees");
    place.write("build/out/app.js", "product\n");
    assert_eq!(pass("same").state(), second.state(), "the same bytes are the same state");
    place.remove("build");
    place.remove(".env");
    assert_eq!(pass("gone").state(), base.state());
}

#[test]
fn the_last_state_before_undo_can_be_brought_back() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("a.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    snapshots.restore("run-1", &pass, &base, false).unwrap();
    assert_eq!(place.read("a.txt"), "agent\n");
}

#[test]
fn forgetting_one_run_leaves_the_others() {
    let place = Place::repository();
    place.write(".gitignore", ".env\n");
    place.write(".env", "A=1\n");
    let snapshots = place.open();
    let first = snapshots.take_base("run-1").unwrap();
    place.write("a.txt", "later\n");
    let second = snapshots.take_base("run-2").unwrap();
    snapshots.forget("run-1").unwrap();
    snapshots.forget("never-was").unwrap();
    assert!(snapshots.forget("../../escape").is_err());
    place.write("a.txt", "agent\n");
    place.write(".env", "A=2\n");
    let pass = snapshots.take("run-2", "pass-1").unwrap();
    snapshots.restore("run-2", &second, &pass, false).unwrap();
    assert_eq!(place.read("a.txt"), "later\n");
    assert_eq!(place.read(".env"), "A=1\n");
    assert_ne!(first.raw, second.raw);
}

#[test]
fn old_objects_of_a_forgotten_run_go() {
    for files in [1, 300] {
        let place = Place::plain();
        for number in 0..files {
            place.write(&format!("{number}.txt"), format!("the first {number}\n"));
        }
        let snapshots = place.open();
        let first = snapshots.take_base("run-1").unwrap();
        let store = std::fs::read_dir(place.state.join("snapshots")).unwrap().next().unwrap().unwrap().path();
        let blob = git_in(&place.root, &["hash-object", "0.txt"]);
        let held = |object: &str| {
            let mut child = std::process::Command::new("git")
                .arg("--git-dir")
                .arg(&store)
                .args(["cat-file", "--batch-check"])
                .stdin(std::process::Stdio::piped())
                .stdout(std::process::Stdio::piped())
                .spawn()
                .unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), object.as_bytes()).unwrap();
            !String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap().contains("missing")
        };
        place.write("0.txt", "the second\n");
        let second = snapshots.take_base("run-2").unwrap();
        assert!(held(&blob) && held(first.raw.as_str()));
        let two_hours_ago = std::time::SystemTime::now() - std::time::Duration::from_hours(2);
        for (path, _) in common::picture(&store.join("objects")) {
            let path = store.join("objects").join(path);
            if path.is_file() {
                std::fs::File::open(path).unwrap().set_modified(two_hours_ago).unwrap();
            }
        }
        snapshots.forget("run-1").unwrap();
        assert!(!held(&blob) && !held(first.raw.as_str()) && !held(first.commit.as_str()), "{files} files");
        assert!(held(second.raw.as_str()) && held(second.commit.as_str()));
    }
}

#[test]
fn a_diff_shows_lines_and_colours() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    place.write("a.txt", "changed\n");
    place.write("bin", [0, 1, 2, 0]);
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    let plain = String::from_utf8(snapshots.diff(&base, &pass, false).unwrap()).unwrap();
    assert!(plain.contains("-one\n+changed\n"), "{plain}");
    assert!(!plain.contains('\u{1b}'));
    let coloured = String::from_utf8(snapshots.diff(&base, &pass, true).unwrap()).unwrap();
    assert!(coloured.contains('\u{1b}'));
    let stat = snapshots.diff_stat(&base, &pass).unwrap();
    assert_eq!((stat.files[1].path.as_str(), stat.files[1].added), ("bin", None));
}
