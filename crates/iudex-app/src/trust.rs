//! Which files of projects the user trusts: by place and by content, so that one changed byte ends the trust.
//!
//! Never: trust that nobody gave. A list that cannot be read is an error, not an empty or a full one.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::config::find::{find_upwards, read_bounded};
use crate::config::{self, LooseKey, PROJECT_FILE};
use crate::paths::Paths;
use crate::refusal::Refusal;

/// The name of the file with notes for agents.
pub const AGENTS_FILE: &str = "AGENTS.md";

/// How the user stands to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Standing {
    /// Trusted, exactly as it is.
    Trusted,
    /// Another content of this file was trusted.
    Changed,
    /// Never trusted.
    Unknown,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    path: String,
    sha256: String,
}

#[derive(Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct List {
    #[serde(default)]
    file: Vec<Entry>,
}

/// The list of trusted files, `trust.toml` in the state directory.
#[derive(Debug)]
pub struct TrustStore {
    list: List,
}

impl TrustStore {
    /// Reads the list; one that is not there is empty.
    ///
    /// # Errors
    /// [`Refusal`] when it cannot be read, is no such list, or could have been written by others.
    pub fn open(paths: &Paths) -> Result<Self, Refusal> {
        let file = list_file(paths);
        let Ok(meta) = fs::metadata(&file) else {
            return match file.symlink_metadata() {
                Ok(_) => Err(unusable(&file, "cannot be reached")),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Self { list: List::default() }),
                Err(error) => Err(unusable(&file, &format!("cannot be reached: {error}"))),
            };
        };
        if meta.permissions().mode() & 0o022 != 0 {
            return Err(Refusal::usage(
                format!("{} can be written by others, so what it says cannot be believed", file.display()),
                format!("look into it, then: chmod 600 {}", file.display()),
            ));
        }
        let bytes = read_bounded(&file).map_err(|what| unusable(&file, &what))?;
        let text = String::from_utf8(bytes).map_err(|_| unusable(&file, "is not UTF-8"))?;
        let list =
            toml::from_str(&text).map_err(|error| unusable(&file, &format!("cannot be read: {}", error.message())))?;
        Ok(Self { list })
    }

    /// How the user stands to these bytes at this path (symbolic links resolved).
    pub fn standing(&self, path: &Path, bytes: &[u8]) -> Standing {
        let entry = path.to_str().and_then(|path| self.list.file.iter().find(|entry| entry.path == path));
        match entry {
            Some(entry) if entry.sha256 == digest(bytes) => Standing::Trusted,
            Some(_) => Standing::Changed,
            None => Standing::Unknown,
        }
    }
}

fn list_file(paths: &Paths) -> PathBuf {
    paths.state.join("trust.toml")
}

fn unusable(file: &Path, what: &str) -> Refusal {
    Refusal::usage(
        format!("the list of trusted files {} {what}", file.display()),
        "move it away and trust your projects anew with `iudex trust`",
    )
}

fn digest(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Changes the list under a lock and writes it whole: a temporary file (0600), then a rename.
fn change(paths: &Paths, edit: impl FnOnce(&mut Vec<Entry>)) -> Result<(), Refusal> {
    let state = &paths.state;
    crate::paths::create_private(state)?;
    let file = list_file(paths);
    let failed = |error: &dyn std::fmt::Display| {
        Refusal::usage(format!("cannot write {}: {error}", file.display()), "see that the state directory is writable")
    };
    let lock = File::options().create(true).append(true).mode(0o600).open(state.join("trust.lock"));
    let lock = lock.map_err(|error| failed(&error))?;
    lock.lock().map_err(|error| failed(&error))?;
    let mut list = TrustStore::open(paths)?.list;
    edit(&mut list.file);
    list.file.sort_by(|one, other| one.path.cmp(&other.path));
    let text = toml::to_string(&list).map_err(|error| failed(&error))?;
    let mut temporary = tempfile::NamedTempFile::new_in(state).map_err(|error| failed(&error))?;
    temporary.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    temporary.as_file().sync_all().map_err(|error| failed(&error))?;
    temporary.persist(&file).map_err(|error| failed(&error))?;
    Ok(())
}

/// Records these bytes at this path as trusted.
///
/// # Errors
/// [`Refusal`] when the path is not UTF-8 or the list cannot be written.
pub(crate) fn record(paths: &Paths, path: &Path, bytes: &[u8]) -> Result<(), Refusal> {
    let Some(name) = path.to_str().map(str::to_owned) else {
        return Err(Refusal::usage(
            format!("the path {} is not UTF-8", path.display()),
            "move the project to another path",
        ));
    };
    let sha256 = digest(bytes);
    change(paths, |entries| {
        entries.retain(|entry| entry.path != name);
        entries.push(Entry { path: name, sha256 });
    })
}

/// The project's notes for agents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AgentsMd {
    /// Trusted as it is: its text.
    Trusted(String),
    /// There is one and it is left out, since the user does not trust it as it is.
    LeftOut(PathBuf),
    /// There is none.
    None,
}

