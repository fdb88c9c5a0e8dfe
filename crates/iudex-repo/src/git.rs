//! Runs the git program (2.25 or later) with a clean environment: no `GIT_*` of the caller, no hooks, no file system
//! monitor, no prompts, no lazy downloads. Never: a git that may write to the user's index, refs or configuration.

use std::ffi::{OsStr, OsString};
use std::io::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use crate::error::SnapshotError;

/// Variables that git and its filter programs may see; everything else, keys of providers included, stays out.
const PASSED_ON: [&str; 13] = [
    "PATH",
    "HOME",
    "XDG_CONFIG_HOME",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "USER",
    "LOGNAME",
    "TMPDIR",
    "TZ",
    "DEVELOPER_DIR",
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "NIX_LD_LIBRARY_PATH",
];

/// Settings that hold in every call, whatever a configuration file says.
const ALWAYS: [&str; 9] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.safecrlf=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "diff.ignoreSubmodules=dirty",
    "advice.addEmbeddedRepo=false",
];

/// One way to call git: its global arguments and environment.
#[derive(Debug, Clone)]
pub(crate) struct Git {
    arguments: Vec<OsString>,
    environment: Vec<(OsString, OsString)>,
}

impl Git {
    /// git on a private git directory, whose own configuration file holds all settings; the user's and the system's
    /// are not read.
    pub(crate) fn private(git_dir: &Path, work_tree: &Path) -> Self {
        let mut git = Self::bare_call(git_dir, work_tree);
        git.set("HOME", "/nonexistent");
        git.set("XDG_CONFIG_HOME", "/nonexistent");
        git.set("GIT_CONFIG_NOSYSTEM", "1");
        git.set("GIT_CONFIG_GLOBAL", "/dev/null");
        git.set("GIT_ATTR_NOSYSTEM", "1");
        git
    }

    /// git on the user's repository and with the user's configuration, for reading.
    pub(crate) fn user(git_dir: &Path, work_tree: &Path) -> Self {
        let mut git = Self::bare_call(git_dir, work_tree);
        for setting in ALWAYS {
            git.arguments.push("-c".into());
            git.arguments.push(setting.into());
        }
        git
    }

    /// git without a repository, for the user's own configuration.
    pub(crate) fn user_configuration(work_tree: &Path) -> Self {
        // From the top, where hardly anybody has a repository whose settings would be read too.
        let mut git = Self { arguments: vec!["-C".into(), "/".into()], environment: Self::base_environment() };
        git.set("PATH", iudex_exec::path_outside(work_tree));
        git
    }

    fn base_environment() -> Vec<(OsString, OsString)> {
        let passed = PASSED_ON.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let fixed = [
            ("LC_ALL", "C"),
            ("GIT_OPTIONAL_LOCKS", "0"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("GIT_NO_LAZY_FETCH", "1"),
            ("GIT_PAGER", "cat"),
        ];
        passed.chain(fixed.map(|(name, value)| (name.into(), value.into()))).collect()
    }

    fn bare_call(git_dir: &Path, work_tree: &Path) -> Self {
        let mut git = Self { arguments: Vec::new(), environment: Self::base_environment() };
        git.set("GIT_DIR", git_dir);
        git.set("GIT_WORK_TREE", work_tree);
        // Neither git nor its filter programs come from where an agent may write.
        git.set("PATH", iudex_exec::path_outside(work_tree));
        git.arguments.push("-C".into());
        git.arguments.push(work_tree.into());
        git
    }

    /// Sets a variable for git; the last value holds.
    pub(crate) fn set(&mut self, name: impl Into<OsString>, value: impl AsRef<OsStr>) {
        self.environment.push((name.into(), value.as_ref().to_owned()));
    }

    /// The same with another variable.
    pub(crate) fn with(&self, name: &str, value: impl AsRef<OsStr>) -> Self {
        let mut git = self.clone();
        git.set(name, value);
        git
    }

    fn command<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Command {
        let mut command = Command::new("git");
        command.env_clear();
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
        command.args(&self.arguments).args(arguments);
        // Ctrl-C goes to the whole foreground group; saving must not die of it.
        command.process_group(0);
        command
    }

    /// Starts git with both ends as pipes, for a conversation.
    pub(crate) fn spawn<A: AsRef<OsStr>>(&self, arguments: &[A]) -> Result<Child, SnapshotError> {
        self.command(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| cannot_start(&error))
    }

    /// Runs git to its end, whatever its exit status.
    pub(crate) fn output<A: AsRef<OsStr>>(
        &self,
        arguments: &[A],
        input: Option<&[u8]>,
    ) -> Result<Output, SnapshotError> {
        let mut command = self.command(arguments);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let Some(input) = input else {
            return command.stdin(Stdio::null()).output().map_err(|error| cannot_start(&error));
        };
        let mut child = command.stdin(Stdio::piped()).spawn().map_err(|error| cannot_start(&error))?;
        let stdin = child.stdin.take();
        // Written from another thread: git may answer before it has read everything.
        let output = std::thread::scope(|scope| {
            scope.spawn(move || {
                // A git that ends early says why on stderr; the broken pipe adds nothing.
                let _ = stdin.map(|mut stdin| stdin.write_all(input));
            });
            child.wait_with_output()
        });
        output.map_err(|error| SnapshotError::new(format!("git {} could not be followed: {error}", first(arguments))))
    }

    /// Runs git and returns what it printed; any exit status but 0 is an error.
    pub(crate) fn run<A: AsRef<OsStr>>(&self, arguments: &[A], input: Option<&[u8]>) -> Result<Vec<u8>, SnapshotError> {
        let output = self.output(arguments, input)?;
        if output.status.success() { Ok(output.stdout) } else { Err(failure(&first(arguments), &output)) }
    }

    /// Runs git and returns its one line of output (an object name).
    pub(crate) fn line<A: AsRef<OsStr>>(&self, arguments: &[A], input: Option<&[u8]>) -> Result<String, SnapshotError> {
        let output = self.run(arguments, input)?;
        Ok(String::from_utf8_lossy(&output).trim_end().to_owned())
    }
}

fn first<A: AsRef<OsStr>>(arguments: &[A]) -> String {
    arguments.first().map(|argument| argument.as_ref().to_string_lossy().into_owned()).unwrap_or_default()
}

fn cannot_start(error: &std::io::Error) -> SnapshotError {
    let failed = SnapshotError::new(format!("cannot start git: {error}"));
    match error.kind() {
        std::io::ErrorKind::NotFound => failed.hint("install git (2.25 or later)"),
        _ => failed,
    }
}

/// The error for a git that ended badly: the command and the last lines of what it said.
pub(crate) fn failure(command: &str, output: &Output) -> SnapshotError {
    let said = String::from_utf8_lossy(&output.stderr);
    let lines: Vec<&str> = said.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    let last = lines[lines.len().saturating_sub(3)..].join("; ");
    let failed = SnapshotError::new(format!("git {command} failed ({}): {last}", output.status));
    if is_out_of_space(&said) {
        return failed.hint("free some space where iudex keeps its state and run the command again");
    }
    failed
}

/// True when `git add --ignore-errors` went on although it could not write what it read: that is not a file that cannot
/// be read, it is a snapshot that cannot be taken.
pub(crate) fn could_not_store(output: &Output) -> bool {
    let said = String::from_utf8_lossy(&output.stderr);
    is_out_of_space(&said) || said.contains("failed to insert into database")
}

fn is_out_of_space(said: &str) -> bool {
    said.contains("No space left on device") || said.contains("Disk quota exceeded")
}
