//! Runs a command: every descendant owned, output bounded, time limited, inside a sandbox, under the safety policy.
//!
//! Never: what a result means. Gates and tools decide that.

mod bubblewrap;
mod capture;
mod command;
mod environment;
mod frames;
mod guard;
mod landlock;
mod launch;
mod lines;
mod policy;
mod run;
mod sandbox;
mod secrets;
mod spool;
mod supervise;

pub use command::{Captured, CommandSpec, End, Finished, OutputSpec, StartError};
pub use environment::{child_environment, child_environment_without, path_outside, withheld};
pub use frames::{python_place, without_foreign_frames};
pub use lines::plain_text;
pub use policy::{Decision, PolicyContext, judge};
pub use run::run;
pub use sandbox::{Backend, Confinement, Unavailable, detect, detect_in, evidence};
pub use secrets::secret_places;
pub use supervise::{set_supervisor, supervise_main};
