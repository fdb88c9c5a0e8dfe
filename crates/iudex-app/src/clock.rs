//! Wall clock of a run.

use std::time::{Duration, Instant};

use async_trait::async_trait;
use iudex_core::Clock;

/// Counts from its creation; suspended time of the machine is not counted.
pub(crate) struct RunClock {
    started: Instant,
}

impl RunClock {
    pub(crate) fn start() -> Self {
        Self { started: Instant::now() }
    }
}

#[async_trait(?Send)]
impl Clock for RunClock {
    fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration).await;
    }
}
