//! The line session: reads lines, completes, shows turns. Everything else is `iudex_app::Session`.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iudex_app::{Config, OpenRequest, Overrides, Refusal, SLASH_COMMANDS, Session, SlashCommand};
use iudex_core::CancellationToken;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config as EditorConfig, Context, Editor, Helper};

use crate::commands::{stats_text, undo_text};
use crate::render::{Renderer, Style, claim_text, closing_text, human_count, ruling_line};
use crate::signals::{Asked, Signals};
use crate::talk;

/// Lines that are kept in the history.
const HISTORY: usize = 1000;

/// Opens a session in the present directory.
pub(crate) async fn open(take_up: bool, large_directory: bool) -> Result<ExitCode, Refusal> {
    let (directory, paths) = crate::commands::places(None)?;
    let config = Config::load(&directory, &Overrides::default(), &paths)?;
    let history_file = paths.state.join("history");
    let request = OpenRequest { directory: directory.clone(), config, large_directory, session: None };
    let mut session = Session::open(request, paths, take_up).await?;

    let model = model_text(&session);
    talk::say(&format!("iudex {} · {model} · {}", env!("CARGO_PKG_VERSION"), directory.display()));
    talk::say(&check_line(&session));
    talk::say("/help lists the commands; Ctrl-C stops a pass, Ctrl-D ends the session");
    let editor = editor(&directory, &history_file)?;
    // A line that is being read holds the terminal in a state that would outlive a session ended by a signal.
    let terminal = rustix::termios::tcgetattr(io::stdin()).ok();
    let ended = converse(&mut session, editor, &history_file, &directory).await?;
    if ended == Ended::BySignal {
        if let Some(terminal) = terminal {
            let _ = rustix::termios::tcsetattr(io::stdin(), rustix::termios::OptionalActions::Now, &terminal);
        }
        talk::say("");
        return Ok(ExitCode::from(130));
    }
    Ok(ExitCode::SUCCESS)
}

/// How a session ended, or did not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ended {
    NotYet,
    ByUser,
    BySignal,
}

impl From<bool> for Ended {
    fn from(told_to_end: bool) -> Self {
        if told_to_end { Self::BySignal } else { Self::NotYet }
    }
}

type LineEditor = Editor<LineHelper, DefaultHistory>;

async fn converse(
    session: &mut Session,
    mut editor: LineEditor,
    history_file: &Path,
    directory: &Path,
) -> Result<Ended, Refusal> {
    let mut signals = Signals::listen();
    loop {
        // Reading a line blocks; a thread of its own keeps the runtime free to end what a turn left behind.
        let mut reading = tokio::task::spawn_blocking(move || {
            let line = editor.readline("iudex> ");
            (line, editor)
        });
        let read = loop {
            tokio::select! {
                biased;
                asked = signals.next() => if asked == Asked::End { return Ok(Ended::BySignal) },
                read = &mut reading => break read,
            }
        };
        let Ok((line, returned)) = read else { return Ok(Ended::ByUser) };
        editor = returned;
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                talk::say("nothing runs; /quit or Ctrl-D ends the session");
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(Ended::ByUser),
            Err(error) => {
                let hint = "start again with `iudex --continue`";
                return Err(Refusal::usage(format!("cannot read a line: {error}"), hint));
            }
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line);
        let _ = editor.save_history(history_file);
        let outcome = if line.starts_with('/') {
            match SlashCommand::parse(line) {
                Ok(SlashCommand::Quit) => return Ok(Ended::ByUser),
                Ok(command) => slash(session, command, directory, &mut signals).await,
                Err(refusal) => Err(refusal),
            }
        } else {
            turn(session, line, &mut signals).await
        };
        match outcome {
            Ok(Ended::NotYet) => {}
            Ok(ended) => return Ok(ended),
            Err(refusal) => {
                talk::refuse(&refusal);
            }
        }
    }
}

/// One turn on the loop, stopped by a signal.
async fn turn(session: &mut Session, line: &str, signals: &mut Signals) -> Result<Ended, Refusal> {
    let cancel = CancellationToken::new();
    let renderer = Renderer::start(if io::stderr().is_terminal() { Style::Terminal } else { Style::Plain });
    let running = session.turn(line, renderer.sender(), renderer.wants_progress, &cancel);
    let (ran, told_to_end) = signals.stop(running, &cancel).await;
    renderer.finish();
    match ran {
        Ok(finished) => {
            talk::data(&claim_text(&finished.report.claim));
            talk::data(&closing_text(&finished));
        }
        Err(refusal) if told_to_end => {
            talk::refuse(&refusal);
        }
        Err(refusal) => return Err(refusal),
    }
    Ok(told_to_end.into())
}

