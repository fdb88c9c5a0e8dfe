//! `write`: creates or replaces a whole file. Keeps mode, byte order mark and CRLF of the file that it replaces.

use std::borrow::Cow;

use iudex_model::ToolSpec;
use serde_json::{Map, Value, json};

use super::blocks;
use super::file::{self, Found};
use super::place::{Place, Resolved};
use super::refused::Refused;
use super::text::{Document, Encoding};
use super::{ToolResult, arguments, count};

/// Files above this size are replaced without a look at what they hold.
const MOST_LOOKED_AT: u64 = 16 << 20;

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

/// With `in_parts` a write by which the file would lose functions replaces those that it has and leaves the others. Where
/// it is not sure what belongs where, it is refused, and done only when it is sent again as it was.
pub(super) fn run(
    place: &Place,
    in_parts: Option<&Refused>,
    arguments: &Map<String, Value>,
) -> Result<ToolResult, String> {
    let target = place.for_writing(arguments::text(arguments, "path")?)?;
    let given = arguments::text(arguments, "content")?;
    let inner = without_fence(&target.shown, given);
    let content = inner.as_deref().unwrap_or(given);
    let before = look(&target)?;
    let part = match in_parts {
        Some(refused) => {
            let again = refused.take(arguments);
            part_of(&before, &target, content, again).inspect_err(|_| refused.keep(arguments))?
        }
        None => None,
    };
    let mut result = put_over(&before, place, &target, part.as_deref().unwrap_or(content))?;
    if part.is_some() && result.may_have_changed {
        // What stays is not named: a small model writes it into the file as a comment.
        result.text = format!(
            "{} has the new {} now, and all else as before. To take code out, use edit.",
            target.shown,
            blocks::heads(content).join(", ")
        );
    }
    if inner.is_some() {
        result.text.push_str(" The ``` fence around the content was left out.");
    }
    Ok(result)
}

/// The file with the content in its place, when the content is only a part of it.
fn part_of(before: &Before, target: &Resolved, content: &str, again: bool) -> Result<Option<String>, String> {
    let Some(before) = before.text() else { return Ok(None) };
    let is_python = target.path.extension().is_some_and(|ending| ending == "py");
    let is_crlf = before.contains("\r\n") && !before.replace("\r\n", "").contains('\n');
    let text = if is_crlf { Cow::Owned(before.replace("\r\n", "\n")) } else { Cow::Borrowed(before) };
    let merged = if is_python && !content.contains('\r') { blocks::merge(&text, content) } else { None };
    let lost = blocks::lost(before, content);
    if merged.is_some() || lost.is_empty() || again {
        return Ok(merged);
    }
    Err(format!(
        "Nothing was written: {} would lose {}. Send the whole file with all that stays. If that is meant, send the same \
         call again.",
        target.shown,
        lost.join(", ")
    ))
}

/// The content of the one fence that a small model wraps a whole file in, as if it answered a person. `None` when there
/// is no such fence, and for files in which a fence belongs.
fn without_fence(path: &str, content: &str) -> Option<String> {
    let may_hold_fences = path.rsplit_once('.').is_some_and(|(_, ending)| {
        ["md", "markdown", "mdx", "rst", "adoc", "txt"].iter().any(|known| ending.eq_ignore_ascii_case(known))
    });
    let (first, rest) = content.trim_start_matches('\n').split_once('\n')?;
    let word = first.trim_end().strip_prefix("```")?;
    // A model that was interrupted, or that forgot it, leaves the fence open.
    let inner = match rest.trim_end().strip_suffix("```") {
        Some(inner) if inner.is_empty() || inner.ends_with('\n') => inner,
        Some(_) => return None,
        None => rest,
    };
    let is_opening = word.chars().all(|letter| letter.is_ascii_alphanumeric() || "+-#_.".contains(letter));
    (is_opening && !may_hold_fences && !inner.contains("```")).then(|| inner.to_owned())
}

/// What a write finds.
enum Before {
    Nothing,
    /// The content of a file, unless it is too large for a look.
    File(Option<Vec<u8>>),
}

impl Before {
    fn bytes(&self) -> Option<&[u8]> {
        match self {
            Self::File(bytes) => bytes.as_deref(),
            Self::Nothing => None,
        }
    }

    fn text(&self) -> Option<&str> {
        self.bytes().and_then(|bytes| str::from_utf8(bytes).ok())
    }
}

fn look(target: &Resolved) -> Result<Before, String> {
    match file::look(target)? {
        Found::Directory => Err(format!("{} is a directory. Give the path of a file in it.", target.shown)),
        Found::Nothing => Ok(Before::Nothing),
        Found::File(_) => Ok(Before::File(file::read_all(target, MOST_LOOKED_AT)?)),
    }
}

/// Makes `content` the whole content of a file.
pub(super) fn put(place: &Place, target: &Resolved, content: &str) -> Result<ToolResult, String> {
    put_over(&look(target)?, place, target, content)
}

fn put_over(before: &Before, place: &Place, target: &Resolved, content: &str) -> Result<ToolResult, String> {
    let (bytes, note) = match before.bytes() {
        Some(before) => as_before(before, content),
        None => (content.as_bytes().to_vec(), ""),
    };
    if before.bytes() == Some(&bytes) {
        return Ok(ToolResult::done(format!("{} already has this content; nothing was changed.", target.shown)));
    }
    file::replace(place, target, &bytes)?;
    let verb = if matches!(before, Before::Nothing) { "Created" } else { "Replaced" };
    let lines = count(content.lines().count(), "line");
    let mut told = format!("{verb} {} ({lines}).{note}", target.shown);
    let lost = before.text().map(|before| blocks::lost(before, content)).unwrap_or_default();
    if !lost.is_empty() {
        told.push_str(" No longer in it: ");
        told.push_str(&lost.join(", "));
    }
    Ok(ToolResult::changed(told))
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
