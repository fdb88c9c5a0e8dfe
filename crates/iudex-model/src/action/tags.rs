//! Calls in tags, as the chat templates of several families write them: `<tool_call>`, `<tools>`, `<function=…>`,
//! `[TOOL_CALLS]` and kin.
//!
//! Never: a tag that is quoted in a sentence, and nothing that a model imagines as the result of its call.

use serde_json::{Map, Value};

use super::extract::{Found, read_run};
use super::meaning::{self, Meaning};
use super::repair::Fault;
use super::{ToolSpec, Trouble};

/// Tags that enclose JSON or a `<function=…>`.
const PAIRS: [(&str, &str); 7] = [
    ("<tool_call>", "</tool_call>"),
    ("<tools>", "</tools>"),
    ("<function_call>", "</function_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_use>", "</tool_use>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<|tool_call|>", "<|/tool_call|>"),
];

/// Marks after which the rest of the answer is JSON.
const LEADERS: [&str; 3] = ["[TOOL_CALLS]", "<|python_tag|>", "functools"];

/// Closing tags that may stand alone, when the model forgot the opening one.
const CLOSING: [&str; 5] = ["</parameter>", "</function>", "</invoke>", "</tool>", "</function_calls>"];

/// Where a model goes on with what it imagines as the answer to its call.
const IMAGINED: [&str; 5] = ["<tool_response>", "<tool_result>", "<|im_start|>", "<|start_header_id|>", "Observation:"];

enum Mark {
    Pair { open: &'static str, close: &'static str },
    Leader(&'static str),
    Function { name: String, length: usize },
}

/// Where the first tag of a call stands, at or after `from`.
pub(super) fn find(text: &str, from: usize) -> Option<usize> {
    text[from..].match_indices(['<', '[', 'f']).map(|(at, _)| from + at).find(|at| mark(&text[*at..]).is_some())
}

fn mark(text: &str) -> Option<Mark> {
    if let Some((open, close)) = PAIRS.iter().find(|(open, _)| text.starts_with(open)) {
        // `<tools>` is also a word of other people's XML.
        let is_call = *open != "<tools>" || text[open.len()..].trim_start().starts_with(['{', '[', '<', '`']);
        return is_call.then_some(Mark::Pair { open, close });
    }
    if let Some(leader) = LEADERS.iter().find(|leader| text.starts_with(**leader)) {
        let is_call = *leader != "functools" || text[leader.len()..].starts_with('[');
        return is_call.then_some(Mark::Leader(leader));
    }
    let (name, length) = named_tag(text, "function").or_else(|| named_tag(text, "invoke"))?;
    Some(Mark::Function { name, length })
}

/// `<tag=name>` or `<tag name="name">` at the start of the text: the name, and the length of the tag.
fn named_tag(text: &str, tag: &str) -> Option<(String, usize)> {
    let rest = text.strip_prefix('<')?.strip_prefix(tag)?;
    let rest = rest.strip_prefix('=').or_else(|| rest.trim_start().strip_prefix("name="))?;
    let end = rest.find('>')?;
    let name = rest[..end].trim().trim_matches(['"', '\'']);
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':'));
    is_name.then(|| (name.to_owned(), text.len() - rest.len() + end + 1))
}

/// What is left of a text after closing tags and white space.
pub(super) fn after_closing(text: &str) -> &str {
    let mut rest = text.trim();
    let tags = || PAIRS.iter().map(|(_, close)| *close).chain(CLOSING);
    while let Some(shorter) = tags().find_map(|tag| rest.strip_prefix(tag)) {
        rest = shorter.trim_start();
    }
    rest
}

