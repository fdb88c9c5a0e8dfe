//! What a run may never touch, reach or tell.

use std::io::Read;
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::json;

use crate::common::{Sandbox, bash, contents, done, wait, write};

#[test]
fn the_users_git_directory_is_byte_for_byte_as_before() {
    let sandbox = Sandbox::new();
    sandbox.write("a.txt", "one\n");
    sandbox.write(".gitignore", "build/\n");
    sandbox.git(&["init", "-q"]);
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-q", "-m", "first"]);
    sandbox.write("staged.txt", "staged\n");
    sandbox.git(&["add", "staged.txt"]);
    sandbox.write("a.txt", "two, not committed\n");
    sandbox.write("build/out.bin", "ignored\n");
    sandbox.git(&["stash", "push", "-q", "--", "a.txt"]);
    sandbox.write("a.txt", "three, not committed\n");
    let git = sandbox.project().join(".git");
    let before = contents(&git);
    assert!(before.len() > 20);

    let replies = json!([
        bash(
            "git status; git add -A; git commit -qm planted; git stash; echo x > .git/planted; git config user.name x; true"
        ),
        write("made.txt", "x\n"),
        write("a.txt", "four\n"),
        done()
    ]);
    let model = sandbox.script(&json!({"replies": replies}));
    sandbox.iudex(&["run", "--until", "git status --short; test -f made.txt", "--model", &model, "make it"]).exits(0);
    assert_same(&before, &contents(&git));
    sandbox.iudex(&["diff"]).exits(0).says("+four");
    sandbox.iudex(&["undo"]).exits(0);
    assert_same(&before, &contents(&git));
    assert_eq!(sandbox.read("a.txt"), "three, not committed\n");
    assert_eq!(sandbox.read("build/out.bin"), "ignored\n");
    assert!(!sandbox.exists("made.txt"));
}

type Contents = std::collections::BTreeMap<std::path::PathBuf, (u32, Vec<u8>)>;

#[track_caller]
fn assert_same(before: &Contents, after: &Contents) {
    let differing: Vec<_> =
        before.keys().chain(after.keys()).filter(|path| before.get(*path) != after.get(*path)).collect();
    assert!(differing.is_empty(), "{differing:?}");
}

#[test]
fn nothing_of_iudex_lies_in_the_project() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    sandbox.iudex(&["run", "--until", "test -f made.txt", "--model", &model, "make it"]).exits(0);
    let names: Vec<_> = contents(sandbox.project()).into_keys().collect();
    assert_eq!(names, [sandbox.project().join("made.txt")]);
    let home: Vec<_> = contents(&sandbox.home()).into_keys().collect();
    assert!(home.is_empty(), "{home:?}");
}

#[test]
fn the_key_reaches_no_child_and_no_record() {
    let mut sandbox = Sandbox::new();
    let key = "very-secret-key-0123456789";
    sandbox.set_env("IUDEX_API_KEY", key);
    sandbox.set_env("OPENAI_API_KEY", "another-secret-0123456789");
    let model = sandbox.script(&json!({"replies": [
        bash("env"), bash("cat /proc/*/environ | tr '\\0' '\\n' | grep -a API_KEY"),
        {"text": format!("{{\"tool\":\"write\",\"path\":\"told.txt\",\"content\":\"{key}\"}}")}, done()]}));
    let check = "env; test -f told.txt";
    let ended = sandbox.iudex(&["run", "--json", "--until", check, "--model", &model, "make it"]).exits(0);
    let results = ended.tool_results();
    assert!(results[0].contains("PATH="), "{results:?}");
    for result in &results[..2] {
        assert!(!result.contains("secret"), "{result}");
    }
    sandbox.iudex(&["show"]).exits(0).never_says(key).says("> bash env");
    sandbox.iudex(&["show", "--json"]).exits(0).never_says(key);
    for (path, (_, bytes)) in contents(&sandbox.state()) {
        // Snapshots hold the project's own files, and this one was written there on purpose.
        let is_snapshot =
            path.starts_with(sandbox.state().join("snapshots")) || path.to_string_lossy().contains("objects");
        let holds = bytes.windows(key.len()).any(|window| window == key.as_bytes());
        assert!(is_snapshot || !holds, "{} holds the key", path.display());
    }
}

#[test]
fn the_agent_reaches_no_listener_of_the_host_without_net() {
    let sandbox = Sandbox::new();
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let reached = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&reached);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = stream.unwrap().read(&mut [0; 1]);
        }
    });
    let knock = format!("timeout 20 bash -c 'echo x > /dev/tcp/127.0.0.1/{port}' && echo REACHED || echo no way");
    let python = format!(
        "python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 20); print(\"REACHED\")'; true"
    );
    let script = json!({"then": "repeat_last", "replies": [bash(&knock), bash(&python), done()]});
    let model = sandbox.script(&script);
    let check = format!("! (echo x > /dev/tcp/127.0.0.1/{port})");
    let ended = sandbox.iudex(&["run", "--json", "--until", &check, "--model", &model, "knock"]);
    // Green before and nothing changed: a person decides. What counts is that nothing came through.
    let results = ended.exits(6).tool_results();
    assert!(results[0].contains("no way"), "{results:?}");
    assert!(!results.iter().any(|result| result.contains("REACHED")), "{results:?}");
    assert_eq!(reached.load(Ordering::SeqCst), 0);

    let ended = sandbox.iudex(&["run", "--json", "--net", "--model", &model, "knock"]).exits(0);
    assert!(ended.tool_results()[0].contains("REACHED"), "with --net it does: {:?}", ended.tool_results());
    assert!(reached.load(Ordering::SeqCst) > 0);
}

