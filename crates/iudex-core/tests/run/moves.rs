//! Retries change something: what the controller chooses, what the agent then gets, and which files it starts with.

use std::path::PathBuf;

use iudex_core::{Controller, Fingerprint, GateKind, Limit, Move, PassEnd, PromptStrategy, Ruling};
use iudex_testkit::scripted::{Answer, OrderStart, Restore, Step};

use crate::harness::{Scene, busy};

fn stuck(tree: u64) -> Step {
    Step::ends(PassEnd::Stuck { why: "read a.txt three times".to_owned() }).tree(tree)
}

#[tokio::test(start_paused = true)]
async fn a_first_failure_continues_the_conversation() {
    let played = Scene::new(busy(3)).check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]).play().await;
    assert_eq!(played.moves(), [Move::Continue, Move::Continue]);
    let orders = played.stage.orders();
    assert!(matches!(&orders[1].start, OrderStart::Continue(text) if text.contains("\na\n")), "{:?}", orders[1]);
    assert_eq!(orders.iter().map(|order| order.tree).collect::<Vec<_>>(), [0, 1, 2]);
    assert!(orders.iter().all(|order| order.strategy == PromptStrategy::Plain));
}

#[tokio::test(start_paused = true)]
async fn the_same_failure_again_starts_fresh_with_the_other_strategy_and_then_from_the_base() {
    let answers = [Answer::Rework("a"), Answer::Rework("a"), Answer::Rework("a"), Answer::Accept];
    let played = Scene::new(busy(4)).check(answers).play().await;
    assert_eq!(played.moves(), [Move::Continue, Move::Fresh, Move::Resample]);
    let orders = played.stage.orders();
    assert_eq!(orders.iter().map(|order| order.tree).collect::<Vec<_>>(), [0, 1, 2, 0]);
    let strategies: Vec<_> = orders.iter().map(|order| order.strategy).collect();
    let (plain, files) = (PromptStrategy::Plain, PromptStrategy::WithFiles);
    assert_eq!(strategies, [plain, plain, files, plain]);
    assert!(matches!(orders[1].start, OrderStart::Continue(_)));
    assert!(matches!(orders[2].start, OrderStart::Fresh(_)));
    assert!(matches!(orders[3].start, OrderStart::Fresh(_)));
}

#[tokio::test(start_paused = true)]
async fn the_other_of_the_two_strategies_is_plain_when_the_run_began_with_files() {
    let mut scene = Scene::new(busy(3)).check([Answer::Rework("a"), Answer::Rework("a"), Answer::Accept]);
    scene.strategy = PromptStrategy::WithFiles;
    let orders = scene.play().await.stage.orders();
    assert_eq!(orders[0].strategy, PromptStrategy::WithFiles);
    assert_eq!(orders[2].strategy, PromptStrategy::Plain);
}

#[tokio::test(start_paused = true)]
async fn another_failure_in_between_starts_the_count_anew() {
    let answers = [Answer::Rework("a"), Answer::Rework("b"), Answer::Rework("a"), Answer::Accept];
    let played = Scene::new(busy(4)).check(answers).play().await;
    assert_eq!(played.moves(), [Move::Continue; 3]);
}

#[tokio::test(start_paused = true)]
async fn a_stuck_pass_is_never_continued_and_a_second_one_goes_back_to_the_base() {
    let answers = [Answer::Rework("a"), Answer::Rework("b"), Answer::Accept];
    let played = Scene::new([stuck(1), stuck(2), Step::done(3)]).check(answers).play().await;
    assert_eq!(played.moves(), [Move::Fresh, Move::Resample]);
    let orders = played.stage.orders();
    assert_eq!(orders.iter().map(|order| order.tree).collect::<Vec<_>>(), [0, 1, 0]);
    assert_eq!(orders[1].strategy, PromptStrategy::WithFiles);
}

#[tokio::test(start_paused = true)]
async fn a_pass_out_of_steps_is_never_continued() {
    let step = Step::ends(PassEnd::HitLimit { limit: Limit::Steps }).tree(1);
    let played = Scene::new([step, Step::done(2)]).check([Answer::Rework("a"), Answer::Accept]).play().await;
    assert_eq!(played.moves(), [Move::Fresh]);
}

