//! The test server itself: what it records, what it notices, and that its faults happen.

#![expect(clippy::unwrap_used, reason = "helpers of tests")]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use iudex_testkit::server::{ModelServer, Reply};
use serde_json::{Value, json};

/// Sends a chat and reads until the server closes, stalls for half a second, or resets.
fn exchange(server: &ModelServer, body: &Value) -> (String, Option<ErrorKind>) {
    let mut stream = connect(server);
    send(&mut stream, "POST", "/v1/chat/completions", &body.to_string());
    read_all(&mut stream)
}

fn connect(server: &ModelServer) -> TcpStream {
    let stream = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
    stream
}

fn send(stream: &mut TcpStream, method: &str, path: &str, body: &str) {
    let head = format!("{method} {path} HTTP/1.1\r\nHost: x\r\nX-Test: yes\r\nContent-Length: {}\r\n\r\n", body.len());
    stream.write_all(format!("{head}{body}").as_bytes()).unwrap();
}

fn read_all(stream: &mut TcpStream) -> (String, Option<ErrorKind>) {
    let mut bytes = Vec::new();
    let error = stream.read_to_end(&mut bytes).err().map(|error| error.kind());
    (String::from_utf8_lossy(&bytes).into_owned(), error)
}

fn stalls(error: Option<ErrorKind>) -> bool {
    matches!(error, Some(ErrorKind::WouldBlock | ErrorKind::TimedOut))
}

#[test]
fn requests_are_recorded_and_other_paths_answered() {
    let server = ModelServer::builder().window(4096).endpoint("/api/show", json!({"parameters": "num_ctx 5"})).start();
    for (method, path, expected) in
        [("GET", "/props", "4096"), ("POST", "/api/show", "num_ctx 5"), ("GET", "/v1/models?x=1", "test-model")]
    {
        let mut stream = connect(&server);
        send(&mut stream, method, path, "{\"a\":1}");
        let (text, _) = read_all(&mut stream);
        assert!(text.starts_with("HTTP/1.1 200") && text.contains(expected), "{path}: {text}");
    }
    let requests = server.requests();
    assert_eq!((requests[1].method.as_str(), requests[1].path.as_str()), ("POST", "/api/show"));
    assert_eq!((requests[1].headers["x-test"].as_str(), &requests[1].body), ("yes", &json!({"a": 1})));
    let mut stream = connect(&server);
    send(&mut stream, "GET", "/nowhere", "");
    assert!(read_all(&mut stream).0.starts_with("HTTP/1.1 404"));
}

#[test]
fn replies_come_in_order_and_then_say_that_there_are_no_more() {
    let server = ModelServer::start([Reply::text("one"), Reply::status(503, "busy").header("retry-after", "7")]);
    let (first, _) = exchange(&server, &json!({"n": 1}));
    assert!(first.contains("\"content\":\"one\"") && first.contains("application/json"), "{first}");
    let (second, _) = exchange(&server, &json!({"n": 2}));
    assert!(second.starts_with("HTTP/1.1 503") && second.contains("retry-after: 7"), "{second}");
    let (third, _) = exchange(&server, &json!({"n": 3}));
    assert!(third.starts_with("HTTP/1.1 400") && third.contains("no more replies"), "{third}");
    assert_eq!(server.chats(), [json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]);
}

#[test]
fn a_stall_lasts_and_hanging_up_is_noticed() {
    let server = ModelServer::start([Reply::text("hello").stall_first(), Reply::text("hello").stall_after("hell")]);
    let (nothing, error) = exchange(&server, &json!({"stream": true}));
    assert_eq!((nothing.as_str(), stalls(error)), ("", true));
    assert!(server.wait_for_hangups(1));
    let (some, error) = exchange(&server, &json!({"stream": true}));
    assert!(some.ends_with("hell") || some.ends_with("hell\r\n"), "{some:?}");
    assert!(stalls(error));
    assert!(server.wait_for_hangups(2));
}

#[test]
fn a_cut_ends_the_connection_within_the_body() {
    let server = ModelServer::start([Reply::text("hello").cut_after("hell"), Reply::text("hello").whole().cut_at(20)]);
    let (text, error) = exchange(&server, &json!({"stream": true}));
    assert!(text.trim_end().ends_with("hell") && error.is_none(), "{text:?} {error:?}");
    let (text, error) = exchange(&server, &json!({}));
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert_eq!((body.len(), error), (20, None));
}

#[test]
fn a_fault_that_has_no_place_is_a_mistake_and_says_so() {
    let server = ModelServer::start([Reply::text("hello").cut_after("nowhere")]);
    let (text, _) = exchange(&server, &json!({"stream": true}));
    assert!(text.starts_with("HTTP/1.1 400") && text.contains("nowhere"), "{text}");
}

#[test]
fn a_reset_gives_no_answer() {
    let server = ModelServer::start([Reply::reset()]);
    let (text, error) = exchange(&server, &json!({"stream": true}));
    assert_eq!((text.as_str(), error), ("", Some(ErrorKind::ConnectionReset)));
}

#[test]
fn the_schema_probe_takes_nothing_from_the_list() {
    let schema = json!({"properties": {"word": {"enum": ["odd"]}}});
    let probe = json!({"response_format": {"json_schema": {"schema": schema}}});
    for (enforces, expected) in [(true, r#"{\"word\":\"odd\"}"#), (false, "Hello!")] {
        let server = ModelServer::builder().enforces_schema(enforces).start();
        let (text, _) = exchange(&server, &probe);
        assert!(text.contains(expected), "{text}");
        assert_eq!((server.probes(), server.chats().len()), (1, 0));
    }
}

#[test]
fn a_split_body_comes_in_such_chunks() {
    let reply = Reply::text("hello");
    let length = reply.body().len();
    let server = ModelServer::start([reply.split_at(10)]);
    let (text, _) = exchange(&server, &json!({"stream": true}));
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    assert!(body.starts_with("a\r\n") && body.contains(&format!("\r\n{:x}\r\n", length - 10)), "{body:?}");
}
