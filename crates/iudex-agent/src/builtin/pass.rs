//! One pass: ask the model, read its turn, run its calls, until it stops calling.
//!
//! Reads from top to bottom: [`Pass::work`] is the loop, then its steps. Never: anything from an answer that was cut or
//! that can be read in two ways.

mod ask;
mod calls;

use std::fmt::Write as _;

use iudex_core::{Event, Limit, PassContext, PassEnd, PassOrder, PassReport, PassStart, PromptStrategy, Usage};
use iudex_model::{ActionFormat, Completion, Finish, Trouble, Turn, read_turn};

use super::conversation::Item;
use super::stuck::{self, StuckDetector};
use super::{BuiltinAgent, prompt};

/// So many answers in a row that are meant as calls and are none change the format.
const TROUBLES_BEFORE_SWITCH: u32 = 3;

/// Answers without a call in a row that end the pass, while nothing has changed and a gate waits.
const MOST_WITHOUT_CALL: u32 = 2;

/// A pass at work.
pub(super) struct Pass<'a> {
    agent: &'a mut BuiltinAgent,
    order: PassOrder<'a>,
    context: &'a PassContext<'a>,
    stuck: StuckDetector,
    /// Whether a file has changed since the pass began.
    changed: bool,
    digest: String,
    without_call: u32,
    /// Whether it was told that it says done though no file has changed.
    told_unchanged: bool,
    steps: u32,
    usage: Usage,
    summary: String,
    /// A tool that the json format does not offer at the moment, and for how many answers after the next one: what a
    /// small model repeats it goes on repeating as long as it can.
    barred: Option<(String, u32)>,
    /// Whether the last answer brought what was known already, or nothing.
    repeating: bool,
    /// What repeats, to be told when every call of the turn has its result.
    reminders: Vec<String>,
}

impl<'a> Pass<'a> {
    pub(super) fn new(agent: &'a mut BuiltinAgent, order: PassOrder<'a>, context: &'a PassContext<'a>) -> Self {
        let stuck = StuckDetector::new(agent.settings.stuck_threshold);
        let digest = agent.tools.state_digest();
        agent.tools.begin_pass();
        Self {
            agent,
            order,
            context,
            stuck,
            changed: false,
            digest,
            without_call: 0,
            told_unchanged: false,
            steps: 0,
            usage: Usage::default(),
            summary: String::new(),
            barred: None,
            repeating: false,
            reminders: Vec::new(),
        }
    }

    /// Does the pass and reports. Every call has a result afterwards.
    pub(super) async fn run(mut self) -> PassReport {
        self.begin();
        let end = self.work().await;
        self.agent.talk.close();
        PassReport { end, summary: self.summary, steps: self.steps, usage: self.usage }
    }

    /// The loop itself.
    async fn work(&mut self) -> PassEnd {
        loop {
            if let Some(limit) = self.limit_reached() {
                return PassEnd::HitLimit { limit };
            }
            let completion = match self.ask().await {
                Ok(completion) => completion,
                Err(end) => return end,
            };
            self.note_answer(&completion);
            let turn = read_turn(self.agent.format, &completion, self.agent.tools.specs());
            let ended = match turn {
                Turn { trouble: Some(trouble), .. } => self.take_trouble(&trouble, &completion),
                Turn { calls, .. } if !calls.is_empty() => self.run_calls(calls, completion).await,
                _ if completion.text.trim().is_empty() => self.take_empty(),
                _ => self.take_answer_without_call(completion),
            };
            if let Some(end) = ended {
                return end;
            }
            for told in std::mem::take(&mut self.reminders) {
                self.agent.talk.note(told);
            }
        }
    }

    /// Opens the conversation, or goes on with it.
    fn begin(&mut self) {
        self.agent.talk.close();
        let is_new = self.agent.talk.items.is_empty();
        match self.order.start {
            PassStart::Task => self.open(true),
            PassStart::NextTask => self.open(is_new),
            PassStart::Fresh { directive } => {
                self.open(true);
                self.direct(directive);
            }
            PassStart::Continue { directive } => {
                if is_new || self.looks_again() {
                    self.open(true);
                }
                self.direct(directive);
            }
        }
    }

    /// A small model repeats what stands in its conversation, mistakes first. Where the whole project is before its eyes
    /// it goes on from the files as they are now, and its earlier steps are left out.
    fn looks_again(&self) -> bool {
        let shows_files = self.order.strategy == PromptStrategy::WithFiles;
        shows_files && self.agent.saw_all_files && self.agent.model.facts().is_small
    }

    fn open(&mut self, anew: bool) {
        if anew {
            self.agent.talk.clear();
            self.agent.counted = None;
            let system = prompt::system(self.agent.format, self.agent.tools.specs());
            self.message("system", system, "");
        }
        let notes = self.agent.settings.project_notes.as_deref().filter(|_| anew);
        let (opening, all_told) = prompt::opening(&self.order, notes, self.agent.tools.work_dir(), self.agent.window);
        self.agent.saw_all_files = all_told;
        if all_told {
            // A small model reads a file though its text is before its eyes: a call for nothing.
            self.barred = Some(("read".to_owned(), 0));
        }
        self.message("user", opening.text(), "");
        self.agent.talk.items.push(Item::Task(opening));
    }

    fn direct(&mut self, directive: &str) {
        self.message("user", directive.to_owned(), "");
        self.agent.talk.items.push(Item::Directive { text: directive.to_owned() });
    }

    fn limit_reached(&self) -> Option<Limit> {
        let limits = self.context.limits;
        let of_run = self.context.meter.exhausted(limits, self.context.clock.elapsed());
        of_run.or_else(|| (self.steps >= limits.max_steps).then_some(Limit::Steps))
    }

