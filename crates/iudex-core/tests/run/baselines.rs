//! What the gates say before any work, and a proposal that changes nothing.

use iudex_core::{GateKind, Move, Outcome, Ruling};
use iudex_testkit::scripted::{Answer, Step};

use crate::harness::{Scene, busy, seconds};

fn nothing(times: usize) -> Vec<Step> {
    vec![Step::nothing(); times]
}

#[tokio::test(start_paused = true)]
async fn green_before_any_work_and_nothing_changed_is_one_rework_and_then_needs_a_person() {
    let played = Scene::new(nothing(2)).gate_with_baseline(GateKind::Check, [Answer::Accept], []).play().await;
    assert_eq!(played.outcome().exit_code(), 6);
    assert!(played.outcome().why().unwrap().contains("passed before any work"));
    assert_eq!((played.report().passes, played.report().retries), (2, 1));
    assert_eq!(played.asked(), [], "there is nothing to gate");
    assert!(played.directives()[0].contains("Nothing changed"), "{}", played.directives()[0]);
    assert!(matches!(played.report().last_ruling, Some((GateKind::Check, Ruling::Rework(_)))));
}

#[tokio::test(start_paused = true)]
async fn green_before_any_work_and_no_retry_is_never_done() {
    let scene = Scene::new(nothing(1)).gate_with_baseline(GateKind::Check, [Answer::Accept], []);
    let played = scene.limits(|limits| limits.max_retries = 0).play().await;
    assert_eq!((played.word(), played.report().passes), ("needs you", 1));
}

#[tokio::test(start_paused = true)]
async fn green_before_any_work_and_a_change_after_the_rework_can_be_done() {
    let steps = [Step::nothing(), Step::done(1)];
    let scene = Scene::new(steps).gate_with_baseline(GateKind::Check, [Answer::Accept], [Answer::Accept]);
    let played = scene.play().await;
    assert_eq!(played.word(), "done (checked in place only)");
    assert_eq!(played.report().retries, 1);
}

#[tokio::test(start_paused = true)]
async fn a_change_that_was_taken_back_counts_as_nothing_changed() {
    let steps = [Step::nothing(), Step::done(1), Step::done(0)];
    let scene = Scene::new(steps).gate_with_baseline(GateKind::Check, [Answer::Accept], [Answer::Rework("broke it")]);
    let played = scene.play().await;
    assert_eq!((played.word(), played.report().passes), ("needs you", 3));
}

#[tokio::test(start_paused = true)]
async fn without_a_baseline_too_nothing_changed_is_never_done() {
    let played = Scene::new(nothing(2)).gate(GateKind::Check, []).play().await;
    assert_eq!(played.word(), "needs you");
    assert!(!played.outcome().why().unwrap().contains("passed before"), "nobody took a baseline");
}

#[tokio::test(start_paused = true)]
async fn red_before_any_work_and_nothing_changed_is_not_gated_again() {
    let played = Scene::new(nothing(4)).check([]).play().await;
    assert_eq!((played.word(), played.report().passes), ("validation failed", 4));
    assert_eq!(played.asked(), []);
    assert_eq!(played.count("ruling_stands"), 4);
    assert!(played.directives()[0].contains("red before any work"), "{}", played.directives()[0]);
    assert!(played.directives()[0].contains("No file has changed"), "{}", played.directives()[0]);
    let Some((GateKind::Check, Ruling::Rework(rework))) = &played.report().last_ruling else {
        panic!("{:?}", played.report().last_ruling);
    };
    assert_eq!(rework.findings[0].what, "red before any work");
    assert_eq!(rework.findings[0].id.as_ref().unwrap().as_str(), "F1");
    assert_eq!(played.moves(), [Move::Continue, Move::Fresh, Move::Resample]);
}

#[tokio::test(start_paused = true)]
async fn work_in_ignored_files_alone_is_gated_when_the_base_was_sent_back() {
    let scene = Scene::new(nothing(3)).check([Answer::Rework("the value in .env is wrong"), Answer::Accept]);
    let played = scene.workspace(|workspace| workspace.ignored(["one", "one", "two"])).play().await;
    assert_eq!((played.word(), played.report().passes), ("done (checked in place only)", 3));
    assert_eq!((played.asked().len(), played.count("ruling_stands")), (2, 1), "the same state is not gated again");
    assert!(played.directives()[0].contains("ignored files"), "{}", played.directives()[0]);
}

