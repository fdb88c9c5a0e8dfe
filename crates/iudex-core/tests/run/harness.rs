//! Builds a run from scripted parts, plays it, and checks what must hold for every run.

use std::time::Duration;

use iudex_core::{
    Event, Gate, GateKind, Limits, Meter, Move, NotStarted, Outcome, PromptStrategy, RunReport, RunSetup, Task, Usd,
    run,
};
use iudex_testkit::scripted::{
    Answer, Asked, FakeClock, FakeWorkspace, RecordingSink, ScriptedAgent, Stage, StageClock, Step,
};

use crate::invariants;

/// Longer than any scripted run: one that takes this long never ends.
const FOREVER: Duration = Duration::from_hours(100 * 365 * 24);

/// A run that can be played.
pub struct Scene {
    pub stage: Stage,
    pub limits: Limits,
    pub strategy: PromptStrategy,
    pub continues: bool,
    agent: ScriptedAgent,
    workspace: FakeWorkspace,
    gates: Vec<Box<dyn Gate>>,
    kinds: Vec<GateKind>,
}

/// What came of it.
pub struct Played {
    pub result: Result<RunReport, NotStarted>,
    pub events: Vec<Event>,
    pub stage: Stage,
    pub took: Duration,
}

impl Scene {
    /// An agent with these steps; no gate yet.
    pub fn new(steps: impl IntoIterator<Item = Step>) -> Self {
        let stage = Stage::new();
        Self {
            agent: stage.agent(steps),
            workspace: stage.workspace(),
            limits: Limits::default(),
            strategy: PromptStrategy::Plain,
            continues: false,
            gates: Vec::new(),
            kinds: Vec::new(),
            stage,
        }
    }

    /// With a gate that takes no baseline.
    pub fn gate(self, kind: GateKind, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.gate_with_baseline(kind, [], answers)
    }

    /// With a check whose baseline is red for a reason that no other failure has.
    pub fn check(self, answers: impl IntoIterator<Item = Answer>) -> Self {
        self.gate_with_baseline(GateKind::Check, [Answer::Rework("red before any work")], answers)
    }

    pub fn gate_with_baseline(
        mut self,
        kind: GateKind,
        baseline: impl IntoIterator<Item = Answer>,
        answers: impl IntoIterator<Item = Answer>,
    ) -> Self {
        self.gates.push(self.stage.gate(kind, baseline, answers));
        self.kinds.push(kind);
        self
    }

    pub fn limits(mut self, change: impl FnOnce(&mut Limits)) -> Self {
        change(&mut self.limits);
        self
    }

    pub fn workspace(mut self, change: impl FnOnce(FakeWorkspace) -> FakeWorkspace) -> Self {
        self.workspace = change(self.workspace);
        self
    }

    /// Plays the run and checks the invariants.
    pub async fn play(mut self) -> Played {
        let clock = StageClock::start(&self.stage, Duration::from_secs(10));
        let started = FakeClock::start();
        let sink = RecordingSink::default();
        let meter = Meter::default();
        let task = Task::from_goal("make the test pass");
        let cancel = self.stage.cancel().clone();
        let setup = RunSetup {
            task: &task,
            limits: &self.limits,
            continues: self.continues,
            strategy: self.strategy,
            agent: &mut self.agent,
            workspace: &mut self.workspace,
            gates: &mut self.gates,
            clock: &clock,
            events: &sink,
            cancel: &cancel,
            meter: &meter,
            directive_tokens: 2_000,
        };
        let result = tokio::time::timeout(FOREVER, run(setup)).await.expect("the run never ended");
        let events = sink.events();
        invariants::check(&events, &result, &self.kinds, &self.limits);
        let took = iudex_core::Clock::elapsed(&started);
        Played { result, events, stage: self.stage, took }
    }
}

impl Played {
    pub fn report(&self) -> &RunReport {
        self.result.as_ref().unwrap()
    }

    pub fn outcome(&self) -> &Outcome {
        &self.report().outcome
    }

    pub fn word(&self) -> &'static str {
        self.outcome().word()
    }

    /// Questions to the gates, baselines left out.
    pub fn asked(&self) -> Vec<Asked> {
        self.stage.asked().into_iter().filter(|asked| asked.pass.is_some()).collect()
    }

    /// The move of each directive.
    pub fn moves(&self) -> Vec<Move> {
        let chosen = self.events.iter().filter_map(|event| match event {
            Event::DirectiveSent { chosen, .. } => Some(*chosen),
            _ => None,
        });
        chosen.collect()
    }

    /// The text of each directive.
    pub fn directives(&self) -> Vec<String> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::DirectiveSent { directive, .. } => Some(directive.clone()),
            _ => None,
        });
        texts.collect()
    }

    pub fn notices(&self) -> Vec<String> {
        let texts = self.events.iter().filter_map(|event| match event {
            Event::Notice { text } => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    /// True when an event of this name (`pinned`) was emitted.
    pub fn count(&self, name: &str) -> usize {
        let names = self.events.iter().map(|event| serde_json::to_value(event).unwrap()["event"].clone());
        names.filter(|event| event == name).count()
    }
}

/// Steps that leave another tree each time and say that they are done.
pub fn busy(passes: u64) -> Vec<Step> {
    (1..=passes).map(Step::done).collect()
}

pub fn dollars(micros: u64) -> Usd {
    Usd { micros }
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}
