//! What the model is told: the system prompt, the first message, and what the harness says in between.
//!
//! The system prompt and the tools are byte-stable, and stay at or below 900 tokens (a test measures it). Never: a
//! promise that the harness does not keep.

use std::fmt::Write as _;
use std::path::Path;

use iudex_core::{GateBrief, GateKind, PassOrder, PromptStrategy};
use iudex_model::{ActionFormat, ToolSpec, WireTool, estimate_tokens, instructions};

use super::conversation::Opening;
use super::project;
use super::stuck::Repeats;

/// The most tokens of file contents in a first message: half a minute of reading for a small model on a processor.
const MOST_FILE_TOKENS: u64 = 2_000;

/// The system prompt of a format.
pub(super) fn system(format: ActionFormat, tools: &[ToolSpec]) -> String {
    format!(
        "You are a coding agent. You work in the current directory of a project; paths are relative to it.\n{}\nRead a \
         file before you edit it, unless its text is here already. Write complete code, no placeholders. Change files \
         until the task is solved, then finish. Do not send the same call again while no file has changed.",
        instructions(format, tools)
    )
}

/// The tools as the native format sends them; empty in the other formats.
pub(super) fn wire_tools(format: ActionFormat, tools: &[ToolSpec]) -> Vec<WireTool> {
    if format != ActionFormat::Native {
        return Vec::new();
    }
    let wire = |spec: &ToolSpec| {
        let mut parameters = spec.parameters.clone();
        // Servers that build a grammar from it take `anyOf` beside `properties` for the whole.
        if let Some(fields) = parameters.as_object_mut() {
            fields.shift_remove("anyOf");
        }
        WireTool { name: spec.name.to_owned(), description: spec.description.to_owned(), parameters }
    };
    tools.iter().map(wire).collect()
}

/// The first message of a task, and whether all files of the project are in it whole.
pub(super) fn opening(order: &PassOrder<'_>, notes: Option<&str>, work_dir: &Path, window: u64) -> (Opening, bool) {
    let task = format!("Task: {}", order.task.to_prompt());
    let mut gates = gates(order.gates);
    let failing = order.failing.map(|failing| format!("\n\nAt the moment: {failing}")).unwrap_or_default();
    let mentioned = format!("{task}\n{gates}{failing}");
    let told = match order.strategy {
        PromptStrategy::Plain => project::names(work_dir),
        PromptStrategy::WithFiles => project::contents(work_dir, MOST_FILE_TOKENS.min(window / 4), &mentioned),
    };
    // A model that sees the failure goes to the place of the fault instead of looking for it. Where it has all files before
    // its eyes a small one would treat the message instead of the fault.
    if order.strategy == PromptStrategy::Plain || !told.is_all {
        gates.push_str(&failing);
    }
    let mut files = told.text;
    let missing = project::missing(work_dir, &task, &files);
    if !missing.is_empty() {
        files.push('\n');
        files.push_str(&missing);
    }
    let notes = notes.map(|notes| project_notes(notes, window / 10)).unwrap_or_default();
    (Opening { notes, files, task, gates }, told.is_all)
}

/// What must hold in the end.
fn gates(briefs: &[GateBrief]) -> String {
    let mut text = String::new();
    for brief in briefs {
        if !text.is_empty() {
            text.push_str("\n\n");
        }
        let requirements: Vec<&str> = brief.requirements.iter().map(|one| one.trim_end()).collect();
        let is_long = requirements.len() > 1 && requirements.iter().any(|one| one.contains('\n'));
        let what = match (brief.kind, requirements.len()) {
            (GateKind::Check, 0 | 1) => "this command exits 0".to_owned(),
            (GateKind::Check, number) if is_long => format!("each of these {number} commands exits 0"),
            (GateKind::Check, _) => "each of these commands exits 0".to_owned(),
            _ => format!("this holds ({})", brief.name),
        };
        let _ = writeln!(text, "The work is accepted only when {what}:");
        for (index, requirement) in requirements.iter().enumerate() {
            if is_long {
                let _ = writeln!(text, "({})", index + 1);
            }
            text.push_str(requirement);
            text.push('\n');
        }
        text.truncate(text.trim_end().len());
        if brief.kind == GateKind::Check {
            text.push_str("\nDo not change tests to make it pass, unless the task asks for that.");
        }
    }
    text
}

/// The project's notes, cut at a line so that they fit.
fn project_notes(notes: &str, tokens: u64) -> String {
    let notes = notes.trim();
    if notes.is_empty() {
        return String::new();
    }
    let mut text = String::from("Notes of the project (AGENTS.md):\n");
    let mut used = 0;
    for line in notes.lines() {
        used += estimate_tokens(line) + 1;
        if used > tokens {
            text.push_str("[The rest is left out; read AGENTS.md when you need it.]\n");
            break;
        }
        text.push_str(line);
        text.push('\n');
    }
    text
}

/// How the model says that it is finished.
pub(super) fn how_to_finish(format: ActionFormat) -> &'static str {
    match format {
        ActionFormat::Json => "call done",
        ActionFormat::Native | ActionFormat::Text => "say so without a call",
    }
}

/// After a change, for a model that does not know when to stop.
pub(super) fn after_change(format: ActionFormat) -> String {
    format!("If that completes the task, {}; the check then runs.", how_to_finish(format))
}

/// After a write that left everything as the gates have refused it.
pub(super) const REFUSED_STATE: &str =
    "The files are still as they were when the work was not accepted. Change something else.";

/// After a call whose result was seen before.
pub(super) fn seen_before(format: ActionFormat) -> String {
    format!(
        "You have this result already, and nothing has changed since. Take the next step, or {} if the task is complete.",
        how_to_finish(format)
    )
}

/// When calls repeat: what repeats, and what to do instead.
pub(super) fn repeats(what: &str, repeats: Repeats, format: ActionFormat, has_gate: bool, changed: bool) -> String {
    let finish = how_to_finish(format);
    let instead = match (has_gate, changed) {
        (true, true) => format!("If the task may be complete, {finish}: the check then runs. Otherwise change a file."),
        (true, false) => "No file has changed yet. Write or edit the file that solves the task now.".to_owned(),
        (false, _) => format!("Do something else, or {finish} if the task is complete."),
    };
    format!("This came {repeats}: {what}\nStop repeating it. {instead}")
}

/// When an answer calls nothing though nothing was done yet.
pub(super) fn no_call(format: ActionFormat) -> String {
    let how = match format {
        ActionFormat::Json => "Reply with one JSON object that calls a tool.",
        ActionFormat::Native => "Call a tool.",
        ActionFormat::Text => "End your reply with one ```json block that calls a tool.",
    };
    format!(
        "You called no tool, so nothing was done: no file has changed. {how} If there is nothing to do, say so again."
    )
}

/// When the model says that it is finished though no file has changed.
pub(super) fn done_unchanged(format: ActionFormat) -> String {
    format!(
        "No file has changed, so nothing is solved yet: an edit that fails changes nothing. Write or edit the file that \
         solves the task, then {}.",
        how_to_finish(format)
    )
}

/// When an answer is empty.
pub(super) fn empty(format: ActionFormat) -> String {
    format!("Your answer was empty. Call a tool, or {} if the task is finished.", how_to_finish(format))
}

/// When the format changes.
pub(super) fn format_changed(format: ActionFormat) -> &'static str {
    match format {
        ActionFormat::Json => "From now on each reply is one JSON object that calls one tool.",
        ActionFormat::Native => "From now on use the tools that are offered.",
        ActionFormat::Text => "From now on end each reply with one ```json block that calls one tool.",
    }
}
