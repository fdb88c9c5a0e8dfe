//! A place with a work directory, private directories and hidden state, and commands in it.

#![allow(dead_code, reason = "each test program uses its part of this module")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use iudex_exec::{Backend, CommandSpec, Confinement, End, Finished, OutputSpec, StartError};
use tempfile::TempDir;

pub struct Place {
    directory: TempDir,
    pub work: PathBuf,
    pub state: PathBuf,
    pub outside: PathBuf,
}

impl Place {
    /// Below /tmp, which the sandbox replaces.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// Below the target directory, which it does not replace.
    pub fn elsewhere() -> Self {
        Self::within(Path::new(env!("CARGO_TARGET_TMPDIR")))
    }

    /// Where a sandbox shows it: not below `/tmp`, which is private in there, even if the repository lies in `/tmp`.
    pub fn visible() -> Self {
        let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let is_covered = ["/tmp", "/var/tmp"].iter().any(|covered| target.starts_with(covered));
        let home = std::env::var_os("HOME").map(PathBuf::from);
        Self::within(&home.filter(|_| is_covered).unwrap_or(target))
    }

    fn within(parent: &Path) -> Self {
        let directory = tempfile::tempdir_in(parent).unwrap();
        let root = directory.path().canonicalize().unwrap();
        fs::set_permissions(&root, fs::Permissions::from_mode(0o755)).unwrap();
        let [work, state, outside] = ["work", "state", "outside"].map(|name| root.join(name));
        for path in [&work, &work.join(".git"), &work.join(".git/hooks"), &state, &outside] {
            fs::create_dir(path).unwrap();
        }
        fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
        fs::write(state.join("ledger"), "hidden content\n").unwrap();
        fs::write(outside.join("file"), "outside content\n").unwrap();
        Self { directory, work, state, outside }
    }

    pub fn root(&self) -> &Path {
        self.directory.path()
    }

    pub fn spec(&self, backend: &Backend, script: &str) -> CommandSpec {
        let caches = self.state.join("caches");
        CommandSpec {
            script: script.to_owned(),
            cwd: self.work.clone(),
            env: iudex_exec::child_environment(&caches),
            time_limit: Duration::from_mins(1),
            output: OutputSpec { head: 32_768, tail: 32_768, file: None },
            confinement: Confinement {
                backend: backend.clone(),
                work_dir: self.work.clone(),
                read_only: vec![self.work.join(".git")],
                hidden: vec![self.state.clone()],
                private_tmp: self.state.join("tmp"),
                caches,
                network: false,
            },
        }
    }

    pub fn run(&self, backend: &Backend, script: &str) -> Finished {
        run(self.spec(backend, script)).unwrap()
    }
}

pub fn run(spec: CommandSpec) -> Result<Finished, StartError> {
    block_on(iudex_exec::run(spec, &mut |_| {}))
}

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

/// Every mechanism that works here; what is left out is said.
pub fn backends() -> Vec<Backend> {
    let mut backends = sandboxes();
    backends.push(Backend::None);
    backends
}

/// The same without [`Backend::None`].
pub fn sandboxes() -> Vec<Backend> {
    let mut backends = Vec::new();
    match iudex_exec::detect() {
        Ok(backend @ Backend::Bubblewrap { .. }) => backends.push(backend),
        other => eprintln!("SKIPPED: no bubblewrap here: {other:?}"),
    }
    let place = Place::new();
    match run(place.spec(&Backend::Landlock, "true")) {
        Ok(_) => backends.push(Backend::Landlock),
        Err(error) => eprintln!("SKIPPED: no Landlock here: {error}"),
    }
    backends
}

pub fn bubblewrap() -> Option<Backend> {
    sandboxes().into_iter().find(|backend| matches!(backend, Backend::Bubblewrap { .. }))
}

pub fn assert_passed(finished: &Finished, context: &str) {
    assert_eq!(finished.end, End::Exited(0), "{context}: {}", finished.output.text());
}

/// How many processes have this word among their arguments.
pub fn processes_with(word: &str) -> usize {
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| fs::read(entry.path().join("cmdline")).ok())
        .filter(|line| line.split(|byte| *byte == 0).any(|argument| argument == word.as_bytes()))
        .count()
}

/// A duration for `sleep` that no other process has, so that it can be found.
pub fn unique_sleep() -> String {
    use std::sync::atomic::{AtomicU32, Ordering};
    static NEXT: AtomicU32 = AtomicU32::new(0);
    format!("3{:07}.{}", std::process::id(), 100 + NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Waits for something that happens soon.
pub fn eventually(what: &str, mut is_so: impl FnMut() -> bool) {
    for _ in 0..1_000 {
        if is_so() {
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("after ten seconds still not: {what}");
}
