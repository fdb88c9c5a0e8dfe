//! `read`: a window of a text file, or the names in a directory. Never holds more of a file than it shows.

use std::fmt::Write as _;
use std::fs::Metadata;
use std::io::{BufRead, BufReader};

use iudex_model::ToolSpec;
use serde_json::{Map, Value, json};

use super::file::{self, Found};
use super::place::{Place, Resolved};
use super::text::{self, Document};
use super::{ToolResult, arguments, count, size};

/// Room for the line that says what is shown.
const NOTE_BYTES: usize = 120;
/// Beyond the window, lines are counted through this many bytes.
const MOST_COUNTED: u64 = 64 << 20;
/// Files with two bytes a character are read as a whole, up to this size.
const MOST_UTF16: u64 = 8 << 20;
/// Names that are listed of a directory.
const MOST_NAMES: usize = 400;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "read",
        description: "Read a file, or list a directory.",
        parameters: json!({
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "offset": {"type": "integer", "description": "first line"},
                "limit": {"type": "integer"},
            },
            "required": ["path"],
        }),
    }
}

/// The lines that are asked for.
#[derive(Clone, Copy)]
struct Wanted {
    first: u64,
    most: u64,
    bytes: usize,
}

/// The lines that were found.
#[derive(Default)]
struct Window {
    bytes: Vec<u8>,
    shown: u64,
    /// The only line shown is longer than the window.
    cut: bool,
    /// Lines of the file, when they were counted to the end.
    total: Option<u64>,
}

pub(super) fn run(place: &Place, result_bytes: usize, arguments: &Map<String, Value>) -> Result<ToolResult, String> {
    let target = place.for_reading(arguments::text(arguments, "path")?)?;
    let wanted = Wanted {
        first: arguments::optional_count(arguments, "offset")?.unwrap_or(1).max(1),
        most: arguments::optional_count(arguments, "limit")?.filter(|limit| *limit > 0).unwrap_or(u64::MAX),
        bytes: result_bytes.saturating_sub(NOTE_BYTES).max(1),
    };
    match file::look(&target)? {
        Found::Nothing => Err(format!(
            "{} does not exist.{} Use search or bash to find the right path, or write to create it.",
            target.shown,
            place.missing(&target)
        )),
        Found::Directory => list(&target),
        Found::File(facts) => show(&target, &facts, wanted),
    }
}

fn list(target: &Resolved) -> Result<ToolResult, String> {
    let cannot = |error: &std::io::Error| format!("{} cannot be listed: {}.", target.shown, file::plain(error));
    let mut names = Vec::new();
    for entry in std::fs::read_dir(&target.path).map_err(|error| cannot(&error))? {
        let entry = entry.map_err(|error| cannot(&error))?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name != ".git" {
            names.push(if entry.path().is_dir() { format!("{name}/") } else { name });
        }
    }
    if names.is_empty() {
        return Ok(ToolResult::done(format!("{} is an empty directory.", target.shown)));
    }
    names.sort();
    let more = names.len().saturating_sub(MOST_NAMES);
    names.truncate(MOST_NAMES);
    let mut listing = names.join("\n");
    if more > 0 {
        let _ = write!(listing, "\n[{more} more names; use bash to list them]");
    }
    Ok(ToolResult::done(listing))
}

fn show(target: &Resolved, facts: &Metadata, wanted: Wanted) -> Result<ToolResult, String> {
    if facts.len() == 0 {
        return Ok(ToolResult::done(format!("{} is empty.", target.shown)));
    }
    let mut reader = BufReader::with_capacity(64 << 10, file::open(target)?);
    let cannot = |error: &std::io::Error| format!("{} cannot be read: {}.", target.shown, file::plain(error));
    let beginning = reader.fill_buf().map_err(|error| cannot(&error))?;
    if text::is_binary(beginning) {
        return Err(binary(target, facts.len()));
    }
    if beginning.starts_with(b"\xff\xfe") || beginning.starts_with(b"\xfe\xff") {
        return show_utf16(target, facts.len(), wanted);
    }
    if beginning.starts_with(b"\xef\xbb\xbf") {
        reader.consume(3);
    }
    let window = window(&mut reader, facts.len(), wanted).map_err(|error| cannot(&error))?;
    let body = text::display(&window.bytes).replace("\r\n", "\n");
    finish(target, facts.len(), wanted, &window, body)
}

