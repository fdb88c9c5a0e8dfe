//! Replaces the values of secrets in everything that is stored.
//!
//! Never: a guess at what looks like a secret; the caller hands in the values.

use serde_json::Value;

/// What stands in place of a secret.
const MASK: &str = "[masked]";

/// Shorter values would tear holes into ordinary text (`1`, `true`, `dev`).
const SHORTEST: usize = 6;

/// Lines of a secret of several lines (a key in PEM form) are masked singly when they are at least so long.
const SHORTEST_LINE: usize = 16;

/// The values that are masked, longest first, so that a value inside a longer one leaves no rest of it.
#[derive(Debug, Default)]
pub(crate) struct Mask {
    values: Vec<String>,
}

impl Mask {
    /// Adds values to those that are masked already.
    pub fn add(&mut self, values: Vec<String>) {
        for value in values {
            let value = value.trim();
            if value.len() < SHORTEST {
                continue;
            }
            if value.contains('\n') {
                let lines = value.lines().map(str::trim).filter(|line| line.len() >= SHORTEST_LINE);
                self.values.extend(lines.map(str::to_owned));
            }
            self.values.push(value.to_owned());
        }
        self.values.sort_by(|left, right| right.len().cmp(&left.len()).then_with(|| left.cmp(right)));
        self.values.dedup();
    }

    /// The text without the values.
    pub fn text(&self, text: &str) -> String {
        let mut masked = text.to_owned();
        self.in_place(&mut masked);
        masked
    }

    /// Masks every string of a JSON value, names of fields included.
    pub fn json(&self, value: &mut Value) {
        if self.values.is_empty() {
            return;
        }
        match value {
            Value::String(text) => self.in_place(text),
            Value::Array(items) => items.iter_mut().for_each(|item| self.json(item)),
            Value::Object(fields) => {
                if fields.keys().any(|name| self.is_in(name)) {
                    let old = std::mem::take(fields);
                    fields.extend(old.into_iter().map(|(name, value)| (self.text(&name), value)));
                }
                fields.values_mut().for_each(|field| self.json(field));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn is_in(&self, text: &str) -> bool {
        self.values.iter().any(|value| text.contains(value.as_str()))
    }

    fn in_place(&self, text: &mut String) {
        for value in &self.values {
            if text.contains(value.as_str()) {
                *text = text.replace(value.as_str(), MASK);
            }
        }
    }
}
