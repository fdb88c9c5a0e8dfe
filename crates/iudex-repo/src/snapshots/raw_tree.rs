//! The tree of raw bytes: `git add -A` on the private index, which git's own stat cache keeps fast from one snapshot to
//! the next. Never: a filter, an end-of-line conversion, or a nested repository taken as a mere link.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::Output;
use std::thread::ScopedJoinHandle;

use super::ignored::{Ignored, Listing};
use super::take::{Taken, join, listed};
use super::{Snapshots, guard};
use crate::error::SnapshotError;
use crate::git::{self, Git};
use crate::paths;
use crate::place::Repository;
use crate::survey::{BUILT_IN_IGNORES, Survey};

/// A user's index above this size (about 5,000 files) means that unchanged files are not copied into the store: they
/// are read from the user's own objects. Smaller ones are copied, so that undo works even when `.git` is gone.
const LARGE_INDEX: u64 = 512 * 1024;

/// A first snapshot of more files than this writes one pack.
const MANY_FILES: u64 = 200;

/// A file that never exists. With an entry beneath a nested repository git takes its files one by one, as those of
/// any directory; without one it would record a link to the commit and look no further.
const SEED: &str = ".iudex-seed";

/// How much a snapshot takes in beside what is not ignored.
pub(super) enum Extent<'scope> {
    /// The ignored files that the base of the run has; without `rules` there is no other either.
    Pass {
        /// True when there may be ignore rules.
        rules: bool,
    },
    /// Ignored files within the bounds, and the paths that the user tracks although ignore rules match them.
    Base(ScopedJoinHandle<'scope, Vec<PathBuf>>),
    /// The same where no rule was found, which saves two processes.
    BaseWithoutRules,
}

impl Snapshots {
    /// Takes the raw tree and the ignored files.
    pub(super) fn raw_tree(
        &self,
        run: &str,
        survey: &Survey,
        extent: Extent<'_>,
        large: &[(PathBuf, u64)],
    ) -> Result<(Taken, Ignored), SnapshotError> {
        let git = self.raw_git();
        self.seed_nested(&git, survey)?;
        if !large.is_empty() {
            // One that was small before: without its entry undo brings the small one back.
            let grown = paths::joined(large.iter().map(|(path, _)| path.as_path()));
            git.run(&["update-index", "--force-remove", "-z", "--stdin"], Some(&grown))?;
        }
        let mut arguments: Vec<OsString> = Vec::new();
        if survey.files > MANY_FILES && !self.store.git_dir.join("index").exists() {
            // Files above this size are streamed into one pack, which is many times faster than a file each.
            arguments.extend(["-c", "core.bigFileThreshold=1", "-c", "pack.compression=1"].map(Into::into));
        }
        arguments.extend(["add", "-A", "--ignore-errors"].map(Into::into));
        arguments.extend(self.pathspecs(large));
        let output = git.output(&arguments, None)?;
        if !matches!(output.status.code(), Some(0 | 1)) || git::could_not_store(&output) {
            return Err(git::failure("add", &output));
        }
        let mut not_covered = refused_paths(&output);

        let tracked = match extent {
            Extent::Base(tracked) => join(tracked.join()),
            Extent::BaseWithoutRules => {
                let tree = git.line(&["write-tree", "--missing-ok"], None)?;
                let ignored = self.ignored_first(run, &Listing::of_directories(&survey.built_in), &[])?;
                return Ok((Taken { tree, not_covered }, ignored));
            }
            Extent::Pass { rules } => {
                let (tree, ignored, state) = std::thread::scope(|scope| {
                    let state = rules.then(|| scope.spawn(|| self.ignored_state(&git)));
                    let tree = git.line(&["write-tree", "--missing-ok"], None);
                    let ignored = self.ignored_again(run);
                    (tree, ignored, state.map_or(Ok(None), |state| join(state.join())))
                });
                return Ok((Taken { tree: tree?, not_covered }, Ignored { state: state?, ..ignored? }));
            }
        };
        if !tracked.is_empty() {
            not_covered.extend(self.add_listed(&git, &tracked)?);
        }
        let (tree, listing) = std::thread::scope(|scope| {
            let tree = scope.spawn(|| git.line(&["write-tree", "--missing-ok"], None));
            let listing = self.list_ignored(&git);
            (join(tree.join()), listing)
        });
        let (mut tree, listing) = (tree?, listing?);
        // What an earlier run had in the index and is ignored by now.
        let tracked: HashSet<PathBuf> = tracked.into_iter().collect();
        let outdated: Vec<&Path> =
            listing.indexed.iter().filter(|path| !tracked.contains(*path)).map(PathBuf::as_path).collect();
        if !outdated.is_empty() {
            git.run(
                &["update-index", "--force-remove", "-z", "--stdin"],
                Some(&paths::joined(outdated.iter().copied())),
            )?;
            tree = git.line(&["write-tree", "--missing-ok"], None)?;
        }
        let ignored = self.ignored_first(run, &listing, &outdated)?;
        Ok((Taken { tree, not_covered }, ignored))
    }

