//! The tools of the built-in agent: read, write, edit, bash, search.
//!
//! Never: a path outside the work directory, a file that is half written, or a result that says more than was done.

mod arguments;
mod bash;
mod blocks;
mod digest;
mod edit;
mod file;
mod indent;
mod lead;
mod matching;
mod place;
mod read;
mod refused;
mod remarks;
mod search;
mod text;
mod walk;
mod write;

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iudex_exec::Confinement;
use iudex_model::ToolSpec;
use serde_json::{Map, Value};

use self::place::{Place, Resolved};
use self::refused::Refused;

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
    /// For small models, which take the part that they change for the whole file, and a test for what is to be changed: a
    /// `write` by which a file would lose functions replaces only those that it has, and a change of a test has to be sent
    /// twice.
    pub writes_in_parts: bool,
}

/// The tools, ready to use.
#[derive(Debug)]
pub struct ToolBox {
    settings: ToolSettings,
    place: Place,
    specs: Vec<ToolSpec>,
    refused: Refused,
}

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
    /// True when what was written is plainly not finished.
    pub is_open: bool,
}

impl ToolResult {
    fn done(text: impl Into<String>) -> Self {
        Self { ok: true, text: text.into(), blocked: None, may_have_changed: false, is_open: false }
    }

    fn changed(text: impl Into<String>) -> Self {
        Self { may_have_changed: true, ..Self::done(text) }
    }

    fn error(text: impl Into<String>) -> Self {
        Self { ok: false, ..Self::done(text) }
    }
}

/// The longest line that shows what a call works on, in characters.
const SUBJECT_CHARACTERS: usize = 100;

impl ToolBox {
    /// Tools with these settings.
    pub fn new(settings: ToolSettings) -> Self {
        // Paths of calls are compared without links.
        let real = |paths: &[PathBuf]| paths.iter().map(|path| place::real(path)).collect();
        let place = Place {
            work_dir: place::real(&settings.work_dir),
            read_only: real(&settings.read_only),
            hidden: real(&settings.confinement.hidden),
        };
        let specs = vec![read::spec(), write::spec(), edit::spec(), bash::spec(), search::spec()];
        Self { settings, place, specs, refused: Refused::default() }
    }

    /// The directory that the tools work on.
    pub fn work_dir(&self) -> &Path {
        &self.settings.work_dir
    }

    /// Sets the most bytes that one result may take.
    pub fn set_result_bytes(&mut self, bytes: usize) {
        self.settings.result_bytes = bytes;
    }

    /// A pass begins: nothing that was refused before counts as sent again.
    pub fn begin_pass(&self) {
        self.refused.forget();
    }

    /// The tools as a model sees them. Byte-stable.
    pub fn specs(&self) -> &[ToolSpec] {
        &self.specs
    }

    /// One line that shows what a call works on.
    pub fn subject(&self, tool: &str, arguments: &Map<String, Value>) -> String {
        let text = |name: &str| arguments.get(name).and_then(Value::as_str).unwrap_or_default();
        let subject = match tool {
            "bash" => text("command").to_owned(),
            "search" if text("path").is_empty() => text("pattern").to_owned(),
            "search" => format!("{} in {}", text("pattern"), text("path")),
            _ => text("path").to_owned(),
        };
        one_line(&subject, SUBJECT_CHARACTERS)
    }

    /// Runs a call whose arguments fit the schema.
    pub async fn call(&self, tool: &str, arguments: &Map<String, Value>, on_line: &mut dyn FnMut(&str)) -> ToolResult {
        let target = self.target_of_change(tool, arguments);
        let before = target.as_ref().map(|target| remarks::text_of(target).unwrap_or_default());
        let in_parts = self.settings.writes_in_parts.then_some(&self.refused);
        let refusal = target.as_ref().and_then(|target| self.refuse_test(target, arguments));
        let outcome = match tool {
            _ if refusal.is_some() => Err(refusal.unwrap_or_default()),
            "read" => read::run(&self.place, self.settings.result_bytes, arguments),
            "write" => write::run(&self.place, in_parts, arguments),
            "edit" => edit::run(&self.place, arguments),
            "bash" => bash::run(&self.settings, arguments, on_line).await,
            "search" => search::run(&self.place, self.settings.result_bytes, arguments).await,
            unknown => Err(format!("There is no tool {unknown:?}. The tools are: read, write, edit, bash, search.")),
        };
        let mut result = outcome.unwrap_or_else(ToolResult::error);
        if let (Some(target), Some(before), true) = (target, before, result.may_have_changed) {
            remarks::add(&mut result, &self.place, &target, &before).await;
        }
        result.text = bounded(result.text, self.settings.result_bytes);
        result
    }

    /// The file that a call changes; nothing for other calls and where it may not be written.
    fn target_of_change(&self, tool: &str, arguments: &Map<String, Value>) -> Option<Resolved> {
        let path = arguments.get("path").and_then(Value::as_str).filter(|_| matches!(tool, "write" | "edit"))?;
        self.place.for_writing(path).ok()
    }

    /// Why a change of an existing test has to be sent again, unless it was.
    fn refuse_test(&self, target: &Resolved, arguments: &Map<String, Value>) -> Option<String> {
        let name = target.path.strip_prefix(&self.place.work_dir).unwrap_or(&target.path);
        let is_guarded = self.settings.writes_in_parts && remarks::is_test(name) && target.path.is_file();
        if !is_guarded || self.refused.is(arguments) {
            return None;
        }
        self.refused.keep(arguments);
        Some(format!(
            "Nothing was written: {} is a test. Change the code that it tests. If the task is to change this test, send the \
             same call again.",
            name.display()
        ))
    }

    /// A digest of names, sizes and times below the work directory (`.git` and ignored directories left out), to see
    /// whether a call changed anything.
    pub fn state_digest(&self) -> String {
        digest::of(&self.settings.work_dir)
    }
}

/// Text as one line without control characters, cut at `most` characters.
fn one_line(text: &str, most: usize) -> String {
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let clean = line.chars().filter(|c| !c.is_control());
    if clean.clone().count() <= most { clean.collect() } else { clean.take(most - 1).chain(['…']).collect() }
}

/// A text that takes at most `most` bytes; what is left out in the middle is said.
fn bounded(text: String, most: usize) -> String {
    const NOTE_BYTES: usize = 60;
    if text.len() <= most {
        return text;
    }
    let room = most.saturating_sub(NOTE_BYTES);
    let head_end = text.floor_char_boundary(room / 2);
    let tail_start = text.ceil_char_boundary(text.len() - (room - room / 2));
    format!("{}\n[{} bytes left out]\n{}", &text[..head_end], tail_start - head_end, &text[tail_start..])
}

/// A byte count for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..=9_999 => format!("{bytes} bytes"),
        10_000..=9_999_999 => format!("{} kB", bytes / 1000),
        _ => format!("{} MB", bytes / 1_000_000),
    }
}

/// `1 line`, `2 lines`.
fn count(number: usize, word: &str) -> String {
    if number == 1 { format!("1 {word}") } else { format!("{number} {word}s") }
}
