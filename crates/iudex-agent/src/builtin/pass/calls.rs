//! The calls of a turn: run one after the other, each with its result.
//!
//! Never: a call that is left without a result.

use std::collections::HashSet;

use iudex_core::{Event, PassEnd, PassStart, Progress};
use iudex_model::{AssistantCall, Completion, DONE, ToolCall};
use serde_json::Value;

use super::super::conversation::Item;
use super::super::{prompt, stuck};
use super::Pass;
use crate::tools::ToolResult;

/// A tool whose call repeats is left out of the schema for so many answers after the next one.
const BARRED_ANSWERS: u32 = 1;

impl Pass<'_> {
    /// Runs the calls of an answer, one after the other.
    pub(super) async fn run_calls(&mut self, calls: Vec<ToolCall>, completion: Completion) -> Option<PassEnd> {
        self.without_call = 0;
        self.agent.format_troubles = 0;
        let is_native = !completion.calls.is_empty();
        let made: Vec<AssistantCall> = if is_native { self.made_native(&calls) } else { Vec::new() };
        let open = calls.iter().enumerate().map(|(index, call)| {
            let known = call.name != DONE;
            let subject = if known { self.agent.tools.subject(&call.name, &call.arguments) } else { String::new() };
            (made.get(index).map(|call| call.id.clone()), format!("{} {subject}", call.name).trim().to_owned())
        });
        let open: Vec<_> = open.collect();
        let titles: Vec<String> = open.iter().map(|(_, title)| title.clone()).collect();
        self.agent.talk.answer(completion.text, made, open);
        for (call, title) in calls.iter().zip(titles) {
            if call.name == DONE {
                return self.take_done(call, is_native);
            }
            if let Some(end) = self.run_call(call, &title).await {
                self.agent.talk.close_not_run();
                return Some(end);
            }
        }
        None
    }

    /// The model says that it is finished. When a gate waits and nothing has changed it is told so, once: a small model
    /// takes an edit that failed for one that was made.
    fn take_done(&mut self, call: &ToolCall, is_native: bool) -> Option<PassEnd> {
        if !self.order.gates.is_empty() && !self.told_unchanged && !self.has_changed() {
            self.told_unchanged = true;
            let told = prompt::done_unchanged(self.agent.format);
            self.intervened("nothing_changed", &told);
            if is_native {
                self.agent.talk.result(told);
                self.agent.talk.close_not_run();
            } else {
                self.agent.talk.open.clear();
                self.agent.talk.note(told);
            }
            return None;
        }
        if let Some(summary) = call.arguments.get("summary").and_then(|summary| summary.as_str()) {
            summary.clone_into(&mut self.summary);
        }
        if is_native {
            self.agent.talk.result("Taken as finished.".to_owned());
            self.agent.talk.close_not_run();
        } else {
            self.agent.talk.open.clear();
        }
        Some(PassEnd::Finished)
    }

    /// Runs one call and adds its result.
    async fn run_call(&mut self, call: &ToolCall, title: &str) -> Option<PassEnd> {
        let subject = title.strip_prefix(&call.name).unwrap_or(title).trim().to_owned();
        let events = self.context.events;
        events.emit(Event::ToolStarted { tool: call.name.clone(), subject });
        let started = self.context.clock.elapsed();
        let mut on_line = |line: &str| events.progress(Progress::CommandLine(line));
        let result = self.agent.tools.call(&call.name, &call.arguments, &mut on_line).await;
        let changed = self.changed_by(call, &result);
        self.changed |= changed;

        let what = format!("{} {}", call.name, Value::Object(call.arguments.clone()));
        let progress = self.stuck.step(&what, &result.text, changed);
        self.repeating = progress != stuck::Progress::Moving || (is_writing(call) && result.ok && !changed);
        let mut text = result.text.clone();
        let hint = match progress {
            stuck::Progress::SeenBefore => Some(prompt::seen_before(self.agent.format)),
            stuck::Progress::Moving if result.ok && self.is_refused_state(call) => {
                Some(prompt::REFUSED_STATE.to_owned())
            }
            stuck::Progress::Moving if self.changed && result.ok && !result.is_open && self.wants_hint(call) => {
                Some(prompt::after_change(self.agent.format))
            }
            _ => None,
        };
        if let Some(hint) = hint {
            text.truncate(text.trim_end().len());
            text.push('\n');
            text.push_str(&hint);
        }
        let millis = u64::try_from(self.context.clock.elapsed().saturating_sub(started).as_millis());
        events.emit(Event::ToolFinished {
            tool: call.name.clone(),
            ok: result.ok,
            result: text.clone(),
            millis: millis.unwrap_or(u64::MAX),
        });
        self.agent.talk.result(text);
        if let Some(why) = result.blocked {
            return Some(PassEnd::Blocked { why });
        }
        match progress {
            // It goes on writing what is there: what it wants to do is done.
            stuck::Progress::SeenBefore | stuck::Progress::Intervene(_) if is_writing(call) && self.changed => {
                self.barred = Some((call.name.clone(), 0));
            }
            // While no file has changed what writes stays: the model is told to change one.
            stuck::Progress::Intervene(_) if !is_writing(call) => {
                self.barred = Some((call.name.clone(), BARRED_ANSWERS));
            }
            _ => {}
        }
        self.act_on(progress, title)
    }

    /// A write that changed nothing, in a pass that began with a refusal and has changed nothing yet.
    fn is_refused_state(&self, call: &ToolCall) -> bool {
        let was_refused = matches!(self.order.start, PassStart::Continue { .. } | PassStart::Fresh { .. });
        was_refused && !self.changed && call.name == "write"
    }

    /// A small model does not know when it may stop: after a change of a file it is told how.
    fn wants_hint(&self, call: &ToolCall) -> bool {
        is_writing(call) && !self.order.gates.is_empty() && self.agent.model.facts().is_small
    }

    /// Whether a call has changed the state. `write` and `edit` compare contents and are sure (also of ignored files,
    /// which the digest does not see); a command may have.
    fn changed_by(&mut self, call: &ToolCall, result: &ToolResult) -> bool {
        if !result.may_have_changed {
            return false;
        }
        let digest = self.agent.tools.state_digest();
        let differs = digest != self.digest;
        self.digest = digest;
        differs || is_writing(call)
    }

    /// Native calls as the conversation keeps them.
    fn made_native(&self, calls: &[ToolCall]) -> Vec<AssistantCall> {
        let ids = self.ids(calls.iter().map(|call| call.id.as_deref().unwrap_or_default()));
        let made = calls.iter().zip(ids).map(|(call, id)| {
            let arguments = Value::Object(call.arguments.clone()).to_string();
            AssistantCall { id, name: call.name.clone(), arguments }
        });
        made.collect()
    }

    /// Native calls that cannot be executed. Servers refuse a conversation whose arguments are not JSON.
    pub(super) fn as_made(&self, calls: &[AssistantCall]) -> Vec<AssistantCall> {
        let is_object = |text: &str| serde_json::from_str::<serde_json::Map<String, Value>>(text).is_ok();
        let ids = self.ids(calls.iter().map(|call| call.id.as_str()));
        let made = calls.iter().zip(ids).map(|(call, id)| {
            let arguments = if is_object(&call.arguments) { call.arguments.clone() } else { "{}".to_owned() };
            let name = if call.name.is_empty() { "unnamed".to_owned() } else { call.name.clone() };
            AssistantCall { id, name, arguments }
        });
        made.collect()
    }

    /// An id for each call that no other call of the conversation has: some servers give none, or always the same.
    fn ids<'b>(&self, given: impl Iterator<Item = &'b str>) -> Vec<String> {
        let calls = self.agent.talk.items.iter().filter_map(|item| match item {
            Item::Answer { calls, .. } => Some(calls),
            _ => None,
        });
        let mut taken: HashSet<String> = calls.flatten().map(|call| call.id.clone()).collect();
        let mut ids = Vec::new();
        for (index, id) in given.enumerate() {
            let own = format!("call_{}_{}_{index}", self.order.number, self.steps);
            let id = if id.is_empty() || taken.contains(id) { own } else { id.to_owned() };
            taken.insert(id.clone());
            ids.push(id);
        }
        ids
    }
}

fn is_writing(call: &ToolCall) -> bool {
    matches!(call.name.as_str(), "write" | "edit")
}
