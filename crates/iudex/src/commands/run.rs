//! `iudex run`.

use std::fmt::Write;
use std::io::{self, IsTerminal, Read};
use std::process::ExitCode;

use iudex_app::{Config, OpenRequest, Overrides, Place, Plan, Refusal};
use iudex_core::{CancellationToken, Outcome, Task, Validation};
use serde_json::{Value, json};

use super::places;
use super::project::value_text;
use crate::args::RunArgs;
use crate::render::{Renderer, Style, claim_text, closing_json, closing_text, human_duration};
use crate::signals::Signals;
use crate::talk;

pub(super) async fn run(arguments: RunArgs) -> Result<ExitCode, Refusal> {
    let as_json = arguments.json;
    let ran = run_or_refuse(arguments).await;
    if let Err(refusal) = &ran
        && as_json
    {
        talk::data(&refused_json(refusal).to_string());
    }
    ran
}

/// A run that did not start, as the last line of `--json`.
fn refused_json(refusal: &Refusal) -> Value {
    json!({
        "event": "result",
        "outcome": "not started",
        "exit_code": refusal.exit_code,
        "message": refusal.message,
        "hint": refusal.hint,
    })
}

async fn run_or_refuse(arguments: RunArgs) -> Result<ExitCode, Refusal> {
    let (directory, paths) = places(arguments.cwd.as_ref())?;
    let task = read_task(&arguments)?;
    let config = Config::load(&directory, &overrides(&arguments), &paths)?;
    let request = OpenRequest { directory, config, large_directory: arguments.large_directory, session: None };
    if arguments.dry_run {
        let plan = iudex_app::plan(request, task, &paths).await?;
        if arguments.json {
            talk::json(&plan);
        } else {
            talk::data(&plan_text(&plan));
        }
        return Ok(ExitCode::SUCCESS);
    }

    let mut signals = Signals::listen();
    let opened = tokio::select! {
        biased;
        _ = signals.next() => {
            return Err(Refusal { exit_code: 130, message: "stopped before the run began".to_owned(), hint: None });
        }
        opened = Place::open(request, paths) => opened,
    };
    let mut place = opened?;
    let cancel = CancellationToken::new();
    let style = style(arguments.json);
    if style != Style::Json
        && let Some(because) = &place.model().chosen_because
    {
        talk::say(&format!("model: {}, {because}", place.model().describe()));
    }
    let renderer = Renderer::start(style);
    let running = place.run(&task, false, renderer.sender(), renderer.wants_progress, &cancel);
    let (ran, _) = signals.stop(running, &cancel).await;
    renderer.finish();
    let finished = ran?;
    if arguments.json {
        let mut closing = closing_json(&finished);
        place.mask(&mut closing);
        talk::data(&closing.to_string());
    } else {
        if let Outcome::Done { validation: Validation::Unvalidated } = &finished.report.outcome {
            talk::data(&claim_text(&finished.report.claim));
        }
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
            io::stdin().lock().read_to_end(&mut bytes).map_err(|error| {
                let hint = "give the goal as an argument, or name a file with --file";
                Refusal::usage(format!("standard input cannot be read: {error}"), hint)
            })?;
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
    if !plan.max_cost.is_null() {
        let _ = writeln!(text, "            {} US dollars", value_text(&plan.max_cost));
    }
    if !plan.timeout.is_null() {
        let _ = writeln!(text, "            {} of time", value_text(&plan.timeout));
    }
    let network = if plan.network { "with network" } else { "no network" };
    let format = if plan.format.is_null() { "chosen by the model".to_owned() } else { value_text(&plan.format) };
    let _ = writeln!(text, "model       {}\nformat      {format}", plan.model);
    let _ = writeln!(text, "prompt      {}", value_text(&plan.strategy));
    let _ = writeln!(text, "sandbox     {}, {network}", plan.sandbox);
    if !plan.withheld.is_empty() {
        let _ =
            writeln!(text, "withheld    {} (they look like secrets; no command gets them)", plan.withheld.join(", "));
    }
    text.push_str("nothing was run\n");
    text
}
