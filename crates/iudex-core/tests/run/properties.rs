//! Random runs. What must hold for every run is in `invariants`, which every played scene goes through.

use std::collections::BTreeMap;

use iudex_core::{Event, GateKind, Limit, Limits, Outcome, PassEnd, Ruling, Tokens};
use iudex_testkit::scripted::{Answer, Restore, Step};
use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use crate::harness::{Played, Scene, dollars, seconds};

/// More passes than any of these budgets allows: (4 + 1) retries for each of (3 + 1) rounds, and one.
const MOST_PASSES: usize = 24;

/// More than every gate can be asked.
const MOST_ANSWERS: usize = 3 * MOST_PASSES;

/// What is generated is so long and then starts again: long enough to be any order, short enough to be read.
const SCRIPT: std::ops::RangeInclusive<usize> = 1..=8;

fn answer() -> impl Strategy<Value = Answer> {
    prop_oneof![
        3 => Just(Answer::Accept),
        4 => select(vec!["a", "b", "c"]).prop_map(Answer::Rework),
        2 => Just(Answer::Void),
        1 => Just(Answer::VoidForGood),
        1 => Just(Answer::After(seconds(400), Box::new(Answer::Accept))),
        1 => Just(Answer::After(seconds(400), Box::new(Answer::Void))),
    ]
}

fn baseline() -> impl Strategy<Value = Vec<Answer>> {
    let ruled = prop_oneof![
        4 => Just(Answer::Rework("red")),
        2 => Just(Answer::Accept),
        1 => Just(Answer::Void),
    ];
    prop_oneof![1 => Just(Vec::new()), 3 => vec(ruled, 3)]
}

fn end() -> impl Strategy<Value = Option<PassEnd>> {
    let why = String::from("why");
    prop_oneof![
        8 => Just(Some(PassEnd::Finished)),
        2 => Just(Some(PassEnd::Stuck { why: why.clone() })),
        2 => Just(Some(PassEnd::HitLimit { limit: Limit::Steps })),
        1 => select(vec![Limit::Tokens, Limit::Cost, Limit::Time]).prop_map(|limit| Some(PassEnd::HitLimit { limit })),
        1 => Just(Some(PassEnd::Blocked { why: why.clone() })),
        1 => Just(Some(PassEnd::ModelUnavailable { why })),
        1 => Just(Some(PassEnd::Aborted)),
        1 => Just(None),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    (end(), option::of(0_u64..6), 0_u64..600, option::of(0_u64..600), 0_u64..300).prop_map(
        |(end, tree, tokens, cost, takes)| {
            let mut step = match (end, tree) {
                (None, tree) => Step::hangs(tree.unwrap_or_default()),
                (Some(end), None) => Step::ends(end),
                (Some(end), Some(tree)) => Step::ends(end).tree(tree),
            };
            if let Some(cost) = cost {
                step = step.cost(cost);
            }
            step.tokens(tokens).takes(seconds(takes))
        },
    )
}

fn restore() -> impl Strategy<Value = Restore> {
    prop_oneof![
        4 => Just(Restore::Keeps(Vec::new())),
        1 => Just(Restore::Keeps(vec!["kept".into()])),
        2 => Just(Restore::InTheWay(vec!["theirs".into()])),
        1 => Just(Restore::Fails("disk gone")),
        1 => Just(Restore::Takes(seconds(500))),
    ]
}

fn pin() -> impl Strategy<Value = Option<&'static str>> {
    prop_oneof![15 => Just(None), 1 => Just(Some("no space left"))]
}

/// Everything that a random run is made of.
#[derive(Debug, Clone)]
struct Plan {
    gates: Vec<(GateKind, Vec<Answer>, Vec<Answer>)>,
    steps: Vec<Step>,
    restores: Vec<Restore>,
    pins: Vec<Option<&'static str>>,
    limits: Limits,
    cancel_at: Option<usize>,
}

impl Plan {
    fn scene(self) -> Scene {
        let mut scene = Scene::new(self.steps.into_iter().cycle().take(MOST_PASSES));
        for (kind, baseline, answers) in self.gates {
            let answers = answers.into_iter().cycle().take(MOST_ANSWERS);
            scene = scene.gate_with_baseline(kind, baseline, answers);
        }
        if let Some(number) = self.cancel_at {
            scene.stage.cancel_at(number);
        }
        scene.limits = self.limits;
        scene.workspace(|workspace| workspace.restores(self.restores).pins(self.pins))
    }
}

