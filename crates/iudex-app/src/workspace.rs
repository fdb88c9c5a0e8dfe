//! The work directory of a run, as the loop sees it: snapshots taken on a blocking thread.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use iudex_core::{DiffStat, PassNumber, Restored, Snapshot, Workspace, WorkspaceError};
use iudex_repo::{SnapshotError, Snapshots};

/// A directory with its snapshots, for one run.
pub(crate) struct RunWorkspace {
    snapshots: Arc<Snapshots>,
    run: String,
    base: Option<Snapshot>,
    /// The last state that iudex saw; what differs from it at a restore was changed by somebody else.
    ours: Option<Snapshot>,
}

impl RunWorkspace {
    pub(crate) fn new(snapshots: Arc<Snapshots>, run: String) -> Self {
        Self { snapshots, run, base: None, ours: None }
    }

    /// Runs git on a blocking thread, which goes on when its future is dropped: whoever holds the run lock awaits it.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Snapshots, &str) -> Result<T, SnapshotError> + Send + 'static,
    ) -> Result<T, WorkspaceError> {
        let snapshots = Arc::clone(&self.snapshots);
        let run = self.run.clone();
        match tokio::task::spawn_blocking(move || work(&snapshots, &run)).await {
            Ok(result) => result.map_err(|error| WorkspaceError { message: error.message, hint: error.hint }),
            Err(error) => Err(WorkspaceError { message: format!("the snapshot thread ended: {error}"), hint: None }),
        }
    }
}

#[async_trait(?Send)]
impl Workspace for RunWorkspace {
    async fn base(&mut self) -> Result<Snapshot, WorkspaceError> {
        if let Some(base) = &self.base {
            return Ok(base.clone());
        }
        let base = self.blocking(Snapshots::take_base).await?;
        self.base = Some(base.clone());
        self.ours = Some(base.clone());
        Ok(base)
    }

    async fn pin(&mut self, pass: PassNumber) -> Result<Snapshot, WorkspaceError> {
        let pinned = self.blocking(move |snapshots, run| snapshots.take(run, &format!("pass-{pass}"))).await?;
        self.ours = Some(pinned.clone());
        Ok(pinned)
    }

    async fn restore_base(&mut self) -> Result<Restored, WorkspaceError> {
        let (Some(base), Some(ours)) = (self.base.clone(), self.ours.clone()) else {
            return Ok(Restored::Done { kept: Vec::<PathBuf>::new() });
        };
        let target = base.clone();
        let restored =
            self.blocking(move |snapshots, run| snapshots.restore_unless_in_the_way(run, &target, &ours)).await?;
        if matches!(restored, Restored::Done { .. }) {
            self.ours = Some(base);
        }
        Ok(restored)
    }

    async fn diff_stat(&mut self, from: &Snapshot, to: &Snapshot) -> Result<DiffStat, WorkspaceError> {
        if from.raw == to.raw {
            return Ok(DiffStat::default());
        }
        let (from, to) = (from.clone(), to.clone());
        self.blocking(move |snapshots, _| snapshots.diff_stat(&from, &to)).await
    }
}
