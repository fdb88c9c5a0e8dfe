//! Ctrl-C, SIGTERM and SIGHUP, for runs and sessions: the first stops after saving, the second at once.
//!
//! Never: SIGHUP where whoever started iudex ignores it (`nohup`).

use std::task::Poll;

use iudex_core::CancellationToken;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Ctrl-C: to stop the work.
    Stop,
    /// SIGTERM, SIGHUP: to end the program.
    End,
}

/// The signals, once listened to; from then on none of them ends the process by itself.
pub(crate) struct Signals(Vec<(Asked, Signal)>);

impl Signals {
    /// Begins to listen; a signal from now on is not lost.
    pub(crate) fn listen() -> Self {
        let mut kinds = vec![(Asked::Stop, SignalKind::interrupt()), (Asked::End, SignalKind::terminate())];
        if !ignores_hangup() {
            kinds.push((Asked::End, SignalKind::hangup()));
        }
        Self(kinds.into_iter().filter_map(|(asked, kind)| Some((asked, signal(kind).ok()?))).collect())
    }

    /// The next signal.
    pub(crate) async fn next(&mut self) -> Asked {
        std::future::poll_fn(|context| {
            for (asked, signal) in &mut self.0 {
                if signal.poll_recv(context).is_ready() {
                    return Poll::Ready(*asked);
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Waits for work that the first signal cancels. The second ends the process; the kernel then ends every command
    /// with it. Also gives whether the program was told to end.
    pub(crate) async fn stop<T>(&mut self, work: impl Future<Output = T>, cancel: &CancellationToken) -> (T, bool) {
        let mut ends = false;
        tokio::pin!(work);
        loop {
            tokio::select! {
                done = &mut work => return (done, ends),
                asked = self.next() => {
                    if cancel.is_cancelled() {
                        std::process::exit(130);
                    }
                    ends |= asked == Asked::End;
                    crate::talk::say("stopping; once more stops at once");
                    cancel.cancel();
                }
            }
        }
    }
}

/// Whether SIGHUP was ignored when the program started.
fn ignores_hangup() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or_default();
    // Signal 1 is the lowest bit.
    mask & 1 == 1
}
