//! What was asked for.

use serde::{Deserialize, Serialize};

/// One task: the goal in the user's words and what goes with it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The goal, word for word.
    pub goal: String,
    /// Success criteria, one sentence each.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub criteria: Vec<String>,
    /// Decisions that were made beforehand.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub decisions: Vec<Decision>,
    /// What kind of work it is.
    #[serde(default)]
    pub kind: TaskKind,
}

/// A decision of the plan, with the alternatives that were turned down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decision {
    /// What was decided.
    pub choice: String,
    /// What was rejected, if anything was named.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rejected: Vec<String>,
}

/// The kind of a task.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum TaskKind {
    /// Program code; also what an unknown kind is taken for.
    #[default]
    Code,
    /// Infrastructure definitions.
    Infrastructure,
    /// Research with a written result.
    Research,
    /// Automation of a procedure.
    Automation,
}

impl Task {
    /// A task that is only a goal.
    pub fn from_goal(goal: impl Into<String>) -> Self {
        Self { goal: goal.into(), ..Self::default() }
    }

    /// The task as the agent reads it: the goal, then criteria and decisions as lists.
    pub fn to_prompt(&self) -> String {
        let mut text = self.goal.trim_end().to_owned();
        if !self.criteria.is_empty() {
            text.push_str("\n\nCriteria:");
            for criterion in &self.criteria {
                text.push_str("\n- ");
                text.push_str(criterion);
            }
        }
        if !self.decisions.is_empty() {
            text.push_str("\n\nDecisions, already made:");
            for decision in &self.decisions {
                text.push_str("\n- ");
                text.push_str(&decision.choice);
                if !decision.rejected.is_empty() {
                    text.push_str(" (rejected: ");
                    text.push_str(&decision.rejected.join("; "));
                    text.push(')');
                }
            }
        }
        text
    }
}
