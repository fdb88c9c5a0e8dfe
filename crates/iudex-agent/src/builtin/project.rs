//! The files of the project for the first message: their names, or names and contents where they are small.
//!
//! Never: ignored, hidden or binary files, and never more than what was allowed.

use std::path::Path;

use ignore::{DirEntry, WalkBuilder};
use iudex_model::estimate_tokens;

use crate::directories;

/// Names that are listed; more are counted.
const MOST_NAMES: usize = 60;

/// Missing files that are named.
const MOST_MISSING: usize = 4;

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

/// What a first message tells of the project's files.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    /// The text.
    pub text: String,
    /// True when the whole contents of all files are in it, so that nothing is left to be read.
    pub is_all: bool,
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
pub(super) fn names(dir: &Path) -> Told {
    let files = files(dir);
    Told { text: list("Files: ", &files), is_all: files.is_empty() }
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
pub(super) fn contents(dir: &Path, tokens: u64, mentioned: &str) -> Told {
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
        return names(dir);
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
    Told { text, is_all: others.is_empty() }
}

/// Files that a task names and that there are not, a line each: a small model takes the name of a file that it should
/// write for one that it should read, or for a package to install.
/// Not where a file of that name stands in what is `told` of the project.
pub(super) fn missing(dir: &Path, task: &str, told: &str) -> String {
    let mut named: Vec<&str> = Vec::new();
    for word in task.split(|c: char| c.is_whitespace() || "`'\"(),;<>[]{}".contains(c)) {
        let word = word.trim_end_matches(['.', ':', '!', '?']);
        let base = word.rsplit('/').next().unwrap_or(word);
        if is_file_name(word)
            && !told.contains(base)
            && !named.contains(&word)
            && std::fs::symlink_metadata(dir.join(word)).is_err()
        {
            named.push(word);
        }
    }
    let lines = named.into_iter().take(MOST_MISSING).map(|name| format!("There is no {name} yet."));
    lines.collect::<Vec<_>>().join("\n")
}

/// `name.ending` beneath the directory, a letter first in the ending: no number, address, option or pattern.
fn is_file_name(word: &str) -> bool {
    let base = word.rsplit('/').next().unwrap_or(word);
    let Some((stem, ending)) = base.rsplit_once('.') else { return false };
    let is_ending = (1..=5).contains(&ending.len())
        && ending.starts_with(|c: char| c.is_ascii_alphabetic())
        && ending.chars().all(|c| c.is_ascii_alphanumeric());
    let is_path = word.chars().all(|c| c.is_alphanumeric() || "._-/+@".contains(c));
    // `e.g` and the like are no files; neither is a method of an object with a one-letter name.
    stem.chars().count() > 1 && is_ending && is_path && !word.starts_with(['/', '-', '@']) && !word.contains("..")
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

#[cfg(test)]
mod tests {
    use super::missing;

    #[test]
    fn files_that_a_task_names_and_that_are_missing_are_told() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("src")).unwrap();
        std::fs::write(dir.path().join("src/there.rs"), "").unwrap();
        let cases = [
            ("Make test.py pass by writing `solution.py`.", "There is no test.py yet.\nThere is no solution.py yet."),
            ("Rename f in src/there.rs, then fix src/gone.rs: see 3.14 and e.g. this.", "There is no src/gone.rs yet."),
            ("See http://host.example/a.txt, ../up.txt, /etc/no.conf, *.rs, --flag.x and a...b", ""),
            ("Nothing here.", ""),
        ];
        for (task, wanted) in cases {
            assert_eq!(missing(dir.path(), task, ""), wanted, "{task}");
        }
        assert_eq!(missing(dir.path(), "Fix there.rs.", "Files: src/there.rs"), "");
    }
}
