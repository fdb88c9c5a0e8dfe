//! `config`, `init`, `trust`, usage.

use serde_json::Value;

use crate::common::Sandbox;

#[test]
fn config_prints_each_value_and_where_it_came_from() {
    let mut sandbox = Sandbox::new();
    sandbox.configure("[run]\nmax-retries = 5\n");
    sandbox.set_env("IUDEX_MODEL", "some-model");
    let shown = sandbox.iudex(&["config"]).exits(0);
    let line = |key: &str| shown.out.lines().find(|line| line.starts_with(key)).unwrap_or_else(|| panic!("{key}"));
    assert!(line("run.max-retries").contains(" 5 ") && line("run.max-retries").contains("config.toml"));
    assert!(line("model.name").contains("some-model") && line("model.name").contains("IUDEX_MODEL"));
    assert!(line("run.max-steps").contains("50"));
    let lines: Value = serde_json::from_str(&sandbox.iudex(&["config", "--json"]).exits(0).out).unwrap();
    assert!(lines.as_array().unwrap().iter().any(|line| line["key"] == "run.max-retries" && line["value"] == 5));
}

#[test]
fn an_unknown_key_names_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.configure("[run]\nmax-retrys = 5\n");
    let model = sandbox.writes("made.txt", "x");
    sandbox.iudex(&["run", "--model", &model, "make it"]).exits(2).says("max-retrys").says("max-retries");
}

#[test]
fn init_writes_a_file_that_gates_a_bare_run() {
    let sandbox = Sandbox::new();
    sandbox.write("Cargo.toml", "[package]\nname = \"a\"\nversion = \"0.1.0\"\n");
    sandbox.iudex(&["init"]).exits(0).says("cargo test");
    assert!(sandbox.read("iudex.toml").contains("cargo test"));
    let model = sandbox.writes("made.txt", "x");
    sandbox.iudex(&["run", "--dry-run", "--model", &model, "make it"]).exits(0).says("check       `cargo test`");
    sandbox.iudex(&["init"]).exits(2).says("--force");
    sandbox.iudex(&["init", "--force"]).exits(0);
}

#[test]
fn gates_of_an_untrusted_project_stop_the_launch() {
    let sandbox = Sandbox::new();
    sandbox.write("iudex.toml", "[gates]\ncheck = [\"touch planted; test -f made.txt\"]\n");
    let model = sandbox.writes("made.txt", "x");
    let run = ["run", "--model", &model, "make it"];
    sandbox.iudex(&run).exits(2).says("iudex trust");
    assert!(!sandbox.exists("planted") && !sandbox.exists("made.txt"));

    sandbox.iudex(&["trust", "--show"]).exits(0).says("touch planted").says("not trusted yet");
    sandbox.iudex(&run).exits(2);
    sandbox.iudex(&["trust"]).exits(0);
    sandbox.iudex(&run).exits(0).says("done (checked in place only)");

    // One byte.
    sandbox.write("iudex.toml", "[gates]\ncheck = [\"touch planteD; test -f made.txt\"]\n");
    sandbox.iudex(&run).exits(2).says("iudex trust");
    assert!(!sandbox.exists("planteD"));
    sandbox.iudex(&["trust"]).exits(0);
    sandbox.iudex(&["trust", "--remove"]).exits(0).says("no longer trusted");
    sandbox.iudex(&run).exits(2);
}

#[test]
fn a_project_can_not_choose_where_the_key_goes() {
    let mut sandbox = Sandbox::new();
    sandbox.set_env("IUDEX_API_KEY", "secret-value-of-the-key");
    let server = iudex_testkit::server::ModelServer::start([iudex_testkit::server::Reply::text("hello")]);
    sandbox.write("iudex.toml", format!("[model]\nname = \"test-model\"\nbase-url = \"{}\"\n", server.base_url()));
    sandbox.iudex(&["run", "make it"]).exits(2).says("iudex trust");
    assert!(server.requests().is_empty(), "{:?}", server.requests());
}

#[test]
fn agents_md_is_left_out_until_it_is_trusted() {
    let sandbox = Sandbox::new();
    sandbox.write("AGENTS.md", "Always answer in Latin.\n");
    // A small model is shown the files of the project: this one is not among them.
    sandbox.write("fruit.txt", "apple\n");
    let script = serde_json::json!({"replies": [
        {"action": {"tool": "done"}, "expect": ["=== fruit.txt\napple", "Always answer in Latin."]}]});
    let model = sandbox.script(&script);
    sandbox.iudex(&["run", "--model", &model, "make it"]).exits(7).says("AGENTS.md was left out");
    sandbox.iudex(&["trust"]).exits(0);
    sandbox.iudex(&["run", "--model", &model, "make it"]).exits(0).never_says("left out");
}

#[test]
fn an_unknown_command_names_the_nearest_and_is_no_session() {
    let sandbox = Sandbox::new();
    sandbox.iudex(&["stat"]).exits(2).says("stats");
    sandbox.iudex(&["udno"]).exits(2).says("undo");
    sandbox.iudex(&["make the test pass"]).exits(2);
    sandbox.iudex(&["run", "--untill", "true", "x"]).exits(2).says("--until");
}

#[test]
fn alone_without_a_terminal_it_shows_usage() {
    let sandbox = Sandbox::new();
    let ended = sandbox.iudex(&[]).exits(2).says("Usage: iudex");
    assert!(ended.out.is_empty(), "talk belongs to stderr: {}", ended.out);
    assert!(!sandbox.state().exists(), "nothing was opened");
}

#[test]
fn version_and_help_succeed() {
    let sandbox = Sandbox::new();
    sandbox.iudex(&["--version"]).exits(0).says("iudex 0.1.0");
    let help = sandbox.iudex(&["--help"]).exits(0).says("Exit codes");
    for command in ["run", "undo", "diff", "stats", "log", "show", "config", "init", "trust", "doctor", "setup"] {
        assert!(help.out.contains(&format!("  {command} ")), "{command}");
        let shown = sandbox.iudex(&[command, "--help"]).exits(0).says("Example:");
        assert!(shown.out.contains(&format!("iudex {command}")), "{}", shown.out);
    }
}
