//! What the model is told and what the server must enforce.

use super::*;

#[test]
fn json_instructions_show_each_tool_as_the_object_to_write() {
    assert_eq!(
        instructions(ActionFormat::Json, &tools()),
        "Each reply is one JSON object. It begins with \"thought\", one short sentence about what is wrong or missing and \
         what to do about it, and then calls one tool:\n\
         {\"tool\":\"read\",\"path\":…} (also \"from\":…)  show a file\n\
         {\"tool\":\"write\",\"path\":…,\"content\":…}  create or replace a whole file\n\
         {\"tool\":\"edit\",\"path\":…,\"old\":…,\"new\":…} or \
         {\"tool\":\"edit\",\"path\":…,\"edits\":[{\"old\":…,\"new\":…}]}  replace text in a file\n\
         {\"tool\":\"bash\",\"command\":…}  run a command\n\
         {\"tool\":\"search\",\"pattern\":…} (also \"in\":\"content\"|\"names\")  find text or names\n\
         {\"tool\":\"done\",\"summary\":…}  The task is finished."
    );
}

#[test]
fn the_example_of_the_text_format_is_itself_a_call() {
    let text = instructions(ActionFormat::Text, &tools());
    let fence = &text[text.find("```").unwrap()..text.rfind("```").unwrap() + 3];
    expect(
        "example",
        &read_turn(ActionFormat::Text, &completion(fence), &tools()),
        &Wanted::Calls(vec![("read", json!({"path": "a.txt"}))]),
    );
}

#[test]
fn the_schema_puts_a_thought_and_the_tool_first_and_closes_every_object() {
    let schema = response_schema(&tools());
    let actions = schema["anyOf"].as_array().unwrap();
    let names: Vec<&str> = actions.iter().map(|a| a["properties"]["tool"]["const"].as_str().unwrap()).collect();
    assert_eq!(names, ["read", "write", "edit", "edit", "bash", "search", "done"]);
    for action in actions {
        let fields: Vec<&String> = action["properties"].as_object().unwrap().keys().take(2).collect();
        assert_eq!(fields, ["thought", "tool"]);
        assert_eq!(action["required"][0], "thought");
        assert_eq!(action["required"][1], "tool");
        assert_eq!(action["additionalProperties"], false);
    }
    assert_eq!(actions[2]["required"], json!(["thought", "tool", "path", "old", "new"]));
    assert_eq!(actions[2]["properties"].get("edits"), None, "one way or the other");
    assert_eq!(actions[3]["required"], json!(["thought", "tool", "path", "edits"]));
    assert_eq!(actions[3]["properties"]["edits"]["items"]["additionalProperties"], false);
    assert_eq!(actions[0]["required"], json!(["thought", "tool", "path"]), "optional ones stay optional");
    assert_eq!(actions[0]["properties"]["from"], json!({"type": "integer"}), "no descriptions in a grammar");
    assert_eq!(actions[6]["required"], json!(["thought", "tool", "summary"]));
}

#[test]
fn the_same_tools_give_the_same_bytes() {
    for format in [ActionFormat::Json, ActionFormat::Text, ActionFormat::Native] {
        assert_eq!(instructions(format, &tools()), instructions(format, &tools()));
    }
    assert_eq!(response_schema(&tools()).to_string(), response_schema(&tools()).to_string());
}

#[test]
fn an_answer_that_follows_the_schema_is_read_back() {
    let answer =
        r#"{"thought":"1 is 2","tool":"edit","path":"a.py","edits":[{"old":"1","new":"2"},{"old":"3","new":"4"}]}"#;
    let wanted = json!({"path": "a.py", "edits": [{"old": "1", "new": "2"}, {"old": "3", "new": "4"}]});
    expect(
        "json format",
        &read_turn(ActionFormat::Json, &completion(answer), &tools()),
        &Wanted::Calls(vec![("edit", wanted)]),
    );
}
