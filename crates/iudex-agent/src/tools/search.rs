//! `search`: contents and names below the work directory. Respects .gitignore; follows no link.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use grep_matcher::{LineTerminator, Matcher as _};
use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{BinaryDetection, Searcher, SearcherBuilder, sinks};
use ignore::overrides::{Override, OverrideBuilder};
use iudex_model::ToolSpec;
use serde_json::{Map, Value, json};

use super::file::{self, Found};
use super::place::Place;
use super::{ToolResult, arguments, walk};

/// Files that are looked at.
const MOST_FILES: usize = 100_000;
/// Lines that are shown.
const MOST_LINES: usize = 100;
/// Names that are shown.
const MOST_NAMES: usize = 40;
/// Characters of one line.
const LINE_CHARACTERS: usize = 200;
/// The longest line that is held in memory.
const LINE_BYTES: usize = 16 << 20;

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "search",
        description: "Search file contents and names by regex.",
        parameters: json!({
            "type": "object",
            "properties": {
                "pattern": {"type": "string"},
                "path": {"type": "string"},
                "glob": {"type": "string"},
            },
            "required": ["pattern"],
        }),
    }
}

/// What is searched for.
struct Query {
    matcher: RegexMatcher,
    glob: Option<Override>,
    /// The pattern is no valid regular expression and is searched for as it stands.
    literal: bool,
}

/// What was found.
#[derive(Default)]
struct Hits {
    names: Vec<String>,
    lines: Vec<String>,
    bytes: usize,
    more: bool,
    /// A file has passed the glob.
    any: bool,
    /// Files that could not be read, or not to the end.
    unread: usize,
}

