//! The built-in agent: one pass is model calls and tools until the model stops calling tools.

use std::rc::Rc;

use async_trait::async_trait;
use iudex_core::{Agent, PassContext, PassOrder, PassReport};
use iudex_model::{ActionFormat, ChatModel};

use crate::tools::ToolBox;

/// How the agent behaves.
#[derive(Debug, Clone)]
pub struct AgentSettings {
    /// The action format; `None` chooses by the model's facts.
    pub format: Option<ActionFormat>,
    /// The third of how many repeats brings an intervention (3); two more end the pass.
    pub stuck_threshold: u32,
    /// The most tokens of an answer; `None`: 4,096 or a quarter of the window.
    pub answer_tokens: Option<u64>,
    /// The sampling temperature.
    pub temperature: f32,
    /// A fixed seed.
    pub seed: Option<u64>,
    /// The project's AGENTS.md, when the project is trusted; used up to a tenth of the window.
    pub project_notes: Option<String>,
}

/// One part of what fills the window, for `/context`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextShare {
    /// `system prompt and tools`, `task and gates`, `conversation`, `free`.
    pub name: String,
    /// Estimated tokens.
    pub tokens: u64,
}

/// The built-in agent.
pub struct BuiltinAgent {}

impl BuiltinAgent {
    /// An agent over a model and tools.
    pub fn new(model: Rc<dyn ChatModel>, tools: ToolBox, settings: AgentSettings) -> Self {
        let _ = (model, tools, settings);
        todo!()
    }

    /// Goes on with another model; the conversation stays.
    pub fn set_model(&mut self, model: Rc<dyn ChatModel>) {
        let _ = model;
        todo!()
    }

    /// What fills the window now.
    pub fn context_shares(&self) -> Vec<ContextShare> {
        todo!()
    }

    /// The conversation, to be kept; every tool call in it has a result.
    pub fn save(&self) -> serde_json::Value {
        todo!()
    }

    /// Takes a kept conversation up again. `false` when it cannot be read.
    pub fn load(&mut self, state: &serde_json::Value) -> bool {
        let _ = state;
        todo!()
    }
}

#[async_trait(?Send)]
impl Agent for BuiltinAgent {
    async fn pass(&mut self, order: PassOrder<'_>, context: &PassContext<'_>) -> PassReport {
        let _ = (order, context);
        todo!()
    }
}
