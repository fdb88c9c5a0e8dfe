//! Compares two snapshots, beneath the work directory. Never: a look at the present files, or a program of the user's
//! (external diff, text conversion).

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;

use iudex_core::{DiffStat, FileStat, Snapshot};

use super::Snapshots;
use crate::error::SnapshotError;
use crate::paths;

/// One side of a difference: a file or link in a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) mode: Mode,
    pub(crate) object: String,
}

/// What kind of file an entry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Mode {
    File,
    Executable,
    Link,
}

/// Both sides of one path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Difference {
    pub(super) from: Option<Entry>,
    pub(super) to: Option<Entry>,
}

impl Snapshots {
    /// The paths that differ from `from` to `to`, beneath the work directory, with lines added and removed.
    pub fn diff_stat(&self, from: &Snapshot, to: &Snapshot) -> Result<DiffStat, SnapshotError> {
        if from.raw == to.raw {
            return Ok(DiffStat::default());
        }
        let output = self.diff_tree(&["--numstat", "-z", "--no-renames"], from.raw.as_str(), to.raw.as_str())?;
        let file = |record: &[u8]| {
            let mut fields = record.splitn(3, |byte| *byte == b'\t');
            let mut count = || std::str::from_utf8(fields.next()?).ok()?.parse().ok();
            let (added, removed) = (count(), count());
            let path = String::from_utf8_lossy(fields.next().unwrap_or_default()).into_owned();
            FileStat { path, added, removed }
        };
        Ok(DiffStat { files: paths::records(&output).map(file).collect() })
    }

    /// The unified diff as bytes, for people (`colour` with ANSI colours).
    pub fn diff(&self, from: &Snapshot, to: &Snapshot, colour: bool) -> Result<Vec<u8>, SnapshotError> {
        let colour = if colour { "--color=always" } else { "--color=never" };
        let options = ["--patch", "--find-renames", "--no-ext-diff", "--no-textconv", colour];
        self.diff_tree(&options, from.raw.as_str(), to.raw.as_str())
    }

    /// The paths that differ between two trees, relative to the work directory.
    pub(super) fn differences(&self, from: &str, to: &str) -> Result<BTreeMap<PathBuf, Difference>, SnapshotError> {
        if from == to {
            return Ok(BTreeMap::new());
        }
        let output = self.diff_tree(&["--raw", "-z", "--no-abbrev", "--no-renames"], from, to)?;
        let mut records = paths::records(&output);
        let mut differences = BTreeMap::new();
        while let (Some(header), Some(path)) = (records.next(), records.next()) {
            let header = String::from_utf8_lossy(header);
            let fields: Vec<&str> = header.trim_start_matches(':').split(' ').collect();
            let [from_mode, to_mode, from_object, to_object, _] = fields[..] else {
                return Err(SnapshotError::new(format!("git diff-tree answered `{header}`, which is no difference")));
            };
            let difference = Difference { from: entry(from_mode, from_object), to: entry(to_mode, to_object) };
            differences.insert(paths::from_bytes(path), difference);
        }
        Ok(differences)
    }

    fn diff_tree(&self, options: &[&str], from: &str, to: &str) -> Result<Vec<u8>, SnapshotError> {
        let mut arguments: Vec<OsString> = vec!["diff-tree".into(), "-r".into()];
        arguments.extend(options.iter().map(OsString::from));
        if !self.prefix.as_os_str().is_empty() {
            let mut relative = OsString::from("--relative=");
            relative.push(self.prefix.join(""));
            arguments.push(relative);
        }
        arguments.extend([from.into(), to.into()]);
        self.private().run(&arguments, None)
    }
}

fn entry(mode: &str, object: &str) -> Option<Entry> {
    let mode = match mode {
        "100755" => Mode::Executable,
        "120000" => Mode::Link,
        mode if mode.starts_with("100") => Mode::File,
        _ => return None,
    };
    Some(Entry { mode, object: object.to_owned() })
}
