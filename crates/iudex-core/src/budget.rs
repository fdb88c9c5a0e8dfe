//! What a run may spend and what it has spent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::outcome::Limit;
use crate::units::{Tokens, Usd};

/// The limits of a run. `None` means without limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Directives that a check or ratchet may send back (default 3: at most four passes).
    pub max_retries: u32,
    /// Directives that a score or judge may send back.
    pub max_rounds: u32,
    /// Model calls in one pass.
    pub max_steps: u32,
    /// Prompt and output tokens of the whole run.
    pub tokens: Option<Tokens>,
    /// Money for the whole run.
    pub cost: Option<Usd>,
    /// Wall clock for the whole run.
    pub time: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { max_retries: 3, max_rounds: 2, max_steps: 50, tokens: None, cost: None, time: None }
    }
}

/// Token use of one model call, a pass or a run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompts, cached ones included.
    pub prompt: Tokens,
    /// Tokens that the model generated.
    pub output: Tokens,
    /// Prompt tokens that the server took from its cache, where it tells.
    #[serde(default)]
    pub cached: Tokens,
    /// Model calls.
    pub calls: u32,
    /// Calls whose use the server did not tell; their counts are estimates.
    #[serde(default)]
    pub estimated_calls: u32,
}

impl Usage {
    /// Prompt and output together.
    pub fn total(&self) -> Tokens {
        self.prompt.plus(self.output)
    }

    /// Both added up.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self {
            prompt: self.prompt.plus(other.prompt),
            output: self.output.plus(other.output),
            cached: self.cached.plus(other.cached),
            calls: self.calls.saturating_add(other.calls),
            estimated_calls: self.estimated_calls.saturating_add(other.estimated_calls),
        }
    }

    /// What this has more than `earlier`.
    #[must_use]
    pub fn minus(self, earlier: Self) -> Self {
        Self {
            prompt: Tokens(self.prompt.0.saturating_sub(earlier.prompt.0)),
            output: Tokens(self.output.0.saturating_sub(earlier.output.0)),
            cached: Tokens(self.cached.0.saturating_sub(earlier.cached.0)),
            calls: self.calls.saturating_sub(earlier.calls),
            estimated_calls: self.estimated_calls.saturating_sub(earlier.estimated_calls),
        }
    }
}

/// What has been spent. Unknown cost is `None`, never zero.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens and calls.
    pub usage: Usage,
    /// Money, when every call had a known price.
    pub cost: Option<Usd>,
}

/// The running count of a run, shared by the loop and the agent.
///
/// The agent charges it after every model call, so the count is right even when a pass is dropped in the middle.
#[derive(Debug, Clone, Default)]
pub struct Meter {
    inner: Arc<Mutex<MeterState>>,
}

#[derive(Debug, Default)]
struct MeterState {
    usage: Usage,
    cost: Usd,
    cost_unknown: bool,
}

impl Meter {
    /// Adds one model call; `cost` is `None` when its price is unknown.
    pub fn charge(&self, usage: Usage, cost: Option<Usd>) {
        let mut state = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        state.usage = state.usage.plus(usage);
        match cost {
            Some(cost) => state.cost = state.cost.plus(cost),
            None => state.cost_unknown = true,
        }
    }

    /// What has been spent so far.
    pub fn spent(&self) -> Spent {
        let state = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let known = state.usage.calls > 0 && !state.cost_unknown;
        Spent { usage: state.usage, cost: known.then_some(state.cost) }
    }

    /// The limit of the whole run that is used up, if one is.
    pub fn exhausted(&self, limits: &Limits, elapsed: Duration) -> Option<Limit> {
        let spent = self.spent();
        if limits.tokens.is_some_and(|limit| spent.usage.total() >= limit) {
            return Some(Limit::Tokens);
        }
        if limits.cost.is_some_and(|limit| spent.cost.is_some_and(|cost| cost >= limit)) {
            return Some(Limit::Cost);
        }
        if limits.time.is_some_and(|limit| elapsed >= limit) {
            return Some(Limit::Time);
        }
        None
    }
}
