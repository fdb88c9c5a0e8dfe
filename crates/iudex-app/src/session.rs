//! A session: each line is a turn on the same loop as `iudex run`, with the same gates, policy and ledger.
//!
//! Never: reading lines or showing anything; the binary does that.

use std::sync::mpsc::Sender;

use iudex_agent::ContextShare;
use iudex_core::{CancellationToken, Ruling, Task};
use iudex_ledger::RunStats;
use iudex_repo::RestoreReport;

use crate::choice::ModelChoice;
use crate::paths::Paths;
use crate::place::{Finished, Place};
use crate::preflight::{OpenRequest, new_name};
use crate::recorder::Notice;
use crate::refusal::Refusal;

/// A line that begins with a slash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SlashCommand {
    /// `/validate CMD|off`: sets the check of the following turns; without an argument shows it.
    Validate(Option<String>),
    /// `/stats`: the recorded validation result of the last turn.
    Stats,
    /// `/diff`: what the last turn changed.
    Diff,
    /// `/undo`: brings the files back as they were before the last turn.
    Undo {
        /// Also files that somebody else changed since.
        force: bool,
    },
    /// `/model [NAME]`: shows or changes the model.
    Model(Option<String>),
    /// `/context`: what fills the window.
    Context,
    /// `/help`.
    Help,
    /// `/quit`.
    Quit,
}

/// The names and one line of help each, in the order in which they are shown.
pub const SLASH_COMMANDS: &[(&str, &str)] = &[
    ("/validate", "/validate CMD|off   set the check of the following turns and show its baseline"),
    ("/stats", "/stats              the recorded validation result of the last turn"),
    ("/diff", "/diff               what the last turn changed"),
    ("/undo", "/undo [--force]     bring the files back as they were before the last turn"),
    ("/model", "/model [NAME]       show or change the model"),
    ("/context", "/context            what fills the model's window"),
    ("/help", "/help               this list"),
    ("/quit", "/quit               end the session"),
];

impl SlashCommand {
    /// Reads a line that begins with a slash.
    ///
    /// # Errors
    /// [`Refusal`] that names the nearest command; such a line is never a prompt.
    pub fn parse(line: &str) -> Result<Self, Refusal> {
        let (name, rest) = line.trim().split_once(char::is_whitespace).unwrap_or((line.trim(), ""));
        let rest = rest.trim();
        let argument = (!rest.is_empty()).then(|| rest.to_owned());
        match (name, argument) {
            ("/validate", argument) => Ok(Self::Validate(argument)),
            ("/model", argument) => Ok(Self::Model(argument)),
            ("/stats", None) => Ok(Self::Stats),
            ("/diff", None) => Ok(Self::Diff),
            ("/undo", None) => Ok(Self::Undo { force: false }),
            ("/undo", Some(flag)) if flag == "--force" => Ok(Self::Undo { force: true }),
            ("/context", None) => Ok(Self::Context),
            ("/help", None) => Ok(Self::Help),
            ("/quit" | "/exit", None) => Ok(Self::Quit),
            (name, Some(argument)) if SLASH_COMMANDS.iter().any(|(known, _)| *known == name) => {
                Err(Refusal::usage(format!("{name} does not take {argument:?}"), "/help shows how each is written"))
            }
            (name, _) => {
                let hint = crate::nearest::nearest(name, SLASH_COMMANDS.iter().map(|(known, _)| *known))
                    .map_or_else(|| "/help lists them".to_owned(), |nearest| format!("did you mean {nearest}?"));
                Err(Refusal::usage(format!("there is no command {name}"), hint))
            }
        }
    }
}

/// An open session.
pub struct Session {
    place: Place,
    name: String,
    turns: u32,
}

impl Session {
    /// Opens a session; with `take_up` the last one of this directory goes on.
    ///
    /// # Errors
    /// [`Refusal`] as for a run, or when there is no session to take up.
    pub async fn open(mut request: OpenRequest, paths: Paths, take_up: bool) -> Result<Self, Refusal> {
        let name = new_name();
        request.session = Some(name.clone());
        let mut session = Self { place: Place::open(request, paths).await?, name, turns: 0 };
        if take_up {
            session.take_up()?;
        }
        Ok(session)
    }

