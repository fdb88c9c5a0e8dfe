//! Shows a run: a living line on a terminal, plain lines elsewhere, JSON for machines.
//!
//! Never: a decision. Everything that is shown here stands in the ledger.

mod closing;
mod json;
mod lines;
mod terminal;

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use iudex_app::Notice;

pub(crate) use closing::{claim_text, closing_json, closing_text};
pub(crate) use lines::ruling_line;

/// How a run is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Style {
    /// A living line and the events that matter, on standard error.
    Terminal,
    /// The events that matter, a line each, on standard error.
    Plain,
    /// Every event as JSON, on standard output.
    Json,
}

/// The thread that shows a run at its own pace.
pub(crate) struct Renderer {
    sender: Option<Sender<Notice>>,
    thread: Option<JoinHandle<()>>,
    pub(crate) wants_progress: bool,
}

impl Renderer {
    /// Starts showing.
    pub(crate) fn start(style: Style) -> Self {
        let (sender, receiver) = channel();
        let show: fn(&Receiver<Notice>) = match style {
            Style::Terminal => terminal::show,
            Style::Plain => lines::show,
            Style::Json => json::show,
        };
        let thread = std::thread::Builder::new().name("render".to_owned()).spawn(move || show(&receiver)).ok();
        Self { sender: Some(sender), thread, wants_progress: style == Style::Terminal }
    }

    /// Where notices go.
    pub(crate) fn sender(&self) -> Option<Sender<Notice>> {
        self.sender.clone()
    }

    /// Shows what is still queued and ends. All other senders must be gone.
    pub(crate) fn finish(mut self) {
        drop(self.sender.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A duration as people read it: `850 ms`, `12.3 s`, `4 min 05 s`.
pub(crate) fn human_duration(duration: std::time::Duration) -> String {
    let millis = duration.as_millis();
    if millis < 1000 {
        return format!("{millis} ms");
    }
    let seconds = duration.as_secs_f64();
    if seconds < 60.0 {
        return format!("{seconds:.1} s");
    }
    let whole = duration.as_secs();
    if whole < 3600 {
        return format!("{} min {:02} s", whole / 60, whole % 60);
    }
    format!("{} h {:02} min", whole / 3600, whole % 3600 / 60)
}

/// A count with thousands set apart: `12,345`.
pub(crate) fn human_count(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A number with its noun: `1 file`, `2 files`.
pub(crate) fn counted(number: impl TryInto<u64>, noun: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {noun}"),
        number => format!("{} {noun}{}", human_count(number), if noun.ends_with('s') { "es" } else { "s" }),
    }
}

/// Text for one line of a terminal: no control characters, at most `most` characters.
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let clean: String =
        text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect::<String>().trim().to_owned();
    if clean.chars().count() <= most {
        return clean;
    }
    clean.chars().take(most.saturating_sub(1)).chain(['…']).collect()
}
