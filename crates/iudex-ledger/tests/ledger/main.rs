//! The ledger against real files and real processes.
#![expect(clippy::unwrap_used, reason = "a test stops where something is missing")]
#![expect(clippy::similar_names, reason = "`state` and `stats` are the words")]

mod events;
mod files;
mod processes;
mod reading;
mod recording;
mod secrets;
