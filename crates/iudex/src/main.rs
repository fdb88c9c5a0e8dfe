//! The `iudex` program: commands, terminal, rendering.
//!
//! Never: a decision. Every command is a thin face over `iudex-app`.

mod args;
mod commands;
mod render;
mod session;
mod signals;
mod talk;

use std::process::ExitCode;

use clap::Parser;

use crate::args::Cli;

fn main() -> ExitCode {
    // The supervisor of a command is this program, started again; it must not read the command line as a user's.
    if let Some(code) = iudex_exec::supervise_main(std::env::args_os()) {
        return code;
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return talk::usage_error(&error),
    };
    match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => {
            let code = runtime.block_on(commands::dispatch(cli));
            // Whatever still runs on a blocking thread belongs to a run that has ended.
            runtime.shutdown_background();
            code
        }
        Err(error) => {
            talk::error(&format!("the runtime cannot start: {error}"), None);
            ExitCode::from(2)
        }
    }
}
