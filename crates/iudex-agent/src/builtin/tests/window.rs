//! The window: compaction and overflow.

use super::*;

/// A directive that must survive word for word.
const FAILURE: &str = "The work is not accepted yet.\n\n`python3 -m unittest -q` exited 1:\nAssertionError: 41 != 42";

/// Reads of different long files.
fn long_reads(bench: &Bench, count: usize) {
    for index in 0..count {
        bench.put(&format!("f{index}.txt"), &format!("line {index} of a long file\n").repeat(150));
    }
}

fn reads(count: usize) -> Vec<Answer> {
    let mut answers: Vec<Answer> = (0..count).map(|index| read(&format!("f{index}.txt"))).collect();
    answers.push(done());
    answers
}

#[tokio::test]
async fn compaction_keeps_task_gates_and_last_failure_word_for_word() {
    let mut bench = Bench::with(reads(20), 8192, settings(), true);
    long_reads(&bench, 20);
    let report = bench.pass(2, PassStart::Fresh { directive: FAILURE }).await;
    assert_eq!(report.end, PassEnd::Finished);
    assert!(bench.events.interventions().iter().any(|kind| kind == "compacted"));
    let requests = bench.requests();
    for request in &requests {
        let prompt = prompt_of(request);
        assert_eq!(request.messages[0], requests[0].messages[0], "the system prompt stays");
        assert!(prompt.contains("Make the failing test pass.") && prompt.contains(CHECK));
        assert!(prompt.contains(FAILURE));
        assert!(request.estimate_prompt() + request.max_tokens <= 8192);
    }
    assert!(bench.last_prompt().contains("line 19 of a long file"), "the last result stays");
    assert!(bench.last_prompt().contains("[result of read f"), "older ones are named");
}

#[tokio::test]
async fn compaction_is_rare_and_requests_grow_at_their_end_in_between() {
    let mut bench = Bench::with(reads(30), 8192, settings(), true);
    long_reads(&bench, 30);
    bench.first().await;
    let compactions = bench.events.interventions().iter().filter(|kind| *kind == "compacted").count();
    let rewritten = bench
        .requests()
        .windows(2)
        .filter(|pair| !pair[1].messages.starts_with(&pair[0].messages[..pair[0].messages.len() - 1]))
        .count();
    assert_eq!(rewritten, compactions);
    assert!((2..=12).contains(&compactions), "{compactions} of 31 requests");
}

#[tokio::test]
async fn one_result_above_the_window_is_shortened() {
    let mut bench = Bench::with(vec![read("huge.txt"), done()], 2048, settings(), true);
    let lines: Vec<String> = (0..2_000).map(|n| format!("entry {n}")).collect();
    bench.put("huge.txt", &lines.join("\n"));
    let report = bench.first().await;
    assert_eq!(report.end, PassEnd::Finished);
    for request in bench.requests() {
        assert!(request.estimate_prompt() + request.max_tokens <= 2048);
    }
    assert!(bench.last_prompt().contains("bytes left out"));
}

#[tokio::test]
async fn the_task_of_the_present_turn_is_the_one_that_is_pinned() {
    let mut bench = Bench::with(reads(4), 4096, settings(), true);
    long_reads(&bench, 24);
    bench.first().await;
    bench.task = Task::from_goal("The second task, which must stay.");
    bench.model.answers.replace(reads(24).into());
    assert_eq!(bench.pass(1, PassStart::NextTask).await.end, PassEnd::Finished);
    let prompt = bench.last_prompt();
    assert!(prompt.contains("The second task, which must stay."));
    assert!(!prompt.contains("Make the failing test pass."), "the earlier task may go");
}

