//! Words of a command line with quotes, escapes and known variables resolved.
//!
//! A word has possible values; what cannot be known stays unknown and meets no rule.

use tree_sitter::Node;

use super::script::Judge;

/// The most possible values that are followed for one word.
const MOST_VALUES: usize = 16;

/// One word as the shell would hand it over.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// What it may be.
    pub values: Vec<String>,
    /// It may also be something else.
    pub unknown: bool,
    /// It may hold text that was fetched from the network.
    pub remote: bool,
    /// It has unquoted glob characters.
    pub glob: bool,
    /// It has unquoted braces.
    pub braces: bool,
    /// A process substitution that is read from: `<(…)`.
    pub process: bool,
}

impl Word {
    pub fn known(text: impl Into<String>) -> Self {
        Self { values: vec![text.into()], ..Self::default() }
    }

    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// The value, when it is certain.
    pub fn text(&self) -> Option<&str> {
        match (self.values.as_slice(), self.unknown) {
            ([one], false) => Some(one),
            _ => None,
        }
    }

    /// True when one of the possible values fits.
    pub fn any(&self, fits: impl Fn(&str) -> bool) -> bool {
        self.values.iter().any(|value| fits(value))
    }

    /// This or that.
    pub fn or(mut self, other: Self) -> Self {
        for value in other.values {
            if self.values.len() < MOST_VALUES && !self.values.contains(&value) {
                self.values.push(value);
            }
        }
        self.unknown |= other.unknown;
        self.remote |= other.remote;
        self.glob |= other.glob;
        self.braces |= other.braces;
        self
    }

    /// This and then that, in one word.
    pub fn then(self, other: &Self) -> Self {
        let mut values = Vec::new();
        for left in &self.values {
            for right in &other.values {
                if values.len() < MOST_VALUES {
                    values.push(format!("{left}{right}"));
                }
            }
        }
        Self {
            values,
            unknown: self.unknown || other.unknown,
            remote: self.remote || other.remote,
            glob: self.glob || other.glob,
            braces: self.braces || other.braces,
            process: self.process || other.process,
        }
    }

    /// For messages.
    pub fn shown(&self) -> &str {
        self.values.first().map_or("…", String::as_str)
    }
}

