//! Where a value came from, and how values are shown.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iudex_core::{PromptStrategy, Usd};
use iudex_model::ActionFormat;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::duration::HumanDuration;

/// A value and where it came from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sourced<T> {
    /// The value.
    pub value: T,
    /// Its source.
    pub source: Source,
}

/// Where a value came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "lowercase")]
pub enum Source {
    /// Nobody set it.
    Default,
    /// The user's configuration file.
    User {
        /// The file.
        #[serde(serialize_with = "path_as_text")]
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// The project's `iudex.toml`.
    Project {
        /// The file.
        #[serde(serialize_with = "path_as_text")]
        path: PathBuf,
        /// The line, from 1.
        line: usize,
    },
    /// A flag of the command line.
    Flag {
        /// Its name (`--max-steps`).
        name: String,
    },
    /// A variable of the environment.
    Environment {
        /// Its name.
        name: String,
    },
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Default => f.write_str("default"),
            Self::User { path, line } | Self::Project { path, line } => write!(f, "{}:{line}", path.display()),
            Self::Flag { name } | Self::Environment { name } => f.write_str(name),
        }
    }
}

pub(crate) fn path_as_text<S: Serializer>(path: &Path, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(&path.to_string_lossy())
}

/// One line of `iudex config`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ConfigLine {
    /// Section and key (`run.max-steps`).
    pub key: String,
    /// The value as TOML and JSON write it; null when it is not set. A secret is never here.
    pub value: Value,
    /// Where it came from.
    pub source: Source,
    /// What else there is to know (a value that is held back until the project is trusted).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl fmt::Display for ConfigLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.value {
            Value::Null => write!(f, "{} (not set)", self.key)?,
            value => write!(f, "{} = {value}  ({})", self.key, self.source)?,
        }
        match &self.note {
            Some(note) => write!(f, "  [{note}]"),
            None => Ok(()),
        }
    }
}

/// A value of the configuration that can be shown.
pub(super) trait Show {
    /// As JSON; null for "not set".
    fn show(&self) -> Value;
}

impl<T: Show> Show for Option<T> {
    fn show(&self) -> Value {
        self.as_ref().map_or(Value::Null, Show::show)
    }
}

macro_rules! show_as_json {
    ($($type:ty),*) => { $(impl Show for $type {
        fn show(&self) -> Value {
            Value::from(self.clone())
        }
    })* };
}

show_as_json!(bool, u32, u64, String, Vec<String>);

impl Show for Duration {
    fn show(&self) -> Value {
        Value::from(HumanDuration::from(*self).to_string())
    }
}

impl Show for f32 {
    fn show(&self) -> Value {
        // By way of its shortest text: 0.2 stays 0.2.
        self.to_string().parse::<f64>().map_or(Value::Null, Value::from)
    }
}

impl Show for PathBuf {
    fn show(&self) -> Value {
        Value::from(self.to_string_lossy())
    }
}

impl Show for Usd {
    fn show(&self) -> Value {
        Value::from(self.micros as f64 / 1e6)
    }
}

impl Show for ActionFormat {
    fn show(&self) -> Value {
        Value::from(match self {
            Self::Json => "json",
            Self::Native => "native",
            Self::Text => "text",
        })
    }
}

impl Show for PromptStrategy {
    fn show(&self) -> Value {
        Value::from(match self {
            Self::Plain => "plain",
            Self::WithFiles => "with-files",
        })
    }
}
