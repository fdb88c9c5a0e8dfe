//! One model call of a pass: the prompt made to fit, the limits kept, the format changed when the server refuses it.
//!
//! Never: a request without a token limit.

use std::rc::Rc;
use std::time::Duration;

use iudex_core::{Event, Limit, PassEnd, PassStart, Progress, Usage};
use iudex_model::{Completion, Delta, Finish, ModelError};

use super::super::compaction::compact;
use super::Pass;

/// An answer below so many tokens is not worth a call.
const LEAST_ANSWER: u64 = 16;

/// A fresh conversation samples at least this warm: at the temperature that failed a small model fails the same way.
const FRESH_TEMPERATURE: f32 = 0.5;

/// Tokens that stay free for what the estimate does not see (the frame of the chat template).
const MARGIN: u64 = 48;

/// The window is filled up to this share, in percent, after a compaction: it comes rarely and in big steps.
const FILL_AFTER_COMPACTION: u64 = 60;

/// So often a prompt that the server finds too long is made shorter before the pass gives up.
const MOST_OVERFLOWS: u32 = 4;

impl Pass<'_> {
    /// Asks for one answer. Makes the prompt fit and changes the format when the server refuses it.
    pub(super) async fn ask(&mut self) -> Result<Completion, PassEnd> {
        let mut overflows = 0;
        loop {
            let prompt_tokens = self.fit()?;
            let max_tokens = self.answer_room(prompt_tokens)?;
            let mut request = self.agent.request(&self.agent.talk);
            if let Some((tool, _)) = &self.barred
                && request.schema.is_some()
            {
                request.schema = Some(self.agent.schema_without(tool));
            }
            request.max_tokens = max_tokens;
            // A new conversation with the same seed would only bring the same answers.
            let pass = u64::from(self.order.number.0.saturating_sub(1));
            request.seed = self.agent.settings.seed.map(|seed| seed.wrapping_add(pass));
            if matches!(self.order.start, PassStart::Fresh { .. }) {
                request.temperature = request.temperature.max(FRESH_TEMPERATURE);
            }

            let step = self.steps + 1;
            self.context.events.emit(Event::ModelCallStarted { step, prompt_tokens });
            let started = self.context.clock.elapsed();
            let events = self.context.events;
            let mut tokens = 0;
            let mut on_delta = |delta: Delta<'_>| match delta {
                Delta::Text(text) => {
                    tokens += 1;
                    events.progress(Progress::ModelText(text));
                    events.progress(Progress::OutputTokens(tokens));
                }
                Delta::Reasoning(_) => {
                    tokens += 1;
                    events.progress(Progress::OutputTokens(tokens));
                }
                Delta::Waiting(what) => events.progress(Progress::Waiting(what)),
            };
            let model = Rc::clone(&self.agent.model);
            let answered = model.complete(&request, &mut on_delta).await;
            let took = self.context.clock.elapsed().saturating_sub(started);
            match answered {
                Ok(completion) => {
                    self.charge(&completion, request.estimate_prompt());
                    let finish = finish_word(completion.finish);
                    self.call_finished(step, completion.usage, took, finish, completion.retries);
                    return Ok(completion);
                }
                Err(ModelError::Overflow { message, window, prompt }) => {
                    self.call_finished(step, Usage::default(), took, "overflow", 0);
                    overflows += 1;
                    self.learn_from_overflow(window, prompt, request.estimate_prompt());
                    if overflows > MOST_OVERFLOWS || !self.make_smaller(prompt_tokens) {
                        let why = format!(
                            "the prompt does not fit the window, taken as {} tokens, even with all but the task, the \
                             gates and the last failure left out: {message}",
                            self.agent.window
                        );
                        return Err(PassEnd::ModelUnavailable { why });
                    }
                }
                Err(ModelError::FormatRefused(message)) => {
                    self.call_finished(step, Usage::default(), took, "format_refused", 0);
                    if !self.switch_format(&message) {
                        let why = format!("the server takes none of the action formats: {message}");
                        return Err(PassEnd::ModelUnavailable { why });
                    }
                }
                Err(error @ (ModelError::Unavailable(_) | ModelError::Refused(_))) => {
                    let word = if matches!(error, ModelError::Refused(_)) { "refused" } else { "unavailable" };
                    self.call_finished(step, Usage::default(), took, word, 0);
                    return Err(PassEnd::ModelUnavailable { why: error.to_string() });
                }
            }
        }
    }

    /// Makes the prompt fit the window and returns its estimated tokens.
    fn fit(&mut self) -> Result<u64, PassEnd> {
        let estimate = self.agent.estimate(&self.agent.talk);
        let room = self.agent.window.saturating_sub(MARGIN);
        let budget = room.saturating_sub(self.agent.answer_limit());
        if estimate <= budget {
            return Ok(estimate);
        }
        let after = self.compact_to(budget * FILL_AFTER_COMPACTION / 100, estimate);
        if after + LEAST_ANSWER <= room {
            return Ok(after);
        }
        let why = format!(
            "task, gates and last failure alone take about {after} tokens, and the window of {} has {}",
            self.agent.model.facts().name,
            self.agent.window
        );
        Err(PassEnd::ModelUnavailable { why })
    }

    /// Leaves out and shortens until the prompt is at or below `target`, as far as possible; returns its size then.
    fn compact_to(&mut self, target: u64, before: u64) -> u64 {
        let over = (before.saturating_sub(target) as f64 / self.agent.scale).ceil() as u64;
        let done = compact(&mut self.agent.talk, over);
        let after = self.agent.estimate(&self.agent.talk);
        if after < before {
            self.intervened("compacted", &format!("about {before} tokens became {after}: {done}"));
        }
        after
    }

    /// After an overflow: what the server counts, and how much it takes.
    fn learn_from_overflow(&mut self, window: Option<u64>, prompt: Option<u64>, estimate: u64) {
        const UNKNOWN_GROWTH: f64 = 1.25;
        if let Some(window) = window.filter(|window| *window > 0) {
            self.agent.window = self.agent.window.min(window);
        }
        let counted = prompt.filter(|prompt| *prompt > 0 && estimate > 0).map(|prompt| prompt as f64 / estimate as f64);
        let scale = match (counted, window) {
            (Some(counted), _) => counted,
            (None, Some(_)) => self.agent.scale,
            (None, None) => self.agent.scale * UNKNOWN_GROWTH,
        };
        self.agent.scale = scale.clamp(0.5, 8.0);
    }

    /// Compacts below what was just refused. `false` when nothing more can go.
    fn make_smaller(&mut self, refused: u64) -> bool {
        let before = self.agent.estimate(&self.agent.talk);
        let room = self.agent.window.saturating_sub(MARGIN + self.agent.answer_limit());
        let target = room.min(before.max(refused)) * FILL_AFTER_COMPACTION / 100;
        let after = self.compact_to(target, before);
        after < before || after < refused
    }

    /// How long the answer may be: the limit of an answer, the rest of the window, the rest of the run's tokens.
    fn answer_room(&self, prompt_tokens: u64) -> Result<u64, PassEnd> {
        let in_window = self.agent.window.saturating_sub(prompt_tokens + MARGIN).max(LEAST_ANSWER);
        let mut room = self.agent.answer_limit().min(in_window);
        if let Some(limit) = self.context.limits.tokens {
            let spent = self.context.meter.spent().usage.total();
            let left = limit.0.saturating_sub(spent.0).saturating_sub(prompt_tokens);
            if left < LEAST_ANSWER {
                return Err(PassEnd::HitLimit { limit: Limit::Tokens });
            }
            room = room.min(left);
        }
        Ok(room)
    }

    fn charge(&mut self, completion: &Completion, estimate: u64) {
        let usage = completion.usage;
        self.steps += 1;
        self.barred = self.barred.take().and_then(|(tool, answers)| Some((tool, answers.checked_sub(1)?)));
        self.usage = self.usage.plus(usage);
        self.context.meter.charge(usage, self.agent.model.facts().cost(&usage));
        if usage.estimated_calls == 0 && usage.prompt.0 > 0 && estimate > 0 {
            self.agent.scale = (usage.prompt.0 as f64 / estimate as f64).clamp(0.5, 8.0);
        }
    }

    fn call_finished(&self, step: u32, usage: Usage, took: Duration, finish: &str, retries: u32) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.context.events.emit(Event::ModelCallFinished { step, usage, millis, finish: finish.to_owned(), retries });
    }
}

fn finish_word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Runaway => "runaway",
        Finish::Other => "other",
    }
}
