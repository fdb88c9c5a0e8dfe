//! One dialect a test, named by the quirk.

use iudex_core::Tokens;
use iudex_model::{AssistantCall, ChatModel as _, Finish, Message, ModelError, OpenAiModel};
use iudex_testkit::server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::{answer, ask, ask_with, request, run, settings, with_tools};

fn calls_of(reply: Reply) -> Vec<(String, String)> {
    answer(reply).calls.into_iter().map(|call| (call.name, call.arguments)).collect()
}

fn call(name: &str, arguments: &str) -> (String, String) {
    (name.into(), arguments.into())
}

#[test]
fn a_stream_becomes_one_text_shown_piece_by_piece() {
    let server = ModelServer::start([Reply::text("The whole answer.").usage(21, 4)]);
    let (completion, shown) = run(ask_with(settings(&server), &request()));
    let completion = completion.unwrap();
    assert_eq!(completion.text, "The whole answer.");
    assert_eq!(completion.finish, Finish::Stop);
    assert_eq!((completion.usage.prompt, completion.usage.output), (Tokens(21), Tokens(4)));
    assert_eq!((completion.usage.calls, completion.usage.estimated_calls, completion.retries), (1, 0, 0));
    assert!(shown.len() > 3, "{shown:?}");
    assert_eq!(shown.concat().replace("text:", ""), "The whole answer.");
}

#[test]
fn every_request_carries_limit_temperature_seed_and_asks_for_its_use() {
    let server = ModelServer::start([Reply::text("ok")]);
    let mut request = with_tools(request());
    request.schema = Some(json!({"type": "object"}));
    request.messages.push(Message::Assistant {
        text: String::new(),
        calls: vec![AssistantCall { id: "c1".into(), name: "read".into(), arguments: "{\"path\":\"a\"}".into() }],
    });
    request.messages.push(Message::Tool { call_id: "c1".into(), text: "content".into() });
    run(ask_with(settings(&server), &request)).0.unwrap();
    let body = server.chats().remove(0);
    assert_eq!(body["model"], "test-model");
    assert_eq!(body["max_tokens"], 500);
    assert_eq!(body["temperature"].to_string(), "0.2");
    assert_eq!(body["seed"], 7);
    assert_eq!(body["stream"], true);
    assert_eq!(body["stream_options"], json!({"include_usage": true}));
    assert_eq!(body["response_format"]["type"], "json_schema");
    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
    assert_eq!(body["response_format"]["json_schema"]["schema"], json!({"type": "object"}));
    assert_eq!(body["tools"][0]["type"], "function");
    assert_eq!(body["tools"][0]["function"]["name"], "read");
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[0], json!({"role": "system", "content": "Be short."}));
    assert_eq!(messages[2]["tool_calls"][0]["function"]["arguments"], "{\"path\":\"a\"}");
    assert_eq!(messages[3], json!({"role": "tool", "tool_call_id": "c1", "content": "content"}));
}

#[test]
fn the_same_conversation_gives_the_same_bytes() {
    let server = ModelServer::start([Reply::text("a"), Reply::text("b")]);
    run(async {
        let model = OpenAiModel::open(settings(&server)).await.unwrap();
        for _ in 0..2 {
            model.complete(&request(), &mut |_| {}).await.unwrap();
        }
    });
    let chats = server.chats();
    assert_eq!(chats[0].to_string(), chats[1].to_string());
}

#[test]
fn a_whole_document_instead_of_a_stream_is_an_answer() {
    let completion = answer(Reply::text("all at once").reasoning("why").whole());
    assert_eq!((completion.text.as_str(), completion.reasoning.as_str()), ("all at once", "why"));
    assert_eq!(completion.finish, Finish::Stop);
}

#[test]
fn a_server_that_refuses_to_stream_is_asked_without() {
    let server = ModelServer::builder().refuses_field("stream").replies([Reply::text("plain")]).start();
    assert_eq!(ask(&server).unwrap().text, "plain");
    let chats = server.chats();
    assert_eq!((chats[0]["stream"].clone(), chats[1]["stream"].clone()), (json!(true), json!(false)));
}

