//! When a request is sent again, and how long to wait before.
//!
//! Never: more tries or more time than the settings allow, and never earlier than the server asked.

use std::time::{Duration, SystemTime};

use reqwest::header::HeaderMap;
use tokio::time::Instant;

use crate::chat::Timeouts;

/// Why a try failed in a way that another try may mend.
#[derive(Debug, Clone)]
pub(super) struct Again {
    /// What happened, in words (`503 from the server: Loading model`).
    pub(super) cause: String,
    /// How long the server asked to wait.
    pub(super) after: Option<Duration>,
    /// The server is only starting: bounded by time alone.
    pub(super) is_starting: bool,
}

impl Again {
    pub(super) fn new(cause: impl Into<String>) -> Self {
        Self { cause: cause.into(), after: None, is_starting: false }
    }
}

/// Counts the tries of one request.
#[derive(Debug)]
pub(super) struct Retries {
    timeouts: Timeouts,
    first_failure: Option<Instant>,
    /// Times that the request was sent again.
    pub(super) count: u32,
    charged: u32,
}

impl Retries {
    pub(super) fn new(timeouts: Timeouts) -> Self {
        Self { timeouts, first_failure: None, count: 0, charged: 0 }
    }

    /// How long to wait before the next try; `Err` with the reason when there is none.
    pub(super) fn wait_after(&mut self, again: &Again) -> Result<Duration, String> {
        let now = Instant::now();
        let spent = now.duration_since(*self.first_failure.get_or_insert(now));
        let tries = |count: u32| if count == 1 { "1 try".to_owned() } else { format!("{count} tries") };
        let gave_up = |why: &str| format!("{} ({}{why})", again.cause, tries(self.count + 1));
        if !again.is_starting && self.charged >= self.timeouts.max_retries {
            return Err(gave_up(""));
        }
        let wait = match again.after {
            // Jitter only on top: nobody comes earlier than asked.
            Some(asked) => asked.saturating_add(asked.min(Duration::from_secs(1)).mul_f64(fastrand::f64() / 10.0)),
            None => self.backoff(again.is_starting).mul_f64(0.75 + fastrand::f64() / 2.0),
        };
        if spent.saturating_add(wait) > self.timeouts.retry_time {
            let limit = seconds(self.timeouts.retry_time);
            return Err(match again.after {
                Some(asked) => {
                    gave_up(&format!("; it asks to wait {}, more than the {limit} for retries", seconds(asked)))
                }
                None => gave_up(&format!("; the {limit} for retries are over")),
            });
        }
        self.count += 1;
        self.charged += u32::from(!again.is_starting);
        Ok(wait)
    }

    /// Half a second, doubled each time, at most half a minute; shorter when there is little time for retries at all.
    fn backoff(&self, is_starting: bool) -> Duration {
        let first = Duration::from_millis(500).min(self.timeouts.retry_time / 16);
        let doublings = if is_starting { 1 } else { self.charged.min(10) };
        (first * 2_u32.pow(doublings)).min(Duration::from_secs(30))
    }
}

/// A duration as people say it: `0.4 s`, `8 s`, `5 min`.
pub(super) fn seconds(duration: Duration) -> String {
    let secs = duration.as_secs_f64();
    if secs >= 120.0 && duration.as_secs().is_multiple_of(60) {
        format!("{} min", duration.as_secs() / 60)
    } else if secs >= 1.0 {
        format!("{secs:.0} s")
    } else {
        format!("{secs:.1} s")
    }
}

/// What the server says about when to come again: `retry-after-ms`, or `Retry-After` in seconds or as a date.
pub(super) fn retry_after(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| (0.0..1e9).contains(number));
    if let Some(millis) = text("retry-after-ms").and_then(number) {
        return Some(Duration::from_secs_f64(millis / 1000.0));
    }
    let value = text("retry-after")?;
    match number(value) {
        Some(secs) => Some(Duration::from_secs_f64(secs)),
        None => Some(httpdate::parse_http_date(value).ok()?.duration_since(now).unwrap_or_default()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn retry_after_is_read_in_seconds_and_as_a_date() {
        let now = SystemTime::UNIX_EPOCH + Duration::from_secs(784_111_777); // Sun, 06 Nov 1994 08:49:37 GMT
        let read = |name, value: &str| retry_after(&headers(name, value), now);
        assert_eq!(read("retry-after", "8"), Some(Duration::from_secs(8)));
        assert_eq!(read("retry-after", " 1.5 "), Some(Duration::from_millis(1500)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:50:07 GMT"), Some(Duration::from_secs(30)));
        assert_eq!(read("retry-after", "Sun, 06 Nov 1994 08:00:00 GMT"), Some(Duration::ZERO));
        assert_eq!(read("retry-after-ms", "250"), Some(Duration::from_millis(250)));
        for nonsense in ["soon", "-3", "NaN", "1e300"] {
            assert_eq!(read("retry-after", nonsense), None, "{nonsense}");
        }
    }

    fn timeouts(max_retries: u32, retry_time: u64) -> Timeouts {
        Timeouts { max_retries, retry_time: Duration::from_secs(retry_time), ..Timeouts::default() }
    }

    #[test]
    fn tries_are_counted_and_waits_grow() {
        let mut retries = Retries::new(timeouts(3, 300));
        let again = Again::new("reset");
        let waits: Vec<f64> = (0..3).map(|_| retries.wait_after(&again).unwrap().as_secs_f64()).collect();
        for (wait, base) in waits.iter().zip([0.5, 1.0, 2.0]) {
            assert!((base * 0.75..=base * 1.25).contains(wait), "{wait} for {base}");
        }
        assert_eq!(retries.wait_after(&again).unwrap_err(), "reset (4 tries)");
        assert_eq!(retries.count, 3);
    }

    #[test]
    fn a_wait_that_is_asked_for_is_kept_or_refused() {
        let mut retries = Retries::new(timeouts(5, 300));
        let mut again = Again { after: Some(Duration::from_secs(8)), ..Again::new("429 from the server") };
        let wait = retries.wait_after(&again).unwrap();
        assert!((8.0..8.2).contains(&wait.as_secs_f64()), "{wait:?}");
        again.after = Some(Duration::from_hours(1));
        let error = retries.wait_after(&again).unwrap_err();
        assert!(error.contains("asks to wait 60 min, more than the 5 min"), "{error}");
    }

    #[test]
    fn a_server_that_is_starting_does_not_use_up_the_tries() {
        let mut retries = Retries::new(timeouts(1, 300));
        let starting = Again { is_starting: true, ..Again::new("503: Loading model") };
        for _ in 0..20 {
            retries.wait_after(&starting).unwrap();
        }
        retries.wait_after(&Again::new("reset")).unwrap();
        retries.wait_after(&Again::new("reset")).unwrap_err();
    }
}
