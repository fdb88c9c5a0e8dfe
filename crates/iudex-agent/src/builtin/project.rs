//! The files of the project for the first message: their names, or names and contents where they are small.
//!
//! Never: ignored, hidden or binary files, and never more than what was allowed.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};
use iudex_model::estimate_tokens;

use crate::directories;

/// Names that are listed; more are counted.
const MOST_NAMES: usize = 60;

/// Entries of the project that are looked at.
const MOST_ENTRIES: usize = 2_000;

/// A larger file is not put into a message.
const MOST_BYTES: u64 = 32 * 1024;

/// Files that are generated and long.
const GENERATED: [&str; 7] =
    ["Cargo.lock", "package-lock.json", "yarn.lock", "pnpm-lock.yaml", "poetry.lock", "uv.lock", "go.sum"];

/// A file of the project.
struct Found {
    name: String,
    bytes: u64,
}

/// The files below `dir`, shallow ones first, in a stable order.
fn files(dir: &Path) -> Vec<Found> {
    let ours = |entry: &DirEntry| entry.depth() == 0 || !directories::is_foreign(entry.file_name());
    let walk = WalkBuilder::new(dir).require_git(false).sort_by_file_name(Ord::cmp).filter_entry(ours).build();
    let mut found: Vec<(usize, Found)> = walk
        .take(MOST_ENTRIES)
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_some_and(|kind| kind.is_file()))
        .filter_map(|entry| {
            let name = entry.path().strip_prefix(dir).ok()?.to_str()?.to_owned();
            Some((entry.depth(), Found { name, bytes: entry.metadata().ok()?.len() }))
        })
        .collect();
    found.sort_by(|(depth_a, a), (depth_b, b)| depth_a.cmp(depth_b).then_with(|| a.name.cmp(&b.name)));
    found.into_iter().map(|(_, file)| file).collect()
}

/// A short list of names.
pub(super) fn names(dir: &Path) -> String {
    list("Files: ", &files(dir))
}

fn list(lead: &str, files: &[Found]) -> String {
    if files.is_empty() {
        return "The directory has no files yet.".to_owned();
    }
    let named: Vec<&str> = files.iter().take(MOST_NAMES).map(|file| file.name.as_str()).collect();
    let more = files.len() - named.len();
    let rest = if more == 0 { String::new() } else { format!(" and {more} more") };
    format!("{lead}{}{rest}", named.join(", "))
}

/// Names and contents of the text files that fit into `tokens`: those that `mentioned` names first, then small ones.
pub(super) fn contents(dir: &Path, tokens: u64, mentioned: &str) -> String {
    let files = files(dir);
    let mut order: Vec<usize> = (0..files.len()).collect();
    order.sort_by_key(|index| (!is_mentioned(&files[*index].name, mentioned), files[*index].bytes, *index));
    let mut shown: Vec<(usize, String)> = Vec::new();
    let mut left = tokens;
    for index in order {
        let Some(text) = small_text(dir, &files[index]) else { continue };
        let part = format!("=== {}\n{}", files[index].name, text.trim_end_matches('\n'));
        let cost = estimate_tokens(&part) + 2;
        if cost <= left {
            left -= cost;
            shown.push((index, part));
        }
    }
    if shown.is_empty() {
        return list("Files: ", &files);
    }
    shown.sort_by_key(|(index, _)| *index);
    let (shown, parts): (Vec<usize>, Vec<String>) = shown.into_iter().unzip();
    let mut text = format!("The files of the project, as they are now:\n{}\n=== end of files", parts.join("\n"));
    let others: Vec<Found> =
        files.into_iter().enumerate().filter(|(index, _)| !shown.contains(index)).map(|(_, file)| file).collect();
    if !others.is_empty() {
        text.push('\n');
        text.push_str(&list("Other files: ", &others));
    }
    text
}

/// True when the text names the file, by its path or by its name with an extension.
fn is_mentioned(name: &str, text: &str) -> bool {
    let base = name.rsplit('/').next().unwrap_or(name);
    text.contains(name) || (base.contains('.') && text.contains(base))
}

/// The text of a file, when it is text and small.
fn small_text(dir: &Path, file: &Found) -> Option<String> {
    let base = file.name.rsplit('/').next().unwrap_or(&file.name);
    // The notes for agents come in only when the user trusts them, and then in a place of their own.
    if file.bytes > MOST_BYTES || GENERATED.contains(&base) || base == "AGENTS.md" {
        return None;
    }
    let bytes = std::fs::read(dir.join(&file.name)).ok()?;
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}
