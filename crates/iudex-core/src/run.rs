//! The loop: an agent proposes, gates decide, findings go back, until accepted or out of budget.
//!
//! Reads from top to bottom: [`run`], then [`Run::work`] (one turn of the loop a screen), then its steps; asking the
//! gates is in `verdict`, sending findings back in `send_back`.
//! Never: a decision that a gate or the [`Controller`] should take.

mod send_back;
mod verdict;

use std::collections::HashMap;
use std::future::Future;
use std::time::Duration;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::budget::{Limits, Meter, Spent};
use crate::controller::{Controller, Move, PromptStrategy};
use crate::directive::{Directive, finding_tokens};
use crate::event::Event;
use crate::outcome::{Limit, Outcome, Validation};
use crate::proposal::{DiffStat, Proposal, Snapshot};
use crate::ruling::{Accepted, Rework, Ruling};
use crate::task::Task;
use crate::traits::{
    Agent, Baseline, Clock, EventSink, Gate, GateBrief, GateContext, GateKind, NotStarted, PassContext, PassEnd,
    PassOrder, PassReport, PassStart, Workspace, WorkspaceError,
};
use crate::units::{FindingId, PassNumber, TreeId};

/// A gate that is void so many times in a row ends the run.
const VOIDS_IN_A_ROW: u32 = 3;

/// The pause before a void gate is asked again, times the number of voids so far.
const VOID_PAUSE: Duration = Duration::from_secs(1);

/// Everything that a run needs.
pub struct RunSetup<'a> {
    /// What was asked.
    pub task: &'a Task,
    /// What may be spent.
    pub limits: &'a Limits,
    /// True when the agent's conversation goes on with this task (a later line of a session).
    pub continues: bool,
    /// How the first message of the first pass is built.
    pub strategy: PromptStrategy,
    /// Who works.
    pub agent: &'a mut dyn Agent,
    /// Where.
    pub workspace: &'a mut dyn Workspace,
    /// Who decides; asked in the order of their kinds.
    pub gates: &'a mut [Box<dyn Gate>],
    /// The time since the start of the run.
    pub clock: &'a dyn Clock,
    /// Where events go.
    pub events: &'a dyn EventSink,
    /// Ends the run with [`Outcome::Aborted`].
    pub cancel: &'a CancellationToken,
    /// Counts tokens and money.
    pub meter: &'a Meter,
    /// The most that a directive may take, in tokens; [`directive_tokens`](crate::directive_tokens) of the window.
    pub directive_tokens: u64,
}

/// How a run ended and where everything is.
#[derive(Debug, Clone, Serialize)]
pub struct RunReport {
    /// How it ended.
    pub outcome: Outcome,
    /// The state at the start; `None` when the run was aborted before it was taken.
    pub base: Option<Snapshot>,
    /// The last proposal, if a pass was pinned.
    pub proposal: Option<Proposal>,
    /// The last ruling about a proposal, with its gate.
    pub last_ruling: Option<(GateKind, Ruling)>,
    /// What differs from the base; `None` when that could not be told.
    pub stat: Option<DiffStat>,
    /// What was used.
    pub spent: Spent,
    /// Passes that ran.
    pub passes: u32,
    /// Retries charged.
    pub retries: u32,
    /// Rounds charged.
    pub rounds: u32,
    /// True when the gates were asked after the budget was spent.
    pub asked_after_budget: bool,
    /// The agent's last message, as a claim for people to read; it decided nothing.
    pub claim: String,
}

/// Runs a task until every gate has accepted, the budget is spent, or nothing more can be done.
///
/// # Errors
/// [`NotStarted`] when nothing was done: the base cannot be taken or a gate can never answer here.
pub async fn run(setup: RunSetup<'_>) -> Result<RunReport, NotStarted> {
    let mut run = Run::new(setup);
    let outcome = match run.prepare().await? {
        Ready::Go => run.work().await,
        Ready::Ends(outcome) => outcome,
    };
    Ok(run.finish(outcome).await)
}

/// Whether the first pass may begin.
enum Ready {
    Go,
    Ends(Outcome),
}

/// The rulings of a proposal together.
enum Verdict {
    Accepted(Vec<Accepted>),
    Unvalidated,
    Rework {
        gate: GateKind,
        rework: Rework,
        /// The state was ruled about before, or nothing was done at all.
        unchanged: bool,
    },
    /// The budget was spent before a gate that costs could be asked.
    HitLimit(Limit),
    NeedsYou(String),
    Aborted,
}

