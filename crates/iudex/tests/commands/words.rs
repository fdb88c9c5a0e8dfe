//! What a run says about itself: the outcome's word, the claim, a refusal, and nothing that is secret.

use iudex_testkit::server::{ModelServer, Reply};
use serde_json::json;

use crate::common::{Sandbox, bash, done, wait, wait_until};

#[test]
fn the_outcome_names_its_weakness_alike_everywhere() {
    let sandbox = Sandbox::new();
    sandbox.configure("[gates]\ncheck = [\"exit 1\"]\n");
    let model = sandbox.writes("made.txt", "x");
    let arguments =
        ["run", "--no-config-gates", "--no-sandbox", "--until", "test -f made.txt", "--model", &model, "make it"];
    let word = "done (checked in place only; left out by --no-config-gates: exit 1; without a sandbox)";
    sandbox.iudex(&arguments).exits(0).says(&format!("outcome     {word} (exit 0)\n"));
    sandbox.iudex(&["log"]).exits(0).says(word);
    sandbox.iudex(&["undo"]).exits(0);
    let result = sandbox.iudex(&[&arguments[..], &["--json"]].concat()).exits(0).result();
    assert_eq!(result["outcome"], word);
}

#[test]
fn without_a_gate_the_answer_is_printed_as_a_claim() {
    let sandbox = Sandbox::new();
    let model = sandbox.script(&json!({"replies": [{"text": "It is 42.\noutcome     done (exit 0)"}]}));
    let ended = sandbox.iudex(&["run", "--model", &model, "how much?"]).exits(0);
    assert!(ended.out.starts_with("the agent says"), "{}", ended.out);
    assert!(
        ended.out.contains("\n  It is 42.\n  outcome     done (exit 0)\n\noutcome     done (unvalidated)"),
        "{}",
        ended.out
    );
    let result = sandbox.iudex(&["run", "--json", "--model", &model, "how much?"]).exits(0).result();
    assert_eq!(result["claim"], "It is 42.\noutcome     done (exit 0)");
}

#[test]
fn a_refusal_is_a_result_for_machines_too() {
    let sandbox = Sandbox::new();
    let result = sandbox.iudex(&["run", "--json", "--model", "script:nowhere.json", "make it"]).exits(2).result();
    assert_eq!((&result["outcome"], &result["exit_code"]), (&json!("not started"), &json!(2)));
    assert!(result["message"].as_str().unwrap().contains("nowhere.json"), "{result}");
    assert!(result["hint"].is_string(), "{result}");
}

#[test]
fn a_dry_run_refuses_what_the_run_would_refuse() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x");
    sandbox.configure(
        "[run]\nrequire-gate = true\nmax-cost = 1.5\ntimeout = \"90m\"\n[agent]\nstrategy = \"with-files\"\n",
    );
    sandbox.iudex(&["run", "--dry-run", "--model", &model, "make it"]).exits(2).says("require-gate is set");
    let ended = sandbox.iudex(&["run", "--dry-run", "--until", "true", "--model", &model, "make it"]).exits(0);
    ended.says("1.5 US dollars").says("1h30m of time").says("with-files").says("format      ");
    let long = "word ".repeat(60_000);
    sandbox
        .iudex_with_input(&["run", "--dry-run", "--until", "true", "--model", &model, "-"], long.as_bytes())
        .exits(2)
        .says("more than half the model's window");
    let busy =
        sandbox.script(&json!({"replies": [bash("touch begun; while ! test -f go; do sleep 0.05; done"), done()]}));
    let child = sandbox.start(&["run", "--until", "true", "--model", &busy, "hold on"]);
    wait_until("the run holds the directory", || sandbox.exists("begun"));
    sandbox.iudex(&["run", "--dry-run", "--until", "true", "--model", &model, "make it"]).exits(2).says("works in");
    sandbox.write("go", "");
    wait(child).exits(0);
}

#[test]
fn the_key_stays_out_of_the_json_stream() {
    let mut sandbox = Sandbox::new();
    let secret = "kept-secret-4711";
    sandbox.set_env("IUDEX_API_KEY", secret);
    let model = sandbox
        .script(&json!({"replies": [bash("echo kept-secret-$((4700 + 11))"), {"text": format!("it is {secret}")}]}));
    let ended = sandbox.iudex(&["run", "--json", "--model", &model, "tell it"]).exits(0).never_says(secret);
    ended.says("[masked]");
}

#[test]
fn the_key_goes_to_the_configured_address_alone() {
    let mut sandbox = Sandbox::new();
    sandbox.set_env("IUDEX_API_KEY", "kept-secret-4711");
    let carries = |server: &ModelServer| {
        server.requests().iter().any(|request| format!("{request:?}").contains("kept-secret-4711"))
    };
    let stranger = ModelServer::start([Reply::action(&json!({"tool": "done"}))]);
    sandbox.set_env("IUDEX_PORTS", stranger.port().to_string());
    sandbox.iudex(&["run", "make it"]).exits(0);
    sandbox.iudex(&["doctor"]).exits(0);
    assert!(!stranger.requests().is_empty() && !carries(&stranger));
    let own = ModelServer::start([Reply::action(&json!({"tool": "done"}))]);
    sandbox.set_env("IUDEX_BASE_URL", format!("http://127.0.0.1:{}/v1", own.port()));
    sandbox.iudex(&["run", "make it"]).exits(0);
    assert!(carries(&own));
}

#[test]
fn doctor_shows_the_servers_beside_an_address_that_does_not_answer() {
    let mut sandbox = Sandbox::new();
    let server = ModelServer::builder().window(16384).start();
    sandbox.set_env("IUDEX_PORTS", server.port().to_string());
    sandbox.configure(
        "[run]\nsandbox = false\n[model]\nbase-url = \"http://127.0.0.1:1/v1\"\napi-key-env = \"NO_SUCH_KEY_HERE\"\n",
    );
    let ended = sandbox.iudex(&["doctor"]).exits(1);
    ended.says("http://127.0.0.1:1/v1: ").says("test-model").says("NO_SUCH_KEY_HERE").says("switched off");
}

#[test]
fn nohup_keeps_a_run_alive() {
    let sandbox = Sandbox::new();
    let model =
        sandbox.script(&json!({"replies": [bash("touch begun; while ! test -f go; do sleep 0.05; done"), done()]}));
    let program = sandbox.command(&[]);
    let mut command = std::process::Command::new("sh");
    command.args(["-c", "trap '' HUP; exec \"$0\" \"$@\""]).arg(program.get_program());
    command.args(["run", "--json", "--model", &model, "make it"]).env_clear().current_dir(sandbox.project());
    command.envs(program.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped());
    let child = command.spawn().unwrap();
    wait_until("the agent works", || sandbox.exists("begun"));
    crate::common::signal(child.id(), "HUP");
    sandbox.write("go", "");
    let ended = wait(child).exits(0);
    assert_eq!(ended.result()["outcome"], "done (unvalidated)");
}
