//! The check gate: commands that must pass.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{Baseline, Gate, GateBrief, GateContext, NotStarted, Proposal, Ruling, Snapshot};
use iudex_exec::Confinement;

/// What the check runs and within which bounds.
#[derive(Debug, Clone)]
pub struct CheckSettings {
    /// The commands; all run, even after a red one, and all must pass.
    pub commands: Vec<String>,
    /// Where they run.
    pub work_dir: PathBuf,
    /// The time limit of each command.
    pub time_limit: Duration,
    /// The environment.
    pub env: Vec<(OsString, OsString)>,
    /// What holds them.
    pub confinement: Confinement,
    /// Where whole outputs are kept.
    pub output_dir: PathBuf,
}

/// The check.
#[derive(Debug)]
pub struct CheckGate {}

impl CheckGate {
    /// A check with these settings.
    pub fn new(settings: CheckSettings) -> Self {
        let _ = settings;
        todo!()
    }
}

#[async_trait(?Send)]
impl Gate for CheckGate {
    fn brief(&self) -> GateBrief {
        todo!()
    }

    async fn baseline(&mut self, base: &Snapshot, context: &GateContext<'_>) -> Result<Baseline, NotStarted> {
        let _ = (base, context);
        todo!()
    }

    async fn examine(&mut self, proposal: &Proposal, context: &GateContext<'_>) -> Ruling {
        let _ = (proposal, context);
        todo!()
    }
}
