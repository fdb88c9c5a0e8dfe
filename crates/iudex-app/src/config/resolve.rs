//! Chooses each value among its sources: flags, environment, project, user, default.
//!
//! Never: a loosening value of a project that is not trusted. It is held back and named.

use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;
use toml::Spanned;

use super::convert::Wrong;
use super::keys::Raw;
use super::overrides::flag_name;
use super::source::{Show, Source, Sourced};
use crate::refusal::Refusal;

/// A key by section and name.
#[derive(Clone, Copy)]
pub(super) struct Key<'a> {
    pub(super) section: &'static str,
    pub(super) name: &'a str,
}

/// A configuration file that was read.
pub(super) struct ReadFile {
    pub(super) path: PathBuf,
    pub(super) text: String,
    pub(super) raw: Raw,
}

impl ReadFile {
    fn line(&self, offset: usize) -> usize {
        line_of(&self.text, offset)
    }
}

/// The line of a byte offset, from 1.
pub(super) fn line_of(text: &str, offset: usize) -> usize {
    text.get(..offset).unwrap_or(text).matches('\n').count() + 1
}

/// A value of the project file that loosens something and so needs the user's trust.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LooseKey {
    /// Section and key (`gates.check`).
    pub key: String,
    /// The value.
    pub value: Value,
    /// The line in the project file, from 1.
    pub line: usize,
}

/// The sources, and what is learned on the way.
pub(super) struct Resolver<'a> {
    pub(super) flags: &'a Raw,
    pub(super) environment: &'a Raw,
    pub(super) project: Option<&'a ReadFile>,
    pub(super) user: Option<&'a ReadFile>,
    /// Whether the user trusts the project file as it is.
    pub(super) trusted: bool,
    /// Every value of the project that loosens something, whether trusted or not, overridden or not.
    pub(super) loose: Vec<LooseKey>,
    /// Those that would take effect and are held back.
    pub(super) held_back: Vec<LooseKey>,
}

impl Resolver<'_> {
    pub(super) fn value<R, T: Clone + Show>(
        &mut self,
        key: Key<'_>,
        select: impl Fn(&Raw) -> Option<&Spanned<R>>,
        default: T,
        convert: fn(&R) -> Result<T, Wrong>,
        loosens: fn(&T, &T) -> bool,
    ) -> Result<Sourced<T>, Refusal> {
        let from_file = |file: Option<&ReadFile>, source: fn(PathBuf, usize) -> Source| {
            let Some((file, written)) = file.and_then(|file| Some((file, select(&file.raw)?))) else {
                return Ok(None);
            };
            let line = file.line(written.span().start);
            match convert(written.get_ref()) {
                Ok(value) => Ok(Some(Sourced { value, source: source(file.path.clone(), line) })),
                Err(wrong) => Err(wrong_in_file(&file.path, line, key, &wrong)),
            }
        };
        let from_outside = |raw: &Raw, name: String, source: fn(String) -> Source| {
            let Some(written) = select(raw) else { return Ok(None) };
            match convert(written.get_ref()) {
                Ok(value) => Ok(Some(Sourced { value, source: source(name) })),
                Err(wrong) => Err(refuse(&name, &wrong)),
            }
        };
        // Every source is read, also one that another overrides: a mistake in a file is told at once.
        let flag = from_outside(self.flags, flag_name(key), |name| Source::Flag { name })?;
        let variable = from_outside(self.environment, variable_name(key), |name| Source::Environment { name })?;
        let project = from_file(self.project, |path, line| Source::Project { path, line })?;
        let user = from_file(self.user, |path, line| Source::User { path, line })?;

        let below = user.unwrap_or(Sourced { value: default, source: Source::Default });
        let overriding = flag.or(variable);
        let Some(project) = project else { return Ok(overriding.unwrap_or(below)) };
        if !loosens(&project.value, &below.value) {
            return Ok(overriding.unwrap_or(project));
        }
        let loose = LooseKey {
            key: format!("{}.{}", key.section, key.name),
            value: project.value.show(),
            line: match &project.source {
                Source::Project { line, .. } => *line,
                _ => 0,
            },
        };
        self.loose.push(loose.clone());
        if let Some(overriding) = overriding {
            return Ok(overriding);
        }
        if self.trusted {
            return Ok(project);
        }
        self.held_back.push(loose);
        Ok(below)
    }
}

fn wrong_in_file(path: &Path, line: usize, key: Key<'_>, wrong: &Wrong) -> Refusal {
    let mut refusal = refuse(&format!("{}.{}", key.section, key.name), wrong);
    refusal.message = format!("{}:{line}: {}", path.display(), refusal.message);
    refusal
}

fn refuse(name: &str, wrong: &Wrong) -> Refusal {
    let message = match &wrong.value {
        Some(value) => format!("`{name}` is {value}; it {}", wrong.rule),
        None => format!("`{name}` {} (the value is not shown)", wrong.rule),
    };
    Refusal { exit_code: 2, message, hint: wrong.hint.clone() }
}

/// The variable that sets a key.
pub(super) fn variable_name(key: Key<'_>) -> String {
    match (key.section, key.name) {
        ("model", "name") => "IUDEX_MODEL".to_owned(),
        ("model", "base-url") => "IUDEX_BASE_URL".to_owned(),
        ("model", "api-key-env") => "IUDEX_API_KEY".to_owned(),
        (section, name) => format!("IUDEX_{section}_{name}"),
    }
}
