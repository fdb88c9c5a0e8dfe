//! The ledger against real files and real processes.
#![expect(clippy::unwrap_used, reason = "a test stops where something is missing")]

mod events;
mod files;
mod processes;
mod reading;
mod recording;
mod secrets;