/// How the next pass begins.
struct NextPass {
    start: Start,
    by: Option<Move>,
}

enum Start {
    Task,
    NextTask,
    Continue(Directive),
    Fresh(Directive),
}

struct Run<'a> {
    setup: RunSetup<'a>,
    briefs: Vec<GateBrief>,
    controller: Controller,
    base: Option<Snapshot>,
    proposal: Option<Proposal>,
    last_ruling: Option<(GateKind, Ruling)>,
    /// The state that the last directive was about.
    last_ruled: Option<Snapshot>,
    /// Rework rulings by [`Snapshot::state`]: the same state is never gated twice in a run.
    ruled: HashMap<(TreeId, Option<String>), (GateKind, Rework)>,
    findings: Vec<(String, FindingId)>,
    tried: Vec<String>,
    passes: u32,
    retries: u32,
    rounds: u32,
    /// A gate accepted the base: it can only guard.
    green_baseline: bool,
    /// What the first gate that refused the base found.
    failing: Option<String>,
    nothing_changed: u32,
    asked_after_budget: bool,
    claim: String,
}

impl<'a> Run<'a> {
    fn new(setup: RunSetup<'a>) -> Self {
        setup.gates.sort_by_key(|gate| gate.brief().kind);
        let briefs = setup.gates.iter().map(|gate| gate.brief()).collect();
        Self {
            briefs,
            controller: Controller::new(setup.strategy),
            base: None,
            proposal: None,
            last_ruling: None,
            last_ruled: None,
            ruled: HashMap::new(),
            findings: Vec::new(),
            tried: Vec::new(),
            passes: 0,
            retries: 0,
            rounds: 0,
            green_baseline: false,
            failing: None,
            nothing_changed: 0,
            asked_after_budget: false,
            claim: String::new(),
            setup,
        }
    }

    /// Takes the base and every gate's baseline.
    async fn prepare(&mut self) -> Result<Ready, NotStarted> {
        self.emit(Event::RunStarted {
            task: self.setup.task.clone(),
            gates: self.briefs.clone(),
            limits: self.setup.limits.clone(),
        });
        if self.setup.cancel.is_cancelled() {
            return Ok(Ready::Ends(Outcome::Aborted));
        }
        // Awaited also when it is cancelled meanwhile: the lock of the directory must not go while git still writes.
        let base = self.setup.workspace.base().await;
        if self.setup.cancel.is_cancelled() {
            return Ok(Ready::Ends(Outcome::Aborted));
        }
        let base = base.map_err(|error| NotStarted { message: error.message, hint: error.hint })?;
        self.emit(Event::BaseTaken { base: base.clone() });
        self.last_ruled = Some(base.clone());
        self.base = Some(base.clone());

        for index in 0..self.setup.gates.len() {
            match self.baseline(index, &base).await? {
                Ready::Go => {}
                ends @ Ready::Ends(_) => return Ok(ends),
            }
        }
        Ok(Ready::Go)
    }

    /// Asks one gate about the base. A red baseline is the ruling of the unchanged state.
    async fn baseline(&mut self, index: usize, base: &Snapshot) -> Result<Ready, NotStarted> {
        let gate = self.briefs[index].kind;
        let mut voids = 0;
        loop {
            self.emit(Event::GateStarted { gate, pass: None });
            let started = self.setup.clock.elapsed();
            let context = gate_context(&self.setup, false);
            let asked = self.setup.gates[index].baseline(base, &context);
            let Some(baseline) = unless_cancelled(self.setup.cancel, asked).await else {
                return Ok(Ready::Ends(Outcome::Aborted));
            };
            let Baseline::Ruled(mut ruling) = baseline? else { return Ok(Ready::Go) };
            self.name_findings(&mut ruling);
            let millis = self.millis_since(started);
            self.emit(Event::GateRuled { gate, pass: None, ruling: ruling.clone(), millis });
            match ruling {
                Ruling::Accepted(_) => {
                    self.green_baseline = true;
                    return Ok(Ready::Go);
                }
                Ruling::Rework(rework) => {
                    let found: Vec<&str> = rework.findings.iter().map(|finding| finding.what.trim_end()).collect();
                    self.failing.get_or_insert_with(|| found.join("\n\n"));
                    self.ruled.entry(base.state()).or_insert((gate, rework));
                    return Ok(Ready::Go);
                }
                Ruling::Void(void) => {
                    voids += 1;
                    if !void.may_change || voids == VOIDS_IN_A_ROW {
                        return Ok(Ready::Ends(Outcome::NeedsYou { why: void.reason }));
                    }
                    let pause = self.setup.clock.sleep(VOID_PAUSE * voids);
                    if unless_cancelled(self.setup.cancel, pause).await.is_none() {
                        return Ok(Ready::Ends(Outcome::Aborted));
                    }
                }
            }
        }
    }