#[test]
fn an_unknown_field_is_left_out_once_and_for_all() {
    for field in ["stream_options", "seed", "temperature"] {
        let server = ModelServer::builder().refuses_field(field).replies([Reply::text("a"), Reply::text("b")]).start();
        run(async {
            let model = OpenAiModel::open(settings(&server)).await.unwrap();
            assert_eq!(model.complete(&request(), &mut |_| {}).await.unwrap().text, "a", "{field}");
            assert_eq!(model.complete(&request(), &mut |_| {}).await.unwrap().text, "b", "{field}");
        });
        let has: Vec<bool> = server.chats().iter().map(|chat| chat.get(field).is_some()).collect();
        assert_eq!(has, [true, false, false], "{field}");
    }
}

#[test]
fn a_server_that_wants_max_completion_tokens_gets_it() {
    let refusal =
        "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.";
    let server = ModelServer::start([Reply::status(400, refusal), Reply::text("ok")]);
    assert_eq!(ask(&server).unwrap().text, "ok");
    let second = &server.chats()[1];
    assert_eq!((second.get("max_tokens"), &second["max_completion_tokens"]), (None, &json!(500)));
}

#[test]
fn content_null_and_absent_is_empty() {
    let null = json!({"choices": [{"message": {"role": "assistant", "content": null}, "finish_reason": "stop"}]});
    let absent = json!({"choices": [{"message": {"role": "assistant"}, "finish_reason": "stop"}]});
    for body in [null, absent] {
        assert_eq!(answer(Reply::json(&body)).text, "");
    }
}

#[test]
fn content_as_parts_is_joined() {
    let parts = json!([{"type": "thinking", "thinking": [{"type": "text", "text": "why"}]},
        {"type": "text", "text": "one "}, {"type": "text", "text": "two"}, "!"]);
    let body = json!({"choices": [{"message": {"content": parts}, "finish_reason": "stop"}]});
    let completion = answer(Reply::json(&body));
    assert_eq!((completion.text.as_str(), completion.reasoning.as_str()), ("one two!", "why"));
}

#[test]
fn reasoning_comes_under_two_names_and_in_the_text() {
    assert_eq!(answer(Reply::text("a").reasoning("why")).reasoning, "why");
    let other_name = json!({"choices": [{"message": {"content": "a", "reasoning": "why"}, "finish_reason": "stop"}]});
    assert_eq!(answer(Reply::json(&other_name)).reasoning, "why");
    let both = json!({"choices": [{"message": {"content": "a", "reasoning": "why", "reasoning_content": "why"}, "finish_reason": "stop"}]});
    assert_eq!(answer(Reply::json(&both)).reasoning, "why");
    let in_text = answer(Reply::text("<think>\nwhy\n</think>\n\n{\"tool\":\"done\"}"));
    assert_eq!((in_text.text.as_str(), in_text.reasoning.as_str()), ("{\"tool\":\"done\"}", "\nwhy\n"));
    let unclosed = answer(Reply::text("<think>never closed").finish("length"));
    assert_eq!((unclosed.text.as_str(), unclosed.reasoning.as_str()), ("", "never closed"));
    let opened_by_template = answer(Reply::text("I think.\n</think>\n\nanswer"));
    assert_eq!((opened_by_template.text.as_str(), opened_by_template.reasoning.as_str()), ("answer", "I think.\n"));
}

#[test]
fn llama_cpp_20198_object_arguments_are_read() {
    let calls =
        json!([{"index": 0, "id": "a", "type": "function", "function": {"name": "read", "arguments": {"path": "x"}}}]);
    assert_eq!(calls_of(Reply::calls(calls.clone())), [call("read", "{\"path\":\"x\"}")]);
    assert_eq!(calls_of(Reply::calls(calls).whole()), [call("read", "{\"path\":\"x\"}")]);
}

#[test]
fn null_tool_calls_are_no_calls() {
    let message = json!({"role": "assistant", "content": "text", "tool_calls": null, "function_call": null});
    let completion = answer(Reply::json(&json!({"choices": [{"message": message, "finish_reason": "stop"}]})));
    assert_eq!((completion.text.as_str(), completion.calls.len()), ("text", 0));
}

#[test]
fn a_missing_index_and_a_missing_id_are_no_loss() {
    let calls = json!([{"function": {"name": "read", "arguments": "{\"path\":\"a\"}"}},
        {"function": {"name": "read", "arguments": "{\"path\":\"b\"}"}}]);
    let completion = answer(Reply::calls(calls));
    let arguments: Vec<&str> = completion.calls.iter().map(|call| call.arguments.as_str()).collect();
    assert_eq!(arguments, ["{\"path\":\"a\"}", "{\"path\":\"b\"}"]);
    assert!(!completion.calls[0].id.is_empty() && completion.calls[0].id != completion.calls[1].id);
}

