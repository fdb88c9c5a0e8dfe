//! Parts for tests: scripted agents and gates, loopback servers.
//!
//! Never: in a release build.

pub mod scripted;
pub mod server;