impl AgentsMd {
    /// Reads the nearest AGENTS.md, found as the configuration is.
    pub(crate) fn read(directory: &Path, paths: &Paths, trust: &TrustStore) -> Self {
        let Some(found) = find_upwards(directory, &paths.home, AGENTS_FILE) else { return Self::None };
        let path = found.canonicalize().unwrap_or(found);
        match read_bounded(&path) {
            Ok(bytes) if trust.standing(&path, &bytes) == Standing::Trusted => {
                // Text for a model: a stray byte is no reason to lose the rest.
                let text = String::from_utf8_lossy(&bytes);
                Self::Trusted(text.trim_start_matches('\u{feff}').to_owned())
            }
            _ => Self::LeftOut(path),
        }
    }
}

/// What `iudex trust` is about: files as they were read, and what trusting them allows.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustPlan {
    /// The files, the configuration first.
    pub files: Vec<TrustFile>,
}

/// One file of a [`TrustPlan`].
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TrustFile {
    /// Where it is, symbolic links resolved.
    #[serde(serialize_with = "crate::config::path_as_text")]
    pub path: PathBuf,
    /// The digest of its bytes, in hexadecimal.
    pub sha256: String,
    /// How the user stands to it now.
    pub standing: Standing,
    /// What it may do once it is trusted (none for AGENTS.md).
    pub loose: Vec<LooseKey>,
    #[serde(skip)]
    bytes: Vec<u8>,
}

/// Reads what could be trusted for this directory. A configuration that is not valid is an error: what it would do
/// cannot be shown.
///
/// # Errors
/// [`Refusal`] when there is neither file, or the configuration is not valid.
pub fn plan(directory: &Path, paths: &Paths) -> Result<TrustPlan, Refusal> {
    let trust = TrustStore::open(paths)?;
    let mut files = Vec::new();
    for name in [PROJECT_FILE, AGENTS_FILE] {
        let Some(found) = find_upwards(directory, &paths.home, name) else { continue };
        let path = found.canonicalize().unwrap_or(found);
        let bytes = read_bounded(&path).map_err(|what| {
            Refusal::usage(format!("{} {what}", path.display()), "make it a readable file, or remove it")
        })?;
        let loose = if name == PROJECT_FILE { config::loose_keys(&path, &bytes, paths)? } else { Vec::new() };
        files.push(TrustFile { sha256: digest(&bytes), standing: trust.standing(&path, &bytes), loose, bytes, path });
    }
    if files.is_empty() {
        return Err(Refusal::usage(
            format!("there is no {PROJECT_FILE} and no {AGENTS_FILE} for {}", directory.display()),
            "`iudex init` writes a configuration",
        ));
    }
    Ok(TrustPlan { files })
}

impl TrustPlan {
    /// Records every file as trusted: exactly the bytes that were read and shown.
    ///
    /// # Errors
    /// [`Refusal`] when the list cannot be written.
    pub fn record(&self, paths: &Paths) -> Result<(), Refusal> {
        self.files.iter().try_for_each(|file| record(paths, &file.path, &file.bytes))
    }
}

/// Takes the trust back from the files of this directory and gives those that had it. Works without the files too.
///
/// # Errors
/// [`Refusal`] when the list cannot be read or written.
pub fn remove(directory: &Path, paths: &Paths) -> Result<Vec<PathBuf>, Refusal> {
    let directory = directory.canonicalize().unwrap_or_else(|_| directory.to_owned());
    let mut candidates: Vec<PathBuf> = Vec::new();
    for name in [PROJECT_FILE, AGENTS_FILE] {
        candidates.push(directory.join(name));
        candidates
            .extend(find_upwards(&directory, &paths.home, name).map(|found| found.canonicalize().unwrap_or(found)));
    }
    let mut removed = Vec::new();
    change(paths, |entries| {
        entries.retain(|entry| {
            let goes = candidates.iter().any(|candidate| candidate.to_str() == Some(entry.path.as_str()));
            if goes {
                removed.push(PathBuf::from(&entry.path));
            }
            !goes
        });
    })?;
    Ok(removed)
}
