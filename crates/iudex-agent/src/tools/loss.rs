//! What a file loses when it is written anew.
//!
//! A small model that writes a whole file forgets what it did not think of. Never: a block that only got another name
//! counted as lost.

use std::collections::HashSet;

use super::one_line;

/// Lost blocks that are named.
const MOST_NAMED: usize = 5;

/// Characters that are shown of the first line of one.
const MOST_OF_A_LINE: usize = 60;

/// The first lines of blocks at the left edge (functions, classes) that `after` has neither under their name nor, at
/// least by half of their lines, under another one.
pub(super) fn between(before: &str, after: &str) -> Vec<String> {
    let heads: HashSet<&str> = after.lines().filter(|line| is_edge(line)).map(name).collect();
    let body: HashSet<&str> = after.lines().map(str::trim).collect();
    let lines: Vec<&str> = before.lines().collect();
    let mut lost = Vec::new();
    for (index, line) in lines.iter().enumerate().filter(|(_, line)| is_edge(line) && !heads.contains(name(line))) {
        let inner = lines[index + 1..].iter().take_while(|line| !is_edge(line)).map(|line| line.trim());
        let inner: Vec<&str> = inner.filter(|line| line.len() > 1).collect();
        let kept = inner.iter().filter(|line| body.contains(*line)).count();
        if lines.get(index + 1).is_some_and(|next| next.starts_with([' ', '\t'])) && kept * 2 < inner.len() {
            lost.push(format!("`{}`", one_line(line, MOST_OF_A_LINE)));
        }
    }
    lost.truncate(MOST_NAMED);
    lost
}

/// A line at the left edge that says something.
fn is_edge(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '#' | '@'))
}

/// A first line up to its arguments.
fn name(line: &str) -> &str {
    line.split(['(', ':', '{', '=', '[']).next().unwrap_or(line).trim_end()
}

#[cfg(test)]
mod tests {
    use super::between;

    const FILE: &str =
        "import os\n\ndef one(x):\n    y = x + 1\n    return y\n\nclass Two:\n    size = 2\n\nLIST = [\n    1,\n]\n";

    #[test]
    fn what_is_gone_is_named_and_what_was_renamed_or_kept_is_not() {
        let cases: [(&str, &[&str]); 5] = [
            (FILE, &[]),
            ("", &["`def one(x):`", "`class Two:`", "`LIST = [`"]),
            ("def one(x, z):\n    return z\n\nclass Two:\n    pass\n\nLIST = [2]\n", &[]),
            ("def first(x):\n    y = x + 1\n    return y\n\nclass Two(One):\n    size = 3\n\nLIST = []\n", &[]),
            ("def first(x):\n    return 1\n\nclass Two:\n    size = 2\n\nLIST = [\n    1,\n]\n", &["`def one(x):`"]),
        ];
        for (after, wanted) in cases {
            assert_eq!(between(FILE, after), wanted, "{after}");
        }
    }
}
