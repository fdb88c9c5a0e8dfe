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

impl Remembered {
    fn is_young(&self) -> bool {
        now().saturating_sub(self.seconds) < FACTS_AGE.as_secs()
    }
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
        remembered.is_young().then_some(remembered.facts)
    }

    /// The address of this machine or its network where a model was found a short while ago. A remote address is never
    /// taken from memory: nothing goes out that nobody asked for.
    pub(crate) fn local_address_of(&self, model: &str) -> Option<String> {
        let content = self.load();
        content
            .models
            .into_values()
            .filter(|entry| entry.facts.name == model && entry.is_young())
            .filter(|entry| iudex_model::is_local_address(&entry.facts.address))
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

#[cfg(test)]
mod tests {
    use super::*;

    fn remember(folder: &Path, address: &str, seconds: u64) -> Option<String> {
        let facts = ModelFacts {
            name: "m".to_owned(),
            address: address.to_owned(),
            window: 8192,
            window_source: "assumed".to_owned(),
            is_local: false,
            is_small: false,
            enforces_schema: false,
            price: None,
        };
        let models = BTreeMap::from([(key(address, "m"), Remembered { seconds, facts })]);
        let memory = Memory::new(folder);
        memory.store(&Content { models, sandbox: None });
        memory.local_address_of("m")
    }

    #[test]
    fn a_remote_or_old_address_is_never_taken_from_memory() {
        let folder = tempfile::tempdir().unwrap();
        let (local, remote) = ("http://127.0.0.1:8080/v1", "https://models.example.com/v1");
        assert_eq!(remember(folder.path(), local, now()).as_deref(), Some(local));
        assert_eq!(remember(folder.path(), remote, now()), None);
        assert_eq!(remember(folder.path(), local, now() - FACTS_AGE.as_secs()), None);
    }
}