    fn raw_git(&self) -> Git {
        let large = self
            .repository
            .as_ref()
            .is_some_and(|repository| repository.index().metadata().is_ok_and(|index| index.len() > LARGE_INDEX));
        if large { self.private() } else { self.store.git(&self.root) }
    }

    /// Pathspecs that leave out files, and iudex's own state when it lies in the tree; none when there is neither.
    pub(super) fn pathspecs(&self, left_out: &[(PathBuf, u64)]) -> Vec<OsString> {
        let state = self.state.strip_prefix(&self.root).ok();
        let left_out = state.into_iter().chain(left_out.iter().map(|(path, _)| path.as_path()));
        let excludes: Vec<OsString> = left_out
            .map(|relative| {
                let mut exclude = OsString::from(":(exclude,top,literal)");
                exclude.push(relative);
                exclude
            })
            .collect();
        if excludes.is_empty() { excludes } else { ["--".into(), ".".into()].into_iter().chain(excludes).collect() }
    }

    /// The large files that would be stored, although the user's repository does not track them.
    pub(super) fn too_large(&self, survey: &Survey) -> Result<Vec<(PathBuf, u64)>, SnapshotError> {
        if survey.large.is_empty() {
            return Ok(Vec::new());
        }
        let listed = |git: &Git, options: &[&str]| -> Result<HashSet<PathBuf>, SnapshotError> {
            let mut arguments: Vec<OsString> = vec!["ls-files".into(), "-z".into()];
            arguments.extend(options.iter().map(OsString::from));
            arguments.push("--".into());
            arguments.extend(survey.large.iter().map(|(path, _)| path.clone().into_os_string()));
            let output = git.with("GIT_LITERAL_PATHSPECS", "1").run(&arguments, None)?;
            Ok(paths::records(&output).map(paths::from_bytes).collect())
        };
        let tracked = match &self.repository {
            Some(repository) if repository.index().exists() => listed(&self.user(repository), &[])?,
            _ => HashSet::new(),
        };
        let git = self.raw_git();
        self.seed_nested(&git, survey)?;
        let shown = listed(&git, &["-c", "-o", "--exclude-standard"])?;
        let stored = |(path, _): &&(PathBuf, u64)| shown.contains(path) && !tracked.contains(path);
        Ok(survey.large.iter().filter(stored).cloned().collect())
    }

    fn seed_nested(&self, git: &Git, survey: &Survey) -> Result<(), SnapshotError> {
        if survey.nested.is_empty() {
            return Ok(());
        }
        let empty_blob = match &self.repository {
            Some(repository) if repository.sha256 => "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
            _ => "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
        };
        let mut lines = Vec::new();
        for nested in &survey.nested {
            lines.extend_from_slice(format!("100644 {empty_blob}\t").as_bytes());
            lines.extend_from_slice(nested.join(SEED).as_os_str().as_bytes());
            lines.push(0);
        }
        git.run(&["update-index", "--replace", "-z", "--index-info"], Some(&lines)).map(|_| ())
    }

    /// What the user (or a nested repository) tracks although it may be ignored here. A repository whose index cannot
    /// be read adds nothing.
    pub(super) fn tracked_paths(&self, survey: &Survey) -> Vec<PathBuf> {
        let mut tracked = Vec::new();
        if let Some(repository) = &self.repository
            && repository.index().exists()
        {
            let listed = self.user(repository).run(&["ls-files", "-z", "-c", "-i", "--exclude-standard"], None);
            tracked.extend(paths::records(&listed.unwrap_or_default()).map(paths::from_bytes));
        }
        for nested in &survey.nested {
            let top = self.root.join(nested);
            let Some(repository) = Repository::at(&top).filter(|found| found.index().exists()) else { continue };
            let git = Git::user(&repository.git_dir, &top).with("PATH", iudex_exec::path_outside(&self.root));
            let listed = git.run(&["ls-files", "-z"], None).unwrap_or_default();
            tracked.extend(paths::records(&listed).map(|path| nested.join(paths::from_bytes(path))));
        }
        tracked
    }

    /// Adds files to the raw index although ignore rules match them.
    fn add_listed(&self, git: &Git, listed_paths: &[PathBuf]) -> Result<Vec<String>, SnapshotError> {
        let mut usable = Vec::new();
        let mut refused = Vec::new();
        for path in listed_paths {
            match usability(&self.root, path) {
                Usability::Readable | Usability::Missing => usable.push(path.as_path()),
                Usability::Unreadable => refused.push(path.as_path()),
                Usability::NotAFile => {}
            }
        }
        let arguments = ["update-index", "--add", "--remove", "--replace", "-z", "--stdin"];
        git.run(&arguments, Some(&paths::joined(usable)))?;
        Ok(listed(refused.into_iter().map(|path| (path, "cannot be read".to_owned()))))
    }

