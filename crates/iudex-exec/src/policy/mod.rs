//! The hard refusals and the friendly denials, on parsed commands and never on raw text.
//!
//! The sandbox is the wall; this stops what nobody wants to see tried. Never: a refusal because something could not be
//! parsed or is unknown.

mod commands;
mod path;
mod rules;
mod script;
mod shells;
mod word;

#[cfg(test)]
mod tests;

use std::path::PathBuf;

/// What the policy says about a command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// It may run in the sandbox.
    Allow,
    /// It is not run, and the model is told why and may work around it (`sudo`, a write outside).
    Deny {
        /// Why, for the model.
        reason: String,
    },
    /// It is not run and ends the pass as *blocked*.
    Refuse {
        /// The rule, short and stable (`recursive-removal`, `raw-device`, `shutdown`, `fork-bomb`, `remote-script`, `push`).
        rule: &'static str,
        /// The command that met it and why.
        reason: String,
    },
}

/// Where a command line would run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyContext {
    /// The home directory of the user, absolute.
    pub home: PathBuf,
    /// The work directory, absolute; the command starts there.
    pub work_dir: PathBuf,
    /// Directories outside the work directory that may be written besides `/tmp` (private caches).
    pub writable: Vec<PathBuf>,
}

/// Judges a bash command line.
///
/// What does not parse is judged as far as it does. A refusal goes before a denial.
pub fn judge(script: &str, context: &PolicyContext) -> Decision {
    let mut judge = script::Judge::new(context);
    judge.script(script, &script::Flow::default());
    judge.decision()
}