/// Stops the search when its future is dropped.
struct StopOnDrop(Arc<AtomicBool>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

pub(super) async fn run(
    place: &Place,
    result_bytes: usize,
    arguments: &Map<String, Value>,
) -> Result<ToolResult, String> {
    let pattern = arguments::text(arguments, "pattern")?.to_owned();
    if pattern.is_empty() {
        return Err("pattern is empty. Give a regular expression, or read a directory to list it.".to_owned());
    }
    let target = place.for_reading(arguments::optional_text(arguments, "path")?.unwrap_or("."))?;
    if matches!(file::look(&target)?, Found::Nothing) {
        return Err(format!("{} does not exist. Leave path out to search everywhere.", target.shown));
    }
    let query = build_query(&place.work_dir, &pattern, arguments::optional_text(arguments, "glob")?)?;
    let (literal, has_glob) = (query.literal, query.glob.is_some());

    let hits = find(place, &target.path, query, result_bytes / 2).await?;
    Ok(ToolResult::done(report(&hits, &pattern, &target.shown, literal, has_glob)))
}

/// The first lines that match, as `path:line: text`. For what the agent says by itself.
pub(super) async fn lines(place: &Place, pattern: &str, most: usize) -> Result<Vec<String>, String> {
    const ROOM: usize = 4_000;
    let query = build_query(&place.work_dir, pattern, None)?;
    let mut lines = find(place, &place.work_dir, query, ROOM).await?.lines;
    lines.truncate(most);
    Ok(lines)
}

/// Searches on a blocking thread; stops when this future is dropped.
async fn find(place: &Place, root: &Path, query: Query, bytes: usize) -> Result<Hits, String> {
    let stop = Arc::new(AtomicBool::new(false));
    let _guard = StopOnDrop(Arc::clone(&stop));
    let (reach, root) = (place.clone(), root.to_owned());
    tokio::task::spawn_blocking(move || search(&reach, &root, &query, bytes, &stop))
        .await
        .map_err(|error| format!("The search failed: {error}. Use bash with grep."))
}

fn build_query(work_dir: &Path, pattern: &str, glob: Option<&str>) -> Result<Query, String> {
    let build = |literal: bool| {
        RegexMatcherBuilder::new().case_smart(true).multi_line(true).crlf(true).fixed_strings(literal).build(pattern)
    };
    let (matcher, literal) = match build(false) {
        Ok(matcher) => (matcher, false),
        Err(error) => (
            build(true).map_err(|_| format!("{pattern:?} cannot be searched for: {error}. Use another pattern."))?,
            true,
        ),
    };
    let glob = match glob {
        None => None,
        Some(glob) => {
            let mut builder = OverrideBuilder::new(work_dir);
            let set = builder.add(glob).and_then(|builder| builder.build());
            Some(set.map_err(|error| format!("glob {glob:?} is not valid: {error}. Use one like *.py or src/**."))?)
        }
    };
    Ok(Query { matcher, glob, literal })
}

fn search(place: &Place, root: &Path, query: &Query, most_bytes: usize, stop: &AtomicBool) -> Hits {
    let mut searcher = SearcherBuilder::new()
        .line_number(true)
        .line_terminator(LineTerminator::crlf())
        .binary_detection(BinaryDetection::quit(0))
        .heap_limit(Some(LINE_BYTES))
        .build();
    let mut hits = Hits::default();
    for (number, entry) in walk::files(root, &place.work_dir).enumerate() {
        hits.more |= number >= MOST_FILES;
        if stop.load(Ordering::Relaxed) || hits.more {
            break;
        }
        let path = entry.path();
        if query.glob.as_ref().is_some_and(|glob| !glob.matched(path, false).is_whitelist()) {
            continue;
        }
        if place.hidden.iter().any(|hidden| path.starts_with(hidden)) {
            continue;
        }
        hits.any = true;
        let shown = place.shown(path);
        if query.matcher.is_match(shown.as_bytes()).unwrap_or(false) && hits.names.len() < MOST_NAMES {
            hits.names.push(shown.clone());
        }
        if search_file(&mut searcher, query, path, &shown, most_bytes, &mut hits).is_err() {
            hits.unread += 1;
        }
    }
    hits
}

fn search_file(
    searcher: &mut Searcher,
    query: &Query,
    path: &Path,
    shown: &str,
    most_bytes: usize,
    hits: &mut Hits,
) -> std::io::Result<()> {
    let sink = sinks::Lossy(|number, line| {
        if hits.lines.len() >= MOST_LINES || hits.bytes >= most_bytes {
            hits.more = true;
            return Ok(false);
        }
        let at = query.matcher.find(line.as_bytes()).ok().flatten().map_or(0, |found| found.start());
        let hit = format!("{shown}:{number}: {}", around(line.trim_end(), at));
        hits.bytes += hit.len();
        hits.lines.push(hit);
        Ok(true)
    });
    searcher.search_path(&query.matcher, path, sink)
}

/// A line, or the part of a long one around a match.
fn around(line: &str, at: usize) -> String {
    if line.chars().count() <= LINE_CHARACTERS {
        return line.to_owned();
    }
    let start = line.floor_char_boundary(at.saturating_sub(LINE_CHARACTERS / 4));
    let part: String = line[start..].chars().take(LINE_CHARACTERS).collect();
    format!("{}{part}…", if start > 0 { "…" } else { "" })
}

fn report(hits: &Hits, pattern: &str, shown: &str, literal: bool, has_glob: bool) -> String {
    let mut parts = Vec::new();
    if literal {
        parts.push("The pattern is no valid regular expression; it was searched for as plain text.".to_owned());
    }
    if hits.names.is_empty() && hits.lines.is_empty() {
        let place = if shown == "." { String::new() } else { format!(" in {shown}") };
        if has_glob && !hits.any {
            parts.push(format!("No file matches the glob{place} (ignored files are not searched)."));
        } else {
            parts.push(format!("No line and no file name matches {pattern}{place} (ignored files are not searched)."));
        }
    }
    if !hits.names.is_empty() {
        parts.push("File names:".to_owned());
        parts.push(hits.names.join("\n"));
        if hits.names.len() >= MOST_NAMES {
            parts.push("[more names were left out]".to_owned());
        }
    }
    if !hits.lines.is_empty() {
        if !hits.names.is_empty() {
            parts.push("Lines:".to_owned());
        }
        parts.push(hits.lines.join("\n"));
    }
    if hits.more {
        parts.push("[there are more; narrow the pattern, path or glob]".to_owned());
    }
    if hits.unread > 0 {
        parts.push(format!("[{} could not be searched to the end]", super::count(hits.unread, "file")));
    }
    parts.join("\n")
}
