//! A gate that could not check.

use iudex_core::{GateKind, Outcome, Ruling};
use iudex_testkit::scripted::Answer;

use crate::harness::{Scene, busy, seconds};

#[tokio::test(start_paused = true)]
async fn void_three_times_in_a_row_needs_a_person() {
    let played = Scene::new(busy(1)).check([Answer::Void, Answer::Void, Answer::Void]).play().await;
    assert_eq!(*played.outcome(), Outcome::NeedsYou { why: "the gate's machine is broken".to_owned() });
    assert_eq!(played.asked().len(), 3);
    assert_eq!((played.report().passes, played.report().retries), (1, 0));
    assert!(matches!(played.report().last_ruling, Some((GateKind::Check, Ruling::Void(_)))));
    assert_eq!(played.took, seconds(1 + 2), "it pauses before asking again");
}

#[tokio::test(start_paused = true)]
async fn void_and_then_accepted_is_done_and_uncharged() {
    let played = Scene::new(busy(1)).check([Answer::Void, Answer::Void, Answer::Accept]).play().await;
    assert_eq!(played.word(), "done (checked in place only)");
    assert_eq!((played.report().passes, played.report().retries, played.count("directive_sent")), (1, 0, 0));
    let asked: Vec<_> = played.asked().iter().map(|asked| (asked.pass, asked.tree)).collect();
    assert_eq!(asked, [(Some(1), 1); 3], "the same gate about the same proposal");
}

#[tokio::test(start_paused = true)]
async fn a_void_that_cannot_change_is_not_asked_again() {
    let played = Scene::new(busy(1)).check([Answer::VoidForGood]).play().await;
    assert_eq!(played.word(), "needs you");
    assert_eq!(played.asked().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn voids_of_different_proposals_are_not_in_a_row() {
    let answers = [Answer::Void, Answer::Void, Answer::Rework("a"), Answer::Void, Answer::Void, Answer::Accept];
    let played = Scene::new(busy(2)).check(answers).play().await;
    assert_eq!(played.word(), "done (checked in place only)");
    assert_eq!(played.report().retries, 1);
}

#[tokio::test(start_paused = true)]
async fn only_the_void_gate_is_asked_again() {
    let scene = Scene::new(busy(1)).check([Answer::Accept]).gate(GateKind::Judge, [Answer::Void, Answer::Accept]);
    let played = scene.play().await;
    let order: Vec<_> = played.asked().iter().map(|asked| asked.gate).collect();
    assert_eq!(order, [GateKind::Check, GateKind::Judge, GateKind::Judge]);
    assert_eq!(played.word(), "done (checked in place only)");
}

#[tokio::test(start_paused = true)]
async fn a_void_judge_is_not_outvoted_by_a_green_check() {
    let scene = Scene::new(busy(1)).check([Answer::Accept]).gate(GateKind::Judge, [Answer::VoidForGood]);
    let played = scene.play().await;
    assert_eq!(played.word(), "needs you");
}

#[tokio::test(start_paused = true)]
async fn two_voids_of_two_gates_are_counted_apart() {
    let scene = Scene::new(busy(1))
        .check([Answer::Void, Answer::Void, Answer::Accept])
        .gate(GateKind::Judge, [Answer::Void, Answer::Void, Answer::Accept]);
    assert_eq!(scene.play().await.word(), "done (checked in place only)");
}
