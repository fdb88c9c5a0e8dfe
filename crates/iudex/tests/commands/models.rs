//! Which model a run uses, and what doctor says about the machine.

use iudex_testkit::server::{ModelServer, Reply};
use serde_json::{Value, json};

use crate::common::Sandbox;

fn done() -> Reply {
    Reply::action(&json!({"tool": "done"}))
}

#[test]
fn the_only_model_is_used_and_named() {
    let mut sandbox = Sandbox::new();
    let server = ModelServer::start([done()]);
    sandbox.set_env("IUDEX_PORTS", server.port().to_string());
    let ended = sandbox.iudex(&["run", "make it"]).exits(0);
    ended.says("model: test-model at").says("the only model that answers on this machine");
    assert_eq!(server.chats().len(), 1);
}

#[test]
fn several_models_are_listed_and_none_is_used() {
    let mut sandbox = Sandbox::new();
    let one = ModelServer::builder().models(&["model-one", "model-two"], "llamacpp").start();
    let other = ModelServer::builder().models(&["model-three"], "vllm").replies([done()]).start();
    sandbox.set_env("IUDEX_PORTS", format!("{},{}", one.port(), other.port()));
    let ended = sandbox.iudex(&["run", "make it"]).exits(2);
    ended.says("--model model-one").says("--model model-two").says("--model model-three");
    assert!(one.chats().is_empty() && other.chats().is_empty());
    sandbox.iudex(&["run", "--model", "model-three", "make it"]).exits(0);
    assert_eq!(other.chats().len(), 1);
    sandbox.iudex(&["run", "--model", "model-tree", "make it"]).exits(2).says("model-three");
}

#[test]
fn without_a_model_the_next_step_is_setup() {
    let sandbox = Sandbox::new();
    sandbox.iudex(&["run", "make it"]).exits(7).says("iudex setup");
    sandbox.iudex(&["run", "--model", "some-model", "make it"]).exits(7).says("some-model");
}

#[test]
fn a_script_that_is_not_there_is_a_usage_error() {
    let sandbox = Sandbox::new();
    sandbox.iudex(&["run", "--model", "script:nowhere.json", "make it"]).exits(2).says("nowhere.json");
}

#[test]
fn doctor_says_what_is_missing() {
    let sandbox = Sandbox::new();
    sandbox.iudex(&["doctor"]).exits(1).says("iudex setup").says("git").says("bash");
}

#[test]
fn doctor_is_content_with_a_model() {
    let mut sandbox = Sandbox::new();
    let server = ModelServer::builder().window(16384).start();
    sandbox.set_env("IUDEX_PORTS", server.port().to_string());
    sandbox.iudex(&["doctor"]).exits(0).says("test-model");
    let examined: Value = serde_json::from_str(&sandbox.iudex(&["doctor", "--json"]).exits(0).out).unwrap();
    assert!(examined.as_array().unwrap().len() >= 4, "{examined}");
}
