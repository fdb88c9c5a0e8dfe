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
    CancellationToken, Clock, Gate, GateContext, Limits, Meter, NotStarted, Outcome, Ruling, RunId, RunReport,
    RunSetup, Task, Tokens,
};
use iudex_exec::{Backend, Confinement};
use iudex_gate::{CheckGate, CheckSettings};
use iudex_ledger::{Ledger, NewRun};
use iudex_model::ChatModel;
use iudex_repo::{RunLock, SizeLimits, Snapshots};

use crate::choice::{self, ModelChoice};
use crate::clock::RunClock;
use crate::config::Config;
use crate::paths::Paths;
use crate::recorder::{Notice, Recorder};
use crate::refusal::Refusal;
use crate::sandbox::{self, Hands};
use crate::trust::AgentsMd;
use crate::workspace::RunWorkspace;

/// Bytes that one token of failure output is taken for; low, since paths and symbols make short tokens.
const BYTES_PER_TOKEN: u64 = 3;

/// The most tokens that the findings of a directive take.
const DIRECTIVE_TOKENS: u64 = 2_000;

/// The most bytes that one tool result takes, and the share of the window beyond which it is less.
const RESULT_BYTES: u64 = 24_000;

/// What a place is opened for.
#[derive(Debug)]
pub struct OpenRequest {
    /// Where to work; any existing directory.
    pub directory: PathBuf,
    /// The configuration, read once.
    pub config: Config,
    /// Allows a plain directory above the limits.
    pub large_directory: bool,
    /// The name of the session, when runs belong to one.
    pub session: Option<String>,
}

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
    notes: Vec<String>,
    _lock: RunLock,
}

