//! An agent, gates, a workspace, a clock and an event sink that follow a script, for tests of the loop without a model.
//!
//! Never: an answer that the script does not hold. A script that runs out stops the test.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{
    Accepted, Agent, Baseline, CancellationToken, CheckEvidence, Clock, CommandEnd, CommandEvidence, CommitId,
    DiffStat, Event, EventSink, FileStat, Finding, Fingerprint, Gate, GateBrief, GateContext, GateKind, NotStarted,
    PassContext, PassEnd, PassNumber, PassOrder, PassReport, PassStart, Place, Progress, PromptStrategy, Proposal,
    Restored, Rework, Ruling, Snapshot, Tokens, TreeId, Usage, Usd, Void, Workspace, WorkspaceError,
};

/// What the parts of one run share: the tree, the signal to cancel, and the record of what was asked of them.
#[derive(Debug, Clone, Default)]
pub struct Stage {
    inner: Rc<Inner>,
}

#[derive(Debug, Default)]
struct Inner {
    tree: Cell<u64>,
    cancel: CancellationToken,
    cancel_at: Cell<Option<usize>>,
    awaits: RefCell<Vec<String>>,
    asked: RefCell<Vec<Asked>>,
    orders: RefCell<Vec<Order>>,
}

/// One question to a gate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Which gate.
    pub gate: GateKind,
    /// The pass of the proposal; `None` for the baseline.
    pub pass: Option<u32>,
    /// The tree that it was asked about.
    pub tree: u64,
    /// What was left of the run's time.
    pub time_left: Option<Duration>,
    /// Whether it was asked after the budget was spent.
    pub last_call: bool,
}

/// One order to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The number of the pass.
    pub pass: u32,
    /// How it begins.
    pub start: OrderStart,
    /// How a new conversation would open.
    pub strategy: PromptStrategy,
    /// The tree that the pass begins with.
    pub tree: u64,
}

/// [`PassStart`], kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OrderStart {
    /// A new conversation.
    Task,
    /// The kept conversation with the next task.
    NextTask,
    /// The same conversation with this directive.
    Continue(String),
    /// A new conversation with this directive.
    Fresh(String),
}

impl Stage {
    /// A stage whose tree is 0.
    pub fn new() -> Self {
        Self::default()
    }

    /// The signal that cancels the run.
    pub fn cancel(&self) -> &CancellationToken {
        &self.inner.cancel
    }

    /// Cancels when the parts are waited for the `number`th time, counted from 1.
    pub fn cancel_at(&self, number: usize) {
        self.inner.cancel_at.set(Some(number));
    }

    /// What was waited for so far, in order (`base`, `baseline`, `pass`, `pin`, `diff`, `gate`, `pause`, `restore`).
    pub fn awaits(&self) -> Vec<String> {
        self.inner.awaits.borrow().clone()
    }

    /// The questions to the gates so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.inner.asked.borrow().clone()
    }

    /// The orders to the agent so far.
    pub fn orders(&self) -> Vec<Order> {
        self.inner.orders.borrow().clone()
    }

    /// The present tree.
    pub fn tree(&self) -> u64 {
        self.inner.tree.get()
    }

    /// An agent that follows these steps, one a pass.
    pub fn agent(&self, steps: impl IntoIterator<Item = Step>) -> ScriptedAgent {
        ScriptedAgent { stage: self.clone(), steps: steps.into_iter().collect() }
    }

    /// A gate of this kind that gives these answers.
    pub fn gate(
        &self,
        kind: GateKind,
        baseline: impl IntoIterator<Item = Answer>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Box<dyn Gate> {
        Box::new(ScriptedGate {
            stage: self.clone(),
            kind,
            baseline: baseline.into_iter().collect(),
            answers: answers.into_iter().collect(),
        })
    }

    /// A workspace where everything works.
    pub fn workspace(&self) -> FakeWorkspace {
        FakeWorkspace {
            stage: self.clone(),
            base: None,
            pins: VecDeque::new(),
            restores: VecDeque::new(),
            ignored: VecDeque::new(),
            fails: None,
            compares: true,
        }
    }

    /// Where every part passes before it answers: the place to cancel. It yields, so that a cancelled run is left here.
    async fn reach(&self, what: &str) {
        let number = {
            let mut awaits = self.inner.awaits.borrow_mut();
            awaits.push(what.to_owned());
            awaits.len()
        };
        if self.inner.cancel_at.get() == Some(number) {
            self.inner.cancel.cancel();
        }
        tokio::task::yield_now().await;
    }
}

