//! Takes the events of a run: into the ledger first, then to whoever shows them.
//!
//! A listener gets every event, numbered, through a queue of its own; a slow one delays nobody and loses nothing.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::mpsc::Sender;

use iudex_core::{Event, EventSink, Outcome, Progress};
use iudex_ledger::Ledger;
use serde_json::Value;

/// What a listener gets.
#[derive(Debug, Clone)]
pub enum Notice {
    /// An event that is in the ledger.
    Event {
        /// Its number within the run, from 1.
        seq: u64,
        /// RFC 3339, UTC.
        time: String,
        /// The event.
        event: Box<Event>,
        /// The same as the record has it, without the values of secrets.
        masked: Value,
    },
    /// A sign of life that is not kept.
    Progress(Sign),
}

/// The owned form of [`Progress`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sign {
    /// A piece of the model's answer.
    ModelText(String),
    /// Tokens of the present answer so far.
    OutputTokens(u64),
    /// A line that the running command printed.
    CommandLine(String),
    /// What is waited for.
    Waiting(String),
}

/// Writes events to the ledger and passes them on.
pub(crate) struct Recorder {
    ledger: Rc<Ledger>,
    run: String,
    listener: Option<Sender<Notice>>,
    wants_progress: bool,
    failure: RefCell<Option<String>>,
}

impl Recorder {
    pub(crate) fn new(ledger: Rc<Ledger>, run: String, listener: Option<Sender<Notice>>, wants_progress: bool) -> Self {
        Self { ledger, run, listener, wants_progress, failure: RefCell::new(None) }
    }

    /// The first event that could not be stored. What is not recorded is not proven.
    pub(crate) fn failure(&self) -> Option<String> {
        self.failure.borrow().clone()
    }

    /// What is not recorded cannot be shown to anybody: that is weaker than done.
    pub(crate) fn weaken(&self, outcome: &mut Outcome) {
        if let Some(failure) = self.failure()
            && matches!(outcome, Outcome::Done { .. })
        {
            *outcome = Outcome::NeedsYou { why: format!("the run could not be recorded: {failure}") };
        }
    }
}

impl Recorder {
    fn weaken_end(&self, event: &mut Event) {
        if let Event::RunEnded { outcome, .. } = event {
            self.weaken(outcome);
        }
    }
}

impl EventSink for Recorder {
    fn emit(&self, mut event: Event) {
        // Before it is written, so that the record itself never says done about a run with a hole in it.
        self.weaken_end(&mut event);
        let (seq, time) = match self.ledger.record(&self.run, &event) {
            Ok(stamp) => stamp,
            Err(error) => {
                self.failure.borrow_mut().get_or_insert_with(|| error.to_string());
                self.weaken_end(&mut event);
                (0, String::new())
            }
        };
        if let Some(listener) = &self.listener {
            let mut masked = serde_json::to_value(&event).unwrap_or_default();
            self.ledger.masked(&mut masked);
            // A listener that has gone away is no reason to stop the run.
            let _ = listener.send(Notice::Event { seq, time, event: Box::new(event), masked });
        }
    }

    fn progress(&self, progress: Progress<'_>) {
        let Some(listener) = self.listener.as_ref().filter(|_| self.wants_progress) else { return };
        let _ = listener.send(Notice::Progress(progress.into()));
    }
}

/// Passes events on without a record, for what happens outside a run.
pub(crate) struct Unrecorded {
    listener: Option<Sender<Notice>>,
}

impl Unrecorded {
    pub(crate) fn new(listener: Option<Sender<Notice>>) -> Self {
        Self { listener }
    }
}

impl EventSink for Unrecorded {
    fn emit(&self, event: Event) {
        if let Some(listener) = &self.listener {
            let event = Box::new(event);
            let _ = listener.send(Notice::Event { seq: 0, time: String::new(), event, masked: Value::Null });
        }
    }

    fn progress(&self, progress: Progress<'_>) {
        if let Some(listener) = &self.listener {
            let _ = listener.send(Notice::Progress(progress.into()));
        }
    }
}

impl From<Progress<'_>> for Sign {
    fn from(progress: Progress<'_>) -> Self {
        match progress {
            Progress::ModelText(text) => Self::ModelText(text.to_owned()),
            Progress::OutputTokens(tokens) => Self::OutputTokens(tokens),
            Progress::CommandLine(line) => Self::CommandLine(line.to_owned()),
            Progress::Waiting(text) => Self::Waiting(text.to_owned()),
        }
    }
}
