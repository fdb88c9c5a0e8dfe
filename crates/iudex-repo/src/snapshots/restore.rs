//! Brings the work directory back to a snapshot, path by path: what is as iudex last saw it goes back, what somebody
//! else changed stays. Never: a write through a symbolic link, outside of the work directory, or into a `.git`.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::path::{Path, PathBuf};

use iudex_core::{CommitId, Restored, Snapshot};

use super::compare::{Difference, Entry};
use super::take::BASE;
use super::{RestoreReport, Snapshots};
use crate::error::SnapshotError;
use crate::paths;
use crate::store::Meta;
use crate::writer::{Done, TEMPORARY, Writer};

/// The label of the snapshot that is taken before files are changed.
const BEFORE: &str = "before-undo";

/// What a restore would do. Paths are relative to the work directory.
#[derive(Debug, Default)]
struct Plan {
    /// From the target to the present.
    changes: BTreeMap<PathBuf, Difference>,
    /// Changed by somebody else since iudex last looked.
    others: BTreeSet<PathBuf>,
    /// Changed from the target to what iudex last saw.
    ours: HashSet<PathBuf>,
    /// Of the target, relative to the work directory.
    directories: HashSet<PathBuf>,
    private_modes: BTreeMap<PathBuf, u32>,
    empty_now: Vec<PathBuf>,
    empty_then: Vec<PathBuf>,
    /// Repositories that were not there, and files that no snapshot holds.
    unsaved: Vec<PathBuf>,
}

impl Snapshots {
    /// Brings the work directory from its present state back to `target`. `ours` is the last state that iudex saw:
    /// paths that differ between it and the present state were changed by somebody else and are kept and reported,
    /// unless `force`. Saves a snapshot of the present state first, under `run` and `before-undo`. Can be repeated
    /// when it was interrupted. Hold the run lock.
    pub fn restore(
        &self,
        run: &str,
        target: &Snapshot,
        ours: &Snapshot,
        force: bool,
    ) -> Result<RestoreReport, SnapshotError> {
        let plan = self.plan(run, target, ours)?;
        self.carry_out(run, target, &plan, force)
    }

    /// The same without force, and nothing at all when a path that has to go back was also changed by somebody else.
    pub fn restore_unless_in_the_way(
        &self,
        run: &str,
        target: &Snapshot,
        ours: &Snapshot,
    ) -> Result<Restored, SnapshotError> {
        let plan = self.plan(run, target, ours)?;
        let both = |path: &&PathBuf| plan.ours.contains(*path) && plan.changes.contains_key(*path);
        let paths: Vec<PathBuf> = plan.others.iter().filter(both).cloned().collect();
        if !paths.is_empty() {
            return Ok(Restored::InTheWay { paths });
        }
        let report = self.carry_out(run, target, &plan, false)?;
        Ok(Restored::Done { kept: report.kept })
    }

    /// Saves the present state and compares the three.
    fn plan(&self, run: &str, target: &Snapshot, ours: &Snapshot) -> Result<Plan, SnapshotError> {
        let target_meta = self.meta(target)?;
        let ours_meta = self.meta(ours)?;
        if paths::decode(&target_meta.prefix) != self.prefix {
            return Err(SnapshotError::new(format!(
                "the repository around {} is another than at the start of run {run}",
                self.work_directory.display()
            ))
            .hint("put `.git` back where it was, then run the command again"));
        }
        let present = self.record(run, &self.free_label(run))?;
        let present_meta = self.meta(&present)?;

        let mut changes = self.differences(target.raw.as_str(), present.raw.as_str())?;
        let mut others = self.differences(ours.raw.as_str(), present.raw.as_str())?;
        let mut agent = self.differences(target.raw.as_str(), ours.raw.as_str())?;
        let places = self.ignored_places(run, &target_meta)?;
        // It was there, ignored and so not in the target's raw tree; only the rules have changed.
        changes.retain(|path, change| change.from.is_some() || !is_within(path, &places));
        if let (Some(then), Some(now)) = (&target_meta.ignored, &present_meta.ignored) {
            changes.extend(self.differences(then, now)?);
            if let Some(last) = &ours_meta.ignored {
                others.extend(self.differences(last, now)?);
                agent.extend(self.differences(then, last)?);
            }
        }

        let beneath = |encoded: &[String]| -> Vec<PathBuf> {
            encoded
                .iter()
                .filter_map(|path| paths::decode(path).strip_prefix(&self.prefix).map(Path::to_owned).ok())
                .collect()
        };
        let ours_empty: HashSet<PathBuf> = beneath(&ours_meta.empty).into_iter().collect();
        let nested_then = beneath(&target_meta.nested);
        let large_then = beneath(&target_meta.large);
        let large_now: Vec<PathBuf> = beneath(&present_meta.large)
            .into_iter()
            .filter(|path| !large_then.contains(path) && !changes.contains_key(path))
            .collect();
        Ok(Plan {
            changes,
            others: others.into_keys().filter(|path| !is_temporary(path)).collect(),
            ours: agent.into_keys().collect(),
            directories: self.directories(target, &target_meta)?,
            private_modes: target_meta
                .private_modes
                .iter()
                .filter_map(|(path, mode)| {
                    let path = paths::decode(path).strip_prefix(&self.prefix).ok()?.to_owned();
                    Some((path, *mode))
                })
                .collect(),
            empty_now: beneath(&present_meta.empty).into_iter().filter(|path| ours_empty.contains(path)).collect(),
            empty_then: beneath(&target_meta.empty),
            unsaved: beneath(&present_meta.nested)
                .into_iter()
                .filter(|path| !nested_then.contains(path))
                .map(|path| path.join(".git"))
                .chain(large_now)
                .collect(),
        })
    }

