//! Every outcome with its exit code, and which of them wins.

use iudex_core::{GateKind, Limit, Outcome, PassEnd, Ruling, Validation};
use iudex_testkit::scripted::{Answer, FakeWorkspace, OrderStart, Restore, Step};

use crate::harness::{Played, Scene, busy};

fn stuck() -> PassEnd {
    PassEnd::Stuck { why: "read a.txt three times".to_owned() }
}

fn blocked() -> PassEnd {
    PassEnd::Blocked { why: "rm -rf /".to_owned() }
}

fn dead_model() -> PassEnd {
    PassEnd::ModelUnavailable { why: "500 six times".to_owned() }
}

fn assert_ends(played: &Played, word: &str, exit_code: u8) {
    assert_eq!((played.word(), played.outcome().exit_code()), (word, exit_code), "{:?}", played.outcome());
}

#[tokio::test(start_paused = true)]
async fn accepted_is_done_and_says_where_it_was_checked() {
    let played = Scene::new(busy(1)).check([Answer::Accept]).play().await;
    assert_ends(&played, "done (checked in place only)", 0);
    assert_eq!(played.report().passes, 1);
    assert!(matches!(played.report().last_ruling, Some((GateKind::Check, Ruling::Accepted(_)))));
}

#[tokio::test(start_paused = true)]
async fn without_a_gate_done_says_that_nothing_was_validated() {
    let played = Scene::new(busy(1)).play().await;
    assert_ends(&played, "done (unvalidated)", 0);
    assert_eq!(*played.outcome(), Outcome::Done { validation: Validation::Unvalidated });
}

