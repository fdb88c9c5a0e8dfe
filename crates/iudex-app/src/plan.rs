//! What a run would do, for `--dry-run`.

use iudex_core::Task;
use serde::Serialize;

use crate::choice;
use crate::config::Config;
use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::sandbox;

/// A run that was not started.
#[derive(Debug, Clone, Serialize)]
pub struct Plan {
    /// What was asked.
    pub task: Task,
    /// Where.
    pub directory: String,
    /// The check commands; empty means that the result would be unvalidated.
    pub check: Vec<String>,
    /// The time limit of each, in seconds.
    pub check_timeout_seconds: u64,
    /// Directives that a red check may send back.
    pub max_retries: u32,
    /// Model calls in a pass.
    pub max_steps: u32,
    /// Tokens of the run.
    pub max_tokens: Option<u64>,
    /// The model.
    pub model: String,
    /// The sandbox.
    pub sandbox: String,
    /// Whether commands reach the network.
    pub network: bool,
}

/// Makes the plan. Servers are asked for their models; nothing is run, changed or paid.
///
/// # Errors
/// [`Refusal`] for what would keep the run from starting.
pub async fn plan(directory: &std::path::Path, task: Task, config: &Config, paths: &Paths) -> Result<Plan, Refusal> {
    let backend = sandbox::choose(paths, directory, config.run.sandbox.value)?;
    let choice = choice::choose(config, paths).await?;
    Ok(Plan {
        task,
        directory: directory.display().to_string(),
        check: config.gates.check.value.clone(),
        check_timeout_seconds: config.gates.check_timeout.value.as_secs(),
        max_retries: config.run.max_retries.value,
        max_steps: config.run.max_steps.value,
        max_tokens: config.run.max_tokens.value,
        model: choice.describe(),
        sandbox: backend.word().to_owned(),
        network: config.run.net.value,
    })
}
