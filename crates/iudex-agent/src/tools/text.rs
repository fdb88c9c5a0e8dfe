//! Bytes of a file as text and back: encoding, byte order mark and the ending of every line are kept.

use encoding_rs::{UTF_16BE, UTF_16LE, WINDOWS_1252};

/// Bytes that are looked at to tell text from binary.
pub(super) const PROBE_BYTES: usize = 8_192;

const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

/// Stands for byte 0x00 of those that are not UTF-8 in a file that otherwise is; private use, never in real text.
const ESCAPE_BASE: u32 = 0x0010_fe00;

/// How the characters of a file are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    /// UTF-8.
    Utf8,
    /// UTF-16, little-endian, with a mark.
    Utf16Le,
    /// UTF-16, big-endian, with a mark.
    Utf16Be,
    /// One byte a character (windows-1252, which gives every byte a character).
    SingleByte,
    /// UTF-8 with some bytes that are not; those are escaped.
    MostlyUtf8,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    /// Its text.
    pub body: String,
    /// `\n`, `\r\n`, or nothing at the end of the file.
    pub ending: &'static str,
}

/// A file as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Document {
    /// How it is stored.
    pub encoding: Encoding,
    /// Whether it begins with a byte order mark.
    pub mark: bool,
    /// Its lines. The last has no ending; it is empty when the file ends with a line break.
    pub lines: Vec<Line>,
}

/// True for bytes that are no text.
pub(super) fn is_binary(beginning: &[u8]) -> bool {
    let probe = &beginning[..beginning.len().min(PROBE_BYTES)];
    !probe.starts_with(b"\xff\xfe") && !probe.starts_with(b"\xfe\xff") && probe.contains(&0)
}

impl Document {
    /// Reads bytes as text; `None` when they are none (a NUL byte, broken UTF-16).
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        if is_binary(bytes) {
            return None;
        }
        let utf16 = [(b"\xff\xfe", UTF_16LE, Encoding::Utf16Le), (b"\xfe\xff", UTF_16BE, Encoding::Utf16Be)];
        for (mark, decoder, encoding) in utf16 {
            if let Some(rest) = bytes.strip_prefix(mark) {
                let text = decoder.decode_without_bom_handling_and_without_replacement(rest)?;
                return Some(Self { encoding, mark: true, lines: split(&text) });
            }
        }
        let (mark, rest) = match bytes.strip_prefix(UTF8_MARK) {
            Some(rest) => (true, rest),
            None => (false, bytes),
        };
        let (encoding, text) = characters(rest);
        Some(Self { encoding, mark, lines: split(&text) })
    }

    /// The bytes; `Err` names a character that this encoding does not have.
    pub fn encode(&self) -> Result<Vec<u8>, char> {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&line.body);
            text.push_str(line.ending);
        }
        self.encode_text(&text)
    }

    /// A text in the encoding of this document, with its mark.
    pub fn encode_text(&self, text: &str) -> Result<Vec<u8>, char> {
        let mut bytes = Vec::with_capacity(text.len() + 3);
        match self.encoding {
            Encoding::Utf8 => {
                bytes.extend_from_slice(if self.mark { UTF8_MARK } else { b"" });
                bytes.extend_from_slice(text.as_bytes());
            }
            Encoding::Utf16Le => {
                bytes.extend(std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_le_bytes));
            }
            Encoding::Utf16Be => {
                bytes.extend(std::iter::once(0xfeff).chain(text.encode_utf16()).flat_map(u16::to_be_bytes));
            }
            Encoding::SingleByte => {
                let (encoded, _, _) = WINDOWS_1252.encode(text);
                let (back, _) = WINDOWS_1252.decode_without_bom_handling(&encoded);
                if let Some((foreign, _)) = text.chars().zip(back.chars()).find(|(wanted, got)| wanted != got) {
                    return Err(foreign);
                }
                bytes.extend_from_slice(if self.mark { UTF8_MARK } else { b"" });
                bytes.extend_from_slice(&encoded);
            }
            Encoding::MostlyUtf8 => {
                bytes.extend_from_slice(if self.mark { UTF8_MARK } else { b"" });
                let mut buffer = [0; 4];
                for c in text.chars() {
                    match escaped_byte(c) {
                        Some(byte) => bytes.push(byte),
                        None => bytes.extend_from_slice(c.encode_utf8(&mut buffer).as_bytes()),
                    }
                }
            }
        }
        Ok(bytes)
    }

    /// True when there are line breaks and all of them are CRLF.
    pub fn is_crlf_throughout(&self) -> bool {
        let endings = self.lines.iter().filter(|line| !line.ending.is_empty());
        self.lines.len() > 1 && endings.clone().all(|line| line.ending == "\r\n")
    }

    /// The text with `\n` for every line break.
    pub fn flat(&self) -> String {
        let bodies: Vec<&str> = self.lines.iter().map(|line| line.body.as_str()).collect();
        bodies.join("\n")
    }
}

