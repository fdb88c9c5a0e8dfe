//! A model server that answers every chat with the same text. It prints its port, then `chat NANOSECONDS` (Unix time) as
//! each chat request arrives, and runs until its standard input ends.
//!
//! `cargo run -p iudex-testkit --example null_server -- 'the text'` (default: a `done` action). Used to measure iudex
//! alone.

use std::io::{self, Write};
use std::time::{SystemTime, UNIX_EPOCH};

use iudex_testkit::server::{ModelServer, Reply};

fn main() -> io::Result<()> {
    let text = std::env::args().nth(1).unwrap_or_else(|| r#"{"tool":"done","summary":"nothing to do"}"#.into());
    let answer = move |_: &serde_json::Value, _: usize| {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
        // Nobody reads any more: the measurement is over.
        let _ = say(&format!("chat {now}"));
        Reply::text(text.clone())
    };
    let server = ModelServer::builder().choose(answer).start();
    say(&server.port().to_string())?;
    io::copy(&mut io::stdin(), &mut io::sink())?;
    Ok(())
}

fn say(line: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    writeln!(out, "{line}")?;
    out.flush()
}
