//! One connection of the test server: reads requests, writes replies with their faults.
//!
//! Never: a thread that outlives its server for long; everything that waits looks at the stop sign.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::reply::{Fault, Kind, Place, Reply, Split};
use super::{Recorded, Shared, lock};

/// How often something that waits looks up.
const TICK: Duration = Duration::from_millis(10);
/// Nothing waits longer than this for a client.
const LONGEST: Duration = Duration::from_mins(1);
/// Endless replies end after this many events, should the client never hang up.
const ENDLESS: usize = 1_000_000;

/// What is left to do with the connection.
enum Next {
    KeepAlive,
    Close,
}

/// The client went away, or the server stops.
struct Gone;

pub(super) fn serve(mut stream: TcpStream, shared: &Shared) {
    let _ = stream.set_nodelay(true);
    let _ = stream.set_read_timeout(Some(TICK));
    let _ = stream.set_write_timeout(Some(LONGEST));
    let mut pending = Vec::new();
    while let Some((request, last_byte)) = read_request(&mut stream, &mut pending, shared) {
        match answer(&mut stream, &request, last_byte, shared) {
            Ok(Next::KeepAlive) => {}
            Ok(Next::Close) => return,
            Err(Gone) => {
                if !shared.stopping.load(Ordering::SeqCst) {
                    shared.hangups.fetch_add(1, Ordering::SeqCst);
                }
                return;
            }
        }
    }
}

/// Reads more; false when the client is gone or the server stops.
fn read_more(stream: &mut TcpStream, pending: &mut Vec<u8>, most: usize, shared: &Shared) -> bool {
    let deadline = Instant::now() + LONGEST;
    let mut buffer = vec![0; most.clamp(1, 64 << 10)];
    loop {
        if shared.stopping.load(Ordering::SeqCst) || Instant::now() > deadline {
            return false;
        }
        match stream.read(&mut buffer) {
            Ok(0) => return false,
            Ok(count) => {
                pending.extend_from_slice(&buffer[..count]);
                return true;
            }
            Err(error) if waits(error.kind()) => {}
            Err(_) => return false,
        }
    }
}

fn waits(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}

/// Reads one request. The last byte of a body stays unread: closing then resets the connection.
fn read_request(stream: &mut TcpStream, pending: &mut Vec<u8>, shared: &Shared) -> Option<(Recorded, bool)> {
    let end_of_head = loop {
        if let Some(end) = pending.windows(4).position(|window| window == b"\r\n\r\n") {
            break end + 4;
        }
        // Byte by byte would be slow, and more than the head must not be taken from the socket; so look before.
        let mut look = [0; 16 << 10];
        let seen = match stream.peek(&mut look) {
            Ok(0) => return None,
            Ok(count) => count,
            Err(error) if waits(error.kind()) && !shared.stopping.load(Ordering::SeqCst) => continue,
            Err(_) => return None,
        };
        let mut joined = pending.clone();
        joined.extend_from_slice(&look[..seen]);
        let head = joined.windows(4).position(|window| window == b"\r\n\r\n").map(|end| end + 4);
        let most = head.map_or(seen, |head| head - pending.len());
        if !read_more(stream, pending, most, shared) {
            return None;
        }
    };
    let head: Vec<u8> = pending.drain(..end_of_head).collect();
    let head = String::from_utf8_lossy(&head).into_owned();
    let mut lines = head.split("\r\n");
    let mut first = lines.next().unwrap_or_default().split(' ');
    let (method, path) = (first.next().unwrap_or_default().to_owned(), first.next().unwrap_or_default().to_owned());
    let headers: BTreeMap<String, String> = lines
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
        .collect();
    let length: usize = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while pending.len() + 1 < length {
        let most = length - 1 - pending.len();
        if !read_more(stream, pending, most, shared) {
            return None;
        }
    }
    let mut body: Vec<u8> = std::mem::take(pending);
    if length > 0 {
        // The byte that stays in the socket is seen all the same.
        let mut last = [0];
        let deadline = Instant::now() + LONGEST;
        loop {
            match stream.peek(&mut last) {
                Ok(0) => return None,
                Ok(_) => break,
                Err(error) if waits(error.kind()) && Instant::now() < deadline => {}
                Err(_) => return None,
            }
        }
        body.push(last[0]);
    }
    let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
    let request = Recorded { method, path, headers, body };
    lock(&shared.requests).push(request.clone());
    Some((request, length > 0))
}

fn answer(stream: &mut TcpStream, request: &Recorded, last_byte: bool, shared: &Shared) -> Result<Next, Gone> {
    // As a proxy the server sees whole URLs.
    let path = request.path.split('?').next().unwrap_or_default();
    let path = match path.split_once("://") {
        Some((_, rest)) => rest.find('/').map_or("/", |start| &rest[start..]),
        None => path,
    };
    let reply = if path.ends_with("/chat/completions") {
        shared.reply_to(&request.body)
    } else {
        match shared.endpoints.get(path) {
            Some((200, body)) => Reply::json(body),
            Some((status, body)) => Reply::status_json(*status, body),
            None => Reply::status_json(404, &json!({"error": {"message": format!("no such path: {path}")}})),
        }
    };
    if matches!(reply.kind, Kind::Reset) {
        return Ok(Next::Close);
    }
    if last_byte && !read_more(stream, &mut Vec::new(), 1, shared) {
        return Err(Gone);
    }
    wait(stream, reply.delay, shared)?;
    if matches!(reply.fault, Fault::StallFirst) {
        wait(stream, LONGEST, shared)?;
    }
    let wants_stream = request.body.get("stream").and_then(Value::as_bool).unwrap_or(false);
    Exchange { stream, shared, reply: &reply }.write(wants_stream)
}