fn kinds() -> impl Strategy<Value = Vec<GateKind>> {
    let all = vec![GateKind::Check, GateKind::Ratchet, GateKind::Score, GateKind::Judge];
    subsequence(all, 0..=3).prop_shuffle()
}

prop_compose! {
    fn limits()(
        (retries, rounds) in (0_u32..=4, 0_u32..=3),
        tokens in option::of(0_u64..4000),
        cost in option::of(0_u64..4000),
        time in 0_u64..4000,
    ) -> Limits {
        Limits {
            max_retries: retries,
            max_rounds: rounds,
            tokens: tokens.map(Tokens),
            cost: cost.map(dollars),
            // Always one, since an agent here may hang.
            time: Some(seconds(time)),
            ..Limits::default()
        }
    }
}

prop_compose! {
    fn plan()(
        kinds in kinds(),
        baselines in vec(baseline(), 3),
        answers in vec(vec(answer(), SCRIPT), 3),
        steps in vec(step(), SCRIPT),
        restores in vec(restore(), SCRIPT),
        pins in vec(pin(), SCRIPT),
        limits in limits(),
        cancel_at in option::weighted(0.3, 1_usize..60),
    ) -> Plan {
        let gates = kinds.into_iter().zip(baselines).zip(answers);
        let gates = gates.map(|((kind, baseline), answers)| (kind, baseline, answers)).collect();
        Plan { gates, steps, restores, pins, limits, cancel_at }
    }
}

/// Plays a scene on a clock that stands still until everybody waits; a run that never ends fails there.
fn play(plan: Plan) -> Played {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build().unwrap();
    runtime.block_on(plan.scene().play())
}

/// The last verdict: the last ruling about a proposal, or the one that stood after it.
fn last_verdict(played: &Played) -> Option<&'static str> {
    played.events.iter().rev().find_map(|event| match event {
        Event::GateRuled { pass: Some(_), ruling: Ruling::Accepted(_), .. } => Some("accepted"),
        Event::GateRuled { pass: Some(_), ruling: Ruling::Void(_), .. } => Some("void"),
        Event::GateRuled { pass: Some(_), ruling: Ruling::Rework(_), .. } | Event::RulingStands { .. } => {
            Some("rework")
        }
        _ => None,
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 600, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn no_run_whose_last_verdict_is_rework_or_void_ends_as_done(plan in plan()) {
        let played = play(plan);
        if matches!(played.outcome(), Outcome::Done { .. }) {
            prop_assert!(matches!(last_verdict(&played), None | Some("accepted")), "{:?}", played.events);
            let gated = played.events.iter().any(|event| matches!(event, Event::GateStarted { .. }));
            prop_assert!(!gated || last_verdict(&played).is_some());
        }
    }

    #[test]
    fn what_is_charged_is_what_was_sent_and_every_pass_but_the_first_is_paid(plan in plan()) {
        let played = play(plan);
        let sent = u32::try_from(played.count("directive_sent")).unwrap();
        let passes = played.report().passes;
        prop_assert_eq!(sent, passes.saturating_sub(1));
        prop_assert_eq!(played.stage.orders().len(), passes as usize);
    }

    #[test]
    fn a_cancelled_run_is_aborted_unless_it_was_over(plan in plan()) {
        let played = play(plan);
        let cancelled = played.stage.cancel().is_cancelled();
        if *played.outcome() == Outcome::Aborted {
            let by_agent = played.events.iter().any(|event| {
                matches!(event, Event::PassEnded { report, .. } if report.end == PassEnd::Aborted)
            });
            prop_assert!(cancelled || by_agent);
        } else if cancelled {
            // Only at the very last await, where nothing is decided any more.
            let awaits = played.stage.awaits();
            prop_assert_eq!(awaits.last().map(String::as_str), Some("diff"));
        }
    }
}

#[test]
fn random_runs_reach_every_outcome() {
    let mut runner = TestRunner::deterministic();
    let mut words: BTreeMap<&str, u32> = BTreeMap::new();
    for _ in 0..600 {
        *words.entry(play(plan().new_tree(&mut runner).unwrap().current()).word()).or_default() += 1;
    }
    for word in [
        "done (checked in place only)",
        "done (unvalidated)",
        "validation failed",
        "stuck",
        "hit limit",
        "blocked",
        "needs you",
        "model unavailable",
        "aborted",
    ] {
        assert!(words.get(word).is_some_and(|times| *times >= 5), "{word} is too rare: {words:?}");
    }
}