#[tokio::test(start_paused = true)]
async fn ignored_files_alone_are_never_done_when_no_gate_sent_the_base_back() {
    let green = Scene::new(nothing(2)).gate_with_baseline(GateKind::Check, [Answer::Accept], []);
    for scene in [green, Scene::new(nothing(2)).gate(GateKind::Check, [])] {
        let played = scene.workspace(|workspace| workspace.ignored(["product", "product"])).play().await;
        assert_eq!((played.word(), played.asked()), ("needs you", vec![]), "a product of the check is no work");
        assert!(played.directives()[0].contains("only files that git ignores"), "{}", played.directives()[0]);
    }
}

#[tokio::test(start_paused = true)]
async fn one_red_baseline_of_two_is_enough_for_the_ruling_to_stand() {
    let scene = Scene::new([Step::nothing(), Step::done(1)])
        .gate_with_baseline(GateKind::Check, [Answer::Accept], [Answer::Accept])
        .gate_with_baseline(GateKind::Ratchet, [Answer::Rework("test a is red")], [Answer::Accept]);
    let played = scene.play().await;
    assert_eq!(played.word(), "done (checked in place only)");
    assert!(played.directives()[0].contains("test a is red"), "{}", played.directives()[0]);
}

#[tokio::test(start_paused = true)]
async fn a_baseline_that_is_void_three_times_needs_a_person_before_any_pass() {
    let scene = Scene::new([]).gate_with_baseline(GateKind::Check, [Answer::Void, Answer::Void, Answer::Void], []);
    let played = scene.play().await;
    assert_eq!(*played.outcome(), Outcome::NeedsYou { why: "the gate's machine is broken".to_owned() });
    assert_eq!((played.report().passes, played.stage.asked().len()), (0, 3));
    assert_eq!(played.took, seconds(1 + 2));
    assert!(played.report().base.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_void_baseline_that_cannot_change_is_not_asked_again() {
    let played = Scene::new([]).gate_with_baseline(GateKind::Check, [Answer::VoidForGood], []).play().await;
    assert_eq!((played.word(), played.stage.asked().len()), ("needs you", 1));
}

#[tokio::test(start_paused = true)]
async fn a_baseline_that_is_void_and_then_red_lets_the_run_go_on() {
    let baseline = [Answer::Void, Answer::Rework("red")];
    let played = Scene::new(busy(1)).gate_with_baseline(GateKind::Check, baseline, [Answer::Accept]).play().await;
    assert_eq!(played.word(), "done (checked in place only)");
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_can_never_answer_stops_before_the_first_pass() {
    let played = Scene::new([]).gate_with_baseline(GateKind::Check, [Answer::NotStarted], []).play().await;
    let error = played.result.as_ref().unwrap_err();
    assert_eq!(error.message, "the program `tset` is not on PATH");
    assert_eq!(error.hint.as_deref(), Some("install it"));
    assert_eq!(played.stage.orders(), []);
}

#[tokio::test(start_paused = true)]
async fn a_base_that_cannot_be_taken_stops_before_everything() {
    let scene = Scene::new([]).check([]).workspace(|workspace| workspace.no_base("300000 files"));
    let played = scene.play().await;
    let error = played.result.as_ref().unwrap_err();
    assert_eq!((error.message.as_str(), error.hint.as_deref()), ("300000 files", Some("free some space")));
    assert_eq!(played.stage.awaits(), ["base"]);
}

#[tokio::test(start_paused = true)]
async fn every_gate_gives_its_baseline_before_the_first_pass() {
    let scene = Scene::new(busy(1)).gate_with_baseline(GateKind::Judge, [], [Answer::Accept]).gate_with_baseline(
        GateKind::Check,
        [Answer::Rework("red")],
        [Answer::Accept],
    );
    let played = scene.play().await;
    assert_eq!(played.stage.awaits()[..5], ["base", "baseline", "baseline", "pass", "pin"]);
    assert_eq!(played.stage.asked()[0].tree, 0);
}