#[tokio::test]
async fn native_conversations_stay_closed_through_compaction() {
    let answers = (0..20).map(|n| calls(&[("1", "read", &format!(r#"{{"path":"f{n}.txt"}}"#))])).chain([says("ok")]);
    let mut bench = Bench::with(answers.collect(), 8192, settings(), false);
    bench.gates.clear();
    long_reads(&bench, 20);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    assert!(bench.events.interventions().iter().any(|kind| kind == "compacted"));
}

#[tokio::test]
async fn an_overflow_is_answered_with_a_shorter_prompt() {
    let mut answers = reads(6);
    let last = answers.pop().unwrap();
    answers.push(Answer::Checks(3_000, Box::new(last)));
    let mut bench = Bench::with(answers, 16_384, settings(), true);
    long_reads(&bench, 6);
    let report = bench.pass(2, PassStart::Fresh { directive: FAILURE }).await;
    assert_eq!(report.end, PassEnd::Finished, "{report:?}");
    let last = bench.requests().pop().unwrap();
    assert!(last.estimate_prompt() + last.max_tokens <= 3_000, "the window that the server named is used");
    assert!(prompt_of(&last).contains(FAILURE));
}

#[tokio::test]
async fn an_overflow_without_numbers_is_tried_a_few_times_only() {
    let overflow =
        Answer::Fails(ModelError::Overflow { message: "context length exceeded".into(), window: None, prompt: None });
    let mut bench = Bench::with(vec![overflow], 8192, settings(), true);
    long_reads(&bench, 3);
    let report = bench.first().await;
    let PassEnd::ModelUnavailable { why } = report.end else { panic!("{report:?}") };
    assert!(why.contains("context length exceeded"), "{why}");
    assert!(bench.requests().len() <= 6);
}

#[tokio::test]
async fn a_task_that_does_not_fit_the_window_ends_the_pass_with_both_sizes() {
    let mut bench = Bench::with(vec![done()], 512, settings(), true);
    bench.task = Task::from_goal("word ".repeat(2_000));
    let report = bench.first().await;
    let PassEnd::ModelUnavailable { why } = report.end else { panic!("{report:?}") };
    assert!(why.contains("512"), "{why}");
    assert!(bench.requests().is_empty());
}

#[tokio::test]
async fn the_answer_takes_at_most_4096_tokens_or_a_quarter_of_the_window() {
    for (window, setting, wanted) in [(8192, None, 2048), (100_000, None, 4096), (100_000, Some(100), 100)] {
        let settings = AgentSettings { answer_tokens: setting, ..settings() };
        let mut bench = Bench::with(vec![done()], window, settings, true);
        bench.first().await;
        assert_eq!(bench.requests()[0].max_tokens, wanted);
    }
}

#[tokio::test]
async fn the_shares_of_the_window_add_up() {
    let mut bench = Bench::new(vec![read("f0.txt"), done()]);
    long_reads(&bench, 1);
    let before = bench.agent.context_shares();
    assert_eq!(before.iter().map(|share| share.tokens).sum::<u64>(), 8192);
    bench.first().await;
    let shares = bench.agent.context_shares();
    let names: Vec<&str> = shares.iter().map(|share| share.name.as_str()).collect();
    assert_eq!(names, ["system prompt and tools", "task and gates", "conversation", "free"]);
    assert_eq!(shares.iter().map(|share| share.tokens).sum::<u64>(), 8192);
    assert!(shares[2].tokens > before[2].tokens + 500);
    assert_eq!(shares[0], before[0]);
}

#[tokio::test]
async fn a_count_that_stands_still_while_the_prompt_grows_is_an_overflow() {
    let mut answers = reads(6);
    answers = answers.into_iter().map(|answer| Answer::Counts(2_000, Box::new(answer))).collect();
    let mut bench = Bench::with(answers, 16_384, settings(), true);
    long_reads(&bench, 6);
    let report = bench.first().await;
    assert_eq!(report.end, PassEnd::Finished, "{report:?}");
    assert!(bench.events.interventions().contains(&"compacted".to_owned()));
    assert!(bench.agent.window <= 2_000 && bench.agent.scale >= 0.9, "{} {}", bench.agent.window, bench.agent.scale);
    assert_eq!(bench.meter.spent().usage, report.usage, "lost answers are charged too");
}

#[tokio::test]
async fn reading_again_after_a_compaction_is_no_repeat() {
    let mut answers: Vec<Answer> = (0..12).map(|index| read(&format!("f{index}.txt"))).collect();
    answers.extend([read("f0.txt"), done()]);
    let mut bench = Bench::with(answers, 8192, settings(), true);
    long_reads(&bench, 12);
    bench.first().await;
    assert!(bench.events.interventions().contains(&"compacted".to_owned()));
    assert!(!bench.last_prompt().contains("You have this result already"));
}
