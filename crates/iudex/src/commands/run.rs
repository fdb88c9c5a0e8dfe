//! `iudex run`.

use std::fmt::Write;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use iudex_app::{Config, OpenRequest, Overrides, Place, Plan, Refusal};
use iudex_core::Task;

use super::places;
use crate::args::RunArgs;
use crate::render::{Renderer, Style, closing_json, closing_text, human_duration};
use crate::{signals, talk};

pub(super) async fn run(arguments: RunArgs) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    let task = read_task(&arguments)?;
    let config = Config::load(&directory, &overrides(&arguments), &paths)?;
    if arguments.dry_run {
        let plan = iudex_app::plan(&directory, task, &config, &paths).await?;
        if arguments.json {
            talk::json(&plan);
        } else {
            talk::data(&plan_text(&plan));
        }
        return Ok(ExitCode::SUCCESS);
    }

    let cancel = signals::cancel_on_signals();
    let request = OpenRequest { directory, config, large_directory: arguments.large_directory, session: None };
    let opened = tokio::select! {
        biased;
        () = cancel.cancelled() => return Ok(ExitCode::from(130)),
        opened = Place::open(request, paths) => opened,
    };
    let mut place = opened?;
    let style = style(arguments.json);
    if style != Style::Json
        && let Some(because) = &place.model().chosen_because
    {
        talk::say(&format!("model: {}, {because}", place.model().describe()));
    }
    let renderer = Renderer::start(style);
    let ran = place.run(&task, false, renderer.sender(), renderer.wants_progress, &cancel).await;
    drop(place);
    renderer.finish();
    let finished = ran?;
    if arguments.json {
        talk::data(&closing_json(&finished).to_string());
    } else {
        talk::data(&closing_text(&finished));
    }
    Ok(ExitCode::from(finished.exit_code()))
}

fn style(json: bool) -> Style {
    match (json, io::stderr().is_terminal()) {
        (true, _) => Style::Json,
        (false, true) => Style::Terminal,
        (false, false) => Style::Plain,
    }
}

fn read_task(arguments: &RunArgs) -> Result<Task, Refusal> {
    if arguments.file.is_some() && arguments.goal.is_some() {
        return Err(Refusal::usage("a goal was given both as an argument and by --file", "give one of the two"));
    }
    if let Some(file) = &arguments.file {
        return iudex_app::read_task_file(file);
    }
    match arguments.goal.as_deref() {
        Some("-") => {
            let mut bytes = Vec::new();
            io::stdin()
                .lock()
                .read_to_end(&mut bytes)
                .map_err(|error| Refusal::plain(format!("standard input: {error}")))?;
            iudex_app::task_from_bytes("standard input", &bytes)
        }
        Some(goal) => iudex_app::task_from_bytes("the goal", goal.as_bytes()),
        None => {
            Err(Refusal::usage("there is no goal", "iudex run --until \"cargo test\" \"make the failing test pass\""))
        }
    }
}

fn overrides(arguments: &RunArgs) -> Overrides {
    Overrides {
        until: arguments.until.clone(),
        check_timeout: arguments.check_timeout.clone(),
        no_config_gates: arguments.no_config_gates,
        model: arguments.model.clone(),
        max_retries: arguments.max_retries,
        max_steps: arguments.max_steps,
        max_tokens: arguments.max_tokens,
        max_cost: arguments.max_cost,
        timeout: arguments.timeout.clone(),
        seed: arguments.seed,
        net: arguments.net,
        no_sandbox: arguments.no_sandbox,
    }
}

fn plan_text(plan: &Plan) -> String {
    let mut text = format!("task        {}\n", plan.task.to_prompt().replace('\n', "\n            "));
    let _ = writeln!(text, "directory   {}", plan.directory);
    if plan.check.is_empty() {
        text.push_str("check       none: the result would be unvalidated\n");
    }
    for command in &plan.check {
        let limit = human_duration(std::time::Duration::from_secs(plan.check_timeout_seconds));
        let _ = writeln!(text, "check       `{command}` (at most {limit})");
    }
    let _ = writeln!(text, "budget      {} retries, {} steps a pass", plan.max_retries, plan.max_steps);
    if let Some(tokens) = plan.max_tokens {
        let _ = writeln!(text, "            {tokens} tokens");
    }
    let network = if plan.network { "with network" } else { "no network" };
    let _ = writeln!(text, "model       {}\nsandbox     {}, {network}\nnothing was run", plan.model, plan.sandbox);
    text
}