impl Judge<'_> {
    /// The words that a node of the command line becomes. An unquoted variable is split at blanks.
    pub(super) fn words(&self, node: Node<'_>, source: &str) -> Vec<Word> {
        let word = self.word(node, source);
        let splits = matches!(node.kind(), "simple_expansion" | "expansion" | "command_substitution");
        match word.text() {
            Some(text) if splits && text.split_whitespace().count() != 1 => text
                .split_whitespace()
                .map(|part| Word { values: vec![part.to_owned()], glob: part.contains('*'), ..word.clone() })
                .collect(),
            _ if splits => vec![Word { glob: true, ..word }],
            _ => vec![word],
        }
    }

    /// One node as one word.
    pub(super) fn word(&self, node: Node<'_>, source: &str) -> Word {
        if !self.enter() {
            return Word::unknown();
        }
        let word = self.word_within(node, source);
        self.leave();
        word
    }

    fn word_within(&self, node: Node<'_>, source: &str) -> Word {
        let text = source.get(node.byte_range()).unwrap_or_default();
        match node.kind() {
            "raw_string" => Word::known(text.trim_matches('\'')),
            "ansi_c_string" => Word::known(ansi_c(text.trim_start_matches('$').trim_matches('\''))),
            "string" => self.quoted(node, source, node.start_byte() + 1, node.end_byte().saturating_sub(1)),
            "translated_string" | "command_name" => {
                node.named_child(0).map_or_else(Word::unknown, |child| self.word(child, source))
            }
            "simple_expansion" => self.variable(text.trim_start_matches('$')),
            "expansion" => self.expansion(node, text, source),
            "command_substitution" => self.substitution(node, source),
            "process_substitution" => Word {
                unknown: true,
                remote: self.fetches(node, source),
                process: text.starts_with('<'),
                ..Word::default()
            },
            "arithmetic_expansion" | "brace_expression" => Word::unknown(),
            "concatenation" | "array" => {
                let mut cursor = node.walk();
                let mut parts = node.children(&mut cursor).map(|child| self.word(child, source));
                if node.kind() == "array" {
                    return parts.fold(Word::default(), Word::or);
                }
                let first = parts.next().unwrap_or_default();
                parts.fold(first, |word, part| word.then(&part))
            }
            _ => self.bare(text, node),
        }
    }

    fn bare(&self, text: &str, node: Node<'_>) -> Word {
        let glob = text.contains(['*', '?']);
        let braces = text.contains('{') || text.contains('}');
        let mut value = unescape(text, |_| true);
        let starts_word = node.prev_sibling().is_none_or(|before| before.end_byte() != node.start_byte())
            || node.parent().is_none_or(|parent| parent.kind() != "concatenation");
        if starts_word && let Some(rest) = text.strip_prefix('~') {
            if rest.is_empty() || rest.starts_with('/') {
                value = format!("{}{}", self.home(), unescape(rest, |_| true));
            } else if !rest.starts_with(['+', '-']) {
                return Word::unknown();
            }
        }
        Word { values: vec![value], glob, braces, ..Word::default() }
    }

    /// The text between two offsets with its expansions put in (a double-quoted string, a here-document).
    pub(super) fn quoted(&self, node: Node<'_>, source: &str, start: usize, end: usize) -> Word {
        let literal = |from: usize, to: usize| {
            Word::known(unescape(source.get(from..to).unwrap_or_default(), |c| "$`\"\\\n".contains(c)))
        };
        let mut word = Word::known("");
        let mut at = start;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if matches!(child.kind(), "string_content" | "heredoc_content") || child.start_byte() < at {
                continue;
            }
            word = word.then(&literal(at, child.start_byte())).then(&self.word(child, source));
            at = child.end_byte();
        }
        let mut word = word.then(&literal(at, end.max(at)));
        word.glob = false;
        word.braces = false;
        word
    }

    fn expansion(&self, node: Node<'_>, text: &str, source: &str) -> Word {
        let inner = text.trim_start_matches("${").trim_end_matches('}');
        let end = inner.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(inner.len());
        let (name, operator) = inner.split_at(end);
        if name.is_empty() {
            return Word::unknown();
        }
        let value = self.variable(name);
        if operator.is_empty() || operator.starts_with('[') || operator.starts_with('?') || operator.starts_with(":?") {
            return value;
        }
        if [":-", "-", ":=", "="].iter().any(|prefix| operator.starts_with(prefix)) {
            let last = node.named_child_count().saturating_sub(1);
            let default = node
                .named_child(u32::try_from(last).unwrap_or(0))
                .filter(|_| last > 0)
                .map_or_else(|| Word::known(""), |child| self.word(child, source));
            // A variable that the script does not set is most likely empty: the default is a possible value.
            return if value.values.is_empty() { default.or(Word::unknown()) } else { value };
        }
        Word { remote: value.remote, ..Word::unknown() }
    }
}

/// Removes backslashes where they escape something.
fn unescape(text: &str, escapes: impl Fn(char) -> bool) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        match chars.next() {
            Some('\n') => {}
            Some(next) if escapes(next) => out.push(next),
            Some(next) => out.extend(['\\', next]),
            None => out.push('\\'),
        }
    }
    out
}

/// The text of `$'…'`.
fn ansi_c(text: &str) -> String {
    let mut out = String::new();
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        if c != '\\' {
            out.push(c);
            continue;
        }
        let Some(kind) = chars.next() else { break };
        let (radix, most) = match kind {
            'x' => (16, 2),
            'u' => (16, 4),
            'U' => (16, 8),
            '0'..='7' => (8, 3),
            _ => (0, 0),
        };
        if radix == 0 {
            out.push(match kind {
                'n' => '\n',
                't' => '\t',
                'r' => '\r',
                'e' | 'E' => '\u{1b}',
                other => other,
            });
            continue;
        }
        let mut code = if radix == 8 { kind.to_digit(8).unwrap_or(0) } else { 0 };
        let mut digits = u32::from(radix == 8);
        while digits < most
            && let Some(digit) = chars.peek().and_then(|c| c.to_digit(radix))
        {
            code = code.wrapping_mul(radix).wrapping_add(digit);
            digits += 1;
            chars.next();
        }
        out.extend(char::from_u32(code));
    }
    out
}
