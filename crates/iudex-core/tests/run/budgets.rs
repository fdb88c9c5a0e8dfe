//! Retries and rounds; tokens, money and time that end in the middle.

use iudex_core::{GateKind, Limit, Outcome, PassEnd, Tokens};
use iudex_testkit::scripted::{Answer, Restore, Step};

use crate::harness::{Scene, busy, dollars, seconds};

fn hit(limit: Limit) -> Outcome {
    Outcome::HitLimit { limit }
}

fn stuck() -> PassEnd {
    PassEnd::Stuck { why: "repeats".to_owned() }
}

#[tokio::test(start_paused = true)]
async fn time_that_ends_in_the_middle_of_a_pass_lets_the_check_speak_once() {
    for (answer, word) in [
        (Answer::Accept, "done (checked in place only)"),
        (Answer::Rework("red"), "hit limit"),
        (Answer::Void, "needs you"),
    ] {
        let scene = Scene::new([Step::hangs(1)]).check([answer.clone()]);
        let played = scene.limits(|limits| limits.time = Some(seconds(60))).play().await;
        assert_eq!(played.word(), word, "{answer:?}");
        assert_eq!(played.took, seconds(60), "{answer:?}");
        let asked = played.asked();
        assert_eq!(asked.len(), 1, "{answer:?}");
        assert!(asked[0].last_call && asked[0].tree == 1, "{asked:?}");
        assert!(played.report().asked_after_budget);
        assert_eq!(played.notices(), ["The budget is spent; the check is asked once more."]);
    }
}

#[tokio::test(start_paused = true)]
async fn a_pass_that_is_dropped_by_time_is_reported_with_what_it_used() {
    let scene = Scene::new([Step::done(1).tokens(100), Step::hangs(2).tokens(700)]);
    let scene = scene.check(["a", "b"].map(Answer::Rework));
    let played = scene.limits(|limits| limits.time = Some(seconds(60))).play().await;
    let ended = played.events.iter().rev().find_map(|event| match event {
        iudex_core::Event::PassEnded { report, .. } => Some(report.clone()),
        _ => None,
    });
    let ended = ended.unwrap();
    assert_eq!(ended.end, PassEnd::HitLimit { limit: Limit::Time });
    assert_eq!((ended.usage.prompt, ended.steps), (Tokens(700), 1));
    assert_eq!(played.report().spent.usage.prompt, Tokens(800));
    assert_eq!(*played.outcome(), hit(Limit::Time));
}

