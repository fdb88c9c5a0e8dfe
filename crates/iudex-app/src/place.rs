//! A directory opened for work: lock, snapshots, sandbox, model and agent. One run or many happen in it.
//!
//! `iudex run` opens a place and runs one task in it; a session runs one a line. Both go through [`Place::run`].

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use iudex_agent::{AgentSettings, BuiltinAgent, ContextShare, ToolBox, ToolSettings};
use iudex_core::{
    CancellationToken, Clock, Gate, GateContext, Limits, Meter, NotStarted, Outcome, PromptStrategy, Ruling, RunId,
    RunReport, RunSetup, Task, Tokens, directive_tokens, finding_tokens,
};
use iudex_exec::{Backend, Confinement};
use iudex_gate::{CheckGate, CheckSettings};
use iudex_ledger::{Ledger, NewRun};
use iudex_model::{ChatModel, ModelFacts};
use iudex_repo::{RunLock, Snapshots};

use crate::choice::{self, ModelChoice};
use crate::clock::RunClock;
use crate::config::Config;
use crate::paths::Paths;
use crate::preflight::{OpenRequest, Preflight, new_name, preflight, refuse_large_task, refuse_missing_gate};
use crate::recorder::{Notice, Recorder};
use crate::refusal::Refusal;
use crate::sandbox::{self, Hands};
use crate::trust::AgentsMd;
use crate::workspace::RunWorkspace;

/// Bytes that one token of a tool result is taken for; low, since paths and symbols make short tokens.
const BYTES_PER_TOKEN: u64 = 3;

/// The most bytes that one tool result takes, and the share of the window beyond which it is less.
const RESULT_BYTES: u64 = 24_000;

/// An opened directory.
pub struct Place {
    paths: Paths,
    directory: PathBuf,
    config: Config,
    ledger: Rc<Ledger>,
    snapshots: Arc<Snapshots>,
    backend: Backend,
    choice: ModelChoice,
    model: Rc<dyn ChatModel>,
    agent: BuiltinAgent,
    commands: Vec<String>,
    session: Option<String>,
    /// Names the private directories of this place; removed on drop.
    name: String,
    runs: u32,
    last_run: Option<RunId>,
    /// What was left out or allowed without making the evidence weaker.
    notes: Vec<String>,
    _lock: RunLock,
}

/// How a run ended, with what a person needs to go on.
#[derive(Debug)]
pub struct Finished {
    /// Its name.
    pub run: RunId,
    /// The outcome in words, as the record has it: the word, and in brackets what makes the evidence weaker.
    pub outcome: String,
    /// What the loop reports.
    pub report: RunReport,
    /// The model, for people.
    pub model: String,
    /// The sandbox that held the commands.
    pub sandbox: String,
    /// What weakens the evidence or was left out.
    pub notes: Vec<String>,
    /// From start to end.
    pub elapsed: Duration,
}

impl Finished {
    /// The exit code of the process.
    pub fn exit_code(&self) -> u8 {
        self.report.outcome.exit_code()
    }
}

impl Place {
    /// Opens a directory for work.
    ///
    /// # Errors
    /// [`Refusal`] when nothing can start here: the directory is taken, too large or forbidden, there is no sandbox, no
    /// model, or the ledger cannot be used.
    pub async fn open(request: OpenRequest, paths: Paths) -> Result<Self, Refusal> {
        let Preflight { directory, name, backend, lock, snapshots, ledger, choice } =
            preflight(&request, &paths).await?;
        let OpenRequest { config, session, .. } = request;
        let model = choice::open(&choice, &config, &paths).await?;

        let confinement =
            sandbox::confinement(&paths, &backend, &snapshots, &directory, &name, Hands::Agent, config.run.net.value)?;
        let tools = ToolBox::new(ToolSettings {
            work_dir: directory.clone(),
            read_only: confinement.read_only.clone(),
            env: environment(&confinement, &config),
            confinement,
            bash_time_limit: config.agent.bash_timeout.value,
            result_bytes: result_bytes(model.facts().window),
            writes_in_parts: model.facts().is_small,
        });
        let mut notes = Vec::new();
        if config.run.net.value {
            notes.push("commands could reach the network".to_owned());
        }
        let project_notes = project_notes(&config, &mut notes);
        let agent = BuiltinAgent::new(
            Rc::clone(&model),
            tools,
            AgentSettings {
                format: config.model.format.value,
                stuck_threshold: config.agent.stuck_threshold.value,
                answer_tokens: config.model.answer_tokens.value,
                temperature: config.model.temperature.value,
                seed: config.model.seed.value,
                project_notes,
            },
        );
        let commands = config.gates.check.value.clone();
        Ok(Self {
            paths,
            directory,
            config,
            ledger,
            snapshots,
            backend,
            choice,
            model,
            agent,
            commands,
            session,
            name,
            runs: 0,
            last_run: None,
            notes,
            _lock: lock,
        })
    }