    fn take_up(&mut self) -> Result<(), Refusal> {
        let directory = self.place.directory().to_owned();
        let Some((name, state)) = self.place.ledger().last_session(&directory)? else {
            return Err(Refusal::usage(
                format!("no session was kept in {}", directory.display()),
                "start one with `iudex` alone",
            ));
        };
        if !self.place.agent().load(&state) {
            return Err(Refusal::usage(
                format!("the session {name} cannot be read: another version of iudex kept it"),
                "start a new one with `iudex` alone",
            ));
        }
        self.place.set_session(name.clone());
        self.name = name;
        self.turns = 1;
        Ok(())
    }

    /// Runs one turn and keeps the conversation.
    ///
    /// # Errors
    /// [`Refusal`] when the turn did not start.
    pub async fn turn(
        &mut self,
        text: &str,
        listener: Option<Sender<Notice>>,
        wants_progress: bool,
        cancel: &CancellationToken,
    ) -> Result<Finished, Refusal> {
        let task = Task::from_goal(text);
        let mut finished = self.place.run(&task, self.turns > 0, listener, wants_progress, cancel).await?;
        self.turns += 1;
        let state = self.place.agent().save();
        let directory = self.place.directory().to_owned();
        if let Err(error) = self.place.ledger().keep_session(&self.name, &directory, &state) {
            // The turn itself stands: its result must not be lost with the conversation.
            finished.notes.push(format!("the conversation could not be kept for --continue: {error}"));
        }
        Ok(finished)
    }

    /// Sets the check of the following turns and asks it about the present state. `None` when it was switched off.
    ///
    /// # Errors
    /// [`Refusal`] when the check can never answer here, or it is switched off and every run needs one; the earlier
    /// check stays.
    pub async fn validate(
        &mut self,
        command: &str,
        listener: Option<Sender<Notice>>,
    ) -> Result<Option<Ruling>, Refusal> {
        if command == "off" {
            self.place.set_check(Vec::new())?;
            return Ok(None);
        }
        let before = self.place.check().to_vec();
        self.place.set_check(vec![command.to_owned()])?;
        match self.place.baseline(listener).await {
            Ok(ruling) => Ok(ruling),
            Err(refusal) => {
                self.place.set_check(before)?;
                Err(refusal)
            }
        }
    }

    /// The check of the following turns.
    pub fn check(&self) -> &[String] {
        self.place.check()
    }

    /// Configured checks that do not run now, since `/validate` set others.
    pub fn left_out(&self) -> Vec<&str> {
        self.place.left_out()
    }

    /// What is recorded about the last turn; `None` before the first.
    ///
    /// # Errors
    /// [`Refusal`] when the ledger cannot be read.
    pub fn stats(&self) -> Result<Option<RunStats>, Refusal> {
        match self.place.last_run() {
            Some(run) => Ok(Some(self.place.ledger().stats(run.as_str())?)),
            None => Ok(None),
        }
    }

    /// What the last turn changed, as a unified diff; `None` before the first.
    ///
    /// # Errors
    /// [`Refusal`] when the snapshots cannot be read.
    pub fn diff(&self, colour: bool) -> Result<Option<Vec<u8>>, Refusal> {
        let Some(run) = self.place.last_run() else { return Ok(None) };
        let (Some(base), Some(last)) = self.place.ledger().snapshots(run.as_str())? else {
            return Ok(Some(Vec::new()));
        };
        Ok(Some(self.place.snapshots().diff(&base, &last, colour)?))
    }

    /// Brings the files back as they were before the last turn; `None` before the first.
    ///
    /// # Errors
    /// [`Refusal`] when the snapshots cannot be read.
    pub fn undo(&self, force: bool) -> Result<Option<RestoreReport>, Refusal> {
        let Some(run) = self.place.last_run() else { return Ok(None) };
        crate::history::restore(self.place.ledger(), self.place.snapshots(), run.as_str(), force).map(Some)
    }

    /// Changes the model.
    ///
    /// # Errors
    /// [`Refusal`] when it cannot be used; the present one stays.
    pub async fn set_model(&mut self, name: &str) -> Result<(), Refusal> {
        self.place.set_model(name).await
    }

    /// The model and why it was chosen.
    pub fn model(&self) -> &ModelChoice {
        self.place.model()
    }

    /// What fills the window.
    pub fn context_shares(&self) -> Vec<ContextShare> {
        self.place.context_shares()
    }
}
