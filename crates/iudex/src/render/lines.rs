//! The events that matter, one line each.

use std::io::Write;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use iudex_app::Notice;
use iudex_core::{DiffStat, Event, GateKind, Move, PassEnd, Rework, Ruling};

use super::{counted, human_count, human_duration, one_line};

const LINE: usize = 160;

/// Writes each line to standard error as it comes.
pub(super) fn show(notices: &Receiver<Notice>) {
    let mut lines = Lines::default();
    for notice in notices {
        if let Notice::Event { event, .. } = notice
            && let Some(line) = lines.line(&event)
        {
            // Nobody reads any more: the run goes on, its record is in the ledger.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }
}

/// Turns events into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    tokens: u64,
}

impl Lines {
    /// The line for an event, when it is worth one.
    pub(super) fn line(&mut self, event: &Event) -> Option<String> {
        let line = match event {
            Event::RunStarted { task, gates, .. } => {
                let gates: Vec<String> =
                    gates.iter().map(|gate| format!("{}: {}", gate.name, gate.requirements.join("; "))).collect();
                let told = if gates.is_empty() { "no gate".to_owned() } else { gates.join(" | ") };
                format!("task: {}\ngate: {}", one_line(&task.goal, LINE), one_line(&told, LINE))
            }
            Event::GateStarted { gate, pass: None } => format!("{} before any work ...", word(*gate)),
            Event::GateStarted { gate, pass: Some(_) } => format!("{} ...", word(*gate)),
            Event::GateRuled { gate, pass, ruling, millis } => {
                let when = if pass.is_none() { " before any work" } else { "" };
                format!("{}{when}: {} ({})", word(*gate), ruling_line(ruling), millis_text(*millis))
            }
            Event::PassStarted { pass, by, .. } => match by {
                None => format!("pass {pass}"),
                Some(by) => format!("pass {pass} ({})", move_words(*by)),
            },
            Event::ToolStarted { tool, subject } => format!("  {tool} {}", one_line(subject, LINE)),
            Event::ToolFinished { tool, ok: false, result, .. } => {
                format!("  {tool} failed: {}", one_line(result.lines().next().unwrap_or_default(), LINE))
            }
            Event::Intervention { kind, text } => format!("  [{kind}] {}", one_line(text, LINE)),
            Event::ModelCallFinished { usage, .. } => {
                self.tokens = self.tokens.saturating_add(usage.total().0);
                return None;
            }
            Event::PassEnded { pass, report } => {
                format!(
                    "pass {pass} ended: {} ({}, {} tokens so far)",
                    end_words(&report.end),
                    counted(report.steps, "step"),
                    human_count(self.tokens)
                )
            }
            Event::Pinned { stat, .. } => format!("proposal: {}", changes(stat.as_ref())),
            Event::RulingStands { .. } => {
                "nothing differs from a state that was ruled about: the ruling stands".to_owned()
            }
            Event::DirectiveSent { chosen, retries, rounds, .. } => {
                format!("sent back ({}; {} so far)", move_words(*chosen), retries + rounds)
            }
            Event::Notice { text } => one_line(text, 2 * LINE),
            Event::BaseTaken { base } if !base.not_covered.is_empty() => {
                format!("not covered by undo: {}", one_line(&base.not_covered.join(", "), LINE))
            }
            _ => return None,
        };
        Some(line)
    }
}

/// The size of a difference in words, also when it is not known.
pub(super) fn changes(stat: Option<&DiffStat>) -> String {
    stat.map_or_else(|| "what changed is not known".to_owned(), DiffStat::summary)
}

/// The name of a gate's kind.
pub(super) fn word(gate: GateKind) -> &'static str {
    match gate {
        GateKind::Check => "check",
        GateKind::Ratchet => "ratchet",
        GateKind::Score => "score",
        GateKind::Judge => "judge",
    }
}

/// What a move means, in words.
pub(super) fn move_words(chosen: Move) -> &'static str {
    match chosen {
        Move::Continue => "the conversation goes on",
        Move::Fresh => "a fresh conversation",
        Move::Resample => "a fresh conversation on the files as they were",
    }
}

fn end_words(end: &PassEnd) -> String {
    match end {
        PassEnd::Finished => "the agent says that it is done".to_owned(),
        PassEnd::Stuck { why } => format!("stuck: {}", one_line(why, LINE)),
        PassEnd::HitLimit { limit } => format!("out of {limit}"),
        PassEnd::Blocked { why } => format!("blocked: {}", one_line(why, LINE)),
        PassEnd::ModelUnavailable { why } => format!("no model: {}", one_line(why, LINE)),
        PassEnd::Aborted => "aborted".to_owned(),
    }
}

/// One line about a ruling: each command and how it ended.
pub(crate) fn ruling_line(ruling: &Ruling) -> String {
    let (state, evidence) = match ruling {
        Ruling::Accepted(accepted) => ("green", Some(accepted.evidence())),
        Ruling::Rework(rework) => ("red", rework.evidence.as_ref()),
        Ruling::Void(void) => return format!("could not check: {}", one_line(&void.reason, LINE)),
    };
    let commands = evidence.map(|evidence| &evidence.commands[..]).unwrap_or_default();
    let ends: Vec<String> =
        commands.iter().map(|command| format!("`{}` {}", one_line(&command.command, 60), command.end)).collect();
    match (ends.is_empty(), ruling) {
        (false, _) => format!("{state}, {}", ends.join("; ")),
        // Sent back without running anything: the finding says why.
        (true, Ruling::Rework(Rework { findings, .. })) => {
            let what = findings.first().and_then(|finding| finding.what.lines().next()).unwrap_or("no finding");
            format!("not asked: {}", one_line(what, LINE))
        }
        (true, _) => state.to_owned(),
    }
}

fn millis_text(millis: u64) -> String {
    human_duration(Duration::from_millis(millis))
}
