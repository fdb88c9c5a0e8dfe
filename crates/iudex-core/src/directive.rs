//! The text that goes back to the agent with the findings of a gate.

use crate::ruling::{Finding, Rework};
use crate::traits::GateKind;

/// What a directive is made from.
#[derive(Debug)]
pub struct DirectiveFacts<'a> {
    /// The gate that sent it back.
    pub gate: GateKind,
    /// The ruling.
    pub rework: &'a Rework,
    /// True when the failure is the one of the last ruling.
    pub same_as_last: bool,
    /// Files that changed since the last ruling, relative to the work directory.
    pub changed: &'a [String],
    /// True when the proposal is a state that was ruled about before.
    pub unchanged: bool,
    /// True when the agent starts with the files as they were at the start of the run.
    pub from_base: bool,
    /// For a new conversation: what earlier passes did, a line each. Empty when the conversation goes on.
    pub tried: &'a [String],
}

/// The findings as the agent reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive(String);

/// Files that are named in a directive; more are counted.
const MOST_FILES: usize = 12;

/// Earlier passes that are told in a directive.
const MOST_TRIED: usize = 4;

impl Directive {
    /// Writes the directive.
    pub fn write(facts: &DirectiveFacts<'_>) -> Self {
        let mut text = String::from("The work is not accepted yet.\n");
        for finding in &facts.rework.findings {
            text.push('\n');
            push_finding(&mut text, finding);
        }
        text.push('\n');
        if facts.same_as_last {
            text.push_str("This is the same failure as last time.\n");
        }
        text.push_str(&describe_changes(facts));
        for line in facts.tried.iter().rev().take(MOST_TRIED).rev() {
            text.push_str("Tried: ");
            text.push_str(line);
            text.push('\n');
        }
        text.push_str(match facts.gate {
            GateKind::Check | GateKind::Ratchet => {
                "Revise the approach, fix the underlying problem, do not change the check, then finish."
            }
            GateKind::Score | GateKind::Judge => "Revise the approach, fix the underlying problem, then finish.",
        });
        Self(text)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn push_finding(text: &mut String, finding: &Finding) {
    text.push_str(finding.what.trim_end());
    text.push('\n');
    let parts = [
        ("Where", &finding.place),
        ("Fix", &finding.fix),
        ("Covering test", &finding.covering_test),
        ("Keep", &finding.keep),
    ];
    for (name, value) in parts {
        if let Some(value) = value {
            text.push_str(name);
            text.push_str(": ");
            text.push_str(value);
            text.push('\n');
        }
    }
}

fn describe_changes(facts: &DirectiveFacts<'_>) -> String {
    if facts.from_base {
        return "The files are back as they were at the start; try another way.\n".to_owned();
    }
    if facts.changed.is_empty() {
        return "No file has changed since then.\n".to_owned();
    }
    if facts.unchanged {
        return "The files are again as they were in an earlier attempt that was not accepted.\n".to_owned();
    }
    let named = facts.changed.iter().take(MOST_FILES).map(String::as_str).collect::<Vec<_>>().join(", ");
    match facts.changed.len().saturating_sub(MOST_FILES) {
        0 => format!("Changed in between: {named}.\n"),
        more => format!("Changed in between: {named} and {more} more.\n"),
    }
}
