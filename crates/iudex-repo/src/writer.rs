//! Writes files of a snapshot into the work directory: each whole by a temporary file and a rename, as the raw bytes.
//! Never: through a symbolic link, outside of the directory, or over a directory that is not empty.

use std::collections::HashSet;
use std::io::{BufRead as _, BufReader, ErrorKind, Read as _, Write};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout};

use crate::error::SnapshotError;
use crate::git::Git;
use crate::paths;
use crate::snapshots::{Entry, Mode, RestoreReport, parents_are_directories};

/// How the names of temporary files begin.
pub(crate) const TEMPORARY: &str = ".iudex-restore-";

/// What became of one path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Done {
    /// It is as at the target.
    Changed,
    /// Something that must not be removed stands in its place.
    Blocked,
    /// The file system refused; the first refusal is the result of the whole.
    Failed,
}

/// Writes beneath one directory.
pub(crate) struct Writer {
    root: PathBuf,
    git: Git,
    blobs: Option<Blobs>,
    failures: Vec<SnapshotError>,
}

impl Writer {
    pub(crate) fn new(root: &Path, git: Git) -> Self {
        Self { root: root.to_owned(), git, blobs: None, failures: Vec::new() }
    }

    /// The report, or the first failure when there was one.
    pub(crate) fn finish(self, report: RestoreReport) -> Result<RestoreReport, SnapshotError> {
        let mut failures = self.failures.into_iter();
        let Some(mut first) = failures.next() else { return Ok(report) };
        let more = failures.len();
        if more > 0 {
            first.message = format!("{} (and {more} more paths)", first.message);
        }
        if first.hint.is_none() {
            first.hint = Some("what could go back is back; the command can be repeated".to_owned());
        }
        Err(first)
    }

    fn is_safe(&self, path: &Path) -> bool {
        paths::is_plain_relative(path) && parents_are_directories(&self.root, path)
    }

    fn note(&mut self, what: &str, path: &Path, result: std::io::Result<()>) -> Done {
        match result {
            Ok(()) => Done::Changed,
            Err(error) => {
                self.failures.push(SnapshotError::io(what, path, &error));
                Done::Failed
            }
        }
    }

    /// Removes a file or link.
    pub(crate) fn remove(&mut self, path: &Path) -> Done {
        // Beneath something that is no directory there is nothing to remove.
        if !self.is_safe(path) {
            return Done::Blocked;
        }
        let full = self.root.join(path);
        match full.symlink_metadata() {
            Err(error) if error.kind() == ErrorKind::NotFound => Done::Changed,
            Ok(metadata) if metadata.is_dir() => Done::Blocked,
            _ => {
                let result = std::fs::remove_file(&full);
                self.note("remove", &full, result)
            }
        }
    }

    /// Removes the parents of a path that are empty and not in `keep`.
    pub(crate) fn remove_empty_parents(&mut self, path: &Path, keep: &HashSet<PathBuf>) {
        for parent in path.ancestors().skip(1) {
            if parent.as_os_str().is_empty() || keep.contains(parent) || !self.remove_empty_directory(parent) {
                return;
            }
        }
    }

    /// Removes a directory if it is empty.
    pub(crate) fn remove_empty_directory(&mut self, path: &Path) -> bool {
        self.is_safe(path) && std::fs::remove_dir(self.root.join(path)).is_ok()
    }