/// What the agent does in one pass.
#[derive(Debug, Clone)]
pub struct Step {
    /// How the pass ends; `None`: never.
    end: Option<PassEnd>,
    tree: Option<u64>,
    tokens: u64,
    cost: Option<Usd>,
    takes: Duration,
}

impl Step {
    /// Leaves this tree and says that it is done.
    pub fn done(tree: u64) -> Self {
        Self::ends(PassEnd::Finished).tree(tree)
    }

    /// Changes nothing and says that it is done.
    pub fn nothing() -> Self {
        Self::ends(PassEnd::Finished)
    }

    /// Ends in this way.
    pub fn ends(end: PassEnd) -> Self {
        Self { end: Some(end), tree: None, tokens: 0, cost: None, takes: Duration::ZERO }
    }

    /// Leaves this tree and then never ends.
    pub fn hangs(tree: u64) -> Self {
        Self { end: None, ..Self::done(tree) }
    }

    /// Also leaves this tree.
    #[must_use]
    pub fn tree(mut self, tree: u64) -> Self {
        self.tree = Some(tree);
        self
    }

    /// Also charges one model call of so many tokens whose price is unknown.
    #[must_use]
    pub fn tokens(mut self, tokens: u64) -> Self {
        self.tokens = tokens;
        self
    }

    /// The price of its model call, in millionths of a dollar.
    #[must_use]
    pub fn cost(mut self, micros: u64) -> Self {
        self.cost = Some(Usd { micros });
        self
    }

    /// Also takes so long.
    #[must_use]
    pub fn takes(mut self, duration: Duration) -> Self {
        self.takes = duration;
        self
    }
}

/// An agent that follows a script.
#[derive(Debug)]
pub struct ScriptedAgent {
    stage: Stage,
    steps: VecDeque<Step>,
}

#[async_trait(?Send)]
impl Agent for ScriptedAgent {
    async fn pass(&mut self, order: PassOrder<'_>, context: &PassContext<'_>) -> PassReport {
        let start = match order.start {
            PassStart::Task => OrderStart::Task,
            PassStart::NextTask => OrderStart::NextTask,
            PassStart::Continue { directive } => OrderStart::Continue(directive.to_owned()),
            PassStart::Fresh { directive } => OrderStart::Fresh(directive.to_owned()),
        };
        let (pass, strategy, tree) = (order.number.0, order.strategy, self.stage.tree());
        self.stage.inner.orders.borrow_mut().push(Order { pass, start, strategy, tree });
        let Some(step) = self.steps.pop_front() else { panic!("pass {pass} is not in the agent's script") };

        if let Some(tree) = step.tree {
            self.stage.inner.tree.set(tree);
        }
        let usage = Usage { prompt: Tokens(step.tokens), calls: 1, ..Usage::default() };
        context.meter.charge(usage, step.cost);
        self.stage.reach("pass").await;
        if step.takes > Duration::ZERO {
            context.clock.sleep(step.takes).await;
        }
        let Some(end) = step.end else { std::future::pending().await };
        PassReport { end, summary: format!("claim of pass {pass}"), steps: 1, usage }
    }
}

/// What a gate answers when it is asked.
#[derive(Debug, Clone)]
pub enum Answer {
    /// Yes, with the evidence of one command that exited 0.
    Accept,
    /// No, with one finding of this text, which is its fingerprint too.
    Rework(&'static str),
    /// It could not check, and that may change.
    Void,
    /// It could not check, and asking again cannot change that.
    VoidForGood,
    /// It can never answer here (baseline only).
    NotStarted,
    /// It never answers.
    Hang,
    /// Another answer, after this time.
    After(Duration, Box<Answer>),
}

/// A gate that follows a script. Without an answer for the baseline it takes none.
#[derive(Debug)]
struct ScriptedGate {
    stage: Stage,
    kind: GateKind,
    baseline: VecDeque<Answer>,
    answers: VecDeque<Answer>,
}

impl ScriptedGate {
    fn note(&self, pass: Option<PassNumber>, tree: &TreeId, context: &GateContext<'_>) {
        let asked = Asked {
            gate: self.kind,
            pass: pass.map(|pass| pass.0),
            tree: tree_number(tree),
            time_left: context.time_left,
            last_call: context.last_call,
        };
        self.stage.inner.asked.borrow_mut().push(asked);
    }
}

/// The ruling of an answer; an error for [`Answer::NotStarted`].
async fn ruling(answer: Answer, tree: &TreeId, clock: &dyn Clock) -> Result<Ruling, NotStarted> {
    let mut answer = answer;
    while let Answer::After(duration, then) = answer {
        clock.sleep(duration).await;
        answer = *then;
    }
    match answer {
        Answer::Accept => Ok(accepted(tree)),
        Answer::Rework(what) => Ok(Ruling::Rework(Rework {
            findings: vec![Finding::new(what)],
            fingerprint: Fingerprint(what.to_owned()),
            evidence: Some(evidence(tree, CommandEnd::Exited(1))),
        })),
        Answer::Void => Ok(void(true)),
        Answer::VoidForGood => Ok(void(false)),
        Answer::NotStarted => {
            let hint = Some("install it".to_owned());
            Err(NotStarted { message: "the program `tset` is not on PATH".to_owned(), hint })
        }
        Answer::Hang | Answer::After(..) => std::future::pending().await,
    }
}

#[async_trait(?Send)]
impl Gate for ScriptedGate {
    fn brief(&self) -> GateBrief {
        let name = format!("{:?}", self.kind).to_lowercase();
        GateBrief { kind: self.kind, requirements: vec![format!("{name} must accept")], name }
    }

