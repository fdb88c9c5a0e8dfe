//! Newtypes for identifiers and quantities, so that a commit is never taken for a tree or tokens for money.

use std::fmt;

use serde::{Deserialize, Serialize};

macro_rules! text_id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Wraps the text as it is.
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The text.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The first twelve characters, for people to read.
            pub fn short(&self) -> &str {
                self.0.get(..12).unwrap_or(&self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text_id!(
    /// The name of one run, unique on this machine and sortable by time (`20261130-215203-k3f9`).
    RunId
);
text_id!(
    /// The hexadecimal object name of a git commit.
    CommitId
);
text_id!(
    /// The hexadecimal object name of a git tree.
    TreeId
);
text_id!(
    /// The name that the loop gives to a finding; it never changes within a run (`F1`).
    FindingId
);

/// The number of a pass within its run, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PassNumber(pub u32);

impl fmt::Display for PassNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A count of model tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Tokens(pub u64);

impl Tokens {
    /// The sum, which stays at the maximum instead of wrapping.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl fmt::Display for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// An amount of money in millionths of a US dollar.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Usd {
    /// Millionths of a dollar.
    pub micros: u64,
}

impl Usd {
    /// The amount for whole and fractional dollars; `None` when negative, not a number or too large.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        let micros = (dollars * 1e6).round();
        (0.0..1e18).contains(&micros).then_some(Self { micros: micros as u64 })
    }

    /// The sum, which stays at the maximum instead of wrapping.
    #[must_use]
    pub fn plus(self, other: Self) -> Self {
        Self { micros: self.micros.saturating_add(other.micros) }
    }
}

impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "${}.{:04}", self.micros / 1_000_000, (self.micros % 1_000_000) / 100)
    }
}
