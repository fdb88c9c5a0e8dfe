//! Where iudex does not work, what it says when it cannot, and the lock.
#![allow(clippy::unwrap_used, reason = "a test stops where something is missing")]

mod common;

use std::io::{BufRead as _, BufReader};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Command, Stdio};

use common::{Place, changed};
use iudex_repo::{Busy, OpenError, RunLock, SizeLimits, Snapshots};

#[test]
fn the_root_the_home_directory_and_git_directories_are_refused() {
    let place = Place::repository();
    let home = std::env::home_dir().unwrap();
    for directory in [Path::new("/"), &home, &place.root.join(".git"), &place.root.join(".git/refs")] {
        let opened = Snapshots::open(&place.state, directory, SizeLimits::default());
        assert!(matches!(opened, Err(OpenError::Forbidden(_))), "{}: {opened:?}", directory.display());
    }
    let link = place.root.with_file_name("to-root");
    symlink("/", &link).unwrap();
    assert!(matches!(Snapshots::open(&place.state, &link, SizeLimits::default()), Err(OpenError::Forbidden(_))));
    assert!(Snapshots::open(&place.state, &place.root.join("missing"), SizeLimits::default()).is_err());
}

#[test]
fn a_large_plain_directory_is_refused_and_what_is_ignored_does_not_count() {
    let place = Place::plain();
    for number in 0..30 {
        place.write(&format!("node_modules/{number}"), "x");
        place.write(&format!("data/{number}"), "x");
    }
    place.write("a.txt", "x");
    let limits = SizeLimits { files: 10, bytes: 1 << 20 };
    match Snapshots::open(&place.state, &place.root, limits) {
        Err(OpenError::TooLarge { files, .. }) => assert_eq!(files, 11),
        other => panic!("{other:?}"),
    }
    place.write(".gitignore", "data/\n");
    assert!(Snapshots::open(&place.state, &place.root, limits).is_ok());
    place.write("big", vec![0; 2 << 20]);
    assert!(matches!(Snapshots::open(&place.state, &place.root, limits), Err(OpenError::TooLarge { .. })));
    place.git(&["init", "-q"]);
    assert!(Snapshots::open(&place.state, &place.root, limits).is_ok());
}

#[test]
fn built_in_ignores_hold_in_a_plain_directory_only() {
    for in_repository in [false, true] {
        let place = Place::plain();
        place.write("target/x", "x\n");
        if in_repository {
            place.git(&["init", "-q"]);
        }
        let snapshots = place.open();
        let base = snapshots.take_base("run-1").unwrap();
        place.write("target/x", "y\n");
        let pass = snapshots.take("run-1", "pass-1").unwrap();
        assert_eq!(changed(&snapshots, &base, &pass).len(), usize::from(in_repository));
    }
}

#[test]
fn state_inside_of_the_work_directory_is_not_part_of_it() {
    let mut place = Place::repository();
    place.state = place.root.join("state");
    std::fs::create_dir(&place.state).unwrap();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!((base.raw, base.git), (pass.raw, pass.git));
}

#[test]
fn state_is_for_its_owner_only() {
    let place = Place::plain();
    place.write("a.txt", "secret\n");
    place.open().take_base("run-1").unwrap();
    let mode = place.state.join("snapshots").metadata().unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o700);
}

#[test]
fn a_snapshot_of_another_directory_is_refused() {
    let (one, other) = (Place::repository(), Place::repository());
    let base = one.open().take_base("run-1").unwrap();
    one.write("a.txt", "x\n");
    let pass = one.open().take("run-1", "pass-1").unwrap();
    let error = other.open().restore("run-1", &base, &pass, true).unwrap_err();
    assert!(error.hint.is_some(), "{error:?}");
    assert_eq!(other.read("a.txt"), "one\n");
}

#[test]
fn a_repository_that_moved_up_is_refused() {
    let place = Place::plain();
    place.write("sub/a.txt", "one\n");
    let work = place.root.join("sub");
    let base = place.open_at(&work).take_base("run-1").unwrap();
    place.git(&["init", "-q"]);
    let error = place.open_at(&work).restore("run-1", &base, &base, true).unwrap_err();
    assert!(error.message.contains("repository around"), "{error:?}");
    assert_eq!(place.read("sub/a.txt"), "one\n");
}

/// Runs one ignored test of this file as a process of its own, as user `nobody` or with another environment.
fn helper(name: &str) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "--ignored", "--nocapture", name]);
    command
}

#[test]
fn without_git_the_hint_says_what_to_install() {
    let place = Place::plain();
    let output =
        helper("helper_takes_a_base").env("WORK", &place.root).env("STATE", &place.state).env("PATH", "").output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains("install git"), "{said}");
}

