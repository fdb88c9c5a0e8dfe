//! Chat models: the OpenAI-compatible wire, action formats, repair of what small models write, discovery, prices, and
//! a scripted model.
//!
//! Never: tools. This crate knows their names and schemas, not what they do.

mod action;
mod chat;
mod discover;
mod openai;
mod runaway;
mod script;

pub use action::{ActionFormat, DONE, ToolCall, ToolSpec, Trouble, Turn, instructions, read_turn, response_schema};
pub use chat::{
    AssistantCall, ChatModel, ChatRequest, Completion, Delta, Finish, Message, ModelError, ModelFacts, Price, Timeouts,
    WireTool, estimate_tokens,
};
pub use discover::{Found, USUAL_PORTS, discover, list_models};
pub use openai::locality::is_local_address;
pub use openai::{OpenAiModel, OpenAiSettings};
pub use script::ScriptModel;
