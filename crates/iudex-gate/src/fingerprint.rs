//! The digest of a failure: equal for the same failure, whatever its paths, numbers, times, addresses and temporary
//! names; different for another one.
//!
//! Never: anything that depends on how much room a directive has.

use std::fmt::Write as _;

use sha2::{Digest, Sha256};

use crate::scan::Scan;

/// Lines of the start and the end that count where no failing case is known.
const FIRST_LINES: usize = 20;
const LAST_LINES: usize = 40;

/// What a red command adds to the fingerprint: its command, how it ended (in stable words), the failing part.
pub(crate) fn of_failure(command: &str, end: &str, scan: &Scan) -> String {
    let mut parts = Vec::new();
    if scan.cases.list.is_empty() {
        parts.extend(without_source(scan.edges.first().iter()).take(FIRST_LINES).map(|line| normalise(line)));
        let last: Vec<_> = without_source(scan.edges.last()).collect();
        parts.extend(last[last.len().saturating_sub(LAST_LINES)..].iter().map(|line| normalise(line)));
        parts.retain(|line| !line.is_empty());
        parts.dedup();
    } else {
        for case in &scan.cases.list {
            let name = if case.is_test { normalise_name(&case.name) } else { normalise(&case.name) };
            let mut part = name;
            for line in without_source(case.block.lines()) {
                part.push('\n');
                part.push_str(&normalise(line));
            }
            parts.push(part);
        }
        // Runners that work in parallel report in the order in which the tests end.
        parts.sort();
    }
    digest([command, end].into_iter().chain(parts.iter().map(String::as_str)))
}

/// Lines without the source that a Python traceback repeats below each of its places: a failure whose source line was
/// edited is the same failure as long as it says the same.
fn without_source<'l>(lines: impl Iterator<Item = &'l String>) -> impl Iterator<Item = &'l String> {
    let mut place = None;
    lines.filter(move |line| {
        let depth = line.len() - line.trim_start().len();
        if iudex_exec::python_place(line.trim_start()).is_some() {
            place = Some(depth);
            return true;
        }
        place = place.filter(|place| line.is_empty() || depth > *place);
        place.is_none()
    })
}

/// The digest of several texts; where one ends and the next begins counts too.
pub(crate) fn digest<'a>(parts: impl Iterator<Item = &'a str>) -> String {
    let mut hasher = Sha256::new();
    for part in parts {
        hasher.update(part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    hasher.finalize().iter().take(16).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// A line without what may differ between two runs of the same failure.
pub(crate) fn normalise(line: &str) -> String {
    words(line, |word| pieces(base_name(word)))
}

/// The name of a test: its digits tell it from others, only paths and `(line 12)` of a doc test do not count.
fn normalise_name(name: &str) -> String {
    let name = match name.rsplit_once(" (line ") {
        Some((name, line)) if line.trim_end_matches(')').bytes().all(|b| b.is_ascii_digit()) => name,
        _ => name,
    };
    words(name, |word| base_name(word).to_owned())
}

/// Rewrites every word and makes one space of any white space.
fn words(line: &str, mut rewrite: impl FnMut(&str) -> String) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line.trim();
    while let Some(first) = rest.chars().next() {
        let is_kind: fn(char) -> bool = if is_word_char(first) {
            is_word_char
        } else if first.is_whitespace() {
            char::is_whitespace
        } else {
            |c| !is_word_char(c) && !c.is_whitespace()
        };
        let end = rest.find(|c| !is_kind(c)).unwrap_or(rest.len());
        let (run, after) = rest.split_at(end);
        if is_word_char(first) {
            out.push_str(&rewrite(run));
        } else if first.is_whitespace() {
            out.push(' ');
        } else {
            out.push_str(run);
        }
        rest = after;
    }
    out
}

fn is_word_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '_' | '.' | '/' | '\\' | ':' | '@' | '+' | '-' | '%' | '~')
}

/// The last component of a path; any other word as it is.
fn base_name(word: &str) -> &str {
    let trimmed = word.trim_end_matches(['/', '\\']);
    trimmed.rsplit(['/', '\\']).next().filter(|name| !name.is_empty()).unwrap_or(trimmed)
}

/// A word with its numbers, times, addresses, hashes and temporary names replaced.
fn pieces(word: &str) -> String {
    if word.parse::<f64>().is_ok_and(f64::is_finite) {
        return "N".to_owned();
    }
    if is_uuid(word) {
        return "H".to_owned();
    }
    let mut out = String::with_capacity(word.len());
    let mut before_last = "";
    let mut rest = word;
    while !rest.is_empty() {
        let end = rest.find(is_separator).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        let new = if before_last == "tmp" && piece.len() >= 6 { "TMP" } else { piece_kind(piece).unwrap_or(piece) };
        if new == "N" && (out.ends_with("N.") || out.ends_with("N-") || out == "-" || out == "+") {
            out.pop();
            if out.is_empty() {
                out.push('N');
            }
        } else {
            out.push_str(new);
        }
        before_last = piece;
        let separator = after.chars().next().map_or(0, char::len_utf8);
        out.push_str(&after[..separator]);
        rest = &after[separator..];
    }
    out
}