#[tokio::test(start_paused = true)]
async fn a_red_check_with_no_retry_left_is_validation_failed() {
    let played = Scene::new(busy(4)).check(["a", "b", "c", "d"].map(Answer::Rework)).play().await;
    assert_ends(&played, "validation failed", 1);
    assert_eq!((played.report().passes, played.report().retries), (4, 3));
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_asked_also_after_a_stuck_pass_and_may_accept() {
    let played = Scene::new([Step::ends(stuck()).tree(1)]).check([Answer::Accept]).play().await;
    assert_ends(&played, "done (checked in place only)", 0);
}

#[tokio::test(start_paused = true)]
async fn the_gate_is_asked_also_at_the_step_limit_and_may_accept() {
    let step = Step::ends(PassEnd::HitLimit { limit: Limit::Steps }).tree(1);
    let played = Scene::new([step]).check([Answer::Accept]).play().await;
    assert_ends(&played, "done (checked in place only)", 0);
}

#[tokio::test(start_paused = true)]
async fn stuck_with_no_move_left_is_stuck_not_validation_failed() {
    let scene = Scene::new([Step::done(1), Step::ends(stuck()).tree(2)]).check(["a", "b"].map(Answer::Rework));
    let played = scene.limits(|limits| limits.max_retries = 1).play().await;
    assert_ends(&played, "stuck", 3);
    assert_eq!(played.outcome().why().as_deref(), Some("read a.txt three times"));
}

#[tokio::test(start_paused = true)]
async fn a_stuck_pass_followed_by_a_finished_red_one_is_validation_failed() {
    let scene = Scene::new([Step::ends(stuck()).tree(1), Step::done(2)]).check(["a", "b"].map(Answer::Rework));
    let played = scene.limits(|limits| limits.max_retries = 1).play().await;
    assert_ends(&played, "validation failed", 1);
}

#[tokio::test(start_paused = true)]
async fn out_of_steps_with_no_move_left_is_hit_limit() {
    let steps = (1..=4).map(|tree| Step::ends(PassEnd::HitLimit { limit: Limit::Steps }).tree(tree));
    let played = Scene::new(steps).check(["a", "b", "c", "d"].map(Answer::Rework)).play().await;
    assert_ends(&played, "hit limit", 4);
    assert_eq!(played.report().passes, 4, "another move is tried first");
}

#[tokio::test(start_paused = true)]
async fn without_a_gate_stuck_and_limits_are_never_done() {
    let played = Scene::new([Step::ends(stuck()).tree(1)]).play().await;
    assert_ends(&played, "stuck", 3);
    let played = Scene::new([Step::ends(PassEnd::HitLimit { limit: Limit::Steps }).tree(1)]).play().await;
    assert_ends(&played, "hit limit", 4);
}

#[tokio::test(start_paused = true)]
async fn blocked_dead_model_and_abort_skip_the_gates_but_are_pinned() {
    for (end, word, exit_code) in
        [(blocked(), "blocked", 5), (dead_model(), "model unavailable", 7), (PassEnd::Aborted, "aborted", 130)]
    {
        let played = Scene::new([Step::ends(end).tree(7)]).check([]).play().await;
        assert_ends(&played, word, exit_code);
        assert_eq!(played.asked(), [], "{word}");
        assert_eq!(played.report().proposal.as_ref().unwrap().snapshot.raw.as_str(), "tree-7", "{word}");
    }
}

#[tokio::test(start_paused = true)]
async fn blocked_and_dead_model_tell_why() {
    let played = Scene::new([Step::ends(blocked())]).play().await;
    assert_eq!(played.outcome().why().as_deref(), Some("rm -rf /"));
    let played = Scene::new([Step::ends(dead_model())]).play().await;
    assert_eq!(played.outcome().why().as_deref(), Some("500 six times"));
}

#[tokio::test(start_paused = true)]
async fn a_proposal_that_cannot_be_pinned_needs_a_person_and_is_never_accepted() {
    let scene = Scene::new(busy(1)).check([]).workspace(|workspace| workspace.pins([Some("no space left")]));
    let played = scene.play().await;
    assert_ends(&played, "needs you", 6);
    let why = "the proposal could not be pinned: no space left; hint: free some space";
    assert_eq!(played.outcome().why().as_deref(), Some(why));
    assert_eq!((played.asked(), played.count("pinned")), (vec![], 0));
}

#[tokio::test(start_paused = true)]
async fn without_a_gate_too_an_unpinned_proposal_is_not_done() {
    let played = Scene::new(busy(1)).workspace(|workspace| workspace.pins([Some("no space left")])).play().await;
    assert_ends(&played, "needs you", 6);
}

#[tokio::test(start_paused = true)]
async fn precedence_blocked_and_dead_model_over_a_failed_pin() {
    for (end, word, exit_code) in
        [(blocked(), "blocked", 5), (dead_model(), "model unavailable", 7), (PassEnd::Aborted, "aborted", 130)]
    {
        let scene = Scene::new([Step::ends(end).tree(1)]).check([]);
        let played = scene.workspace(|workspace| workspace.pins([Some("no space left")])).play().await;
        assert_ends(&played, word, exit_code);
        let told = "The work of pass 1 could not be pinned: no space left; hint: free some space";
        assert_eq!(played.notices(), [told], "{word}: it must not end as if the work had been saved");
        assert_eq!(played.report().stat, None, "{word}: what the pass did is not known");
    }
}

#[tokio::test(start_paused = true)]
async fn precedence_needs_you_over_how_the_last_pass_ended() {
    for end in [stuck(), PassEnd::HitLimit { limit: Limit::Steps }, PassEnd::HitLimit { limit: Limit::Tokens }] {
        let played = Scene::new([Step::ends(end).tree(1)]).check([Answer::VoidForGood]).play().await;
        assert_ends(&played, "needs you", 6);
        assert_eq!(played.outcome().why().as_deref(), Some("the gate's machine is broken"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_base_that_cannot_be_restored_needs_a_person() {
    let scene = Scene::new([Step::ends(stuck()).tree(1), Step::ends(stuck()).tree(2)]);
    let scene = scene.check(["a", "b"].map(Answer::Rework));
    let played = scene.workspace(|workspace| workspace.restores([Restore::Fails("disk gone")])).play().await;
    assert_ends(&played, "needs you", 6);
    assert_eq!(played.report().retries, 1, "a directive that was never sent is not charged");
    assert_eq!(played.outcome().why().as_deref(), Some("disk gone; hint: free some space"));
}

#[tokio::test(start_paused = true)]
async fn a_difference_that_cannot_be_told_is_unknown_and_never_nothing() {
    let scene = Scene::new([Step::done(1), Step::ends(stuck()).tree(2), Step::done(3)]);
    let scene = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]);
    let played = scene.workspace(FakeWorkspace::no_diff).play().await;
    assert_ends(&played, "done (checked in place only)", 0);
    assert_eq!(played.count("pinned"), 3, "the work is saved, whether or not it can be compared");
    assert_eq!(played.report().stat, None);
    for directive in played.directives() {
        assert!(!directive.contains("No file has changed") && !directive.contains("changed nothing"), "{directive}");
    }
    assert!(played.directives()[1].contains("Tried: attempt 1 ended with files that could not be compared"));
    let told = "What changed could not be told: the object store is gone; hint: free some space";
    assert!(played.notices().iter().all(|notice| notice == told) && !played.notices().is_empty());
}

#[tokio::test(start_paused = true)]
async fn one_acceptance_a_gate_and_all_must_accept() {
    let scene = Scene::new(busy(1)).gate(GateKind::Judge, [Answer::Accept]).check([Answer::Accept]);
    let played = scene.play().await;
    let Outcome::Done { validation: Validation::Accepted { acceptances } } = played.outcome() else {
        panic!("{:?}", played.outcome());
    };
    assert_eq!(acceptances.len(), 2);
    let scene = Scene::new(busy(1)).gate(GateKind::Judge, [Answer::Rework("poor")]).check([Answer::Accept]);
    let played = scene.limits(|limits| limits.max_rounds = 0).play().await;
    assert_ends(&played, "validation failed", 1);
}

#[tokio::test(start_paused = true)]
async fn gates_are_asked_in_the_order_of_their_kinds_and_the_first_no_ends_the_asking() {
    let accept = || [Answer::Accept];
    let scene = Scene::new(busy(2))
        .gate(GateKind::Judge, accept())
        .gate(GateKind::Check, [Answer::Accept, Answer::Accept])
        .gate(GateKind::Score, accept())
        .gate(GateKind::Ratchet, [Answer::Rework("one test is red"), Answer::Accept]);
    let played = scene.play().await;
    let order: Vec<_> = played.asked().iter().map(|asked| (asked.pass.unwrap(), asked.gate)).collect();
    assert_eq!(
        order,
        [
            (1, GateKind::Check),
            (1, GateKind::Ratchet),
            (2, GateKind::Check),
            (2, GateKind::Ratchet),
            (2, GateKind::Score),
            (2, GateKind::Judge),
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn the_agent_is_told_the_gates_and_the_kind_of_its_start() {
    let mut scene = Scene::new(busy(1)).check([Answer::Accept]);
    scene.continues = true;
    let played = scene.play().await;
    assert_eq!(played.stage.orders()[0].start, OrderStart::NextTask);
    let played = Scene::new(busy(1)).check([Answer::Accept]).play().await;
    assert_eq!(played.stage.orders()[0].start, OrderStart::Task);
}

#[tokio::test(start_paused = true)]
async fn the_claim_is_kept_for_the_record_and_is_in_no_directive() {
    let played = Scene::new(busy(2)).check([Answer::Rework("a"), Answer::Accept]).play().await;
    assert_eq!(played.report().claim, "claim of pass 2");
    assert_eq!(played.count("directive_sent"), 1);
    assert!(!played.directives()[0].contains("claim of pass"), "{}", played.directives()[0]);
}

#[tokio::test(start_paused = true)]
async fn the_report_says_what_differs_from_the_base_also_after_a_resample() {
    let scene = Scene::new([Step::ends(stuck()).tree(1), Step::ends(stuck()).tree(2), Step::done(3)]);
    let played = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]).play().await;
    let report = played.report();
    assert_eq!(report.base.as_ref().unwrap().raw.as_str(), "tree-0");
    assert_eq!(report.proposal.as_ref().unwrap().snapshot.raw.as_str(), "tree-3");
    assert_eq!(report.stat.as_ref().unwrap().files[0].path, "file-of-tree-3");
}

#[test]
fn done_without_an_acceptance_never_reads_as_a_bare_done() {
    let outcome = Outcome::Done { validation: Validation::Accepted { acceptances: Vec::new() } };
    assert_eq!(outcome.word(), "done (unvalidated)");
}