#[tokio::test(start_paused = true)]
async fn tokens_that_end_in_the_middle_of_a_pass_let_the_check_speak_once() {
    for end in [PassEnd::HitLimit { limit: Limit::Tokens }, PassEnd::Finished, stuck()] {
        for (answer, outcome) in [(Answer::Accept, None), (Answer::Rework("red"), Some(hit(Limit::Tokens)))] {
            let scene = Scene::new([Step::ends(end.clone()).tree(1).tokens(1000)]).check([answer]);
            let played = scene.limits(|limits| limits.tokens = Some(Tokens(1000))).play().await;
            match outcome {
                None => assert_eq!(played.word(), "done (checked in place only)"),
                Some(outcome) => assert_eq!(*played.outcome(), outcome),
            }
            assert_eq!(played.asked().iter().map(|asked| asked.last_call).collect::<Vec<_>>(), [true]);
            assert_eq!(played.count("directive_sent"), 0);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn one_token_below_the_limit_goes_on() {
    let steps = [Step::done(1).tokens(999), Step::done(2).tokens(1)];
    let scene = Scene::new(steps).check([Answer::Rework("red"), Answer::Accept]);
    let played = scene.limits(|limits| limits.tokens = Some(Tokens(1000))).play().await;
    assert_eq!(played.word(), "done (checked in place only)");
    assert_eq!(played.asked().iter().map(|asked| asked.last_call).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn money_ends_the_run_where_its_price_is_known() {
    let scene = Scene::new([Step::done(1).cost(500_000), Step::done(2).cost(500_000)]);
    let scene = scene.check(["a", "b"].map(Answer::Rework));
    let played = scene.limits(|limits| limits.cost = Some(dollars(1_000_000))).play().await;
    assert_eq!(*played.outcome(), hit(Limit::Cost));
    assert_eq!(played.report().passes, 2);
    assert_eq!(played.report().spent.cost, Some(dollars(1_000_000)));
}

#[tokio::test(start_paused = true)]
async fn unknown_cost_is_unknown_and_never_zero() {
    let scene = Scene::new([Step::done(1).cost(5), Step::done(2)]).check([Answer::Rework("a"), Answer::Accept]);
    let played = scene.play().await;
    assert_eq!(played.report().spent.cost, None);
    assert_eq!(played.report().spent.usage.calls, 2);
}

#[tokio::test(start_paused = true)]
async fn paid_gates_are_not_asked_after_the_budget() {
    for kind in [GateKind::Score, GateKind::Judge] {
        let scene = Scene::new([Step::done(1).tokens(1000)]).check([Answer::Accept]).gate(kind, []);
        let played = scene.limits(|limits| limits.tokens = Some(Tokens(1000))).play().await;
        assert_eq!(*played.outcome(), hit(Limit::Tokens), "accepted by the check alone");
        assert_eq!(played.asked().iter().map(|asked| asked.gate).collect::<Vec<_>>(), [GateKind::Check]);
        assert!(played.notices().last().unwrap().ends_with("is not asked."), "{:?}", played.notices());
    }
}

#[tokio::test(start_paused = true)]
async fn a_paid_gate_alone_is_not_asked_after_the_budget_and_nothing_claims_that_it_was() {
    let scene = Scene::new([Step::done(1).tokens(1000)]).gate(GateKind::Judge, []);
    let played = scene.limits(|limits| limits.tokens = Some(Tokens(1000))).play().await;
    assert_eq!(*played.outcome(), hit(Limit::Tokens));
    assert!(!played.report().asked_after_budget);
}

#[tokio::test(start_paused = true)]
async fn a_budget_that_ends_during_the_check_keeps_the_judge_from_being_asked() {
    let slow = Answer::After(seconds(90), Box::new(Answer::Accept));
    let scene = Scene::new(busy(1)).check([slow]).gate(GateKind::Judge, []);
    let played = scene.limits(|limits| limits.time = Some(seconds(60))).play().await;
    assert_eq!(*played.outcome(), hit(Limit::Time));
    assert!(!played.asked()[0].last_call);
}

#[tokio::test(start_paused = true)]
async fn a_gate_knows_the_time_that_is_left_of_the_run_at_every_asking_and_at_the_baseline() {
    let baseline = [Answer::After(seconds(10), Box::new(Answer::Rework("red")))];
    let slow = Answer::After(seconds(20), Box::new(Answer::Rework("a")));
    let scene = || {
        let steps = [Step::done(1).takes(seconds(5)), Step::done(2).takes(seconds(60))];
        let check = [slow.clone(), Answer::Accept];
        Scene::new(steps).gate_with_baseline(GateKind::Check, baseline.clone(), check)
    };
    let played = scene().limits(|limits| limits.time = Some(seconds(60))).play().await;
    let left: Vec<_> = played.stage.asked().iter().map(|asked| (asked.time_left, asked.last_call)).collect();
    assert_eq!(left, [(Some(seconds(60)), false), (Some(seconds(45)), false), (Some(seconds(0)), true)]);
    let played = scene().play().await;
    assert!(played.stage.asked().iter().all(|asked| asked.time_left.is_none()));
}

#[tokio::test(start_paused = true)]
async fn a_check_that_is_void_when_the_budget_ends_is_asked_once_more_and_not_again() {
    let slow = Answer::After(seconds(90), Box::new(Answer::Void));
    let scene = Scene::new(busy(1)).check([slow, Answer::Void]);
    let played = scene.limits(|limits| limits.time = Some(seconds(60))).play().await;
    assert_eq!(played.word(), "needs you");
    assert_eq!(played.asked().iter().map(|asked| asked.last_call).collect::<Vec<_>>(), [false, true]);
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_red_tree_at_the_end_of_the_budget_is_not_gated_again() {
    let scene = Scene::new([Step::nothing().tokens(1000)]).check([]);
    let played = scene.limits(|limits| limits.tokens = Some(Tokens(1000))).play().await;
    assert_eq!(*played.outcome(), hit(Limit::Tokens));
    assert_eq!((played.asked(), played.count("ruling_stands")), (vec![], 1));
}

#[tokio::test(start_paused = true)]
async fn a_baseline_that_uses_up_the_time_leaves_no_pass() {
    let slow = Answer::After(seconds(90), Box::new(Answer::Rework("red")));
    let scene = Scene::new([]).gate_with_baseline(GateKind::Check, [slow], []);
    let played = scene.limits(|limits| limits.time = Some(seconds(60))).play().await;
    assert_eq!(*played.outcome(), hit(Limit::Time));
    assert_eq!((played.report().passes, played.stage.orders()), (0, vec![]));
}

#[tokio::test(start_paused = true)]
async fn time_that_ends_while_the_base_is_restored_sends_no_directive() {
    let scene = Scene::new([Step::ends(stuck()).tree(1), Step::ends(stuck()).tree(2)]);
    let scene = scene.check(["a", "b"].map(Answer::Rework)).limits(|limits| limits.time = Some(seconds(60)));
    let played = scene.workspace(|workspace| workspace.restores([Restore::Takes(seconds(90))])).play().await;
    assert_eq!(*played.outcome(), hit(Limit::Time));
    assert_eq!((played.report().passes, played.report().retries), (2, 1));
}

#[tokio::test(start_paused = true)]
async fn no_retries_means_one_pass() {
    let scene = Scene::new(busy(1)).check([Answer::Rework("red")]);
    let played = scene.limits(|limits| limits.max_retries = 0).play().await;
    assert_eq!((played.word(), played.report().passes), ("validation failed", 1));
}

#[tokio::test(start_paused = true)]
async fn retries_start_anew_after_a_round_and_rounds_never() {
    let check = [
        Answer::Rework("c1"),
        Answer::Accept, // then the judge: round 1
        Answer::Rework("c2"),
        Answer::Accept, // then the judge: no round left
    ];
    let scene = Scene::new(busy(4)).check(check).gate(GateKind::Judge, ["j1", "j2"].map(Answer::Rework));
    let played = scene.limits(|limits| (limits.max_retries, limits.max_rounds) = (1, 1)).play().await;
    assert_eq!(played.word(), "validation failed");
    let charges: Vec<_> = played
        .events
        .iter()
        .filter_map(|event| match event {
            iudex_core::Event::DirectiveSent { retries, rounds, .. } => Some((*retries, *rounds)),
            _ => None,
        })
        .collect();
    assert_eq!(charges, [(1, 0), (0, 1), (1, 1)]);
}

#[tokio::test(start_paused = true)]
async fn a_ratchet_spends_retries_and_a_score_spends_rounds() {
    for (kind, passes) in [(GateKind::Ratchet, 4), (GateKind::Score, 3)] {
        let answers = ["a", "b", "c", "d"].map(Answer::Rework);
        let played = Scene::new(busy(4)).gate(kind, answers).play().await;
        assert_eq!((played.word(), played.report().passes), ("validation failed", passes), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_tree_is_charged_and_a_void_is_not() {
    let steps = [Step::done(1), Step::nothing(), Step::done(2), Step::done(3)];
    let answers = [Answer::Void, Answer::Rework("a"), Answer::Void, Answer::Rework("b"), Answer::Accept];
    let played = Scene::new(steps).check(answers).play().await;
    assert_eq!(played.word(), "done (checked in place only)");
    assert_eq!(played.report().retries, 3);
}
