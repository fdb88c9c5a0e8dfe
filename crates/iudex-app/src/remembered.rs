//! What is remembered between runs about servers and the sandbox, so that nothing is probed twice.
//!
//! Never: anything that a run's outcome depends on. What is remembered may be lost at any time.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use iudex_model::ModelFacts;
use serde::{Deserialize, Serialize};

/// Facts older than this are asked for again: a server may have been started anew with another window.
const FACTS_AGE: Duration = Duration::from_hours(1);

#[derive(Debug, Default, Serialize, Deserialize)]
struct Content {
    #[serde(default)]
    models: BTreeMap<String, Remembered>,
    #[serde(default)]
    sandbox: Option<SandboxMemory>,
}

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Remembered {
    seconds: u64,
    facts: ModelFacts,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct SandboxMemory {
    /// Everything that the answer depends on: user, kernel, program.
    key: String,
    program: PathBuf,
}

/// The file of memories.
#[derive(Debug)]
pub(crate) struct Memory {
    file: PathBuf,
}

impl Memory {
    pub(crate) fn new(state: &Path) -> Self {
        Self { file: state.join("remembered.json") }
    }

    /// The facts about a model, when they are young enough.
    pub(crate) fn facts(&self, base_url: &str, model: &str) -> Option<ModelFacts> {
        let remembered = self.load().models.remove(&key(base_url, model))?;
        let age = now().saturating_sub(remembered.seconds);
        (age < FACTS_AGE.as_secs()).then_some(remembered.facts)
    }

    /// The address under which a model was last found.
    pub(crate) fn address_of(&self, model: &str) -> Option<String> {
        let content = self.load();
        content
            .models
            .into_values()
            .filter(|entry| entry.facts.name == model)
            .max_by_key(|entry| entry.seconds)
            .map(|entry| entry.facts.address)
    }

    pub(crate) fn keep_facts(&self, facts: &ModelFacts) {
        let mut content = self.load();
        let remembered = Remembered { seconds: now(), facts: facts.clone() };
        content.models.insert(key(&facts.address, &facts.name), remembered);
        self.store(&content);
    }

    /// The sandbox program that worked here, when nothing that it depends on has changed.
    pub(crate) fn sandbox(&self, key: &str) -> Option<PathBuf> {
        self.load().sandbox.filter(|memory| memory.key == key).map(|memory| memory.program)
    }

    pub(crate) fn keep_sandbox(&self, key: &str, program: &Path) {
        let mut content = self.load();
        content.sandbox = Some(SandboxMemory { key: key.to_owned(), program: program.to_owned() });
        self.store(&content);
    }

    fn load(&self) -> Content {
        std::fs::read(&self.file).ok().and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// Written beside and renamed, so that two runs never read half a file. A failure costs a probe, no more.
    fn store(&self, content: &Content) {
        let Ok(bytes) = serde_json::to_vec_pretty(content) else { return };
        let beside = self.file.with_extension(format!("json.{}", std::process::id()));
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&beside);
        if written.and_then(|mut file| file.write_all(&bytes)).is_ok() {
            let _ = std::fs::rename(&beside, &self.file);
        }
    }
}

fn key(base_url: &str, model: &str) -> String {
    format!("{base_url} {model}")
}

fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