    /// Records an answer as it came.
    fn note_answer(&mut self, completion: &Completion) {
        let mut text = completion.text.clone();
        for call in &completion.calls {
            if !text.is_empty() {
                text.push('\n');
            }
            let _ = write!(text, "{} {}", call.name, call.arguments);
        }
        self.message("assistant", text, &completion.reasoning);
        if !completion.text.trim().is_empty() {
            completion.text.trim().clone_into(&mut self.summary);
        }
    }

    /// A call was meant and none can be executed: the model is told why.
    fn take_trouble(&mut self, trouble: &Trouble, completion: &Completion) -> Option<PassEnd> {
        let (kind, word) = match trouble {
            Trouble::Cut => ("cut", "an answer that was cut off"),
            Trouble::Broken(_) => ("broken_call", "a call that is not valid JSON"),
            Trouble::Ambiguous => ("broken_call", "an answer in which it is not clear which call is meant"),
            Trouble::UnknownTool { .. } => ("broken_call", "a call of a tool that there is not"),
            Trouble::BadArguments { .. } => ("broken_call", "a call whose arguments do not fit"),
        };
        let told = match completion.finish {
            Finish::Runaway => "Your answer repeated itself without end and was stopped, so nothing was executed. \
                                Answer with one short call."
                .to_owned(),
            _ => trouble.to_string(),
        };
        if *trouble == Trouble::Cut {
            // Nothing of it is kept: a small model takes the beginning up again, the mark of the cut included.
            self.repeating = true;
            self.agent.talk.note(told.clone());
        } else {
            let calls = self.as_made(&completion.calls);
            let open = calls.iter().map(|call| (Some(call.id.clone()), call.name.clone())).collect();
            self.agent.talk.answer(completion.text.clone(), calls, open);
            if self.agent.talk.open.is_empty() {
                self.agent.talk.note(told.clone());
            }
            while !self.agent.talk.open.is_empty() {
                self.agent.talk.result(told.clone());
            }
        }
        self.intervened(kind, &told);
        if matches!(trouble, Trouble::Broken(_) | Trouble::Ambiguous) && self.count_format_trouble(&told) {
            return None;
        }
        self.take_step(word, "", false)
    }

    /// The model answered with nothing at all.
    fn take_empty(&mut self) -> Option<PassEnd> {
        let told = prompt::empty(self.agent.format);
        self.agent.talk.note(told.clone());
        self.intervened("empty_answer", &told);
        self.take_step("an empty answer", "", false)
    }

    /// An answer without a call ends the pass: it is the proposal. Only when a gate waits and nothing has changed it is
    /// told so, once.
    fn take_answer_without_call(&mut self, completion: Completion) -> Option<PassEnd> {
        self.agent.talk.answer(completion.text, Vec::new(), Vec::new());
        if self.order.gates.is_empty() || self.has_changed() {
            return Some(PassEnd::Finished);
        }
        self.without_call += 1;
        if self.without_call >= MOST_WITHOUT_CALL {
            // The next pass then tries another format, if this goes on.
            self.agent.format_troubles += 1;
            let why = "it called no tool twice in a row and changed nothing".to_owned();
            return Some(PassEnd::Stuck { why });
        }
        let told = prompt::no_call(self.agent.format);
        self.intervened("no_call", &told);
        if !self.count_format_trouble(&told) {
            self.agent.talk.note(told);
        }
        None
    }

    /// True when a file has changed since the pass began, by a tool or by what one left running.
    fn has_changed(&mut self) -> bool {
        if !self.changed {
            self.changed = self.agent.tools.state_digest() != self.digest;
        }
        self.changed
    }

    /// Counts an answer that was no call in this format; at the third in a row the format changes.
    fn count_format_trouble(&mut self, told: &str) -> bool {
        self.agent.format_troubles += 1;
        self.agent.format_troubles >= TROUBLES_BEFORE_SWITCH && self.switch_format(told)
    }

    fn switch_format(&mut self, why: &str) -> bool {
        let before = self.agent.format;
        if !self.agent.switch_format() {
            return false;
        }
        let now = self.agent.format;
        self.stuck = StuckDetector::new(self.agent.settings.stuck_threshold);
        self.without_call = 0;
        self.intervened("format_changed", &format!("{} to {}: {why}", format_word(before), format_word(now)));
        self.message("system", prompt::system(now, self.agent.tools.specs()), "");
        self.agent.talk.note(prompt::format_changed(now));
        true
    }

    fn take_step(&mut self, what: &str, result: &str, changed: bool) -> Option<PassEnd> {
        let progress = self.stuck.step(what, result, changed);
        self.act_on(progress, what)
    }

    fn act_on(&mut self, progress: stuck::Progress, what: &str) -> Option<PassEnd> {
        match progress {
            stuck::Progress::Moving | stuck::Progress::SeenBefore => None,
            stuck::Progress::Intervene(repeats) => {
                let told =
                    prompt::repeats(what, repeats, self.agent.format, !self.order.gates.is_empty(), self.changed);
                self.intervened("repeats", &told);
                self.reminders.push(told);
                None
            }
            stuck::Progress::Stuck(repeats) => Some(PassEnd::Stuck { why: format!("{what}: {repeats}") }),
        }
    }

    fn message(&self, role: &str, text: String, reasoning: &str) {
        let reasoning = reasoning.to_owned();
        self.context.events.emit(Event::Message { role: role.to_owned(), text, reasoning });
    }

    fn intervened(&self, kind: &str, text: &str) {
        self.context.events.emit(Event::Intervention { kind: kind.to_owned(), text: text.to_owned() });
    }
}

fn format_word(format: ActionFormat) -> &'static str {
    match format {
        ActionFormat::Json => "json",
        ActionFormat::Native => "native",
        ActionFormat::Text => "text",
    }
}
