//! A change that was refused once and is made when it is sent again as it was: that it is meant is a question to the model.
//!
//! Never: a refusal that is remembered beyond the pass, or beyond another write.

use std::cell::RefCell;

use serde_json::{Map, Value};

/// The arguments of the last call that was refused so.
#[derive(Debug, Default)]
pub(super) struct Refused(RefCell<Option<Map<String, Value>>>);

impl Refused {
    /// Keeps a call that is refused now.
    pub(super) fn keep(&self, arguments: &Map<String, Value>) {
        self.0.replace(Some(arguments.clone()));
    }

    /// True when this call was the last one that was refused.
    pub(super) fn is(&self, arguments: &Map<String, Value>) -> bool {
        self.0.borrow().as_ref() == Some(arguments)
    }

    /// The same, and nothing is remembered afterwards.
    pub(super) fn take(&self, arguments: &Map<String, Value>) -> bool {
        self.0.replace(None).as_ref() == Some(arguments)
    }

    /// Nothing is remembered.
    pub(super) fn forget(&self) {
        self.0.replace(None);
    }
}