#[test]
fn variables_of_git_in_the_environment_change_nothing() {
    let place = Place::repository();
    let head = place.git(&["rev-parse", "HEAD^{tree}"]);
    let elsewhere = place.root.with_file_name("elsewhere");
    let output = helper("helper_takes_a_base")
        .envs([("WORK", &place.root), ("STATE", &place.state)])
        .envs(
            ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_CONFIG"]
                .map(|name| (name, &elsewhere)),
        )
        .envs([("GIT_CONFIG_COUNT", "1"), ("GIT_CONFIG_KEY_0", "core.bare"), ("GIT_CONFIG_VALUE_0", "nonsense")])
        .output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains(&format!("git: Some(TreeId(\"{head}\"))")), "{said}");
    assert!(!elsewhere.exists());
}

#[test]
fn the_ignore_rules_of_the_user_hold() {
    let place = Place::repository();
    place.write("a.first", "x\n");
    place.write("b.second", "x\n");
    place.write(".git/info/exclude", "*.first\n");
    let head = place.git(&["rev-parse", "HEAD^{tree}"]);
    let home = place.root.with_file_name("home");
    std::fs::create_dir(&home).unwrap();
    std::fs::write(home.join(".gitconfig"), "[core]\n\texcludesFile = ~/ignored\n").unwrap();
    std::fs::write(home.join("ignored"), "*.second\n").unwrap();
    let output = helper("helper_takes_a_base")
        .envs([("WORK", &place.root), ("STATE", &place.state), ("HOME", &home)])
        .env_remove("XDG_CONFIG_HOME")
        .output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains(&format!("raw: TreeId(\"{head}\"), git: Some(TreeId(\"{head}\"))")), "{said}");
}

#[test]
fn a_home_directory_that_is_a_repository_is_not_taken_in_whole() {
    let place = Place::repository();
    place.write("project/x.txt", "x\n");
    let output = helper("helper_takes_a_base")
        .envs([("WORK", &place.root.join("project")), ("STATE", &place.state), ("HOME", &place.root)])
        .output();
    let said = String::from_utf8(output.unwrap().stdout).unwrap();
    assert!(said.contains("git: None"), "{said}");
}

#[test]
fn a_store_that_cannot_be_written_is_an_error_and_not_a_smaller_snapshot() {
    let place = Place::plain();
    place.write("a.txt", "one\n");
    let snapshots = place.open();
    snapshots.take_base("run-1").unwrap();
    let store = std::fs::read_dir(place.state.join("snapshots")).unwrap().next().unwrap().unwrap().path();
    for fan in 0..=255_u8 {
        let fan = store.join(format!("objects/{fan:02x}"));
        if fan.exists() {
            std::fs::remove_dir_all(&fan).unwrap();
        }
        std::fs::write(&fan, "in the way").unwrap();
    }
    place.write("b.txt", "new\n");
    let taken = snapshots.take("run-1", "pass-1");
    assert!(taken.is_err(), "{taken:?}");
    assert!(!store.join("refs/runs/run-1/pass-1").exists());
}

#[test]
fn a_working_tree_that_somebody_keeps_in_a_git_directory_is_fine() {
    let place = Place::repository();
    place.git(&["worktree", "add", "-q", ".git/trees/x", "-b", "x"]);
    let base = place.open_at(&place.root.join(".git/trees/x")).take_base("run-1").unwrap();
    assert_eq!(base.git.unwrap().as_str(), place.git(&["rev-parse", "HEAD^{tree}"]));
}

#[test]
#[ignore = "started by other tests"]
fn helper_takes_a_base() {
    let (work, state) = (std::env::var_os("WORK").unwrap(), std::env::var_os("STATE").unwrap());
    let taken = Snapshots::open(Path::new(&state), Path::new(&work), SizeLimits::default()).unwrap().take_base("run-1");
    println!("{taken:?}");
}

