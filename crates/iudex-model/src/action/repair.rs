//! Reads the JSON that models write, mending it only where no content has to be invented.
//!
//! Mended: trailing commas, comments, closing brackets that are missing at the end or between two others, single or
//! typographic quotes, triple quotes and backticks without escapes, `True`/`None`, raw line breaks and control
//! characters in strings, unknown escapes (kept as written), keys without quotes, `"a" + "b"`.
//! Never: a guess where a string ends. A quote inside a string that is not escaped is a fault, and so is a key twice.

use serde_json::{Map, Number, Value};

/// Deeper nesting is a fault; it would only exhaust the stack.
const MOST_DEPTH: u32 = 64;

/// Why a text is not JSON that can be mended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault(pub String);

/// A value at the start of a text.
#[derive(Debug)]
pub(super) struct Prefix {
    /// The value.
    pub value: Value,
    /// Where it ends, in bytes.
    pub end: usize,
    /// A closing bracket was missing. Such a value counts only when nothing but closing tags follows: otherwise what
    /// looks like its end may be the middle of a string whose quotes are not escaped.
    pub unclosed: bool,
}

/// Reads one value at the start of `text` (after white space) and tells where it ends.
///
/// Where a bracket may close, the end of the text, a code fence (```` ``` ````) and a tag (`</`) count as the end.
pub(super) fn parse_prefix(text: &str) -> Result<Prefix, Fault> {
    let mut reader = Reader { text, at: 0, depth: 0, unclosed: false };
    reader.skip_space();
    let value = reader.value()?;
    Ok(Prefix { value, end: reader.at, unclosed: reader.unclosed })
}

/// Reads a text that is one value and nothing else but surplus closing brackets.
pub(super) fn parse_whole(text: &str) -> Result<Value, Fault> {
    let Prefix { value, end, .. } = parse_prefix(text)?;
    let rest = text[end..].trim_start_matches(|c: char| c.is_whitespace() || matches!(c, '}' | ']' | ';'));
    if rest.is_empty() { Ok(value) } else { Err(Fault(format!("unexpected {:?} after its end", excerpt(rest)))) }
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: u32,
    unclosed: bool,
}

