//! The conversation of the built-in agent, kept apart from any action format.
//!
//! Invariant: whenever it is rendered or saved, every native call has a result. Never: a decision about what to do next.

use std::collections::VecDeque;

use iudex_model::{ActionFormat, AssistantCall, Message};
use serde::{Deserialize, Serialize};

/// What stands for a call that was interrupted.
const ABORTED: &str = "Aborted: the call was interrupted. Whether it took effect is unknown.";

/// What stands for a call behind one that was interrupted or that ended the answer.
const NOT_RUN: &str = "Not run: it ended before this call.";

/// Stands where older steps were left out.
const EARLIER_LEFT_OUT: &str = "[Earlier steps were left out to save space. The files are as they are now.]";

/// One piece of the conversation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "item", rename_all = "snake_case")]
pub(super) enum Item {
    /// The task with its surroundings. The last one is pinned.
    Task(Opening),
    /// Findings of a gate. The last one after the last task is pinned.
    Directive {
        /// The text.
        text: String,
    },
    /// What the harness says besides.
    Note {
        /// The text.
        text: String,
    },
    /// What the model said.
    Answer {
        /// The text.
        text: String,
        /// Native calls.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        calls: Vec<AssistantCall>,
    },
    /// The result of a call.
    Result {
        /// The id of the native call that it answers.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        call_id: Option<String>,
        /// The call in a few words (`read a.py`).
        title: String,
        /// The result.
        text: String,
    },
}

/// The first message of a task. `task` and `gates` are never lost.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Opening {
    /// The project's notes.
    #[serde(default)]
    pub notes: String,
    /// The project's files: names, or names and contents.
    #[serde(default)]
    pub files: String,
    /// The task as it is told.
    pub task: String,
    /// The gates as they are told.
    #[serde(default)]
    pub gates: String,
}

impl Opening {
    /// The whole message: what is around first, what must be done last.
    pub(super) fn text(&self) -> String {
        let parts = [&self.notes, &self.files, &self.task, &self.gates];
        parts.iter().filter(|part| !part.is_empty()).map(|part| part.trim_end()).collect::<Vec<_>>().join("\n\n")
    }
}

/// The items, and the calls that are being executed.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Conversation {
    /// In order.
    pub items: Vec<Item>,
    /// Calls of the last answer that have no result yet: native id and title.
    #[serde(default)]
    pub open: VecDeque<(Option<String>, String)>,
}

impl Conversation {
    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.items.clear();
        self.open.clear();
    }

    /// Adds an answer whose calls are executed next.
    pub(super) fn answer(&mut self, text: String, calls: Vec<AssistantCall>, open: Vec<(Option<String>, String)>) {
        self.close();
        // Servers refuse an empty message of the model.
        if !text.trim().is_empty() || !calls.is_empty() {
            self.items.push(Item::Answer { text, calls });
        }
        self.open = open.into();
    }

    /// Adds the result of the first open call.
    pub(super) fn result(&mut self, text: String) {
        if let Some((call_id, title)) = self.open.pop_front() {
            self.items.push(Item::Result { call_id, title, text });
        }
    }

    /// Gives every open call a result: the first was interrupted, and those behind it were not run.
    pub(super) fn close(&mut self) {
        self.result(ABORTED.to_owned());
        self.close_not_run();
    }

    /// Gives every open call a result that says that it was not run.
    pub(super) fn close_not_run(&mut self) {
        while !self.open.is_empty() {
            self.result(NOT_RUN.to_owned());
        }
    }

    /// Adds something that the harness says.
    pub(super) fn note(&mut self, text: impl Into<String>) {
        self.close();
        self.items.push(Item::Note { text: text.into() });
    }

    /// The messages for a format. Tool results are messages of the user unless they answer a native call in the native
    /// format; neighbouring messages of the user are one, since many chat templates insist on alternation.
    pub(super) fn messages(&self, format: ActionFormat, system: &str) -> Vec<Message> {
        let mut messages = vec![Message::System { text: system.to_owned() }];
        for item in &self.items {
            match item {
                Item::Task(opening) => push_user(&mut messages, &opening.text()),
                Item::Directive { text } | Item::Note { text } => push_user(&mut messages, text),
                Item::Answer { text, calls } if format == ActionFormat::Native => {
                    messages.push(Message::Assistant { text: text.clone(), calls: calls.clone() });
                }
                Item::Answer { text, calls } => {
                    messages.push(Message::Assistant { text: as_text(text, calls, format), calls: Vec::new() });
                }
                Item::Result { call_id: Some(call_id), text, .. } if format == ActionFormat::Native => {
                    messages.push(Message::Tool { call_id: call_id.clone(), text: text.clone() });
                }
                Item::Result { title, text, .. } => push_user(&mut messages, &format!("Result of {title}:\n{text}")),
            }
        }
        messages
    }

    /// The index of the last task.
    pub(super) fn task_index(&self) -> Option<usize> {
        self.items.iter().rposition(|item| matches!(item, Item::Task(_)))
    }

    /// The index of the last directive of the last task.
    pub(super) fn directive_index(&self) -> Option<usize> {
        let from = self.task_index().map_or(0, |index| index + 1);
        self.items[from..].iter().rposition(|item| matches!(item, Item::Directive { .. })).map(|index| from + index)
    }

    /// Removes and returns the item at `index` and what belongs to it (the results of an answer), and marks the gap once.
    pub(super) fn leave_out(&mut self, index: usize) -> Vec<Item> {
        let mut end = index + 1;
        if matches!(self.items[index], Item::Answer { .. }) {
            end += self.items[end..].iter().take_while(|item| matches!(item, Item::Result { .. })).count();
        }
        let removed = self.items.drain(index..end).collect();
        if !self.items.iter().any(Self::is_gap) {
            self.items.insert(index, Item::Note { text: EARLIER_LEFT_OUT.to_owned() });
        }
        removed
    }

    /// True for the mark that [`Self::leave_out`] sets.
    pub(super) fn is_gap(item: &Item) -> bool {
        matches!(item, Item::Note { text } if text == EARLIER_LEFT_OUT)
    }
}

fn push_user(messages: &mut Vec<Message>, added: &str) {
    if let Some(Message::User { text }) = messages.last_mut() {
        text.push_str("\n\n");
        text.push_str(added);
    } else {
        messages.push(Message::User { text: added.to_owned() });
    }
}

/// An answer with native calls, written for a format that has none.
fn as_text(text: &str, calls: &[AssistantCall], format: ActionFormat) -> String {
    let mut out = text.to_owned();
    for call in calls {
        let arguments = serde_json::from_str(&call.arguments).unwrap_or(serde_json::Value::Null);
        let value = if format == ActionFormat::Json {
            let mut action = serde_json::Map::from_iter([("tool".to_owned(), call.name.clone().into())]);
            action.extend(arguments.as_object().cloned().unwrap_or_default());
            serde_json::Value::Object(action)
        } else {
            serde_json::json!({"name": call.name, "arguments": arguments})
        };
        if !out.is_empty() {
            out.push('\n');
        }
        out.push_str(&value.to_string());
    }
    out
}
