//! Whole-program tests: one or two a command, each in a home and a project of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, missing_docs)]

#[path = "../common/mod.rs"]
mod common;

mod history;
mod models;
mod project;
mod run;
mod safety;
mod signals;
mod words;
