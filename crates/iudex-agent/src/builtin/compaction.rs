//! Fits the conversation to the window: rarely and in big steps, so that requests otherwise only grow at their end.
//!
//! Never: system prompt, task, gates or last failure. They stay word for word, whatever it costs the rest.

use iudex_model::estimate_tokens;

use super::conversation::{Conversation, Item};

/// The last items that stay as they are as long as anything else can go.
const KEPT_ITEMS: usize = 6;

/// A result below this many tokens is not worth leaving out.
const SMALL_RESULT: u64 = 40;

/// What stands for the files of the first message.
const FILES_LEFT_OUT: &str = "[The list of files was left out to save space.]";

/// What a compaction did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Compacted {
    /// Results left out.
    pub results: usize,
    /// Steps left out.
    pub steps: usize,
    /// Results shortened.
    pub shortened: usize,
}

/// Makes the conversation smaller until `fits` says so, as far as that is possible, and returns what was done.
pub(super) fn compact(talk: &mut Conversation, fits: &dyn Fn(&Conversation) -> bool) -> Compacted {
    let mut done = Compacted::default();
    talk.close();
    if fits(talk) {
        return done;
    }
    leave_out_results(talk, fits, &mut done);
    if !fits(talk) {
        leave_out_files(talk);
    }
    leave_out_steps(talk, fits, KEPT_ITEMS, &mut done);
    for share in [1024, 256, 64] {
        shorten_results(talk, fits, share, &mut done);
    }
    leave_out_steps(talk, fits, 0, &mut done);
    if !fits(talk) {
        leave_out_notes(talk);
    }
    done
}

/// The oldest results first.
fn leave_out_results(talk: &mut Conversation, fits: &dyn Fn(&Conversation) -> bool, done: &mut Compacted) {
    for index in 0..talk.items.len().saturating_sub(KEPT_ITEMS) {
        if fits(talk) {
            return;
        }
        if let Item::Result { title, text, .. } = &mut talk.items[index]
            && estimate_tokens(text) > SMALL_RESULT
        {
            *text = format!("[result of {title} left out]");
            done.results += 1;
        }
    }
}

/// The file list of the task that is worked on; earlier tasks go as a whole.
fn leave_out_files(talk: &mut Conversation) {
    if let Some(Item::Task(opening)) = talk.task_index().and_then(|index| talk.items.get_mut(index))
        && estimate_tokens(&opening.files) > SMALL_RESULT
    {
        FILES_LEFT_OUT.clone_into(&mut opening.files);
    }
}

fn leave_out_notes(talk: &mut Conversation) {
    if let Some(Item::Task(opening)) = talk.task_index().and_then(|index| talk.items.get_mut(index)) {
        opening.notes.clear();
    }
}

/// The oldest steps first; the last `kept` items stay.
fn leave_out_steps(talk: &mut Conversation, fits: &dyn Fn(&Conversation) -> bool, kept: usize, done: &mut Compacted) {
    let mut index = 0;
    while index + kept < talk.items.len() && !fits(talk) {
        let pinned = Some(index) == talk.task_index() || Some(index) == talk.directive_index();
        if pinned || Conversation::is_gap(&talk.items[index]) {
            index += 1;
            continue;
        }
        talk.leave_out(index);
        done.steps += 1;
    }
}

/// Every result gets at most `share` tokens, head and tail.
fn shorten_results(talk: &mut Conversation, fits: &dyn Fn(&Conversation) -> bool, share: u64, done: &mut Compacted) {
    for index in 0..talk.items.len() {
        if fits(talk) {
            return;
        }
        if let Item::Result { text, .. } = &mut talk.items[index]
            && estimate_tokens(text) > share
        {
            *text = head_and_tail(text, share as usize * 3);
            done.shortened += 1;
        }
    }
}

/// The first and the last part of a text, together about `bytes` long.
fn head_and_tail(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let mut head = bytes / 2;
    while !text.is_char_boundary(head) {
        head -= 1;
    }
    let mut tail = text.len() - bytes / 2;
    while !text.is_char_boundary(tail) {
        tail += 1;
    }
    format!("{}\n[… {} bytes left out …]\n{}", &text[..head], tail - head, &text[tail..])
}

impl std::fmt::Display for Compacted {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} results and {} steps left out, {} results shortened; task, gates and last failure stay",
            self.results, self.steps, self.shortened
        )
    }
}