/// How a run ended, with what a person needs to go on.
#[derive(Debug)]
pub struct Finished {
    /// Its name.
    pub run: RunId,
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
        let OpenRequest { directory, config, large_directory, session } = request;
        crate::paths::create_private(&paths.state)?;
        let directory = canonical(&directory)?;
        refuse_missing_gate(&config)?;
        let backend = sandbox::choose(&paths, &directory, config.run.sandbox.value)?;
        let name = new_name();
        let lock = RunLock::acquire(&paths.state, &directory, &name)?;
        let limits =
            if large_directory { SizeLimits { files: u64::MAX, bytes: u64::MAX } } else { SizeLimits::default() };
        let snapshots = Arc::new(Snapshots::open(&paths.state, &directory, limits)?);
        let ledger = Rc::new(open_ledger(&paths, &config)?);
        let choice = choice::choose(&config, &paths).await?;
        choice::refuse_unknown_price(&choice, &config)?;
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
        });
        let mut notes = notes_of(&config, &backend);
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
        self.ledger.begin(&NewRun {
            run: run.as_str().to_owned(),
            directory: self.directory.clone(),
            goal: first_line(&task.goal),
            model: self.choice.describe(),
            session: self.session.clone(),
            note: (!self.notes.is_empty()).then(|| self.notes.join("; ")),
            pid: std::process::id(),
        })?;
        self.last_run = Some(run.clone());
        crate::history::remember_directory(&self.paths, run.as_str(), &self.directory)?;

        let clock = RunClock::start();
        let recorder = Recorder::new(Rc::clone(&self.ledger), run.as_str().to_owned(), listener, wants_progress);
        let mut workspace = RunWorkspace::new(Arc::clone(&self.snapshots), run.as_str().to_owned());
        let mut gates = self.gates(&run)?;
        let limits = limits(&self.config);
        let meter = Meter::default();
        let strategy = self.config.agent.strategy.value;
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
            finding_bytes: finding_bytes(self.model.facts().window),
        };
        let mut report = match iudex_core::run(setup).await {
            Ok(report) => report,
            Err(refused) => return Err(self.not_started(&run, refused)),
        };
        let mut notes = self.notes.clone();
        if let Some(failure) = recorder.failure() {
            // What is not recorded cannot be shown to anybody: that is weaker than done.
            notes.push(format!("the record is incomplete: {failure}"));
            if matches!(report.outcome, Outcome::Done { .. }) {
                report.outcome = Outcome::NeedsYou { why: format!("the run could not be recorded: {failure}") };
            }
        }
        self.expire();
        Ok(Finished {
            run,
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
        let run = self.next_run();
        let mut gates = self.gates(&run)?;
        let Some(gate) = gates.first_mut() else { return Ok(None) };
        let clock = RunClock::start();
        let events = crate::recorder::Unrecorded::new(listener);
        let base = self.snapshots.take("session", "baseline")?;
        let context = GateContext {
            events: &events,
            clock: &clock,
            finding_bytes: finding_bytes(self.model.facts().window),
            last_call: false,
        };
        match gate.baseline(&base, &context).await? {
            iudex_core::Baseline::Ruled(ruling) => Ok(Some(ruling)),
            iudex_core::Baseline::NotTaken => Ok(None),
        }
    }

    /// The check of the following runs; none for an empty list.
    pub fn set_check(&mut self, commands: Vec<String>) {
        self.commands = commands;
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

    /// Removes what a refused run left behind.
    fn not_started(&self, run: &RunId, refused: NotStarted) -> Refusal {
        let _ = self.ledger.not_started(run.as_str(), &refused);
        let _ = self.snapshots.forget(run.as_str());
        refused.into()
    }

    /// Drops old runs, with their files and snapshots. A failure here is no reason to spoil the run that just ended.
    fn expire(&self) {
        let retention = iudex_ledger::Retention {
            days: self.config.run.keep_days.value,
            newest: self.config.run.keep_newest.value,
        };
        for run in self.ledger.expire(retention).unwrap_or_default() {
            crate::history::remove_files(&self.paths, &run);
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let folder = sandbox::run_directory(&self.paths, &self.name);
        for hands in ["tmp-agent", "tmp-gate"] {
            let _ = std::fs::remove_dir_all(folder.join(hands));
        }
        let _ = std::fs::remove_dir(&folder);
    }
}

/// A name for a run: sortable by time, unique on this machine.
pub(crate) fn new_name() -> String {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let tail: String = std::iter::repeat_with(|| fastrand::char('a'..='z')).take(4).collect();
    format!("{time}-{tail}")
}

fn canonical(directory: &Path) -> Result<PathBuf, Refusal> {
    let canonical = directory
        .canonicalize()
        .map_err(|error| Refusal::plain(format!("cannot work in {}: {error}", directory.display())))?;
    if canonical.is_dir() {
        Ok(canonical)
    } else {
        Err(Refusal::plain(format!("{} is not a directory", canonical.display())))
    }
}

fn open_ledger(paths: &Paths, config: &Config) -> Result<Ledger, Refusal> {
    let ledger = Ledger::open(&paths.state)?;
    ledger.mask_values(choice::key(config)?.into_iter().collect());
    Ok(ledger)
}

/// The environment of commands: the user's without secrets, with the private caches.
fn environment(confinement: &Confinement, config: &Config) -> Vec<(OsString, OsString)> {
    let named = config.model.api_key_env.value.as_deref();
    let secrets: Vec<&str> = named.into_iter().chain(["IUDEX_API_KEY"]).collect();
    iudex_exec::child_environment_without(&confinement.caches, &secrets)
}

fn refuse_missing_gate(config: &Config) -> Result<(), Refusal> {
    if config.run.require_gate.value && config.gates.check.value.is_empty() {
        return Err(Refusal::usage(
            format!("require-gate is set ({}), and no check is set", config.run.require_gate.source),
            "give one with --until CMD, or set check under [gates] in iudex.toml",
        ));
    }
    Ok(())
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

fn refuse_large_task(task: &Task, window: u64) -> Result<(), Refusal> {
    let tokens = iudex_model::estimate_tokens(&task.to_prompt());
    if tokens > window / 2 {
        return Err(Refusal::usage(
            format!("the task has about {tokens} tokens, more than half the model's window of {window}"),
            "shorten the task, put details into files of the project, or use a model with a larger window",
        ));
    }
    Ok(())
}

fn notes_of(config: &Config, backend: &Backend) -> Vec<String> {
    let mut notes = Vec::new();
    if !config.left_out_checks.is_empty() {
        notes.push(format!("left out by --no-config-gates: {}", config.left_out_checks.join("; ")));
    }
    if *backend == Backend::None {
        notes.push("commands ran without a sandbox (--no-sandbox)".to_owned());
    }
    if config.run.net.value {
        notes.push("commands could reach the network".to_owned());
    }
    notes
}

fn finding_bytes(window: u64) -> usize {
    usize::try_from(DIRECTIVE_TOKENS.min(window / 4) * BYTES_PER_TOKEN).unwrap_or(usize::MAX)
}

fn result_bytes(window: u64) -> usize {
    usize::try_from(RESULT_BYTES.min(window / 4 * BYTES_PER_TOKEN)).unwrap_or(usize::MAX)
}

fn first_line(text: &str) -> String {
    text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default().chars().take(200).collect()
}
