//! Paths as bytes: written into JSON, git patterns and environment variables, and read back without loss.
//! Never: a path changed on the way.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Component, Path, PathBuf};

use sha2::{Digest as _, Sha256};

/// The path as text that can go into JSON: control characters, `%` and bytes that are not UTF-8 become `%XX`.
pub(crate) fn encode(path: &Path) -> String {
    let mut text = String::new();
    for chunk in path.as_os_str().as_bytes().utf8_chunks() {
        for character in chunk.valid().chars() {
            if character == '%' || character.is_ascii_control() {
                push_escaped(&mut text, character as u8);
            } else {
                text.push(character);
            }
        }
        for byte in chunk.invalid() {
            push_escaped(&mut text, *byte);
        }
    }
    text
}

fn push_escaped(text: &mut String, byte: u8) {
    // Writing into a string cannot fail.
    let _ = write!(text, "%{byte:02X}");
}

/// The path that [`encode`] wrote.
pub(crate) fn decode(text: &str) -> PathBuf {
    let bytes = text.as_bytes();
    let mut path = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let escaped = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3).and_then(|digits| u8::from_str_radix(digits, 16).ok()))
            .flatten();
        if let Some(byte) = escaped {
            path.push(byte);
            at += 3;
        } else {
            path.push(bytes[at]);
            at += 1;
        }
    }
    PathBuf::from(OsString::from_vec(path))
}

/// A path from git's `-z` output.
pub(crate) fn from_bytes(bytes: &[u8]) -> PathBuf {
    PathBuf::from(OsStr::from_bytes(bytes))
}

/// The records of git's `-z` output.
pub(crate) fn records(output: &[u8]) -> impl Iterator<Item = &[u8]> {
    output.split(|byte| *byte == 0).filter(|record| !record.is_empty())
}

/// The paths as git reads them with `-z --stdin`.
pub(crate) fn joined<'a>(paths: impl IntoIterator<Item = &'a Path>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for path in paths {
        bytes.extend_from_slice(path.as_os_str().as_bytes());
        bytes.push(0);
    }
    bytes
}

/// An anchored ignore pattern that matches exactly this path; `None` for a name with a line break, which no pattern
/// can hold.
pub(crate) fn ignore_pattern(path: &Path, directory: bool) -> Option<Vec<u8>> {
    let bytes = path.as_os_str().as_bytes();
    if bytes.contains(&b'\n') || bytes.contains(&b'\r') {
        return None;
    }
    let mut pattern = vec![b'/'];
    for byte in bytes {
        if matches!(byte, b'*' | b'?' | b'[' | b']' | b'\\' | b' ') {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    if directory {
        pattern.push(b'/');
    }
    Some(pattern)
}

/// The value of `GIT_ALTERNATE_OBJECT_DIRECTORIES` for one directory, quoted where the separator would cut it.
pub(crate) fn alternate(directory: &Path) -> OsString {
    let bytes = directory.as_os_str().as_bytes();
    if !bytes.iter().any(|byte| matches!(byte, b':' | b'"' | b'\\' | b'\n')) {
        return directory.as_os_str().to_owned();
    }
    let mut quoted = vec![b'"'];
    for byte in bytes {
        match byte {
            b'"' | b'\\' => quoted.extend([b'\\', *byte]),
            b'\n' => quoted.extend(*b"\\n"),
            other => quoted.push(*other),
        }
    }
    quoted.push(b'"');
    OsString::from_vec(quoted)
}

/// SHA-256 of the path's bytes, hexadecimal.
pub(crate) fn digest(path: &Path) -> String {
    hex(&Sha256::digest(path.as_os_str().as_bytes()))
}

/// Hexadecimal, lower case.
pub(crate) fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// True for a relative path of plain names: nothing that could lead out of the directory it is joined to.
pub(crate) fn is_plain_relative(path: &Path) -> bool {
    path.components().all(|component| matches!(component, Component::Normal(_)))
        && path.components().next().is_some()
        && !path.components().any(|component| component.as_os_str().eq_ignore_ascii_case(".git"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_of_any_bytes_survives_encoding() {
        for bytes in
            [&b"plain/a.txt"[..], b"100% sure", b"%41", b"new\nline\ttab", b"\xff\xfe/x", "\u{e4}/\u{4e2d}".as_bytes()]
        {
            let path = from_bytes(bytes);
            let text = encode(&path);
            assert_eq!(decode(&text), path, "{text}");
            assert!(!text.contains('\n'));
        }
        assert_eq!(encode(Path::new("a%b\n")), "a%25b%0A");
    }

    #[test]
    fn patterns_match_only_the_name_itself() {
        assert_eq!(ignore_pattern(Path::new("a*[b]"), true).unwrap(), b"/a\\*\\[b\\]/");
        assert_eq!(ignore_pattern(Path::new("a\nb"), false), None);
    }

    #[test]
    fn alternates_with_the_separator_are_quoted() {
        assert_eq!(alternate(Path::new("/a/b")), "/a/b");
        assert_eq!(alternate(Path::new("/a:b\"c")), "\"/a:b\\\"c\"");
    }

    #[test]
    fn paths_that_lead_out_are_not_plain() {
        assert!(is_plain_relative(Path::new("a/b")));
        for path in ["", "/a", "../a", "a/../../b", ".git/config", "a/.GIT/hooks"] {
            assert!(!is_plain_relative(Path::new(path)), "{path}");
        }
    }
}
