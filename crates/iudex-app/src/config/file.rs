//! Reads one configuration file: syntax, unknown keys, kinds of values, each error with file and line.
//!
//! Never: a line of the file in a message, since a key could stand there by mistake. Its number is named instead.

use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::keys::{Raw, sections};
use super::resolve::{ReadFile, line_of};
use crate::nearest::nearest;
use crate::refusal::Refusal;

/// Parses the bytes of a configuration file.
pub(super) fn parse(path: &Path, bytes: &[u8]) -> Result<ReadFile, Refusal> {
    let at = |line: usize, what: &str| format!("{}:{line}: {what}", path.display());
    let text = match std::str::from_utf8(bytes) {
        Ok(text) => text.strip_prefix('\u{feff}').unwrap_or(text),
        Err(error) => {
            let line = line_of(&String::from_utf8_lossy(bytes), error.valid_up_to());
            return Err(Refusal::usage(at(line, "the file is not UTF-8"), "save it as UTF-8"));
        }
    };
    let table = DeTable::parse(text).map_err(|error| {
        let line = line_of(text, error.span().map_or(0, |span| span.start));
        Refusal::usage(at(line, &format!("this is not TOML: {}", error.message())), "correct the line")
    })?;
    let table = table.into_inner();
    if let Some(unknown) = first_unknown(&table) {
        return Err(Refusal {
            exit_code: 2,
            message: at(line_of(text, unknown.offset), &unknown.what),
            hint: Some(unknown.hint),
        });
    }
    let raw: Raw = toml::from_str(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let name = key_at(&table, offset).map_or_else(String::new, |key| format!("`{key}`: "));
        Refusal::usage(
            at(line_of(text, offset), &format!("{name}{}", in_plain_words(error.message()))),
            "correct the value",
        )
    })?;
    Ok(ReadFile { path: PathBuf::from(path), text: text.to_owned(), raw })
}

struct Unknown {
    offset: usize,
    what: String,
    hint: String,
}

/// The first key in the file that nobody knows.
fn first_unknown(table: &DeTable<'_>) -> Option<Unknown> {
    let sections = sections();
    let mut found: Vec<Unknown> = Vec::new();
    for (name, value) in table {
        let known = sections.iter().find(|(section, _)| *section == name.get_ref().as_ref());
        match (known, value.get_ref()) {
            (Some((section, keys)), DeValue::Table(entries)) => {
                let unknown = entries.keys().filter(|key| !keys.iter().any(|known| known == key.get_ref().as_ref()));
                found.extend(unknown.map(|key| Unknown {
                    offset: key.span().start,
                    what: format!("unknown key `{}` in [{section}]", key.get_ref().escape_debug()),
                    hint: hint_for_key(section, keys, key.get_ref()),
                }));
            }
            (Some((section, _)), _) => found.push(Unknown {
                offset: name.span().start,
                what: format!("`{section}` is a section, not a value"),
                hint: format!("write [{section}] on a line of its own and its keys below"),
            }),
            (None, value) => found.push(outside(name.get_ref(), name.span().start, matches!(value, DeValue::Table(_)))),
        }
    }
    found.into_iter().min_by_key(|unknown| unknown.offset)
}

/// A name at the top of the file that is no section.
fn outside(name: &str, offset: usize, is_table: bool) -> Unknown {
    let sections = sections();
    if !is_table && let Some((section, _)) = sections.iter().find(|(_, keys)| keys.iter().any(|key| key == name)) {
        return Unknown {
            offset,
            what: format!("`{name}` stands outside of its section"),
            hint: format!("it belongs below a line [{section}]"),
        };
    }
    let names = sections.iter().map(|(section, _)| *section);
    let hint = match nearest(name, names.clone()) {
        Some(name) => format!("did you mean [{name}]?"),
        None => format!("the sections are {}", names.map(|name| format!("[{name}]")).collect::<Vec<_>>().join(", ")),
    };
    let name = name.escape_debug();
    let what = if is_table { format!("unknown section [{name}]") } else { format!("unknown key `{name}`") };
    Unknown { offset, what, hint }
}

fn hint_for_key(section: &str, keys: &[String], key: &str) -> String {
    let plain = key.to_lowercase().replace('_', "-");
    if section == "model" && matches!(plain.as_str(), "api-key" | "key" | "token" | "apikey") {
        return "a key never stands in a file: put it into a variable and name that with `api-key-env`".to_owned();
    }
    if let Some(name) = nearest(key, keys.iter().map(String::as_str)) {
        return format!("did you mean `{name}`?");
    }
    for (other, keys) in sections() {
        if keys.contains(&plain) {
            return format!("`{plain}` belongs below [{other}]");
        }
    }
    for (other, keys) in sections() {
        if let Some(name) = nearest(key, keys.iter().map(String::as_str)) {
            return format!("did you mean `{name}` below [{other}]?");
        }
    }
    format!("[{section}] has {}", keys.join(", "))
}

/// The key whose value covers this offset.
fn key_at(table: &DeTable<'_>, offset: usize) -> Option<String> {
    table.iter().find_map(|(section, value)| {
        let entries = value.get_ref().as_table()?;
        let (key, _) = entries.iter().find(|(_, value)| value.span().contains(&offset))?;
        Some(format!("{}.{}", section.get_ref(), key.get_ref()))
    })
}

/// The message of the reader without the names of Rust types.
fn in_plain_words(message: &str) -> String {
    message
        .replace("expected i64", "expected a whole number")
        .replace("expected f64", "expected a number")
        .replace("expected a boolean", "expected true or false")
        .replace("invalid type: ", "this is of the wrong kind: ")
}
