//! Makes the conversation smaller: rarely and in big steps, so that requests otherwise only grow at their end.
//!
//! Never: system prompt, task, gates or last failure. They stay word for word, whatever it costs the rest.

use iudex_model::estimate_tokens;

use super::conversation::{Conversation, Item};
use super::estimate_item;

/// The last items that stay as they are as long as anything else can go.
const KEPT_ITEMS: usize = 6;

/// A text below this many tokens is not worth leaving out.
const SMALL: u64 = 40;

/// Results are shortened to these sizes, in tokens, one after the other.
const SHORTER: [u64; 3] = [1024, 256, 64];

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

/// A conversation that becomes smaller, and how much too large it still is.
struct Work<'a> {
    talk: &'a mut Conversation,
    /// Estimated tokens that must still go.
    over: u64,
    done: Compacted,
}

/// Takes at least `over` estimated tokens out of the conversation, as far as that is possible, and returns what was
/// done: first the oldest results go, then the files of the first message, then the oldest steps; then what is left is
/// shortened.
pub(super) fn compact(talk: &mut Conversation, over: u64) -> Compacted {
    talk.close();
    let mut work = Work { talk, over, done: Compacted::default() };
    work.leave_out_results();
    work.leave_out_files();
    work.leave_out_steps(KEPT_ITEMS);
    for share in SHORTER {
        work.shorten_results(share);
    }
    work.leave_out_steps(0);
    work.leave_out_notes();
    work.done
}

impl Work<'_> {
    /// Puts a text in place of another and counts what that saves.
    fn replace(over: &mut u64, text: &mut String, new: String) {
        let saved = estimate_tokens(text).saturating_sub(estimate_tokens(&new));
        *over = over.saturating_sub(saved);
        *text = new;
    }

    fn leave_out_results(&mut self) {
        for item in self.talk.items.iter_mut().rev().skip(KEPT_ITEMS).rev() {
            if self.over == 0 {
                return;
            }
            if let Item::Result { title, text, .. } = item
                && estimate_tokens(text) > SMALL
            {
                let mark = format!("[result of {title} left out]");
                Self::replace(&mut self.over, text, mark);
                self.done.results += 1;
            }
        }
    }

    /// The files of the task that is worked on; earlier tasks go as a whole.
    fn leave_out_files(&mut self) {
        if let Some(Item::Task(opening)) = self.talk.task_index().and_then(|index| self.talk.items.get_mut(index))
            && self.over > 0
            && estimate_tokens(&opening.files) > SMALL
        {
            Self::replace(&mut self.over, &mut opening.files, FILES_LEFT_OUT.to_owned());
        }
    }

    fn leave_out_notes(&mut self) {
        if let Some(Item::Task(opening)) = self.talk.task_index().and_then(|index| self.talk.items.get_mut(index))
            && self.over > 0
        {
            Self::replace(&mut self.over, &mut opening.notes, String::new());
        }
    }

    /// The oldest steps; the last `kept` items stay.
    fn leave_out_steps(&mut self, kept: usize) {
        let mut index = 0;
        while self.over > 0 && index + kept < self.talk.items.len() {
            let pinned = Some(index) == self.talk.task_index() || Some(index) == self.talk.directive_index();
            if pinned || Conversation::is_gap(&self.talk.items[index]) {
                index += 1;
                continue;
            }
            for item in self.talk.leave_out(index) {
                self.over = self.over.saturating_sub(estimate_item(&item));
            }
            self.done.steps += 1;
        }
    }

    /// Every result gets at most `share` tokens, head and tail.
    fn shorten_results(&mut self, share: u64) {
        for item in &mut self.talk.items {
            if self.over == 0 {
                return;
            }
            if let Item::Result { text, .. } = item
                && estimate_tokens(text) > share
            {
                let shorter = head_and_tail(text, share as usize * 3);
                Self::replace(&mut self.over, text, shorter);
                self.done.shortened += 1;
            }
        }
    }
}

/// The first and the last part of a text, together about `bytes` long.
fn head_and_tail(text: &str, bytes: usize) -> String {
    if text.len() <= bytes {
        return text.to_owned();
    }
    let head = text.floor_char_boundary(bytes / 2);
    let tail = text.ceil_char_boundary(text.len() - bytes / 2);
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
