//! Takes, compares and restores snapshots of one work directory. Never: a file outside of that directory touched.
//!
//! A snapshot has a *raw* tree (the bytes of every file that is not ignored, nested repositories and submodules
//! included) and, in a repository, the tree *as git would commit it*. Both are of the whole repository, also when the
//! work directory is a subdirectory; what is compared and restored lies beneath the work directory.

mod compare;
mod git_tree;
mod ignored;
mod raw_tree;
mod restore;
mod settings;
mod take;

pub(crate) use compare::{Entry, Mode};
pub(crate) use raw_tree::parents_are_directories;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use iudex_core::{CommitId, Snapshot};

use crate::error::{OpenError, SnapshotError};
use crate::git::Git;
use crate::paths;
use crate::place::{self, Repository};
use crate::store::{Meta, Store};
use crate::survey::{Survey, Walk};

/// A walk up to this age serves the base too: opening, asking for git directories and the base follow each other.
const OLDEST_WALK: Duration = Duration::from_secs(1);

/// Bounds for a plain directory (one that is not in a repository).
#[derive(Debug, Clone, Copy)]
pub struct SizeLimits {
    /// Files (20,000).
    pub files: u64,
    /// Bytes (1 GiB).
    pub bytes: u64,
}

impl Default for SizeLimits {
    fn default() -> Self {
        Self { files: 20_000, bytes: 1 << 30 }
    }
}

/// The snapshots of one work directory.
#[derive(Debug)]
pub struct Snapshots {
    /// The top of the raw tree: of the repository, or the work directory itself.
    root: PathBuf,
    work_directory: PathBuf,
    /// The work directory within the root; empty when they are the same.
    prefix: PathBuf,
    /// Where iudex keeps its state; never part of a snapshot.
    state: PathBuf,
    repository: Option<Repository>,
    store: Store,
    /// The walk made at the opening and when it ended; the base uses it up.
    survey: Mutex<Option<(Survey, Instant)>>,
    metas: Mutex<HashMap<CommitId, Meta>>,
    watched: Mutex<Option<ignored::Watched>>,
    /// The user's global ignore file, where the configuration names one.
    excludes: Mutex<Option<PathBuf>>,
    cleaned: AtomicBool,
}

/// What a restore did. Paths are relative to the work directory.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RestoreReport {
    /// Brought back or removed.
    pub restored: Vec<PathBuf>,
    /// Changed by somebody else since the last snapshot of iudex, and kept. Also a `.git` that was not there at the
    /// base (a repository may hold work that no snapshot has), and a new file that is too large for a snapshot.
    pub kept: Vec<PathBuf>,
}

impl Snapshots {
    /// Opens the snapshots of `directory` (absolute, existing), stored under `state/snapshots/…`. Writes nothing.
    ///
    /// A directory in a repository whose top is `/` or the home directory, or that ignores it, is taken as a plain
    /// directory.
    pub fn open(state: &Path, directory: &Path, limits: SizeLimits) -> Result<Self, OpenError> {
        let work_directory = directory.canonicalize().map_err(|error| SnapshotError::io("enter", directory, &error))?;
        let home = place::home();
        let repository = Repository::find(&work_directory, home.as_deref());
        if place::is_forbidden(&work_directory, home.as_deref(), repository.as_ref()) {
            return Err(OpenError::Forbidden(work_directory));
        }
        let repository = repository.filter(|found| !is_ignored_by(found, &work_directory));
        let root = repository.as_ref().map_or_else(|| work_directory.clone(), |found| found.root.clone());
        let prefix = work_directory.strip_prefix(&root).map(Path::to_owned).unwrap_or_default();
        let state = state.canonicalize().unwrap_or_else(|_| state.to_owned());
        let sha256 = repository.as_ref().is_some_and(|found| found.sha256);
        let store = Store::new(&state, &work_directory, sha256);
        let snapshots = Self {
            root,
            work_directory,
            prefix,
            state,
            repository,
            store,
            survey: Mutex::new(None),
            metas: Mutex::new(HashMap::new()),
            watched: Mutex::new(None),
            excludes: Mutex::new(None),
            cleaned: AtomicBool::new(false),
        };
        if snapshots.repository.is_none() {
            snapshots.refuse_too_large(limits)?;
        }
        Ok(snapshots)
    }

    fn refuse_too_large(&self, limits: SizeLimits) -> Result<(), OpenError> {
        let walk = Walk { limits: Some((limits.files, limits.bytes)), ..self.walk() };
        let survey = walk.survey();
        if !survey.cut {
            *guard(&self.survey) = Some((survey, Instant::now()));
            return Ok(());
        }
        match walk.is_too_large() {
            Some((files, bytes)) => Err(OpenError::TooLarge { directory: self.work_directory.clone(), files, bytes }),
            None => Ok(()),
        }
    }