#[tokio::test(start_paused = true)]
async fn a_finished_pass_between_two_stuck_ones_breaks_the_row() {
    let answers = ["a", "b", "c"].map(Answer::Rework).into_iter().chain([Answer::Accept]);
    let played = Scene::new([stuck(1), Step::done(2), stuck(3), Step::done(4)]).check(answers).play().await;
    assert_eq!(played.moves(), [Move::Fresh, Move::Continue, Move::Fresh]);
}

#[tokio::test(start_paused = true)]
async fn an_unchanged_tree_is_not_gated_again_and_the_agent_is_told() {
    let steps = [Step::done(1), Step::nothing(), Step::done(2)];
    let played = Scene::new(steps).check([Answer::Rework("a"), Answer::Accept]).play().await;
    assert_eq!(played.asked().iter().map(|asked| asked.pass.unwrap()).collect::<Vec<_>>(), [1, 3]);
    assert_eq!(played.count("ruling_stands"), 1);
    let second = &played.directives()[1];
    assert!(second.contains("No file has changed since then."), "{second}");
    assert!(second.contains("This is the same failure as last time."), "{second}");
    assert_eq!(played.report().retries, 2, "it is charged");
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_comes_back_is_not_gated_again_and_its_own_ruling_stands() {
    let steps = [Step::done(1), Step::done(2), Step::done(1)];
    let scene = Scene::new(steps).check(["about one", "about two"].map(Answer::Rework));
    let played = scene.limits(|limits| limits.max_retries = 2).play().await;
    assert_eq!(played.asked().len(), 2);
    let Some((GateKind::Check, Ruling::Rework(rework))) = &played.report().last_ruling else {
        panic!("{:?}", played.report().last_ruling);
    };
    assert_eq!(rework.findings[0].what, "about one");
}

#[tokio::test(start_paused = true)]
async fn a_tree_that_comes_back_is_not_called_unchanged() {
    let steps = [Step::done(1), Step::done(2), Step::done(1), Step::done(3)];
    let answers = [Answer::Rework("a"), Answer::Rework("b"), Answer::Accept];
    let played = Scene::new(steps).check(answers).play().await;
    let last = &played.directives()[2];
    assert!(last.contains("again as they were in an earlier attempt"), "{last}");
    assert!(!last.contains("No file has changed"), "{last}");
}

#[tokio::test(start_paused = true)]
async fn a_file_of_somebody_else_in_the_way_turns_resample_into_fresh() {
    let scene = Scene::new([stuck(1), stuck(2), Step::done(3)]);
    let scene = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]);
    let in_the_way = Restore::InTheWay(vec![PathBuf::from("notes.md")]);
    let played = scene.workspace(|workspace| workspace.restores([in_the_way])).play().await;
    assert_eq!(played.moves(), [Move::Fresh, Move::Fresh]);
    assert_eq!(played.stage.orders()[2].tree, 2, "the files stay");
    assert!(played.notices()[0].contains("notes.md"), "{:?}", played.notices());
    assert!(!played.directives()[1].contains("as they were at the start"), "{}", played.directives()[1]);
}

#[tokio::test(start_paused = true)]
async fn files_of_somebody_else_that_stay_are_named() {
    let scene = Scene::new([stuck(1), stuck(2), Step::done(3)]);
    let scene = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]);
    let keeps = Restore::Keeps(vec![PathBuf::from("mine.txt"), PathBuf::from("also.txt")]);
    let played = scene.workspace(|workspace| workspace.restores([keeps])).play().await;
    assert_eq!(played.moves(), [Move::Fresh, Move::Resample]);
    assert_eq!(played.notices(), ["Kept, changed by somebody else: mine.txt, also.txt"]);
}

#[tokio::test(start_paused = true)]
async fn a_new_conversation_is_told_what_was_tried_and_a_kept_one_is_not() {
    let scene = Scene::new([Step::done(1), stuck(2), Step::done(3)]);
    let played = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]).play().await;
    let directives = played.directives();
    assert!(!directives[0].contains("Tried:"), "{}", directives[0]);
    assert!(directives[1].contains("Tried: attempt 1 changed file-of-tree-1; not accepted."), "{}", directives[1]);
    assert!(directives[1].contains("then got stuck: read a.txt three times"), "{}", directives[1]);
}

#[tokio::test(start_paused = true)]
async fn after_a_resample_the_agent_is_told_that_its_files_are_gone() {
    let scene = Scene::new([stuck(1), stuck(2), Step::done(3)]);
    let played = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]).play().await;
    assert!(played.directives()[1].contains("The files are back as they were at the start"));
}

