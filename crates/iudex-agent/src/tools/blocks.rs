//! The definitions of a file that is written anew: which ones it would lose, and a part of a Python file put in its place.
//!
//! A small model that is to change one function writes that function alone, and takes it for the whole file. Never: a
//! line of the file outside of a replaced function changed, and nothing put together that is not sure.

use std::collections::{HashMap, HashSet};

use super::one_line;

/// Lost definitions that are named.
const MOST_NAMED: usize = 5;

/// Characters that are shown of the first line of one.
const MOST_OF_A_LINE: usize = 60;

/// Words that may stand before the one that defines.
const MODIFIERS: [&str; 13] = [
    "pub",
    "async",
    "export",
    "default",
    "static",
    "final",
    "abstract",
    "public",
    "private",
    "protected",
    "unsafe",
    "extern",
    "inline",
];

/// Words that define, with a name behind them.
const KEYWORDS: [&str; 11] =
    ["def", "fn", "func", "function", "class", "struct", "enum", "trait", "impl", "interface", "type"];

/// The first lines of definitions of `before`, at any depth, that `after` has not, or fewer times.
pub(super) fn lost(before: &str, after: &str) -> Vec<String> {
    let mut there: HashMap<&str, usize> = HashMap::new();
    for (key, _) in definitions(after) {
        *there.entry(key).or_default() += 1;
    }
    let mut lost = Vec::new();
    for (key, line) in definitions(before) {
        match there.get_mut(key) {
            Some(left @ 1..) => *left -= 1,
            _ => lost.push(shown(line)),
        }
    }
    lost.truncate(MOST_NAMED);
    lost
}

/// The names that a text defines at the left edge.
pub(super) fn defined(text: &str) -> HashSet<&str> {
    let at_edge = definitions(text).filter(|(_, line)| !line.starts_with([' ', '\t']));
    at_edge.filter_map(|(key, _)| key.rsplit([' ', ')']).next()).filter(|name| is_word(name)).collect()
}

/// True for a line that defines something itself.
pub(super) fn is_definition(line: &str) -> bool {
    definitions(line.trim()).next().is_some()
}

/// What is defined up to its arguments (`def one`, `func (c *C) Inc`), and its line.
fn definitions(text: &str) -> impl Iterator<Item = (&str, &str)> {
    text.lines().filter_map(|line| {
        let mut rest = line.trim();
        while let Some((word, after)) = rest.split_once(' ')
            && (MODIFIERS.contains(&word) || word.starts_with("pub("))
        {
            rest = after.trim_start();
        }
        let keyword = rest.split(' ').next().filter(|word| KEYWORDS.contains(word))?;
        let from = if rest[keyword.len()..].starts_with(" (") { rest.find(") ")? } else { 0 };
        let end = rest[from..].find(['(', ':', '{', '<', '=', ';']).filter(|_| keyword != "impl");
        let end = end.map_or_else(|| rest.trim_end_matches(['{', ' ']).len(), |end| from + end);
        Some((rest[..end].trim_end(), line))
    })
}

/// Statements that stand together at the left edge of a Python file.
#[derive(Debug, Clone)]
struct Block<'t> {
    /// Comments and decorators right above.
    lead: Vec<&'t str>,
    /// The lines, blank ones at the end left out.
    lines: Vec<&'t str>,
    /// Blank lines at the end.
    blank: usize,
    /// The name of a function or class.
    name: Option<&'t str>,
}

/// The Python file `before` with the functions of `after` in place of its own, when `after` has functions and lacks some of
/// `before`. `None` when it is a whole file by itself, or when it is not sure what belongs where.
pub(super) fn merge(before: &str, after: &str) -> Option<String> {
    let (old, new) = (parse(before), parse(after));
    let (old_names, new_names) = (unique_names(&old)?, unique_names(&new)?);
    let is_part = !new_names.is_empty() && !old_names.is_subset(&new_names);
    let splits_text = old.iter().chain(&new).any(Block::splits_text);
    if !is_part || splits_text || before.contains(['\u{feff}', '\r']) {
        return None;
    }
    let members: HashSet<&str> =
        definitions(before).filter(|(_, line)| line.starts_with(' ')).map(|(key, _)| key).collect();
    let mut merged = old.clone();
    let mut added = Vec::new();
    let mut statements = Vec::new();
    for block in &new {
        match block.name.and_then(|name| old.iter().position(|other| other.name == Some(name))) {
            Some(at) => merged[at] = replaced(&old[at], block)?,
            // A method that was written alone would become a function.
            None if block.name.is_some() && definitions(block.lines[0]).any(|(key, _)| members.contains(key)) => {
                return None;
            }
            None if block.name.is_some() => added.push(block.clone()),
            None if block.lines.is_empty() || old.iter().any(|other| other.lines == block.lines) => {}
            // Only what stands at the top of both, and is one line, has a sure place.
            None if added.is_empty() && is_import(block) => statements.push(block.clone()),
            None => return None,
        }
    }
    let gap = old.iter().map(|block| block.blank).max().unwrap_or_default().clamp(1, 2);
    add_functions(&mut merged, added, gap);
    add_imports(&mut merged, statements, gap)?;
    let mut text = merged.iter().flat_map(Block::text).collect::<Vec<_>>().join("\n");
    if before.ends_with('\n') && !text.ends_with('\n') {
        text.push('\n');
    }
    Some(text)
}