    /// The loop itself.
    async fn work(&mut self) -> Outcome {
        let start = if self.setup.continues { Start::NextTask } else { Start::Task };
        let mut next = NextPass { start, by: None };
        if let Some(limit) = self.exhausted() {
            return Outcome::HitLimit { limit };
        }
        loop {
            let report = self.pass(next).await;
            self.claim.clone_from(&report.summary);
            let pinned = self.pin().await;
            if self.setup.cancel.is_cancelled() {
                return Outcome::Aborted;
            }
            if let Some(outcome) = outcome_without_gates(&report.end) {
                return outcome;
            }
            let proposal = match pinned {
                Ok(proposal) => proposal,
                Err(error) => return needs_you_to_pin(&error),
            };
            match self.verdict(&proposal, &report.end).await {
                Verdict::Accepted(acceptances) => {
                    return Outcome::Done { validation: Validation::Accepted { acceptances } };
                }
                Verdict::Unvalidated => {
                    let done = Outcome::Done { validation: Validation::Unvalidated };
                    return outcome_of_end(&report.end).unwrap_or(done);
                }
                Verdict::HitLimit(limit) => return Outcome::HitLimit { limit },
                Verdict::NeedsYou(why) => return Outcome::NeedsYou { why },
                Verdict::Aborted => return Outcome::Aborted,
                Verdict::Rework { gate, rework, unchanged } => {
                    next = match self.send_back(gate, &rework, unchanged, &proposal, &report.end).await {
                        Ok(next) => next,
                        Err(outcome) => return outcome,
                    };
                }
            }
        }
    }

    /// Lets the agent do one pass, which ends at the latest with the run's time.
    async fn pass(&mut self, next: NextPass) -> PassReport {
        self.passes += 1;
        let number = PassNumber(self.passes);
        let strategy = self.controller.strategy();
        self.emit(Event::PassStarted { pass: number, by: next.by, strategy });
        let before = self.setup.meter.spent().usage;

        let start = match &next.start {
            Start::Task => PassStart::Task,
            Start::NextTask => PassStart::NextTask,
            Start::Continue(directive) => PassStart::Continue { directive: directive.as_str() },
            Start::Fresh(directive) => PassStart::Fresh { directive: directive.as_str() },
        };
        let failing = self.failing.as_deref().filter(|_| matches!(start, PassStart::Task | PassStart::NextTask));
        let order = PassOrder { number, start, strategy, task: self.setup.task, gates: &self.briefs, failing };
        let context = PassContext {
            limits: self.setup.limits,
            meter: self.setup.meter,
            events: self.setup.events,
            clock: self.setup.clock,
        };
        let time_left = time_left(&self.setup);
        let clock = self.setup.clock;
        let working = self.setup.agent.pass(order, &context);
        let end_early = tokio::select! {
            biased;
            () = self.setup.cancel.cancelled() => PassEnd::Aborted,
            () = sleep_if_some(clock, time_left) => PassEnd::HitLimit { limit: Limit::Time },
            report = working => {
                self.emit(Event::PassEnded { pass: number, report: report.clone() });
                return report;
            }
        };
        let after = self.setup.meter.spent().usage;
        let report = PassReport {
            end: end_early,
            summary: String::new(),
            steps: after.calls.saturating_sub(before.calls),
            usage: after.minus(before),
        };
        self.emit(Event::PassEnded { pass: number, report: report.clone() });
        report
    }

    /// Pins what the pass left behind. Not cancellable: an aborted run saves its work too. A failure is told here, since
    /// the outcome may be about something else.
    async fn pin(&mut self) -> Result<Proposal, WorkspaceError> {
        let pass = PassNumber(self.passes);
        let snapshot = match self.setup.workspace.pin(pass).await {
            Ok(snapshot) => snapshot,
            Err(error) => {
                let text = format!("The work of pass {pass} could not be pinned: {}", error.with_hint());
                self.emit(Event::Notice { text });
                return Err(error);
            }
        };
        let base = self.base.clone().unwrap_or_else(|| snapshot.clone());
        let proposal = Proposal { pass, base, snapshot };
        self.proposal = Some(proposal.clone());
        let stat = self.difference(&proposal.base, &proposal.snapshot).await;
        self.emit(Event::Pinned { proposal: proposal.clone(), stat });
        Ok(proposal)
    }