fn stream_of(deltas: &[Value], finish: &str) -> Reply {
    let mut events: Vec<String> = deltas
        .iter()
        .map(|delta| json!({"choices": [{"index": 0, "delta": delta, "finish_reason": null}]}).to_string())
        .collect();
    events.push(json!({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}).to_string());
    events.push("[DONE]".into());
    Reply::events(events)
}

#[test]
fn a_name_repeated_in_every_piece_is_one_name() {
    let piece = |arguments: &str| json!({"tool_calls": [{"index": 0, "id": "a", "function": {"name": "read", "arguments": arguments}}]});
    let reply = stream_of(&[piece("{\"pa"), piece("th\":"), piece("\"x\"}")], "tool_calls");
    assert_eq!(calls_of(reply), [call("read", "{\"path\":\"x\"}")]);
}

#[test]
fn the_end_of_an_answer_has_one_meaning_in_every_dialect() {
    let cases = [
        ("stop", Finish::Stop),
        ("tool_calls", Finish::Stop),
        ("function_call", Finish::Stop),
        ("eos", Finish::Stop),
        ("length", Finish::Length),
        ("max_tokens", Finish::Length),
        ("content_filter", Finish::Other),
        ("something_new", Finish::Other),
    ];
    for (reason, finish) in cases {
        assert_eq!(answer(Reply::text("x").finish(reason)).finish, finish, "{reason}");
        assert_eq!(answer(Reply::text("x").finish(reason).whole()).finish, finish, "{reason}, whole");
    }
}

#[test]
fn stop_at_the_token_limit_is_a_cut() {
    let calls = json!([{"index": 0, "id": "a", "function": {"name": "write", "arguments": "{\"path\":\"x\",\"cont"}}]);
    assert_eq!(answer(Reply::calls(calls).usage(10, 500)).finish, Finish::Length);
}

#[test]
fn a_missing_done_after_the_end_is_fine_and_a_missing_end_before_done_too() {
    assert_eq!(answer(Reply::text("x").without_done().close_delimited()).text, "x");
    assert_eq!(answer(Reply::text("x").without_done()).text, "x");
    let completion = answer(Reply::text("x").without_finish());
    assert_eq!((completion.text.as_str(), completion.finish), ("x", Finish::Stop));
}

#[test]
fn a_server_that_says_nothing_after_the_end_does_not_hold_up_the_answer() {
    let completion = answer(Reply::text("x").without_usage().stall_after("\"finish_reason\":\"stop\"}]}\n\n"));
    assert_eq!((completion.text.as_str(), completion.finish), ("x", Finish::Stop));
}

#[test]
fn use_is_told_or_estimated() {
    let cached = json!({"prompt_tokens": 100, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 80}});
    let completion = answer(Reply::text("x").usage_json(cached));
    assert_eq!((completion.usage.prompt, completion.usage.cached), (Tokens(100), Tokens(80)));
    let untold = answer(Reply::text("abcdefgh").without_usage());
    assert_eq!((untold.usage.output, untold.usage.calls, untold.usage.estimated_calls), (Tokens(2), 1, 1));
    assert_eq!(untold.usage.prompt, Tokens(request().estimate_prompt()));
    let zero = answer(Reply::text("x").usage(0, 0));
    assert_eq!(zero.usage.estimated_calls, 1);
    let timings = json!({"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
        "timings": {"prompt_n": 10, "cache_n": 90, "predicted_n": 3}});
    let completion = answer(Reply::json(&timings));
    assert_eq!((completion.usage.prompt, completion.usage.cached), (Tokens(100), Tokens(90)));
}

#[test]
fn refusals_carry_the_servers_words_and_never_the_key() {
    for (status, words) in
        [(400, "bad"), (401, "Incorrect API key provided: sk-secret-123"), (403, "no"), (404, "no model")]
    {
        let server = ModelServer::start([Reply::status(status, words)]);
        let mut settings = settings(&server);
        settings.api_key = Some("sk-secret-123\n".into());
        let (result, shown) = run(ask_with(settings, &request()));
        let ModelError::Refused(text) = result.unwrap_err() else { panic!("{status} is a refusal") };
        assert!(text.contains(&status.to_string()) && text.contains(&words.replace("sk-secret-123", "***")), "{text}");
        assert!(!text.contains("sk-secret-123") && shown.is_empty(), "{text}");
        assert_eq!(server.chats().len(), 1, "{status} is not tried again");
        assert_eq!(server.requests()[0].headers["authorization"], "Bearer sk-secret-123");
    }
}

