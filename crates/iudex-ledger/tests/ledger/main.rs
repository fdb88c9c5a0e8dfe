//! The ledger against real files and real processes.

mod events;
mod files;
mod processes;
mod reading;
mod recording;
mod secrets;
