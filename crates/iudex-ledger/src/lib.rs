//! The SQLite file that remembers runs, passes, proposals, rulings with their evidence, interventions, token use and cost.
//!
//! Never: a judgement of its own; it gives back what was recorded.

mod record;
mod store;

pub use record::{RecordedEvent, RunRow, RunStats};
pub use store::{Ledger, LedgerError, NewRun, Retention};
