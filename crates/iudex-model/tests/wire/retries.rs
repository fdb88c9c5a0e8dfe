//! What is tried again, how often, and what is said at the end.

use std::time::{Duration, Instant};

use iudex_core::Tokens;
use iudex_model::{Completion, ModelError, OpenAiModel, Timeouts};
use iudex_testkit::server::{ModelServer, Reply};

use crate::{ask, ask_with, quick, request, run, settings, settings_for};

/// One bad reply, then a good one: the answer, and what was said while waiting.
fn mended(bad: Reply) -> (Completion, String) {
    let server = ModelServer::start([bad, Reply::text("good")]);
    let mut settings = settings(&server);
    settings.timeouts.first_byte = Duration::from_millis(300);
    settings.timeouts.between_tokens = Duration::from_millis(300);
    let (result, shown) = run(ask_with(settings, &request()));
    let completion = result.unwrap();
    assert_eq!((completion.text.as_str(), completion.retries), ("good", 1));
    let waiting = shown.into_iter().find_map(|text| text.strip_prefix("waiting:").map(str::to_owned));
    (completion, waiting.expect("waiting is said"))
}

#[test]
fn transient_statuses_are_tried_again() {
    for status in [408, 429, 500, 502, 503, 504] {
        let (_, waiting) = mended(Reply::status(status, "try later"));
        assert!(waiting.starts_with(&format!("{status} from the server: try later, waiting 0.")), "{waiting}");
    }
}

#[test]
fn a_reset_is_tried_again() {
    let (_, waiting) = mended(Reply::reset());
    assert!(waiting.starts_with("the connection broke"), "{waiting}");
}

#[test]
fn a_stall_before_the_first_byte_is_tried_again() {
    assert!(mended(Reply::text("x").stall_first()).1.starts_with("no answer within 0.3 s"));
    assert!(mended(Reply::text("x").stall_after_head()).1.starts_with("no answer within 0.3 s"));
}

#[test]
fn a_stall_between_tokens_is_tried_again_and_frees_the_slot() {
    let server = ModelServer::start([Reply::text("a long answer").stall_after("ng a"), Reply::text("good")]);
    let mut settings = settings(&server);
    settings.timeouts.between_tokens = Duration::from_millis(300);
    let (result, shown) = run(ask_with(settings, &request()));
    assert_eq!(result.unwrap().text, "good");
    assert!(shown.iter().any(|text| text.starts_with("waiting:the answer stalled: nothing for 0.3 s")), "{shown:?}");
    assert!(server.wait_for_hangups(1));
}

#[test]
fn comments_do_not_keep_a_dead_answer_alive() {
    let events = (0..400).map(|_| "").map(String::from);
    // Four hundred empty events, one every few milliseconds at most, and no token.
    let server = ModelServer::start([Reply::events(events).stall_at(2_000), Reply::text("good")]);
    let mut settings = settings(&server);
    settings.timeouts.first_byte = Duration::from_millis(300);
    assert_eq!(run(ask_with(settings, &request())).0.unwrap().retries, 1);
}

#[test]
fn a_stream_that_is_cut_is_never_an_answer() {
    let place = ["ng a", "data: {", "\"usage\""];
    for place in &place[..2] {
        let (_, waiting) = mended(Reply::text("a long answer").cut_after(place));
        assert!(waiting.starts_with("the connection broke"), "{waiting}");
        let (_, waiting) = mended(Reply::text("a long answer").close_delimited().cut_after(place));
        assert!(waiting.starts_with("the stream ended before the answer did"), "{waiting}");
    }
    let after_the_end = Reply::text("a long answer").cut_after(place[2]);
    assert_eq!(ask(&ModelServer::start([after_the_end])).unwrap().text, "a long answer");
}

#[test]
fn a_document_cut_within_its_json_is_tried_again() {
    let (_, waiting) = mended(Reply::text("a long answer").whole().cut_at(60));
    assert!(waiting.starts_with("the connection broke"), "{waiting}");
    let (_, waiting) = mended(Reply::text("a long answer").whole().close_delimited().cut_at(60));
    assert!(waiting.contains("ended within its JSON"), "{waiting}");
}

#[test]
fn garbled_events_are_tried_again() {
    let (_, waiting) = mended(Reply::events(["{\"choices\": [{\"delta\"", "[DONE]"]));
    assert!(waiting.contains("cannot be read"), "{waiting}");
    let (_, waiting) = mended(Reply::raw("text/event-stream", b"data: {\"a\": \"\xff\xfe\"}\n\n".to_vec()));
    assert!(waiting.contains("no text"), "{waiting}");
}

