//! Talk on standard error, data on standard output; a reader that goes away is no failure.

use std::io::{self, IsTerminal, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use iudex_app::Refusal;

use crate::args::Cli;

/// Prints an error and its hint.
pub(crate) fn error(message: &str, hint: Option<&str>) {
    let mut out = io::stderr().lock();
    let _ = writeln!(out, "error: {message}");
    if let Some(hint) = hint {
        let _ = writeln!(out, "\nhint: {hint}");
    }
}

/// Prints a refusal and gives its exit code.
pub(crate) fn refuse(refusal: &Refusal) -> ExitCode {
    error(&refusal.message, refusal.hint.as_deref());
    ExitCode::from(refusal.exit_code)
}

/// Prints a line of talk.
pub(crate) fn say(text: &str) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// Prints data.
pub(crate) fn data(text: &str) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(text.as_bytes());
    if !text.ends_with('\n') {
        let _ = out.write_all(b"\n");
    }
    let _ = out.flush();
}

/// Prints raw data.
pub(crate) fn bytes(bytes: &[u8]) {
    let mut out = io::stdout().lock();
    let _ = out.write_all(bytes);
    let _ = out.flush();
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
