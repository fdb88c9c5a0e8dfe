//! A living line (what it is doing, step, tokens, elapsed) below the lines of what happened.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};
use iudex_app::{Notice, Sign};
use iudex_core::Event;

use super::lines::{Lines, word};
use super::{human_count, one_line};

/// Shows until the run has ended.
pub(super) fn show(notices: &Receiver<Notice>) {
    let bar = ProgressBar::new_spinner();
    if let Ok(style) = ProgressStyle::with_template("{spinner} {wide_msg} {elapsed}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(200));
    let mut lines = Lines::default();
    let mut status = Status::default();
    for notice in notices {
        match notice {
            Notice::Event { event, .. } => {
                if let Some(line) = lines.line(&event) {
                    for part in line.lines() {
                        bar.println(part);
                    }
                }
                status.take(&event);
            }
            Notice::Progress(sign) => status.take_sign(sign),
        }
        bar.set_message(status.text());
    }
    bar.finish_and_clear();
}

#[derive(Default)]
struct Status {
    pass: u32,
    step: u32,
    tokens: u64,
    doing: String,
}

impl Status {
    fn take(&mut self, event: &Event) {
        match event {
            Event::PassStarted { pass, .. } => {
                self.pass = pass.0;
                self.step = 0;
            }
            Event::ModelCallStarted { step, prompt_tokens } => {
                self.step = *step;
                self.doing = format!("model reads {} tokens", human_count(*prompt_tokens));
            }
            Event::ModelCallFinished { usage, .. } => self.tokens = self.tokens.saturating_add(usage.total().0),
            Event::ToolStarted { tool, subject } => self.doing = format!("{tool} {}", one_line(subject, 80)),
            Event::GateStarted { gate, .. } => self.doing = format!("{} runs", word(*gate)),
            Event::PassEnded { .. } => "takes a snapshot".clone_into(&mut self.doing),
            _ => {}
        }
    }

    fn take_sign(&mut self, sign: Sign) {
        match sign {
            Sign::OutputTokens(tokens) => self.doing = format!("model writes, {} tokens", human_count(tokens)),
            Sign::ModelText(_) => {
                if !self.doing.starts_with("model writes") {
                    "model writes".clone_into(&mut self.doing);
                }
            }
            Sign::CommandLine(line) => self.doing = format!("runs: {}", one_line(&line, 100)),
            Sign::Waiting(text) => self.doing = one_line(&text, 100),
        }
    }

    fn text(&self) -> String {
        let place = match (self.pass, self.step) {
            (0, _) => String::new(),
            (pass, 0) => format!("pass {pass} · "),
            (pass, step) => format!("pass {pass} · step {step} · "),
        };
        let tokens = if self.tokens > 0 { format!(" · {} tokens", human_count(self.tokens)) } else { String::new() };
        format!("{place}{}{tokens}", self.doing)
    }
}
