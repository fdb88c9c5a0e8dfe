//! The configuration: `iudex.toml` of the project, the user's `config.toml`, the environment, flags; each value with
//! its source.
//!
//! Files are read once. Never: a loosening value of a project that the user does not trust.

mod convert;
mod duration;
mod file;
pub(crate) mod find;
mod keys;
mod overrides;
mod resolve;
mod source;

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::Value;

use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::trust::{AgentsMd, Standing, TrustStore};

pub use duration::{HumanDuration, NoDuration};
use keys::Raw;
pub use keys::{AgentConfig, GatesConfig, KeyReference, ModelConfig, RunConfig, key_reference};
pub use overrides::Overrides;
pub use resolve::LooseKey;
use resolve::{ReadFile, Resolver};
pub(crate) use source::path_as_text;
pub use source::{ConfigLine, Source, Sourced};

/// The name of the project's configuration file.
pub const PROJECT_FILE: &str = "iudex.toml";

/// The whole configuration, resolved and validated.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// `[run]`.
    pub run: RunConfig,
    /// `[gates]`.
    pub gates: GatesConfig,
    /// `[model]`.
    pub model: ModelConfig,
    /// `[agent]`.
    pub agent: AgentConfig,
    /// Configured checks that `--no-config-gates` left out. The outcome says so.
    pub left_out_checks: Vec<String>,
    /// The user's file, when there is one.
    pub user_file: Option<PathBuf>,
    /// The project's file, when there is one.
    pub project: Option<ProjectFile>,
    /// The project's AGENTS.md, when the user trusts it.
    pub agents_md: AgentsMd,
}

/// The project's configuration file and how far it may be used.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProjectFile {
    /// Where it is, symbolic links resolved.
    #[serde(serialize_with = "source::path_as_text")]
    pub path: PathBuf,
    /// Whether the user trusts it.
    pub standing: Standing,
    /// Everything in it that needs trust.
    pub loose: Vec<LooseKey>,
    /// What of it would take effect and is held back until the user trusts the file.
    pub held_back: Vec<LooseKey>,
}

/// What the configuration is read from.
pub struct Inputs<'a> {
    /// The work directory.
    pub directory: &'a Path,
    /// The places of iudex.
    pub paths: &'a Paths,
    /// The flags.
    pub overrides: &'a Overrides,
    /// The environment.
    pub environment: &'a dyn Fn(&str) -> Option<OsString>,
}

/// The configuration for a launch.
///
/// # Errors
/// [`Refusal`] for what [`inspect_from`] refuses, and for a project file that would loosen something and is not trusted.
pub fn load_from(inputs: &Inputs<'_>) -> Result<Config, Refusal> {
    let config = inspect_from(inputs)?;
    match config.project.as_ref().and_then(ProjectFile::refusal) {
        Some(refusal) => Err(refusal),
        None => Ok(config),
    }
}