    /// A label that does not hide the state before an earlier, interrupted undo.
    fn free_label(&self, run: &str) -> String {
        let mut label = BEFORE.to_owned();
        let mut number = 1;
        while self.store.kept(run, &label).is_some() {
            number += 1;
            label = format!("{BEFORE}-{number}");
        }
        label
    }

    /// Ignored places as at the target and at the base of the run, relative to the work directory.
    fn ignored_places(&self, run: &str, target: &Meta) -> Result<HashSet<PathBuf>, SnapshotError> {
        let mut encoded = target.ignored_places.clone();
        if let Some(base) = self.store.kept(run, BASE) {
            encoded.extend(self.meta_of(&CommitId::new(base))?.ignored_places);
        }
        let relative = |place: &String| {
            paths::decode(place.trim_end_matches('/')).strip_prefix(&self.prefix).map(Path::to_owned).ok()
        };
        Ok(encoded.iter().filter_map(relative).collect())
    }

    /// Every directory that held something at the target, relative to the work directory.
    fn directories(&self, target: &Snapshot, meta: &Meta) -> Result<HashSet<PathBuf>, SnapshotError> {
        let git = self.private();
        let mut directories = HashSet::new();
        for tree in std::iter::once(target.raw.as_str()).chain(meta.ignored.as_deref()) {
            let output = git.run(&["ls-tree", "-r", "-d", "-z", "--name-only", "--full-tree", tree], None)?;
            directories.extend(paths::records(&output).map(paths::from_bytes));
        }
        let places = meta.ignored_places.iter().map(|place| paths::decode(place.trim_end_matches('/')));
        directories.extend(
            places
                .chain(meta.empty.iter().map(|path| paths::decode(path)))
                .flat_map(|path| path.ancestors().map(Path::to_owned).collect::<Vec<_>>()),
        );
        Ok(directories
            .into_iter()
            .filter_map(|path| path.strip_prefix(&self.prefix).map(Path::to_owned).ok())
            .collect())
    }

    fn carry_out(
        &self,
        run: &str,
        target: &Snapshot,
        plan: &Plan,
        force: bool,
    ) -> Result<RestoreReport, SnapshotError> {
        let mut report = RestoreReport::default();
        let mut todo: Vec<(&PathBuf, Option<&Entry>)> = Vec::new();
        for (path, change) in &plan.changes {
            if !force && plan.others.contains(path) {
                report.kept.push(path.clone());
            } else {
                todo.push((path, change.from.as_ref()));
            }
        }
        let mut writer = Writer::new(&self.work_directory, self.private());
        Self::apply(&mut writer, plan, &todo, &mut report)?;

        // An agent that made its files ignored has hidden them from the plan; under the old rules they show.
        let rules_changed = todo.iter().any(|(path, _)| path.file_name().is_some_and(|name| name == ".gitignore"));
        if rules_changed {
            let shown = self.hidden_before(run, target, plan, &report)?;
            let todo: Vec<(&PathBuf, Option<&Entry>)> = shown.iter().map(|path| (path, None)).collect();
            Self::apply(&mut writer, plan, &todo, &mut report)?;
        }
        let unsaved = plan.unsaved.iter().filter(|path| self.work_directory.join(path).symlink_metadata().is_ok());
        report.kept.extend(unsaved.cloned());
        for list in [&mut report.restored, &mut report.kept] {
            list.sort();
            list.dedup();
        }
        writer.finish(report)
    }

    fn apply(
        writer: &mut Writer,
        plan: &Plan,
        steps: &[(&PathBuf, Option<&Entry>)],
        report: &mut RestoreReport,
    ) -> Result<(), SnapshotError> {
        let mut mark = |path: &Path, done: Done| match done {
            Done::Changed => report.restored.push(path.to_owned()),
            Done::Blocked => report.kept.push(path.to_owned()),
            Done::Failed => {}
        };
        // Removals first: a file that goes may stand where a directory comes back, and the other way round.
        let (gone, back): (Vec<_>, Vec<_>) = steps.iter().partition(|(_, entry)| entry.is_none());
        for (path, _) in gone {
            mark(path, writer.remove(path));
            writer.remove_empty_parents(path, &plan.directories);
        }
        for directory in &plan.empty_now {
            if !plan.directories.contains(directory) {
                writer.remove_empty_directory(directory);
                writer.remove_empty_parents(directory, &plan.directories);
            }
        }
        for (path, entry) in back {
            if let Some(entry) = entry {
                mark(path, writer.write(path, entry, plan.private_modes.get(path).copied())?);
            }
        }
        for directory in &plan.empty_then {
            writer.create_directory(directory);
        }
        Ok(())
    }

    /// Files that only now show as added, saved in another snapshot first.
    fn hidden_before(
        &self,
        run: &str,
        target: &Snapshot,
        plan: &Plan,
        report: &RestoreReport,
    ) -> Result<Vec<PathBuf>, SnapshotError> {
        let shown = self.record(run, &self.free_label(run))?;
        let places = self.ignored_places(run, &self.meta(target)?)?;
        let added = self.differences(target.raw.as_str(), shown.raw.as_str())?;
        Ok(added
            .into_iter()
            .filter(|(path, change)| {
                change.from.is_none()
                    && !plan.changes.contains_key(path)
                    && !plan.others.contains(path)
                    && !report.kept.contains(path)
                    && !is_within(path, &places)
            })
            .map(|(path, _)| path)
            .collect())
    }
}

fn is_within(path: &Path, places: &HashSet<PathBuf>) -> bool {
    !places.is_empty() && path.ancestors().any(|parent| places.contains(parent))
}

/// What a killed restore left behind.
fn is_temporary(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(TEMPORARY))
}
