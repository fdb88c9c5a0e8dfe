use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::{Guard, LARGEST, Report};

struct Repository {
    directory: tempfile::TempDir,
    git: PathBuf,
}

impl Repository {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let git = directory.path().join("work/.git");
        for path in ["objects/pack", "refs/heads/objects", "hooks"] {
            fs::create_dir_all(git.join(path)).unwrap();
        }
        fs::write(git.join("HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(git.join("config"), "[core]\n").unwrap();
        fs::write(git.join("refs/heads/main"), "1111\n").unwrap();
        fs::write(git.join("refs/heads/objects/branch"), "2222\n").unwrap();
        fs::write(git.join("objects/pack/a.pack"), "packed").unwrap();
        Self { directory, git }
    }

    fn displaced(&self) -> PathBuf {
        self.directory.path().join("displaced")
    }

    fn guard(&self) -> Guard {
        Guard::over(std::slice::from_ref(&self.git), &self.displaced())
    }

    fn report(&self, change: impl FnOnce(&Path)) -> Report {
        let guard = self.guard();
        change(&self.git);
        guard.restore()
    }

    /// Lets `change` happen and says what was put back, from `.git` on.
    fn guarded(&self, change: impl FnOnce(&Path)) -> Vec<String> {
        let report = self.report(change);
        assert_eq!(report.lost, Vec::<PathBuf>::new());
        let work = self.git.parent().unwrap();
        report.restored.iter().map(|path| path.strip_prefix(work).unwrap().to_str().unwrap().to_owned()).collect()
    }

    fn assert_whole(&self) {
        for (name, content) in [
            ("HEAD", "ref: refs/heads/main\n"),
            ("config", "[core]\n"),
            ("refs/heads/main", "1111\n"),
            ("refs/heads/objects/branch", "2222\n"),
            ("objects/pack/a.pack", "packed"),
        ] {
            assert_eq!(fs::read_to_string(self.git.join(name)).unwrap(), content, "{name}");
        }
        assert_eq!(fs::read_dir(self.git.join("hooks")).unwrap().count(), 0);
    }
}

#[test]
fn what_did_not_change_is_not_named() {
    let repository = Repository::new();
    assert!(repository.report(|_| {}).is_empty());
    repository.assert_whole();
}

#[test]
fn changed_added_and_removed_files_are_put_back_and_named() {
    let repository = Repository::new();
    let restored = repository.guarded(|git| {
        fs::write(git.join("config"), "[evil]\n").unwrap();
        fs::write(git.join("hooks/pre-commit"), "evil").unwrap();
        fs::remove_file(git.join("refs/heads/main")).unwrap();
        fs::write(git.join("refs/heads/objects/branch"), "9999\n").unwrap();
    });
    assert_eq!(
        restored,
        [".git/config", ".git/hooks/pre-commit", ".git/refs/heads/main", ".git/refs/heads/objects/branch"]
    );
    repository.assert_whole();
}

#[test]
fn the_same_size_and_an_old_time_hide_no_change() {
    let repository = Repository::new();
    let time = fs::metadata(repository.git.join("HEAD")).unwrap().modified().unwrap();
    repository.guarded(|git| {
        fs::write(git.join("HEAD"), "ref: refs/heads/evil\n").unwrap();
        fs::File::options().write(true).open(git.join("HEAD")).unwrap().set_modified(time).unwrap();
    });
    repository.assert_whole();
}

#[test]
fn removed_objects_come_back_and_new_ones_stay() {
    let repository = Repository::new();
    let restored = repository.guarded(|git| {
        fs::remove_dir_all(git.join("objects/pack")).unwrap();
        fs::write(git.join("objects/new"), "new").unwrap();
    });
    assert_eq!(restored, [".git/objects/pack", ".git/objects/pack/a.pack"]);
    repository.assert_whole();
    assert!(repository.git.join("objects/new").exists());
}

#[test]
fn a_removed_repository_comes_back() {
    let repository = Repository::new();
    repository.guarded(|git| fs::remove_dir_all(git).unwrap());
    repository.assert_whole();
}

#[test]
fn a_repository_that_was_moved_away_comes_home() {
    let repository = Repository::new();
    let away = repository.directory.path().join("work/away");
    repository.guarded(|git| {
        fs::rename(git, &away).unwrap();
        fs::create_dir(git).unwrap();
        fs::write(git.join("config"), "[evil]\n").unwrap();
    });
    repository.assert_whole();
    assert!(!away.exists());
}

#[test]
fn a_planted_link_is_not_followed() {
    let repository = Repository::new();
    let outside = repository.directory.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("main"), "of others").unwrap();
    repository.guarded(|git| {
        fs::remove_dir_all(git.join("refs/heads")).unwrap();
        symlink(&outside, git.join("refs/heads")).unwrap();
        fs::remove_file(git.join("HEAD")).unwrap();
        symlink(outside.join("main"), git.join("HEAD")).unwrap();
        symlink(&outside, git.join("extra")).unwrap();
    });
    repository.assert_whole();
    assert_eq!(fs::read_to_string(outside.join("main")).unwrap(), "of others");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(!repository.git.join("extra").is_symlink());
}

