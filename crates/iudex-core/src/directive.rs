//! The text that goes back to the agent with the findings of a gate.
//!
//! Never: more than its room, and a claim about changes that are not known.

use crate::ruling::{Finding, Rework};
use crate::tokens::most_tokens;
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
    /// Files that changed since the last ruling, relative to the work directory; `None` when that is not known.
    pub changed: Option<&'a [String]>,
    /// True when the proposal is a state that was ruled about before.
    pub unchanged: bool,
    /// True when the agent starts with the files as they were at the start of the run.
    pub from_base: bool,
    /// For a new conversation: what earlier passes did, a line each. Empty when the conversation goes on.
    pub tried: &'a [String],
    /// The most that the directive may take, as [`most_tokens`] counts.
    pub max_tokens: u64,
}

/// The findings as the agent reads them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive(String);

/// The most tokens that a directive takes, whatever the window.
const MOST_TOKENS: u64 = 2_000;

/// Files that are named in a directive; more are counted.
const MOST_FILES: usize = 12;

/// Earlier passes that are told in a directive.
const MOST_TRIED: usize = 4;

/// The room of a directive for a model with this window, as [`most_tokens`] counts: 2,000 and a quarter of the window at
/// the most.
pub fn directive_tokens(window: u64) -> u64 {
    MOST_TOKENS.min(window / 4)
}

/// What the findings may take of a directive with this room; the rest is for the words around them.
pub fn finding_tokens(directive_tokens: u64) -> u64 {
    directive_tokens / 5 * 4
}

impl Directive {
    /// Writes the directive. Where it does not fit, earlier attempts go first, then the names of changed files, and only
    /// then the end of the findings.
    pub fn write(facts: &DirectiveFacts<'_>) -> Self {
        let findings = findings(&facts.rework.findings);
        let mut tried = facts.tried.len().min(MOST_TRIED);
        let mut files = facts.changed.map_or(0, <[String]>::len).min(MOST_FILES);
        loop {
            let text = assemble(facts, &findings, files, tried);
            let used = most_tokens(&text);
            if used <= facts.max_tokens {
                return Self(text);
            }
            if tried > 0 {
                tried -= 1;
            } else if files > 0 {
                files -= 1;
            } else {
                let around = most_tokens(&assemble(facts, "", 0, 0));
                return Self(assemble(facts, &shorten(&findings, facts.max_tokens.saturating_sub(around)), 0, 0));
            }
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// The whole text with so many files and earlier passes named.
fn assemble(facts: &DirectiveFacts<'_>, findings: &str, files: usize, tried: usize) -> String {
    let mut text = String::from("The work is not accepted yet.\n");
    text.push_str(findings);
    text.push('\n');
    if facts.same_as_last {
        text.push_str("This is the same failure as last time.\n");
    }
    text.push_str(&describe_changes(facts, files));
    for line in &facts.tried[facts.tried.len() - tried..] {
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
    text
}

fn findings(findings: &[Finding]) -> String {
    let mut text = String::new();
    for finding in findings {
        text.push('\n');
        push_finding(&mut text, finding);
    }
    text
}

/// The start of the text in at most `room` tokens, with a mark where it was cut.
fn shorten(text: &str, room: u64) -> String {
    const MARK: &str = "\n[iudex shows not all: the rest is left out here]\n";
    let room = room.saturating_sub(most_tokens(MARK));
    let (mut fits, mut too_long) = (0, text.len());
    while too_long - fits > 1 {
        let middle = usize::midpoint(fits, too_long);
        if most_tokens(&text[..text.floor_char_boundary(middle)]) <= room {
            fits = middle;
        } else {
            too_long = middle;
        }
    }
    format!("{}{MARK}", text[..text.floor_char_boundary(fits)].trim_end())
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

fn describe_changes(facts: &DirectiveFacts<'_>, files: usize) -> String {
    if facts.from_base {
        return "The files are back as they were at the start; try another way.\n".to_owned();
    }
    if facts.changed.is_some_and(<[String]>::is_empty) {
        return "No file has changed since then.\n".to_owned();
    }
    if facts.unchanged {
        return "The files are again as they were in an earlier attempt that was not accepted.\n".to_owned();
    }
    let Some(changed) = facts.changed else {
        return "Which files changed in between is not known.\n".to_owned();
    };
    let named = changed[..files].join(", ");
    match changed.len() - files {
        0 => format!("Changed in between: {named}.\n"),
        many if files == 0 => format!("Files changed in between: {many}.\n"),
        more => format!("Changed in between: {named} and {more} more.\n"),
    }
}
