//! How a pass ends: finished, stuck, at a limit, blocked, cancelled.

use super::*;

#[tokio::test]
async fn a_file_is_written_and_done_ends_the_pass() {
    let mut bench = Bench::new(vec![write("fruit.txt", "pineapple\n"), done()]);
    let report = bench.first().await;
    assert_eq!(report.end, PassEnd::Finished);
    assert_eq!(report.summary, "all done");
    assert_eq!(report.steps, 2);
    assert_eq!(bench.file("fruit.txt").as_deref(), Some("pineapple\n"));
    assert!(bench.last_prompt().contains("call done; the check then runs"), "a small model is told when it may stop");
    assert_eq!(bench.meter.spent().usage, report.usage);
    assert_eq!(report.usage.calls, 2);
}

#[tokio::test]
async fn a_model_that_claims_done_and_does_nothing_is_told_once_and_then_ends_the_pass_with_its_claim() {
    let mut bench = Bench::new(vec![done()]);
    let report = bench.first().await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 2));
    assert_eq!(bench.events.interventions(), ["nothing_changed"]);
    assert_eq!(std::fs::read_dir(bench.dir.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_narrated_step_is_told_once_and_the_second_in_a_row_is_stuck() {
    let mut bench = Bench::native(vec![says("Now I will fix the test.")]);
    let report = bench.first().await;
    assert!(matches!(report.end, PassEnd::Stuck { .. }), "{report:?}");
    assert_eq!(report.steps, 2);
    assert_eq!(bench.events.interventions(), ["no_call"]);
    assert!(bench.last_prompt().contains("You called no tool"));
}

#[tokio::test]
async fn after_a_narrated_step_the_model_may_still_work() {
    let mut bench = Bench::native(vec![
        says("Now I will write it."),
        calls(&[("1", "write", r#"{"path":"a","content":"b"}"#)]),
        says("Written."),
    ]);
    let report = bench.first().await;
    assert_eq!((report.end, report.summary.as_str()), (PassEnd::Finished, "Written."));
    assert_eq!(bench.file("a").as_deref(), Some("b"));
}

#[tokio::test]
async fn an_answer_without_a_call_is_simply_the_answer_where_no_gate_is() {
    let mut bench = Bench::native(vec![says("It prints 42.")]);
    bench.gates.clear();
    let report = bench.first().await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 1));
    assert_eq!(report.summary, "It prints 42.");
}

#[tokio::test]
async fn a_write_cut_by_length_is_not_executed() {
    let half = r#"{"tool":"write","path":"half.py","content":"def f():\n    return"}"#;
    for finish in [Finish::Length, Finish::Runaway, Finish::Other] {
        let mut bench = Bench::new(vec![cut(half, finish), write("whole.py", "pass\n"), done()]);
        let report = bench.first().await;
        assert_eq!(report.end, PassEnd::Finished);
        assert!(!exists(bench.dir.path(), "half.py"));
        assert!(exists(bench.dir.path(), "whole.py"));
        assert_eq!(bench.events.interventions(), ["cut"]);
        assert!(bench.last_prompt().contains("nothing was executed"));
    }
}

#[tokio::test]
async fn a_native_call_that_was_cut_leaves_no_open_call() {
    let half = match calls(&[("1", "write", r#"{"path":"half.py","content":"de"#)]) {
        Answer::Says(completion) => Answer::Says(Completion { finish: Finish::Length, ..completion }),
        other => other,
    };
    let mut bench = Bench::native(vec![half, calls(&[("2", "write", r#"{"path":"b","content":"c"}"#)]), says("ok")]);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    assert!(!exists(bench.dir.path(), "half.py"));
}

#[tokio::test]
async fn nothing_of_a_cut_answer_is_kept_to_be_copied() {
    let mut bench = Bench::new(vec![cut("{\"tool\":\"write\",\"content\":\"import os", Finish::Length), done()]);
    bench.first().await;
    let prompt = bench.last_prompt();
    assert!(prompt.contains("was cut off") && !prompt.contains("import os"), "{prompt}");
}

#[tokio::test]
async fn forty_same_calls_end_early() {
    let mut bench = Bench::new(vec![read("a.py"); 40]);
    bench.put("a.py", "print(1)\n");
    let report = bench.first().await;
    assert!(matches!(&report.end, PassEnd::Stuck { why } if why.contains("read a.py")), "{report:?}");
    assert_eq!(report.steps, 5, "the third brings an intervention, two more end it");
    assert_eq!(bench.events.interventions(), ["repeats"]);
    let prompt = bench.last_prompt();
    assert!(prompt.contains("3 times with the same result") && prompt.contains("read a.py"), "{prompt}");
}

#[tokio::test]
async fn alternating_pairs_end_early() {
    let pair = [read("a.py"), read("b.py")];
    let mut bench = Bench::new(pair.iter().cycle().take(40).cloned().collect());
    bench.put("a.py", "1\n");
    bench.put("b.py", "2\n");
    let report = bench.first().await;
    assert!(matches!(report.end, PassEnd::Stuck { .. }));
    assert_eq!(report.steps, 7);
}

#[tokio::test]
async fn an_edit_and_test_loop_with_real_edits_is_never_stuck() {
    let mut answers = Vec::new();
    for round in 0..8 {
        answers.push(acts(&json!({
            "tool": "edit", "path": "a.py", "old": format!("x = {round}"), "new": format!("x = {}", round + 1)
        })));
        // Stands for the test: the same call with the same result every time.
        answers.push(acts(&json!({"tool": "search", "pattern": "FAILED"})));
    }
    answers.push(done());
    let mut bench = Bench::new(answers);
    bench.put("a.py", "x = 0\n");
    let report = bench.first().await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 17));
    assert_eq!(bench.file("a.py").as_deref(), Some("x = 8\n"));
    assert!(bench.events.interventions().is_empty());
}

#[tokio::test]
async fn the_same_wrong_file_written_again_and_again_is_no_progress() {
    let round = [write("a.py", "wrong\n"), acts(&json!({"tool": "search", "pattern": "FAILED"}))];
    let mut bench = Bench::new(round.iter().cycle().take(40).cloned().collect());
    let report = bench.first().await;
    assert!(matches!(report.end, PassEnd::Stuck { .. }), "{report:?}");
    assert!(report.steps <= 9, "{}", report.steps);
}

#[tokio::test]
async fn empty_answers_are_told_and_end_as_stuck() {
    let mut bench = Bench::new(vec![says("")]);
    let report = bench.first().await;
    assert!(matches!(&report.end, PassEnd::Stuck { why } if why.contains("empty answer")), "{report:?}");
    assert_eq!(report.steps, 5);
    assert_eq!(bench.events.interventions().iter().filter(|kind| *kind == "repeats").count(), 1);
}

#[tokio::test]
async fn a_result_that_is_known_already_says_so_at_the_second_time() {
    let mut bench = Bench::new(vec![read("a.py"), read("a.py"), done()]);
    bench.put("a.py", "1\n");
    bench.first().await;
    assert!(bench.last_prompt().contains("You have this result already"));
}

#[tokio::test]
async fn the_limit_of_steps_ends_the_pass() {
    let mut bench = Bench::new((0..9).map(|n| write("a", &n.to_string())).collect());
    bench.limits.max_steps = 4;
    let report = bench.first().await;
    assert_eq!(report.end, PassEnd::HitLimit { limit: iudex_core::Limit::Steps });
    assert_eq!(report.steps, 4);
    assert_eq!(bench.file("a").as_deref(), Some("3"));
}

#[tokio::test]
async fn the_tokens_of_the_run_bound_the_answer_and_end_the_pass() {
    let mut bench = Bench::new((0..50).map(|n| write("a", &n.to_string())).collect());
    bench.limits.tokens = Some(Tokens(3_000));
    let report = bench.first().await;
    assert_eq!(report.end, PassEnd::HitLimit { limit: iudex_core::Limit::Tokens });
    assert!(report.steps >= 1);
    assert!(bench.meter.spent().usage.total() <= Tokens(3_000), "{:?}", bench.meter.spent());
    let spent_before_last = report.usage.total().0 - bench.requests().last().unwrap().estimate_prompt() - 10;
    let last = bench.requests().pop().unwrap();
    assert!(last.max_tokens + last.estimate_prompt() + spent_before_last <= 3_000);
}

#[tokio::test]
async fn a_push_ends_the_pass_as_blocked_with_every_call_answered() {
    let push = r#"{"command":"git push origin main"}"#;
    let mut bench = Bench::native(vec![calls(&[("1", "bash", push), ("2", "read", r#"{"path":"a"}"#)]), says("ok")]);
    let report = bench.first().await;
    assert!(matches!(report.end, PassEnd::Blocked { .. }), "{report:?}");
    bench.pass(2, PassStart::Continue { directive: "Go on." }).await;
}

#[tokio::test]
async fn a_model_that_cannot_be_reached_ends_the_pass() {
    for error in [ModelError::Unavailable("gone".into()), ModelError::Refused("401".into())] {
        let mut bench = Bench::new(vec![Answer::Fails(error.clone())]);
        let report = bench.first().await;
        assert_eq!(report.end, PassEnd::ModelUnavailable { why: error.to_string() });
        assert_eq!(report.steps, 0);
    }
}

#[tokio::test]
async fn a_pass_that_is_dropped_while_a_tool_runs_leaves_no_open_call() {
    let mut bench = Bench::native(vec![
        calls(&[("1", "read", r#"{"path":"a"}"#), ("2", "search", r#"{"pattern":"x"}"#)]),
        says("ok"),
    ]);
    bench.put("a", "x\n");
    // As if it had been dropped in the first tool.
    bench.agent.talk.items.push(Item::Task(conversation::Opening { task: "Task: t".into(), ..Default::default() }));
    let made = |id: &str| AssistantCall { id: id.into(), name: "read".into(), arguments: "{}".into() };
    let open = vec![(Some("1".to_owned()), "read a".to_owned()), (Some("2".to_owned()), "search x".to_owned())];
    bench.agent.talk.answer(String::new(), vec![made("1"), made("2")], open);
    let kept = bench.agent.save();
    let results = kept["talk"]["items"].as_array().unwrap().iter().filter(|item| item["item"] == "result").count();
    assert_eq!(results, 2, "what is kept is closed");
    bench.pass(2, PassStart::Continue { directive: "Go on." }).await;
    assert!(bench.requests()[0].messages.iter().any(|m| m.text().starts_with("Aborted")));
}

#[tokio::test]
async fn a_pass_that_is_dropped_during_a_model_call_can_be_continued() {
    let mut bench = Bench::native(vec![calls(&[("1", "read", r#"{"path":"a"}"#)]), Answer::Never]);
    bench.put("a", "x\n");
    let waited = tokio::time::timeout(Duration::from_millis(200), bench.first()).await;
    assert!(waited.is_err(), "the second call never ends");
    bench
        .model
        .answers
        .replace(VecDeque::from([calls(&[("1", "write", r#"{"path":"b","content":"c"}"#)]), says("ok")]));
    let report = bench.pass(2, PassStart::Continue { directive: "Go on." }).await;
    assert_eq!(report.end, PassEnd::Finished);
    assert_eq!(bench.file("b").as_deref(), Some("c"));
}

#[tokio::test]
async fn a_tool_whose_call_repeats_is_not_offered_for_two_answers() {
    let mut bench =
        Bench::new(vec![read("a.py"), read("a.py"), read("a.py"), write("b.py", "1"), read("b.py"), done()]);
    bench.put("a.py", "1\n");
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    let offers = |request: &ChatRequest| request.schema.as_ref().unwrap().to_string().contains(r#""const":"read""#);
    let offered: Vec<bool> = bench.requests().iter().map(offers).collect();
    assert_eq!(offered, [true, true, true, false, false, true]);
}

#[tokio::test]
async fn writing_what_was_refused_already_is_told_so() {
    let mut bench = Bench::new(vec![write("a.py", "1\n"), done(), write("a.py", "1\n"), done()]);
    bench.first().await;
    assert!(!bench.last_prompt().contains("not accepted"));
    bench.pass(2, PassStart::Continue { directive: "Red." }).await;
    assert!(bench.last_prompt().contains("as they were when the work was not accepted"));
}

#[tokio::test]
async fn what_repeats_after_a_change_is_asked_to_finish_and_before_one_to_change() {
    let mut bench = Bench::new(vec![write("a", "1"), read("a"), read("a"), read("a"), done()]);
    bench.first().await;
    assert!(bench.last_prompt().contains("call done: the check then runs"));
    let mut bench = Bench::new(vec![read("a"), read("a"), read("a"), done()]);
    bench.first().await;
    assert!(bench.last_prompt().contains("No file has changed yet"));
}

#[tokio::test]
async fn a_file_that_git_ignores_is_a_change_when_it_is_written() {
    let mut bench =
        Bench::native(vec![calls(&[("1", "write", r#"{"path":".env","content":"A=1\n"}"#)]), says("Done.")]);
    bench.put(".gitignore", ".env\n");
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    assert!(bench.events.interventions().is_empty(), "{:?}", bench.events.interventions());
}

#[tokio::test]
async fn calls_behind_a_blocked_one_are_told_that_they_did_not_run() {
    let push = r#"{"command":"git push origin main"}"#;
    let mut bench = Bench::native(vec![calls(&[("1", "bash", push), ("2", "read", r#"{"path":"a"}"#)]), says("ok")]);
    bench.first().await;
    bench.pass(2, PassStart::Continue { directive: "Go on." }).await;
    assert!(bench.last_prompt().contains("Not run: it ended before this call."));
    assert!(!bench.last_prompt().contains("Aborted"));
}

#[tokio::test]
async fn a_write_that_repeats_stays_offered_until_it_has_changed_something() {
    let offers = |bench: &Bench| -> Vec<bool> {
        let has_write = |schema: &Value| schema.to_string().contains(r#""const":"write""#);
        bench.requests().iter().map(|request| has_write(request.schema.as_ref().unwrap())).collect()
    };
    let mut bench = Bench::new(vec![write("a.py", "1\n"); 5]);
    bench.put("a.py", "1\n");
    bench.first().await;
    assert!(bench.events.interventions().contains(&"repeats".to_owned()));
    assert_eq!(offers(&bench), [true; 5]);

    let mut bench = Bench::new(vec![write("a.py", "1\n"), write("a.py", "1\n"), write("a.py", "1\n"), done()]);
    bench.first().await;
    assert_eq!(offers(&bench), [true, true, true, false], "what it goes on writing is there");
}

#[tokio::test]
async fn done_after_an_edit_that_failed_is_told_once_and_put_right_in_the_same_pass() {
    let edit = |old: &str| acts(&json!({"tool": "edit", "path": "a.py", "old": old, "new": "return a + b"}));
    let mut bench = Bench::new(vec![edit("return a * b"), done(), edit("return a - b"), done()]);
    bench.put("a.py", "def add(a, b):\n    return a - b\n");
    let report = bench.first().await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 4));
    assert_eq!(report.summary, "all done");
    assert_eq!(bench.file("a.py").as_deref(), Some("def add(a, b):\n    return a + b\n"));
    assert_eq!(bench.events.interventions(), ["nothing_changed"]);
    let told = prompt::done_unchanged(ActionFormat::Json);
    assert!(!prompt_of(&bench.requests()[1]).contains(&told));
    assert!(prompt_of(&bench.requests()[2]).ends_with(&told));
}

#[tokio::test]
async fn each_pass_is_told_anew_that_it_is_done_with_nothing_changed() {
    let mut bench = Bench::new(vec![done()]);
    bench.first().await;
    let report = bench.pass(2, PassStart::Continue { directive: "Red." }).await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 2));
    assert_eq!(bench.events.interventions(), ["nothing_changed", "nothing_changed"]);
}

#[tokio::test]
async fn without_a_gate_done_is_taken_at_once_though_nothing_changed() {
    let mut bench = Bench::new(vec![done()]);
    bench.gates.clear();
    let report = bench.first().await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 1));
    assert!(bench.events.interventions().is_empty());
}
