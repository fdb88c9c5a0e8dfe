//! The tools of the built-in agent: read, write, edit, bash, search.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use iudex_exec::Confinement;
use iudex_model::ToolSpec;

/// What tools work on and within which bounds.
#[derive(Debug, Clone)]
pub struct ToolSettings {
    /// The work directory, absolute and canonical. Writes reach beneath it only.
    pub work_dir: PathBuf,
    /// Paths beneath it that are never written (`.git`).
    pub read_only: Vec<PathBuf>,
    /// The environment of commands.
    pub env: Vec<(OsString, OsString)>,
    /// What holds commands.
    pub confinement: Confinement,
    /// The time limit of one command (2 min).
    pub bash_time_limit: Duration,
    /// The most bytes that one result may take.
    pub result_bytes: usize,
}

/// The tools, ready to use.
#[derive(Debug)]
pub struct ToolBox {}

/// What a tool answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolResult {
    /// False for an error.
    pub ok: bool,
    /// The text that the model sees.
    pub text: String,
    /// The safety policy refused hard: the pass ends as *blocked* with this reason.
    pub blocked: Option<String>,
    /// True when a file may have been changed.
    pub may_have_changed: bool,
}

impl ToolBox {
    /// Tools with these settings.
    pub fn new(settings: ToolSettings) -> Self {
        let _ = settings;
        todo!()
    }

    /// The tools as a model sees them. Byte-stable.
    pub fn specs(&self) -> &[ToolSpec] {
        todo!()
    }

    /// One line that shows what a call works on.
    pub fn subject(&self, tool: &str, arguments: &serde_json::Map<String, serde_json::Value>) -> String {
        let _ = (tool, arguments);
        todo!()
    }

    /// Runs a call whose arguments fit the schema.
    pub async fn call(
        &self,
        tool: &str,
        arguments: &serde_json::Map<String, serde_json::Value>,
        on_line: &mut dyn FnMut(&str),
    ) -> ToolResult {
        let _ = (tool, arguments, on_line);
        todo!()
    }

    /// A digest of names, sizes and times below the work directory (`.git` and ignored directories left out), to see
    /// whether a call changed anything.
    pub fn state_digest(&self) -> String {
        todo!()
    }
}
