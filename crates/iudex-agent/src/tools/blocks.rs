//! The blocks at the left edge of a text (functions, classes), for a file that is written anew.
//!
//! A small model that is to change one function writes that function alone, and takes it for the whole file. Never: a
//! block that only got another name counted as lost, and nothing put together where a name is not unique.

use std::collections::HashSet;

use super::one_line;

/// Lost blocks that are named.
const MOST_NAMED: usize = 5;

/// Characters that are shown of the first line of one.
const MOST_OF_A_LINE: usize = 60;

/// A file of which a part was written anew.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Merged {
    /// The whole text.
    pub text: String,
    /// The first lines of the blocks that came from the new text.
    pub put: Vec<String>,
}

/// Statements that stand together at the left edge.
#[derive(Debug, Clone)]
struct Block<'t> {
    /// Comments and decorators right above.
    lead: Vec<&'t str>,
    /// The lines, the first one at the left edge. Without it for what a text begins with.
    lines: Vec<&'t str>,
    /// Blank lines at the end.
    blank: usize,
    /// The first line up to its arguments, when more lines belong to it.
    name: Option<&'t str>,
}

/// The first lines of blocks of `before` that `after` has neither under their name nor, at least by half of their lines,
/// under another one.
pub(super) fn lost(before: &str, after: &str) -> Vec<String> {
    let (old, new) = (parse(before), parse(after));
    let lost = old.iter().filter(|block| block.name.is_some() && counterpart(block, &old, &new).is_none());
    lost.take(MOST_NAMED).map(Block::shown).collect()
}

/// `before` with the blocks of `after` in their places, when `after` has blocks and lacks some of `before`. `None` when
/// it is a whole file by itself, or when it is not sure what belongs where.
pub(super) fn merge(before: &str, after: &str) -> Option<Merged> {
    let (old, new) = (parse(before), parse(after));
    let is_unique = |blocks: &[Block<'_>]| {
        let mut seen = HashSet::new();
        blocks.iter().filter_map(|block| block.name).all(|name| seen.insert(name))
    };
    if new.iter().all(|block| block.name.is_none()) || !is_unique(&old) || !is_unique(&new) {
        return None;
    }
    let mut placed = HashSet::new();
    let mut merged: Vec<Block<'_>> = Vec::new();
    let mut put = Vec::new();
    let mut lacks_some = false;
    for block in &old {
        match counterpart(block, &old, &new) {
            Some(index) => {
                placed.insert(index);
                let lead = if new[index].lead.is_empty() { block.lead.clone() } else { new[index].lead.clone() };
                put.push(new[index].shown());
                merged.push(Block { lead, blank: block.blank, ..new[index].clone() });
            }
            None => {
                lacks_some |= block.name.is_some();
                merged.push(block.clone());
            }
        }
    }
    if !lacks_some {
        return None;
    }
    let gap = old.iter().map(|block| block.blank).max().unwrap_or_default().clamp(1, 2);
    for (index, block) in new.iter().enumerate().filter(|(index, _)| !placed.contains(index)) {
        if block.name.is_some() {
            put.push(block.shown());
            // What runs when the file is run comes last.
            let main = merged.iter().position(|block| block.name.is_some_and(|name| name.starts_with("if __name__")));
            let at = main.unwrap_or(merged.len());
            if let Some(before) = at.checked_sub(1).and_then(|before| merged.get_mut(before)) {
                before.blank = before.blank.max(gap);
            }
            merged.insert(at, Block { blank: if at == merged.len() { 0 } else { gap }, ..block.clone() });
        } else if index > 0 || !block.lines.is_empty() {
            insert_statement(&mut merged, block, gap);
        }
    }
    put.truncate(MOST_NAMED);
    let mut text = merged.iter().flat_map(Block::text).collect::<Vec<_>>().join("\n");
    text.truncate(text.trim_end().len());
    text.push('\n');
    Some(Merged { text, put })
}

/// The names of the functions and classes that a text defines at the left edge, as they are called.
pub(super) fn defined(text: &str) -> HashSet<&str> {
    let heads = parse(text).into_iter().filter_map(|block| block.name);
    heads.filter_map(|head| head.rsplit_once(' ').map(|(_, name)| name)).filter(|name| is_word(name)).collect()
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || c == '_') && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Puts a statement (an import, a constant) above the first block, unless it is there.
fn insert_statement<'t>(merged: &mut Vec<Block<'t>>, statement: &Block<'t>, gap: usize) {
    let is_there = merged.iter().any(|block| block.name.is_none() && block.lines == statement.lines);
    let is_text = statement.lines.first().is_none_or(|line| !is_edge(line));
    if is_there || is_text {
        return;
    }
    let at = merged.iter().position(|block| block.name.is_some()).unwrap_or(merged.len());
    let mut blank = gap;
    if let Some(before) = at.checked_sub(1).and_then(|before| merged.get_mut(before))
        && !before.lines.is_empty()
        && before.lines.first().is_some_and(|line| is_edge(line))
    {
        blank = before.blank.max(1);
        before.blank = 0;
    }
    merged.insert(at, Block { blank, ..statement.clone() });
}