/// Reads every tagged call from `start` on, where the first tag stands.
pub(super) fn read(body: &str, start: usize, tools: &[ToolSpec]) -> Found {
    let before = &body[..start];
    if before.trim_end_matches(' ').ends_with(['`', '"', '\'']) {
        return quoted(body, tools, start);
    }
    let mut meanings = Vec::new();
    let mut rest = &body[start..];
    loop {
        rest = after_closing(rest);
        if rest.is_empty() || IMAGINED.iter().any(|token| rest.starts_with(token)) {
            break;
        }
        let read = match mark(rest) {
            Some(Mark::Pair { open, close }) => in_pair(&rest[open.len()..], open, close, tools),
            Some(Mark::Leader(leader)) => after_leader(&rest[leader.len()..], tools),
            Some(Mark::Function { name, length }) => in_function(&name, &rest[length..], tools),
            None => break,
        };
        let (found, after) = match read {
            Ok(read) => read,
            Err(trouble) => return Found::Trouble(trouble),
        };
        meanings.extend(found);
        rest = match next_tag(after) {
            Next::Here(rest) => rest,
            // A closing tag that closes nothing: the first one stood in a string whose quotes are not escaped.
            Next::End if closes_nothing(after_closing(after)) => {
                return Found::Trouble(Trouble::Ambiguous);
            }
            Next::End => break,
            Next::SameLine => {
                meanings.retain(|meaning| !matches!(meaning, Meaning::Data));
                return if meanings.is_empty() { Found::Nothing } else { Found::Trouble(Trouble::Ambiguous) };
            }
        };
    }
    Found::from_meanings(before, meanings)
}

/// A tag in quotes is an example; when it would be a call, the model is asked for one.
fn quoted(body: &str, tools: &[ToolSpec], start: usize) -> Found {
    match read(&body[start..], 0, tools) {
        Found::Calls { .. } => Found::Trouble(Trouble::Ambiguous),
        other => other,
    }
}

/// True when a closing tag follows that no opening one belongs to, before what the model imagines.
fn closes_nothing(rest: &str) -> bool {
    let imagined = IMAGINED.iter().filter_map(|token| rest.find(token)).min().unwrap_or(rest.len());
    PAIRS.iter().any(|(_, close)| rest[..imagined].contains(close))
}

enum Next<'a> {
    Here(&'a str),
    End,
    /// Prose goes on in the line of the tag: the tag is part of a sentence.
    SameLine,
}

fn next_tag(after: &str) -> Next<'_> {
    let rest = after_closing(after);
    if rest.is_empty() || IMAGINED.iter().any(|token| rest.starts_with(token)) {
        return Next::End;
    }
    if mark(rest).is_some() {
        return Next::Here(rest);
    }
    let gap = &after[..after.len() - rest.len()];
    if !gap.contains('\n') {
        return Next::SameLine;
    }
    find(rest, 0).map_or(Next::End, |at| Next::Here(&rest[at..]))
}

type Read<'a> = Result<(Vec<Meaning>, &'a str), Trouble>;

/// The inside of a pair: JSON, fenced JSON, or `<function=…>`. The closing tag may be missing.
fn in_pair<'a>(inside: &'a str, open: &str, close: &str, tools: &[ToolSpec]) -> Read<'a> {
    let surely = open != "<tools>";
    let mut text = inside.trim_start();
    // An opening tag in place of the closing one.
    if text.is_empty() || text.starts_with(open) || text.starts_with(close) {
        return Ok((Vec::new(), text));
    }
    if let Some(fenced) = text.strip_prefix("```") {
        text = fenced.trim_start_matches(|c: char| c.is_ascii_alphanumeric()).trim_start();
    }
    if let Some(Mark::Function { .. }) = mark(text) {
        return Ok((Vec::new(), text));
    }
    match read_run(text) {
        Ok(run) => {
            let rest = run.rest.strip_prefix("```").map_or(run.rest, str::trim_start);
            let closed = rest.is_empty() || rest.starts_with(close) || rest.starts_with(open) || rest.starts_with("</");
            let imagined = IMAGINED.iter().any(|token| rest.starts_with(token));
            if !(closed || imagined) {
                return Err(Trouble::Ambiguous);
            }
            let rest = rest.strip_prefix(close).unwrap_or(rest);
            Ok((run.values.iter().map(|value| meaning::of_value(value, surely, tools)).collect(), rest))
        }
        Err(Fault(fault)) if surely || text.starts_with(['{', '[']) => Err(Trouble::Broken(fault)),
        Err(_) => Ok((Vec::new(), text.split_once(close).map_or("", |(_, rest)| rest))),
    }
}

