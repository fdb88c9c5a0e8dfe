//! The SQLite file that remembers runs, passes, proposals, rulings with their evidence, interventions, token use and cost.
//!
//! Never: a judgement of its own; it gives back what was recorded.

mod error;
mod mask;
mod open;
mod process;
mod read;
mod record;
mod schema;
mod stats;
mod store;
mod write;

pub use error::LedgerError;
pub use record::{RecordedEvent, RunRow, RunStats};
pub use store::{Ledger, NewRun, Retention};