    /// Runs one task. `continues` keeps the conversation of the run before.
    ///
    /// # Errors
    /// [`Refusal`] when the run did not start: nothing was changed and nothing paid.
    pub async fn run(
        &mut self,
        task: &Task,
        continues: bool,
        listener: Option<Sender<Notice>>,
        wants_progress: bool,
        cancel: &CancellationToken,
    ) -> Result<Finished, Refusal> {
        refuse_large_task(task, self.model.facts().window)?;
        let run = self.next_run();
        let weaker = self.weaker();
        self.ledger.begin(&NewRun {
            run: run.as_str().to_owned(),
            directory: self.directory.clone(),
            goal: task.goal.clone(),
            model: self.choice.describe(),
            session: self.session.clone(),
            note: (!weaker.is_empty()).then(|| weaker.join("; ")),
            pid: std::process::id(),
        })?;
        self.last_run = Some(run.clone());
        let prepared = crate::history::remember_directory(&self.paths, run.as_str(), &self.directory)
            .and_then(|()| self.gates(&run));
        let mut gates = match prepared {
            Ok(gates) => gates,
            Err(refusal) => return Err(self.not_started(&run, refusal)),
        };

        let clock = RunClock::start();
        let recorder = Recorder::new(Rc::clone(&self.ledger), run.as_str().to_owned(), listener, wants_progress);
        let mut workspace = RunWorkspace::new(Arc::clone(&self.snapshots), run.as_str().to_owned());
        let limits = limits(&self.config);
        let meter = Meter::default();
        let strategy = self.config.agent.strategy.value.unwrap_or_else(|| strategy_for(self.model.facts()));
        let setup = RunSetup {
            task,
            limits: &limits,
            continues,
            strategy,
            agent: &mut self.agent,
            workspace: &mut workspace,
            gates: &mut gates,
            clock: &clock,
            events: &recorder,
            cancel,
            meter: &meter,
            directive_tokens: directive_tokens(self.model.facts().window),
        };
        let mut report = match iudex_core::run(setup).await {
            Ok(report) => report,
            Err(refused) => return Err(self.not_started(&run, refused.into())),
        };
        let mut notes = weaker;
        notes.extend(self.notes.iter().cloned());
        if let Some(failure) = recorder.failure() {
            notes.push(format!("the record is incomplete: {failure}"));
            recorder.weaken(&mut report.outcome);
        }
        let outcome = self.outcome_words(&run, &report.outcome);
        self.expire();
        Ok(Finished {
            run,
            outcome,
            report,
            model: self.choice.describe(),
            sandbox: self.backend.word().to_owned(),
            notes,
            elapsed: clock.elapsed(),
        })
    }

    /// Asks the present check about the present state, without a run.
    ///
    /// # Errors
    /// [`Refusal`] when the check can never answer here or the state cannot be taken.
    pub async fn baseline(&mut self, listener: Option<Sender<Notice>>) -> Result<Option<Ruling>, Refusal> {
        let scratch =
            Scratch { paths: self.paths.clone(), snapshots: Arc::clone(&self.snapshots), run: RunId::new(new_name()) };
        let mut gates = self.gates(&scratch.run)?;
        let Some(gate) = gates.first_mut() else { return Ok(None) };
        let clock = RunClock::start();
        let events = crate::recorder::Unrecorded::new(listener);
        let (snapshots, run) = (Arc::clone(&self.snapshots), scratch.run.as_str().to_owned());
        let taken = tokio::task::spawn_blocking(move || snapshots.take(&run, "baseline")).await;
        let base = taken.map_err(|error| Refusal::plain(format!("the snapshot thread ended: {error}")))??;
        let context = GateContext {
            events: &events,
            clock: &clock,
            finding_tokens: finding_tokens(directive_tokens(self.model.facts().window)),
            time_left: None,
            last_call: false,
        };
        match gate.baseline(&base, &context).await? {
            iudex_core::Baseline::Ruled(ruling) => Ok(Some(ruling)),
            iudex_core::Baseline::NotTaken => Ok(None),
        }
    }

