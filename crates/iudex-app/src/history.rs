//! What was recorded: list, statistics, transcript, diff and undo.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

use iudex_core::{DiffStat, Snapshot};
use iudex_ledger::{Ledger, RecordedEvent, RunRow, RunStats};
use iudex_repo::{RestoreReport, RunLock, SizeLimits, Snapshots};

use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::sandbox;

/// The record, opened for reading.
pub struct History {
    paths: Paths,
    ledger: Ledger,
}

impl History {
    /// Opens the ledger.
    ///
    /// # Errors
    /// [`Refusal`] when it cannot be read.
    pub fn open(paths: Paths) -> Result<Self, Refusal> {
        crate::paths::create_private(&paths.state)?;
        let ledger = Ledger::open(&paths.state)?;
        Ok(Self { paths, ledger })
    }

    /// The runs, newest first; those of `directory` only, when given.
    ///
    /// # Errors
    /// [`Refusal`] when the ledger cannot be read.
    pub fn runs(&self, directory: Option<&Path>, most: u32) -> Result<Vec<RunRow>, Refusal> {
        Ok(self.ledger.runs(directory, most)?)
    }

    /// The run of a name, or the last one in `directory`.
    ///
    /// # Errors
    /// [`Refusal`] when there is none, or the beginning of a name fits several.
    pub fn find(&self, run: Option<&str>, directory: &Path) -> Result<RunRow, Refusal> {
        self.ledger.find(run, directory)?.ok_or_else(|| match run {
            Some(run) => Refusal::usage(format!("there is no run {run}"), "`iudex log --all` lists them"),
            None => Refusal::usage(
                format!("no run was recorded in {}", directory.display()),
                "`iudex log --all` lists the runs of every directory",
            ),
        })
    }

    /// What is recorded about a run.
    ///
    /// # Errors
    /// [`Refusal`] when the ledger cannot be read.
    pub fn stats(&self, run: &RunRow) -> Result<RunStats, Refusal> {
        Ok(self.ledger.stats(&run.run)?)
    }

    /// The events of a run, in order.
    ///
    /// # Errors
    /// [`Refusal`] when the ledger cannot be read.
    pub fn events(&self, run: &RunRow) -> Result<Vec<RecordedEvent>, Refusal> {
        Ok(self.ledger.events(&run.run)?)
    }

    /// What a run changed, as a unified diff.
    ///
    /// # Errors
    /// [`Refusal`] when the run has no snapshots any more.
    pub fn diff(&self, run: &RunRow, colour: bool) -> Result<Vec<u8>, Refusal> {
        let (base, last) = states(&self.ledger, &run.run)?;
        Ok(self.snapshots(run)?.diff(&base, &last, colour)?)
    }

    /// The same as numbers.
    ///
    /// # Errors
    /// [`Refusal`] when the run has no snapshots any more.
    pub fn diff_stat(&self, run: &RunRow) -> Result<DiffStat, Refusal> {
        let (base, last) = states(&self.ledger, &run.run)?;
        Ok(self.snapshots(run)?.diff_stat(&base, &last)?)
    }

    /// Brings the files back as they were before the run. Files that somebody else changed since are kept, unless
    /// `force`.
    ///
    /// # Errors
    /// [`Refusal`] when another run works there, or the snapshots are gone.
    pub fn undo(&self, run: &RunRow, force: bool) -> Result<RestoreReport, Refusal> {
        let _lock = RunLock::acquire(&self.paths.state, Path::new(&run.directory), "undo")?;
        restore(&self.ledger, &self.snapshots(run)?, &run.run, force)
    }

    fn snapshots(&self, run: &RunRow) -> Result<Snapshots, Refusal> {
        let limits = SizeLimits { files: u64::MAX, bytes: u64::MAX };
        Ok(Snapshots::open(&self.paths.state, Path::new(&run.directory), limits)?)
    }
}

/// The state before a run, and the last one that it left.
fn states(ledger: &Ledger, run: &str) -> Result<(Snapshot, Snapshot), Refusal> {
    let (base, last) = ledger.snapshots(run)?;
    let base = base.ok_or_else(|| {
        Refusal::usage(
            format!("run {run} ended before a snapshot was taken"),
            "it changed nothing; `iudex log` lists the runs, and an earlier one can be named",
        )
    })?;
    let last = last.unwrap_or_else(|| base.clone());
    Ok((base, last))
}

/// Brings the files back as they were before a run. The caller holds the lock of the directory.
pub(crate) fn restore(
    ledger: &Ledger,
    snapshots: &Snapshots,
    run: &str,
    force: bool,
) -> Result<RestoreReport, Refusal> {
    let (base, last) = states(ledger, run)?;
    Ok(snapshots.restore(run, &base, &last, force)?)
}

/// The file in a run's directory that names the work directory, so that its snapshots can be found when it is dropped.
const DIRECTORY_FILE: &str = "directory";

/// Makes the directory of a run's files.
pub(crate) fn remember_directory(paths: &Paths, run: &str, directory: &Path) -> Result<(), Refusal> {
    let folder = sandbox::run_directory(paths, run);
    crate::paths::create_private(&folder)?;
    let file = folder.join(DIRECTORY_FILE);
    let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&file);
    written
        .and_then(|mut file| file.write_all(directory.as_os_str().as_encoded_bytes()))
        .map_err(|error| Refusal::usage(format!("cannot write {}: {error}", file.display()), "free some space"))
}

/// Removes the files and snapshots of a run that the ledger has dropped.
pub(crate) fn remove_files(paths: &Paths, run: &str) {
    let folder = sandbox::run_directory(paths, run);
    let limits = SizeLimits { files: u64::MAX, bytes: u64::MAX };
    if let Ok(directory) = std::fs::read_to_string(folder.join(DIRECTORY_FILE))
        && let Ok(snapshots) = Snapshots::open(&paths.state, Path::new(&directory), limits)
    {
        let _ = snapshots.forget(run);
    }
    let _ = std::fs::remove_dir_all(folder);
}