/// Five groups of hexadecimal digits: 8, 4, 4, 4 and 12.
fn is_uuid(word: &str) -> bool {
    let groups = word.split('-').map(|group| (group.len(), group.bytes().all(|b| b.is_ascii_hexdigit())));
    groups.eq([8, 4, 4, 4, 12].map(|length| (length, true)))
}

fn is_separator(c: char) -> bool {
    matches!(c, '.' | ':' | '@' | '+' | '-' | '%' | '~')
}

/// What a piece stands for, when it is one of the things that differ from run to run.
fn piece_kind(piece: &str) -> Option<&'static str> {
    if piece.is_empty() {
        return None;
    }
    let hex_after = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_hexdigit());
    if piece.strip_prefix("0x").is_some_and(hex_after) {
        return Some("H");
    }
    let has_digit = piece.bytes().any(|b| b.is_ascii_digit());
    let starts_with_digit = piece.starts_with(|c: char| c.is_ascii_digit());
    // `12`, `35s`, `1m30s`, `30T12`, `01Z`, `2e`.
    if starts_with_digit && piece.chars().all(|c| c.is_ascii_digit() || "smhdunµkKMGiBTZe".contains(c)) {
        return Some("N");
    }
    if has_digit && piece.len() >= 7 && hex_after(piece) {
        return Some("H");
    }
    if piece.strip_prefix("tmp").is_some_and(|rest| rest.trim_start_matches('_').len() >= 5) {
        return Some("TMP");
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{normalise, without_source};

    #[test]
    fn the_source_in_a_traceback_makes_no_other_failure() {
        let traceback = |source: &str, error: &str| {
            let text = format!(
                "Traceback (most recent call last):\n  File \"/tmp/a/test_x.py\", line 3, in <module>\n    {source}\n    ^^^^\n\
                 {error}\n"
            );
            let lines: Vec<String> = text.lines().map(str::to_owned).collect();
            without_source(lines.iter()).cloned().collect::<Vec<_>>()
        };
        let error = "ModuleNotFoundError: No module named 'x'";
        assert_eq!(traceback("from x import a", error), traceback("from x import b", error));
        assert_ne!(traceback("from x import a", error), traceback("from x import a", "ImportError: cannot import 'a'"));
        assert_eq!(traceback("from x import a", error).last().map(String::as_str), Some(error));
    }

    #[test]
    fn what_differs_between_two_runs_is_replaced() {
        let same = [
            (
                "thread 'tests::a' (11692) panicked at src/lib.rs:12:34:",
                "thread 'tests::a' (7) panicked at src/lib.rs:9:1:",
            ),
            ("File \"/tmp/pytest-of-root/pytest-12/x.py\", line 5", "File \"/home/me/x.py\", line 71"),
            ("finished in 0.17s", "finished in 12s"),
            ("finished in 1m30s", "finished in 5ms"),
            ("object at 0x7f3a2b", "object at 0x55d1"),
            ("deps/sample-e6daf73c296d6df0", "other/sample-22569f6c8cf30262"),
            ("2026-11-30T22:12:45Z started", "2027-01-02T03:04:05.123Z started"),
            ("Run ID 594f70f8-9b57-48d5-af79-223e6d063225", "Run ID 9572a721-8ae8-4307-ae8e-86a8d1750bbd"),
            ("cannot open /tmp/tmpab12cd_x/file", "cannot open /tmp/tmpzz98yy_q/file"),
            ("cannot open /tmp/tmp.Ab3dE9xYz1", "cannot open /var/tmp.Zz9yX8wVu7"),
            ("left: -1", "left:   5"),
            ("1e-5 off", "0.25 off"),
            ("C:\\Users\\me\\calc.py:3: x", "C:\\Users\\you\\calc.py:44: x"),
        ];
        for (one, other) in same {
            assert_eq!(normalise(one), normalise(other));
        }
    }

    #[test]
    fn what_tells_two_failures_apart_stays() {
        let different = [
            ("error[E0277]: cannot multiply", "error[E0308]: cannot multiply"),
            ("panicked at src/lib.rs:1:1:", "panicked at src/main.rs:1:1:"),
            ("NameError: name 'a' is not defined", "NameError: name 'b' is not defined"),
            ("test_add_1 failed", "test_add_2 failed"),
            ("assert left == right", "assert left != right"),
            ("u32 is not u64", "u64 is not u32"),
            ("defaced", "effaced"),
        ];
        for (one, other) in different {
            assert_ne!(normalise(one), normalise(other));
        }
    }
}
