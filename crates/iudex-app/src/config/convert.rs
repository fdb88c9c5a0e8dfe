//! From a value as it was written to a value that may be used: ranges, forms, names.
//!
//! Never: a guess. What does not fit is refused with the rule, and its value is named unless it may be a secret.

#![expect(
    clippy::ptr_arg,
    clippy::ref_option,
    clippy::trivially_copy_pass_by_ref,
    clippy::unnecessary_wraps,
    reason = "one shape for all, so that the table of keys can name them"
)]

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use iudex_core::{PromptStrategy, Usd};
use iudex_model::ActionFormat;
use serde::de::{Deserialize, Deserializer, SeqAccess, Visitor};
use url::Url;

use super::duration::HumanDuration;
use crate::nearest::nearest;

/// A value that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Wrong {
    /// The value as it is shown; `None` when it may be a secret.
    pub(super) value: Option<String>,
    /// The rule, as in "it {rule}".
    pub(super) rule: String,
    /// What to do.
    pub(super) hint: Option<String>,
}

impl Wrong {
    fn new(value: impl fmt::Display, rule: impl Into<String>) -> Self {
        Self { value: Some(value.to_string()), rule: rule.into(), hint: None }
    }

    fn hidden(rule: impl Into<String>, hint: impl Into<String>) -> Self {
        Self { value: None, rule: rule.into(), hint: Some(hint.into()) }
    }

    fn with_hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }
}

type Converted<T> = Result<T, Wrong>;

fn whole<T: TryFrom<i64>>(number: i64, least: i64, most: i64) -> Converted<T> {
    let rule = || Wrong::new(number, format!("must be a whole number from {least} to {most}"));
    if !(least..=most).contains(&number) {
        return Err(rule());
    }
    T::try_from(number).map_err(|_| rule())
}

pub(super) fn count(number: &i64) -> Converted<u32> {
    whole(*number, 0, 1_000_000)
}

pub(super) fn count_from_one(number: &i64) -> Converted<u32> {
    whole(*number, 1, 1_000_000)
}

pub(super) fn stuck_threshold(number: &i64) -> Converted<u32> {
    whole(*number, 2, 1_000)
}

pub(super) fn seed(number: &i64) -> Converted<Option<u64>> {
    whole(*number, 0, i64::MAX).map(Some)
}

pub(super) fn token_count(number: &i64) -> Converted<Option<u64>> {
    whole(*number, 1, i64::MAX).map(Some)
}

pub(super) fn dollars(number: &f64) -> Converted<Option<Usd>> {
    match Usd::from_dollars(*number) {
        Some(amount) => Ok(Some(amount)),
        None => Err(Wrong::new(number, "must be an amount in US dollars, 0 or more")),
    }
}

pub(super) fn temperature(number: &f64) -> Converted<f32> {
    if (0.0..=2.0).contains(number) { Ok(*number as f32) } else { Err(Wrong::new(number, "must be from 0 to 2")) }
}

pub(super) fn yes_or_no(value: &bool) -> Converted<bool> {
    Ok(*value)
}

pub(super) fn duration(text: &String) -> Converted<Duration> {
    let duration: HumanDuration = text.parse().map_err(|error: super::duration::NoDuration| Wrong {
        value: Some(format!("{text:?}")),
        rule: error.rule,
        hint: error.hint,
    })?;
    if duration.get().is_zero() {
        return Err(Wrong::new(text, "must be more than zero").with_hint("leave it out for the default"));
    }
    Ok(duration.get())
}

pub(super) fn time_limit(text: &String) -> Converted<Option<Duration>> {
    duration(text).map(Some)
}

/// A command, or several.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OneOrMany(pub(super) Vec<String>);

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Commands;

        impl<'de> Visitor<'de> for Commands {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a command or a list of commands")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany(vec![text.to_owned()]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<OneOrMany, A::Error> {
                let mut commands = Vec::new();
                while let Some(command) = list.next_element::<String>()? {
                    commands.push(command);
                }
                Ok(OneOrMany(commands))
            }
        }

        deserializer.deserialize_any(Commands)
    }
}

pub(super) fn commands(list: &OneOrMany) -> Converted<Vec<String>> {
    if list.0.is_empty() {
        return Err(Wrong::new("an empty list", "must hold a command").with_hint(
            "leave the key out when there is no check, or leave configured checks out with --no-config-gates",
        ));
    }
    let mut commands = Vec::new();
    for command in &list.0 {
        let command = one_command(command)?;
        if !commands.contains(&command) {
            commands.push(command);
        }
    }
    Ok(commands)
}

/// A check command that says something.
fn one_command(command: &str) -> Converted<String> {
    if command.trim().is_empty() {
        return Err(Wrong::new(format!("{command:?}"), "must be a command, not an empty text")
            .with_hint("write the command that must pass, for example \"cargo test\""));
    }
    // What is shown to be trusted must be what runs: nothing that hides or reorders text on a screen.
    if command.contains(|character: char| !matches!(character, '\t' | '\n') && hides_text(character)) {
        return Err(Wrong::new(format!("{command:?}"), "must not hold control or direction characters"));
    }
    Ok(command.trim().to_owned())
}