/// The configuration to look at.
///
/// # Errors
/// [`Refusal`] when a file cannot be read or holds an unknown key or a value that breaks a rule, with file and line.
pub fn inspect_from(inputs: &Inputs<'_>) -> Result<Config, Refusal> {
    let Inputs { directory, paths, overrides, environment } = *inputs;
    let directory = directory.canonicalize().map_err(|error| {
        Refusal::usage(
            format!("the directory {} cannot be reached: {error}", directory.display()),
            "name one that is there",
        )
    })?;
    let trust = TrustStore::open(paths)?;
    let user = read_user_file(paths)?;
    let mut standing = Standing::Unknown;
    let project = match find::find_upwards(&directory, &paths.home, PROJECT_FILE) {
        Some(found) => {
            let bytes = read(&found)?;
            let path = found.canonicalize().unwrap_or(found);
            standing = trust.standing(&path, &bytes);
            Some(file::parse(&path, &bytes)?)
        }
        None => None,
    };
    let flags = overrides.to_raw();
    let variables = overrides::from_environment(environment)?;
    let until = match overrides.until_commands() {
        commands if commands.0.is_empty() => Vec::new(),
        commands => convert::commands(&commands).map_err(|wrong| Refusal {
            exit_code: 2,
            message: format!("`--until` is {}; it {}", wrong.value.unwrap_or_default(), wrong.rule),
            hint: wrong.hint,
        })?,
    };

    let trusted = standing == Standing::Trusted;
    let resolved = resolve_all(&flags, &variables, project.as_ref(), user.as_ref(), trusted)?;
    let Resolved { run, mut gates, mut model, agent, loose, mut held_back } = resolved;
    let mut left_out_checks = Vec::new();
    if overrides.no_config_gates {
        // The user leaves them out knowingly; so the project's need no trust, and the outcome names all of them.
        let project_checks = held_back.iter().filter(|key| key.key == "gates.check");
        left_out_checks = project_checks.flat_map(|key| texts(&key.value)).collect();
        left_out_checks.extend(
            gates.check.value.iter().filter(|command| !left_out_checks.contains(command)).cloned().collect::<Vec<_>>(),
        );
        held_back.retain(|key| key.key != "gates.check");
        gates.check = Sourced { value: Vec::new(), source: Source::Flag { name: "--no-config-gates".to_owned() } };
    }
    if !until.is_empty() && gates.check.value.is_empty() {
        gates.check.source = Source::Flag { name: "--until".to_owned() };
    }
    for command in until {
        if !gates.check.value.contains(&command) {
            gates.check.value.push(command);
        }
    }
    settle_ca_file(&mut model, &directory)?;
    check_prices(&model)?;
    Ok(Config {
        run,
        gates,
        model,
        agent,
        left_out_checks,
        user_file: user.map(|file| file.path),
        project: project.map(|file| ProjectFile { path: file.path, standing, loose, held_back }),
        agents_md: AgentsMd::read(&directory, paths, &trust),
    })
}

struct Resolved {
    run: RunConfig,
    gates: GatesConfig,
    model: ModelConfig,
    agent: AgentConfig,
    loose: Vec<LooseKey>,
    held_back: Vec<LooseKey>,
}

fn resolve_all(
    flags: &Raw,
    environment: &Raw,
    project: Option<&ReadFile>,
    user: Option<&ReadFile>,
    trusted: bool,
) -> Result<Resolved, Refusal> {
    let mut resolver =
        Resolver { flags, environment, project, user, trusted, loose: Vec::new(), held_back: Vec::new() };
    let run = RunConfig::resolve(&mut resolver, |raw| &raw.run)?;
    let gates = GatesConfig::resolve(&mut resolver, |raw| &raw.gates)?;
    let model = ModelConfig::resolve(&mut resolver, |raw| &raw.model)?;
    let agent = AgentConfig::resolve(&mut resolver, |raw| &raw.agent)?;
    let Resolver { loose, held_back, .. } = resolver;
    Ok(Resolved { run, gates, model, agent, loose, held_back })
}

/// What these bytes, as a project's configuration, would need trust for.
pub(crate) fn loose_keys(path: &Path, bytes: &[u8], paths: &Paths) -> Result<Vec<LooseKey>, Refusal> {
    let project = file::parse(path, bytes)?;
    let user = read_user_file(paths)?;
    let nothing = Raw::default();
    Ok(resolve_all(&nothing, &nothing, Some(&project), user.as_ref(), false)?.loose)
}

fn read_user_file(paths: &Paths) -> Result<Option<ReadFile>, Refusal> {
    match paths.config.symlink_metadata() {
        Ok(_) => Ok(Some(file::parse(&paths.config, &read(&paths.config)?)?)),
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => Ok(None),
        Err(error) => Err(Refusal::usage(
            format!("{} cannot be reached: {error}", paths.config.display()),
            "make it readable for you, or remove it",
        )),
    }
}

