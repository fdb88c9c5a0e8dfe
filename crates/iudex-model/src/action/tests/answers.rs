//! The table of answers.

use super::Wanted::*;
use super::*;

fn read(path: &str) -> Wanted {
    Calls(vec![("read", json!({"path": path}))])
}

fn write(path: &str, content: &str) -> Wanted {
    Calls(vec![("write", json!({"path": path, "content": content}))])
}

fn bash(command: &str) -> Wanted {
    Calls(vec![("bash", json!({"command": command}))])
}

fn edit(path: &str, old: &str, new: &str) -> Wanted {
    Calls(vec![("edit", json!({"path": path, "old": old, "new": new}))])
}

fn done(summary: &str) -> Wanted {
    Calls(vec![("done", json!({"summary": summary}))])
}

/// In the text and the native format alike.
fn in_text(table: Vec<(&str, &str, Wanted)>) {
    for (quirk, answer, wanted) in table {
        expect(quirk, &read_turn(ActionFormat::Text, &completion(answer), &tools()), &wanted);
        expect(quirk, &read_turn(ActionFormat::Native, &completion(answer), &tools()), &wanted);
    }
}

#[test]
fn native_calls() {
    let table: Vec<(&str, Completion, Wanted)> = vec![
        ("arguments as text", native(&[("1", "read", r#"{"path":"a.py"}"#)]), read("a.py")),
        (
            "llama.cpp#20198: arguments as an object, which the wire hands on as its text",
            native(&[("1", "read", "{\"path\": \"a.py\"}\n")]),
            read("a.py"),
        ),
        ("openclaw#69735: arguments encoded twice", native(&[("1", "bash", r#""{\"command\":\"ls\"}""#)]), bash("ls")),
        ("null arguments", native(&[("1", "done", "null")]), Calls(vec![("done", json!({}))])),
        ("no arguments", native(&[("1", "read", "")]), BadArguments),
        ("no id", native(&[("", "read", r#"{"path":"a.py"}"#)]), read("a.py")),
        ("trailing comma", native(&[("1", "read", r#"{"path":"a.py",}"#)]), read("a.py")),
        (
            "hermes-agent#12068: raw line break in a string",
            native(&[("1", "bash", "{\"command\":\"echo a\necho b\"}")]),
            bash("echo a\necho b"),
        ),
        ("gpt-oss: the name has a prefix", native(&[("1", "functions.read", r#"{"path":"a.py"}"#)]), read("a.py")),
        ("the name in capitals", native(&[("1", "Read", r#"{"path":"a.py"}"#)]), read("a.py")),
        ("arguments are the bare command", native(&[("1", "bash", "ls -l")]), bash("ls -l")),
        ("an unknown tool", native(&[("1", "WebSearch", r#"{"query":"x"}"#)]), UnknownTool),
        ("arguments cut inside a string", native(&[("1", "write", r#"{"path":"a.py","content":"def f"#)]), Broken),
        (
            "one good and one bad call: neither runs",
            native(&[("1", "read", r#"{"path":"a"}"#), ("2", "write", r#"{"path":"b"}"#)]),
            BadArguments,
        ),
        (
            "the same call sent again, id and all",
            native(&[("1", "bash", r#"{"command":"date"}"#), ("1", "bash", r#"{"command":"date"}"#)]),
            bash("date"),
        ),
        (
            "two calls",
            native(&[("1", "read", r#"{"path":"a"}"#), ("2", "bash", r#"{"command":"ls"}"#)]),
            Calls(vec![("read", json!({"path": "a"})), ("bash", json!({"command": "ls"}))]),
        ),
        (
            "the same command twice is two calls",
            native(&[("1", "bash", r#"{"command":"date"}"#), ("2", "bash", r#"{"command":"date"}"#)]),
            Calls(vec![("bash", json!({"command": "date"})), ("bash", json!({"command": "date"}))]),
        ),
    ];
    for (quirk, completion, wanted) in table {
        expect(quirk, &read_turn(ActionFormat::Native, &completion, &tools()), &wanted);
    }
}

#[test]
fn the_id_of_a_native_call_is_kept() {
    let turn = read_turn(ActionFormat::Native, &native(&[("call_7", "read", r#"{"path":"a"}"#)]), &tools());
    assert_eq!(turn.calls[0].id.as_deref(), Some("call_7"));
}

#[test]
fn calls_as_text() {
    in_text(vec![
        ("openclaude#433: bare JSON", r#"{"name": "read", "arguments": {"path": "a.py"}}"#, read("a.py")),
        (
            "hermes-agent#107125: bare JSON over lines",
            "{\n  \"name\": \"bash\",\n  \"arguments\": {\n    \"command\": \"echo hi\"\n  }\n}\n",
            bash("echo hi"),
        ),
        (
            "measured here: fenced JSON",
            "```json\n{\n  \"name\": \"write\",\n  \"arguments\": {\n    \"path\": \"fruit.txt\",\n    \"content\": \"pineapple\"\n  }\n}\n```",
            write("fruit.txt", "pineapple"),
        ),
        (
            "measured here: <tools>",
            "<tools>\n{\"name\": \"write\", \"arguments\": {\"content\": \"pineapple\", \"path\": \"fruit.txt\"}}\n</tools>",
            write("fruit.txt", "pineapple"),
        ),
        (
            "<tool_call>",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n</tool_call>",
            read("a.py"),
        ),
        (
            "<tool_call> after prose",
            "I look at it first.\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n</tool_call>",
            read("a.py"),
        ),
        (
            "<tool_call> in the line of the prose",
            "I look at it. <tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}</tool_call>",
            read("a.py"),
        ),
        (
            "prose after a tag that has its own lines",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n</tool_call>\nI wait for the result.",
            read("a.py"),
        ),
        (
            "two <tool_call>",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n</tool_call>",
            Calls(vec![("read", json!({"path": "a"})), ("read", json!({"path": "b"}))]),
        ),
        (
            "two objects in one <tools>",
            "<tools>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n</tools>",
            Calls(vec![("read", json!({"path": "a"})), ("read", json!({"path": "b"}))]),
        ),
        (
            "a list of calls",
            r#"[{"name":"read","arguments":{"path":"a"}},{"name":"bash","arguments":{"command":"ls"}}]"#,
            Calls(vec![("read", json!({"path": "a"})), ("bash", json!({"command": "ls"}))]),
        ),
        (
            "<tool_call> without its end",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}",
            read("a.py"),
        ),
        (
            "hermes-agent PR#742: only the closing tag",
            "{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n</tool_call>",
            read("a.py"),
        ),
        (
            "the opening tag in place of the closing one",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n<tool_call>",
            read("a.py"),
        ),
        (
            "a brace too many (llama.cpp#12256)",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}}\n</tool_call>",
            read("a.py"),
        ),
        (
            "a fence in a tag",
            "<tool_call>\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n```\n</tool_call>",
            read("a.py"),
        ),
        (
            "a tag in a fence",
            "```xml\n<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a.py\"}}\n</tool_call>\n```",
            read("a.py"),
        ),
        (
            "the imagined result is not read",
            "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n<tool_response>\nx\n</tool_response>\n<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"rm x\"}}\n</tool_call>",
            read("a"),
        ),
        ("<function=name> with JSON", "<function=read>{\"path\": \"a.py\"}</function>", read("a.py")),
        (
            "ollama#17353: <function=name> with parameters",
            "<function=bash>\n<parameter=command>\necho hi\n</parameter>\n</function>\n</tool_call>",
            bash("echo hi"),
        ),
        (
            "<function=name> in <tool_call> after prose (ollama#16686)",
            "I'll run it.\n\n<tool_call>\n<function=write>\n<parameter=path>\na.html\n</parameter>\n<parameter=content>\n<p>\n  hi\n</p>\n</parameter>\n</function>\n</tool_call>",
            write("a.html", "<p>\n  hi\n</p>"),
        ),
        (
            "a parameter closed by the function (ollama#17353)",
            "<function=bash>\n<parameter=command>\nls\n</function>",
            bash("ls"),
        ),
        (
            "a number as a parameter",
            "<function=read><parameter=path>a.py</parameter><parameter=from>20</parameter></function>",
            Calls(vec![("read", json!({"path": "a.py", "from": 20}))]),
        ),
        (
            "a list as a parameter",
            "<function=edit><parameter=path>a</parameter><parameter=edits>[{\"old\": \"1\", \"new\": \"2\"}]</parameter></function>",
            Calls(vec![("edit", json!({"path": "a", "edits": [{"old": "1", "new": "2"}]}))]),
        ),
        (
            "<invoke name> (hermes-agent#27834)",
            "<minimax:tool_call>\n  <invoke name=\"bash\">\n    <parameter name=\"command\">ls</parameter>\n  </invoke>\n</minimax:tool_call>",
            bash("ls"),
        ),
        (
            "Llama: python tag",
            "<|python_tag|>{\"name\": \"bash\", \"parameters\": {\"command\": \"ls\"}}<|eom_id|>",
            bash("ls"),
        ),
        (
            "Llama: type function",
            r#"{"type": "function", "name": "bash", "parameters": {"command": "ls"}}"#,
            bash("ls"),
        ),
        ("Mistral: [TOOL_CALLS]", r#"[TOOL_CALLS][{"name": "bash", "arguments": {"command": "ls"}}]"#, bash("ls")),
        ("Mistral: [ARGS]", r#"[TOOL_CALLS]bash[ARGS]{"command": "ls"}"#, bash("ls")),
        ("Phi: functools", r#"functools[{"name": "bash", "arguments": {"command": "ls"}}]"#, bash("ls")),
        (
            "OpenAI's nesting",
            r#"{"type": "function", "function": {"name": "bash", "arguments": "{\"command\": \"ls\"}"}}"#,
            bash("ls"),
        ),
        ("a wrapped list", r#"{"tool_calls": [{"name": "bash", "arguments": {"command": "ls"}}]}"#, bash("ls")),
        ("flat, as in the json format", r#"{"tool": "write", "path": "a", "content": "b"}"#, write("a", "b")),
        ("tool and args", r#"{"tool": "bash", "args": {"command": "ls"}}"#, bash("ls")),
        ("action and input", r#"{"action": "bash", "input": {"command": "ls"}}"#, bash("ls")),
        ("the tool's name as the key", r#"{"bash": {"command": "ls"}}"#, bash("ls")),
        ("thoughts beside the call", r#"{"thought": "look", "tool": "read", "path": "a.py"}"#, read("a.py")),
        (
            "arguments beside the wrapper",
            r#"{"name": "write", "path": "a", "arguments": {"content": "b"}}"#,
            write("a", "b"),
        ),
        ("done as text", r#"{"tool": "done", "summary": "all good"}"#, done("all good")),
        ("done as a call", "```json\n{\"name\": \"done\", \"arguments\": {\"summary\": \"ok\"}}\n```", done("ok")),
        (
            "prose and then one fence",
            "I will create the file.\n\n```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"content\": \"b\"}}\n```\n",
            write("a", "b"),
        ),
        (
            "a fence without a language",
            "```\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```",
            bash("ls"),
        ),
        ("a fence in one line", "```json {\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}} ```", bash("ls")),
        ("a fence without its end", "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}", bash("ls")),
        (
            "a fence and the end token",
            "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}}\n```<|im_end|>",
            bash("ls"),
        ),
        (
            "fences inside the content",
            "```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"R.md\", \"content\": \"# R\\n```sh\\nls\\n```\\n\"}}\n```",
            write("R.md", "# R\n```sh\nls\n```\n"),
        ),
        (
            "fences inside the content, with raw line breaks",
            "```json\n{\"name\": \"write\", \"arguments\": {\"path\": \"R.md\", \"content\": \"# R\n```sh\nls\n```\n\"}}\n```",
            write("R.md", "# R\n```sh\nls\n```\n"),
        ),
        (
            "a call inside the content",
            r#"{"tool":"write","path":"t.md","content":"<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"rm x\"}}</tool_call>"}"#,
            write("t.md", "<tool_call>{\"name\":\"bash\",\"arguments\":{\"command\":\"rm x\"}}</tool_call>"),
        ),
        (
            "reasoning left in the text",
            "<think>\nwhat about {\"tool\":\"bash\",\"command\":\"rm x\"}\n</think>\n{\"tool\":\"read\",\"path\":\"a.py\"}",
            read("a.py"),
        ),
        (
            "openclaude#557: filename for path",
            "```json\n{\"name\": \"Write\", \"arguments\": {\"filename\": \"t.txt\", \"content\": \"x\"}}\n```",
            write("t.txt", "x"),
        ),
    ]);
}

#[test]
fn other_names_of_parameters() {
    in_text(vec![
        (
            "names of another harness",
            r#"{"name": "edit", "arguments": {"file_path": "a.py", "old_string": "1", "new_string": "2"}}"#,
            edit("a.py", "1", "2"),
        ),
        ("cmd for command", r#"{"tool": "bash", "cmd": "ls"}"#, bash("ls")),
        ("two candidates are no answer", r#"{"tool": "read", "file_path": "a", "filename": "b"}"#, BadArguments),
    ]);
}

#[test]
fn what_is_no_call() {
    in_text(vec![
        ("nothing", "", Plain),
        ("prose", "The function is fixed now.", Plain),
        ("narrated next step", "Now I will run the tests.", Plain),
        (
            "llama.cpp#18183: sample data in prose",
            "Use this: const s = '{\"name\": \"Bingo\", \"age\": 30}'; it works.",
            Plain,
        ),
        ("data as the whole answer", r#"{"name": "Bingo", "age": 30}"#, Plain),
        ("a manifest named like a tool", "```json\n{\"name\": \"search\", \"version\": \"1.0.0\"}\n```", Plain),
        ("code in a fence", "Here it is:\n```python\nd = {'name': 'x'}\nprint(d)\n```", Plain),
        ("XML that has <tools>", "Add <tools>hammer</tools> to the file.", Plain),
        (
            "a sample call in the middle of prose",
            "You could send {\"name\": \"bash\", \"arguments\": {\"command\": \"rm -rf x\"}} to delete it.",
            Ambiguous,
        ),
        (
            "a sample call in a fence, and prose after it",
            "For example:\n```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"rm -rf x\"}}\n```\nThat would delete it.",
            Ambiguous,
        ),
        (
            "two fences with calls",
            "```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"b\"}}\n```",
            Ambiguous,
        ),
        (
            "a fence of code and then one with a call",
            "```python\nx = 1\n```\nNow I write it:\n```json\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n```",
            Ambiguous,
        ),
        ("bare JSON after prose", "I read it.\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}", Ambiguous),
        (
            "prose after bare JSON",
            "{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\nThis reads the file.",
            Ambiguous,
        ),
        (
            "a quoted tag",
            "Write `<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>` to read.",
            Ambiguous,
        ),
        (
            "a tag in a sentence",
            "The form is <tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>, as you know.",
            Ambiguous,
        ),
        ("two fences without a call", "```sh\nls\n```\nand\n```sh\npwd\n```", Plain),
        (
            "openclaude#433: a tool that is not there",
            r#"{"name": "WebSearch", "arguments": {"query": "repository structure"}}"#,
            UnknownTool,
        ),
        (
            "thClaws#50: a tool that is not there, fenced",
            "```json\n{ \"name\": \"Skill\", \"arguments\": { \"name\": \"none\" } }\n```",
            UnknownTool,
        ),
        ("an argument is missing", r#"{"name": "write", "arguments": {"path": "a"}}"#, BadArguments),
        (
            "content as an object is not turned into text",
            r#"{"tool": "write", "path": "a.json", "content": {"a": 1}}"#,
            BadArguments,
        ),
        ("an edit without any change", r#"{"tool": "edit", "path": "a"}"#, BadArguments),
        ("half an edit", r#"{"tool": "edit", "path": "a", "old": "x"}"#, BadArguments),
        ("a wrong choice", r#"{"tool": "search", "pattern": "x", "in": "everywhere"}"#, BadArguments),
        ("Llama: written as code", "[read(path=\"a.py\")]", Broken),
    ]);
}

#[test]
fn broken_json() {
    in_text(vec![
        ("trailing comma", "{\"tool\": \"read\", \"path\": \"a.py\",}", read("a.py")),
        (
            "trailing comma in a list",
            r#"{"tool": "edit", "path": "a", "edits": [{"old": "1", "new": "2"},]}"#,
            Calls(vec![("edit", json!({"path": "a", "edits": [{"old": "1", "new": "2"}]}))]),
        ),
        ("the last brace is missing", r#"{"name": "bash", "arguments": {"command": "ls"}"#, bash("ls")),
        (
            "the last brace is missing in a fence",
            "```json\n{\"name\": \"bash\", \"arguments\": {\"command\": \"ls\"}\n```",
            bash("ls"),
        ),
        (
            "a bracket is missing before a brace",
            r#"{"tool": "edit", "path": "a", "edits": [{"old": "1", "new": "2"}}"#,
            Calls(vec![("edit", json!({"path": "a", "edits": [{"old": "1", "new": "2"}]}))]),
        ),
        (
            "raw line breaks and tabs in a string",
            "{\"tool\": \"write\", \"path\": \"a.py\", \"content\": \"def f():\n\treturn 1\n\"}",
            write("a.py", "def f():\n\treturn 1\n"),
        ),
        ("single quotes", "{'tool': 'read', 'path': 'a.py'}", read("a.py")),
        (
            "Python literals",
            "{\"tool\": \"read\", \"path\": \"a.py\", \"from\": None, \"verbose\": True}",
            read("a.py"),
        ),
        ("typographic quotes", "{“tool”: “read”, “path”: “a.py”}", read("a.py")),
        ("keys without quotes", "{tool: \"read\", path: \"a.py\"}", read("a.py")),
        ("comments", "{\n  // look first\n  \"tool\": \"read\", /* the file */ \"path\": \"a.py\"\n}", read("a.py")),
        ("an escaped apostrophe", r#"{"tool": "bash", "command": "echo \'hi\'"}"#, bash("echo 'hi'")),
        (
            "a regular expression with single backslashes",
            r#"{"tool": "search", "pattern": "\d+\s*\("}"#,
            Calls(vec![("search", json!({"pattern": r"\d+\s*\("}))]),
        ),
        (
            "triple quotes",
            "{\"tool\": \"write\", \"path\": \"a.py\", \"content\": \"\"\"\nprint(\"hi\")\n\"\"\"}",
            write("a.py", "\nprint(\"hi\")\n"),
        ),
        (
            "a template string",
            "{\"tool\": \"write\", \"path\": \"a.js\", \"content\": `say(\"hi\")`}",
            write("a.js", "say(\"hi\")"),
        ),
        (
            "strings joined by +",
            "{\"tool\": \"write\", \"path\": \"a\", \"content\": \"x\\n\" +\n \"y\\n\"}",
            write("a", "x\ny\n"),
        ),
        (
            "escapes of every kind",
            r#"{"tool": "bash", "command": "\u00e9 \ud83d\ude00 \/ \\ \" \t"}"#,
            bash("é 😀 / \\ \" \t"),
        ),
        (
            "hermes-agent PR#36271: quotes inside are not escaped",
            r#"{"tool": "write", "path": "a.py", "content": "print("hi")"}"#,
            Broken,
        ),
        ("an apostrophe in single quotes", "{'tool': 'bash', 'command': 'echo it's'}", Broken),
        (
            "escapes in triple quotes could mean two things",
            "{\"tool\": \"write\", \"path\": \"a\", \"content\": \"\"\"a\\n\"\"\"}",
            Broken,
        ),
        ("a placeholder in a template string", "{\"tool\": \"write\", \"path\": \"a\", \"content\": `${x}`}", Broken),
        (
            "cut inside a string though the server says stop",
            r#"{"tool": "write", "path": "a.py", "content": "def f("#,
            Broken,
        ),
        ("cut after a comma", r#"{"tool": "write", "path": "a.py","#, Broken),
        ("a key twice with two values", r#"{"tool": "bash", "command": "ls", "command": "pwd"}"#, Broken),
        ("half a character", r#"{"tool": "bash", "command": "\ud83d"}"#, Broken),
        (
            "a comment would hide the half of a string",
            "{\"tool\": \"write\", \"path\": \"a\", \"content\": \"\" # \"}",
            Broken,
        ),
        (
            "broken in a tag",
            "<tool_call>\n{\"name\": \"bash\", \"arguments\": {\"command\": \"echo \"hi\"\"}}\n</tool_call>",
            Broken,
        ),
        ("a tag without JSON", "<tool_call>\nread a.py\n</tool_call>", Broken),
        (
            "whole numbers as text",
            r#"{"tool": "read", "path": "a.py", "from": "20"}"#,
            Calls(vec![("read", json!({"path": "a.py", "from": 20}))]),
        ),
        (
            "a float for a whole number",
            r#"{"tool": "read", "path": "a.py", "from": 20.0}"#,
            Calls(vec![("read", json!({"path": "a.py", "from": 20}))]),
        ),
        ("words for a number", r#"{"tool": "read", "path": "a.py", "from": "the top"}"#, BadArguments),
        (
            "one edit instead of a list",
            r#"{"tool": "edit", "path": "a", "edits": {"old": "1", "new": "2"}}"#,
            Calls(vec![("edit", json!({"path": "a", "edits": [{"old": "1", "new": "2"}]}))]),
        ),
        (
            "the list as text",
            r#"{"tool": "edit", "path": "a", "edits": "[{\"old\": \"1\", \"new\": \"2\"}]"}"#,
            Calls(vec![("edit", json!({"path": "a", "edits": [{"old": "1", "new": "2"}]}))]),
        ),
        ("a number as content", r#"{"tool": "write", "path": "a", "content": 42}"#, write("a", "42")),
    ]);
}

#[test]
fn nothing_of_a_cut_answer_is_a_call() {
    let call = r#"{"tool": "write", "path": "a", "content": "b"}"#;
    let answers = [
        call,
        "I will now",
        "```json\n{\"tool\": \"wri",
        "<tool_call>\n{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}\n</tool_call>\n\n\n",
    ];
    for answer in answers {
        for finish in [Finish::Length, Finish::Runaway, Finish::Other] {
            for format in [ActionFormat::Json, ActionFormat::Native, ActionFormat::Text] {
                let cut = Completion { finish, ..completion(answer) };
                expect(answer, &read_turn(format, &cut, &tools()), &Cut);
            }
        }
    }
    let cut = Completion { finish: Finish::Length, ..native(&[("1", "read", r#"{"path":"a"}"#)]) };
    expect("a native call, cut", &read_turn(ActionFormat::Native, &cut, &tools()), &Cut);
}

#[test]
fn in_the_json_format_everything_that_begins_like_json_is_meant() {
    let table = vec![
        ("unknown tool", r#"{"tool": "delete", "path": "a"}"#, UnknownTool),
        ("no tool", r#"{"path": "a"}"#, Broken),
        ("broken", r#"{"path": "a" "#.trim(), Broken),
        ("prose", "I am done.", Plain),
        ("fenced although the schema forbids it", "```json\n{\"tool\": \"read\", \"path\": \"a\"}\n```", read("a")),
        ("white space around", "\n {\"tool\": \"read\", \"path\": \"a\"} \n", read("a")),
    ];
    for (quirk, answer, wanted) in table {
        expect(quirk, &read_turn(ActionFormat::Json, &completion(answer), &tools()), &wanted);
    }
}

#[test]
fn the_prose_before_a_call_is_its_text() {
    let answer = "I look first.\n```json\n{\"tool\": \"read\", \"path\": \"a\"}\n```";
    assert_eq!(read_turn(ActionFormat::Text, &completion(answer), &tools()).text, "I look first.");
    let answer = "First.\n<tool_call>{\"name\": \"read\", \"arguments\": {\"path\": \"a\"}}</tool_call>";
    assert_eq!(read_turn(ActionFormat::Text, &completion(answer), &tools()).text, "First.");
}

#[test]
fn the_message_about_broken_json_says_what_to_mend() {
    let answer = r#"{"tool": "write", "path": "a.py", "content": "print("hi")"}"#;
    let trouble = read_turn(ActionFormat::Text, &completion(answer), &tools()).trouble.unwrap();
    let message = trouble.to_string();
    assert!(message.contains(r#"write \" there"#) && message.contains("hi"), "{message}");
    let answer = r#"{"tool": "write", "path": "a.py"}"#;
    let message = read_turn(ActionFormat::Text, &completion(answer), &tools()).trouble.unwrap().to_string();
    assert!(message.contains("\"content\" is missing"), "{message}");
}

#[test]
fn hostile_text_ends_in_an_answer() {
    let deep = "[".repeat(100_000);
    let nested = format!("{}1{}", "{\"a\":".repeat(50_000), "}".repeat(50_000));
    let braces = "{ ".repeat(20_000);
    let tags = "<tool_call>".repeat(5_000);
    let fences = "```".repeat(10_000);
    for text in [deep, nested, braces, tags, fences] {
        let turn = read_turn(ActionFormat::Text, &completion(&text), &tools());
        assert!(turn.calls.is_empty());
    }
}
