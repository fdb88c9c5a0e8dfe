//! What the loop needs from the world: an agent, a workspace, gates, a clock, and somewhere to send events.
//!
//! Every method may be cancelled by dropping its future; an implementation ends whatever it started when that happens.

use std::path::PathBuf;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};

use crate::budget::{Limits, Meter, Usage};
use crate::controller::PromptStrategy;
use crate::event::{Event, Progress};
use crate::outcome::Limit;
use crate::proposal::{DiffStat, Proposal, Snapshot};
use crate::ruling::Ruling;
use crate::task::Task;
use crate::units::PassNumber;

/// Whoever does one pass of work.
#[async_trait(?Send)]
pub trait Agent {
    /// Works until it says done, is stuck, or is out of steps. It never judges its own work: what it reports is a
    /// claim, and the loop asks the gates whatever it says.
    async fn pass(&mut self, order: PassOrder<'_>, context: &PassContext<'_>) -> PassReport;
}

/// What an agent is asked to do in one pass.
#[derive(Debug)]
pub struct PassOrder<'a> {
    /// The number of the pass.
    pub number: PassNumber,
    /// Whether the conversation goes on or starts anew.
    pub start: PassStart<'a>,
    /// How the first message of a new conversation is built.
    pub strategy: PromptStrategy,
    /// The task. It is pinned: compaction never loses it.
    pub task: &'a Task,
    /// What will be asked of the result. The agent knows the gates from the start.
    pub gates: &'a [GateBrief],
    /// What the gates found before any work, when they refused it; for a conversation that opens with the task.
    pub failing: Option<&'a str>,
}

/// How a pass begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PassStart<'a> {
    /// A new conversation that opens with the task.
    Task,
    /// The kept conversation goes on with the task as its next turn (the first pass of a later line of a session).
    NextTask,
    /// The same conversation goes on with this directive.
    Continue {
        /// The findings, as text.
        directive: &'a str,
    },
    /// A new conversation: the task, then this directive, which tells shortly what was tried.
    Fresh {
        /// The findings, as text.
        directive: &'a str,
    },
}

/// What a pass may use.
pub struct PassContext<'a> {
    /// The limits of the run; `max_steps` bounds this pass.
    pub limits: &'a Limits,
    /// To be charged after every model call.
    pub meter: &'a Meter,
    /// Where events go.
    pub events: &'a dyn EventSink,
    /// The time since the start of the run.
    pub clock: &'a dyn Clock,
}

/// How a pass went, in the agent's own words. For the record; shown to no gate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PassReport {
    /// Why the pass ended.
    pub end: PassEnd,
    /// The agent's last message.
    pub summary: String,
    /// Model calls in this pass.
    pub steps: u32,
    /// Tokens of this pass.
    pub usage: Usage,
}

/// Why a pass ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "end", rename_all = "snake_case")]
pub enum PassEnd {
    /// The agent says that it is done. A claim.
    Finished,
    /// It repeated itself without changing anything, also after an intervention.
    Stuck {
        /// What repeated.
        why: String,
    },
    /// A limit was reached.
    HitLimit {
        /// Which.
        limit: Limit,
    },
    /// A command met the hard-refusal policy.
    Blocked {
        /// The command and the rule.
        why: String,
    },
    /// The model cannot be reached or refuses, after retries.
    ModelUnavailable {
        /// What it answered.
        why: String,
    },
    /// The pass was cancelled.
    Aborted,
}

/// The directory that is worked in, and the snapshots of it that lie out of the agent's reach.
#[async_trait(?Send)]
pub trait Workspace {
    /// Takes the base, or returns it when it was taken already.
    async fn base(&mut self) -> Result<Snapshot, WorkspaceError>;

    /// Pins the present state as the proposal of a pass.
    async fn pin(&mut self, pass: PassNumber) -> Result<Snapshot, WorkspaceError>;

    /// Brings the directory back to the base, unless a file that somebody else changed is in the way.
    async fn restore_base(&mut self) -> Result<Restored, WorkspaceError>;

