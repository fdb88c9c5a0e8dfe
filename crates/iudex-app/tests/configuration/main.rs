//! The configuration, over real files.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod bad_files;
mod sources;
mod trusting;

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::path::PathBuf;

use iudex_app::config::{self, Inputs};
use iudex_app::{Config, Overrides, Paths, Refusal};

/// A home, the places of iudex, and a project that is a repository.
struct Machine {
    folder: tempfile::TempDir,
    paths: Paths,
    environment: HashMap<String, OsString>,
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().canonicalize().unwrap();
        let paths = Paths::below(&root);
        let machine = Self { folder, paths, environment: HashMap::new() };
        fs::create_dir_all(machine.project().join(".git")).unwrap();
        fs::create_dir_all(machine.paths.config.parent().unwrap()).unwrap();
        machine
    }

    fn project(&self) -> PathBuf {
        self.folder.path().canonicalize().unwrap().join("home/project")
    }

    fn project_file(&self) -> PathBuf {
        self.project().join("iudex.toml")
    }

    fn write_project(&self, text: &str) {
        fs::write(self.project_file(), text).unwrap();
    }

    fn write_user(&self, text: &str) {
        fs::write(&self.paths.config, text).unwrap();
    }

    fn trust(&self) {
        iudex_app::trust::plan(&self.project(), &self.paths).unwrap().record(&self.paths).unwrap();
    }

    fn load(&self, overrides: &Overrides) -> Result<Config, Refusal> {
        self.read(overrides, config::load_from)
    }

    fn inspect(&self) -> Config {
        self.read(&Overrides::default(), config::inspect_from).unwrap()
    }

    fn read(&self, overrides: &Overrides, with: fn(&Inputs<'_>) -> Result<Config, Refusal>) -> Result<Config, Refusal> {
        let environment = |name: &str| self.environment.get(name).cloned();
        with(&Inputs { directory: &self.project(), paths: &self.paths, overrides, environment: &environment })
    }
}
