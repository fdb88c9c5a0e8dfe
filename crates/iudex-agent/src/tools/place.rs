//! Where a path of a call really leads. Never outside the work directory, through no link and no `..`.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::walk;

/// The part of the file system that tools reach.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// Absolute and canonical.
    pub work_dir: PathBuf,
    /// Never written.
    pub read_only: Vec<PathBuf>,
    /// Neither read nor written.
    pub hidden: Vec<PathBuf>,
}

/// A path whose links are resolved and that lies beneath the work directory. It need not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Resolved {
    /// Absolute, without links.
    pub path: PathBuf,
    /// As it is shown to the model: relative to the work directory.
    pub shown: String,
}

/// A path without links, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    if let Ok(real) = path.canonicalize() {
        return real;
    }
    match (path.parent(), path.file_name()) {
        (Some(parent), Some(name)) => real(parent).join(name),
        _ => path.to_owned(),
    }
}

impl Place {
    /// Resolves a path that is only read.
    pub fn for_reading(&self, text: &str) -> Result<Resolved, String> {
        self.resolve(text)
    }

    /// Resolves a path that will be written.
    pub fn for_writing(&self, text: &str) -> Result<Resolved, String> {
        let resolved = self.resolve(text)?;
        let relative = resolved.path.strip_prefix(&self.work_dir).unwrap_or(&resolved.path);
        let in_git = relative.components().any(|part| part.as_os_str() == OsStr::new(".git"));
        let read_only = self.read_only.iter().any(|path| resolved.path.starts_with(path));
        if in_git || read_only {
            return Err(format!(
                "{text} is read-only here and was not written. Change the project's own files instead."
            ));
        }
        if relative.as_os_str().is_empty() {
            return Err(format!("{text} is the work directory itself. Give the path of a file in it."));
        }
        Ok(resolved)
    }

    fn resolve(&self, text: &str) -> Result<Resolved, String> {
        let trimmed = text.trim();
        if trimmed.is_empty() || trimmed.contains('\0') {
            return Err("path is empty. Give the path of a file, relative to the work directory.".to_owned());
        }
        let outside = || {
            format!(
                "{trimmed} is outside the work directory {}. Use a path inside it; other files can be read with bash.",
                self.work_dir.display()
            )
        };
        let mut existing = PathBuf::new();
        let mut parts = Vec::new();
        let joined = self.work_dir.join(trimmed);
        for part in joined.components() {
            parts.push(part);
        }
        let mut rest = Vec::new();
        // The longest beginning of the path that exists, links resolved.
        while !parts.is_empty() {
            let candidate: PathBuf = parts.iter().collect();
            match candidate.canonicalize() {
                Ok(real) => {
                    existing = real;
                    break;
                }
                Err(_) => rest.extend(parts.pop()),
            }
        }
        if !existing.starts_with(&self.work_dir) {
            return Err(outside());
        }
        let mut path = existing.clone();
        for part in rest.iter().rev() {
            match part {
                Component::Normal(name) => path.push(name),
                Component::CurDir => {}
                _ => return Err(format!("{trimmed} goes through a directory that does not exist. Give a plain path.")),
            }
        }
        if path != existing {
            if !existing.is_dir() {
                let file = self.shown(&existing);
                return Err(format!("{file} is not a directory, so {trimmed} cannot exist. Use another path."));
            }
            let first = rest.iter().rev().find_map(|part| match part {
                Component::Normal(name) => Some(existing.join(name)),
                _ => None,
            });
            if first.is_some_and(|first| first.symlink_metadata().is_ok()) {
                return Err(format!("{trimmed} is a link that leads nowhere or in a circle. Use another path."));
            }
        }
        if self.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            return Err(outside());
        }
        Ok(Resolved { shown: self.shown(&path), path })
    }

    /// A path as it is shown to the model.
    pub fn shown(&self, path: &Path) -> String {
        let relative = path.strip_prefix(&self.work_dir).unwrap_or(path);
        if relative.as_os_str().is_empty() { ".".to_owned() } else { relative.display().to_string() }
    }

    /// What to say about a file that does not exist: files of that name elsewhere, or what to do.
    pub fn missing(&self, resolved: &Resolved) -> String {
        let Some(name) = resolved.path.file_name() else { return String::new() };
        let found: Vec<String> = walk::files(&self.work_dir, &self.work_dir)
            .take(5_000)
            .filter(|entry| entry.file_name() == name)
            .take(3)
            .map(|entry| self.shown(entry.path()))
            .collect();
        if found.is_empty() { String::new() } else { format!(" There is {}.", found.join(", ")) }
    }
}