fn binary(target: &Resolved, bytes: u64) -> String {
    format!("{} is a binary file of {} and is not shown. Use bash to look into it.", target.shown, size(bytes))
}

fn show_utf16(target: &Resolved, bytes: u64, wanted: Wanted) -> Result<ToolResult, String> {
    let whole = file::read_all(target, MOST_UTF16)?;
    let document = whole.as_deref().and_then(Document::decode).ok_or_else(|| binary(target, bytes))?;
    let flat = document.flat();
    let window = window(&mut flat.as_bytes(), flat.len() as u64, wanted)
        .map_err(|error| format!("{} cannot be read: {}.", target.shown, file::plain(&error)))?;
    let body = String::from_utf8_lossy(&window.bytes).into_owned();
    finish(target, bytes, wanted, &window, body)
}

/// Reads the wanted lines, and counts the rest where that is quick.
fn window(reader: &mut dyn BufRead, length: u64, wanted: Wanted) -> std::io::Result<Window> {
    let mut window = Window::default();
    let (mut line, mut position, mut ends_open) = (1_u64, 0_u64, false);
    // Where the line that is being read began in the window.
    let mut line_start = 0;
    let mut is_full = false;
    loop {
        let chunk = reader.fill_buf()?;
        if chunk.is_empty() {
            break;
        }
        let used = chunk.len();
        if is_full {
            if length.saturating_sub(position) > MOST_COUNTED {
                return Ok(window);
            }
            line += memchr::memchr_iter(b'\n', chunk).count() as u64;
            ends_open = chunk.last() != Some(&b'\n');
            position += used as u64;
            reader.consume(used);
            continue;
        }
        for piece in chunk.split_inclusive(|byte| *byte == b'\n') {
            let is_end = piece.ends_with(b"\n");
            if !is_full && line >= wanted.first {
                let room = wanted.bytes.saturating_sub(window.bytes.len());
                if piece.len() <= room {
                    window.bytes.extend_from_slice(piece);
                } else if line_start == 0 {
                    window.bytes.extend_from_slice(&piece[..room]);
                    (window.cut, is_full, window.shown) = (true, true, 1);
                } else {
                    window.bytes.truncate(line_start);
                    is_full = true;
                }
                if is_end && !is_full {
                    window.shown += 1;
                    line_start = window.bytes.len();
                    is_full = window.shown >= wanted.most;
                }
            }
            line += u64::from(is_end);
            ends_open = !is_end;
        }
        position += used as u64;
        reader.consume(used);
    }
    if window.bytes.len() > line_start && !is_full {
        window.shown += 1;
    }
    window.total = Some(if ends_open { line } else { line - 1 });
    Ok(window)
}

fn finish(target: &Resolved, bytes: u64, wanted: Wanted, window: &Window, body: String) -> Result<ToolResult, String> {
    let first = wanted.first;
    if window.shown == 0 {
        let total = window.total.unwrap_or_default();
        let lines = count(usize::try_from(total).unwrap_or(usize::MAX), "line");
        return Err(format!("{} has {lines}; line {first} is beyond its end. Use a smaller offset.", target.shown));
    }
    let last = first + window.shown - 1;
    let mut text = body;
    if first == 1 && window.total == Some(last) && !window.cut {
        return Ok(ToolResult::done(text));
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let of = window.total.map_or_else(|| format!("a file of {}", size(bytes)), |total| total.to_string());
    let cut = if window.cut { ", which is cut here because it is very long" } else { "" };
    let next = if window.total == Some(last) { String::new() } else { format!("; go on with offset {}", last + 1) };
    let _ = match window.shown {
        1 => write!(text, "[line {first} of {of}{cut}{next}]"),
        _ => write!(text, "[lines {first}-{last} of {of}{next}]"),
    };
    Ok(ToolResult::done(text))
}
