//! Every event as one JSON object a line, on standard output.

use std::io::{self, Write};
use std::sync::mpsc::Receiver;

use iudex_app::Notice;
use serde::Serialize;

#[derive(Serialize)]
struct Line<'a> {
    seq: u64,
    time: &'a str,
    #[serde(flatten)]
    event: &'a serde_json::Value,
}

/// Writes every event; a reader that goes away ends the writing, not the run.
pub(super) fn show(notices: &Receiver<Notice>) {
    for notice in notices {
        if let Notice::Event { seq, time, masked, .. } = notice
            && write_line(&Line { seq, time: &time, event: &masked }).is_err()
        {
            return;
        }
    }
}

/// Writes one object and a line feed.
pub(super) fn write_line(value: &impl Serialize) -> io::Result<()> {
    let mut line = serde_json::to_vec(value)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}