    /// Creates a directory that is missing, if nothing stands in its place.
    pub(crate) fn create_directory(&mut self, path: &Path) {
        let full = self.root.join(path);
        let missing = full.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound);
        if missing && self.is_safe(path) {
            let result = std::fs::create_dir_all(&full);
            self.note("create", &full, result);
        }
    }

    /// Writes a file or link as it is in the store. `private_mode` overrides the permission bits.
    ///
    /// # Errors
    /// When git cannot hand out the object.
    pub(crate) fn write(
        &mut self,
        path: &Path,
        entry: &Entry,
        private_mode: Option<u32>,
    ) -> Result<Done, SnapshotError> {
        let full = self.root.join(path);
        let Some(parent) = full.parent().map(Path::to_owned).filter(|_| self.is_safe(path)) else {
            return Ok(Done::Blocked);
        };
        if let Err(error) = std::fs::create_dir_all(&parent) {
            return Ok(self.note("create", &parent, Err(error)));
        }
        let present = full.symlink_metadata().ok();
        if present.as_ref().is_some_and(std::fs::Metadata::is_dir) && std::fs::remove_dir(&full).is_err() {
            return Ok(Done::Blocked);
        }
        let temporary = parent.join(format!("{TEMPORARY}{}", std::process::id()));
        // Of a killed run with the same process number; another reason shows at once below.
        let _ = std::fs::remove_file(&temporary);
        let result = self.create(&temporary, entry, present.as_ref(), private_mode)?;
        let result = result.and_then(|()| std::fs::rename(&temporary, &full));
        if result.is_err() {
            let _ = std::fs::remove_file(&temporary);
        }
        Ok(self.note("write", &full, result))
    }

    fn create(
        &mut self,
        temporary: &Path,
        entry: &Entry,
        present: Option<&std::fs::Metadata>,
        private_mode: Option<u32>,
    ) -> Result<std::io::Result<()>, SnapshotError> {
        if entry.mode == Mode::Link {
            let mut target = Vec::new();
            if let Err(error) = self.blobs()?.copy(&entry.object, &mut target)? {
                return Ok(Err(error));
            }
            return Ok(std::os::unix::fs::symlink(std::ffi::OsStr::from_bytes(&target), temporary));
        }
        let executable = entry.mode == Mode::Executable;
        let mode = private_mode.unwrap_or(if executable { 0o777 } else { 0o666 });
        let file = std::fs::OpenOptions::new().write(true).create_new(true).mode(mode).open(temporary);
        let mut file = match file {
            Ok(file) => file,
            Err(error) => return Ok(Err(error)),
        };
        if let Err(error) = self.blobs()?.copy(&entry.object, &mut file)? {
            return Ok(Err(error));
        }
        Ok(dress(&file, temporary, executable, present, private_mode))
    }

    fn blobs(&mut self) -> Result<&mut Blobs, SnapshotError> {
        match &mut self.blobs {
            Some(blobs) => Ok(blobs),
            empty => Ok(empty.insert(Blobs::open(&self.git)?)),
        }
    }
}

/// Gives a new file the permissions and, where iudex may, the owner of the one it replaces or of its directory.
fn dress(
    file: &std::fs::File,
    path: &Path,
    executable: bool,
    present: Option<&std::fs::Metadata>,
    private_mode: Option<u32>,
) -> std::io::Result<()> {
    let created = file.metadata()?;
    let like = match present.filter(|present| present.is_file()) {
        Some(present) => Some(present.clone()),
        None => path.parent().and_then(|parent| parent.metadata().ok()),
    };
    if let Some(like) = like.filter(|like| like.uid() != created.uid()) {
        // Only root can; anybody else owns what they write.
        let _ = std::os::unix::fs::fchown(file, Some(like.uid()), Some(like.gid()));
    }
    let mode = match (private_mode, present.filter(|present| present.is_file())) {
        (Some(mode), _) => mode,
        (None, Some(present)) => {
            let mode = present.permissions().mode() & 0o7777;
            if executable { mode | ((mode & 0o444) >> 2) } else { mode & !0o111 }
        }
        (None, None) => return Ok(()),
    };
    file.set_permissions(std::fs::Permissions::from_mode(mode))
}

/// A conversation with `git cat-file --batch`.
struct Blobs {
    child: Child,
    ask: ChildStdin,
    answer: BufReader<ChildStdout>,
}

impl Blobs {
    fn open(git: &Git) -> Result<Self, SnapshotError> {
        let mut child = git.spawn(&["cat-file", "--batch"])?;
        let (Some(ask), Some(answer)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(SnapshotError::new("git cat-file has no pipes"));
        };
        Ok(Self { child, ask, answer: BufReader::new(answer) })
    }

    /// Copies an object. The outer error is git's, the inner one that of the destination.
    fn copy(&mut self, object: &str, to: &mut dyn Write) -> Result<std::io::Result<()>, SnapshotError> {
        let broken = |error: std::io::Error| SnapshotError::new(format!("git cat-file broke off at {object}: {error}"));
        writeln!(self.ask, "{object}").and_then(|()| self.ask.flush()).map_err(broken)?;
        let mut header = String::new();
        self.answer.read_line(&mut header).map_err(broken)?;
        let length = match header.split_whitespace().collect::<Vec<_>>()[..] {
            [_, "blob", length] => length.parse::<u64>().ok(),
            _ => None,
        };
        let Some(length) = length else {
            return Err(SnapshotError::new(format!(
                "object {object} cannot be read: git answered `{}`",
                header.trim_end()
            ))
            .hint("the snapshot may have been cleaned away with its run"));
        };
        let written = std::io::copy(&mut (&mut self.answer).take(length), to);
        let copied = match written {
            Ok(copied) => copied,
            // The rest of the answer is still in the pipe, so this conversation is over.
            Err(error) => {
                let _ = self.child.kill();
                return Ok(Err(error));
            }
        };
        let mut end = [0];
        self.answer.read_exact(&mut end).map_err(broken)?;
        if copied != length {
            return Err(SnapshotError::new(format!("object {object} is cut: {copied} of {length} bytes")));
        }
        Ok(Ok(()))
    }
}

impl Drop for Blobs {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
