//! The line session: reads lines, completes, shows turns. Everything else is `iudex_app::Session`.

use std::borrow::Cow;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use iudex_app::{Config, OpenRequest, Overrides, Paths, Refusal, SLASH_COMMANDS, Session, SlashCommand};
use iudex_core::CancellationToken;
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::DefaultHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config as EditorConfig, Context, Editor, Helper};
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::commands::{stats_text, undo_text};
use crate::render::{Renderer, Style, closing_text, human_count, ruling_line};
use crate::talk;

/// Lines that are kept in the history.
const HISTORY: usize = 1000;

/// Opens a session in the present directory.
pub(crate) async fn open(take_up: bool) -> Result<ExitCode, Refusal> {
    let directory = PathBuf::from(".").canonicalize().map_err(|error| Refusal::plain(error.to_string()))?;
    let paths = Paths::from_env()?;
    let config = Config::load(&directory, &Overrides::default(), &paths)?;
    let history_file = paths.state.join("history");
    let request = OpenRequest { directory: directory.clone(), config, large_directory: false, session: None };
    let mut session = Session::open(request, paths, take_up).await?;

    talk::say(&format!("iudex {} · {} · {}", env!("CARGO_PKG_VERSION"), session.model(), directory.display()));
    talk::say(&check_line(&session));
    talk::say("/help lists the commands; Ctrl-C stops a pass, Ctrl-D ends the session");
    let editor = editor(&directory, &history_file)?;
    converse(&mut session, editor, &history_file, &directory).await?;
    Ok(ExitCode::SUCCESS)
}

type LineEditor = Editor<LineHelper, DefaultHistory>;

async fn converse(
    session: &mut Session,
    mut editor: LineEditor,
    history_file: &Path,
    directory: &Path,
) -> Result<(), Refusal> {
    loop {
        // Reading a line blocks; a thread of its own keeps the runtime free to end what a turn left behind.
        let read = tokio::task::spawn_blocking(move || {
            let line = editor.readline("iudex> ");
            (line, editor)
        });
        let Ok((line, returned)) = read.await else { return Ok(()) };
        editor = returned;
        let line = match line {
            Ok(line) => line,
            Err(ReadlineError::Interrupted) => {
                talk::say("nothing runs; /quit or Ctrl-D ends the session");
                continue;
            }
            Err(ReadlineError::Eof) => return Ok(()),
            Err(error) => return Err(Refusal::plain(format!("cannot read a line: {error}"))),
        };
        let line = line.trim();
        if line.is_empty() {
            continue;
        }
        let _ = editor.add_history_entry(line);
        let _ = editor.save_history(history_file);
        let outcome = if line.starts_with('/') {
            match SlashCommand::parse(line) {
                Ok(SlashCommand::Quit) => return Ok(()),
                Ok(command) => slash(session, command, directory).await,
                Err(refusal) => Err(refusal),
            }
        } else {
            turn(session, line).await
        };
        if let Err(refusal) = outcome {
            talk::refuse(&refusal);
        }
    }
}

/// One turn on the loop, stopped by Ctrl-C.
async fn turn(session: &mut Session, line: &str) -> Result<(), Refusal> {
    let cancel = CancellationToken::new();
    let renderer = Renderer::start(if io::stderr().is_terminal() { Style::Terminal } else { Style::Plain });
    let ran = {
        let running = session.turn(line, renderer.sender(), renderer.wants_progress, &cancel);
        with_interrupt(running, &cancel).await
    };
    renderer.finish();
    let finished = ran?;
    let claim = finished.report.claim.trim();
    if !claim.is_empty() {
        talk::data(claim);
        talk::say("");
    }
    talk::data(&closing_text(&finished));
    Ok(())
}

/// Runs a future; Ctrl-C cancels it, and Ctrl-C twice ends the program.
async fn with_interrupt<T>(running: impl Future<Output = T>, cancel: &CancellationToken) -> T {
    let mut interrupt = signal(SignalKind::interrupt()).ok();
    tokio::pin!(running);
    loop {
        tokio::select! {
            value = &mut running => return value,
            () = next(&mut interrupt) => {
                if cancel.is_cancelled() {
                    std::process::exit(130);
                }
                talk::say("stopping; once more ends the program");
                cancel.cancel();
            }
        }
    }
}

async fn next(interrupt: &mut Option<Signal>) {
    match interrupt {
        Some(signal) => {
            signal.recv().await;
        }
        None => std::future::pending().await,
    }
}

async fn slash(session: &mut Session, command: SlashCommand, directory: &Path) -> Result<(), Refusal> {
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
            let cancel = CancellationToken::new();
            let renderer = Renderer::start(if io::stderr().is_terminal() { Style::Terminal } else { Style::Plain });
            let asked = {
                let asking = session.validate(&check, renderer.sender());
                tokio::select! {
                    asked = asking => Some(asked),
                    () = interrupted(&cancel) => None,
                }
            };
            renderer.finish();
            match asked {
                Some(Ok(Some(ruling))) => {
                    talk::data(&format!("{}\nnow: {}", check_line(session), ruling_line(&ruling)));
                }
                Some(Ok(None)) => talk::data(&check_line(session)),
                Some(Err(refusal)) => return Err(refusal),
                None => talk::data(&format!("stopped; {}", check_line(session))),
            }
        }
        SlashCommand::Stats => match session.stats()? {
            Some(stats) => talk::data(&stats_text(&stats)),
            None => talk::data("no turn yet"),
        },
        SlashCommand::Diff => match session.diff(talk::colour())? {
            Some(diff) if diff.is_empty() => talk::data("nothing changed"),
            Some(diff) => talk::bytes(&diff),
            None => talk::data("no turn yet"),
        },
        SlashCommand::Undo { force } => match session.undo(force)? {
            Some(report) => talk::data(&undo_text(&report, directory)),
            None => talk::data("no turn yet"),
        },
        SlashCommand::Model(None) => talk::data(&session.model()),
        SlashCommand::Model(Some(name)) => {
            session.set_model(&name).await?;
            talk::data(&session.model());
        }
        SlashCommand::Context => {
            for share in session.context_shares() {
                talk::data(&format!("{:<28} {:>9} tokens", share.name, human_count(share.tokens)));
            }
        }
    }
    Ok(())
}

async fn interrupted(cancel: &CancellationToken) {
    let mut interrupt = signal(SignalKind::interrupt()).ok();
    next(&mut interrupt).await;
    cancel.cancel();
}

fn check_line(session: &Session) -> String {
    match session.check() {
        [] => "no check: results are unvalidated (/validate CMD sets one)".to_owned(),
        checks => format!("check: {}", checks.join("; ")),
    }
}

fn editor(directory: &Path, history_file: &Path) -> Result<LineEditor, Refusal> {
    let failed = |error: ReadlineError| Refusal::plain(format!("the line editor cannot start: {error}"));
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