    /// The check of the following runs; none for an empty list. Configured checks that it leaves out are named by the
    /// outcome.
    ///
    /// # Errors
    /// [`Refusal`] when every run needs a gate and this leaves none; the present check stays.
    pub fn set_check(&mut self, commands: Vec<String>) -> Result<(), Refusal> {
        refuse_missing_gate(&self.config, &commands)?;
        self.commands = commands;
        Ok(())
    }

    /// Configured checks that do not run now.
    pub fn left_out(&self) -> Vec<&str> {
        let configured = self.config.gates.check.value.iter();
        configured.filter(|command| !self.commands.contains(command)).map(String::as_str).collect()
    }

    /// The check of the following runs.
    pub fn check(&self) -> &[String] {
        &self.commands
    }

    /// Goes on with another model; the conversation stays.
    ///
    /// # Errors
    /// [`Refusal`] when the model cannot be used; the present one stays.
    pub async fn set_model(&mut self, name: &str) -> Result<(), Refusal> {
        let mut config = self.config.clone();
        config.model.name.value = Some(name.to_owned());
        let choice = choice::choose(&config, &self.paths).await?;
        choice::refuse_unknown_price(&choice, &config)?;
        let model = choice::open(&choice, &config, &self.paths).await?;
        self.agent.set_model(Rc::clone(&model));
        self.agent.set_result_bytes(result_bytes(model.facts().window));
        (self.config, self.choice, self.model) = (config, choice, model);
        Ok(())
    }

    /// The model and why it was chosen.
    pub fn model(&self) -> &ModelChoice {
        &self.choice
    }

    /// What fills the window of the model.
    pub fn context_shares(&self) -> Vec<ContextShare> {
        self.agent.context_shares()
    }

    /// Replaces the values of secrets, as the record does.
    pub fn mask(&self, value: &mut serde_json::Value) {
        self.ledger.masked(value);
    }

    /// The session that the following runs belong to.
    pub(crate) fn set_session(&mut self, name: String) {
        self.session = Some(name);
    }

    /// The last run of this place.
    pub fn last_run(&self) -> Option<&RunId> {
        self.last_run.as_ref()
    }

    /// The directory, canonical.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The ledger.
    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// The snapshots.
    pub(crate) fn snapshots(&self) -> &Snapshots {
        &self.snapshots
    }

    /// The agent, to keep or take up its conversation.
    pub(crate) fn agent(&mut self) -> &mut BuiltinAgent {
        &mut self.agent
    }

    fn gates(&self, run: &RunId) -> Result<Vec<Box<dyn Gate>>, Refusal> {
        if self.commands.is_empty() {
            return Ok(Vec::new());
        }
        let confinement = self.confinement(Hands::Gate)?;
        let output_dir = sandbox::run_directory(&self.paths, run.as_str()).join("output");
        crate::paths::create_private(&output_dir)?;
        Ok(vec![Box::new(CheckGate::new(CheckSettings {
            commands: self.commands.clone(),
            work_dir: self.directory.clone(),
            time_limit: self.config.gates.check_timeout.value,
            env: environment(&confinement, &self.config),
            confinement,
            output_dir,
        }))])
    }

    fn confinement(&self, hands: Hands) -> Result<Confinement, Refusal> {
        let network = self.config.run.net.value;
        sandbox::confinement(&self.paths, &self.backend, &self.snapshots, &self.directory, &self.name, hands, network)
    }

    fn next_run(&mut self) -> RunId {
        self.runs += 1;
        RunId::new(if self.runs == 1 { self.name.clone() } else { new_name() })
    }

