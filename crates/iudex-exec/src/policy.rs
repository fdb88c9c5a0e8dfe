//! The hard refusals, on parsed commands and not on raw text.

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

/// Judges a bash command line.
pub fn judge(script: &str) -> Decision {
    let _ = script;
    todo!()
}
