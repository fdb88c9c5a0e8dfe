//! The table of keys: name, form in a file, type, default, rule, and when a project needs trust to set it.
//!
//! Every list of keys (reading, resolving, `iudex config`, the nearest name) is built from it. Never: a key beside it.

use std::path::PathBuf;
use std::time::Duration;

use iudex_core::{PromptStrategy, Usd};
use iudex_model::ActionFormat;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use toml::Spanned;

use super::convert::{self, OneOrMany, loosens};
use super::resolve::{Key, Resolver};
use super::source::{ConfigLine, Show, Sourced};
use crate::refusal::Refusal;

/// One section: the resolved struct, the struct that a file is read into, and how one becomes the other.
///
/// A line reads: key, form in the file => type = default, conversion with its rule, when it loosens.
macro_rules! section {
    (
        $(#[$doc:meta])*
        $section:literal, $resolved:ident, $raw:ident {
            $( $(#[doc = $about:literal])* $key:ident: $form:ty => $type:ty = $default:expr, $convert:path, $loosens:path; )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq)]
        pub struct $resolved {
            $( $(#[doc = $about])* pub $key: Sourced<$type>, )*
        }

        #[derive(Debug, Default, Deserialize)]
        #[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
        pub(super) struct $raw {
            $( pub(super) $key: Option<Spanned<$form>>, )*
        }

        impl $resolved {
            pub(super) const NAME: &'static str = $section;

            /// The keys as a file writes them.
            pub(super) fn keys() -> Vec<String> {
                vec![$( kebab(stringify!($key)) ),*]
            }

            fn reference() -> Vec<KeyReference> {
                vec![$( {
                    let default: $type = $default;
                    KeyReference {
                        key: format!("{}.{}", $section, kebab(stringify!($key))),
                        default: default.show(),
                        about: concat!($($about),*).trim().to_owned(),
                    }
                } ),*]
            }

            pub(super) fn resolve(resolver: &mut Resolver<'_>, section: fn(&Raw) -> &$raw) -> Result<Self, Refusal> {
                Ok(Self {
                    $( $key: resolver.value(
                        Key { section: $section, name: &kebab(stringify!($key)) },
                        |raw| section(raw).$key.as_ref(),
                        $default,
                        $convert,
                        $loosens,
                    )?, )*
                })
            }

            pub(super) fn lines(&self) -> Vec<ConfigLine> {
                vec![$( ConfigLine {
                    key: format!("{}.{}", $section, kebab(stringify!($key))),
                    value: self.$key.value.show(),
                    source: self.$key.source.clone(),
                    note: None,
                } ),*]
            }
        }
    };
}

fn kebab(name: &str) -> String {
    name.replace('_', "-")
}

/// A configuration file as it was written.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Raw {
    pub(super) run: RawRun,
    pub(super) gates: RawGates,
    pub(super) model: RawModel,
    pub(super) agent: RawAgent,
}

/// One key, for the reference.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyReference {
    /// Section and key (`run.max-steps`).
    pub key: String,
    /// The default; null when there is none.
    pub default: Value,
    /// What it is for.
    pub about: String,
}

/// Every key, in the order of the sections.
pub fn key_reference() -> Vec<KeyReference> {
    let mut keys = RunConfig::reference();
    keys.extend(GatesConfig::reference());
    keys.extend(ModelConfig::reference());
    keys.extend(AgentConfig::reference());
    keys
}

/// Every section with its keys.
pub(super) fn sections() -> [(&'static str, Vec<String>); 4] {
    [
        (RunConfig::NAME, RunConfig::keys()),
        (GatesConfig::NAME, GatesConfig::keys()),
        (ModelConfig::NAME, ModelConfig::keys()),
        (AgentConfig::NAME, AgentConfig::keys()),
    ]
}

section! {
    /// `[run]`: the limits and the surroundings of a run.
    "run", RunConfig, RawRun {
        /// Directives that a red check may send back.
        max_retries: i64 => u32 = 3, convert::count, loosens::more;
        /// Model calls in one pass.
        max_steps: i64 => u32 = 50, convert::count_from_one, loosens::more;
        /// Prompt and output tokens of the whole run; no limit when not set.
        max_tokens: i64 => Option<u64> = None, convert::token_count, loosens::above_limit;
        /// Money for the whole run, in US dollars; no limit when not set.
        max_cost: f64 => Option<Usd> = None, convert::dollars, loosens::above_limit;
        /// Wall clock of the whole run; no limit when not set.
        timeout: String => Option<Duration> = None, convert::time_limit, loosens::above_limit;
        /// Refuse a run that no gate decides about.
        require_gate: bool => bool = false, convert::yes_or_no, loosens::less;
        /// Let commands reach the network.
        net: bool => bool = false, convert::yes_or_no, loosens::more;
        /// Hold commands in a sandbox.
        sandbox: bool => bool = true, convert::yes_or_no, loosens::less;
        /// Days that a run is kept.
        keep_days: i64 => u32 = 30, convert::count, loosens::always;
        /// The newest runs, which are kept whatever their age.
        keep_newest: i64 => u32 = 20, convert::count_from_one, loosens::always;
    }
}

section! {
    /// `[gates]`: what decides about a proposal.
    "gates", GatesConfig, RawGates {
        /// Commands that must pass, those of `--until` last; each once.
        check: OneOrMany => Vec<String> = Vec::new(), convert::commands, loosens::always;
        /// The time limit of each check command.
        check_timeout: String => Duration = Duration::from_mins(10), convert::duration, loosens::less;
    }
}

section! {
    /// `[model]`: which model, where it is, how it is spoken to.
    "model", ModelConfig, RawModel {
        /// The model's name, or `script:FILE`; found by asking the usual ports when not set.
        name: String => Option<String> = None, convert::model_name, loosens::model;
        /// Where the server is, up to and with `/v1`.
        base_url: String => Option<String> = None, convert::base_url, loosens::other;
        /// The NAME of the variable that holds the key.
        api_key_env: String => Option<String> = None, convert::variable_name, loosens::other;
        /// The window in tokens; it wins over what the server says.
        context: i64 => Option<u64> = None, convert::token_count, loosens::other;
        /// The action format; chosen by the model when not set.
        format: String => Option<ActionFormat> = None, convert::format, loosens::never;
        /// The sampling temperature, 0 to 2.
        temperature: f64 => f32 = 0.2, convert::temperature, loosens::never;
        /// A fixed sampling seed.
        seed: i64 => Option<u64> = None, convert::seed, loosens::never;
        /// The most tokens of an answer; 4,096 or a quarter of the window when not set.
        answer_tokens: i64 => Option<u64> = None, convert::token_count, loosens::other;
        /// A PEM file with further certificate authorities; below the folder of the file that names it.
        ca_file: String => Option<PathBuf> = None, convert::file, loosens::other;
        /// US dollars for a million prompt tokens.
        price_prompt: f64 => Option<Usd> = None, convert::dollars, loosens::other;
        /// US dollars for a million generated tokens.
        price_output: f64 => Option<Usd> = None, convert::dollars, loosens::other;
        /// Until the first byte of an answer.
        first_byte_timeout: String => Duration = Duration::from_mins(10), convert::duration, loosens::never;
        /// Between two pieces of an answer.
        token_timeout: String => Duration = Duration::from_mins(2), convert::duration, loosens::less;
        /// Until the connection stands.
        connect_timeout: String => Duration = Duration::from_secs(10), convert::duration, loosens::never;
        /// How often a failed request is sent again.
        max_retries: i64 => u32 = 5, convert::count, loosens::never;
        /// The most time spent in sending again.
        retry_time: String => Duration = Duration::from_mins(5), convert::duration, loosens::never;
    }
}

section! {
    /// `[agent]`: how the built-in agent behaves.
    "agent", AgentConfig, RawAgent {
        /// Which repeat of the same brings an intervention; two more end the pass.
        stuck_threshold: i64 => u32 = 3, convert::stuck_threshold, loosens::never;
        /// The time limit of one command of the agent.
        bash_timeout: String => Duration = Duration::from_mins(2), convert::duration, loosens::never;
        /// How the first message is built: plain, or with-files; chosen by the size of the model when not set.
        strategy: String => Option<PromptStrategy> = None, convert::strategy, loosens::never;
    }
}
