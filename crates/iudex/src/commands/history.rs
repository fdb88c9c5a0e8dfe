//! `log`, `show`, `stats`, `diff`, `undo`.

use std::fmt::Write;
use std::path::Path;
use std::process::ExitCode;

use iudex_app::{History, Refusal, RestoreReport, RunRow, RunStats};
use serde_json::Value;

use super::places;
use crate::args::{LogArgs, RunName, RunNameJson, UndoArgs};
use crate::render::{counted, human_count, human_duration, one_line};
use crate::talk;

pub(super) fn log(arguments: &LogArgs) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    let only = (!arguments.all).then_some(directory.as_path());
    let runs = History::open(paths)?.runs(only, arguments.most)?;
    if arguments.json {
        talk::json(&runs);
    } else if runs.is_empty() {
        talk::say("no runs are recorded here; `iudex log --all` lists those of every directory");
    } else {
        let mut text = String::new();
        for run in &runs {
            let place = if arguments.all { format!("  {}", run.directory) } else { String::new() };
            let _ = writeln!(text, "{}  {:<28}  {}{place}", run.run, run.outcome, one_line(&run.goal, 60));
        }
        talk::data(&text);
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn show(arguments: &RunNameJson) -> Result<ExitCode, Refusal> {
    let (history, run) = find(&arguments.name)?;
    let events = history.events(&run)?;
    if arguments.json {
        talk::json(&events);
        return Ok(ExitCode::SUCCESS);
    }
    let mut text = format!("run {} in {}\n{}\n", run.run, run.directory, run.outcome);
    for recorded in &events {
        transcript_entry(&mut text, &recorded.event);
    }
    talk::data(&text);
    Ok(ExitCode::SUCCESS)
}

/// Adds what an event says to a transcript. Unknown kinds of a newer iudex are named, not dropped.
fn transcript_entry(text: &mut String, event: &Value) {
    let get = |name: &str| event.get(name).and_then(Value::as_str).unwrap_or_default();
    let kind = get("event");
    let _ = match kind {
        "message" => writeln!(text, "\n[{}]\n{}", get("role"), get("text").trim_end()),
        "tool_started" => writeln!(text, "\n> {} {}", get("tool"), get("subject")),
        "tool_finished" => writeln!(text, "{}", get("result").trim_end()),
        "intervention" => writeln!(text, "\n[{}] {}", get("kind"), get("text")),
        "pass_started" => writeln!(text, "\n=== pass {} ===", event["pass"]),
        "pass_ended" => {
            writeln!(text, "\n=== pass ended: {} ===", event["report"]["end"]["end"].as_str().unwrap_or("?"))
        }
        "gate_ruled" => {
            let ruling = &event["ruling"];
            let word = ruling["ruling"].as_str().unwrap_or("?");
            writeln!(text, "\n=== {}: {word} ===", get("gate"))
        }
        "directive_sent" => writeln!(text, "\n[directive]\n{}", get("directive").trim_end()),
        "notice" => writeln!(text, "\n[notice] {}", get("text")),
        "run_ended" => writeln!(text, "\n=== {} ===", event["outcome"]["outcome"].as_str().unwrap_or("?")),
        "run_started"
        | "base_taken"
        | "gate_started"
        | "model_call_started"
        | "model_call_finished"
        | "pinned"
        | "ruling_stands" => Ok(()),
        other => writeln!(text, "\n[{other}]"),
    };
}

pub(super) fn stats(arguments: &RunNameJson) -> Result<ExitCode, Refusal> {
    let (history, run) = find(&arguments.name)?;
    let stats = history.stats(&run)?;
    if arguments.json {
        talk::json(&stats);
    } else {
        talk::data(&stats_text(&stats));
    }
    Ok(ExitCode::SUCCESS)
}

/// The record of a run as text; also what `/stats` shows.
pub(crate) fn stats_text(stats: &RunStats) -> String {
    let mut text = String::new();
    let row = &stats.row;
    let _ = writeln!(text, "run         {}\nstarted     {}\ndirectory   {}", row.run, row.started, row.directory);
    let _ = writeln!(text, "task        {}\nmodel       {}", one_line(&row.goal, 100), row.model);
    let _ = writeln!(text, "outcome     {}", row.outcome);
    let _ = writeln!(text, "validation  {}", stats.validation);
    for ruling in &stats.rulings {
        let millis = ruling.get("millis").and_then(Value::as_u64).unwrap_or_default();
        let pass = ruling.get("pass").and_then(Value::as_u64);
        let when = pass.map_or_else(|| "before any work".to_owned(), |pass| format!("after pass {pass}"));
        let _ = writeln!(
            text,
            "  {} {when}: {} ({})",
            ruling.get("gate").and_then(Value::as_str).unwrap_or("gate"),
            ruling["ruling"]["ruling"].as_str().unwrap_or("?"),
            human_duration(std::time::Duration::from_millis(millis))
        );
    }
    for gate in &stats.gates {
        let _ = writeln!(text, "gate        {}", gate_text(gate));
    }
    for intervention in &stats.interventions {
        let _ = writeln!(text, "stepped in  {}", compact(intervention));
    }
    let cost =
        stats.cost_micros.map_or("cost unknown".to_owned(), |micros| format!("cost {}", iudex_core::Usd { micros }));
    let _ = writeln!(
        text,
        "used        {}, {} tokens in, {} out, {cost}",
        counted(stats.calls, "model call"),
        human_count(stats.prompt_tokens),
        human_count(stats.output_tokens)
    );
    text
}

/// What a gate cost: times asked, time, tokens and money.
fn gate_text(gate: &Value) -> String {
    let number = |name: &str| gate.get(name).and_then(Value::as_u64).unwrap_or_default();
    let time = |name: &str| human_duration(std::time::Duration::from_millis(number(name)));
    let name = gate.get("gate").and_then(Value::as_str).unwrap_or("?");
    let mut text = format!("{name} asked {} in {}", counted(number("asked"), "time"), time("millis"));
    if number("baselines") > 0 {
        let _ = write!(text, " (before any work: {})", time("baseline_millis"));
    }
    let cost = match gate.get("cost_micros").and_then(Value::as_u64) {
        Some(micros) => format!("cost {}", iudex_core::Usd { micros }),
        None => "cost unknown".to_owned(),
    };
    let _ = write!(text, ", {} tokens, {cost}", human_count(number("tokens")));
    text
}

/// `key value, key value` for a flat object.
fn compact(value: &Value) -> String {
    let Some(object) = value.as_object() else { return value.to_string() };
    let parts: Vec<String> = object
        .iter()
        .map(|(key, value)| match value {
            Value::String(text) => format!("{key} {text}"),
            other => format!("{key} {other}"),
        })
        .collect();
    parts.join(", ")
}

pub(super) fn diff(arguments: &RunName) -> Result<ExitCode, Refusal> {
    let (history, run) = find(arguments)?;
    talk::diff(&history.diff(&run, talk::colour())?);
    Ok(ExitCode::SUCCESS)
}

pub(super) fn undo(arguments: &UndoArgs) -> Result<ExitCode, Refusal> {
    let (history, run) = find(&arguments.name)?;
    let report = history.undo(&run, arguments.force)?;
    talk::data(&undo_text(&report, Path::new(&run.directory), run.outcome == "killed"));
    Ok(if report.kept.is_empty() { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

/// What an undo did, as text. A run that was killed in a pass left changes that no snapshot shows to be its own.
pub(crate) fn undo_text(report: &RestoreReport, directory: &Path, was_killed: bool) -> String {
    let mut text = format!("{} brought back in {}\n", counted(report.restored.len(), "file"), directory.display());
    for path in report.restored.iter().take(20) {
        let _ = writeln!(text, "  {}", path.display());
    }
    if report.restored.len() > 20 {
        let _ = writeln!(text, "  and {} more", report.restored.len() - 20);
    }
    if !report.kept.is_empty() {
        text.push_str(if was_killed {
            "kept, changed after the last snapshot: by the run, which was killed in a pass, or by somebody else\n\
             (--force brings them back too):\n"
        } else {
            "kept, changed by somebody else since (--force brings them back too):\n"
        });
        for path in &report.kept {
            let _ = writeln!(text, "  {}", path.display());
        }
    }
    text
}

fn find(name: &RunName) -> Result<(History, RunRow), Refusal> {
    let (directory, paths) = places(name.cwd.as_ref())?;
    let history = History::open(paths)?;
    let run = history.find(name.run.as_deref(), &directory)?;
    Ok((history, run))
}
