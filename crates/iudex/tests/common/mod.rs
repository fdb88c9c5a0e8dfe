//! A home, a state and a project of their own for every test, and the built program run in them.
//!
//! Never: a server, a configuration or a run of the machine's user.

#![allow(dead_code, clippy::unwrap_used, clippy::expect_used, missing_docs)]

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Only against hanging: a slow machine stays far below.
pub const PATIENCE: Duration = Duration::from_mins(2);

pub struct Sandbox {
    folder: TempDir,
    project: PathBuf,
    pub env: BTreeMap<String, String>,
}

impl Sandbox {
    pub fn new() -> Self {
        Self::with_project("project")
    }

    /// With another name for the project's directory.
    pub fn with_project(name: &str) -> Self {
        let folder = tempfile::Builder::new().prefix("iudex-test-").tempdir().unwrap();
        let project = folder.path().join(name);
        for path in [&project, &folder.path().join("home")] {
            fs::create_dir_all(path).unwrap();
        }
        let env = BTreeMap::from([("IUDEX_PORTS".to_owned(), String::new())]);
        Self { folder, project, env }
    }

    pub fn root(&self) -> &Path {
        self.folder.path()
    }

    pub fn home(&self) -> PathBuf {
        self.folder.path().join("home")
    }

    pub fn state(&self) -> PathBuf {
        self.folder.path().join("state/iudex")
    }

    pub fn project(&self) -> &Path {
        &self.project
    }

    pub fn set_env(&mut self, name: &str, value: impl Into<String>) {
        self.env.insert(name.to_owned(), value.into());
    }

    pub fn write(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.project.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.project.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
    }

    pub fn exists(&self, path: &str) -> bool {
        self.project.join(path).symlink_metadata().is_ok()
    }

    /// The user's configuration file.
    pub fn configure(&self, text: &str) {
        let folder = self.folder.path().join("config/iudex");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("config.toml"), text).unwrap();
    }

    /// Keeps a script for the scripted model and gives its name for `--model`.
    pub fn script(&self, script: &Value) -> String {
        let path =
            self.folder.path().join(format!("script-{}.json", fs::read_dir(self.folder.path()).unwrap().count()));
        fs::write(&path, script.to_string()).unwrap();
        format!("script:{}", path.display())
    }

    /// A script that writes a file and says done.
    pub fn writes(&self, path: &str, content: &str) -> String {
        self.script(&json!({"replies": [write(path, content), done()]}))
    }

    pub fn git(&self, arguments: &[&str]) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Test", "-c", "user.email=test@example.invalid", "-c", "init.defaultBranch=main"]);
        git.args(arguments).current_dir(&self.project).env("HOME", self.home()).env("GIT_CONFIG_NOSYSTEM", "1");
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_iudex"));
        let inherited = ["PATH", "TMPDIR", "LANG", "TERM"];
        let kept: Vec<_> = inherited.iter().filter_map(|name| Some((name, std::env::var_os(name)?))).collect();
        command.env_clear().envs(kept).current_dir(&self.project).args(arguments);
        command.env("HOME", self.home());
        for name in ["state", "config", "cache", "data"] {
            command.env(format!("XDG_{}_HOME", name.to_uppercase()), self.folder.path().join(name));
        }
        command.envs(&self.env).stdin(Stdio::null());
        command
    }

    pub fn start(&self, arguments: &[&str]) -> Child {
        self.command(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Runs the program to its end.
    pub fn iudex(&self, arguments: &[&str]) -> Ended {
        wait(self.start(arguments))
    }

    /// Runs it with this on standard input.
    pub fn iudex_with_input(&self, arguments: &[&str], input: &[u8]) -> Ended {
        let mut command = self.command(arguments);
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        wait(child)
    }
}

/// What the program said and how it ended.
#[derive(Debug)]
pub struct Ended {
    pub code: Option<i32>,
    pub out: String,
    pub err: String,
}

impl Ended {
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, text: &str) -> Self {
        let said = self.out.contains(text) || self.err.contains(text);
        assert!(said, "{text:?} is missing\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn never_says(self, text: &str) -> Self {
        let said = self.out.contains(text) || self.err.contains(text);
        assert!(!said, "{text:?}\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    /// Every line of a JSON stream.
    #[track_caller]
    pub fn events(&self) -> Vec<Value> {
        let parse = |line: &str| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        self.out.lines().map(parse).collect()
    }

    /// The last line of a JSON stream.
    #[track_caller]
    pub fn result(&self) -> Value {
        let last = self.events().pop().unwrap_or_else(|| panic!("no line on stdout; stderr: {}", self.err));
        assert_eq!(last["event"], "result", "{last}");
        last
    }

    /// The kinds of interventions in a JSON stream.
    pub fn interventions(&self) -> Vec<String> {
        let events = self.events();
        let kinds = events.iter().filter(|event| event["event"] == "intervention");
        kinds.map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// The results of the agent's tools in a JSON stream.
    pub fn tool_results(&self) -> Vec<String> {
        let events = self.events();
        let results = events.iter().filter(|event| event["event"] == "tool_finished");
        results.map(|event| event["result"].as_str().unwrap().to_owned()).collect()
    }
}

/// Reads both streams until the program has ended.
pub fn wait(mut child: Child) -> Ended {
    let out = child.stdout.take().map(read_all);
    let err = child.stderr.take().map(read_all);
    let deadline = Instant::now() + PATIENCE;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if Instant::now() > deadline {
            child.kill().unwrap();
            panic!("the program hangs; stderr: {}", err.unwrap().join().unwrap());
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let text =
        |reader: Option<std::thread::JoinHandle<String>>| reader.map_or_else(String::new, |it| it.join().unwrap());
    Ended { code: status.code(), out: text(out), err: text(err) }
}

fn read_all(mut stream: impl Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        stream.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

/// Waits until it holds.
#[track_caller]
pub fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "in vain: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// The processes whose command line holds this text, zombies left out.
pub fn processes_with(text: &str) -> Vec<u32> {
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok());
    let own = std::process::id();
    pids.filter(|pid| *pid != own)
        .filter(|pid| {
            let line = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            line.contains(text) && !stat.contains(") Z ")
        })
        .collect()
}

pub fn signal(pid: u32, name: &str) {
    let output: Output = Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).output().unwrap();
    assert!(output.status.success(), "kill -{name} {pid}");
}

pub fn write(path: &str, content: &str) -> Value {
    json!({"action": {"tool": "write", "path": path, "content": content}})
}

pub fn bash(command: &str) -> Value {
    json!({"action": {"tool": "bash", "command": command}})
}

pub fn read(path: &str) -> Value {
    json!({"action": {"tool": "read", "path": path}})
}

pub fn done() -> Value {
    json!({"action": {"tool": "done"}})
}

/// Every file below a folder with its bytes and mode.
pub fn contents(folder: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    use std::os::unix::fs::PermissionsExt;
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).unwrap() {
            let path = entry.unwrap().path();
            let meta = path.symlink_metadata().unwrap();
            let mode = meta.permissions().mode();
            if meta.is_dir() {
                found.insert(path.clone(), (mode, Vec::new()));
                open.push(path);
            } else if meta.is_file() {
                found.insert(path.clone(), (mode, fs::read(&path).unwrap()));
            } else {
                found.insert(path.clone(), (mode, fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()));
            }
        }
    }
    found
}
