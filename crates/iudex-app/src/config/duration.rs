//! Durations as people write them: `10m`, `1h30m`, `250ms`.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use jiff::fmt::friendly::{Spacing, SpanParser, SpanPrinter};

/// The longest duration that is taken, so that no deadline overflows: a year.
const LONGEST: Duration = Duration::from_hours(365 * 24);

/// A duration in whole milliseconds, at most a year. Shown in the form that it is read in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct HumanDuration(Duration);

impl HumanDuration {
    /// The duration.
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl From<Duration> for HumanDuration {
    /// Cut to whole milliseconds and to a year.
    fn from(duration: Duration) -> Self {
        let millis = u64::try_from(duration.min(LONGEST).as_millis()).unwrap_or(u64::MAX);
        Self(Duration::from_millis(millis))
    }
}

impl fmt::Display for HumanDuration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&SpanPrinter::new().spacing(Spacing::None).unsigned_duration_to_string(&self.0))
    }
}

/// The text is no duration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{rule}")]
pub struct NoDuration {
    /// What would be right.
    pub rule: String,
    /// What was probably meant, when that can be told.
    pub hint: Option<String>,
}

impl FromStr for HumanDuration {
    type Err = NoDuration;

    fn from_str(text: &str) -> Result<Self, NoDuration> {
        let text = text.trim();
        let no = |hint: Option<String>| NoDuration {
            rule: "must be a duration such as 90s, 10m, 1h30m or 250ms".to_owned(),
            hint,
        };
        if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
            return Err(no(Some(format!("a duration needs a unit: `{text}s` for seconds, `{text}m` for minutes"))));
        }
        let duration = SpanParser::new().parse_unsigned_duration(text).map_err(|_| no(None))?;
        if duration > LONGEST {
            return Err(NoDuration { rule: "must be at most a year (8760h)".to_owned(), hint: None });
        }
        if duration.subsec_nanos() % 1_000_000 != 0 {
            return Err(NoDuration { rule: "must be in whole milliseconds".to_owned(), hint: None });
        }
        Ok(Self(duration))
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use proptest::prelude::*;

    use super::HumanDuration;

    #[test]
    fn durations_are_read_and_shown_as_people_write_them() {
        for (text, millis, shown) in [
            ("90s", 90_000, "1m30s"),
            ("4m", 240_000, "4m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1h 30m", 5_400_000, "1h30m"),
            ("250ms", 250, "250ms"),
            ("1.5h", 5_400_000, "1h30m"),
            ("0s", 0, "0s"),
        ] {
            let duration: HumanDuration = text.parse().unwrap();
            assert_eq!(duration.get(), Duration::from_millis(millis), "{text}");
            assert_eq!(duration.to_string(), shown, "{text}");
        }
    }

    #[test]
    fn what_is_no_duration_is_refused() {
        for text in
            ["", "10", "1.5", "-5s", "5s ago", "ten minutes", "10q", "m", "1us", "8761h", "99999999999999h", "NaN"]
        {
            assert!(text.parse::<HumanDuration>().is_err(), "{text:?}");
        }
        let error = "10".parse::<HumanDuration>().unwrap_err();
        assert_eq!(error.hint.as_deref(), Some("a duration needs a unit: `10s` for seconds, `10m` for minutes"));
    }

    proptest! {
        #[test]
        fn a_shown_duration_reads_back_as_itself(millis in 0_u64..=365 * 24 * 3600 * 1000) {
            let duration = HumanDuration::from(Duration::from_millis(millis));
            prop_assert_eq!(duration.to_string().parse::<HumanDuration>().unwrap(), duration);
        }
    }
}
