//! Sending findings back: the budget is charged, the controller chooses, the directive is written.
//!
//! Never: a directive that is not charged, or a charge without a directive.

use std::path::PathBuf;

use super::{NextPass, Run, Start, outcome_of_end};
use crate::controller::Move;
use crate::directive::{Directive, DirectiveFacts};
use crate::event::Event;
use crate::outcome::Outcome;
use crate::proposal::Proposal;
use crate::ruling::Rework;
use crate::traits::{GateKind, PassEnd, Restored};
use crate::units::PassNumber;

impl Run<'_> {
    /// Charges the budget and turns a ruling of rework into the next pass, or into the outcome when there is none. What can end
    /// the run comes before the charge: a charge is a directive that is sent, and a pass follows it.
    pub(super) async fn send_back(
        &mut self,
        gate: GateKind,
        rework: &Rework,
        unchanged: bool,
        proposal: &Proposal,
        end: &PassEnd,
    ) -> Result<NextPass, Outcome> {
        if let Some(limit) = self.spent_limit(end) {
            return Err(Outcome::HitLimit { limit });
        }
        if !self.may_send_back(gate) {
            return Err(outcome_of_end(end).unwrap_or(Outcome::ValidationFailed));
        }

        let changed = self.changed_since_last(proposal).await;
        self.tried.push(account_of_pass(proposal.pass, end, changed.as_deref()));
        let same_as_last = self.controller.is_same_failure(&rework.fingerprint);
        let chosen = self.controller.choose(&rework.fingerprint, end, unchanged);
        let chosen = match chosen {
            Move::Resample => self.resample().await?,
            other => other,
        };
        if self.setup.cancel.is_cancelled() {
            return Err(Outcome::Aborted);
        }
        if let Some(limit) = self.exhausted() {
            return Err(Outcome::HitLimit { limit });
        }
        self.charge(gate);
        self.last_ruled = if chosen == Move::Resample { self.base.clone() } else { Some(proposal.snapshot.clone()) };

        let tried: &[String] = if chosen == Move::Continue { &[] } else { &self.tried };
        let directive = Directive::write(&DirectiveFacts {
            gate,
            rework,
            same_as_last,
            changed: changed.as_deref(),
            unchanged,
            from_base: chosen == Move::Resample,
            tried,
            max_tokens: self.setup.directive_tokens,
        });
        self.emit(Event::DirectiveSent {
            directive: directive.as_str().to_owned(),
            chosen,
            retries: self.retries,
            rounds: self.rounds,
        });
        let start = if chosen == Move::Continue { Start::Continue(directive) } else { Start::Fresh(directive) };
        Ok(NextPass { start, by: Some(chosen) })
    }

    /// Goes back to the base; where somebody else's change is in the way the files stay and the move becomes fresh.
    async fn resample(&mut self) -> Result<Move, Outcome> {
        if self.setup.cancel.is_cancelled() {
            return Err(Outcome::Aborted);
        }
        // Not cancellable: a restore that is left goes on writing when the lock of the directory is gone.
        let restored = self.setup.workspace.restore_base().await;
        let (chosen, text) = match restored {
            Ok(Restored::Done { kept }) if kept.is_empty() => return Ok(Move::Resample),
            Ok(Restored::Done { kept }) => (Move::Resample, format!("Kept, changed by somebody else: {}", join(&kept))),
            Ok(Restored::InTheWay { paths }) => (
                Move::Fresh,
                format!("The files stay as they are: somebody else changed {} during the run.", join(&paths)),
            ),
            Err(error) => return Err(Outcome::NeedsYou { why: error.with_hint() }),
        };
        self.emit(Event::Notice { text });
        Ok(chosen)
    }

    pub(super) fn may_send_back(&self, gate: GateKind) -> bool {
        if gate.is_paid() {
            self.rounds < self.setup.limits.max_rounds
        } else {
            self.retries < self.setup.limits.max_retries
        }
    }

    /// A directive is a charge. Retries start anew after a round, rounds never.
    fn charge(&mut self, gate: GateKind) {
        if gate.is_paid() {
            self.rounds += 1;
            self.retries = 0;
        } else {
            self.retries += 1;
        }
    }

    /// The files that changed since the last ruling; `None` when that is not known.
    async fn changed_since_last(&mut self, proposal: &Proposal) -> Option<Vec<String>> {
        let last = self.last_ruled.clone()?;
        let stat = self.difference(&last, &proposal.snapshot).await?;
        let mut changed: Vec<String> = stat.files.into_iter().map(|file| file.path).collect();
        if last.ignored != proposal.snapshot.ignored {
            changed.push("ignored files".to_owned());
        }
        Some(changed)
    }
}

/// One line about a pass for a conversation that does not know it.
fn account_of_pass(pass: PassNumber, end: &PassEnd, changed: Option<&[String]>) -> String {
    let did = match changed {
        None => "ended with files that could not be compared".to_owned(),
        Some([]) => "changed nothing".to_owned(),
        Some(few) if few.len() <= 3 => format!("changed {}", few.join(", ")),
        Some(many) => format!("changed {} and {} more files", many[0], many.len() - 1),
    };
    let ended = match end {
        PassEnd::Stuck { why } => format!(", then got stuck: {why}"),
        PassEnd::HitLimit { limit } => format!(", then ran out of {limit}"),
        _ => String::new(),
    };
    format!("attempt {pass} {did}{ended}; not accepted.")
}

fn join(paths: &[PathBuf]) -> String {
    paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(", ")
}
