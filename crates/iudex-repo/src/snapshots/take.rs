//! Takes a snapshot: the raw tree and the tree as git would commit it side by side, then one commit that names them.
//! Never: half a snapshot under a name.

use std::path::{Path, PathBuf};
use std::time::Duration;

use iudex_core::{CommitId, Snapshot, TreeId};

use super::ignored::size;
use super::raw_tree::Extent;
use super::settings::Settings;
use super::{OLDEST_WALK, Snapshots, guard};
use crate::error::SnapshotError;
use crate::object;
use crate::paths;
use crate::store::Meta;
use crate::survey::Survey;

/// The label of the base.
pub(super) const BASE: &str = "base";

/// Names in one line of `not_covered`; more are counted.
const MOST_NAMES: usize = 20;

/// A tree and what is not in it, in words.
#[derive(Debug, Default)]
pub(super) struct Taken {
    pub(super) tree: String,
    pub(super) not_covered: Vec<String>,
}

impl Snapshots {
    pub(super) fn record(&self, run: &str, label: &str) -> Result<Snapshot, SnapshotError> {
        let is_base = label == BASE;
        self.prepare()?;
        let (survey, settings) = std::thread::scope(|scope| {
            let asked = (is_base || self.repository.is_some()).then(|| scope.spawn(|| self.settings()));
            let survey = self.survey(if is_base { OLDEST_WALK } else { Duration::ZERO });
            (survey, asked.map_or_else(|| Ok(Settings::default()), |asked| join(asked.join())))
        });
        if is_base {
            *guard(&self.excludes) = settings.as_ref().ok().and_then(|settings| settings.excludes.clone());
        }
        let user_rules = if is_base { self.write_exclude(&[])? } else { self.has_frozen_rules() };
        let large = self.too_large(&survey)?;
        let left_out = self.pathspecs(&large);
        let filter = match settings.map(|settings| settings.filter) {
            // No agent of iudex has ever been here.
            Err(_) | Ok(Some(_)) if is_base && !self.store.any_within(&self.root) => Ok(None),
            filter => filter,
        };
        let (raw, ignored, git) = std::thread::scope(|scope| {
            let left_out = &left_out;
            let git = self
                .repository
                .as_ref()
                .map(|repository| scope.spawn(move || self.git_tree(repository, filter, left_out)));
            let extent = if !is_base {
                Extent::Pass { rules: user_rules || survey.ignore_rules }
            } else if user_rules || survey.ignore_rules {
                Extent::Base(scope.spawn(|| self.tracked_paths(&survey)))
            } else {
                Extent::BaseWithoutRules
            };
            let raw = self.raw_tree(run, &survey, extent, &large);
            let git = git.map(|handle| join(handle.join()));
            raw.map(|(raw, ignored)| (raw, ignored, git))
        })?;

        let mut not_covered = named_special(&survey);
        let untracked = |(path, bytes): &(PathBuf, u64)| format!("{}: untracked, {}", path.display(), size(*bytes));
        not_covered.extend(large.iter().take(MOST_NAMES).map(untracked));
        not_covered.extend(raw.not_covered);
        not_covered.extend(ignored.not_covered);
        let git_tree = git.and_then(|taken| {
            not_covered.extend(taken.not_covered);
            (!taken.tree.is_empty()).then_some(taken.tree)
        });
        let mut private_modes = ignored.private_modes;
        private_modes.extend(survey.private.iter().map(|(path, mode)| (paths::encode(path), *mode)));
        private_modes.sort();
        private_modes.dedup();
        let meta = Meta {
            prefix: paths::encode(&self.prefix),
            git: git_tree,
            ignored: ignored.tree,
            private_modes,
            large: large.iter().map(|(path, _)| paths::encode(path)).collect(),
            ignored_places: ignored.places,
            nested: self.repositories(&survey),
            empty: survey.empty.iter().map(|path| paths::encode(path)).collect(),
        };
        let snapshot = self.commit(run, label, raw.tree, meta, not_covered)?;
        Ok(Snapshot { ignored: ignored.state, ..snapshot })
    }

    /// Directories with a `.git`; the top is the empty path.
    fn repositories(&self, survey: &Survey) -> Vec<String> {
        let top = self.root.join(".git").symlink_metadata().is_ok().then(String::new);
        top.into_iter().chain(survey.nested.iter().map(|path| paths::encode(path))).collect()
    }

    fn commit(
        &self,
        run: &str,
        label: &str,
        raw: String,
        meta: Meta,
        not_covered: Vec<String>,
    ) -> Result<Snapshot, SnapshotError> {
        let message = meta.to_message()?;
        let commit = object::write_commit(&self.store.git_dir.join("objects"), &raw, &message, self.is_sha256())?;
        if let Some(ignored) = &meta.ignored {
            self.store.keep(run, &format!("{label}-ignored"), ignored)?;
        }
        if let Some(git) = &meta.git {
            self.store.keep(run, &format!("{label}-git"), git)?;
        }
        self.store.keep(run, label, &commit)?;
        let commit = CommitId::new(commit);
        let git = meta.git.clone().map(TreeId::new);
        guard(&self.metas).insert(commit.clone(), meta);
        Ok(Snapshot { raw: TreeId::new(raw), git, ignored: None, commit, not_covered })
    }
}

/// A thread of ours that panicked goes on panicking here.
pub(super) fn join<T>(result: std::thread::Result<T>) -> T {
    result.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn named_special(survey: &Survey) -> Vec<String> {
    let mut lines =
        listed(survey.special.iter().map(|path| (path.as_path(), "not a file (FIFO, socket or device)".to_owned())));
    if survey.cut {
        lines.push("nested repositories beyond the first 200000 entries of the directory".to_owned());
    }
    lines
}

/// One line a path, the first twenty, and how many more there are.
pub(super) fn listed<'a>(paths: impl ExactSizeIterator<Item = (&'a Path, String)>) -> Vec<String> {
    let more = paths.len().saturating_sub(MOST_NAMES);
    let mut lines: Vec<String> =
        paths.take(MOST_NAMES).map(|(path, why)| format!("{}: {why}", path.display())).collect();
    if more > 0 {
        lines.push(format!("and {more} more"));
    }
    lines
}
