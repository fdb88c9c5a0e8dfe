//! `bash`: one command, judged by the policy and held by the sandbox. Says how it ended and what was cut.

use std::ffi::OsStr;
use std::path::PathBuf;
use std::time::Duration;

use iudex_exec::{CommandSpec, Decision, End, Finished, OutputSpec, PolicyContext};
use iudex_model::ToolSpec;
use serde_json::{Map, Value, json};

use super::{ToolResult, ToolSettings, arguments, count};

/// Room for the lines that say how a command ended.
const NOTE_BYTES: usize = 400;

/// How long the command had.
#[derive(Clone, Copy)]
struct Limit {
    time: Duration,
    /// More was asked for.
    is_cut: bool,
}

pub(super) fn spec() -> ToolSpec {
    ToolSpec {
        name: "bash",
        description: "Run a bash command.",
        parameters: json!({
            "type": "object",
            "properties": {
                "command": {"type": "string"},
                "timeout": {"type": "integer", "description": "seconds"},
            },
            "required": ["command"],
        }),
    }
}

pub(super) async fn run(
    settings: &ToolSettings,
    arguments: &Map<String, Value>,
    on_line: &mut dyn FnMut(&str),
) -> Result<ToolResult, String> {
    let script = arguments::text(arguments, "command")?;
    if script.trim().is_empty() {
        return Err("command is empty. Give a bash command.".to_owned());
    }
    if script.contains('\0') {
        return Err("command holds a NUL character. Send it again without.".to_owned());
    }
    let asked = arguments::optional_count(arguments, "timeout")?.filter(|seconds| *seconds > 0);
    let time_limit = asked.map_or(settings.bash_time_limit, Duration::from_secs).min(settings.bash_time_limit);

    match judge(settings, script) {
        Decision::Allow => {}
        Decision::Deny { reason } => return Err(format!("Not run: {reason}")),
        Decision::Refuse { rule, reason } => {
            let text = format!("Not run: {reason}. The safety policy ({rule}) refuses that, and this ends the work.");
            return Ok(ToolResult { blocked: Some(format!("{reason} ({rule})")), ..ToolResult::error(text) });
        }
    }
    let room = settings.result_bytes.saturating_sub(NOTE_BYTES).max(200);
    let spec = CommandSpec {
        script: script.to_owned(),
        cwd: settings.work_dir.clone(),
        env: settings.env.clone(),
        time_limit,
        // Errors stand at the end more often than at the beginning.
        output: OutputSpec { head: room / 4, tail: room - room / 4, file: None },
        confinement: settings.confinement.clone(),
    };
    let finished = iudex_exec::run(spec, on_line).await.map_err(|error| {
        format!("The command could not be started: {error}. It is not the command's fault; try the other tools.")
    })?;
    let is_cut = asked.is_some_and(|seconds| Duration::from_secs(seconds) > time_limit);
    let limit = Limit { time: time_limit, is_cut };
    let text = report(&finished, limit, settings, script);
    Ok(ToolResult { ok: finished.end == End::Exited(0), ..ToolResult::changed(text) })
}

/// The strictest answer over the home directory of the command and the one of this process.
fn judge(settings: &ToolSettings, script: &str) -> Decision {
    let of_command =
        settings.env.iter().find(|(name, _)| name == OsStr::new("HOME")).map(|(_, value)| PathBuf::from(value));
    let mut homes: Vec<PathBuf> =
        of_command.into_iter().chain(std::env::home_dir()).filter(|home| home.is_absolute()).collect();
    homes.dedup();
    if homes.is_empty() {
        homes.push(PathBuf::from("/"));
    }
    let mut strictest = Decision::Allow;
    for home in homes {
        let context = PolicyContext {
            home,
            work_dir: settings.work_dir.clone(),
            writable: vec![settings.confinement.caches.clone(), settings.confinement.private_tmp.clone()],
        };
        match iudex_exec::judge(script, &context) {
            refusal @ Decision::Refuse { .. } => return refusal,
            denial @ Decision::Deny { .. } => strictest = denial,
            Decision::Allow => {}
        }
    }
    strictest
}

