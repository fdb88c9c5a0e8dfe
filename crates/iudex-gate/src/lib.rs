//! Gates that decide about a proposal. In this slice: the check, a command that must pass.
//!
//! Never: loop logic; it rules about one proposal and knows of no other.

mod check;
mod clean;
mod excerpt;
mod fingerprint;
mod missing;
mod runners;
mod scan;
mod words;

#[cfg(test)]
mod recorded;

pub use check::{CheckGate, CheckSettings};