/// The byte that an escape stands for.
pub(super) fn escaped_byte(c: char) -> Option<u8> {
    (c as u32).checked_sub(ESCAPE_BASE).and_then(|code| u8::try_from(code).ok())
}

/// Bytes as characters, without loss.
fn characters(bytes: &[u8]) -> (Encoding, String) {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return (Encoding::Utf8, text.to_owned());
    }
    let is_clean = |text: &str| !text.chars().any(|c| escaped_byte(c).is_some());
    let chunks = || bytes.utf8_chunks().map(|chunk| chunk.valid());
    if chunks().all(str::is_ascii) || !chunks().all(is_clean) {
        let (text, _) = WINDOWS_1252.decode_without_bom_handling(bytes);
        return (Encoding::SingleByte, text.into_owned());
    }
    let mut text = String::with_capacity(bytes.len() * 2);
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().filter_map(|byte| char::from_u32(ESCAPE_BASE + u32::from(*byte))));
    }
    (Encoding::MostlyUtf8, text)
}

/// Bytes for display: escapes become U+FFFD.
pub(super) fn display(bytes: &[u8]) -> String {
    let (encoding, text) = characters(bytes);
    if encoding == Encoding::MostlyUtf8 { visible(&text) } else { text }
}

/// Text for display: escapes become U+FFFD.
pub(super) fn visible(text: &str) -> String {
    text.chars().map(|c| if escaped_byte(c).is_some() { char::REPLACEMENT_CHARACTER } else { c }).collect()
}

/// Text as lines.
pub(super) fn split(text: &str) -> Vec<Line> {
    text.split_inclusive('\n')
        .map(|line| match (line.strip_suffix("\r\n"), line.strip_suffix('\n')) {
            (Some(body), _) => Line { body: body.to_owned(), ending: "\r\n" },
            (None, Some(body)) => Line { body: body.to_owned(), ending: "\n" },
            (None, None) => Line { body: line.to_owned(), ending: "" },
        })
        .chain((text.is_empty() || text.ends_with('\n')).then(|| Line { body: String::new(), ending: "" }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{Document, Encoding};

    #[test]
    fn every_text_comes_back_byte_for_byte() {
        let pieces: [&[u8]; 12] = [
            b"a",
            b"\n",
            b"\r\n",
            b"\r",
            b"\xc3\xbc",
            b"\xff",
            b"\xe9",
            b"\x80",
            b"\xf4\x8f\xb8\x80",
            b"\xef\xbf\xbd",
            b"\t",
            b"\xed\xa0\x80",
        ];
        let mut state = 7_u64;
        let mut next = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            usize::try_from(state >> 33).unwrap() % bound
        };
        let mut seen = Vec::new();
        for mark in [&b""[..], b"\xef\xbb\xbf"] {
            for _ in 0..3_000 {
                let mut bytes = mark.to_vec();
                for _ in 0..next(8) {
                    bytes.extend_from_slice(pieces[next(pieces.len())]);
                }
                let document = Document::decode(&bytes).unwrap();
                assert_eq!(document.encode().unwrap(), bytes, "{}", bytes.escape_ascii());
                assert!(document.lines.last().unwrap().ending.is_empty());
                assert!(document.lines.iter().rev().skip(1).all(|line| !line.ending.is_empty()));
                seen.push(document.encoding);
            }
        }
        for encoding in [Encoding::Utf8, Encoding::SingleByte, Encoding::MostlyUtf8] {
            assert!(seen.contains(&encoding), "{encoding:?} was never tried");
        }
    }

    #[test]
    fn broken_utf_16_and_nul_bytes_are_no_text() {
        for bytes in [&b"\xff\xfea"[..], b"\xff\xfe\0\xd8", b"a\0b"] {
            assert_eq!(Document::decode(bytes), None, "{}", bytes.escape_ascii());
        }
    }
}