/// The names of the functions and classes; `None` when one is there twice.
fn unique_names<'t>(blocks: &[Block<'t>]) -> Option<HashSet<&'t str>> {
    let mut seen = HashSet::new();
    blocks.iter().filter_map(|block| block.name).all(|name| seen.insert(name)).then_some(seen)
}

/// Puts new functions at the end, above what runs when the file is run.
fn add_functions<'t>(merged: &mut Vec<Block<'t>>, added: Vec<Block<'t>>, gap: usize) {
    let main = merged.iter().position(|block| block.lines.first().is_some_and(|line| line.starts_with("if __name__")));
    let at = main.unwrap_or(merged.len());
    if !added.is_empty()
        && let Some(last) = at.checked_sub(1).and_then(|index| merged.get_mut(index))
    {
        last.blank = last.blank.max(gap);
    }
    merged.splice(at..at, added.into_iter().map(|block| Block { blank: gap, ..block }));
    if main.is_none()
        && let Some(last) = merged.last_mut()
    {
        last.blank = 0;
    }
}

/// Puts imports above those that are there, else above the first function. `None` when neither is there.
fn add_imports<'t>(merged: &mut Vec<Block<'t>>, mut imports: Vec<Block<'t>>, gap: usize) -> Option<()> {
    let Some(last) = imports.len().checked_sub(1) else { return Some(()) };
    let of_function = || merged.iter().position(|block| block.name.is_some());
    let first = merged.iter().position(is_import).or_else(of_function)?;
    for (index, import) in imports.iter_mut().enumerate() {
        import.blank = if merged[first].name.is_some() && index == last { gap } else { 0 };
    }
    merged.splice(first..first, imports);
    Some(())
}

/// The first lines of the functions in `after`.
pub(super) fn heads(after: &str) -> Vec<String> {
    let named = parse(after).into_iter().filter(|block| block.name.is_some());
    named.take(MOST_NAMED).map(|block| shown(block.lines[0])).collect()
}

/// `new` in place of `old`, below the same decorators. `None` when more would go than the function.
fn replaced<'t>(old: &Block<'t>, new: &Block<'t>) -> Option<Block<'t>> {
    let is_inner = |line: &&str| line.is_empty() || line.starts_with([' ', '\t', ')', ']', '}']);
    let decorators = |block: &Block<'t>| -> Vec<&'t str> {
        block.lead.iter().filter(|line| line.starts_with('@')).copied().collect()
    };
    let is_whole = old.lines[1..].iter().all(is_inner);
    let same = decorators(new).is_empty() || decorators(new) == decorators(old);
    let loses = lost(&old.lines.join("\n"), &new.lines.join("\n"));
    (is_whole && same && loses.is_empty()).then(|| Block {
        lead: old.lead.clone(),
        blank: old.blank,
        lines: new.lines.clone(),
        name: old.name,
    })
}

fn is_import(block: &Block<'_>) -> bool {
    block.lines.len() == 1 && ["import ", "from "].iter().any(|word| block.lines[0].starts_with(word))
}

impl<'t> Block<'t> {
    /// True when a text of several lines begins in it and does not end, or the other way round.
    fn splits_text(&self) -> bool {
        let text = self.lines.join("\n");
        ["\"\"\"", "'''"].iter().any(|mark| text.matches(mark).count() % 2 == 1)
    }

    fn text(&self) -> Vec<&'t str> {
        let blank = std::iter::repeat_n("", self.blank);
        self.lead.iter().copied().chain(self.lines.iter().copied()).chain(blank).collect()
    }
}

/// The blocks of a Python text; all its lines are in them, in order.
fn parse(text: &str) -> Vec<Block<'_>> {
    let new = |lead, lines| Block { lead, lines, blank: 0, name: None };
    let mut blocks = vec![new(Vec::new(), Vec::new())];
    for line in text.lines() {
        if is_edge(line) {
            let lead = blocks.last_mut().map(take_lead).unwrap_or_default();
            blocks.push(new(lead, vec![line]));
        } else if let Some(block) = blocks.last_mut() {
            block.lines.push(line);
        }
    }
    for block in &mut blocks {
        while block.lines.last().is_some_and(|line| line.is_empty()) {
            block.lines.pop();
            block.blank += 1;
        }
        let head = block.lines.first().copied().unwrap_or_default();
        block.name = ["def ", "class ", "async def "]
            .iter()
            .find_map(|word| head.strip_prefix(word))
            .and_then(|rest| rest.split(['(', ':', ' ']).next())
            .filter(|name| is_word(name));
    }
    blocks
}

/// Takes the comments and decorators that stand right above the next block.
fn take_lead<'t>(block: &mut Block<'t>) -> Vec<&'t str> {
    let from = block.lines.iter().rposition(|line| !line.starts_with(['#', '@'])).map_or(0, |at| at + 1);
    block.lines.split_off(from)
}

/// A line at the left edge that says something.
fn is_edge(line: &str) -> bool {
    line.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn is_word(name: &str) -> bool {
    name.chars().all(|c| c.is_alphanumeric() || c == '_') && name.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

fn shown(line: &str) -> String {
    format!("`{}`", one_line(line, MOST_OF_A_LINE))
}

#[cfg(test)]
mod tests;