/// Control characters, and those that change the direction of text.
fn hides_text(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

pub(super) fn model_name(text: &String) -> Converted<Option<String>> {
    let name = text.trim();
    if name.is_empty() || name == "script:" {
        return Err(Wrong::new(format!("{text:?}"), "must name a model, or be `script:FILE`")
            .with_hint("`iudex doctor` lists the models within reach"));
    }
    if name.contains(hides_text) {
        return Err(Wrong::new(format!("{text:?}"), "must not hold control characters"));
    }
    Ok(Some(name.to_owned()))
}

pub(super) fn base_url(text: &String) -> Converted<Option<String>> {
    let example = "for example http://127.0.0.1:8080/v1";
    // The value is shown only once it is known to carry no user name, password or query.
    let url = Url::parse(text.trim()).map_err(|error| Wrong::hidden(format!("must be a URL ({error})"), example))?;
    if !url.username().is_empty() || url.password().is_some() {
        return Err(Wrong::hidden(
            "must not hold a user name or password",
            "a key never stands in an address: put it into a variable and name that with model.api-key-env",
        ));
    }
    if url.query().is_some() || url.fragment().is_some() {
        return Err(Wrong::hidden("must end with its path, without `?` and `#`", example));
    }
    if !matches!(url.scheme(), "http" | "https") || url.host_str().is_none_or(str::is_empty) {
        return Err(Wrong::new(text.trim(), "must begin with http:// or https:// and name a host").with_hint(example));
    }
    Ok(Some(url.as_str().trim_end_matches('/').to_owned()))
}

pub(super) fn variable_name(text: &String) -> Converted<Option<String>> {
    let hint = "put the key into a variable, for example `export MY_KEY=…`, and write api-key-env = \"MY_KEY\"";
    let is_name = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    // Hexadecimal and base64 keys are made of the characters of names. No variable is named like that.
    let looks_like_a_key = text.len() > 64 || (text.len() >= 24 && !text.contains('_'));
    if !is_name || looks_like_a_key {
        return Err(Wrong::hidden("must be the name of an environment variable, never the key itself", hint));
    }
    Ok(Some(text.clone()))
}

pub(super) fn file(text: &String) -> Converted<Option<PathBuf>> {
    if text.trim().is_empty() || text.contains(hides_text) {
        return Err(Wrong::new(format!("{text:?}"), "must be the path of a file"));
    }
    if text.starts_with('~') {
        return Err(Wrong::new(text, "must be a path without `~`, which only a shell expands"));
    }
    Ok(Some(PathBuf::from(text)))
}

fn one_of<T: Copy>(text: &str, choices: &[(&str, T)]) -> Converted<T> {
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == text) {
        return Ok(*choice);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let wrong = Wrong::new(format!("{text:?}"), format!("must be one of {}", names.join(", ")));
    Err(match nearest(text, names) {
        Some(name) => wrong.with_hint(format!("did you mean \"{name}\"?")),
        None => wrong,
    })
}

pub(super) fn format(text: &String) -> Converted<Option<ActionFormat>> {
    let choices = [("json", ActionFormat::Json), ("native", ActionFormat::Native), ("text", ActionFormat::Text)];
    one_of(text, &choices).map(Some)
}

pub(super) fn strategy(text: &String) -> Converted<Option<PromptStrategy>> {
    one_of(text, &[("plain", PromptStrategy::Plain), ("with-files", PromptStrategy::WithFiles)]).map(Some)
}

/// What a project's value does to the value that would hold without it. Everything here that answers `true` needs the
/// user's trust: an untrusted project may tighten, never loosen.
pub(super) mod loosens {
    /// Harmless whatever it is.
    pub(in super::super) fn never<T>(_project: &T, _without: &T) -> bool {
        false
    }

    /// Always needs trust.
    pub(in super::super) fn always<T>(_project: &T, _without: &T) -> bool {
        true
    }

    /// Needs trust when it is another value.
    pub(in super::super) fn other<T: PartialEq>(project: &T, without: &T) -> bool {
        project != without
    }

    /// Needs trust when it is more.
    pub(in super::super) fn more<T: PartialOrd>(project: &T, without: &T) -> bool {
        project > without
    }

    /// Needs trust when it is less.
    pub(in super::super) fn less<T: PartialOrd>(project: &T, without: &T) -> bool {
        project < without
    }

    /// Needs trust when it is above a limit that there is.
    pub(in super::super) fn above_limit<T: PartialOrd>(project: &Option<T>, without: &Option<T>) -> bool {
        match (project, without) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(project), Some(without)) => project > without,
        }
    }

    /// Needs trust when it replaces the model that the user chose, or is a script.
    pub(in super::super) fn model(project: &Option<String>, without: &Option<String>) -> bool {
        project.as_deref().is_some_and(|name| name.starts_with("script:")) || (without.is_some() && project != without)
    }
}