    /// What makes the evidence of a run here weaker than its word says alone.
    fn weaker(&self) -> Vec<String> {
        let mut weaker = Vec::new();
        if !self.config.left_out_checks.is_empty() {
            weaker.push(format!("left out by --no-config-gates: {}", self.config.left_out_checks.join("; ")));
        }
        let left_out = self.left_out();
        if !left_out.is_empty() {
            weaker.push(format!("left out by /validate: {}", left_out.join("; ")));
        }
        if self.backend == Backend::None {
            weaker.push("without a sandbox".to_owned());
        }
        weaker
    }

    /// One rule for `log`, the closing text and JSON: what the record says. An incomplete record is never a `done`.
    fn outcome_words(&self, run: &RunId, outcome: &Outcome) -> String {
        match self.ledger.find(Some(run.as_str()), &self.directory) {
            Ok(Some(row)) if matches!(outcome, Outcome::Done { .. }) => row.outcome,
            _ => outcome.word().to_owned(),
        }
    }

    /// Removes what a refused run left behind.
    fn not_started(&self, run: &RunId, refusal: Refusal) -> Refusal {
        let why = NotStarted { message: refusal.message.clone(), hint: refusal.hint.clone() };
        let _ = self.ledger.not_started(run.as_str(), &why);
        let _ = self.snapshots.forget(run.as_str());
        refusal
    }

    /// Drops old runs, with their files and snapshots. A failure here is no reason to spoil the run that just ended.
    fn expire(&self) {
        let retention = iudex_ledger::Retention {
            days: self.config.run.keep_days.value,
            // The runs of this place are what its user wants to undo.
            newest: self.config.run.keep_newest.value.max(self.runs),
        };
        for run in self.ledger.expire(retention).unwrap_or_default() {
            crate::history::remove_files(&self.paths, &run);
        }
    }
}

/// The snapshot and the files of a check outside a run; gone with it, also when it was cancelled.
struct Scratch {
    paths: Paths,
    snapshots: Arc<Snapshots>,
    run: RunId,
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = self.snapshots.forget(self.run.as_str());
        let _ = std::fs::remove_dir_all(sandbox::run_directory(&self.paths, self.run.as_str()));
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let folder = sandbox::run_directory(&self.paths, &self.name);
        for hands in ["tmp-agent", "tmp-gate"] {
            let _ = std::fs::remove_dir_all(folder.join(hands));
            let _ = std::fs::remove_file(folder.join(format!("{hands}-empty")));
        }
        let _ = std::fs::remove_dir(&folder);
    }
}

/// The environment of commands: the user's without secrets, with the private caches.
fn environment(confinement: &Confinement, config: &Config) -> Vec<(OsString, OsString)> {
    let named = config.model.api_key_env.value.as_deref();
    let secrets: Vec<&str> = named.into_iter().chain(["IUDEX_API_KEY"]).collect();
    iudex_exec::child_environment_without(&confinement.caches, &secrets)
}

fn limits(config: &Config) -> Limits {
    Limits {
        max_retries: config.run.max_retries.value,
        max_rounds: Limits::default().max_rounds,
        max_steps: config.run.max_steps.value,
        tokens: config.run.max_tokens.value.map(Tokens),
        cost: config.run.max_cost.value,
        time: config.run.timeout.value,
    }
}

/// The project's AGENTS.md when it is trusted; otherwise a note that it was left out.
fn project_notes(config: &Config, notes: &mut Vec<String>) -> Option<String> {
    match &config.agents_md {
        AgentsMd::Trusted(text) => Some(text.clone()),
        AgentsMd::LeftOut(path) => {
            notes.push(format!("{} was left out: it is not trusted as it is (iudex trust)", path.display()));
            None
        }
        AgentsMd::None => None,
    }
}

fn result_bytes(window: u64) -> usize {
    usize::try_from(RESULT_BYTES.min(window / 4 * BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}

/// A small model is shown the files, which saves it the steps in which it goes astray; a large one finds its own.
fn strategy_for(facts: &ModelFacts) -> PromptStrategy {
    if facts.is_small { PromptStrategy::WithFiles } else { PromptStrategy::Plain }
}