#[tokio::test(start_paused = true)]
async fn after_a_resample_changes_are_told_against_the_base() {
    // The third pass makes the state of the second again, which differs from the base that it began with.
    let scene = Scene::new([stuck(1), stuck(2), Step::done(2), Step::done(3)]);
    let played = scene.check([Answer::Rework("a"), Answer::Rework("b"), Answer::Accept]).play().await;
    let third = &played.directives()[2];
    assert!(third.contains("again as they were in an earlier attempt"), "{third}");
}

#[tokio::test(start_paused = true)]
async fn a_directive_holds_the_finding_word_for_word_and_what_to_do() {
    let scene = Scene::new(busy(2)).check([Answer::Rework("`cargo test` exited 101\ntest a FAILED"), Answer::Accept]);
    let directive = scene.play().await.directives().remove(0);
    assert!(directive.contains("`cargo test` exited 101\ntest a FAILED\n"), "{directive}");
    assert!(directive.contains("Changed in between: file-of-tree-1."), "{directive}");
    let end = "Revise the approach, fix the underlying problem, do not change the check, then finish.";
    assert!(directive.ends_with(end), "{directive}");
}

#[tokio::test(start_paused = true)]
async fn a_finding_keeps_its_name_and_a_new_one_gets_the_next() {
    let answers = ["a", "b", "a", "c"].map(Answer::Rework);
    let played = Scene::new(busy(4)).check(answers).play().await;
    let names: Vec<(String, String)> = played
        .events
        .iter()
        .filter_map(|event| match event {
            iudex_core::Event::GateRuled { ruling: Ruling::Rework(rework), .. } => Some(&rework.findings[0]),
            _ => None,
        })
        .map(|finding| (finding.what.clone(), finding.id.as_ref().unwrap().to_string()))
        .collect();
    let names: Vec<(&str, &str)> = names.iter().map(|(what, id)| (what.as_str(), id.as_str())).collect();
    assert_eq!(names, [("red before any work", "F1"), ("a", "F2"), ("b", "F3"), ("a", "F2"), ("c", "F4")]);
}

/// A name, and after each failure and end of a pass the move that follows.
type Case<'a> = (&'a str, Vec<(&'a str, &'a PassEnd, Move)>);

#[test]
fn the_controller_chooses_by_failure_and_end() {
    let finished = PassEnd::Finished;
    let stuck = PassEnd::Stuck { why: String::new() };
    let steps = PassEnd::HitLimit { limit: Limit::Steps };
    let (go_on, fresh, resample) = (Move::Continue, Move::Fresh, Move::Resample);
    let cases: [Case<'_>; 5] = [
        ("always new", vec![("a", &finished, go_on), ("b", &finished, go_on), ("c", &finished, go_on)]),
        (
            "always the same",
            vec![
                ("a", &finished, go_on),
                ("a", &finished, fresh),
                ("a", &finished, resample),
                ("a", &finished, resample),
            ],
        ),
        ("stuck twice", vec![("a", &stuck, fresh), ("b", &stuck, resample), ("c", &finished, go_on)]),
        ("stuck, then steps", vec![("a", &stuck, fresh), ("b", &steps, resample)]),
        ("stuck on the same", vec![("a", &stuck, fresh), ("a", &finished, fresh), ("a", &finished, resample)]),
    ];
    for (name, steps) in cases {
        let mut controller = Controller::new(PromptStrategy::Plain);
        for (failure, end, expected) in steps {
            let before = controller.strategy();
            let chosen = controller.choose(&Fingerprint(failure.to_owned()), end, false);
            assert_eq!(chosen, expected, "{name}: {failure} {end:?}");
            let changed = controller.strategy() != before;
            assert_eq!(changed, chosen != Move::Continue, "{name}: a new conversation opens the other way");
        }
    }
}

#[test]
fn files_that_were_refused_before_are_the_same_failure_whatever_came_in_between() {
    let mut controller = Controller::new(PromptStrategy::WithFiles);
    let mut choose =
        |failure: &str, unchanged| controller.choose(&Fingerprint(failure.to_owned()), &PassEnd::Finished, unchanged);
    assert_eq!(choose("a", false), Move::Continue);
    assert_eq!(choose("b", false), Move::Continue);
    // A change was made and taken back.
    assert_eq!(choose("a", true), Move::Fresh);
    assert_eq!(choose("b", true), Move::Resample);
}