#[test]
fn the_agent_reads_and_writes_nothing_of_iudex() {
    let sandbox = Sandbox::new();
    sandbox.configure("[run]\nmax-retries = 1\n");
    let state = sandbox.state();
    let config = sandbox.root().join("config/iudex");
    let look = format!(
        "find {0} {1} -type f 2>/dev/null | head; cat {0}/*.db {0}/*.sqlite* {1}/config.toml 2>/dev/null | head -c 100; \
         echo planted > {1}/config.toml; echo planted > {0}/planted; echo looked",
        state.display(),
        config.display()
    );
    let tool = config.join("config.toml");
    let model = sandbox.script(&json!({"replies": [bash(&look), {"action": {"tool": "read", "path": tool}}, done()]}));
    let ended = sandbox.iudex(&["run", "--json", "--model", &model, "look around"]).exits(0);
    let results = ended.tool_results();
    assert!(results[0].contains("looked"), "{results:?}");
    for result in &results {
        assert!(
            !result.contains("max-retries") && !result.contains("SQLite") && !result.contains("ledger"),
            "{result}"
        );
    }
    assert!(!state.join("planted").exists());
    assert_eq!(std::fs::read_to_string(tool).unwrap(), "[run]\nmax-retries = 1\n");
}

#[test]
fn files_of_iudex_are_for_the_user_alone() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    sandbox.iudex(&["run", "--until", "echo output; test -f made.txt", "--model", &model, "make it"]).exits(0);
    let state = sandbox.state();
    let snapshots = state.join("snapshots");
    for folder in [&state, &snapshots] {
        let mode = std::fs::metadata(folder).unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{mode:o} {}", folder.display());
    }
    // What git writes below the private folder of snapshots has git's own modes.
    for (path, (mode, _)) in contents(&state).iter().filter(|(path, _)| !path.starts_with(&snapshots)) {
        assert_eq!(mode & 0o077, 0, "{mode:o} {}", path.display());
    }
}

#[test]
fn without_a_sandbox_the_outcome_says_so() {
    let sandbox = Sandbox::new();
    let model = sandbox.writes("made.txt", "x\n");
    let ended = sandbox.iudex(&["run", "--no-sandbox", "--until", "test -f made.txt", "--model", &model, "make it"]);
    ended.exits(0).says("without a sandbox");
}

/// A project's own folder in PATH, as an activated virtual environment or direnv puts it there.
fn with_own_folder_in_path() -> Sandbox {
    let mut sandbox = Sandbox::new();
    let path = format!("{}/.venv/bin:{}", sandbox.project().display(), std::env::var("PATH").unwrap());
    sandbox.set_env("PATH", path);
    std::fs::create_dir_all(sandbox.project().join(".venv/bin")).unwrap();
    sandbox
}

#[test]
fn a_program_that_the_agent_plants_in_path_runs_in_the_sandbox_only() {
    let sandbox = with_own_folder_in_path();
    sandbox.git(&["init", "-q"]);
    let trace = sandbox.root().join("escaped");
    let planted = format!("#!/bin/sh\necho \"$0\" >> {}\nexit 1\n", trace.display());
    let mut replies = Vec::new();
    for program in ["git", "bwrap", "bash", "python3", "cat"] {
        replies.push(write(&format!(".venv/bin/{program}"), &planted));
    }
    replies.extend([bash("chmod +x .venv/bin/*"), write("made.txt", "x"), done()]);
    let model = sandbox.script(&json!({"replies": replies}));
    sandbox.iudex(&["run", "--until", "test -f made.txt", "--model", &model, "plant"]).exits(0);
    sandbox.iudex(&["diff"]).exits(0);
    sandbox.iudex(&["doctor"]);
    sandbox
        .iudex(&["run", "--until", "test -f made.txt", "--model", &sandbox.writes("second.txt", "x"), "again"])
        .exits(0);
    sandbox.iudex(&["undo", "--force"]);
    let escaped = std::fs::read_to_string(&trace).unwrap_or_default();
    assert!(escaped.is_empty(), "these ran outside the sandbox:\n{escaped}");
}

#[test]
fn a_program_that_the_agent_puts_in_the_place_of_iudex_is_not_run() {
    let sandbox = Sandbox::new();
    let trace = sandbox.root().join("escaped");
    let planted = format!("#!/bin/sh\necho ran >> {}\nexit 0\n", trace.display());
    let own = sandbox.project().join("iudex");
    std::fs::copy(env!("CARGO_BIN_EXE_iudex"), &own).unwrap();
    // The kernel calls a replaced program `PATH (deleted)`.
    let replies = json!([
        write("iudex (deleted)", &planted),
        bash("chmod +x iudex*"),
        write("iudex", &planted),
        bash("echo second"),
        write("other.txt", "x"),
        done()
    ]);
    let model = sandbox.script(&json!({"replies": replies}));
    let usual = sandbox.command(&["run", "--until", "test -f never", "--model", &model, "plant"]);
    let mut command = std::process::Command::new(&own);
    command.args(usual.get_args()).env_clear().current_dir(sandbox.project());
    command.envs(usual.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    wait(command.spawn().unwrap()).exits(6).says("it was replaced");
    assert!(!trace.exists(), "it ran outside the sandbox");
}
