//! `doctor` and `setup`.

use std::fmt::Write;
use std::process::ExitCode;

use iudex_app::{Config, Overrides, Refusal, SetupStep, State, doctor, setup};

use super::places;
use crate::args::{JsonFlag, SetupArgs};
use crate::talk;

pub(super) async fn doctor(arguments: &JsonFlag) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    let config = Config::inspect(&directory, &Overrides::default(), &paths)?;
    let examined = doctor::examine(&directory, &config, &paths).await;
    if arguments.json {
        talk::json(&examined);
    } else {
        let mut text = String::new();
        for one in &examined {
            let mark = match one.state {
                State::Good => "ok  ",
                State::Weak => "weak",
                State::Bad => "BAD ",
            };
            let _ = writeln!(text, "{mark}  {:<10} {}", one.name, one.found);
            if let Some(advice) = &one.advice {
                let _ = writeln!(text, "                 -> {advice}");
            }
        }
        talk::data(&text);
    }
    Ok(if doctor::is_ready(&examined) { ExitCode::SUCCESS } else { ExitCode::from(1) })
}

pub(super) fn setup(arguments: &SetupArgs) -> Result<ExitCode, Refusal> {
    let (_, paths) = places(None)?;
    let step = match (arguments.stop, arguments.status) {
        (true, _) => SetupStep::Stop,
        (_, true) => SetupStep::Status,
        _ => SetupStep::Start,
    };
    setup::run(step, &paths)?;
    Ok(ExitCode::SUCCESS)
}
