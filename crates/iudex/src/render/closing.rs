//! The last block of a run, for people and for machines.

use std::fmt::Write;
use std::time::Duration;

use iudex_app::Finished;
use iudex_core::{CheckEvidence, Outcome, Ruling, Validation};
use serde_json::{Value, json};

use super::lines::{changes, ruling_line, word};
use super::{counted, human_count, human_duration, one_line};

/// The result as JSON, the last line of `--json`.
pub(crate) fn closing_json(finished: &Finished) -> Value {
    let report = &finished.report;
    json!({
        "event": "result",
        "run": finished.run.as_str(),
        "outcome": finished.outcome,
        "exit_code": finished.exit_code(),
        "why": report.outcome.why(),
        "claim": report.claim,
        "validation": match &report.outcome {
            Outcome::Done { validation } => json!(validation),
            _ => Value::Null,
        },
        "last_ruling": report.last_ruling.as_ref().map(|(gate, ruling)| json!({ "gate": gate, "ruling": ruling })),
        "diff": report.stat,
        "spent": report.spent,
        "passes": report.passes,
        "retries": report.retries,
        "asked_after_budget": report.asked_after_budget,
        "model": finished.model,
        "sandbox": finished.sandbox,
        "notes": finished.notes,
        "elapsed_ms": u64::try_from(finished.elapsed.as_millis()).unwrap_or(u64::MAX),
    })
}

/// The agent's last message, set off from everything that iudex itself says; empty when there is none.
pub(crate) fn claim_text(claim: &str) -> String {
    // The call that ends a pass is no answer; what it adds in words is.
    let call = serde_json::from_str::<Value>(claim).ok().filter(|call| call.get("tool").is_some());
    let claim = match &call {
        Some(call) => call.get("summary").and_then(Value::as_str).unwrap_or_default(),
        None => claim,
    };
    if claim.trim().is_empty() {
        return String::new();
    }
    let mut text = "the agent says (a claim, not checked by it):\n".to_owned();
    for line in claim.trim().lines() {
        let _ = writeln!(text, "  {line}");
    }
    text.push('\n');
    text
}

/// The result as a block of text.
pub(crate) fn closing_text(finished: &Finished) -> String {
    let report = &finished.report;
    let mut text = String::new();
    row(&mut text, "outcome", &format!("{} (exit {})", finished.outcome, finished.exit_code()));
    if let Some(why) = report.outcome.why() {
        row(&mut text, "why", &one_line(&why, 400));
    }
    match (&report.outcome, &report.last_ruling) {
        (Outcome::Done { validation: Validation::Accepted { acceptances } }, _) => {
            for accepted in acceptances {
                evidence_rows(&mut text, accepted.evidence());
            }
        }
        (Outcome::Done { .. }, _) => row(&mut text, "checked", "nothing: no gate was set"),
        (_, Some((gate, ruling))) => {
            row(&mut text, word(*gate), &ruling_line(ruling));
            if let Ruling::Rework(rework) = ruling
                && let Some(evidence) = &rework.evidence
            {
                output_rows(&mut text, evidence);
            }
        }
        (_, None) => row(&mut text, "checked", "nothing"),
    }
    if report.asked_after_budget {
        row(&mut text, "note", "the budget was spent; the check was asked once more");
    }
    row(&mut text, "changes", &changes(report.stat.as_ref()));
    let files = report.stat.as_ref().map_or(&[][..], |stat| &stat.files);
    for file in files.iter().take(10) {
        let count = |lines: Option<u64>| lines.map_or("?".to_owned(), |lines| lines.to_string());
        let _ =
            writeln!(text, "            {} +{} -{}", one_line(&file.path, 100), count(file.added), count(file.removed));
    }
    if files.len() > 10 {
        let _ = writeln!(text, "            and {} more", files.len() - 10);
    }
    let usage = report.spent.usage;
    let cost = report.spent.cost.map_or("cost unknown".to_owned(), |cost| format!("cost {cost}"));
    row(
        &mut text,
        "used",
        &format!(
            "{}, {}, {} tokens in, {} out, {cost}, {}",
            counted(report.passes, "pass"),
            counted(usage.calls, "model call"),
            human_count(usage.prompt.0),
            human_count(usage.output.0),
            human_duration(finished.elapsed)
        ),
    );
    row(&mut text, "model", &finished.model);
    for note in &finished.notes {
        row(&mut text, "note", note);
    }
    row(&mut text, "run", &format!("{} (iudex show, iudex stats, iudex diff, iudex undo)", finished.run.as_str()));
    text
}

fn row(text: &mut String, name: &str, value: &str) {
    let _ = writeln!(text, "{name:<11} {value}");
}

fn evidence_rows(text: &mut String, evidence: &CheckEvidence) {
    for command in &evidence.commands {
        let tests = command.tests.map_or(String::new(), |tests| {
            let skipped = if tests.skipped > 0 { format!(", {} skipped", tests.skipped) } else { String::new() };
            format!(", {} passed{skipped}", counted(tests.passed, "test"))
        });
        let before = match evidence.baseline_green {
            Some(true) => ", passed before any work too",
            Some(false) => ", failed before the work",
            None => "",
        };
        row(
            text,
            "check",
            &format!(
                "`{}` {}{tests} in {}{before}",
                one_line(&command.command, 80),
                command.end,
                human_duration(Duration::from_millis(u64::try_from(command.duration.as_millis()).unwrap_or(u64::MAX)))
            ),
        );
    }
    output_rows(text, evidence);
    for note in &evidence.notes {
        row(text, "note", note);
    }
}

fn output_rows(text: &mut String, evidence: &CheckEvidence) {
    for file in evidence.commands.iter().filter_map(|command| command.output_file.as_ref()) {
        row(text, "output", &file.display().to_string());
    }
}
