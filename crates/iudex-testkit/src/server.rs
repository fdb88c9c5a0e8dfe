//! A real HTTP server on loopback that answers like a model server, from a list, and goes wrong on request.
//!
//! It speaks `/v1/chat/completions`, `/v1/models`, `/props`, `/api/show` and whatever else is set. It can stall, cut,
//! garble, send any status with any header, split its bytes anywhere, and notices when the client hangs up. Every
//! request is recorded. By default it looks like llama.cpp with one model `test-model`, a window of 8192, and an
//! enforced schema; the schema probe of iudex (a schema whose `word` has one value) is answered by itself and takes
//! nothing from the list.
//!
//! ```
//! use iudex_testkit::server::{ModelServer, Reply};
//! let server = ModelServer::start([Reply::text("hello"), Reply::status(503, "busy")]);
//! assert!(server.base_url().starts_with("http://127.0.0.1:"));
//! ```
//!
//! Never: an address beyond loopback.

mod connection;
mod reply;

use std::collections::{BTreeMap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

pub use reply::Reply;

/// Chooses the reply to a chat: the body of the request and how many chats there were before.
pub type Chooser = dyn Fn(&Value, usize) -> Reply + Send + Sync;

/// A running server. It stops when dropped.
#[derive(Debug)]
pub struct ModelServer {
    address: SocketAddr,
    shared: Arc<Shared>,
    acceptor: Option<JoinHandle<()>>,
}

/// A request as it arrived.
#[derive(Debug, Clone, PartialEq)]
pub struct Recorded {
    /// `GET`, `POST`.
    pub method: String,
    /// The path with its query; a whole URL when the server is used as a proxy.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// The body as JSON; null when there is none.
    pub body: Value,
}

/// How a server is set up; see [`ModelServer::builder`].
pub struct ServerBuilder {
    replies: VecDeque<Reply>,
    endpoints: BTreeMap<String, (u16, Value)>,
    chooser: Option<Box<Chooser>>,
    repeat_last: bool,
    enforces_schema: bool,
    answers_probe: bool,
    refused_fields: Vec<String>,
    port: u16,
}

struct Shared {
    replies: Mutex<VecDeque<Reply>>,
    last: Mutex<Option<Reply>>,
    endpoints: BTreeMap<String, (u16, Value)>,
    chooser: Option<Box<Chooser>>,
    repeat_last: bool,
    enforces_schema: bool,
    answers_probe: bool,
    refused_fields: Vec<String>,
    requests: Mutex<Vec<Recorded>>,
    chats: Mutex<Vec<Value>>,
    probes: AtomicUsize,
    connections: AtomicUsize,
    hangups: AtomicUsize,
    stopping: AtomicBool,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl ModelServer {
    /// A server with everything at its default and these replies in order.
    ///
    /// # Panics
    /// When no port of loopback can be had.
    pub fn start(replies: impl IntoIterator<Item = Reply>) -> Self {
        Self::builder().replies(replies).start()
    }

    /// A server that answers every chat with this reply.
    ///
    /// # Panics
    /// When no port of loopback can be had.
    pub fn always(reply: Reply) -> Self {
        Self::builder().replies([reply]).repeat_last().start()
    }

    /// Sets up a server.
    pub fn builder() -> ServerBuilder {
        let models =
            json!({"object": "list", "data": [{"id": "test-model", "object": "model", "owned_by": "llamacpp"}]});
        let props = json!({"default_generation_settings": {"n_ctx": 8192}, "total_slots": 1});
        let endpoints = BTreeMap::from([("/v1/models".into(), (200, models)), ("/props".into(), (200, props))]);
        ServerBuilder {
            replies: VecDeque::new(),
            endpoints,
            chooser: None,
            repeat_last: false,
            enforces_schema: true,
            answers_probe: true,
            refused_fields: Vec::new(),
            port: 0,
        }
    }

    /// The base URL, with `/v1`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.address.port()
    }

    /// Adds a reply to the end of the list.
    pub fn push(&self, reply: Reply) {
        lock(&self.shared.replies).push_back(reply);
    }

    /// Every request so far.
    pub fn requests(&self) -> Vec<Recorded> {
        lock(&self.shared.requests).clone()
    }

    /// The bodies of the chat requests so far, schema probes left out.
    pub fn chats(&self) -> Vec<Value> {
        lock(&self.shared.chats).clone()
    }

    /// Schema probes so far.
    pub fn probes(&self) -> usize {
        self.shared.probes.load(Ordering::SeqCst)
    }

    /// Connections so far.
    pub fn connections(&self) -> usize {
        self.shared.connections.load(Ordering::SeqCst)
    }

    /// Times that the client hung up before its answer was complete.
    pub fn hangups(&self) -> usize {
        self.shared.hangups.load(Ordering::SeqCst)
    }

    /// Waits until the client has hung up this often; false when it has not within ten seconds.
    pub fn wait_for_hangups(&self, count: usize) -> bool {
        let deadline = Instant::now() + Duration::from_secs(10);
        while self.hangups() < count {
            if Instant::now() > deadline {
                return false;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        true
    }
}

impl Drop for ModelServer {
    fn drop(&mut self) {
        self.shared.stopping.store(true, Ordering::SeqCst);
        // Wakes the acceptor.
        let _ = TcpStream::connect(self.address);
        if let Some(acceptor) = self.acceptor.take() {
            let _ = acceptor.join();
        }
    }
}

impl ServerBuilder {
    /// These replies, in order. When they are used up, a chat gets status 400 that says so.
    #[must_use]
    pub fn replies(mut self, replies: impl IntoIterator<Item = Reply>) -> Self {
        self.replies.extend(replies);
        self
    }

    /// The last reply is given again and again.
    #[must_use]
    pub fn repeat_last(mut self) -> Self {
        self.repeat_last = true;
        self
    }

    /// Each reply is chosen from the request's body and the number of chats before; the list is not used.
    #[must_use]
    pub fn choose(mut self, chooser: impl Fn(&Value, usize) -> Reply + Send + Sync + 'static) -> Self {
        self.chooser = Some(Box::new(chooser));
        self
    }

    /// The window that `/props` tells.
    #[must_use]
    pub fn window(self, tokens: u64) -> Self {
        self.endpoint("/props", json!({"default_generation_settings": {"n_ctx": tokens}, "total_slots": 1}))
    }

    /// The names that `/v1/models` tells, with their owner (`llamacpp`, `library`, `vllm`, `organization_owner`).
    #[must_use]
    pub fn models(self, names: &[&str], owned_by: &str) -> Self {
        let data: Vec<Value> =
            names.iter().map(|name| json!({"id": name, "object": "model", "owned_by": owned_by})).collect();
        self.endpoint("/v1/models", json!({"object": "list", "data": data}))
    }

    /// Another address with its JSON (`/api/show`, `/api/ps`, `/api/v0/models`), for every method.
    #[must_use]
    pub fn endpoint(mut self, path: &str, body: Value) -> Self {
        self.endpoints.insert(path.into(), (200, body));
        self
    }

    /// An address that answers with this status.
    #[must_use]
    pub fn endpoint_status(mut self, path: &str, status: u16, body: Value) -> Self {
        self.endpoints.insert(path.into(), (status, body));
        self
    }

    /// Nothing but chats is answered.
    #[must_use]
    pub fn bare(mut self) -> Self {
        self.endpoints.clear();
        self
    }

    /// Whether the schema probe finds an enforced schema.
    #[must_use]
    pub fn enforces_schema(mut self, enforces: bool) -> Self {
        self.enforces_schema = enforces;
        self
    }

    /// The schema probe is a chat like any other.
    #[must_use]
    pub fn probe_from_replies(mut self) -> Self {
        self.answers_probe = false;
        self
    }

    /// Chats with this field in their body are refused with status 400 by its name.
    #[must_use]
    pub fn refuses_field(mut self, field: &str) -> Self {
        self.refused_fields.push(field.into());
        self
    }

    /// A fixed port instead of any free one.
    #[must_use]
    pub fn port(mut self, port: u16) -> Self {
        self.port = port;
        self
    }

    /// Starts it.
    ///
    /// # Panics
    /// When the port cannot be had.
    #[expect(clippy::expect_used, reason = "a test cannot go on without its server")]
    pub fn start(self) -> ModelServer {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)).expect("a port on loopback");
        let address = listener.local_addr().expect("the address of the listener");
        let shared = Arc::new(Shared {
            replies: Mutex::new(self.replies),
            last: Mutex::new(None),
            endpoints: self.endpoints,
            chooser: self.chooser,
            repeat_last: self.repeat_last,
            enforces_schema: self.enforces_schema,
            answers_probe: self.answers_probe,
            refused_fields: self.refused_fields,
            requests: Mutex::new(Vec::new()),
            chats: Mutex::new(Vec::new()),
            probes: AtomicUsize::new(0),
            connections: AtomicUsize::new(0),
            hangups: AtomicUsize::new(0),
            stopping: AtomicBool::new(false),
        });
        let for_acceptor = Arc::clone(&shared);
        let acceptor = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if for_acceptor.stopping.load(Ordering::SeqCst) {
                    break;
                }
                let Ok(stream) = stream else { continue };
                for_acceptor.connections.fetch_add(1, Ordering::SeqCst);
                let shared = Arc::clone(&for_acceptor);
                std::thread::spawn(move || connection::serve(stream, &shared));
            }
        });
        ModelServer { address, shared, acceptor: Some(acceptor) }
    }
}