#[test]
fn unreadable_files_are_named_and_not_fatal() {
    let place = Place::repository();
    place.write("locked.txt", "x\n");
    place.write("locked/x.txt", "x\n");
    for path in ["locked.txt", "locked"] {
        std::fs::set_permissions(place.root.join(path), std::fs::Permissions::from_mode(0o000)).unwrap();
    }
    // Root can read everything, so an ordinary user has to try.
    let base = place.root.parent().unwrap();
    std::fs::set_permissions(base, std::fs::Permissions::from_mode(0o777)).unwrap();
    let program = base.join("helper");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut command = Command::new(&program);
    if rustix::process::geteuid().is_root() {
        std::os::unix::process::CommandExt::uid(&mut command, 65534);
        std::os::unix::process::CommandExt::gid(&mut command, 65534);
    }
    let output = command
        .args(["--exact", "--ignored", "--nocapture", "helper_takes_a_base"])
        .envs([("WORK", &place.root), ("STATE", &place.state)])
        .output()
        .unwrap();
    for path in ["locked.txt", "locked"] {
        std::fs::set_permissions(place.root.join(path), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("Ok(Snapshot"), "{said}");
    assert!(said.contains("locked.txt: cannot be read"), "{said}");
    assert!(said.contains("locked/: cannot be read"), "{said}");
}

#[test]
fn a_directory_its_parents_and_its_children_are_locked_at_once() {
    let place = Place::plain();
    for directory in ["work/child", "workshop", "other"] {
        std::fs::create_dir_all(place.root.join(directory)).unwrap();
    }
    let work = place.root.join("work");
    let lock = RunLock::acquire(&place.state, &work, "run-1").unwrap();
    let link = place.root.join("link");
    symlink(&work, &link).unwrap();
    for busy in [&work, &place.root, &work.join("child"), &link] {
        match RunLock::acquire(&place.state, busy, "run-2") {
            Err(Busy::Held { run, pid, directory }) => {
                assert_eq!((run.as_str(), pid, directory), ("run-1", std::process::id(), work.clone()));
            }
            other => panic!("{}: {other:?}", busy.display()),
        }
    }
    let workshop = RunLock::acquire(&place.state, &place.root.join("workshop"), "run-3").unwrap();
    let other = RunLock::acquire(&place.state, &place.root.join("other"), "run-4").unwrap();
    drop(lock);
    RunLock::acquire(&place.state, &work.join("child"), "run-5").unwrap();
    drop((workshop, other));
    RunLock::acquire(&place.state, &place.root, "run-6").unwrap();
}

#[test]
fn a_lock_file_that_somebody_holds_is_never_taken() {
    let place = Place::plain();
    let _lock = RunLock::acquire(&place.state, &place.root, "run-1").unwrap();
    let files = std::fs::read_dir(place.state.join("locks")).unwrap().flatten().map(|entry| entry.path());
    let file = files.into_iter().find(|path| path.extension().is_some()).unwrap();
    std::fs::write(&file, r#"{"directory":"/elsewhere","run":"run-1","pid":1}"#).unwrap();
    let taken = RunLock::acquire(&place.state, &place.root, "run-2");
    assert!(matches!(taken, Err(Busy::Io { .. })), "{taken:?}");
}

#[test]
fn of_runs_that_start_together_one_gets_the_lock() {
    let place = Place::plain();
    std::fs::create_dir(place.root.join("child")).unwrap();
    let directories = [place.root.clone(), place.root.join("child")];
    for _ in 0..10 {
        let barrier = std::sync::Barrier::new(4);
        let locks: Vec<_> = std::thread::scope(|scope| {
            let start = |number: usize| {
                let (barrier, directory, state) = (&barrier, &directories[number % 2], &place.state);
                scope.spawn(move || {
                    barrier.wait();
                    RunLock::acquire(state, directory, &format!("run-{number}"))
                })
            };
            let started: Vec<_> = (0..4).map(start).collect();
            started.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        let held = locks.iter().filter(|lock| lock.is_ok()).count();
        let refused = locks.iter().filter(|lock| matches!(lock, Err(Busy::Held { .. }))).count();
        assert!(held >= 1 && held + refused == 4, "{locks:?}");
        let by_child = locks.iter().skip(1).step_by(2).any(Result::is_ok);
        let by_root = locks.iter().step_by(2).any(Result::is_ok);
        assert!(held == 1 && by_child != by_root, "{locks:?}");
    }
}

#[test]
fn the_lock_of_a_killed_process_is_free() {
    let place = Place::plain();
    let mut child = helper("helper_holds_a_lock")
        .env("WORK", &place.root)
        .env("STATE", &place.state)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("held")), "the helper did not take the lock");
    let busy = RunLock::acquire(&place.state, &place.root, "run-2").unwrap_err();
    let expected = format!("run run-1 (process {}) works in {}", child.id(), place.root.display());
    assert_eq!(busy.to_string(), expected);
    child.kill().unwrap();
    child.wait().unwrap();
    RunLock::acquire(&place.state, &place.root, "run-2").unwrap();
}

#[test]
#[ignore = "started by other tests"]
fn helper_holds_a_lock() {
    let (work, state) = (std::env::var_os("WORK").unwrap(), std::env::var_os("STATE").unwrap());
    let _lock = RunLock::acquire(Path::new(&state), Path::new(&work), "run-1").unwrap();
    println!("held");
    std::io::stdin().lines().for_each(drop);
}
