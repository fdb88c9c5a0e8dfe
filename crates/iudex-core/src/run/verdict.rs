//! Asking the gates: cheap first, the same state never twice, a void gate again.
//!
//! Never: an acceptance that a gate did not give.

use super::{Run, VOID_PAUSE, VOIDS_IN_A_ROW, Verdict, gate_context, unless_cancelled};
use crate::event::Event;
use crate::outcome::Limit;
use crate::proposal::Proposal;
use crate::ruling::{Finding, Fingerprint, Rework, Ruling};
use crate::traits::{GateBrief, PassEnd};
use crate::units::FindingId;

impl Run<'_> {
    /// Asks the gates about a proposal; the first ruling that is not accepted ends the asking.
    pub(super) async fn verdict(&mut self, proposal: &Proposal, end: &PassEnd) -> Verdict {
        if self.setup.gates.is_empty() {
            return Verdict::Unvalidated;
        }
        if let Some((gate, rework)) = self.ruled.get(&proposal.snapshot.state()).cloned() {
            self.emit(Event::RulingStands { pass: proposal.pass });
            self.last_ruling = Some((gate, Ruling::Rework(rework.clone())));
            return Verdict::Rework { gate, rework, unchanged: true };
        }
        // Ignored files may be products of the gate itself. Only a base that a gate sent back shows that they are work.
        if proposal.is_unchanged() && !self.ruled.contains_key(&proposal.base.state()) {
            return self.nothing_changed(proposal);
        }
        let mut acceptances = Vec::new();
        for index in 0..self.setup.gates.len() {
            let gate = self.briefs[index].kind;
            if gate.is_paid()
                && let Some(limit) = self.spent_limit(end)
            {
                let name = &self.briefs[index].name;
                self.emit(Event::Notice { text: format!("The budget is spent; the {name} is not asked.") });
                return Verdict::HitLimit(limit);
            }
            let Some(ruling) = self.ask(index, proposal, end).await else { return Verdict::Aborted };
            self.last_ruling = Some((gate, ruling.clone()));
            match ruling {
                Ruling::Accepted(accepted) => acceptances.push(accepted),
                Ruling::Rework(rework) => {
                    self.ruled.insert(proposal.snapshot.state(), (gate, rework.clone()));
                    return Verdict::Rework { gate, rework, unchanged: false };
                }
                Ruling::Void(void) => return Verdict::NeedsYou(void.reason),
            }
        }
        Verdict::Accepted(acceptances)
    }

    /// Asks one gate, again while it is void and that may change. `None` when cancelled.
    async fn ask(&mut self, index: usize, proposal: &Proposal, end: &PassEnd) -> Option<Ruling> {
        let GateBrief { kind: gate, name, .. } = self.briefs[index].clone();
        let mut voids = 0;
        loop {
            let last_call = self.spent_limit(end).is_some();
            if last_call && !self.asked_after_budget {
                self.asked_after_budget = true;
                self.emit(Event::Notice { text: format!("The budget is spent; the {name} is asked once more.") });
            }
            self.emit(Event::GateStarted { gate, pass: Some(proposal.pass) });
            let started = self.setup.clock.elapsed();
            let context = gate_context(&self.setup, last_call);
            let asked = self.setup.gates[index].examine(proposal, &context);
            let mut ruling = unless_cancelled(self.setup.cancel, asked).await?;
            self.name_findings(&mut ruling);
            let millis = self.millis_since(started);
            self.emit(Event::GateRuled { gate, pass: Some(proposal.pass), ruling: ruling.clone(), millis });
            let Ruling::Void(void) = &ruling else { return Some(ruling) };
            voids += 1;
            if !void.may_change || voids == VOIDS_IN_A_ROW || last_call {
                return Some(ruling);
            }
            unless_cancelled(self.setup.cancel, self.setup.clock.sleep(VOID_PAUSE * voids)).await?;
        }
    }

    /// No gate has sent the base back, and the proposal is the base: nothing was done, and that is never done.
    fn nothing_changed(&mut self, proposal: &Proposal) -> Verdict {
        self.nothing_changed += 1;
        let gate = self.briefs[0].kind;
        let (guards, why) = if self.green_baseline {
            (
                " The check passed before any work, so it cannot show that the task is done.",
                "the check passed before any work, and nothing was changed",
            )
        } else {
            ("", "nothing was changed")
        };
        if self.nothing_changed > 1 || !self.may_send_back(gate) {
            return Verdict::NeedsYou(why.to_owned());
        }
        let differs = if proposal.base.ignored == proposal.snapshot.ignored {
            "no file differs"
        } else {
            "only files that git ignores differ"
        };
        let what =
            format!("Nothing changed: {differs} from the start, so nothing has been done yet.{guards} Do the task.");
        let mut ruling = Ruling::Rework(Rework {
            findings: vec![Finding::new(what)],
            fingerprint: Fingerprint("nothing changed".to_owned()),
            evidence: None,
        });
        self.name_findings(&mut ruling);
        self.last_ruling = Some((gate, ruling.clone()));
        match ruling {
            Ruling::Rework(rework) => Verdict::Rework { gate, rework, unchanged: true },
            Ruling::Accepted(_) | Ruling::Void(_) => Verdict::NeedsYou(why.to_owned()),
        }
    }

    /// Gives every finding a name that stays the same while the finding does.
    pub(super) fn name_findings(&mut self, ruling: &mut Ruling) {
        let Ruling::Rework(rework) = ruling else { return };
        for (position, finding) in rework.findings.iter_mut().enumerate() {
            // The text of a finding holds line numbers and times; the fingerprint does not.
            let key = format!("{} {position}", rework.fingerprint.0);
            let known = self.findings.iter().find(|(other, _)| *other == key).map(|(_, id)| id.clone());
            finding.id = Some(known.unwrap_or_else(|| {
                let id = FindingId::new(format!("F{}", self.findings.len() + 1));
                self.findings.push((key, id.clone()));
                id
            }));
        }
    }

    /// The limit of the whole run that is spent, by the count or by what the pass says.
    pub(super) fn spent_limit(&self, end: &PassEnd) -> Option<Limit> {
        match end {
            PassEnd::HitLimit { limit } if limit.ends_run() => Some(*limit),
            _ => self.exhausted(),
        }
    }
}
