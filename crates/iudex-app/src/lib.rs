//! Configuration and trust, and the one command layer behind `run`, session and the rest.
//!
//! Never: rendering.

pub mod config;
pub mod nearest;
pub mod paths;
mod refusal;
pub mod trust;

pub use refusal::Refusal;
