//! `write`: creates or replaces a whole file. Keeps mode, byte order mark and CRLF of the file that it replaces.

use std::collections::HashSet;

use iudex_model::ToolSpec;
use serde_json::{Map, Value, json};

use super::file::{self, Found};
use super::place::{Place, Resolved};
use super::text::{Document, Encoding};
use super::{ToolResult, arguments, count, one_line};

/// Files above this size are replaced without a look at what they hold.
const MOST_LOOKED_AT: u64 = 16 << 20;

/// Lost definitions that are named.
const MOST_GONE: usize = 5;

/// Characters that are shown of one.
const MOST_OF_A_LINE: usize = 60;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "write",
        description: "Create or replace a whole file.",
        parameters: json!({
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        }),
    }
}

pub(super) fn run(place: &Place, arguments: &Map<String, Value>) -> Result<ToolResult, String> {
    let target = place.for_writing(arguments::text(arguments, "path")?)?;
    let content = arguments::text(arguments, "content")?;
    match without_fence(&target.shown, content) {
        Some(inner) => {
            let mut result = put(place, &target, &inner)?;
            result.text.push_str(" The ``` fence around the content was left out.");
            Ok(result)
        }
        None => put(place, &target, content),
    }
}

/// The content of the one fence that a small model wraps a whole file in, as if it answered a person. `None` when there
/// is no such fence, and for files in which a fence belongs.
fn without_fence(path: &str, content: &str) -> Option<String> {
    let may_hold_fences = path.rsplit_once('.').is_some_and(|(_, ending)| {
        ["md", "markdown", "mdx", "rst", "adoc", "txt"].iter().any(|known| ending.eq_ignore_ascii_case(known))
    });
    let (first, rest) = content.trim_start_matches('\n').split_once('\n')?;
    let word = first.trim_end().strip_prefix("```")?;
    let inner = rest.trim_end().strip_suffix("```").filter(|inner| inner.is_empty() || inner.ends_with('\n'))?;
    let is_opening = word.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-#_.".contains(letter));
    (is_opening && !may_hold_fences && !inner.contains("```")).then(|| inner.to_owned())
}

/// Makes `content` the whole content of a file.
pub(super) fn put(place: &Place, target: &Resolved, content: &str) -> Result<ToolResult, String> {
    let lines = count(content.lines().count(), "line");
    let (before, verb) = match file::look(target)? {
        Found::Directory => return Err(format!("{} is a directory. Give the path of a file in it.", target.shown)),
        Found::Nothing => (None, "Created"),
        Found::File(_) => (file::read_all(target, MOST_LOOKED_AT)?, "Replaced"),
    };
    let (bytes, note) = match before.as_deref() {
        Some(before) => as_before(before, content),
        None => (content.as_bytes().to_vec(), ""),
    };
    if before.as_ref() == Some(&bytes) {
        return Ok(ToolResult::done(format!("{} already has this content; nothing was changed.", target.shown)));
    }
    file::replace(place, target, &bytes)?;
    let gone = before.as_deref().and_then(|before| str::from_utf8(before).ok()).map(|before| gone(before, content));
    let mut told = format!("{verb} {} ({lines}).{note}", target.shown);
    if let Some(gone) = gone.filter(|gone| !gone.is_empty()) {
        told.push_str(" No longer in it: ");
        told.push_str(&gone.join(" "));
    }
    Ok(ToolResult::changed(told))
}

/// The first lines of blocks at the left edge (functions, classes) that a new text lacks, up to their arguments: a small
/// model that writes a whole file forgets what it did not think of.
fn gone(before: &str, after: &str) -> Vec<String> {
    let key = |line: &str| line.split(['(', ':', '{']).next().unwrap_or(line).trim_end().to_owned();
    let is_edge = |line: &str| line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '@'));
    let there: HashSet<String> = after.lines().filter(|line| is_edge(line)).map(key).collect();
    let opens = |line: &str, next: &str| is_edge(line) && next.starts_with([' ', '\t']);
    let pairs = before.lines().zip(before.lines().skip(1));
    let lost = pairs.filter(|(line, next)| opens(line, next) && !there.contains(&key(line)));
    lost.take(MOST_GONE).map(|(line, _)| format!("`{}`", one_line(line, MOST_OF_A_LINE))).collect()
}

/// The content with mark, encoding and line endings of what it replaces, and what is to be said about its encoding.
fn as_before(before: &[u8], content: &str) -> (Vec<u8>, &'static str) {
    let Some(mut document) = Document::decode(before) else { return (content.as_bytes().to_vec(), "") };
    let mut text = content.strip_prefix('\u{feff}').unwrap_or(content).to_owned();
    if document.is_crlf_throughout() && !text.contains('\r') {
        text = text.replace('\n', "\r\n");
    }
    // Bytes that were no UTF-8 are gone with the old content.
    if document.encoding == Encoding::MostlyUtf8 {
        document.encoding = Encoding::Utf8;
    }
    document.mark |= content.starts_with('\u{feff}');
    match document.encode_text(&text) {
        Ok(bytes) if document.encoding == Encoding::SingleByte && !text.is_ascii() => {
            (bytes, " Its encoding stays windows-1252.")
        }
        Ok(bytes) => (bytes, ""),
        Err(_) => (text.into_bytes(), " It is UTF-8 now; the encoding that it had lacks a character of it."),
    }
}
