//! Runs a command: every descendant owned, output bounded, time limited, inside a sandbox, under the safety policy.
//!
//! Never: what a result means. Gates and tools decide that.

mod command;
mod environment;
mod policy;
mod sandbox;

pub use command::{Captured, CommandSpec, End, Finished, OutputSpec, StartError, run};
pub use environment::child_environment;
pub use policy::{Decision, PolicyContext, judge};
pub use sandbox::{Backend, Confinement, Unavailable, detect};
