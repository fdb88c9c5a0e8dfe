//! Talk on standard error, data on standard output; a reader that goes away is no failure.

use std::borrow::Cow;
use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use iudex_app::Refusal;

use crate::args::Cli;

/// Prints an error and its hint.
pub(crate) fn error(message: &str, hint: Option<&str>) {
    say(&format!("error: {message}"));
    if let Some(hint) = hint {
        say(&format!("\nhint: {hint}"));
    }
}

/// Prints a refusal and gives its exit code.
pub(crate) fn refuse(refusal: &Refusal) -> ExitCode {
    error(&refusal.message, refusal.hint.as_deref());
    ExitCode::from(refusal.exit_code)
}

/// Prints a line of talk.
pub(crate) fn say(text: &str) {
    let text = if io::stderr().is_terminal() { for_terminal(text) } else { Cow::Borrowed(text) };
    let _ = writeln!(io::stderr(), "{text}");
}

/// Text of a model, a tool or a server, as a terminal may get it: without the control characters that move the cursor,
/// change colours or erase lines, since with them it could write over a verdict.
fn for_terminal(text: &str) -> Cow<'_, str> {
    if !text.contains(|letter: char| letter.is_control() && !matches!(letter, '\n' | '\t')) {
        return Cow::Borrowed(text);
    }
    let kept = |letter: &char| !letter.is_control() || matches!(letter, '\n' | '\t');
    Cow::Owned(text.chars().filter(kept).collect())
}

/// Prints data; nothing for an empty text.
pub(crate) fn data(text: &str) {
    if text.is_empty() {
        return;
    }
    let text = if io::stdout().is_terminal() { for_terminal(text) } else { Cow::Borrowed(text) };
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Prints a diff; to a terminal only what cannot move the cursor.
pub(crate) fn diff(bytes: &[u8]) {
    if io::stdout().is_terminal() {
        let text = String::from_utf8_lossy(bytes);
        let _ = io::stdout().lock().write_all(without_movement(&text).as_bytes());
        return;
    }
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes);
    let _ = out.flush();
}

/// Control characters go, apart from whole colour codes (`ESC [ digits m`), which only colour.
fn without_movement(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\u{1b}') {
        clean.push_str(&for_terminal(&rest[..at]));
        rest = &rest[at + 1..];
        let code = rest.strip_prefix('[').map_or("", |code| code.split_once('m').map_or("", |(code, _)| code));
        let is_colour = rest.starts_with("[m") || !code.is_empty();
        if is_colour && code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';') {
            clean.push_str("\u{1b}[");
            clean.push_str(code);
            clean.push('m');
            rest = &rest[code.len() + 2..];
        }
    }
    clean.push_str(&for_terminal(rest));
    clean
}

/// Prints a value as indented JSON.
pub(crate) fn json(value: &impl serde::Serialize) {
    match serde_json::to_string_pretty(value) {
        Ok(text) => data(&text),
        Err(failure) => error(&format!("cannot write JSON: {failure}"), None),
    }
}

/// Whether colour helps the reader of standard output.
pub(crate) fn colour() -> bool {
    io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none()
}

/// Shows what clap says; an unknown command names the nearest.
pub(crate) fn usage_error(problem: &clap::Error) -> ExitCode {
    use clap::error::{ContextKind, ContextValue, ErrorKind};

    let _ = problem.print();
    if !problem.use_stderr() {
        return ExitCode::SUCCESS;
    }
    let clap_names_one = problem.get(ContextKind::SuggestedSubcommand).is_some();
    if problem.kind() == ErrorKind::InvalidSubcommand
        && !clap_names_one
        && let Some(ContextValue::String(unknown)) = problem.get(ContextKind::InvalidSubcommand)
    {
        let command = Cli::command();
        let known = command.get_subcommands().filter(|known| !known.is_hide_set()).map(clap::Command::get_name);
        if let Some(nearest) = iudex_app::nearest::nearest(unknown, known) {
            say(&format!("\nhint: did you mean `iudex {nearest}`?"));
        }
    }
    ExitCode::from(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_cannot_write_over_a_verdict() {
        assert_eq!(for_terminal("a\tb\nc"), "a\tb\nc");
        assert_eq!(for_terminal("red\u{1b}[2K\rgreen\u{9b}1A\u{7}\u{8}"), "red[2Kgreen1A");
        assert_eq!(
            without_movement("\u{1b}[1;32m+a\u{1b}[m\u{1b}[2K\u{1b}]0;t\u{7}\r"),
            "\u{1b}[1;32m+a\u{1b}[m[2K]0;t"
        );
        assert_eq!(without_movement("\u{1b}[31mé\u{1b}"), "\u{1b}[31mé");
    }
}
