//! The smallest program that can be the supervisor of commands; the tests of this crate use it.

use std::process::ExitCode;

fn main() -> ExitCode {
    iudex_exec::supervise_main(std::env::args_os()).unwrap_or(ExitCode::from(2))
}