/// What the model is told about a command that has ended.
fn report(finished: &Finished, limit: Limit, settings: &ToolSettings, script: &str) -> String {
    let network = settings.confinement.network;
    let mut text = iudex_exec::without_foreign_frames(&readable(&finished.output.text()), &settings.work_dir);
    text.truncate(text.trim_end().len());
    let mut notes = Vec::new();
    match finished.end {
        End::Exited(0) => {
            if text.is_empty() {
                notes.push("(no output, exit code 0)".to_owned());
            }
        }
        End::Exited(code) => notes.push(format!("Exit code {code}.")),
        End::Signalled(signal) => notes.push(format!("Ended by signal {signal}{}.", signal_name(signal))),
        End::TimedOut => notes.push(format!(
            "Not finished after {} s{} and ended. Use a faster command, or one that does not wait for input or run \
             forever.",
            limit.time.as_secs_f64().ceil(),
            if limit.is_cut { " (the most here)" } else { "" }
        )),
    }
    if finished.left_behind > 0 && finished.end != End::TimedOut {
        let left = count(finished.left_behind as usize, "background process").replace("processs", "processes");
        let verb = if finished.left_behind == 1 { "was" } else { "were" };
        notes.push(format!("{left} {verb} ended; start a server and use it in one command."));
    }
    if !finished.restored.is_empty() {
        let paths: Vec<String> = finished.restored.iter().map(|path| path.display().to_string()).collect();
        notes.push(format!("It changed what is read-only here; put back: {}.", paths.join(", ")));
    }
    if !network && finished.end != End::Exited(0) && lacks_network(&text, script) {
        notes.push("There is no network here. Work with what is installed.".to_owned());
    }
    for note in notes {
        if !text.is_empty() {
            text.push('\n');
        }
        text.push_str(&note);
    }
    text
}

/// True when the output shows that a name or an address could not be reached.
fn lacks_network(output: &str, script: &str) -> bool {
    const SIGNS: [&str; 16] = [
        "temporary failure in name resolution",
        "could not resolve",
        "couldn't resolve",
        "name or service not known",
        "failed to resolve",
        "failed to lookup address",
        "nodename nor servname",
        "no such host",
        "network is unreachable",
        "network unreachable",
        "eai_again",
        "enotfound",
        "enetunreach",
        "unable to resolve host",
        "failed to establish a new connection",
        "dns error",
    ];
    const INSTALLERS: [&str; 12] = [
        "pip install",
        "pip3 install",
        "npm install",
        "npm i ",
        "npm ci",
        "yarn add",
        "apt install",
        "apt-get install",
        "cargo add",
        "gem install",
        "go get",
        "pip download",
    ];
    let output = output.to_lowercase();
    SIGNS.iter().any(|sign| output.contains(sign))
        || (INSTALLERS.iter().any(|installer| script.contains(installer))
            && ["no matching distribution", "unable to locate package", "connection", "timed out", "unable to fetch"]
                .iter()
                .any(|sign| output.contains(sign)))
}

fn signal_name(signal: i32) -> &'static str {
    match signal {
        6 => " (abort)",
        9 => " (kill)",
        11 => " (segmentation fault)",
        13 => " (broken pipe)",
        15 => " (terminate)",
        _ => "",
    }
}

/// Output without colours, and of lines that overwrite themselves only the last state.
fn readable(output: &str) -> String {
    let mut text = String::with_capacity(output.len());
    for line in output.split_inclusive('\n') {
        let (body, end) = match line.strip_suffix('\n') {
            Some(body) => (body, "\n"),
            None => (line, ""),
        };
        let body = body.trim_end_matches('\r');
        let last_state = body.rsplit('\r').next().unwrap_or(body);
        push_without_escapes(&mut text, last_state);
        text.push_str(end);
    }
    text
}

fn push_without_escapes(text: &mut String, line: &str) {
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => match chars.next() {
                Some('[') => while chars.next().is_some_and(|c| !('\u{40}'..='\u{7e}').contains(&c)) {},
                // Ends with BEL or with `ESC \`.
                Some(']' | 'P' | '_' | '^' | 'X') => loop {
                    match chars.next() {
                        Some('\u{1b}') => {
                            chars.next_if_eq(&'\\');
                            break;
                        }
                        Some('\u{7}') | None => break,
                        Some(_) => {}
                    }
                },
                Some('(' | ')' | '#' | '%') => {
                    chars.next();
                }
                _ => {}
            },
            '\t' => text.push(c),
            c if c.is_control() => {}
            c => text.push(c),
        }
    }
}