    /// What differs between two states; `None`, with a notice, when that cannot be told. Never an empty answer instead.
    async fn difference(&mut self, from: &Snapshot, to: &Snapshot) -> Option<DiffStat> {
        match self.setup.workspace.diff_stat(from, to).await {
            Ok(stat) => Some(stat),
            Err(error) => {
                self.emit(Event::Notice { text: format!("What changed could not be told: {}", error.with_hint()) });
                None
            }
        }
    }

    fn exhausted(&self) -> Option<Limit> {
        self.setup.meter.exhausted(self.setup.limits, self.setup.clock.elapsed())
    }

    async fn finish(mut self, outcome: Outcome) -> RunReport {
        let stat = match (self.base.clone(), self.proposal.clone()) {
            (Some(base), Some(proposal)) => self.difference(&base, &proposal.snapshot).await,
            // A pass ran and nothing could be pinned: whatever it did is not known.
            _ if self.passes > 0 => None,
            _ => Some(DiffStat::default()),
        };
        let spent = self.setup.meter.spent();
        self.emit(Event::RunEnded { outcome: outcome.clone(), spent, stat: stat.clone() });
        RunReport {
            outcome,
            base: self.base,
            proposal: self.proposal,
            last_ruling: self.last_ruling,
            stat,
            spent,
            passes: self.passes,
            retries: self.retries,
            rounds: self.rounds,
            asked_after_budget: self.asked_after_budget,
            claim: self.claim,
        }
    }

    fn emit(&self, event: Event) {
        self.setup.events.emit(event);
    }

    fn millis_since(&self, started: Duration) -> u64 {
        u64::try_from(self.setup.clock.elapsed().saturating_sub(started).as_millis()).unwrap_or(u64::MAX)
    }
}

fn gate_context<'a>(setup: &RunSetup<'a>, last_call: bool) -> GateContext<'a> {
    GateContext {
        events: setup.events,
        clock: setup.clock,
        finding_tokens: finding_tokens(setup.directive_tokens),
        time_left: time_left(setup),
        last_call,
    }
}

/// What is left of the run's wall clock; `None` without a limit.
fn time_left(setup: &RunSetup<'_>) -> Option<Duration> {
    setup.limits.time.map(|limit| limit.saturating_sub(setup.clock.elapsed()))
}

/// Runs a future until it is ready (`Some`) or the run is cancelled (`None`).
async fn unless_cancelled<T>(cancel: &CancellationToken, future: impl Future<Output = T>) -> Option<T> {
    tokio::select! {
        biased;
        () = cancel.cancelled() => None,
        value = future => Some(value),
    }
}

async fn sleep_if_some(clock: &dyn Clock, duration: Option<Duration>) {
    match duration {
        Some(duration) => clock.sleep(duration).await,
        None => std::future::pending().await,
    }
}

/// Ends that skip the gates: a refusal by the safety policy, a dead model, an abort.
fn outcome_without_gates(end: &PassEnd) -> Option<Outcome> {
    match end {
        PassEnd::Aborted => Some(Outcome::Aborted),
        PassEnd::Blocked { why } => Some(Outcome::Blocked { why: why.clone() }),
        PassEnd::ModelUnavailable { why } => Some(Outcome::ModelUnavailable { why: why.clone() }),
        PassEnd::Finished | PassEnd::Stuck { .. } | PassEnd::HitLimit { .. } => None,
    }
}

/// The outcome that the end of the last pass stands for when the gates did not accept.
fn outcome_of_end(end: &PassEnd) -> Option<Outcome> {
    match end {
        PassEnd::Finished => None,
        PassEnd::Stuck { why } => Some(Outcome::Stuck { why: why.clone() }),
        PassEnd::HitLimit { limit } => Some(Outcome::HitLimit { limit: *limit }),
        other => outcome_without_gates(other),
    }
}

fn needs_you_to_pin(error: &WorkspaceError) -> Outcome {
    Outcome::NeedsYou { why: format!("the proposal could not be pinned: {}", error.with_hint()) }
}