/// The block of `new` that stands for this one: of the same name, or, when no other has it, with half of its lines.
fn counterpart(block: &Block<'_>, old: &[Block<'_>], new: &[Block<'_>]) -> Option<usize> {
    let name = block.name?;
    let of_name = |blocks: &[Block<'_>], name: &str| blocks.iter().position(|other| other.name == Some(name));
    of_name(new, name).or_else(|| {
        let inner: Vec<&str> = block.inner().collect();
        let is_renamed = |other: &&Block<'_>| {
            let lines: HashSet<&str> = other.inner().collect();
            let shared = inner.iter().filter(|line| lines.contains(*line)).count();
            other.name.is_some_and(|name| of_name(old, name).is_none()) && shared > 0 && shared * 2 >= inner.len()
        };
        let found = new.iter().find(is_renamed)?;
        of_name(new, found.name?)
    })
}

impl<'t> Block<'t> {
    /// The lines below the first one that say something.
    fn inner(&self) -> impl Iterator<Item = &'t str> {
        self.lines.iter().skip(1).map(|line| line.trim()).filter(|line| line.len() > 1)
    }

    fn shown(&self) -> String {
        format!("`{}`", one_line(self.lines.first().unwrap_or(&""), MOST_OF_A_LINE))
    }

    fn text(&self) -> impl Iterator<Item = &'t str> {
        let blank = std::iter::repeat_n("", self.blank);
        self.lead.iter().copied().chain(self.lines.iter().copied()).chain(blank).collect::<Vec<_>>().into_iter()
    }
}

fn parse(text: &str) -> Vec<Block<'_>> {
    let mut blocks = vec![Block { lead: Vec::new(), lines: Vec::new(), blank: 0, name: None }];
    for line in text.lines() {
        if is_edge(line) {
            let lead = blocks.last_mut().map(take_lead).unwrap_or_default();
            blocks.push(Block { lead, lines: vec![line], blank: 0, name: None });
        } else if let Some(block) = blocks.last_mut() {
            block.lines.push(line);
        }
    }
    for block in &mut blocks {
        while block.lines.last().is_some_and(|line| line.trim().is_empty()) {
            block.lines.pop();
            block.blank += 1;
        }
        block.name = match block.lines.as_slice() {
            [first, second, ..] if is_edge(first) && second.starts_with([' ', '\t']) => Some(name(first)),
            _ => None,
        };
    }
    blocks
}

/// Takes the comments and decorators that stand right above the next block.
fn take_lead<'t>(block: &mut Block<'t>) -> Vec<&'t str> {
    let is_lead = |line: &&str| ["#", "@", "//", "/*", "*/", " *"].iter().any(|mark| line.starts_with(mark));
    // A comment at the top of a file belongs to the file.
    let from = block.lines.iter().rposition(|line| !is_lead(line)).map_or(0, |at| at + 1);
    block.lines.split_off(from)
}

/// A line at the left edge that says something.
fn is_edge(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// A first line up to its arguments.
fn name(line: &str) -> &str {
    line.split(['(', ':', '{', '=', '[']).next().unwrap_or(line).trim_end()
}

#[cfg(test)]
mod tests {
    use super::{lost, merge};

    const FILE: &str = "\"\"\"Sums.\"\"\"\nimport os\n\n\n# Adds one.\ndef one(x):\n    y = x + 1\n    return y\n\n\n@final\nclass Two:\n    \
                        size = 2\n\n\nif __name__ == \"__main__\":\n    one(2)\n";

    #[test]
    fn what_is_lost_is_named_and_what_was_renamed_is_not() {
        let all = ["`def one(x):`", "`class Two:`", "`if __name__ == \"__main__\":`"];
        let cases: [(&str, &[&str]); 4] = [
            (FILE, &[]),
            ("", &all),
            ("def one(x, z):\n    return z\n", &all[1..]),
            ("def first(x):\n    y = x + 1\n    return y\n\nclass Two(One):\n    size = 3\n", &all[2..]),
        ];
        for (after, wanted) in cases {
            assert_eq!(lost(FILE, after), wanted, "{after}");
        }
    }

    #[test]
    fn a_function_alone_takes_its_place_in_the_file() {
        let merged = merge(FILE, "def one(x):\n    return x + 1").unwrap();
        assert_eq!(merged.text, FILE.replace("    y = x + 1\n    return y\n", "    return x + 1\n"));
        assert_eq!(merged.put, ["`def one(x):`"]);
    }

    #[test]
    fn a_renamed_one_takes_the_place_of_the_old_and_new_ones_and_imports_are_added() {
        let new = "import os\nimport re\n\ndef first(x):\n    y = x + 1\n    return y\n\ndef three():\n    return re\n";
        let wanted = FILE
            .replace("def one", "def first")
            .replace("import os\n", "import os\nimport re\n")
            .replace("    size = 2\n\n\n", "    size = 2\n\n\ndef three():\n    return re\n\n\n");
        assert_eq!(merge(FILE, new).unwrap().text, wanted);
    }

    #[test]
    fn braces_and_comments_stay_with_their_blocks() {
        let file = "use std::io;\n\n/// One.\nfn one() -> u8 {\n    1\n}\n\n/// Two.\nfn two() -> u8 {\n    2\n}\n";
        let merged = merge(file, "fn one() -> u8 {\n    10\n}\n").unwrap();
        assert_eq!(merged.text, file.replace("    1\n", "    10\n"));
    }

    #[test]
    fn a_whole_file_and_what_is_not_sure_are_left_alone() {
        let whole = FILE.replace("size = 2", "size = 3");
        let twice = "impl A {\n    x\n}\nimpl A {\n    y\n}\nfn z() {\n    1\n}\n";
        assert_eq!(merge(FILE, &whole), None);
        assert_eq!(merge(FILE, "no block at all"), None);
        assert_eq!(merge(FILE, ""), None);
        assert_eq!(merge(twice, "fn z() {\n    2\n}\n"), None);
    }
}
