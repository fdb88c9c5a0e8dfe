//! Cancelled at every await: aborted, and the work is saved first.

use iudex_core::{Event, GateKind, Outcome, PassEnd};
use iudex_testkit::scripted::{Answer, Restore, Step};

use crate::harness::{Played, Scene, busy, seconds};

/// A run that waits for everything that there is to wait for: a void baseline and its pause, a red check, a void check,
/// the same failure twice more, the base restored, two gates.
fn rich() -> Scene {
    let check = [Answer::Rework("a"), Answer::Void, Answer::Rework("a"), Answer::Rework("a"), Answer::Accept];
    Scene::new(busy(4))
        .gate_with_baseline(GateKind::Check, [Answer::Void, Answer::Rework("red")], check)
        .gate(GateKind::Judge, [Answer::Accept])
}

/// Every pass that began was ended and pinned.
fn assert_saved(played: &Played) {
    let count = |wanted: fn(&Event) -> bool| played.events.iter().filter(|event| wanted(event)).count();
    let started = count(|event| matches!(event, Event::PassStarted { .. }));
    let pinned = count(|event| matches!(event, Event::Pinned { .. }));
    assert_eq!(started, pinned, "a pass was not pinned");
}

#[tokio::test(start_paused = true)]
async fn cancel_at_every_await_aborts_after_saving() {
    let whole = rich().play().await;
    assert_eq!(whole.word(), "done (checked in place only)");
    let awaits = whole.stage.awaits();
    for what in ["base", "baseline", "pause", "pass", "pin", "diff", "gate", "restore"] {
        assert!(awaits.iter().any(|other| other == what), "the run never waits for {what}: {awaits:?}");
    }

    for number in 1..=awaits.len() {
        let scene = rich();
        scene.stage.cancel_at(number);
        let played = scene.play().await;
        let place = format!("await {number}, {}", awaits[number - 1]);
        if number == awaits.len() {
            // Every gate has accepted; only the size of the difference is still asked for.
            assert_eq!((played.word(), awaits[number - 1].as_str()), ("done (checked in place only)", "diff"));
        } else {
            assert_eq!(*played.outcome(), Outcome::Aborted, "{place}");
            assert_eq!(played.outcome().exit_code(), 130);
        }
        assert_saved(&played);
        assert_eq!(played.stage.awaits()[..number], awaits[..number], "{place}: another run");
        let rest = &played.stage.awaits()[number..];
        assert!(
            rest.iter().all(|what| what == "pin" || what == "diff"),
            "{place}: after the cancellation it went on with {rest:?}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn cancel_without_a_gate_is_aborted_and_not_done() {
    let awaits = Scene::new(busy(1)).play().await.stage.awaits();
    assert_eq!(awaits, ["base", "pass", "pin", "diff", "diff"]);
    for number in 1..awaits.len() {
        let scene = Scene::new(busy(1));
        scene.stage.cancel_at(number);
        let played = scene.play().await;
        assert_eq!(*played.outcome(), Outcome::Aborted, "await {number}");
        assert_saved(&played);
    }
}

#[tokio::test(start_paused = true)]
async fn aborted_wins_over_blocked_and_over_a_failed_pin() {
    let scene = Scene::new([Step::ends(PassEnd::Blocked { why: "rm -rf /".to_owned() }).tree(1)]).check([]);
    scene.stage.cancel_at(4); // base, baseline, pass, pin
    assert_eq!(*scene.play().await.outcome(), Outcome::Aborted);
    let scene = Scene::new(busy(1)).check([]).workspace(|workspace| workspace.pins([Some("no space left")]));
    scene.stage.cancel_at(4);
    assert_eq!(*scene.play().await.outcome(), Outcome::Aborted);
}

/// Plays with a cancellation after ten seconds.
async fn cancelled_after_ten_seconds(scene: Scene) -> Played {
    let cancel = scene.stage.cancel().clone();
    let (played, ()) = tokio::join!(scene.play(), async {
        tokio::time::sleep(seconds(10)).await;
        cancel.cancel();
    });
    assert_eq!(*played.outcome(), Outcome::Aborted);
    assert_eq!(played.took, seconds(10));
    assert_saved(&played);
    played
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_hangs_is_left_and_its_work_is_pinned() {
    let played = cancelled_after_ten_seconds(Scene::new([Step::hangs(5).tokens(80)]).check([])).await;
    assert_eq!(played.report().proposal.as_ref().unwrap().snapshot.raw.as_str(), "tree-5");
    assert_eq!(played.report().spent.usage.total().0, 80);
    assert_eq!(played.asked(), []);
}

#[tokio::test(start_paused = true)]
async fn a_gate_that_hangs_is_left() {
    let played = cancelled_after_ten_seconds(Scene::new(busy(1)).check([Answer::Hang])).await;
    assert_eq!((played.asked().len(), played.report().passes), (1, 1));
    assert_eq!(played.report().last_ruling, None, "it gave no ruling");
}

#[tokio::test(start_paused = true)]
async fn a_baseline_that_hangs_is_left_before_any_pass() {
    let scene = Scene::new([]).gate_with_baseline(GateKind::Check, [Answer::Hang], []);
    let played = cancelled_after_ten_seconds(scene).await;
    assert_eq!((played.report().passes, played.stage.orders()), (0, vec![]));
    assert!(played.report().base.is_some());
}

#[tokio::test(start_paused = true)]
async fn a_restore_is_ended_before_the_run_is_and_nothing_is_charged_for_it() {
    let stuck = |tree| Step::ends(PassEnd::Stuck { why: "repeats".to_owned() }).tree(tree);
    let scene = Scene::new([stuck(1), stuck(2)]).check(["a", "b"].map(Answer::Rework));
    let scene = scene.workspace(|workspace| workspace.restores([Restore::Takes(seconds(30))]));
    let cancel = scene.stage.cancel().clone();
    let (played, ()) = tokio::join!(scene.play(), async {
        tokio::time::sleep(seconds(10)).await;
        cancel.cancel();
    });
    assert_eq!(*played.outcome(), Outcome::Aborted);
    assert_eq!(played.took, seconds(30), "the restore would have gone on writing after the end of the run");
    assert_eq!((played.report().passes, played.report().retries), (2, 1));
    assert_saved(&played);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_is_cancelled_before_it_begins_does_nothing() {
    let scene = rich();
    scene.stage.cancel().cancel();
    let played = scene.play().await;
    assert_eq!(*played.outcome(), Outcome::Aborted);
    assert_eq!(played.stage.awaits(), Vec::<String>::new());
    assert_eq!((played.report().base.clone(), played.report().passes), (None, 0));
}
