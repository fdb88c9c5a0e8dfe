//! The lead of a replacement that is in the file already.
//!
//! Asked to replace the body of a function, a small model gives the whole function as the new text and only a line of
//! the body as the old one. Put there as it stands, the head of the function would be in it twice. Never: a line of the
//! file that is dropped.

use super::indent;

/// The old text as whole lines (`start..end` in bytes of the text), and what belongs there in its place.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Rest {
    pub start: usize,
    pub end: usize,
    pub new: String,
}

/// The part of `new` that is not yet above the old text (`start..end` in `flat`), when `new` begins with the line that
/// opens the block around it. `None` when it does not, or when it is not sure.
pub(super) fn rest(flat: &str, start: usize, end: usize, new: &str) -> Option<Rest> {
    let line_start = flat[..start].rfind('\n').map_or(0, |at| at + 1);
    let end = if flat[start..end].ends_with('\n') { end - 1 } else { end };
    if end < start
        || !flat[line_start..start].trim().is_empty()
        || !matches!(flat[end..].chars().next(), None | Some('\n'))
    {
        return None;
    }
    let old: Vec<&str> = flat[line_start..end].split('\n').collect();
    let depth = indent::of(old[0]).len();
    let above: Vec<&str> = flat[..line_start].split_terminator('\n').collect();
    let blank = |line: &str| line.trim().is_empty();
    let opening = above.iter().rposition(|line| !blank(line) && indent::of(line).len() < depth)?;

    let mut lines = new.trim_matches('\n').split('\n').peekable();
    let head = lines.next()?;
    let is_block = head.trim_end().ends_with([':', '{']);
    if !is_block || head.trim() != above[opening].trim() || old.iter().any(|line| line.trim() == head.trim()) {
        return None;
    }
    for line in above[opening + 1..].iter().filter(|line| !blank(line)) {
        while lines.peek().is_some_and(|next| blank(next)) {
            lines.next();
        }
        if lines.next_if(|next| next.trim() == line.trim()).is_none() {
            break;
        }
    }
    let rest: Vec<&str> = lines.skip_while(|line| blank(line)).collect();
    let (written, wanted) = (indent::of(head), indent::of(above[opening]));
    let is_body = |line: &&str| blank(line) || (line.starts_with(written) && indent::of(line).len() > written.len());
    let least = rest.iter().filter(|line| !blank(line)).map(|line| indent::of(line).len()).min()?;
    // Text that is indented in another way than the file does not fit in.
    if !rest.iter().all(is_body) || least - written.len() + wanted.len() != depth {
        return None;
    }
    let moved = rest.iter().map(|line| match line.strip_prefix(written) {
        Some(inner) if !blank(line) => format!("{wanted}{inner}"),
        _ => String::new(),
    });
    Some(Rest { start: line_start, end, new: moved.collect::<Vec<_>>().join("\n") })
}

#[cfg(test)]
mod tests {
    use super::rest;

    const FILE: &str =
        "def one(text):\n    \"\"\"Counts.\"\"\"\n    raise NotImplementedError\n\n\ndef two():\n    pass\n";

    fn replaced(file: &str, old: &str, new: &str) -> Option<String> {
        let start = file.find(old).unwrap();
        let rest = rest(file, start, start + old.len(), new)?;
        Some(format!("{}{}{}", &file[..rest.start], rest.new, &file[rest.end..]))
    }

    #[test]
    fn the_head_of_the_function_and_what_follows_it_stay_once() {
        let wanted = FILE.replace("raise NotImplementedError", "return len(text)");
        let whole = "def one(text):\n    \"\"\"Counts.\"\"\"\n    return len(text)";
        let without_text = "def one(text):\n    return len(text)\n";
        for new in [whole, without_text] {
            for old in ["raise NotImplementedError", "    raise NotImplementedError\n"] {
                assert_eq!(replaced(FILE, old, new).as_deref(), Some(wanted.as_str()), "{old:?} by {new:?}");
            }
        }
    }

    #[test]
    fn the_indentation_of_the_file_counts() {
        let file = "class A:\n    def one(self):\n        pass\n";
        let new = "def one(self):\n    if self:\n        return 1\n    return 2";
        let wanted = "class A:\n    def one(self):\n        if self:\n            return 1\n        return 2\n";
        assert_eq!(replaced(file, "pass", new).as_deref(), Some(wanted));
    }

    #[test]
    fn any_other_text_is_taken_as_it_is() {
        let cases = [
            ("raise NotImplementedError", "return len(text)"),
            ("raise NotImplementedError", "def other(text):\n    return 1"),
            // What would be left over stands outside of the block.
            ("raise NotImplementedError", "def one(text):\n    return 1\n\ndef three():\n    pass"),
            ("raise NotImplementedError", "def one(text):"),
            ("raise", "def one(text):\n    return 1"),
            ("def one(text):\n    \"\"\"Counts.\"\"\"", "def one(text):\n    return 1"),
        ];
        for (old, new) in cases {
            assert_eq!(replaced(FILE, old, new), None, "{old:?} by {new:?}");
        }
    }
}