    /// What differs between two snapshots.
    async fn diff_stat(&mut self, from: &Snapshot, to: &Snapshot) -> Result<DiffStat, WorkspaceError>;
}

/// The result of [`Workspace::restore_base`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Restored {
    /// The directory is as at the base. Files of somebody else that were kept are named.
    Done {
        /// Files that others changed during the run; kept as they are.
        kept: Vec<PathBuf>,
    },
    /// Nothing was touched: these files were changed by somebody else and also by the agent.
    InTheWay {
        /// The files.
        paths: Vec<PathBuf>,
    },
}

/// A snapshot could not be taken or restored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WorkspaceError {
    /// What failed, with the value.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

impl WorkspaceError {
    /// What failed and the next step, for a line of text: `the disk is full; hint: free some space`.
    pub fn with_hint(&self) -> String {
        match &self.hint {
            Some(hint) => format!("{}; hint: {hint}", self.message),
            None => self.message.clone(),
        }
    }
}

/// Decides about a proposal.
#[async_trait(?Send)]
pub trait Gate {
    /// What the agent is told about the gate before it starts.
    fn brief(&self) -> GateBrief;

    /// Asks the gate about the base, before any work.
    ///
    /// # Errors
    /// [`NotStarted`] when the gate can never answer here; the run then does not start (exit 2).
    async fn baseline(&mut self, base: &Snapshot, context: &GateContext<'_>) -> Result<Baseline, NotStarted>;

    /// Rules about a proposal. What cannot be read, parsed, finished or trusted is void.
    async fn examine(&mut self, proposal: &Proposal, context: &GateContext<'_>) -> Ruling;
}

/// What a gate said about the base.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Baseline {
    /// This gate takes no baseline.
    NotTaken,
    /// Its ruling about the base. Accepted means that it can only guard.
    Ruled(Ruling),
}

/// What a gate may use.
pub struct GateContext<'a> {
    /// Where events go.
    pub events: &'a dyn EventSink,
    /// The time since the start of the run.
    pub clock: &'a dyn Clock,
    /// The most that the findings of one ruling may take, in tokens as [`most_tokens`](crate::most_tokens)
    /// counts them.
    pub finding_tokens: u64,
    /// What is left of the run's wall clock; `None` without a limit. Everything that the gate runs together ends within
    /// it, or within one time limit of its own where that is longer.
    pub time_left: Option<Duration>,
    /// True when the budget of the run is spent: everything that the gate runs together gets one time limit.
    pub last_call: bool,
}

/// The kinds of gates, in the order in which they are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum GateKind {
    /// A command must pass.
    Check,
    /// The named tests must pass.
    Ratchet,
    /// A measured quality from 0 to 100.
    Score,
    /// An independent agent.
    Judge,
}

impl GateKind {
    /// True when asking costs money or tokens: such a gate is not asked after the budget is spent.
    pub fn is_paid(self) -> bool {
        matches!(self, Self::Score | Self::Judge)
    }
}

/// A gate as the agent and the user see it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GateBrief {
    /// The kind.
    pub kind: GateKind,
    /// A short name for messages (`check`).
    pub name: String,
    /// What must hold, as it is told to the agent, each by itself: for a check its commands, which may have several lines.
    #[serde(default)]
    pub requirements: Vec<String>,
}

/// Nothing was started, because of this (exit 2).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, thiserror::Error)]
#[error("{message}")]
pub struct NotStarted {
    /// What is wrong, with the value.
    pub message: String,
    /// The next step.
    pub hint: Option<String>,
}

/// Time, handed in.
#[async_trait(?Send)]
pub trait Clock {
    /// The time since the start of the run, never going back.
    fn elapsed(&self) -> Duration;

    /// Waits.
    async fn sleep(&self, duration: Duration);
}

/// Takes the events of a run. It keeps them first and shows them later; it never waits for a reader.
pub trait EventSink {
    /// Takes one event of the record.
    fn emit(&self, event: Event);

    /// Takes a sign of life, which is shown and not kept.
    fn progress(&self, progress: Progress<'_>);
}
