use super::{Progress, Repeats, StuckDetector};

fn repeats(times: u32, with_changes: bool) -> Repeats {
    Repeats { times, with_changes }
}

#[test]
fn something_new_between_repeats_does_not_let_a_pass_go_on_for_ever() {
    let mut stuck = StuckDetector::new(3);
    let mut steps = "AAABACADAE".chars().map(|what| stuck.step(&what.to_string(), "same", false));
    let ended = steps.position(|progress| matches!(progress, Progress::Stuck(_)));
    assert_eq!(ended, Some(6), "two more after the third");
}

#[test]
fn new_steps_after_an_intervention_are_no_repeats_until_their_third_time() {
    let mut stuck = StuckDetector::new(3);
    let last = "AAABBCCDD".chars().map(|what| stuck.step(&what.to_string(), "same", false)).last();
    assert_eq!(last, Some(Progress::SeenBefore));
}

#[test]
fn a_result_that_differs_in_numbers_is_new_but_counts_as_a_repeat() {
    let mut stuck = StuckDetector::new(3);
    assert_eq!(stuck.step("test", "1 failed", false), Progress::Moving);
    assert_eq!(stuck.step("test", "2 failed", false), Progress::Moving, "it was not seen before");
    assert_eq!(stuck.step("test", "3 failed", false), Progress::Intervene(repeats(3, false)));
}

#[test]
fn ten_in_a_row_with_changes_do_not_say_that_nothing_changed() {
    let mut stuck = StuckDetector::new(3);
    for _ in 0..9 {
        assert_eq!(stuck.step("log", "ok", true), Progress::Moving);
    }
    assert_eq!(stuck.step("log", "ok", true), Progress::Intervene(repeats(10, true)));
    assert!(!repeats(10, true).to_string().contains("no file changed"));
}