impl Reader<'_> {
    fn rest(&self) -> &str {
        &self.text[self.at..]
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        if found {
            self.at += wanted.len_utf8();
        }
        found
    }

    fn skip_space(&mut self) {
        self.at = self.text.len() - self.rest().trim_start().len();
    }

    /// White space and comments. Only before a key or an item: after a string whose quotes are not escaped a comment
    /// would swallow the rest of it.
    fn skip_blank(&mut self) {
        loop {
            self.skip_space();
            let rest = self.rest();
            let length = if rest.starts_with("//") || rest.starts_with('#') {
                rest.find('\n').map(|end| end + 1)
            } else if rest.starts_with("/*") {
                rest.find("*/").map(|end| end + 2)
            } else {
                None
            };
            let Some(length) = length else { return };
            self.at += length;
        }
    }

    fn at_end(&self) -> bool {
        let rest = self.rest();
        rest.is_empty() || rest.starts_with("```") || rest.starts_with("</")
    }

    fn fault<T>(&self, what: &str) -> Result<T, Fault> {
        let rest = self.rest();
        if rest.is_empty() {
            Err(Fault(format!("{what} at its end")))
        } else {
            Err(Fault(format!("{what} at {:?}", excerpt(rest))))
        }
    }

    fn value(&mut self) -> Result<Value, Fault> {
        if self.at_end() {
            return self.fault("a value is missing");
        }
        match self.peek() {
            Some('{') => self.nested(Self::object),
            Some('[') => self.nested(Self::array),
            Some('"' | '\'' | '`' | '\u{201c}' | '\u{201d}') => self.strings().map(Value::String),
            _ => self.word(),
        }
    }

    fn nested(&mut self, read: fn(&mut Self) -> Result<Value, Fault>) -> Result<Value, Fault> {
        self.depth += 1;
        if self.depth > MOST_DEPTH {
            return self.fault("nested too deeply");
        }
        let value = read(self);
        self.depth -= 1;
        value
    }

    fn object(&mut self) -> Result<Value, Fault> {
        self.take('{');
        let mut map = Map::new();
        self.skip_blank();
        loop {
            if self.take('}') {
                break;
            }
            let key = self.key()?;
            self.skip_space();
            if !self.take(':') {
                return self.fault("a colon is missing");
            }
            self.skip_space();
            let value = self.value()?;
            match map.get(&key) {
                Some(earlier) if *earlier != value => return Err(Fault(format!("the key {key:?} is there twice"))),
                Some(_) => {}
                None => {
                    map.insert(key, value);
                }
            }
            self.skip_space();
            if self.take(',') {
                self.skip_blank();
                continue;
            }
            if self.take('}') || self.closes_here(']') {
                break;
            }
            return self.fault("a comma or a closing brace is missing");
        }
        Ok(Value::Object(map))
    }

    fn array(&mut self) -> Result<Value, Fault> {
        self.take('[');
        let mut items = Vec::new();
        self.skip_blank();
        loop {
            if self.take(']') {
                break;
            }
            items.push(self.value()?);
            self.skip_space();
            if self.take(',') {
                self.skip_blank();
                continue;
            }
            if self.take(']') || self.closes_here('}') {
                break;
            }
            return self.fault("a comma or a closing bracket is missing");
        }
        Ok(Value::Array(items))
    }

    /// True where the missing bracket of this value can only have stood: at the end, or before the `outer` bracket
    /// that closes an enclosing value.
    fn closes_here(&mut self, outer: char) -> bool {
        let closes = self.at_end() || (self.depth > 1 && self.peek() == Some(outer));
        self.unclosed |= closes;
        closes
    }

    fn key(&mut self) -> Result<String, Fault> {
        if self.at_end() {
            return self.fault("a key is missing");
        }
        if matches!(self.peek(), Some('"' | '\'' | '\u{201c}' | '\u{201d}')) {
            return self.string();
        }
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == '-')).unwrap_or(rest.len());
        if end == 0 {
            return self.fault("a key is missing");
        }
        let key = rest[..end].to_owned();
        self.at += end;
        Ok(key)
    }

    /// A string, or several joined by `+`.
    fn strings(&mut self) -> Result<String, Fault> {
        let mut whole = self.string()?;
        loop {
            let before = self.at;
            self.skip_space();
            if !self.take('+') {
                self.at = before;
                return Ok(whole);
            }
            self.skip_space();
            whole.push_str(&self.string()?);
        }
    }

    fn string(&mut self) -> Result<String, Fault> {
        for quotes in ["\"\"\"", "'''"] {
            if self.rest().starts_with(quotes) {
                return self.verbatim(quotes);
            }
        }
        match self.peek() {
            Some('"') => self.quoted(&['"']),
            Some('\'') => self.quoted(&['\'']),
            Some('\u{201c}' | '\u{201d}') => self.quoted(&['\u{201c}', '\u{201d}']),
            Some('`') => self.verbatim("`"),
            _ => self.fault("a string is missing"),
        }
    }

    /// A string in quotes. The first closing quote that is not escaped ends it, and only what may follow a string may
    /// follow it; otherwise where it ends is a guess.
    fn quoted(&mut self, closing: &[char]) -> Result<String, Fault> {
        let start = self.at;
        let mut out = String::new();
        let mut chars = self.text[start..].char_indices();
        chars.next();
        while let Some((offset, c)) = chars.next() {
            if closing.contains(&c) {
                self.at = start + offset + c.len_utf8();
                self.must_end_string()?;
                return Ok(out);
            }
            if c != '\\' {
                out.push(c);
                continue;
            }
            let Some((_, escaped)) = chars.next() else { break };
            match escaped {
                '"' | '\\' | '/' | '\'' => out.push(escaped),
                'b' => out.push('\u{8}'),
                'f' => out.push('\u{c}'),
                'n' => out.push('\n'),
                'r' => out.push('\r'),
                't' => out.push('\t'),
                'u' => {
                    let digits = &self.text[start + offset..];
                    let (decoded, taken) = unicode_escape(digits)?;
                    out.push(decoded);
                    for _ in 2..taken {
                        chars.next();
                    }
                }
                // `\d` or `\(` of a regular expression that should have been escaped: every character is kept.
                other => {
                    out.push('\\');
                    out.push(other);
                }
            }
        }
        Err(Fault("a string is not closed".to_owned()))
    }

    /// A string in triple quotes or backticks. Escapes in it mean different things to different readers: a fault.
    fn verbatim(&mut self, quotes: &str) -> Result<String, Fault> {
        let body = &self.rest()[quotes.len()..];
        let Some(length) = body.find(quotes) else { return Err(Fault("a string is not closed".to_owned())) };
        let content = body[..length].to_owned();
        if content.contains('\\') || content.contains("${") {
            return Err(Fault(format!("escapes inside {quotes} are ambiguous; use \" and \\n")));
        }
        self.at += quotes.len() + length + quotes.len();
        self.must_end_string()?;
        Ok(content)
    }

    fn must_end_string(&mut self) -> Result<(), Fault> {
        let before = self.at;
        self.skip_space();
        let fits = self.at_end() || matches!(self.peek(), Some(',' | '}' | ']' | ':' | '+'));
        self.at = before;
        if fits { Ok(()) } else { self.fault("a quote inside a string is not escaped; write \\\" there,") }
    }

    /// A number or a literal.
    fn word(&mut self) -> Result<Value, Fault> {
        let rest = self.rest();
        let end = rest
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.' | '_')))
            .unwrap_or(rest.len());
        let word = &rest[..end];
        let value = match word {
            "true" | "True" | "TRUE" => Value::Bool(true),
            "false" | "False" | "FALSE" => Value::Bool(false),
            "null" | "None" | "NULL" => Value::Null,
            _ => match serde_json::from_str::<Number>(word) {
                Ok(number) => Value::Number(number),
                Err(_) => return self.fault("a value is not JSON"),
            },
        };
        self.at += end;
        Ok(value)
    }
}

/// Decodes `\uXXXX`, a surrogate pair included, at the start of `text`; gives the character and the length in bytes.
fn unicode_escape(text: &str) -> Result<(char, usize), Fault> {
    let unit = |at: usize| {
        let digits = text.get(at + 2..at + 6).filter(|_| text[at..].starts_with("\\u"))?;
        u32::from_str_radix(digits, 16).ok().filter(|_| digits.bytes().all(|b| b.is_ascii_hexdigit()))
    };
    let fault = || Fault(format!("{:?} is no character", excerpt(text)));
    let first = unit(0).ok_or_else(fault)?;
    if let Some(single) = char::from_u32(first) {
        return Ok((single, 6));
    }
    let second = unit(6).filter(|low| (0xdc00..0xe000).contains(low)).ok_or_else(fault)?;
    if first >= 0xdc00 {
        return Err(fault());
    }
    char::from_u32(0x10000 + ((first - 0xd800) << 10) + (second - 0xdc00)).map(|pair| (pair, 12)).ok_or_else(fault)
}

/// The first characters of a text, for a message.
pub(super) fn excerpt(text: &str) -> String {
    const LENGTH: usize = 24;
    let mut short: String = text.chars().take(LENGTH).collect();
    if text.chars().nth(LENGTH).is_some() {
        short.push('…');
    }
    short
}