#[test]
fn an_error_within_a_stream_of_status_200_is_tried_again() {
    let event = r#"{"error": {"message": "the engine died", "code": 500}}"#;
    let (_, waiting) = mended(Reply::events([event]));
    assert!(waiting.starts_with("500 from the server: the engine died"), "{waiting}");
    let llama = "error: {\"code\":500,\"message\":\"the engine died\",\"type\":\"server_error\"}\n\n";
    let (_, waiting) = mended(Reply::raw("text/event-stream", llama));
    assert!(waiting.starts_with("500 from the server: the engine died"), "{waiting}");
    let refused = ModelServer::start([Reply::events([r#"{"error": {"message": "no such thing", "code": 400}}"#])]);
    assert!(matches!(ask(&refused).unwrap_err(), ModelError::Refused(text) if text.contains("no such thing")));
}

#[test]
fn what_was_generated_before_a_cut_is_counted() {
    let (completion, _) = mended(Reply::text("a long answer").cut_after("nswe"));
    assert_eq!(completion.usage.calls, 2);
    assert_eq!(completion.usage.estimated_calls, 1);
    assert!(completion.usage.output > Tokens(5), "{:?}", completion.usage);
    let (untouched, _) = mended(Reply::status(503, "busy"));
    assert_eq!(untouched.usage.calls, 1);
}

#[test]
fn errors_without_end_are_unavailable_after_the_last_try() {
    let server = ModelServer::always(Reply::status(500, "kaputt"));
    let error = ask(&server).unwrap_err();
    let ModelError::Unavailable(text) = error else { panic!("{error}") };
    assert!(text.contains("500 from the server: kaputt (3 tries)") && text.contains(&server.base_url()), "{text}");
    assert_eq!(server.chats().len(), 3);
}

#[test]
fn retry_after_is_kept() {
    let server = ModelServer::start([Reply::status(429, "slow down").header("retry-after", "1"), Reply::text("good")]);
    let start = Instant::now();
    let (result, shown) = run(ask_with(settings(&server), &request()));
    assert_eq!(result.unwrap().text, "good");
    assert!(start.elapsed() >= Duration::from_secs(1));
    assert!(shown.contains(&"waiting:429 from the server: slow down, waiting 1 s".to_owned()), "{shown:?}");
}

#[test]
fn retry_after_beyond_the_time_for_retries_ends_at_once() {
    let server = ModelServer::start([Reply::status(429, "slow down").header("retry-after", "3600")]);
    let error = ask(&server).unwrap_err();
    assert!(matches!(&error, ModelError::Unavailable(text) if text.contains("asks to wait 60 min")), "{error}");
    assert_eq!(server.chats().len(), 1);
}

#[test]
fn a_server_that_loads_its_model_is_waited_for() {
    let loading = || Reply::status(503, "Loading model");
    let server = ModelServer::start([loading(), loading(), loading(), loading(), Reply::text("good")]);
    let timeouts = Timeouts { max_retries: 1, retry_time: Duration::from_secs(3), ..quick() };
    let completion = run(ask_with(crate::OpenAiSettings { timeouts, ..settings(&server) }, &request())).0.unwrap();
    assert_eq!((completion.text.as_str(), completion.retries), ("good", 4));
}

#[test]
fn a_server_that_is_not_there_is_unavailable_with_its_address() {
    let closed = {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        listener.local_addr().unwrap()
    };
    let error = run(OpenAiModel::open(settings_for(&format!("http://{closed}/v1")))).unwrap_err();
    let ModelError::Unavailable(text) = error else { panic!("{error}") };
    assert!(
        text.contains(&closed.to_string()) && text.contains("cannot connect") && text.contains("3 tries"),
        "{text}"
    );
}

#[test]
fn dropping_the_request_hangs_up() {
    let server = ModelServer::start([Reply::text("a long answer").stall_after("ng a")]);
    run(async {
        let request = request();
        let asking = ask_with(settings(&server), &request);
        tokio::time::timeout(Duration::from_millis(500), asking).await.unwrap_err();
    });
    assert!(server.wait_for_hangups(1));
}

#[test]
fn what_cut_tries_used_is_told_when_the_call_fails_in_the_end() {
    let server = ModelServer::always(Reply::text("a long answer").cut_after("nswe"));
    let (result, shown) = run(ask_with(settings(&server), &request()));
    assert!(matches!(result, Err(ModelError::Unavailable(_))), "{result:?}");
    assert_eq!(shown.last().map(String::as_str), Some("lost:3 tries"), "{shown:?}");
}

#[test]
fn half_an_answer_that_a_proxy_ends_with_done_is_not_a_whole_one() {
    let finish = |text: &str| ask(&ModelServer::start([Reply::text(text).without_finish()])).unwrap().finish;
    assert_eq!(finish(r#"{"tool":"bash","command":"rm -rf a""#), iudex_model::Finish::Other);
    assert_eq!(finish("```json\n{\"tool\":\"bash\",\"command\":\"ls\"}\n"), iudex_model::Finish::Other);
    assert_eq!(finish(r#"{"tool":"bash","command":"ls"}"#), iudex_model::Finish::Stop);
    assert_eq!(finish("It is done."), iudex_model::Finish::Stop);
}