    async fn baseline(&mut self, base: &Snapshot, context: &GateContext<'_>) -> Result<Baseline, NotStarted> {
        self.stage.reach("baseline").await;
        let Some(answer) = self.baseline.pop_front() else { return Ok(Baseline::NotTaken) };
        self.note(None, &base.raw, context);
        ruling(answer, &base.raw, context.clock).await.map(Baseline::Ruled)
    }

    async fn examine(&mut self, proposal: &Proposal, context: &GateContext<'_>) -> Ruling {
        let tree = &proposal.snapshot.raw;
        self.note(Some(proposal.pass), tree, context);
        self.stage.reach("gate").await;
        let Some(answer) = self.answers.pop_front() else {
            panic!("the {:?} has no answer left for pass {}", self.kind, proposal.pass)
        };
        match ruling(answer, tree, context.clock).await {
            Ok(ruling) => ruling,
            Err(error) => panic!("only a baseline answers like this: {error}"),
        }
    }
}

fn evidence(tree: &TreeId, end: CommandEnd) -> CheckEvidence {
    let command = CommandEvidence {
        command: "scripted".to_owned(),
        end,
        duration: Duration::ZERO,
        tests: None,
        last_line: String::new(),
        output_bytes: 0,
        output_sha256: String::new(),
        output_file: None,
    };
    CheckEvidence {
        tree: tree.clone(),
        place: Place::InPlace,
        commands: vec![command],
        baseline_green: None,
        sandbox: "none".to_owned(),
        network: false,
        notes: Vec::new(),
    }
}

fn accepted(tree: &TreeId) -> Ruling {
    match Accepted::from_check(evidence(tree, CommandEnd::Exited(0))) {
        Ok(accepted) => Ruling::Accepted(accepted),
        Err(error) => panic!("a command that exited 0 must prove it: {error}"),
    }
}

fn void(may_change: bool) -> Ruling {
    Ruling::Void(Void { reason: "the gate's machine is broken".to_owned(), may_change, evidence: None })
}

/// A workspace whose trees are numbers.
#[derive(Debug)]
pub struct FakeWorkspace {
    stage: Stage,
    base: Option<u64>,
    pins: VecDeque<Option<&'static str>>,
    restores: VecDeque<Restore>,
    ignored: VecDeque<&'static str>,
    fails: Option<&'static str>,
    compares: bool,
}

/// What a restore does.
#[derive(Debug, Clone)]
pub enum Restore {
    /// Works; these files of somebody else stay.
    Keeps(Vec<PathBuf>),
    /// These files are in the way.
    InTheWay(Vec<PathBuf>),
    /// Fails with this text.
    Fails(&'static str),
    /// Works, after this time.
    Takes(Duration),
}

impl FakeWorkspace {
    /// The base cannot be taken.
    #[must_use]
    pub fn no_base(mut self, message: &'static str) -> Self {
        self.fails = Some(message);
        self
    }

    /// Two states can never be compared.
    #[must_use]
    pub fn no_diff(mut self) -> Self {
        self.compares = false;
        self
    }

    /// How the pins go, in order: an error or fine. Fine after these.
    #[must_use]
    pub fn pins(mut self, pins: impl IntoIterator<Item = Option<&'static str>>) -> Self {
        self.pins = pins.into_iter().collect();
        self
    }

    /// The ignored files at each pin, in order; none at the base and after these.
    #[must_use]
    pub fn ignored(mut self, states: impl IntoIterator<Item = &'static str>) -> Self {
        self.ignored = states.into_iter().collect();
        self
    }