async fn slash(
    session: &mut Session,
    command: SlashCommand,
    directory: &Path,
    signals: &mut Signals,
) -> Result<Ended, Refusal> {
    match command {
        SlashCommand::Help => {
            for (_, help) in SLASH_COMMANDS {
                talk::data(help);
            }
            talk::data("anything else is a task; @ completes a path");
        }
        SlashCommand::Quit => {}
        SlashCommand::Validate(None) => talk::data(&check_line(session)),
        SlashCommand::Validate(Some(check)) => {
            let renderer = Renderer::start(if io::stderr().is_terminal() { Style::Terminal } else { Style::Plain });
            let answered = tokio::select! {
                answered = session.validate(&check, renderer.sender()) => Ok(answered),
                asked = signals.next() => Err(asked),
            };
            renderer.finish();
            match answered {
                Ok(Ok(Some(ruling))) => {
                    talk::data(&format!("{}\nnow: {}", check_line(session), ruling_line(&ruling)));
                }
                Ok(Ok(None)) => talk::data(&check_line(session)),
                Ok(Err(refusal)) => return Err(refusal),
                Err(Asked::Stop) => talk::data(&format!("stopped; {}", check_line(session))),
                Err(Asked::End) => return Ok(Ended::BySignal),
            }
        }
        SlashCommand::Stats => match session.stats()? {
            Some(stats) => talk::data(&stats_text(&stats)),
            None => talk::data("no turn yet"),
        },
        SlashCommand::Diff => match session.diff(talk::colour())? {
            Some(diff) if diff.is_empty() => talk::data("nothing changed"),
            Some(diff) => talk::diff(&diff),
            None => talk::data("no turn yet"),
        },
        SlashCommand::Undo { force } => match session.undo(force)? {
            Some(report) => talk::data(&undo_text(&report, directory, false)),
            None => talk::data("no turn yet"),
        },
        SlashCommand::Model(None) => talk::data(&model_text(session)),
        SlashCommand::Model(Some(name)) => {
            session.set_model(&name).await?;
            talk::data(&model_text(session));
        }
        SlashCommand::Context => {
            for share in session.context_shares() {
                talk::data(&format!("{:<28} {:>9} tokens", share.name, human_count(share.tokens)));
            }
        }
    }
    Ok(Ended::NotYet)
}

fn model_text(session: &Session) -> String {
    let model = session.model();
    let because = model.chosen_because.as_ref().map_or(String::new(), |because| format!(", {because}"));
    format!("{}{because}", model.describe())
}

fn check_line(session: &Session) -> String {
    let line = match session.check() {
        [] => "no check: results are unvalidated (/validate CMD sets one)".to_owned(),
        checks => format!("check: {}", checks.join("; ")),
    };
    match &session.left_out()[..] {
        [] => line,
        left_out => format!("{line}\nleft out, and the outcome says so: {}", left_out.join("; ")),
    }
}

fn editor(directory: &Path, history_file: &Path) -> Result<LineEditor, Refusal> {
    let failed = |error: ReadlineError| {
        let hint = "run iudex in another terminal, or use `iudex run`";
        Refusal::usage(format!("the line editor cannot start: {error}"), hint)
    };
    let settings = EditorConfig::builder()
        .max_history_size(HISTORY)
        .map_err(failed)?
        .completion_type(CompletionType::List)
        .build();
    let mut editor = Editor::with_config(settings).map_err(failed)?;
    editor.set_helper(Some(LineHelper { directory: directory.to_owned() }));
    // No history yet is no failure.
    let _ = editor.load_history(history_file);
    Ok(editor)
}

/// Completes `/` commands at the start of a line and `@path` anywhere.
struct LineHelper {
    directory: PathBuf,
}

impl Completer for LineHelper {
    type Candidate = Pair;

    fn complete(&self, line: &str, position: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let before = &line[..position];
        if before.starts_with('/') && !before.contains(char::is_whitespace) {
            let names = SLASH_COMMANDS.iter().map(|(name, _)| *name).filter(|name| name.starts_with(before));
            return Ok((0, names.map(|name| pair(name, &format!("{name} "))).collect()));
        }
        let start = before.rfind(char::is_whitespace).map_or(0, |at| at + 1);
        match before[start..].strip_prefix('@') {
            Some(path) => Ok((start, self.paths(path))),
            None => Ok((position, Vec::new())),
        }
    }
}

impl LineHelper {
    fn paths(&self, typed: &str) -> Vec<Pair> {
        let (folder, beginning) = typed.rsplit_once('/').map_or(("", typed), |(folder, rest)| (folder, rest));
        let Ok(entries) = std::fs::read_dir(self.directory.join(folder)) else { return Vec::new() };
        let mut found: Vec<Pair> = entries
            .flatten()
            .filter_map(|entry| {
                let name = entry.file_name().into_string().ok()?;
                if !name.starts_with(beginning) || (name.starts_with('.') && beginning.is_empty()) {
                    return None;
                }
                let slash = if entry.path().is_dir() { "/" } else { "" };
                let prefix = if folder.is_empty() { String::new() } else { format!("{folder}/") };
                Some(pair(&format!("{name}{slash}"), &format!("@{prefix}{name}{slash}")))
            })
            .collect();
        found.sort_by(|one, other| one.display.cmp(&other.display));
        found
    }
}

fn pair(display: &str, replacement: &str) -> Pair {
    Pair { display: display.to_owned(), replacement: replacement.to_owned() }
}

impl Hinter for LineHelper {
    type Hint = String;
}

impl Highlighter for LineHelper {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(&'s self, prompt: &'p str, _: bool) -> Cow<'b, str> {
        Cow::Borrowed(prompt)
    }
}

impl Validator for LineHelper {}

impl Helper for LineHelper {}
