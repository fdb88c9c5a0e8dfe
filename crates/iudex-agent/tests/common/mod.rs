//! A work directory with tools on it, for the tests of the tools.
#![allow(dead_code, reason = "each test program uses its own part")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use iudex_agent::{ToolBox, ToolResult, ToolSettings};
use iudex_exec::{Backend, Confinement};
use serde_json::Value;

/// A directory that is gone after the test.
pub struct Place {
    root: tempfile::TempDir,
    settings: ToolSettings,
}

impl Place {
    /// An empty work directory; commands run without a sandbox.
    pub fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let base = root.path().canonicalize().unwrap();
        let make = |name: &str| {
            let path = base.join(name);
            std::fs::create_dir(&path).unwrap();
            path
        };
        let work_dir = make("work");
        let settings = ToolSettings {
            work_dir: work_dir.clone(),
            read_only: vec![work_dir.join(".git")],
            env: vec![
                ("PATH".into(), std::env::var_os("PATH").unwrap()),
                ("HOME".into(), make("home").into()),
                ("LC_ALL".into(), "C.UTF-8".into()),
            ],
            confinement: Confinement {
                backend: Backend::None,
                work_dir,
                read_only: Vec::new(),
                hidden: vec![make("state")],
                private_tmp: make("tmp"),
                caches: make("caches"),
                network: false,
            },
            bash_time_limit: Duration::from_secs(20),
            result_bytes: 8_000,
            writes_in_parts: false,
        };
        Self { root, settings }
    }

    /// The settings, to be changed before the first call.
    pub fn settings(&mut self) -> &mut ToolSettings {
        &mut self.settings
    }

    /// The work directory.
    pub fn dir(&self) -> &Path {
        &self.settings.work_dir
    }

    /// A path beside the work directory.
    pub fn beside(&self, name: &str) -> PathBuf {
        self.dir().parent().unwrap().join(name)
    }

    /// The tools.
    pub fn tools(&self) -> ToolBox {
        ToolBox::new(self.settings.clone())
    }

    /// Writes a file below the work directory.
    pub fn put(&self, name: &str, content: impl AsRef<[u8]>) {
        let path = self.dir().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    /// What a file below the work directory holds.
    pub fn get(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.dir().join(name)).unwrap()
    }

    /// Calls a tool.
    pub async fn call(&self, tool: &str, arguments: Value) -> ToolResult {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        self.tools().call(tool, &arguments, &mut |_| {}).await
    }
}
