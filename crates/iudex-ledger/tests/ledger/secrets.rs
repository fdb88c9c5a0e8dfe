//! Secrets are masked in what is stored.

use std::path::Path;

use iudex_core::{CommandEnd, Event};
use serde_json::json;

use crate::events::{contents, ledger, new_run, rework, ruled};

const KEY: &str = "sk-live-0123456789abcdef";

fn contains(haystack: &[u8], needle: &str) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle.as_bytes())
}

#[test]
fn no_secret_is_in_any_file_of_the_ledger() {
    let (state, ledger) = ledger();
    ledger.mask_values(vec![KEY.to_owned()]);
    let mut new = new_run("a", "/w");
    new.goal = format!("call the service with {KEY}");
    new.note = Some(format!("left out: curl -H {KEY}"));
    ledger.begin(&new).unwrap();
    for event in [
        Event::Message { role: "user".to_owned(), text: format!("use {KEY} twice: {KEY}"), reasoning: KEY.to_owned() },
        Event::ToolFinished { tool: "bash".to_owned(), ok: true, result: format!("KEY={KEY}\n"), millis: 1 },
        Event::Intervention { kind: "repeats".to_owned(), text: format!("curl -H {KEY}") },
        ruled(Some(1), rework(&format!("curl -H {KEY} localhost"), CommandEnd::Exited(1)), 5),
    ] {
        ledger.record("a", &event).unwrap();
    }
    ledger.keep_session("s", Path::new("/w"), &json!({ "m": [format!("x{KEY}y")], KEY: 1 })).unwrap();

    let files = contents(state.path());
    assert!(files.iter().any(|(_, bytes)| contains(bytes, "[masked]")), "nothing was stored at all");
    for (path, bytes) in &files {
        assert!(!contains(bytes, KEY), "{} holds the key", path.display());
    }
    drop(ledger);
    for (path, bytes) in contents(state.path()) {
        assert!(!contains(&bytes, KEY), "{} holds the key", path.display());
    }
}

#[test]
fn only_the_secret_is_masked_and_the_rest_stays() {
    let (_state, ledger) = ledger();
    ledger.mask_values(vec![KEY.to_owned()]);
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &Event::Notice { text: format!("before {KEY} after") }).unwrap();
    ledger.keep_session("s", Path::new("/w"), &json!({ "m": [format!("x{KEY}y"), 7, null], KEY: true })).unwrap();
    assert_eq!(ledger.events("a").unwrap()[0].event, json!({ "event": "notice", "text": "before [masked] after" }));
    let (_, state) = ledger.last_session(Path::new("/w")).unwrap().unwrap();
    assert_eq!(state, json!({ "m": ["x[masked]y", 7, null], "[masked]": true }));
}

#[test]
fn what_is_printed_beside_the_ledger_can_be_masked_alike() {
    let (_state, ledger) = ledger();
    ledger.mask_values(vec![KEY.to_owned()]);
    let mut value = json!({ "event": "result", "why": format!("{KEY} was refused"), "passes": 2 });
    ledger.masked(&mut value);
    assert_eq!(value, json!({ "event": "result", "why": "[masked] was refused", "passes": 2 }));
}

#[test]
fn a_secret_inside_a_longer_one_leaves_no_rest() {
    let (_state, ledger) = ledger();
    ledger.mask_values(vec!["abcdef".to_owned(), "abcdef-and-more".to_owned()]);
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &Event::Notice { text: "abcdef-and-more, abcdef".to_owned() }).unwrap();
    assert_eq!(ledger.events("a").unwrap()[0].event["text"], "[masked], [masked]");
}

#[test]
fn short_and_empty_values_do_not_tear_holes_into_text() {
    let (_state, ledger) = ledger();
    ledger.mask_values(["", " ", "1", "true", "dev", "  dev  "].map(str::to_owned).to_vec());
    ledger.begin(&new_run("a", "/w")).unwrap();
    let text = "1 device is true";
    ledger.record("a", &Event::Notice { text: text.to_owned() }).unwrap();
    assert_eq!(ledger.events("a").unwrap()[0].event["text"], text);
}

#[test]
fn a_key_of_several_lines_is_masked_line_by_line_too() {
    let (_state, ledger) = ledger();
    let body = "MIIEvQIBADANBgkqhkiG9w0BAQEFAASC";
    ledger.mask_values(vec![format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n")]);
    ledger.begin(&new_run("a", "/w")).unwrap();
    ledger.record("a", &Event::Notice { text: format!("  2| {body}\n  3| }}") }).unwrap();
    assert_eq!(ledger.events("a").unwrap()[0].event["text"], "  2| [masked]\n  3| }");
}