fn read(file: &Path) -> Result<Vec<u8>, Refusal> {
    find::read_bounded(file)
        .map_err(|what| Refusal::usage(format!("{} {what}", file.display()), "make it a readable file, or remove it"))
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// A relative path is meant from the folder of the file that names it.
fn settle_ca_file(model: &mut ModelConfig, directory: &Path) -> Result<(), Refusal> {
    let Some(named) = &model.ca_file.value else { return Ok(()) };
    let folder = match &model.ca_file.source {
        Source::User { path, .. } | Source::Project { path, .. } => path.parent().unwrap_or(directory),
        _ => directory,
    };
    let file = folder.join(named);
    if !file.is_file() {
        return Err(Refusal::usage(
            format!("{}: `model.ca-file` names {}, which is no file", model.ca_file.source, file.display()),
            "name a PEM file; a relative path is meant from the folder of the configuration file",
        ));
    }
    model.ca_file.value = Some(file);
    Ok(())
}

fn check_prices(model: &ModelConfig) -> Result<(), Refusal> {
    let (there, missing) = match (&model.price_prompt, &model.price_output) {
        (Sourced { value: Some(_), source }, Sourced { value: None, .. }) => (source, "price-output"),
        (Sourced { value: None, .. }, Sourced { value: Some(_), source }) => (source, "price-prompt"),
        _ => return Ok(()),
    };
    Err(Refusal::usage(
        format!("{there}: one of the two prices is set, `model.{missing}` is not"),
        "set both, in US dollars for a million tokens; a price that is half known is unknown",
    ))
}

impl ProjectFile {
    /// Why nothing may be launched: what is held back, and how to go on.
    pub fn refusal(&self) -> Option<Refusal> {
        if self.held_back.is_empty() {
            return None;
        }
        let keys: Vec<String> =
            self.held_back.iter().map(|key| format!("  {} = {}  (line {})", key.key, key.value, key.line)).collect();
        let standing = match self.standing {
            Standing::Changed => "has changed since you trusted it",
            Standing::Trusted | Standing::Unknown => "is not trusted",
        };
        let mut hint = "look at the file, then run `iudex trust`".to_owned();
        if self.held_back.iter().any(|key| key.key == "gates.check") {
            hint.push_str("; or leave its checks out with --no-config-gates, and the outcome says so");
        }
        Some(Refusal::usage(format!("{} {standing} and sets\n{}", self.path.display(), keys.join("\n")), hint))
    }
}

impl Config {
    /// The configuration for a launch, with the environment of this process.
    ///
    /// # Errors
    /// [`Refusal`] as [`load_from`].
    pub fn load(directory: &Path, overrides: &Overrides, paths: &Paths) -> Result<Self, Refusal> {
        load_from(&Inputs { directory, paths, overrides, environment: &|name| std::env::var_os(name) })
    }

    /// The configuration to look at (`iudex config`, `iudex doctor`), with the environment of this process. Values of
    /// a project that is not trusted are held back and named; nothing may be launched with it.
    ///
    /// # Errors
    /// [`Refusal`] as [`inspect_from`].
    pub fn inspect(directory: &Path, overrides: &Overrides, paths: &Paths) -> Result<Self, Refusal> {
        inspect_from(&Inputs { directory, paths, overrides, environment: &|name| std::env::var_os(name) })
    }
}

/// Every value and where it came from, in the order of the sections. Secrets are never shown.
pub fn config_lines(config: &Config) -> Vec<ConfigLine> {
    let mut lines = config.run.lines();
    lines.extend(config.gates.lines());
    lines.extend(config.model.lines());
    lines.extend(config.agent.lines());
    for line in &mut lines {
        let held_back = config.project.iter().flat_map(|project| &project.held_back).find(|key| key.key == line.key);
        line.note = held_back.map(|key| format!("{} of the project is held back: `iudex trust`", key.value));
    }
    if !config.left_out_checks.is_empty()
        && let Some(line) = lines.iter_mut().find(|line| line.key == "gates.check")
    {
        line.note = Some(format!("left out: {}", config.left_out_checks.join("; ")));
    }
    lines
}
