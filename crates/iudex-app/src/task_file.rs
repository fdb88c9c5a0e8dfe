//! The task: a goal as text, or a file in Markdown or TOML with goal, criteria and decisions.
//!
//! Never: a part of a task file that is left aside in silence. What has no place in a task is an error with its line.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use iudex_core::{Decision, Task, TaskKind};
use serde::Deserialize;

use crate::nearest::nearest;
use crate::refusal::Refusal;

mod markdown;
#[cfg(test)]
mod tests;

/// The most bytes that a task may have.
const LARGEST: u64 = 4 * 1024 * 1024;

/// Reads a task file: TOML when its name ends with `.toml`, else Markdown.
///
/// # Errors
/// [`Refusal`] when it cannot be read, is not UTF-8, holds a NUL, has no goal, or has parts that are no part of a task.
pub fn read_task_file(file: &Path) -> Result<Task, Refusal> {
    let name = file.display().to_string();
    let cannot = |error: &std::io::Error| {
        Refusal::usage(format!("cannot read the task {name}: {error}"), "name a readable file")
    };
    let mut bytes = Vec::new();
    let opened = File::open(file).map_err(|error| cannot(&error))?;
    opened.take(LARGEST + 1).read_to_end(&mut bytes).map_err(|error| cannot(&error))?;
    let text = clean_text(&name, &bytes)?;
    let is_toml = file.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("toml"));
    let task = if is_toml { from_toml(&name, &text)? } else { markdown::read(&name, &text)? };
    if task.goal.is_empty() {
        let hint = if is_toml { "write goal = \"…\"" } else { "write the goal as text above the lists" };
        return Err(Refusal::usage(format!("the task {name} has no goal"), hint));
    }
    Ok(task)
}

/// A task that is only a goal, from an argument or standard input; `name` says which in errors.
///
/// # Errors
/// [`Refusal`] when the text is empty, is not UTF-8 or holds a NUL.
pub fn task_from_bytes(name: &str, bytes: &[u8]) -> Result<Task, Refusal> {
    let text = clean_text(name, bytes)?;
    let goal = text.trim();
    if goal.is_empty() {
        return Err(Refusal::usage(
            format!("{name} is empty"),
            "say what is to be done: iudex run \"make the failing test pass\"",
        ));
    }
    Ok(Task::from_goal(goal))
}

/// UTF-8 without byte order mark, with plain line ends.
fn clean_text(name: &str, bytes: &[u8]) -> Result<String, Refusal> {
    if bytes.len() as u64 > LARGEST {
        return Err(Refusal::usage(format!("{name} is larger than 4 MiB"), "put details into files of the project"));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        Refusal::usage(format!("{name} is not UTF-8 (byte {})", error.valid_up_to()), "save it as UTF-8")
    })?;
    if let Some(place) = text.find('\0') {
        return Err(Refusal::usage(
            format!("{name} holds a NUL character (byte {place})"),
            "give text, not binary data",
        ));
    }
    Ok(text.strip_prefix('\u{feff}').unwrap_or(text).replace("\r\n", "\n").replace('\r', "\n"))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskToml {
    #[serde(default)]
    goal: String,
    #[serde(default)]
    criteria: Vec<String>,
    #[serde(default)]
    kind: TaskKind,
    #[serde(default)]
    decisions: Vec<DecisionToml>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DecisionToml {
    choice: String,
    #[serde(default)]
    rejected: Vec<String>,
}

/// Every key of a task file in TOML, for the nearest name.
const KEYS: [&str; 6] = ["goal", "criteria", "kind", "decisions", "choice", "rejected"];

fn from_toml(name: &str, text: &str) -> Result<Task, Refusal> {
    let task: TaskToml = toml::from_str(text).map_err(|error| {
        let line = text.get(..error.span().map_or(0, |span| span.start)).unwrap_or(text).matches('\n').count() + 1;
        // The reader quotes the unknown name; it is the first thing in backquotes.
        let unknown = error.message().strip_prefix("unknown field `").and_then(|rest| rest.split('`').next());
        let hint = match unknown.and_then(|unknown| nearest(unknown, KEYS)) {
            Some(name) => format!("did you mean `{name}`?"),
            None => "a task has goal, criteria, kind (code, infrastructure, research, automation) and [[decisions]] \
                     with choice and rejected"
                .to_owned(),
        };
        Refusal::usage(format!("{name}:{line}: {}", error.message()), hint)
    })?;
    let trimmed = |list: Vec<String>| list.iter().map(|text| text.trim().to_owned()).collect::<Vec<_>>();
    let task = Task {
        goal: task.goal.trim().to_owned(),
        criteria: trimmed(task.criteria),
        decisions: task
            .decisions
            .into_iter()
            .map(|decision| Decision {
                choice: decision.choice.trim().to_owned(),
                rejected: trimmed(decision.rejected),
            })
            .collect(),
        kind: task.kind,
    };
    let rejected = task.decisions.iter().flat_map(|decision| &decision.rejected);
    let choices = task.decisions.iter().map(|decision| &decision.choice);
    if task.criteria.iter().chain(choices).chain(rejected).any(String::is_empty) {
        return Err(Refusal::usage(
            format!("the task {name} has an empty criterion or decision"),
            "fill it in or take it out",
        ));
    }
    Ok(task)
}