    /// How the restores go, in order. They work after these.
    #[must_use]
    pub fn restores(mut self, restores: impl IntoIterator<Item = Restore>) -> Self {
        self.restores = restores.into_iter().collect();
        self
    }
}

#[async_trait(?Send)]
impl Workspace for FakeWorkspace {
    async fn base(&mut self) -> Result<Snapshot, WorkspaceError> {
        self.stage.reach("base").await;
        if let Some(message) = self.fails {
            return Err(workspace_error(message));
        }
        Ok(snapshot(*self.base.get_or_insert(self.stage.tree())))
    }

    async fn pin(&mut self, _pass: PassNumber) -> Result<Snapshot, WorkspaceError> {
        self.stage.reach("pin").await;
        if let Some(message) = self.pins.pop_front().flatten() {
            return Err(workspace_error(message));
        }
        let ignored = self.ignored.pop_front().map(str::to_owned);
        Ok(Snapshot { ignored, ..snapshot(self.stage.tree()) })
    }

    async fn restore_base(&mut self) -> Result<Restored, WorkspaceError> {
        self.stage.reach("restore").await;
        let kept = match self.restores.pop_front() {
            None => Vec::new(),
            Some(Restore::Keeps(paths)) => paths,
            Some(Restore::InTheWay(paths)) => return Ok(Restored::InTheWay { paths }),
            Some(Restore::Fails(message)) => return Err(workspace_error(message)),
            Some(Restore::Takes(duration)) => {
                tokio::time::sleep(duration).await;
                Vec::new()
            }
        };
        self.stage.inner.tree.set(self.base.unwrap_or_default());
        Ok(Restored::Done { kept })
    }

    async fn diff_stat(&mut self, from: &Snapshot, to: &Snapshot) -> Result<DiffStat, WorkspaceError> {
        self.stage.reach("diff").await;
        if from.raw == to.raw {
            return Ok(DiffStat::default());
        }
        if !self.compares {
            return Err(workspace_error("the object store is gone"));
        }
        let path = format!("file-of-{}", to.raw);
        Ok(DiffStat { files: vec![FileStat { path, added: Some(1), removed: Some(0) }] })
    }
}

fn workspace_error(message: &str) -> WorkspaceError {
    WorkspaceError { message: message.to_owned(), hint: Some("free some space".to_owned()) }
}

/// The snapshot of a tree that is a number.
pub fn snapshot(tree: u64) -> Snapshot {
    Snapshot {
        raw: TreeId::new(format!("tree-{tree}")),
        git: None,
        ignored: None,
        commit: CommitId::new(format!("commit-{tree}")),
        not_covered: Vec::new(),
    }
}

/// The number of a tree that [`snapshot`] named.
///
/// # Panics
/// For any other tree.
pub fn tree_number(tree: &TreeId) -> u64 {
    match tree.as_str().strip_prefix("tree-").map(str::parse) {
        Some(Ok(number)) => number,
        _ => panic!("`{tree}` is no tree of a fake workspace"),
    }
}

/// The clock of tokio, which stands still in a test with `start_paused` until everybody waits.
#[derive(Debug)]
pub struct FakeClock {
    started: tokio::time::Instant,
}

impl FakeClock {
    /// Starts now.
    pub fn start() -> Self {
        Self { started: tokio::time::Instant::now() }
    }
}

#[async_trait(?Send)]
impl Clock for FakeClock {
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}

/// A clock whose pauses are places to cancel.
#[derive(Debug)]
pub struct StageClock {
    stage: Stage,
    clock: FakeClock,
    /// Sleeps of at least this long are the run's own time limit, which is not waited for.
    limit: Duration,
}

impl StageClock {
    /// A clock that counts sleeps shorter than `limit` as waits of the stage.
    pub fn start(stage: &Stage, limit: Duration) -> Self {
        Self { stage: stage.clone(), clock: FakeClock::start(), limit }
    }
}

#[async_trait(?Send)]
impl Clock for StageClock {
    fn elapsed(&self) -> Duration {
        self.clock.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        if duration < self.limit {
            self.stage.reach("pause").await;
        }
        self.clock.sleep(duration).await;
    }
}

/// Keeps every event.
#[derive(Debug, Default)]
pub struct RecordingSink {
    events: RefCell<Vec<Event>>,
    progress: Cell<usize>,
}

impl RecordingSink {
    /// The events so far.
    pub fn events(&self) -> Vec<Event> {
        self.events.borrow().clone()
    }

    /// How many signs of life came.
    pub fn progress_count(&self) -> usize {
        self.progress.get()
    }
}

impl EventSink for RecordingSink {
    fn emit(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }

    fn progress(&self, _progress: Progress<'_>) {
        self.progress.set(self.progress.get() + 1);
    }
}
