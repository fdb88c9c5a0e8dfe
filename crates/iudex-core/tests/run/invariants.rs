//! What holds for every run, whatever the agent and the gates do. Read from the event stream, as a ledger would.

use std::collections::{HashMap, HashSet};

use iudex_core::{Event, GateKind, Limits, NotStarted, Outcome, Ruling, RunReport, TreeId, Validation};

/// Stops the test where the record of a run breaks one of the rules.
pub fn check(events: &[Event], result: &Result<RunReport, NotStarted>, kinds: &[GateKind], limits: &Limits) {
    assert!(matches!(events[0], Event::RunStarted { .. }), "the first event is {:?}", events[0]);
    let Ok(report) = result else {
        let begun = events.iter().any(|event| matches!(event, Event::PassStarted { .. } | Event::RunEnded { .. }));
        assert!(!begun, "something was started: {events:?}");
        return;
    };
    the_end_is_told_once(events, report);
    passes_are_charged(events, report);
    budgets_hold(events, report, limits);
    gates_are_asked_rightly(events);
    done_means_accepted(events, report, kinds);
    findings_keep_their_names(events);
}

fn the_end_is_told_once(events: &[Event], report: &RunReport) {
    let ends = events.iter().filter(|event| matches!(event, Event::RunEnded { .. })).count();
    assert_eq!(ends, 1);
    let Some(Event::RunEnded { outcome, spent, stat }) = events.last() else {
        panic!("the last event is {:?}", events.last());
    };
    assert_eq!((outcome, spent, stat), (&report.outcome, &report.spent, &report.stat));
}

/// Each pass is started, ended and pinned in turn; each but the first answers one directive.
fn passes_are_charged(events: &[Event], report: &RunReport) {
    let mut number = 0;
    let mut directives = 0;
    let mut open = None;
    let mut sent = None;
    for event in events {
        match event {
            Event::PassStarted { pass, by, .. } => {
                number += 1;
                assert_eq!(pass.0, number, "passes are numbered from 1 without gaps");
                assert_eq!(*by, sent.take(), "a pass follows its directive");
                assert_eq!(open, None);
                open = Some(("started", number));
            }
            Event::PassEnded { pass, .. } => {
                assert_eq!(open, Some(("started", pass.0)));
                open = Some(("ended", pass.0));
            }
            Event::Pinned { proposal, .. } => {
                assert_eq!(open, Some(("ended", proposal.pass.0)));
                open = None;
            }
            Event::GateStarted { pass: Some(pass), .. } => {
                assert_eq!((open, pass.0), (None, number), "only a pinned proposal is examined");
            }
            Event::DirectiveSent { chosen, .. } => {
                assert_eq!(open, None, "only a pinned proposal is sent back");
                directives += 1;
                sent = Some(*chosen);
            }
            _ => {}
        }
    }
    assert_eq!(sent, None, "a directive was charged and no pass followed");
    assert_ne!(open.map(|open| open.0), Some("started"), "a pass never ended");
    assert_eq!(report.passes, number);
    assert_eq!(directives, number.saturating_sub(1), "passes = charged + 1");
}

/// A directive charges one retry or one round. Retries start anew after a round; rounds never.
fn budgets_hold(events: &[Event], report: &RunReport, limits: &Limits) {
    let mut before = (0, 0);
    for event in events {
        let Event::DirectiveSent { retries, rounds, .. } = event else { continue };
        let now = (*retries, *rounds);
        assert!(now == (before.0 + 1, before.1) || now == (0, before.1 + 1), "{before:?} became {now:?}");
        assert!(now.0 <= limits.max_retries && now.1 <= limits.max_rounds, "{now:?} is above {limits:?}");
        before = now;
    }
    assert_eq!((report.retries, report.rounds), before);
}

/// In order of their kinds, each again only while it is void and at most three times, never twice about a state that was
/// sent back, and none after one that did not accept.
fn gates_are_asked_rightly(events: &[Event]) {
    let mut sent_back: HashSet<(TreeId, Option<String>)> = HashSet::new();
    let mut tree = None;
    let mut last: Option<(GateKind, Ruling)> = None;
    let mut voids = 0;
    for event in events {
        match event {
            Event::Pinned { proposal, .. } => {
                tree = Some(proposal.snapshot.state());
                last = None;
                voids = 0;
            }
            Event::GateStarted { gate, pass: Some(_) } => {
                let tree = tree.as_ref().unwrap();
                assert!(!sent_back.contains(tree), "{tree:?} was gated again");
                match &last {
                    None => {}
                    Some((before, Ruling::Accepted(_))) => assert!(gate >= before, "{gate:?} after {before:?}"),
                    Some((before, Ruling::Void(void))) => {
                        assert_eq!(gate, before, "the void gate alone is asked again");
                        assert!(void.may_change && voids < 3, "asked again after {voids} voids, {void:?}");
                    }
                    Some((before, Ruling::Rework(_))) => panic!("{gate:?} was asked after {before:?} said rework"),
                }
            }
            Event::GateRuled { gate, pass: Some(_), ruling, .. } => {
                voids = if matches!(ruling, Ruling::Void(_)) { voids + 1 } else { 0 };
                if matches!(ruling, Ruling::Rework(_)) {
                    sent_back.insert(tree.clone().unwrap());
                }
                last = Some((*gate, ruling.clone()));
            }
            Event::GateRuled { pass: None, ruling: Ruling::Rework(rework), .. } => {
                sent_back.insert((rework.evidence.as_ref().unwrap().tree.clone(), None));
            }
            _ => {}
        }
    }
}

/// Done with gates: the last answer of every one of them is a yes about the last proposal.
fn done_means_accepted(events: &[Event], report: &RunReport, kinds: &[GateKind]) {
    let Outcome::Done { validation } = &report.outcome else { return };
    let Validation::Accepted { acceptances } = validation else {
        assert_eq!(kinds, [], "unvalidated although there are gates");
        return;
    };
    assert_eq!(acceptances.len(), kinds.len());
    assert!(!kinds.is_empty(), "accepted by nobody");
    let proposal = report.proposal.as_ref().unwrap();
    let mut last: HashMap<GateKind, &Event> = HashMap::new();
    for event in events {
        if let Event::GateRuled { gate, .. } = event {
            last.insert(*gate, event);
        }
    }
    for kind in kinds {
        match last.get(kind) {
            Some(Event::GateRuled { pass: Some(pass), ruling: Ruling::Accepted(accepted), .. }) => {
                assert_eq!(*pass, proposal.pass, "{kind:?} accepted another proposal");
                assert_eq!(accepted.evidence().tree, proposal.snapshot.raw);
            }
            other => panic!("done, but the last answer of {kind:?} is {other:?}"),
        }
    }
    let stands = events.iter().rposition(|event| matches!(event, Event::RulingStands { .. }));
    let pinned = events.iter().rposition(|event| matches!(event, Event::Pinned { .. }));
    assert!(stands < pinned, "done although a ruling of rework stands");
}

fn findings_keep_their_names(events: &[Event]) {
    let mut names = HashMap::new();
    let mut texts = HashMap::new();
    for event in events {
        let Event::GateRuled { ruling: Ruling::Rework(rework), .. } = event else { continue };
        for finding in &rework.findings {
            let id = finding.id.clone().expect("a finding has no name");
            assert_eq!(*names.entry(finding.what.clone()).or_insert_with(|| id.clone()), id, "a finding was renamed");
            assert_eq!(*texts.entry(id).or_insert_with(|| finding.what.clone()), finding.what, "a name was used twice");
        }
    }
}
