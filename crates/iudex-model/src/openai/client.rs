//! The HTTP client: certificates, proxies, headers.
//!
//! Never: a certificate store for an `http://` address (reading it costs more time and memory than everything else up to
//! the first request), and never a proxy for loopback.

use std::cell::OnceCell;
use std::path::PathBuf;
use std::time::Duration;

use reqwest::redirect::Policy;
use reqwest::{Certificate, Client, RequestBuilder, Url};

use super::locality;
use crate::chat::ModelError;

/// One server and how to talk to it.
pub(crate) struct Wire {
    base: Url,
    key: Option<String>,
    ca_file: Option<PathBuf>,
    connect: Duration,
    client: OnceCell<Client>,
}

impl std::fmt::Debug for Wire {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The key stays out of every log.
        f.debug_struct("Wire").field("base", &self.base.as_str()).finish_non_exhaustive()
    }
}

impl Wire {
    /// Takes the address apart. Nothing is connected or loaded yet.
    pub(crate) fn new(
        base_url: &str,
        key: Option<String>,
        ca_file: Option<PathBuf>,
        connect: Duration,
    ) -> Result<Self, ModelError> {
        let wrong = |problem: &str| {
            ModelError::Refused(format!("the base URL {base_url:?} {problem}; it looks like http://127.0.0.1:8080/v1"))
        };
        let base =
            Url::parse(base_url.trim_end_matches('/')).map_err(|error| wrong(&format!("is no URL ({error})")))?;
        if !matches!(base.scheme(), "http" | "https") || base.host_str().is_none() {
            return Err(wrong("has no http or https host"));
        }
        // A key that was read from a file often brings its line end along.
        let key = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty());
        Ok(Self { base, key, ca_file, connect, client: OnceCell::new() })
    }

    /// The host, without brackets.
    pub(crate) fn host(&self) -> &str {
        self.base.host_str().unwrap_or_default().trim_matches(['[', ']'])
    }

    /// A POST of JSON to an address beneath the base (`/chat/completions`).
    pub(crate) fn post(&self, path: &str, body: String) -> Result<RequestBuilder, ModelError> {
        self.post_to(self.beneath_base(path), body)
    }

    /// A POST of JSON to an address beneath the server's root, beside `/v1` (`/api/show`).
    pub(crate) fn post_at_root(&self, path: &str, body: String) -> Result<RequestBuilder, ModelError> {
        self.post_to(self.beneath_root(path), body)
    }

    /// A GET beneath the base (`/models`).
    pub(crate) fn get(&self, path: &str) -> Result<RequestBuilder, ModelError> {
        Ok(self.authorized(self.client()?.get(self.beneath_base(path))))
    }

    /// A GET beneath the server's root, beside `/v1` (`/props`).
    pub(crate) fn get_at_root(&self, path: &str) -> Result<RequestBuilder, ModelError> {
        Ok(self.authorized(self.client()?.get(self.beneath_root(path))))
    }

    /// The text with the key masked, for messages: some servers repeat the key that they refuse.
    pub(crate) fn masked(&self, text: &str) -> String {
        match self.key.as_deref().filter(|key| key.len() >= 4) {
            Some(key) => text.replace(key, "***"),
            None => text.into(),
        }
    }

    fn post_to(&self, url: String, body: String) -> Result<RequestBuilder, ModelError> {
        let request = self.client()?.post(url).header("content-type", "application/json").body(body);
        Ok(self.authorized(request.header("accept", "text/event-stream, application/json")))
    }

    fn authorized(&self, request: RequestBuilder) -> RequestBuilder {
        match &self.key {
            Some(key) => request.bearer_auth(key),
            None => request,
        }
    }

    fn beneath_base(&self, path: &str) -> String {
        format!("{}{path}", self.base.as_str().trim_end_matches('/'))
    }

    fn beneath_root(&self, path: &str) -> String {
        let base = self.base.as_str().trim_end_matches('/');
        format!("{}{path}", base.strip_suffix("/v1").unwrap_or(base).trim_end_matches('/'))
    }

    fn client(&self) -> Result<&Client, ModelError> {
        if let Some(client) = self.client.get() {
            return Ok(client);
        }
        let client = self.build()?;
        Ok(self.client.get_or_init(|| client))
    }

    fn build(&self) -> Result<Client, ModelError> {
        // Only the first installation counts; a later one is refused and that is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Client::builder()
            .user_agent(concat!("iudex/", env!("CARGO_PKG_VERSION")))
            .connect_timeout(self.connect)
            // A redirect would carry the conversation to a host that nobody chose.
            .redirect(Policy::none());
        if locality::is_loopback(self.host()) {
            // To connect costs nothing here, and llama.cpp's server closes its connection after an answer though it
            // announces the opposite: the next request may already be on its way, a failed try and a wait.
            builder = builder.no_proxy().pool_max_idle_per_host(0);
        }
        if self.needs_certificates() {
            if let Some(file) = &self.ca_file {
                builder = builder.tls_certs_merge(read_certificates(file)?);
            }
        } else {
            builder = builder.tls_certs_only([]);
        }
        builder.build().map_err(|error| {
            ModelError::Refused(format!(
                "no HTTPS client can be made: {}. Are CA certificates installed? Otherwise set ca_file, SSL_CERT_FILE or \
                 SSL_CERT_DIR",
                chain(&error)
            ))
        })
    }

    /// For `https`, and for `http` where the proxy itself is reached over `https`.
    fn needs_certificates(&self) -> bool {
        let secure_proxy = || {
            ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"]
                .iter()
                .any(|name| std::env::var(name).is_ok_and(|value| value.trim_start().starts_with("https:")))
        };
        self.base.scheme() == "https" || secure_proxy()
    }
}

fn read_certificates(file: &std::path::Path) -> Result<Vec<Certificate>, ModelError> {
    let refused = |problem: String| ModelError::Refused(format!("ca_file {}: {problem}", file.display()));
    let pem = std::fs::read(file).map_err(|error| refused(format!("cannot be read: {error}")))?;
    let certificates =
        Certificate::from_pem_bundle(&pem).map_err(|error| refused(format!("is not PEM: {}", chain(&error))))?;
    if certificates.is_empty() {
        return Err(refused("holds no certificate in PEM".into()));
    }
    Ok(certificates)
}

/// The innermost cause of an error, which says what happened (`Connection refused (os error 111)`).
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut innermost = error;
    while let Some(cause) = innermost.source() {
        innermost = cause;
    }
    innermost.to_string()
}

/// An error with its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}
