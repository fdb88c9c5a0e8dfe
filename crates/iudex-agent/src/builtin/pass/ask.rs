//! One model call of a pass: the prompt made to fit, the limits kept, the format changed when the server refuses it.
//!
//! Never: a request without a token limit.

use std::rc::Rc;
use std::time::Duration;

use iudex_core::{Event, Limit, PassEnd, PassStart, Progress, Usage};
use iudex_model::{Completion, Delta, Finish, ModelError};

use super::super::compaction::{Compacted, compact};
use super::super::stuck::StuckDetector;
use super::Pass;

/// An answer below so many tokens is not worth a call.
const LEAST_ANSWER: u64 = 256;

/// Estimated tokens by which a prompt must have grown before its count is expected to have risen.
const SURE_GROWTH: u64 = 64;

/// A fresh conversation samples at least this warm: at the temperature that failed a small model fails the same way.
const FRESH_TEMPERATURE: f32 = 0.5;

/// After a call that brought nothing new: what is likely is what was just sent.
const REPEAT_TEMPERATURE: f32 = 0.8;

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
            if self.repeating {
                request.temperature = request.temperature.max(REPEAT_TEMPERATURE);
            } else if matches!(self.order.start, PassStart::Fresh { .. }) {
                request.temperature = request.temperature.max(FRESH_TEMPERATURE);
            }

            let step = self.steps + 1;
            self.context.events.emit(Event::ModelCallStarted { step, prompt_tokens });
            let started = self.context.clock.elapsed();
            let events = self.context.events;
            let mut tokens = 0;
            let mut lost = Usage::default();
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
                Delta::Lost(usage) => lost = lost.plus(usage),
            };
            let model = Rc::clone(&self.agent.model);
            let answered = model.complete(&request, &mut on_delta).await;
            let took = self.context.clock.elapsed().saturating_sub(started);
            self.charge(lost);
            let answered = match answered {
                Ok(completion) => match self.unseen_cut(&completion, request.estimate_prompt()) {
                    Some(overflow) => {
                        self.charge(completion.usage);
                        lost = lost.plus(completion.usage);
                        Err(overflow)
                    }
                    None => Ok(completion),
                },
                failed => failed,
            };
            match answered {
                Ok(completion) => {
                    self.count_answer(&completion, request.estimate_prompt());
                    let finish = finish_word(completion.finish);
                    self.call_finished(step, completion.usage, took, finish, completion.retries);
                    return Ok(completion);
                }
                Err(ModelError::Overflow { message, window, prompt }) => {
                    self.call_finished(step, lost, took, "overflow", 0);
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
                    self.call_finished(step, lost, took, "format_refused", 0);
                    if !self.switch_format(&message) {
                        let why = format!("the server takes none of the action formats: {message}");
                        return Err(PassEnd::ModelUnavailable { why });
                    }
                }
                Err(error @ (ModelError::Unavailable(_) | ModelError::Refused(_))) => {
                    let word = if matches!(error, ModelError::Refused(_)) { "refused" } else { "unavailable" };
                    self.call_finished(step, lost, took, word, 0);
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
        if after + self.least_answer() <= room {
            return Ok(after);
        }
        let why = format!(
            "task, gates and last failure alone take about {after} tokens, and the window of {} has {}: no room is left \
             for an answer of {}. Use a model with a larger window, or a shorter task",
            self.agent.model.facts().name,
            self.agent.window,
            self.least_answer()
        );
        Err(PassEnd::ModelUnavailable { why })
    }

    /// Leaves out and shortens until the prompt is at or below `target`, as far as possible; returns its size then.
    fn compact_to(&mut self, target: u64, before: u64) -> u64 {
        let over = (before.saturating_sub(target) as f64 / self.agent.scale).ceil() as u64;
        let done = compact(&mut self.agent.talk, over);
        self.agent.counted = None;
        if done != Compacted::default() {
            // What was left out may be needed again: to fetch it is no repeat.
            self.stuck = StuckDetector::new(self.agent.settings.stuck_threshold);
        }
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
        let in_window = self.agent.window.saturating_sub(prompt_tokens + MARGIN).max(self.least_answer());
        let mut room = self.agent.answer_limit().min(in_window);
        if let Some(limit) = self.context.limits.tokens {
            let spent = self.context.meter.spent().usage.total();
            let left = limit.0.saturating_sub(spent.0).saturating_sub(prompt_tokens);
            if left < self.least_answer() {
                return Err(PassEnd::HitLimit { limit: Limit::Tokens });
            }
            room = room.min(left);
        }
        Ok(room)
    }

    /// The fewest tokens that an answer must have room for.
    fn least_answer(&self) -> u64 {
        LEAST_ANSWER.min(self.agent.answer_limit())
    }

    /// A server that drops a part of a prompt without a word, with a window smaller than the one that is known: between
    /// compactions requests only grow, so a count that did not rise with them tells it.
    fn unseen_cut(&mut self, completion: &Completion, estimate: u64) -> Option<ModelError> {
        let count = completion.usage.prompt.0;
        let (estimate_before, count_before) = self.agent.counted?;
        let has_grown = estimate >= estimate_before + SURE_GROWTH;
        // Below half of it: such a server counts only what its cache did not have.
        // Far below the estimate: it does not count prompts at all.
        let is_no_count = count < count_before / 2 || count < estimate / 3;
        if !is_counted(completion) || !has_grown || count > count_before || is_no_count {
            return None;
        }
        self.agent.counted = None;
        let message = format!(
            "{} read {count} tokens of a prompt that was longer than the one before, of which it read {count_before}: \
             it left out a part without a word",
            self.agent.model.facts().address
        );
        Some(ModelError::Overflow { message, window: Some(count_before), prompt: None })
    }

    fn count_answer(&mut self, completion: &Completion, estimate: u64) {
        self.steps += 1;
        self.barred = self.barred.take().and_then(|(tool, answers)| Some((tool, answers.checked_sub(1)?)));
        self.charge(completion.usage);
        if !is_counted(completion) || estimate == 0 {
            return;
        }
        let count = completion.usage.prompt.0;
        let did_not_rise = self.agent.counted.is_some_and(|(before, counted)| estimate > before && count <= counted);
        if !did_not_rise {
            self.agent.scale = (count as f64 / estimate as f64).clamp(0.5, 8.0);
            self.agent.counted = Some((estimate, count));
        }
    }

    fn charge(&mut self, usage: Usage) {
        if usage != Usage::default() {
            self.usage = self.usage.plus(usage);
            self.context.meter.charge(usage, self.agent.model.facts().cost(&usage));
        }
    }

    fn call_finished(&self, step: u32, usage: Usage, took: Duration, finish: &str, retries: u32) {
        let millis = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
        self.context.events.emit(Event::ModelCallFinished { step, usage, millis, finish: finish.to_owned(), retries });
    }
}

/// The server counted the prompt, and once: tries that were cut are estimated.
fn is_counted(completion: &Completion) -> bool {
    completion.usage.estimated_calls == 0 && completion.usage.prompt.0 > 0
}

fn finish_word(finish: Finish) -> &'static str {
    match finish {
        Finish::Stop => "stop",
        Finish::Length => "length",
        Finish::Runaway => "runaway",
        Finish::Other => "other",
    }
}
