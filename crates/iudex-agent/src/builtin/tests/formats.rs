//! Which format is used, and when it changes.

use super::*;

#[tokio::test]
async fn a_small_local_model_gets_json_where_the_server_enforces_it() {
    let mut bench = Bench::new(vec![done()]);
    bench.first().await;
    let request = bench.requests().remove(0);
    assert!(request.schema.is_some() && request.tools.is_empty());
    let mut bench = Bench::native(vec![says("nothing to do")]);
    bench.gates.clear();
    bench.first().await;
    let request = bench.requests().remove(0);
    assert!(request.schema.is_none());
    assert_eq!(request.tools.len(), 5);
}

#[tokio::test]
async fn the_setting_wins() {
    let settings = AgentSettings { format: Some(ActionFormat::Text), ..settings() };
    let fenced = "I write it.\n```json\n{\"name\":\"write\",\"arguments\":{\"path\":\"a\",\"content\":\"b\"}}\n```";
    let mut bench = Bench::with(vec![says(fenced), says("Done.")], 8192, settings, true);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    let request = bench.requests().remove(0);
    assert!(request.schema.is_none() && request.tools.is_empty());
    assert_eq!(bench.file("a").as_deref(), Some("b"));
}

#[tokio::test]
async fn a_refused_format_is_changed_and_remembered() {
    let refused = Answer::Fails(ModelError::FormatRefused("no response_format".into()));
    let fenced = says("```json\n{\"name\":\"write\",\"arguments\":{\"path\":\"a\",\"content\":\"b\"}}\n```");
    let mut bench = Bench::new(vec![refused, fenced, says("Done.")]);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    assert_eq!(bench.events.interventions(), ["format_changed"]);
    assert_eq!(bench.file("a").as_deref(), Some("b"));
    bench.pass(2, PassStart::Fresh { directive: "Still red." }).await;
    assert!(bench.requests().last().unwrap().schema.is_none(), "remembered for the rest of the run");
}

#[tokio::test]
async fn a_server_that_takes_no_format_is_unavailable() {
    let mut bench = Bench::new(vec![Answer::Fails(ModelError::FormatRefused("no".into()))]);
    let report = bench.first().await;
    assert!(matches!(report.end, PassEnd::ModelUnavailable { .. }), "{report:?}");
    assert_eq!(bench.requests().len(), 3, "json, text, native");
}

#[tokio::test]
async fn three_broken_calls_in_a_row_change_the_format() {
    let broken = says(r#"{"name": "write", "arguments": {"path": "a", "content": "print("hi")"}}"#);
    let good = says("```json\n{\"name\":\"write\",\"arguments\":{\"path\":\"a\",\"content\":\"b\"}}\n```");
    let mut bench = Bench::native(vec![broken.clone(), broken.clone(), broken, good, says("Done.")]);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    assert_eq!(bench.events.interventions(), ["broken_call", "broken_call", "broken_call", "format_changed"]);
    assert!(bench.requests()[3].tools.is_empty(), "from native to text");
    assert_eq!(bench.file("a").as_deref(), Some("b"));
}

#[tokio::test]
async fn broken_calls_without_end_are_stuck() {
    let mut bench =
        Bench::native(vec![says(r#"{"name": "write", "arguments": {"path": "a", "content": "print("hi")"}}"#)]);
    let report = bench.first().await;
    assert!(matches!(report.end, PassEnd::Stuck { .. }), "{report:?}");
    assert!(report.steps <= 8, "{}", report.steps);
}

#[tokio::test]
async fn an_example_is_not_run_and_one_call_is_asked_for() {
    let example =
        "For example:\n```json\n{\"name\":\"write\",\"arguments\":{\"path\":\"no\",\"content\":\"x\"}}\n```\nor so.";
    let mut bench =
        Bench::native(vec![says(example), calls(&[("1", "write", r#"{"path":"yes","content":"x"}"#)]), says("ok")]);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    assert!(!exists(bench.dir.path(), "no") && exists(bench.dir.path(), "yes"));
    assert!(bench.last_prompt().contains("exactly one call"));
}

#[tokio::test]
async fn native_calls_are_answered_one_by_one_also_when_they_fail() {
    let mut bench = Bench::native(vec![
        calls(&[("same", "read", r#"{"path":"missing"}"#), ("same", "read", r#"{"path":"a"}"#)]),
        calls(&[("same", "WebSearch", r#"{"q":"x"}"#)]),
        calls(&[("", "write", r#"{"path":"b"}"#)]),
        calls(&[("", "write", r#"{"path":"b","content":"c"#)]),
        calls(&[("x", "write", r#"{"path":"b","content":"c"}"#), ("y", "done", "")]),
    ]);
    bench.put("a", "1\n");
    let report = bench.first().await;
    assert_eq!((report.end, report.steps), (PassEnd::Finished, 5));
    assert_eq!(bench.file("b").as_deref(), Some("c"));
    let last = bench.requests().pop().unwrap();
    let results: Vec<&str> =
        last.messages.iter().filter(|m| matches!(m, Message::Tool { .. })).map(Message::text).collect();
    assert_eq!(results.len(), 5);
    assert!(results[2].contains("no tool \"WebSearch\""), "{results:?}");
    assert!(results[3].contains("\"content\" is missing"), "{results:?}");
    assert!(results[4].contains("not valid JSON"), "{results:?}");
}

#[tokio::test]
async fn results_are_messages_of_the_user_outside_the_native_format() {
    let mut bench = Bench::new(vec![read("a.py"), done()]);
    bench.put("a.py", "print(1)\n");
    bench.first().await;
    let last = bench.requests().remove(1);
    let Some(Message::User { text }) = last.messages.last() else { panic!("{last:?}") };
    assert!(text.starts_with("Result of read a.py:\n") && text.contains("print(1)"), "{text}");
}

#[tokio::test]
async fn native_calls_of_earlier_are_told_as_text_after_the_format_changed() {
    let refused = Answer::Fails(ModelError::FormatRefused("no tools".into()));
    let mut bench =
        Bench::native(vec![calls(&[("1", "write", r#"{"path":"a","content":"b"}"#)]), refused, says("Done.")]);
    assert_eq!(bench.first().await.end, PassEnd::Finished);
    let last = bench.requests().pop().unwrap();
    assert!(last.messages.iter().all(|m| !matches!(m, Message::Tool { .. })));
    assert!(prompt_of(&last).contains(r#"{"name":"write","arguments":{"path":"a","content":"b"}}"#));
}
