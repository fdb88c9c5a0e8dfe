//! Configuration and trust, and the one command layer behind `run`, session and the rest.
//!
//! A newcomer starts with [`Place`]: a directory opened for work. Never: rendering.

mod choice;
mod clock;
pub mod config;
pub mod doctor;
mod history;
pub mod init;
pub mod nearest;
pub mod paths;
mod place;
mod plan;
mod preflight;
mod recorder;
mod refusal;
mod remembered;
mod sandbox;
mod session;
pub mod setup;
mod task_file;
pub mod trust;
mod workspace;

pub use choice::ModelChoice;
pub use config::{Config, Overrides};
pub use doctor::{Examined, State};
pub use history::History;
pub use iudex_ledger::{RecordedEvent, RunRow, RunStats};
pub use iudex_repo::RestoreReport;
pub use paths::Paths;
pub use place::{Finished, Place};
pub use plan::{Plan, plan};
pub use preflight::OpenRequest;
pub use recorder::{Notice, Sign};
pub use refusal::Refusal;
pub use session::{SLASH_COMMANDS, Session, SlashCommand};
pub use setup::SetupStep;
pub use task_file::{read_task_file, task_from_bytes};
