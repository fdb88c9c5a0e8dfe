//! The bytes of an answer cut at every place: within characters, between CR and LF, within JSON.

use std::cell::RefCell;

use iudex_model::{ChatModel as _, OpenAiModel};
use iudex_testkit::server::{ModelServer, Reply};

use crate::{answer, request, run, settings};

const TEXT: &str = "Größe 日本 🦀 \"x\"\r\n";

#[test]
fn an_answer_split_at_every_byte_is_the_same_answer() {
    for crlf in [false, true] {
        let reply = if crlf { Reply::text(TEXT).crlf() } else { Reply::text(TEXT) };
        let length = reply.body().len();
        assert!(length > 300);
        let each = reply.clone();
        let server = ModelServer::builder().choose(move |_, before| each.clone().split_at(before)).start();
        run(async {
            let model = OpenAiModel::open(settings(&server)).await.unwrap();
            for at in 0..length {
                let completion = model.complete(&request(), &mut |_| {}).await.unwrap();
                assert_eq!(completion.text, TEXT, "split at {at}, crlf {crlf}");
            }
        });
    }
}

#[test]
fn an_answer_that_comes_byte_by_byte_is_the_same_answer() {
    for size in [1, 2, 3, 7] {
        assert_eq!(answer(Reply::text(TEXT).crlf().split_every(size)).text, TEXT);
    }
    assert_eq!(answer(Reply::text(TEXT).close_delimited().split_every(1)).text, TEXT);
}

#[test]
fn comments_other_fields_and_a_missing_space_are_no_trouble() {
    let body = concat!(
        ": keep-alive\n\n",
        "event: message\nid: 1\nretry: 10\n",
        "data:{\"choices\":[{\"delta\":{\"content\":\"one \"}}]}\n\n",
        ":\n",
        "data:   {\"choices\":[{\"delta\":{\"content\":\"two\"}}]}\n",
        "data: {\"choices\":\ndata: [{\"delta\":{\"content\":\" three\"}}]}\n\n",
        "data: {\"choices\":[{\"delta\":{},\"finish_reason\":\"stop\"}]}\n\n",
        "data:[DONE]",
    );
    assert_eq!(answer(Reply::raw("text/event-stream", body)).text, "one two three");
}

#[test]
fn pieces_are_shown_in_whole_characters() {
    let shown = RefCell::new(String::new());
    let server = ModelServer::start([Reply::text(TEXT).split_every(1)]);
    run(async {
        let model = OpenAiModel::open(settings(&server)).await.unwrap();
        let mut show = |delta: iudex_model::Delta<'_>| {
            if let iudex_model::Delta::Text(text) = delta {
                shown.borrow_mut().push_str(text);
            }
        };
        model.complete(&request(), &mut show).await.unwrap();
    });
    assert_eq!(shown.into_inner(), TEXT);
}
