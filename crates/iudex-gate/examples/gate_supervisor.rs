//! The program that owns the commands of this crate's tests, as iudex itself does in a run.

use std::process::ExitCode;

fn main() -> ExitCode {
    iudex_exec::supervise_main(std::env::args_os()).unwrap_or(ExitCode::from(2))
}
