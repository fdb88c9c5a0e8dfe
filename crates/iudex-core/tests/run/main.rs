//! The loop with scripted agents and gates: every outcome, order of rulings, budget, void, move and cancellation.
#![expect(clippy::unwrap_used, clippy::expect_used, reason = "a test stops where something is missing")]

mod baselines;
mod budgets;
mod cancel;
mod harness;
mod invariants;
mod moves;
mod orders;
mod outcomes;
mod properties;
mod voids;
