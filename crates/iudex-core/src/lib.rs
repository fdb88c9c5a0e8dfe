//! The words of iudex as types, the three traits, the loop and its controller.
//!
//! Start with [`run`]: it is the whole loop. Everything else here is a word that it uses.
//! Never: I/O of any kind. No files, no network, no processes; time is handed in through [`Clock`].

mod budget;
mod controller;
mod directive;
mod event;
mod outcome;
mod proposal;
mod ruling;
mod run;
mod task;
mod tokens;
mod traits;
mod units;

pub use budget::{Limits, Meter, Spent, Usage};
pub use controller::{Controller, Move, PromptStrategy};
pub use directive::{Directive, DirectiveFacts, directive_tokens, finding_tokens};
pub use event::{Event, Progress};
pub use outcome::{Limit, Outcome, Validation};
pub use proposal::{DiffStat, FileStat, Proposal, Snapshot};
pub use ruling::{
    Accepted, CheckEvidence, CommandEnd, CommandEvidence, Finding, Fingerprint, NotProven, Place, Rework, Ruling,
    TestCounts, Void,
};
pub use run::{RunReport, RunSetup, run};
pub use task::{Decision, Task, TaskKind};
pub use tokens::most_tokens;
pub use traits::{
    Agent, Baseline, Clock, EventSink, Gate, GateBrief, GateContext, GateKind, NotStarted, PassContext, PassEnd,
    PassOrder, PassReport, PassStart, Restored, Workspace, WorkspaceError,
};
pub use units::{CommitId, FindingId, PassNumber, RunId, Tokens, TreeId, Usd};

/// The cancellation signal that the loop, the agent and the gates share.
pub use tokio_util::sync::CancellationToken;
