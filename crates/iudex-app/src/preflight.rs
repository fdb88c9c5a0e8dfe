//! Everything that can refuse a run before it begins. `iudex run`, a session and `--dry-run` all pass through here.
//!
//! Never: a request that costs money, or a change in the work directory.

use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

use iudex_core::Task;
use iudex_exec::Backend;
use iudex_ledger::Ledger;
use iudex_repo::{RunLock, SizeLimits, Snapshots};

use crate::choice::{self, ModelChoice};
use crate::config::Config;
use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::sandbox;

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

/// What was found and taken on the way.
pub(crate) struct Preflight {
    pub(crate) directory: PathBuf,
    /// Names the private directories of this place.
    pub(crate) name: String,
    pub(crate) backend: Backend,
    pub(crate) lock: RunLock,
    pub(crate) snapshots: Arc<Snapshots>,
    pub(crate) ledger: Rc<Ledger>,
    pub(crate) choice: ModelChoice,
}

/// Looks at everything that a run needs, cheapest first, and takes the directory.
pub(crate) async fn preflight(request: &OpenRequest, paths: &Paths) -> Result<Preflight, Refusal> {
    let config = &request.config;
    crate::paths::create_private(&paths.state)?;
    let directory = canonical(&request.directory)?;
    refuse_missing_gate(config, &config.gates.check.value)?;
    let backend = sandbox::choose(paths, &directory, config.run.sandbox.value)?;
    let name = new_name();
    let lock = RunLock::acquire(&paths.state, &directory, &name)?;
    let limits =
        if request.large_directory { SizeLimits { files: u64::MAX, bytes: u64::MAX } } else { SizeLimits::default() };
    let snapshots = Arc::new(Snapshots::open(&paths.state, &directory, limits)?);
    let ledger = Rc::new(open_ledger(paths, config)?);
    let choice = choice::choose(config, paths).await?;
    choice::refuse_unknown_price(&choice, config)?;
    Ok(Preflight { directory, name, backend, lock, snapshots, ledger, choice })
}

/// A name for a run: sortable by time, unique on this machine.
pub(crate) fn new_name() -> String {
    let time = jiff::Timestamp::now().strftime("%Y%m%d-%H%M%S").to_string();
    let tail: String = std::iter::repeat_with(|| fastrand::char('a'..='z')).take(4).collect();
    format!("{time}-{tail}")
}

fn canonical(directory: &Path) -> Result<PathBuf, Refusal> {
    let hint = "name an existing directory";
    let canonical = directory
        .canonicalize()
        .map_err(|error| Refusal::usage(format!("cannot work in {}: {error}", directory.display()), hint))?;
    if canonical.is_dir() {
        Ok(canonical)
    } else {
        Err(Refusal::usage(format!("{} is not a directory", canonical.display()), hint))
    }
}

fn open_ledger(paths: &Paths, config: &Config) -> Result<Ledger, Refusal> {
    let ledger = Ledger::open(&paths.state)?;
    // A key that is missing is told where it is needed.
    ledger.mask_values(choice::key(config).ok().flatten().into_iter().collect());
    Ok(ledger)
}

/// `require-gate` means every run: also one whose check was switched off in a session.
pub(crate) fn refuse_missing_gate(config: &Config, commands: &[String]) -> Result<(), Refusal> {
    if config.run.require_gate.value && commands.is_empty() {
        return Err(Refusal::usage(
            format!("require-gate is set ({}), and no check is set", config.run.require_gate.source),
            "give one with --until CMD (in a session /validate CMD), or set check under [gates] in iudex.toml",
        ));
    }
    Ok(())
}

pub(crate) fn refuse_large_task(task: &Task, window: u64) -> Result<(), Refusal> {
    let tokens = iudex_model::estimate_tokens(&task.to_prompt());
    if tokens > window / 2 {
        return Err(Refusal::usage(
            format!("the task has about {tokens} tokens, more than half the model's window of {window}"),
            "shorten the task, put details into files of the project, or use a model with a larger window",
        ));
    }
    Ok(())
}
