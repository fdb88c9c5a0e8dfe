//! Proxy variables are honoured, and loopback never goes through a proxy.
//!
//! Variables belong to a process, so each case runs this test binary again with them set.

use std::process::Command;

use iudex_testkit::server::{ModelServer, Reply};

use crate::{ask_with, request, run, settings_for};

/// Where the inner test sends its request.
const TARGET: &str = "IUDEX_TEST_TARGET";

/// The inner test: does nothing unless it was started by one of the others.
#[test]
fn inner() {
    let Ok(target) = std::env::var(TARGET) else { return };
    let (result, _) = run(ask_with(settings_for(&target), &request()));
    assert_eq!(result.unwrap().text, "through");
}

fn inner_with(target: &str, variables: &[(&str, &str)]) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"] {
        command.env_remove(name).env_remove(name.to_ascii_lowercase());
    }
    let output = command
        .args(["--exact", "proxy::inner", "--nocapture"])
        .env(TARGET, target)
        .envs(variables.iter().copied())
        .output()
        .unwrap();
    output.status.success()
}

#[test]
fn a_host_elsewhere_is_asked_through_the_proxy() {
    for variable in ["http_proxy", "HTTP_PROXY", "ALL_PROXY"] {
        let proxy = ModelServer::start([Reply::text("through")]);
        let address = format!("http://127.0.0.1:{}", proxy.port());
        assert!(inner_with("http://model.example.invalid:8080/v1", &[(variable, &address)]), "{variable}");
        let paths: Vec<String> = proxy.requests().into_iter().map(|request| request.path).collect();
        let chat = "http://model.example.invalid:8080/v1/chat/completions".to_owned();
        assert!(paths.contains(&chat), "{variable}: {paths:?}");
    }
}

#[test]
fn loopback_is_asked_directly_whatever_the_variables_say() {
    let proxy = ModelServer::start([]);
    let server = ModelServer::start([Reply::text("through")]);
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let variables = [("HTTP_PROXY", address.as_str()), ("http_proxy", &address), ("ALL_PROXY", &address)];
    assert!(inner_with(&server.base_url(), &variables));
    assert_eq!(proxy.connections(), 0);
}

#[test]
fn no_proxy_is_honoured() {
    let proxy = ModelServer::start([]);
    let address = format!("http://127.0.0.1:{}", proxy.port());
    let variables = [("HTTP_PROXY", address.as_str()), ("http_proxy", &address), ("NO_PROXY", "example.invalid")];
    assert!(!inner_with("http://model.example.invalid:8080/v1", &variables), "the host does not exist");
    assert_eq!(proxy.connections(), 0);
}