#[test]
fn modes_are_put_back() {
    let repository = Repository::new();
    let mode = |name: &str| fs::metadata(repository.git.join(name)).unwrap().permissions().mode();
    let before = (mode("HEAD"), mode("hooks"));
    repository.guarded(|git| {
        fs::set_permissions(git.join("HEAD"), fs::Permissions::from_mode(0o777)).unwrap();
        fs::set_permissions(git.join("hooks"), fs::Permissions::from_mode(0o777)).unwrap();
    });
    assert_eq!((mode("HEAD"), mode("hooks")), before);
}

#[test]
fn dropping_the_guard_puts_things_back_too() {
    let repository = Repository::new();
    let guard = repository.guard();
    fs::write(repository.git.join("config"), "[evil]\n").unwrap();
    drop(guard);
    repository.assert_whole();
}

#[test]
fn what_gives_way_is_kept_aside_since_it_may_be_the_users_commit() {
    let repository = Repository::new();
    let report = repository.report(|git| {
        fs::write(git.join("refs/heads/main"), "3333\n").unwrap();
        fs::create_dir(git.join("refs/heads/new")).unwrap();
        fs::write(git.join("refs/heads/new/branch"), "4444\n").unwrap();
    });
    repository.assert_whole();
    let kept = repository.displaced().join(repository.git.strip_prefix("/").unwrap());
    assert_eq!(fs::read_to_string(kept.join("refs/heads/main")).unwrap(), "3333\n");
    assert_eq!(fs::read_to_string(kept.join("refs/heads/new/branch")).unwrap(), "4444\n");
    let place = repository.displaced().display().to_string();
    assert!(report.notes.iter().any(|note| note.contains(&place) && note.contains("somebody else")), "{report:?}");
}

#[test]
fn a_large_file_that_was_removed_or_replaced_comes_back() {
    let repository = Repository::new();
    let large = vec![b'x'; usize::try_from(LARGEST).unwrap() + 1];
    let [removed, replaced] = ["index", "packed-refs"].map(|name| repository.git.join(name));
    for path in [&removed, &replaced] {
        fs::write(path, &large).unwrap();
    }
    let restored = repository.guarded(|git| {
        fs::remove_file(&removed).unwrap();
        fs::write(git.join("new"), "evil").unwrap();
        fs::rename(git.join("new"), &replaced).unwrap();
    });
    assert_eq!(restored, [".git/index", ".git/packed-refs"]);
    for path in [&removed, &replaced] {
        assert!(fs::read(path).unwrap() == large, "{path:?}");
    }
}

#[test]
fn a_large_file_written_over_in_place_is_lost_and_not_called_put_back() {
    let repository = Repository::new();
    let index = repository.git.join("index");
    fs::write(&index, vec![b'x'; usize::try_from(LARGEST).unwrap() + 1]).unwrap();
    let report = repository.report(|_| {
        use std::io::Write as _;
        fs::File::options().write(true).open(&index).unwrap().write_all(b"evil").unwrap();
    });
    assert_eq!(report.lost, [index]);
    assert_eq!(report.restored, Vec::<PathBuf>::new());
}

#[test]
fn a_pack_that_was_cut_is_lost_also_when_its_name_is_gone() {
    for remove in [false, true] {
        let repository = Repository::new();
        let pack = repository.git.join("objects/pack/a.pack");
        let report = repository.report(|_| {
            fs::File::options().write(true).open(&pack).unwrap().set_len(2).unwrap();
            if remove {
                fs::remove_file(&pack).unwrap();
            }
        });
        assert_eq!(report.lost, [pack]);
    }
}

#[test]
fn a_pack_of_the_same_size_that_was_touched_is_told() {
    let repository = Repository::new();
    let report = repository.report(|git| fs::write(git.join("objects/pack/a.pack"), "PACKED").unwrap());
    assert_eq!((report.restored.len(), report.lost.len()), (0, 0));
    assert!(report.notes.iter().any(|note| note.contains("1 objects of .git were touched")), "{report:?}");
}

#[test]
fn objects_that_are_not_held_are_told_and_lost_when_removed() {
    let repository = Repository::new();
    let guard = Guard::without_objects(std::slice::from_ref(&repository.git), &repository.displaced());
    let pack = repository.git.join("objects/pack/a.pack");
    fs::remove_file(&pack).unwrap();
    let report = guard.restore();
    assert_eq!(report.lost, [pack]);
    assert!(report.notes.iter().any(|note| note.starts_with("1 files of .git")), "{report:?}");
}

#[test]
fn a_disarmed_guard_changes_nothing() {
    let repository = Repository::new();
    let guard = repository.guard();
    fs::write(repository.git.join("config"), "[new]\n").unwrap();
    guard.disarm();
    assert_eq!(fs::read_to_string(repository.git.join("config")).unwrap(), "[new]\n");
}
