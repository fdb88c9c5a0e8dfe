//! What holds for any content, tried with many: a call comes back as it was written, and half a call never runs.

use super::*;

const PIECES: [&str; 28] = [
    "\n",
    "\t",
    "\"",
    "\\",
    "'",
    "`",
    "```",
    "```json\n",
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "//",
    "#",
    "/*",
    "*/",
    "</tool_call>",
    "<tool_call>",
    "<tools>",
    "é",
    "😀",
    "\u{1}",
    "def f():",
    " ",
    "\r\n",
    "${x}",
];

/// A content made of what is hard to read.
fn content(random: &mut fastrand::Rng) -> String {
    (0..random.usize(0..12)).map(|_| PIECES[random.usize(0..PIECES.len())]).collect()
}

/// The same call in every place where a model may put it.
fn places(call: &str) -> Vec<String> {
    vec![
        call.to_owned(),
        format!("```json\n{call}\n```"),
        format!("I do it.\n\n```\n{call}\n```\n"),
        format!("<tool_call>\n{call}\n</tool_call>"),
        format!("First this.\n<tools>\n{call}\n</tools>"),
        format!("[TOOL_CALLS][{call}]"),
        format!("[{call}]"),
    ]
}

#[test]
fn a_call_comes_back_exactly_as_it_was_written() {
    let mut random = fastrand::Rng::with_seed(1);
    for _ in 0..200 {
        let arguments = json!({"path": "a.txt", "content": content(&mut random)});
        let call = json!({"name": "write", "arguments": arguments}).to_string();
        for place in places(&call) {
            let turn = read_turn(ActionFormat::Text, &completion(&place), &tools());
            expect(&place, &turn, &Wanted::Calls(vec![("write", arguments.clone())]));
        }
    }
}

#[test]
fn raw_line_breaks_and_a_trailing_comma_change_no_content() {
    let mut random = fastrand::Rng::with_seed(2);
    for _ in 0..200 {
        let arguments = json!({"path": "a.txt", "content": content(&mut random)});
        let call = json!({"name": "write", "arguments": arguments}).to_string();
        let loose = call.replace("\\\\", "\u{0}").replace("\\n", "\n").replace("\\t", "\t").replace('\u{0}', "\\\\");
        let loose = format!("{},}}", loose.strip_suffix('}').unwrap());
        let turn = read_turn(ActionFormat::Text, &completion(&loose), &tools());
        expect(&loose, &turn, &Wanted::Calls(vec![("write", arguments)]));
    }
}

#[test]
fn the_beginning_of_a_call_runs_either_whole_or_not_at_all() {
    let mut random = fastrand::Rng::with_seed(3);
    for _ in 0..12 {
        let arguments = json!({"path": "a.txt", "content": content(&mut random)});
        let call = json!({"name": "write", "arguments": arguments}).to_string();
        for place in places(&call) {
            for end in (0..place.len()).filter(|end| place.is_char_boundary(*end)) {
                let turn = read_turn(ActionFormat::Text, &completion(&place[..end]), &tools());
                for call in &turn.calls {
                    assert_eq!(Value::Object(call.arguments.clone()), arguments, "{}", &place[..end]);
                }
            }
        }
    }
}

#[test]
fn an_unescaped_quote_never_shortens_the_content() {
    let mut random = fastrand::Rng::with_seed(4);
    for raw in (0..400).map(|round| round % 2 == 0) {
        let (before, after) = (content(&mut random), content(&mut random));
        let quoted = |text: &str| json!(text).to_string();
        let escaped =
            |text: &str| quoted(text)[1..quoted(text).len() - 1].replace("\\n", if raw { "\n" } else { "\\n" });
        let call = format!(
            r#"{{"name": "write", "arguments": {{"path": "a.txt", "content": "{}"{}"}}}}"#,
            escaped(&before),
            escaped(&after)
        );
        for place in places(&call) {
            let turn = read_turn(ActionFormat::Text, &completion(&place), &tools());
            for made in &turn.calls {
                let got = made.arguments["content"].as_str().unwrap();
                assert_eq!(got, format!("{before}\"{after}"), "{place}");
            }
        }
    }
}