/// Waits, watching whether the client hangs up.
fn wait(stream: &TcpStream, duration: Duration, shared: &Shared) -> Result<(), Gone> {
    let deadline = Instant::now() + duration;
    while Instant::now() < deadline {
        is_there(stream, shared)?;
    }
    Ok(())
}

/// Looks once, for at most a tick.
fn is_there(stream: &TcpStream, shared: &Shared) -> Result<(), Gone> {
    if shared.stopping.load(Ordering::SeqCst) {
        return Err(Gone);
    }
    match stream.peek(&mut [0]) {
        Ok(0) => Err(Gone),
        // The next request is here already; it is read later.
        Ok(_) => {
            std::thread::sleep(TICK);
            Ok(())
        }
        Err(error) if waits(error.kind()) => Ok(()),
        Err(_) => Err(Gone),
    }
}

struct Exchange<'a> {
    stream: &'a mut TcpStream,
    shared: &'a Shared,
    reply: &'a Reply,
}

impl Exchange<'_> {
    fn write(mut self, wants_stream: bool) -> Result<Next, Gone> {
        let reply = self.reply;
        let is_stream = match &reply.kind {
            Kind::Message { .. } => wants_stream && !reply.whole,
            Kind::Events(_) | Kind::Endless(_) => true,
            Kind::Raw { content_type, .. } => content_type.contains("event-stream"),
            Kind::Status { .. } | Kind::Reset => false,
        };
        let pieces = if is_stream { self.pieces() } else { vec![reply.document()] };
        let length: usize = pieces.iter().map(Vec::len).sum();
        let (place, stalls) = match &reply.fault {
            Fault::StallAt(place) => (Some(place), true),
            Fault::CutAt(place) => (Some(place), false),
            _ => (None, false),
        };
        let Some(stop) = place.map_or(Some(usize::MAX), |place| place.byte(&pieces.concat())) else {
            let mistake = format!("the reply has no {place:?} where it is to go wrong; texts come in pieces of four");
            let reply = &Reply::status(400, &mistake);
            return Exchange { stream: self.stream, shared: self.shared, reply }.write(wants_stream);
        };
        let chunked = is_stream && !reply.close_delimited;
        self.head(is_stream, length)?;
        if matches!(reply.fault, Fault::StallAfterHead) {
            wait(self.stream, LONGEST, self.shared)?;
        }
        if let Kind::Endless(_) = reply.kind {
            for _ in 0..ENDLESS {
                self.body(&pieces[0], chunked)?;
                if self.shared.stopping.load(Ordering::SeqCst) {
                    return Err(Gone);
                }
            }
        }
        let mut written = 0;
        for piece in &pieces {
            let rest = stop.saturating_sub(written);
            if rest <= piece.len() {
                self.body(&piece[..rest.min(piece.len())], chunked)?;
                if stalls {
                    wait(self.stream, LONGEST, self.shared)?;
                }
                return Ok(Next::Close);
            }
            self.body(piece, chunked)?;
            written += piece.len();
        }
        if chunked {
            self.raw(b"0\r\n\r\n")?;
        }
        Ok(if reply.close_delimited { Next::Close } else { Next::KeepAlive })
    }

    /// The body in its chunks.
    fn pieces(&self) -> Vec<Vec<u8>> {
        let events = self.reply.events_of_stream();
        match self.reply.split {
            Split::Events => events,
            Split::At(at) => {
                let body = events.concat();
                let (first, second) = body.split_at(at.min(body.len()));
                [first, second].iter().filter(|piece| !piece.is_empty()).map(|piece| piece.to_vec()).collect()
            }
            Split::Every(size) => events.concat().chunks(size).map(<[u8]>::to_vec).collect(),
        }
    }

    fn head(&mut self, is_stream: bool, length: usize) -> Result<(), Gone> {
        let reply = self.reply;
        let status = if let Kind::Status { code, .. } = &reply.kind { *code } else { 200 };
        let content_type = match &reply.kind {
            Kind::Raw { content_type, .. } => content_type.as_str(),
            _ if is_stream => "text/event-stream",
            _ => "application/json",
        };
        let framing = match (reply.close_delimited, is_stream) {
            (true, _) => "connection: close".to_owned(),
            (false, true) => "transfer-encoding: chunked".to_owned(),
            (false, false) => format!("content-length: {length}"),
        };
        let mut head = format!("HTTP/1.1 {status} Test\r\ncontent-type: {content_type}\r\n{framing}\r\n");
        for (name, value) in &reply.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        head.push_str("\r\n");
        self.raw(head.as_bytes())
    }

    fn body(&mut self, piece: &[u8], chunked: bool) -> Result<(), Gone> {
        if piece.is_empty() {
            return Ok(());
        }
        if !chunked {
            return self.raw(piece);
        }
        let mut framed = format!("{:x}\r\n", piece.len()).into_bytes();
        framed.extend_from_slice(piece);
        framed.extend_from_slice(b"\r\n");
        self.raw(&framed)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), Gone> {
        self.stream.write_all(bytes).and_then(|()| self.stream.flush()).map_err(|_| Gone)
    }
}

impl Place {
    /// The byte of the body where the fault is.
    fn byte(&self, body: &[u8]) -> Option<usize> {
        match self {
            Self::Byte(byte) => Some(*byte),
            Self::After(text) => {
                let found = body.windows(text.len().max(1)).position(|window| window == text.as_bytes());
                found.map(|start| start + text.len())
            }
        }
    }
}
