use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::Guard;

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

    /// Lets `change` happen and says what was put back, from `.git` on.
    fn guarded(&self, change: impl FnOnce(&Path)) -> Vec<String> {
        let guard = Guard::over(std::slice::from_ref(&self.git));
        change(&self.git);
        let restored = guard.restore();
        let work = self.git.parent().unwrap();
        restored.iter().map(|path| path.strip_prefix(work).unwrap().to_str().unwrap().to_owned()).collect()
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
    assert_eq!(repository.guarded(|_| {}), Vec::<String>::new());
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
    let guard = Guard::over(std::slice::from_ref(&repository.git));
    fs::write(repository.git.join("config"), "[evil]\n").unwrap();
    drop(guard);
    repository.assert_whole();
}