/// After a leader: JSON, or `name{…}` and `name[ARGS]{…}`.
fn after_leader<'a>(text: &'a str, tools: &[ToolSpec]) -> Read<'a> {
    let text = text.trim_start();
    let name_end = text.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.' | '-'))).unwrap_or(text.len());
    let (name, rest) = text.split_at(name_end);
    let rest = rest.strip_prefix("[ARGS]").unwrap_or(rest);
    let run = read_run(rest).map_err(|Fault(fault)| Trouble::Broken(fault))?;
    let meanings = match (name.is_empty(), run.values.first()) {
        (false, Some(Value::Object(given))) => vec![meaning::of_parts(name, given, tools)],
        _ => run.values.iter().map(|value| meaning::of_value(value, true, tools)).collect(),
    };
    Ok((meanings, run.rest))
}

/// The inside of `<function=name>`: a JSON object, or `<parameter=…>` texts, or nothing.
fn in_function<'a>(name: &str, inside: &'a str, tools: &[ToolSpec]) -> Read<'a> {
    let text = inside.trim_start();
    if text.starts_with('{') {
        let run = read_run(text).map_err(|Fault(fault)| Trouble::Broken(fault))?;
        let Some(Value::Object(given)) = run.values.first() else {
            return Err(Trouble::Broken("the arguments must be an object".to_owned()));
        };
        return Ok((vec![meaning::of_parts(name, given, tools)], run.rest));
    }
    let mut given = Map::new();
    let mut rest = text;
    while let Some((parameter, length)) = named_tag(rest, "parameter") {
        let (value, after) = parameter_value(&rest[length..])?;
        if given.insert(parameter.clone(), Value::from(value)).is_some() {
            return Err(Trouble::Broken(format!("the parameter {parameter:?} is there twice")));
        }
        rest = after.trim_start();
    }
    if given.is_empty() && !(rest.is_empty() || rest.starts_with("</")) {
        return Err(Trouble::Broken("neither JSON nor <parameter=…> follows".to_owned()));
    }
    Ok((vec![meaning::of_parts(name, &given, tools)], rest))
}

/// The text of a parameter. Its closing tag is the first one that only another tag or the end follows, so that a file
/// may contain `</parameter>` in a line; where the model forgot it, the function's closing tag ends the text.
fn parameter_value(text: &str) -> Result<(&str, &str), Trouble> {
    const CLOSE: &str = "</parameter>";
    const ENDS: [&str; 2] = ["</function>", "</invoke>"];
    let fits = |rest: &str| {
        let rest = rest.trim_start();
        rest.is_empty() || named_tag(rest, "parameter").is_some() || after_closing(rest).len() < rest.len()
    };
    let closed = text.match_indices(CLOSE).find(|(at, _)| fits(&text[at + CLOSE.len()..]));
    let (value, rest) = if let Some((at, _)) = closed {
        (&text[..at], &text[at + CLOSE.len()..])
    } else {
        let end = ENDS.iter().find_map(|end| text.find(end));
        let end = end.filter(|end| !text[..*end].contains("<parameter"));
        let end = end.ok_or_else(|| Trouble::Broken("a <parameter=…> is not closed".to_owned()))?;
        text.split_at(end)
    };
    let value = value.strip_prefix("\r\n").or_else(|| value.strip_prefix('\n')).unwrap_or(value);
    let value = value.strip_suffix('\n').map_or(value, |value| value.strip_suffix('\r').unwrap_or(value));
    Ok((value, rest))
}