impl Shared {
    /// The reply to this chat, which is recorded.
    fn reply_to(&self, body: &Value) -> Reply {
        if let Some(word) = probe_word(body).filter(|_| self.answers_probe) {
            self.probes.fetch_add(1, Ordering::SeqCst);
            return if self.enforces_schema { Reply::action(&json!({"word": word})) } else { Reply::text("Hello!") };
        }
        let before = {
            let mut chats = lock(&self.chats);
            chats.push(body.clone());
            chats.len() - 1
        };
        if let Some(field) = self.refused_fields.iter().find(|field| body.get(field.as_str()).is_some_and(is_set)) {
            return Reply::status(400, &format!("Unrecognized request argument supplied: {field}"));
        }
        if let Some(chooser) = &self.chooser {
            return chooser(body, before);
        }
        let next = lock(&self.replies).pop_front();
        let mut last = lock(&self.last);
        match (next, &*last) {
            (Some(reply), _) => {
                *last = Some(reply.clone());
                reply
            }
            (None, Some(reply)) if self.repeat_last => reply.clone(),
            (None, _) => Reply::status(400, "the test server has no more replies"),
        }
    }
}

/// A field that says no is as good as absent.
fn is_set(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false))
}

/// The word that the schema of a probe asks for.
fn probe_word(body: &Value) -> Option<&str> {
    let allowed = body.pointer("/response_format/json_schema/schema/properties/word/enum")?.as_array()?;
    if allowed.len() == 1 { allowed[0].as_str() } else { None }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
