//! Every kind of directory: nothing of the user's git changes by a byte, and undo brings everything else back.
#![allow(clippy::unwrap_used, reason = "a test stops where something is missing")]

mod common;

use std::path::Path;

use common::{Place, changed, files, git_files, git_in, picture};
use iudex_repo::{SizeLimits, Snapshots};

/// What an agent might do to any directory.
fn spoil(work: &Path) {
    std::fs::write(work.join("a.txt"), "spoiled\n").unwrap();
    std::fs::remove_file(work.join("src/b.txt")).unwrap();
    std::fs::remove_dir(work.join("src")).unwrap();
    std::fs::write(work.join("src"), "a file now\n").unwrap();
    std::fs::create_dir_all(work.join("new/deep")).unwrap();
    std::fs::write(work.join("new/deep/c.txt"), "new\n").unwrap();
    std::os::unix::fs::symlink("/nowhere", work.join("dangling")).unwrap();
}

/// Base, spoil, pass, undo: the work directory as before, and `.git` as before at every step.
fn round_trip(snapshots: &Snapshots, root: &Path) {
    let work = snapshots.work_directory().to_owned();
    let (before, git_before) = (files(root), git_files(root));
    let base = snapshots.take_base("run-1").unwrap();
    assert_eq!(git_files(root), git_before, "the base changed .git");
    assert_eq!(files(root), before, "the base changed files");
    spoil(&work);
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!(git_files(root), git_before, "a pass changed .git");
    assert_ne!(pass.raw, base.raw);
    let report = snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(report.kept, Vec::<std::path::PathBuf>::new());
    assert_eq!(files(root), before, "undo is not complete");
    assert_eq!(git_files(root), git_before, "undo changed .git");
    let again = snapshots.take("run-1", "after").unwrap();
    assert_eq!((again.raw, again.git), (base.raw, base.git));
}

#[test]
fn a_repository_with_staged_unstaged_and_stashed_work() {
    let place = Place::repository();
    place.write("stash.txt", "kept away\n");
    place.git(&["add", "stash.txt"]);
    place.git(&["stash"]);
    place.write("staged.txt", "staged\n");
    place.git(&["add", "staged.txt"]);
    place.write("staged.txt", "staged, then edited\n");
    place.write("untracked.txt", "untracked\n");
    place.write(".git/hooks/pre-commit", "#!/bin/sh\nexit 1\n");
    round_trip(&place.open(), &place.root);
}

#[test]
fn a_plain_directory() {
    let place = Place::plain();
    place.write("a.txt", "one\n");
    place.write("src/b.txt", "two\n");
    std::fs::create_dir_all(place.root.join("empty/inside")).unwrap();
    let snapshots = place.open();
    assert_eq!(snapshots.take_base("run-0").unwrap().git, None);
    round_trip(&snapshots, &place.root);
}

#[test]
fn a_repository_without_commits_and_without_an_index() {
    let place = Place::plain();
    place.git(&["init", "-q"]);
    place.write("a.txt", "one\n");
    place.write("src/b.txt", "two\n");
    round_trip(&place.open(), &place.root);
}

#[test]
fn a_subdirectory_reaches_beneath_itself_only() {
    let place = Place::repository();
    place.write("sub/a.txt", "one\n");
    place.write("sub/src/b.txt", "two\n");
    place.write("subway/a.txt", "another\n");
    let snapshots = place.open_at(&place.root.join("sub"));
    round_trip(&snapshots, &place.root);

    let base = snapshots.take_base("run-2").unwrap();
    place.write("a.txt", "changed by the user\n");
    place.write("subway/a.txt", "changed by the user\n");
    place.write("sub/a.txt", "changed by the agent\n");
    let pass = snapshots.take("run-2", "pass-1").unwrap();
    assert_eq!(changed(&snapshots, &base, &pass), ["a.txt"]);
    assert_eq!(snapshots.diff_stat(&base, &pass).unwrap().summary(), "1 file changed, +1 -1");
    snapshots.restore("run-2", &base, &pass, true).unwrap();
    assert_eq!(place.read("sub/a.txt"), "one\n");
    assert_eq!(place.read("a.txt"), "changed by the user\n");
    assert_eq!(place.read("subway/a.txt"), "changed by the user\n");
}

#[test]
fn a_directory_that_its_repository_ignores_is_a_plain_directory() {
    let place = Place::repository();
    place.write(".gitignore", "/scratch/\n");
    place.write("scratch/project/a.txt", "one\n");
    place.write("scratch/project/src/b.txt", "two\n");
    let snapshots = place.open_at(&place.root.join("scratch/project"));
    assert_eq!(snapshots.take_base("run-0").unwrap().git, None);
    round_trip(&snapshots, &place.root);
    // Unless something in it is tracked.
    place.git(&["add", "-f", "scratch/project/a.txt"]);
    let snapshots = place.open_at(&place.root.join("scratch/project"));
    assert!(snapshots.take_base("run-3").unwrap().git.is_some());
}

