//! Moves new lines to the indentation of the place where the old ones were found.

/// The white space that a line begins with.
pub(super) fn of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

/// How the indentation of a text maps to that of a file.
#[derive(Debug, Default)]
pub(super) struct Mapping {
    /// Pairs of (in the text, in the file), each text once.
    pairs: Vec<(String, String)>,
}

impl Mapping {
    /// Learns from lines that correspond.
    pub fn learn<'l>(pairs: impl Iterator<Item = (&'l str, &'l str)>) -> Self {
        let mut mapping = Self::default();
        for (text, file) in pairs.filter(|(text, file)| !text.trim().is_empty() && !file.trim().is_empty()) {
            let pair = (of(text).to_owned(), of(file).to_owned());
            if !mapping.pairs.iter().any(|(known, _)| *known == pair.0) {
                mapping.pairs.push(pair);
            }
        }
        mapping
    }

    /// A new line with the indentation that it would have in the file.
    pub fn apply(&self, line: &str) -> String {
        if line.trim().is_empty() {
            return line.trim().to_owned();
        }
        let (indent, body) = line.split_at(of(line).len());
        if let Some((_, file)) = self.pairs.iter().find(|(text, _)| text == indent) {
            return format!("{file}{body}");
        }
        let nearest =
            self.pairs.iter().filter(|(text, _)| indent.starts_with(text.as_str())).max_by_key(|(text, _)| text.len());
        if let Some((text, file)) = nearest {
            return format!("{file}{}{body}", self.converted(&indent[text.len()..]));
        }
        // Less indented than every known line: take away as much as in the text.
        let least = self.pairs.iter().filter(|(text, _)| text.starts_with(indent)).min_by_key(|(text, _)| text.len());
        if let Some((text, file)) = least {
            let less = self.converted(&text[indent.len()..]);
            let kept = file.strip_suffix(less.as_str()).unwrap_or("");
            return format!("{kept}{body}");
        }
        line.to_owned()
    }

    /// Further indentation in the characters that the file uses.
    fn converted(&self, more: &str) -> String {
        let with_tabs =
            self.pairs.iter().find(|(text, file)| file.contains('\t') && !text.contains('\t') && !text.is_empty());
        if let Some((text, file)) = with_tabs
            && !more.contains('\t')
        {
            let width = (text.len() / file.matches('\t').count().max(1)).max(1);
            return format!("{}{}", "\t".repeat(more.len() / width), " ".repeat(more.len() % width));
        }
        let with_spaces =
            self.pairs.iter().find(|(text, file)| text.contains('\t') && !file.contains('\t') && !file.is_empty());
        if let Some((text, file)) = with_spaces
            && !more.contains(' ')
        {
            let width = (file.len() / text.matches('\t').count().max(1)).max(1);
            return " ".repeat(more.len() * width);
        }
        more.to_owned()
    }
}
