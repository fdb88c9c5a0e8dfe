//! Agents that do one pass of work. In this slice: the built-in agent over a chat model.
//!
//! Never: a verdict. What an agent says about its own work is a claim.

mod builtin;
mod directories;
mod tools;

pub use builtin::{AgentSettings, BuiltinAgent, ContextShare};
pub use tools::{ToolBox, ToolResult, ToolSettings};
