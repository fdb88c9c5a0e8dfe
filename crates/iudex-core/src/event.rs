//! The event stream: everything that a run does, in the order in which it happens.
//!
//! The receiver numbers the events and stamps them with the time. iudex only writes them; whoever reads them reads JSON
//! and must let pass the fields and events that it does not know: new ones are added, none changes its meaning.

use serde::Serialize;

use crate::budget::{Limits, Spent, Usage};
use crate::controller::{Move, PromptStrategy};
use crate::outcome::Outcome;
use crate::proposal::{DiffStat, Proposal, Snapshot};
use crate::ruling::Ruling;
use crate::task::Task;
use crate::traits::{GateBrief, GateKind, PassReport};
use crate::units::PassNumber;

/// One event of the record.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
pub enum Event {
    /// The run begins.
    RunStarted {
        /// What was asked.
        task: Task,
        /// What will be asked of the result.
        gates: Vec<GateBrief>,
        /// What may be spent.
        limits: Limits,
    },
    /// The base was taken.
    BaseTaken {
        /// The state at the start.
        base: Snapshot,
    },
    /// A gate is asked; `proposal` is `None` for the baseline.
    GateStarted {
        /// The gate.
        gate: GateKind,
        /// The pass whose proposal is examined.
        pass: Option<PassNumber>,
    },
    /// A gate has answered.
    GateRuled {
        /// The gate.
        gate: GateKind,
        /// The pass whose proposal was examined; `None` for the baseline.
        pass: Option<PassNumber>,
        /// The answer.
        ruling: Ruling,
        /// How long the gate took, in milliseconds.
        millis: u64,
    },
    /// A pass begins.
    PassStarted {
        /// Its number.
        pass: PassNumber,
        /// How it came about; `None` for the first.
        by: Option<Move>,
        /// How its first message is built, when its conversation is new.
        strategy: PromptStrategy,
    },
    /// A model call begins.
    ModelCallStarted {
        /// The number of the call within its pass, from 1.
        step: u32,
        /// The estimated size of the prompt.
        prompt_tokens: u64,
    },
    /// A message of the conversation, for the transcript.
    Message {
        /// `system`, `user`, `assistant` or `tool`.
        role: String,
        /// The text.
        text: String,
        /// Reasoning that the model showed, apart from its answer.
        #[serde(skip_serializing_if = "String::is_empty")]
        reasoning: String,
    },
    /// A model call has ended.
    ModelCallFinished {
        /// The number of the call within its pass.
        step: u32,
        /// What it used.
        usage: Usage,
        /// Milliseconds from request to end.
        millis: u64,
        /// Why the answer ended (`stop`, `length`, `runaway`, …).
        finish: String,
        /// Times that the request was sent again.
        retries: u32,
    },
    /// A tool runs.
    ToolStarted {
        /// The name.
        tool: String,
        /// One line that shows what it works on.
        subject: String,
    },
    /// A tool has ended.
    ToolFinished {
        /// The name.
        tool: String,
        /// False when it reports an error.
        ok: bool,
        /// The result as the model sees it.
        result: String,
        /// Milliseconds.
        millis: u64,
    },
    /// The harness stepped in: what it said to the model and why.
    Intervention {
        /// Short and stable (`repeats`, `no_call`, `broken_call`, `compacted`, `format_changed`, `cut`).
        kind: String,
        /// What was said or done.
        text: String,
    },
    /// A pass has ended.
    PassEnded {
        /// Its number.
        pass: PassNumber,
        /// How it went, in the agent's own words.
        report: PassReport,
    },
    /// The proposal of a pass was pinned.
    Pinned {
        /// The proposal.
        proposal: Proposal,
        /// What differs from the base; `None` when that could not be told.
        stat: Option<DiffStat>,
    },
    /// The proposal is a state that was ruled about already; the ruling stands.
    RulingStands {
        /// The pass.
        pass: PassNumber,
    },
    /// Findings go back to the agent. Each of these is a charge.
    DirectiveSent {
        /// The text.
        directive: String,
        /// What the controller does with it.
        chosen: Move,
        /// Retries charged so far, this one included.
        retries: u32,
        /// Rounds charged so far, this one included.
        rounds: u32,
    },
    /// The run has ended.
    RunEnded {
        /// How.
        outcome: Outcome,
        /// What it used.
        spent: Spent,
        /// What differs from the base; `None` when that could not be told.
        stat: Option<DiffStat>,
    },
    /// Anything else that the user must know (`the budget is spent; the check is asked once more`).
    Notice {
        /// The text.
        text: String,
    },
}

/// A sign of life. Shown, never kept.
#[derive(Debug, Clone, Copy)]
pub enum Progress<'a> {
    /// A piece of the model's answer.
    ModelText(&'a str),
    /// Tokens that the model has generated in this call so far.
    OutputTokens(u64),
    /// A line that the running command printed.
    CommandLine(&'a str),
    /// Waiting for something (`429, waiting 8 s`).
    Waiting(&'a str),
}