#[test]
fn a_long_refusal_is_shortened() {
    let server = ModelServer::start([Reply::status(400, &"words ".repeat(1_000))]);
    let error = ask(&server).unwrap_err().to_string();
    assert!(error.len() < 700, "{}", error.len());
}

#[test]
fn a_web_page_is_no_answer_and_a_redirect_is_not_followed() {
    let page = ModelServer::start([Reply::raw("text/html", "<html>Log in</html>")]);
    let error = ask(&page).unwrap_err();
    assert!(matches!(&error, ModelError::Refused(text) if text.contains("web page")), "{error}");
    let elsewhere = ModelServer::start([Reply::status(307, "").header("location", "http://127.0.0.1:9/v1")]);
    let error = ask(&elsewhere).unwrap_err();
    assert!(matches!(&error, ModelError::Refused(text) if text.contains("http://127.0.0.1:9/v1")), "{error}");
}

#[test]
fn a_refused_format_is_told_as_such() {
    let refusals = [
        (400, "tools param requires --jinja flag"),
        (400, "registry.ollama.ai/library/x does not support tools"),
        (500, "Failed to parse tool call arguments as JSON"),
    ];
    for (status, words) in refusals {
        let server = ModelServer::start([Reply::status(status, words)]);
        let error = run(ask_with(settings(&server), &with_tools(request()))).0.unwrap_err();
        assert_eq!(error, ModelError::FormatRefused(words.into()));
        assert_eq!(server.chats().len(), 1);
    }
}

#[test]
fn a_template_without_a_system_role_gets_its_text_in_the_first_user_message() {
    let server =
        ModelServer::start([Reply::status(500, "Value is not callable: System role not supported"), Reply::text("ok")]);
    assert_eq!(ask(&server).unwrap().text, "ok");
    assert_eq!(server.chats()[1]["messages"], json!([{"role": "user", "content": "Be short.\n\nGo on."}]));
}

#[test]
fn a_template_whose_roles_must_alternate_gets_them_joined() {
    let words = "Conversation roles must alternate user/assistant/user/assistant/...";
    let server = ModelServer::start([Reply::status(500, words), Reply::text("ok")]);
    let mut request = request();
    for text in ["second", "third"] {
        request.messages.push(Message::User { text: text.into() });
    }
    request.messages.push(Message::Assistant { text: "answer".into(), calls: Vec::new() });
    request.messages.push(Message::User { text: "last".into() });
    assert_eq!(run(ask_with(settings(&server), &request)).0.unwrap().text, "ok");
    let expected = json!([{"role": "system", "content": "Be short."},
        {"role": "user", "content": "Go on.\n\nsecond\n\nthird"},
        {"role": "assistant", "content": "answer"}, {"role": "user", "content": "last"}]);
    assert_eq!(server.chats()[1]["messages"], expected);
}

#[test]
fn an_empty_account_is_not_waited_for() {
    let error = json!({"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}});
    let server = ModelServer::start([Reply::status_json(429, &error)]);
    assert!(matches!(ask(&server).unwrap_err(), ModelError::Refused(text) if text.contains("quota")));
}

#[test]
fn a_connection_that_a_local_server_may_be_closing_is_not_used_again() {
    let server = ModelServer::always(Reply::text("ok"));
    run(async {
        let remembered = Some(OpenAiModel::open(settings(&server)).await.unwrap().facts().clone());
        let before = server.connections();
        let model = OpenAiModel::open(crate::OpenAiSettings { remembered, ..settings(&server) }).await.unwrap();
        for _ in 0..5 {
            model.complete(&request(), &mut |_| {}).await.unwrap();
        }
        assert_eq!(server.connections(), before + 5);
    });
}

#[test]
fn settings_and_model_never_show_the_key() {
    let server = ModelServer::start([]);
    let settings = crate::OpenAiSettings { api_key: Some("sk-secret-123".into()), ..settings(&server) };
    assert!(!format!("{settings:?}").contains("sk-secret"));
    assert!(!format!("{:?}", run(OpenAiModel::open(settings)).unwrap()).contains("sk-secret"));
}