    /// Writes the ignore rules of the private store, as they are at the base: the built-in list for a plain directory,
    /// the user's own rules, and then `frozen`. True when the user has any.
    pub(super) fn write_exclude(&self, frozen: &[Vec<u8>]) -> Result<bool, SnapshotError> {
        let mut rules = Vec::new();
        if self.repository.is_none() {
            for name in BUILT_IN_IGNORES {
                rules.extend_from_slice(format!("{name}/\n").as_bytes());
            }
        }
        let mut user_rules = false;
        for file in self.exclude_files() {
            let text = std::fs::read(file).unwrap_or_default();
            user_rules |= text.split(|byte| *byte == b'\n').any(|line| !matches!(line, [] | [b'#', ..]));
            rules.extend(text);
            rules.push(b'\n');
        }
        for pattern in frozen {
            rules.extend_from_slice(pattern);
            rules.push(b'\n');
        }
        self.store.write("info/exclude", &rules)?;
        Ok(user_rules)
    }

    /// The user's global ignore file and the repository's own, weakest first.
    fn exclude_files(&self) -> Vec<PathBuf> {
        let mut files: Vec<PathBuf> = self.global_excludes().into_iter().collect();
        if let Some(repository) = &self.repository {
            files.push(repository.common_dir.join("info/exclude"));
        }
        files
    }

    fn global_excludes(&self) -> Option<PathBuf> {
        match guard(&self.excludes).clone() {
            Some(path) => Some(path).filter(|path| !path.as_os_str().is_empty()),
            None => configuration_home().map(|directory| directory.join("git/ignore")),
        }
    }

    /// True when the rules as they were at the base are more than the built-in ones.
    pub(super) fn has_frozen_rules(&self) -> bool {
        let rules = std::fs::read(self.store.git_dir.join("info/exclude")).unwrap_or_default();
        let built_in =
            |line: &[u8]| BUILT_IN_IGNORES.iter().any(|name| line.strip_suffix(b"/") == Some(name.as_bytes()));
        rules.split(|byte| *byte == b'\n').any(|line| !matches!(line, [] | [b'#', ..]) && !built_in(line))
    }
}

fn configuration_home() -> Option<PathBuf> {
    std::env::var_os("XDG_CONFIG_HOME")
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
        .or_else(|| std::env::home_dir().map(|home| home.join(".config")))
}

/// Whether `git update-index` can take a path; it gives up altogether at the first one that it cannot.
pub(super) enum Usability {
    Readable,
    Missing,
    Unreadable,
    /// A directory or a special file, or beneath something that is not a directory.
    NotAFile,
}

pub(super) fn usability(root: &Path, path: &Path) -> Usability {
    if !paths::is_plain_relative(path) || !parents_are_directories(root, path) {
        return Usability::NotAFile;
    }
    let full = root.join(path);
    match full.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => Usability::Readable,
        Ok(metadata) if metadata.is_file() => match std::fs::File::open(&full) {
            Ok(_) => Usability::Readable,
            Err(_) => Usability::Unreadable,
        },
        Ok(_) => Usability::NotAFile,
        Err(error) if error.kind() == ErrorKind::NotFound => Usability::Missing,
        Err(_) => Usability::Unreadable,
    }
}

/// True when no parent of the path, beneath the root, is anything but a directory or missing.
pub(crate) fn parents_are_directories(root: &Path, path: &Path) -> bool {
    path.ancestors().skip(1).filter(|parent| !parent.as_os_str().is_empty()).all(|parent| {
        match root.join(parent).symlink_metadata() {
            Ok(metadata) => metadata.is_dir(),
            Err(error) => error.kind() == ErrorKind::NotFound || error.kind() == ErrorKind::NotADirectory,
        }
    })
}

/// What `git add` said about paths that it could not take.
fn refused_paths(output: &Output) -> Vec<String> {
    let said = String::from_utf8_lossy(&output.stderr);
    let mut refused: Vec<String> = Vec::new();
    for line in said.lines() {
        let named = [
            ("error: unable to index file '", "cannot be read"),
            ("warning: could not open directory '", "cannot be read"),
            ("error: unable to add '", "cannot be stored by git"),
            ("warning: adding embedded git repository: ", "a nested repository, too deep"),
        ];
        for (start, why) in named {
            if let Some(rest) = line.strip_prefix(start) {
                let path = rest.split('\'').next().unwrap_or(rest);
                refused.push(format!("{path}: {why}"));
            }
        }
        if line.ends_with("does not have a commit checked out") {
            refused.push(format!("{}: a nested repository, too deep", line.split('\'').nth(1).unwrap_or(line)));
        }
    }
    if refused.is_empty() && output.status.code() == Some(1) {
        refused.extend(said.lines().last().map(str::to_owned));
    }
    let more = refused.len().saturating_sub(20);
    refused.truncate(20);
    if more > 0 {
        refused.push(format!("and {more} more that git could not take"));
    }
    refused
}
