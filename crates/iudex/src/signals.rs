//! Ctrl-C, SIGTERM and SIGHUP: the first stops after saving, the second at once.

use iudex_core::CancellationToken;
use tokio::signal::unix::{SignalKind, signal};

/// A token that the first signal cancels. The second ends the process; the kernel then ends every command with it.
pub(crate) fn cancel_on_signals() -> CancellationToken {
    let token = CancellationToken::new();
    let cancel = token.clone();
    tokio::task::spawn(async move {
        let kinds = [SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup()];
        let mut signals: Vec<_> = kinds.into_iter().filter_map(|kind| signal(kind).ok()).collect();
        loop {
            next_signal(&mut signals).await;
            if cancel.is_cancelled() {
                std::process::exit(130);
            }
            crate::talk::say("stopping; once more stops at once");
            cancel.cancel();
        }
    });
    token
}

/// Waits for whichever comes first.
async fn next_signal(signals: &mut [tokio::signal::unix::Signal]) {
    std::future::poll_fn(|context| {
        let come = signals.iter_mut().any(|one| one.poll_recv(context).is_ready());
        if come { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
