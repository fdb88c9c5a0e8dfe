//! What the command line and the environment set, in the shape of a configuration file.

use std::ffi::OsString;

use toml::Spanned;

use super::convert::OneOrMany;
use super::keys::{Raw, RawAgent, RawGates, RawModel, RawRun};
use super::resolve::Key;
use crate::refusal::Refusal;

/// What the flags set. `None` and `false` leave the other sources to decide. Values are validated with the rest.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Overrides {
    /// `--until`: further check commands.
    pub until: Vec<String>,
    /// `--no-config-gates`: the checks of the configuration are left out; [`Config::left_out_checks`](super::Config) names them.
    pub no_config_gates: bool,
    /// `--check-timeout`, as `10m`.
    pub check_timeout: Option<String>,
    /// `--model`.
    pub model: Option<String>,
    /// `--max-retries`.
    pub max_retries: Option<u32>,
    /// `--max-steps`.
    pub max_steps: Option<u32>,
    /// `--max-tokens`.
    pub max_tokens: Option<u64>,
    /// `--max-cost`, in US dollars.
    pub max_cost: Option<f64>,
    /// `--timeout`, as `1h30m`.
    pub timeout: Option<String>,
    /// `--net`.
    pub net: bool,
    /// `--no-sandbox`.
    pub no_sandbox: bool,
    /// `--seed`.
    pub seed: Option<u64>,
}

impl Overrides {
    pub(super) fn to_raw(&self) -> Raw {
        Raw {
            run: RawRun {
                max_retries: self.max_retries.map(|number| set(i64::from(number))),
                max_steps: self.max_steps.map(|number| set(i64::from(number))),
                max_tokens: self.max_tokens.map(whole),
                max_cost: self.max_cost.map(set),
                timeout: self.timeout.clone().map(set),
                net: self.net.then(|| set(true)),
                sandbox: self.no_sandbox.then(|| set(false)),
                ..RawRun::default()
            },
            gates: RawGates { check_timeout: self.check_timeout.clone().map(set), check: None },
            model: RawModel { name: self.model.clone().map(set), seed: self.seed.map(whole), ..RawModel::default() },
            agent: RawAgent::default(),
        }
    }

    pub(super) fn until_commands(&self) -> OneOrMany {
        OneOrMany(self.until.clone())
    }
}

fn set<T>(value: T) -> Spanned<T> {
    Spanned::new(0..0, value)
}

fn whole(number: u64) -> Spanned<i64> {
    // A number beyond the range of TOML means "as much as there can be".
    set(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The flag that sets a key.
pub(super) fn flag_name(key: Key<'_>) -> String {
    match (key.section, key.name) {
        ("model", "name") => "--model".to_owned(),
        ("run", "sandbox") => "--no-sandbox".to_owned(),
        (_, name) => format!("--{name}"),
    }
}

/// Reads a variable of the environment.
pub(super) type Lookup<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// `IUDEX_MODEL`, `IUDEX_BASE_URL` and `IUDEX_API_KEY`; an empty one counts as not set. Of the last only the name is
/// taken: the configuration never holds a key.
pub(super) fn from_environment(lookup: Lookup<'_>) -> Result<Raw, Refusal> {
    Ok(Raw {
        model: RawModel {
            name: variable(lookup, "IUDEX_MODEL")?.map(set),
            base_url: variable(lookup, "IUDEX_BASE_URL")?.map(set),
            api_key_env: variable(lookup, "IUDEX_API_KEY")?.map(|_| set("IUDEX_API_KEY".to_owned())),
            ..RawModel::default()
        },
        ..Raw::default()
    })
}

/// The text of a variable; `None` when it is not set or empty. The value is never part of the error.
fn variable(lookup: Lookup<'_>, name: &str) -> Result<Option<String>, Refusal> {
    let Some(value) = lookup(name).filter(|value| !value.is_empty()) else { return Ok(None) };
    match value.into_string() {
        Ok(text) => Ok(Some(text)),
        Err(_) => {
            Err(Refusal::usage(format!("the variable {name} is not UTF-8"), format!("set {name} anew, or unset it")))
        }
    }
}
