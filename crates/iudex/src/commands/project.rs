//! `config`, `init` and `trust`.

use std::fmt::Write;
use std::process::ExitCode;

use iudex_app::{Config, Overrides, Refusal, config, trust};

use super::places;
use crate::args::{InitArgs, JsonFlag, TrustArgs};
use crate::talk;

pub(super) fn config(arguments: &JsonFlag) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    let config = Config::inspect(&directory, &Overrides::default(), &paths)?;
    let lines = config::config_lines(&config);
    if arguments.json {
        talk::json(&lines);
        return Ok(ExitCode::SUCCESS);
    }
    let width = lines.iter().map(|line| line.key.len()).max().unwrap_or_default();
    let mut text = String::new();
    for line in &lines {
        let note = line.note.as_ref().map_or(String::new(), |note| format!("  ({note})"));
        let _ = writeln!(text, "{:<width$}  {:<24}  {}{note}", line.key, value_text(&line.value), line.source);
    }
    talk::data(&text);
    if let Some(refusal) = config.project.as_ref().and_then(config::ProjectFile::refusal) {
        talk::say("");
        talk::error(&refusal.message, refusal.hint.as_deref());
    }
    Ok(ExitCode::SUCCESS)
}

/// A value as a person writes it: no quotes around text, `-` for what is not set.
pub(super) fn value_text(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::Null => "-".to_owned(),
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

pub(super) fn init(arguments: &InitArgs) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    let written = iudex_app::init::init(&directory, &paths, arguments.force)?;
    talk::say(&format!("wrote {} and trusted it as it is", written.path.display()));
    match &written.check {
        Some(guess) => talk::say(&format!("check: {} (guessed from {})", guess.command, guess.because)),
        None => talk::say("no check could be guessed: set `check` under [gates]"),
    }
    if let Some(covered) = &written.covers {
        talk::say(&format!("it now holds here instead of {covered}"));
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) fn trust(arguments: &TrustArgs) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    if arguments.remove {
        let removed = trust::remove(&directory, &paths)?;
        for path in &removed {
            talk::data(&format!("no longer trusted: {}", path.display()));
        }
        if removed.is_empty() {
            talk::say("nothing here was trusted");
        }
        return Ok(ExitCode::SUCCESS);
    }
    let plan = trust::plan(&directory, &paths)?;
    let mut text = String::new();
    for file in &plan.files {
        let _ = writeln!(text, "{} ({})", file.path.display(), standing_words(file.standing));
        for loose in &file.loose {
            let _ = writeln!(text, "  {} = {}", loose.key, value_text(&loose.value));
        }
    }
    talk::data(&text);
    if arguments.show {
        return Ok(ExitCode::SUCCESS);
    }
    plan.record(&paths)?;
    talk::say("trusted, as they are now: any change takes the trust back");
    Ok(ExitCode::SUCCESS)
}

fn standing_words(standing: trust::Standing) -> &'static str {
    match standing {
        trust::Standing::Trusted => "trusted as it is",
        trust::Standing::Changed => "changed since it was trusted",
        trust::Standing::Unknown => "not trusted yet",
    }
}
