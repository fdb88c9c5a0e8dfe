//! One function a command: read arguments, ask `iudex-app`, show.

mod history;
mod machine;
mod project;
mod reference;
mod run;

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use iudex_app::{Paths, Refusal};

pub(crate) use history::{stats_text, undo_text};

use crate::args::{Cli, Command};
use crate::talk;

/// Runs the command that was asked for.
pub(crate) async fn dispatch(cli: Cli) -> ExitCode {
    let done = match cli.command {
        None => alone(cli.continue_session, cli.large_directory).await,
        Some(_) if cli.continue_session => {
            Err(Refusal::usage("--continue belongs to a session", "use `iudex --continue` without a command"))
        }
        Some(_) if cli.large_directory => Err(Refusal::usage(
            "--large-directory stands before the command",
            "write it after the command: `iudex run --large-directory ...`",
        )),
        Some(command) => with_command(command).await,
    };
    done.unwrap_or_else(|refusal| talk::refuse(&refusal))
}

async fn with_command(command: Command) -> Result<ExitCode, Refusal> {
    match command {
        Command::Run(arguments) => run::run(*arguments).await,
        Command::Undo(arguments) => history::undo(&arguments),
        Command::Diff(arguments) => history::diff(&arguments),
        Command::Stats(arguments) => history::stats(&arguments),
        Command::Log(arguments) => history::log(&arguments),
        Command::Show(arguments) => history::show(&arguments),
        Command::Config(arguments) => project::config(&arguments),
        Command::Init(arguments) => project::init(&arguments),
        Command::Trust(arguments) => project::trust(&arguments),
        Command::Doctor(arguments) => machine::doctor(&arguments).await,
        Command::Setup(arguments) => machine::setup(&arguments),
        Command::Reference { page } => {
            talk::data(&reference::markdown(page));
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// `iudex` alone: a session in a terminal, usage elsewhere.
async fn alone(take_up: bool, large_directory: bool) -> Result<ExitCode, Refusal> {
    if io::stdin().is_terminal() && io::stderr().is_terminal() {
        return crate::session::open(take_up, large_directory).await;
    }
    talk::say(&Cli::command().render_help().to_string());
    Ok(ExitCode::from(2))
}

/// The directory of a command, and the places of iudex.
pub(crate) fn places(cwd: Option<&PathBuf>) -> Result<(PathBuf, Paths), Refusal> {
    let named = cwd.cloned().unwrap_or_else(|| PathBuf::from("."));
    let directory = named.canonicalize().map_err(|error| {
        Refusal::usage(format!("cannot use the directory {}: {error}", named.display()), "name an existing directory")
    })?;
    Ok((directory, Paths::from_env()?))
}
