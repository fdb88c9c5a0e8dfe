//! What a run would do, for `--dry-run`.

use iudex_core::Task;
use serde::Serialize;
use serde_json::Value;

use crate::choice;
use crate::config::{Config, config_lines};
use crate::paths::Paths;
use crate::preflight::{OpenRequest, preflight, refuse_large_task};
use crate::refusal::Refusal;

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
    /// US dollars of the run.
    pub max_cost: Value,
    /// Wall clock of the run, as `1h30m`.
    pub timeout: Value,
    /// The model.
    pub model: String,
    /// The action format; null when the model decides, which only asking it would tell.
    pub format: Value,
    /// How the first message is built.
    pub strategy: Value,
    /// The sandbox.
    pub sandbox: String,
    /// Whether commands reach the network.
    pub network: bool,
    /// Variables of the environment that no command gets, since their names look like secrets.
    pub withheld: Vec<String>,
}

/// Makes the plan. Servers are asked for their models; nothing is run, changed or paid.
///
/// # Errors
/// [`Refusal`] for what would keep the run from starting, as for [`Place::open`](crate::Place::open). The model is not
/// asked for an answer, so a task that is too large for it is refused only when its window is known already.
pub async fn plan(request: OpenRequest, task: Task, paths: &Paths) -> Result<Plan, Refusal> {
    let found = preflight(&request, paths).await?;
    let config = &request.config;
    if let Some(window) = choice::known_window(&found.choice, config, paths).await? {
        refuse_large_task(&task, window)?;
    }
    Ok(Plan {
        task,
        directory: found.directory.display().to_string(),
        check: config.gates.check.value.clone(),
        check_timeout_seconds: config.gates.check_timeout.value.as_secs(),
        max_retries: config.run.max_retries.value,
        max_steps: config.run.max_steps.value,
        max_tokens: config.run.max_tokens.value,
        max_cost: shown(config, "run.max-cost"),
        timeout: shown(config, "run.timeout"),
        model: found.choice.describe(),
        format: shown(config, "model.format"),
        strategy: shown(config, "agent.strategy"),
        sandbox: found.backend.word().to_owned(),
        network: config.run.net.value,
        withheld: iudex_exec::withheld(std::env::vars_os()),
    })
}

/// A value as `iudex config` shows it.
fn shown(config: &Config, key: &str) -> Value {
    config_lines(config).into_iter().find(|line| line.key == key).map_or(Value::Null, |line| line.value)
}