#[test]
fn a_linked_worktree() {
    let place = Place::repository();
    let linked = place.root.with_file_name("linked");
    place.git(&["worktree", "add", "-q", linked.to_str().unwrap(), "-b", "other"]);
    let main_git = picture(&place.root.join(".git"));
    let snapshots = place.open_at(&linked);
    round_trip(&snapshots, &linked);
    assert_eq!(picture(&place.root.join(".git")), main_git);
    assert_eq!(snapshots.git_directories(), [linked.join(".git")]);
}

#[test]
fn submodules_and_nested_repositories_are_covered() {
    let library = Place::repository();
    let place = Place::repository();
    place.git(&["submodule", "--quiet", "add", library.root.to_str().unwrap(), "libs/sub"]);
    place.git(&["commit", "-q", "-m", "with a submodule"]);
    place.write(".gitignore", "*.log\n");
    place.write("libs/sub/tracked.log", "tracked there, ignored here\n");
    git_in(&place.root.join("libs/sub"), &["add", "-f", "tracked.log"]);
    place.write("nested/x.txt", "in a nested repository\n");
    git_in(&place.root.join("nested"), &["init", "-q"]);
    git_in(&place.root.join("nested"), &["add", "-A"]);
    git_in(&place.root.join("nested"), &["commit", "-q", "-m", "x"]);
    place.write("unborn/y.txt", "in a nested repository without commits\n");
    git_in(&place.root.join("unborn"), &["init", "-q"]);

    let snapshots = place.open();
    let found = snapshots.git_directories();
    for git in [".git", "libs/sub/.git", "nested/.git", "unborn/.git", ".git/modules/libs/sub"] {
        assert!(found.contains(&place.root.join(git)), "{git} is not in {found:?}");
    }
    let (before, git_before) = (files(&place.root), git_files(&place.root));
    let base = snapshots.take_base("run-1").unwrap();
    let spoiled = ["libs/sub/a.txt", "libs/sub/tracked.log", "nested/x.txt", "unborn/y.txt"];
    for path in spoiled {
        place.write(path, "spoiled\n");
    }
    place.write("nested/new.txt", "new\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!(changed(&snapshots, &base, &pass).len(), spoiled.len() + 1);
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    assert_eq!(files(&place.root), before);
    assert_eq!(git_files(&place.root), git_before);
    round_trip(&place.open(), &place.root);
    // The work directory may itself be the submodule.
    round_trip(&place.open_at(&place.root.join("libs/sub")), &place.root);
}

#[test]
fn a_sparse_checkout_keeps_what_is_not_checked_out() {
    let place = Place::repository();
    place.write("far/away.txt", "not here\n");
    place.git(&["add", "-A"]);
    place.git(&["commit", "-q", "-m", "far"]);
    place.git(&["sparse-checkout", "set", "--cone", "src"]);
    assert!(!place.exists("far"));
    let snapshots = place.open();
    let base = snapshots.take_base("run-0").unwrap();
    let head = place.git(&["rev-parse", "HEAD^{tree}"]);
    assert_eq!(base.git.unwrap().as_str(), head);
    round_trip(&snapshots, &place.root);
}

#[test]
fn a_bare_setting_that_leaked_into_the_configuration() {
    let place = Place::repository();
    let head = place.git(&["rev-parse", "HEAD^{tree}"]);
    place.git(&["config", "core.bare", "true"]);
    let snapshots = place.open();
    assert_eq!(snapshots.take_base("run-0").unwrap().git.unwrap().as_str(), head);
    round_trip(&snapshots, &place.root);
}

#[test]
fn a_split_index() {
    let place = Place::repository();
    place.git(&["update-index", "--split-index"]);
    round_trip(&place.open(), &place.root);
}

#[test]
fn sha256_object_names() {
    let place = Place::plain();
    place.git(&["init", "-q", "--object-format=sha256"]);
    place.write("a.txt", "one\n");
    place.write("src/b.txt", "two\n");
    place.write("nested/x.txt", "nested\n");
    git_in(&place.root.join("nested"), &["init", "-q"]);
    place.git(&["add", "a.txt", "src"]);
    place.git(&["commit", "-q", "-m", "start"]);
    let snapshots = place.open();
    assert_eq!(snapshots.take_base("run-0").unwrap().raw.as_str().len(), 64);
    round_trip(&snapshots, &place.root);
}

#[test]
fn no_object_is_added_to_the_repository_and_the_git_tree_is_what_git_would_commit() {
    let place = Place::repository();
    place.write("new.txt", "new\n");
    place.write(".gitattributes", "*.txt text eol=lf\n");
    place.write("crlf.txt", "a\r\nb\r\n");
    let base = place.open().take_base("run-1").unwrap();
    place.git(&["add", "-A"]);
    assert_eq!(base.git.unwrap().as_str(), place.git(&["write-tree"]));
}

#[test]
fn a_path_with_the_separator_of_alternates() {
    let temporary = tempfile::tempdir().unwrap();
    let root = temporary.path().canonicalize().unwrap().join("a:b \"c\"\nd");
    std::fs::create_dir_all(root.join("src")).unwrap();
    std::fs::write(root.join("a.txt"), "one\n").unwrap();
    std::fs::write(root.join("src/b.txt"), "two\n").unwrap();
    git_in(&root, &["init", "-q"]);
    git_in(&root, &["add", "-A"]);
    git_in(&root, &["commit", "-q", "-m", "start"]);
    let head = git_in(&root, &["rev-parse", "HEAD^{tree}"]);
    let snapshots = Snapshots::open(&temporary.path().join("state"), &root, SizeLimits::default()).unwrap();
    assert_eq!(snapshots.take_base("run-0").unwrap().git.unwrap().as_str(), head);
    round_trip(&snapshots, &root);
}

#[test]
fn a_repository_with_a_conflict_in_its_index() {
    let place = Place::repository();
    place.git(&["checkout", "-q", "-b", "other"]);
    place.write("a.txt", "theirs\n");
    place.git(&["commit", "-q", "-a", "-m", "theirs"]);
    place.git(&["checkout", "-q", "main"]);
    place.write("a.txt", "ours\n");
    place.git(&["commit", "-q", "-a", "-m", "ours"]);
    let merge = std::process::Command::new("git").arg("-C").arg(&place.root).args(["merge", "-q", "other"]).output();
    assert!(!merge.unwrap().status.success());
    round_trip(&place.open(), &place.root);
}

#[test]
fn a_submodule_that_was_never_fetched() {
    let library = Place::repository();
    let origin = Place::repository();
    origin.git(&["submodule", "--quiet", "add", library.root.to_str().unwrap(), "libs/sub"]);
    origin.git(&["commit", "-q", "-m", "with a submodule"]);
    let place = Place::plain();
    git_in(&place.root, &["clone", "-q", origin.root.to_str().unwrap(), "."]);
    let head = place.git(&["rev-parse", "HEAD^{tree}"]);
    let snapshots = place.open();
    assert_eq!(snapshots.take_base("run-0").unwrap().git.unwrap().as_str(), head);
    round_trip(&snapshots, &place.root);
}

#[test]
fn many_files_go_into_one_pack_and_come_back() {
    for in_repository in [false, true] {
        let place = Place::plain();
        place.write("a.txt", "one\n");
        place.write("src/b.txt", "two\n");
        for number in 0..300 {
            place.write(&format!("many/{number}.txt"), format!("{number}\r\n"));
        }
        if in_repository {
            place.git(&["init", "-q"]);
            place.write(".gitattributes", "* text=auto eol=lf\n");
        }
        let snapshots = place.open();
        let before = files(&place.root);
        let base = snapshots.take_base("run-1").unwrap();
        place.remove("many");
        let pass = snapshots.take("run-1", "pass-1").unwrap();
        assert_eq!(snapshots.diff_stat(&base, &pass).unwrap().summary(), "300 files changed, +0 -300");
        snapshots.restore("run-1", &base, &pass, false).unwrap();
        assert_eq!(files(&place.root), before);
        snapshots.take_base("run-2").unwrap();
        snapshots.forget("run-1").unwrap();
        let (base, pass) = (snapshots.take_base("run-3").unwrap(), snapshots.take("run-3", "pass-1").unwrap());
        assert_eq!(base.raw, pass.raw);
        round_trip(&snapshots, &place.root);
    }
}

#[test]
fn an_old_look_at_the_directory_does_not_hide_a_new_nested_repository() {
    let place = Place::repository();
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    assert_eq!(snapshots.git_directories(), [place.root.join(".git")]);
    place.write("made/x.txt", "x\n");
    git_in(&place.root.join("made"), &["init", "-q"]);
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    assert_eq!(changed(&snapshots, &base, &pass), ["made/x.txt"]);
    assert_eq!(pass.not_covered, Vec::<String>::new());
}

#[test]
fn a_repository_that_belongs_to_somebody_else() {
    let place = Place::repository();
    let head = place.git(&["rev-parse", "HEAD^{tree}"]);
    if rustix::process::geteuid().is_root() {
        // git refuses such a repository when it finds it by itself.
        for (path, _) in picture(&place.root) {
            std::os::unix::fs::lchown(place.root.join(path), Some(65534), Some(65534)).unwrap();
        }
        std::os::unix::fs::lchown(&place.root, Some(65534), Some(65534)).unwrap();
    }
    let snapshots = place.open();
    let base = snapshots.take_base("run-1").unwrap();
    assert_eq!(base.git.as_ref().unwrap().as_str(), head);
    let owner = std::os::unix::fs::MetadataExt::uid(&place.root.metadata().unwrap());
    place.remove("a.txt");
    place.write("src/b.txt", "agent\n");
    let pass = snapshots.take("run-1", "pass-1").unwrap();
    snapshots.restore("run-1", &base, &pass, false).unwrap();
    for path in ["a.txt", "src/b.txt"] {
        let metadata = place.root.join(path).metadata().unwrap();
        assert_eq!(std::os::unix::fs::MetadataExt::uid(&metadata), owner, "{path} has another owner now");
    }
}
