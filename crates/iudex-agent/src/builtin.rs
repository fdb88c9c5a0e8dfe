//! The built-in agent: one pass is model calls and tools until the model stops calling tools.
//!
//! Read [`pass`] for the pass itself, [`conversation`] for what is kept, [`compaction`] for what is left out of it.
//! Never: a verdict. Whether the work is right is not asked here.

mod compaction;
mod conversation;
mod pass;
mod project;
mod prompt;
mod stuck;
#[cfg(test)]
mod tests;

use std::rc::Rc;

use async_trait::async_trait;
use iudex_core::{Agent, PassContext, PassOrder, PassReport};
use iudex_model::{ActionFormat, ChatModel, ChatRequest, ModelFacts, ToolSpec, estimate_tokens, response_schema};
use serde::{Deserialize, Serialize};

use crate::tools::ToolBox;
use conversation::{Conversation, Item};

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
pub struct BuiltinAgent {
    model: Rc<dyn ChatModel>,
    tools: ToolBox,
    settings: AgentSettings,
    talk: Conversation,
    format: ActionFormat,
    /// Formats that failed with this model.
    failed_formats: Vec<ActionFormat>,
    /// Answers in a row that were meant as calls and were none, over passes.
    format_troubles: u32,
    /// Whether the last opening showed all files of the project whole.
    saw_all_files: bool,
    /// Tokens that fit into prompt and answer; smaller than the model's facts when the server said so.
    window: u64,
    /// What the server counts for one estimated token.
    scale: f64,
    /// The last prompt of this conversation: its estimate, and what the server counted.
    counted: Option<(u64, u64)>,
}

/// The kept form of a conversation.
#[derive(Serialize, Deserialize)]
struct Kept {
    version: u32,
    talk: Conversation,
}

/// The version of [`Kept`].
const KEPT_VERSION: u32 = 1;

impl BuiltinAgent {
    /// An agent over a model and tools.
    pub fn new(model: Rc<dyn ChatModel>, tools: ToolBox, settings: AgentSettings) -> Self {
        let (format, window) = (settings.format.unwrap_or(default_format(model.facts())), model.facts().window);
        Self {
            model,
            tools,
            settings,
            talk: Conversation::default(),
            format,
            failed_formats: Vec::new(),
            format_troubles: 0,
            saw_all_files: false,
            window,
            scale: 1.0,
            counted: None,
        }
    }

    /// The most bytes that one result of a tool may take, for another model with another window.
    pub fn set_result_bytes(&mut self, bytes: usize) {
        self.tools.set_result_bytes(bytes);
    }

    /// Goes on with another model; the conversation stays. The room for results is set apart
    /// ([`Self::set_result_bytes`]).
    pub fn set_model(&mut self, model: Rc<dyn ChatModel>) {
        self.format = self.settings.format.unwrap_or(default_format(model.facts()));
        self.window = model.facts().window;
        self.scale = 1.0;
        self.counted = None;
        self.failed_formats.clear();
        self.format_troubles = 0;
        self.model = model;
    }

    /// What fills the window now.
    pub fn context_shares(&self) -> Vec<ContextShare> {
        let fixed = self.scaled(self.request(&Conversation::default()).estimate_prompt());
        let whole = if self.talk.items.is_empty() { fixed } else { self.estimate(&self.talk) };
        let pinned = [self.talk.task_index(), self.talk.directive_index()].into_iter().flatten();
        let pinned: u64 = pinned.map(|index| self.scaled(estimate_item(&self.talk.items[index]))).sum();
        let pinned = pinned.min(whole.saturating_sub(fixed));
        let share = |name: &str, tokens: u64| ContextShare { name: name.to_owned(), tokens };
        vec![
            share("system prompt and tools", fixed),
            share("task and gates", pinned),
            share("conversation", whole.saturating_sub(fixed + pinned)),
            share("free", self.window.saturating_sub(whole)),
        ]
    }

    /// The conversation, to be kept; every tool call in it has a result.
    pub fn save(&self) -> serde_json::Value {
        let mut talk = self.talk.clone();
        talk.close();
        serde_json::to_value(Kept { version: KEPT_VERSION, talk }).unwrap_or_default()
    }

    /// Takes a kept conversation up again. `false` when it cannot be read.
    pub fn load(&mut self, state: &serde_json::Value) -> bool {
        match Kept::deserialize(state) {
            Ok(kept) if kept.version == KEPT_VERSION => {
                self.counted = None;
                self.talk = kept.talk;
                self.talk.close();
                true
            }
            _ => false,
        }
    }

    /// The request for a conversation, without limits.
    fn request(&self, talk: &Conversation) -> ChatRequest {
        let specs = self.tools.specs();
        ChatRequest {
            messages: talk.messages(self.format, &prompt::system(self.format, specs)),
            tools: prompt::wire_tools(self.format, specs),
            schema: (self.format == ActionFormat::Json).then(|| response_schema(specs)),
            max_tokens: 0,
            temperature: self.settings.temperature,
            seed: None,
        }
    }

    /// The schema of the json format without one tool.
    fn schema_without(&self, tool: &str) -> serde_json::Value {
        let others: Vec<ToolSpec> = self.tools.specs().iter().filter(|spec| spec.name != tool).cloned().collect();
        response_schema(&others)
    }

    /// The prompt tokens of a conversation, as the server is expected to count them.
    fn estimate(&self, talk: &Conversation) -> u64 {
        self.scaled(self.request(talk).estimate_prompt())
    }

    fn scaled(&self, estimate: u64) -> u64 {
        (estimate as f64 * self.scale).ceil() as u64
    }

    /// The most tokens of an answer.
    fn answer_limit(&self) -> u64 {
        const DEFAULT: u64 = 4096;
        self.settings.answer_tokens.unwrap_or(DEFAULT.min(self.window / 4)).clamp(1, (self.window / 2).max(1))
    }

    /// Chooses another format, when one is left that has not failed. Remembered for the rest of the run.
    fn switch_format(&mut self) -> bool {
        self.failed_formats.push(self.format);
        let may_enforce = self.model.facts().enforces_schema;
        let next = [ActionFormat::Text, ActionFormat::Json, ActionFormat::Native]
            .into_iter()
            .filter(|format| *format != ActionFormat::Json || may_enforce)
            .find(|format| !self.failed_formats.contains(format));
        self.format_troubles = 0;
        if let Some(next) = next {
            self.counted = None;
            self.format = next;
        }
        next.is_some()
    }
}

fn estimate_item(item: &Item) -> u64 {
    match item {
        Item::Task(opening) => estimate_tokens(&opening.text()),
        Item::Answer { text, calls } => {
            let calls = calls.iter().map(|call| estimate_tokens(&call.name) + estimate_tokens(&call.arguments));
            estimate_tokens(text) + calls.sum::<u64>()
        }
        Item::Directive { text } | Item::Note { text } | Item::Result { text, .. } => estimate_tokens(text),
    }
}

/// Schema-constrained JSON for small local models where the server can enforce it; else native calls.
fn default_format(facts: &ModelFacts) -> ActionFormat {
    if facts.enforces_schema && facts.is_local && facts.is_small { ActionFormat::Json } else { ActionFormat::Native }
}

#[async_trait(?Send)]
impl Agent for BuiltinAgent {
    async fn pass(&mut self, order: PassOrder<'_>, context: &PassContext<'_>) -> PassReport {
        pass::Pass::new(self, order, context).run().await
    }
}
