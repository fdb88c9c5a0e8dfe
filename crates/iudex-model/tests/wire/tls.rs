//! A server behind TLS whose authority only the settings or the environment know.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;

use iudex_model::{ModelError, ModelFacts, OpenAiSettings};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::{ask_with, request, run, settings_for};

const TARGET: &str = "IUDEX_TEST_TLS_TARGET";

/// A server that answers every connection once, and the file with its authority.
fn server() -> (String, tempfile::TempDir, PathBuf) {
    let mut authority = CertificateParams::new(Vec::new()).unwrap();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority_key = KeyPair::generate().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("authority.pem");
    std::fs::write(&file, authority.self_signed(&authority_key).unwrap().pem()).unwrap();

    let key = KeyPair::generate().unwrap();
    let issuer = Issuer::new(authority, authority_key);
    let certificate = CertificateParams::new(vec!["127.0.0.1".into()]).unwrap().signed_by(&key, &issuer).unwrap();
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], key)
        .unwrap();

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let base_url = format!("https://{}/v1", listener.local_addr().unwrap());
    let config = Arc::new(config);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let connection = ServerConnection::new(Arc::clone(&config)).unwrap();
            let mut stream = StreamOwned::new(connection, stream);
            let mut request = Vec::new();
            let mut buffer = [0; 4096];
            // The body is JSON and ends with a brace; a client that does not trust the server ends earlier.
            while !request.ends_with(b"}") {
                match stream.read(&mut buffer) {
                    Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
                    _ => break,
                }
            }
            let body = r#"{"choices":[{"message":{"content":"trusted"},"finish_reason":"stop"}]}"#;
            let head =
                format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n", body.len());
            let _ = stream.write_all(format!("{head}connection: close\r\n\r\n{body}").as_bytes());
            stream.conn.send_close_notify();
            let _ = stream.flush();
        }
    });
    (base_url, folder, file)
}

/// Settings with which only the chat itself is asked.
fn only_chat(base_url: &str) -> OpenAiSettings {
    let facts = ModelFacts {
        name: "test-model".into(),
        address: base_url.into(),
        window: 8192,
        window_source: "/props".into(),
        is_local: true,
        is_small: true,
        enforces_schema: true,
        price: None,
    };
    OpenAiSettings { remembered: Some(facts), ..settings_for(base_url) }
}

#[test]
fn an_authority_from_a_file_is_trusted() {
    let (base_url, _folder, file) = server();
    let settings = OpenAiSettings { ca_file: Some(file), ..only_chat(&base_url) };
    assert_eq!(run(ask_with(settings, &request())).0.unwrap().text, "trusted");
}

#[test]
fn inner() {
    let Ok(target) = std::env::var(TARGET) else { return };
    assert_eq!(run(ask_with(only_chat(&target), &request())).0.unwrap().text, "trusted");
}

#[test]
fn an_authority_from_the_environment_is_trusted() {
    let (base_url, _folder, file) = server();
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "tls::inner", "--nocapture"])
        .env(TARGET, base_url)
        .env("SSL_CERT_FILE", file)
        .env_remove("SSL_CERT_DIR")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_unknown_authority_is_refused_with_what_to_do() {
    let (base_url, _folder, _) = server();
    // Another authority, so that the store is not empty on a machine without any.
    let (_, _other_folder, other) = server();
    let settings = OpenAiSettings { ca_file: Some(other), ..only_chat(&base_url) };
    let error = run(ask_with(settings, &request())).0.unwrap_err();
    assert!(
        matches!(&error, ModelError::Refused(text) if text.contains("certificate") && text.contains("ca_file")),
        "{error}"
    );
}
