//! A model server that answers every chat with the same text; it prints its port and runs until it is killed.
//!
//! `cargo run -p iudex-testkit --example null_server -- 'the text'` (default: a `done` action). Used to measure iudex
//! alone.

use std::io::Write;

use iudex_testkit::server::{ModelServer, Reply};

fn main() -> std::io::Result<()> {
    let text = std::env::args().nth(1).unwrap_or_else(|| r#"{"tool":"done","summary":"nothing to do"}"#.into());
    let server = ModelServer::always(Reply::text(text));
    let mut out = std::io::stdout();
    writeln!(out, "{}", server.port())?;
    out.flush()?;
    loop {
        std::thread::park();
    }
}