    fn walk(&self) -> Walk<'_> {
        Walk { root: &self.root, leave_out: &self.state, plain: self.repository.is_none(), limits: None }
    }

    /// The walk of the opening, if it is not older than this and nobody has used it up, else a new one.
    fn survey(&self, oldest: Duration) -> Survey {
        match guard(&self.survey).take() {
            Some((survey, when)) if when.elapsed() < oldest => survey,
            _ => self.walk().survey(),
        }
    }

    /// The work directory, canonical.
    pub fn work_directory(&self) -> &Path {
        &self.work_directory
    }

    /// What a sandbox must make read-only: the `.git` (directory or file) of the repository and of nested ones, and
    /// the directories that `.git` files point to, where they lie in the work directory.
    pub fn git_directories(&self) -> Vec<PathBuf> {
        let survey = self.survey(OLDEST_WALK);
        let mut found = Vec::new();
        let nested = survey.nested.iter().map(|nested| self.root.join(nested));
        for top in std::iter::once(self.root.clone()).chain(nested) {
            let dot_git = top.join(".git");
            if dot_git.symlink_metadata().is_err() {
                continue;
            }
            found.push(dot_git);
            if let Some(repository) = Repository::at(&top) {
                found.push(repository.git_dir);
                found.push(repository.common_dir);
            }
        }
        *guard(&self.survey) = Some((survey, Instant::now()));
        found.retain(|path| path.starts_with(&self.work_directory));
        found.sort();
        found.dedup();
        found
    }

    /// Takes the base: raw tree, tree as git would commit it, and ignored files up to 1 MiB each and 64 MiB in all.
    /// Kept under the name of the run until [`Snapshots::forget`]. Hold the run lock.
    pub fn take_base(&self, run: &str) -> Result<Snapshot, SnapshotError> {
        self.record(run, take::BASE)
    }

    /// Takes a snapshot of the present state and keeps it under `run` and `label` (`pass-1`, `undo`). Hold the run
    /// lock.
    pub fn take(&self, run: &str, label: &str) -> Result<Snapshot, SnapshotError> {
        self.record(run, label)
    }

    /// Drops the snapshots of a run; their objects go with it, unless they are younger than an hour or another run
    /// needs them.
    pub fn forget(&self, run: &str) -> Result<(), SnapshotError> {
        if self.store.forget(run)? {
            // The young ones may belong to a snapshot that is being taken at this moment. The index of ignored files
            // is no root for the cleaning, so it must not outlive its objects. A cleaning that fails (the user's
            // repository has dropped objects that an old tree names) leaves everything in place.
            let _ = std::fs::remove_file(self.store.git_dir.join(ignored::INDEX));
            let git = self.private();
            git.output(&["prune", "--expire=1.hour.ago"], None)?;
            if self.store.has_packs() && self.store.is_time_to_repack() {
                let arguments = ["repack", "-A", "-d", "-l", "-q", "--window=0", "--unpack-unreachable=1.hour.ago"];
                git.output(&arguments, None)?;
            }
        }
        Ok(())
    }

    /// git on the private store, able to read the user's objects.
    fn private(&self) -> Git {
        let git = self.store.git(&self.root);
        match &self.repository {
            Some(repository) => git.with("GIT_ALTERNATE_OBJECT_DIRECTORIES", paths::alternate(&repository.objects())),
            None => git,
        }
    }

    fn is_sha256(&self) -> bool {
        self.repository.as_ref().is_some_and(|repository| repository.sha256)
    }

    fn prepare(&self) -> Result<(), SnapshotError> {
        self.store.prepare(&self.work_directory, self.is_sha256())?;
        if !self.cleaned.swap(true, Ordering::Relaxed) {
            self.store.remove_stale_locks();
        }
        Ok(())
    }

    /// The description that was kept with a snapshot.
    fn meta(&self, snapshot: &Snapshot) -> Result<Meta, SnapshotError> {
        self.meta_of(&snapshot.commit)
    }

    fn meta_of(&self, commit: &CommitId) -> Result<Meta, SnapshotError> {
        if let Some(meta) = guard(&self.metas).get(commit) {
            return Ok(meta.clone());
        }
        let text = self.private().run(&["cat-file", "commit", commit.as_str()], None).map_err(|error| {
            SnapshotError::new(format!(
                "snapshot {} of {} cannot be read: {}",
                commit.short(),
                self.work_directory.display(),
                error.message
            ))
            .hint("it may belong to another directory, or have been cleaned away with its run")
        })?;
        let meta = Meta::from_commit(&text)
            .ok_or_else(|| SnapshotError::new(format!("commit {} is not a snapshot of iudex", commit.short())))?;
        guard(&self.metas).insert(commit.clone(), meta.clone());
        Ok(meta)
    }
}

/// True when the repository around a directory ignores it and tracks nothing in it: no snapshot of that repository
/// would ever show a change there.
fn is_ignored_by(repository: &Repository, directory: &Path) -> bool {
    if repository.root == directory {
        return false;
    }
    let git = Git::user(&repository.git_dir, &repository.root);
    let arguments = ["check-ignore".as_ref(), "-q".as_ref(), "--".as_ref(), directory.as_os_str()];
    git.output(&arguments, None).is_ok_and(|output| output.status.success())
}

/// A panic of another thread leaves these caches in order, so poison does not matter.
fn guard<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
