//! Says what works on this machine and what to do about the rest.

use std::ffi::OsStr;
use std::path::Path;
use std::process::Command;

use iudex_exec::Backend;
use iudex_model::{ChatModel as _, OpenAiModel, OpenAiSettings, Timeouts, discover};
use serde::Serialize;

use crate::config::Config;
use crate::paths::Paths;

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Examined {
    /// What.
    pub name: String,
    /// Whether it will do.
    pub state: State,
    /// What was found.
    pub found: String,
    /// What to do, when something is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub advice: Option<String>,
}

/// Whether a thing will do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// It works.
    Good,
    /// It works in part.
    Weak,
    /// iudex cannot run without it.
    Bad,
}

/// Looks at everything that a run needs.
pub async fn examine(directory: &Path, config: &Config, paths: &Paths) -> Vec<Examined> {
    // What stands in the project may be the work of an agent.
    let path = iudex_exec::path_outside(directory);
    let sandbox = if config.run.sandbox.value { sandbox(&path) } else { switched_off(config) };
    let mut all = vec![program("git", &path), program("bash", &path), sandbox, ledger(paths)];
    all.push(descendants());
    all.push(environment());
    all.extend(models(config, paths).await);
    all
}

/// True when a run could start.
pub fn is_ready(examined: &[Examined]) -> bool {
    examined.iter().all(|one| one.state != State::Bad)
}

/// A check may need a variable that looks like a secret; that it does not get it should be no riddle.
fn environment() -> Examined {
    let withheld = iudex_exec::withheld(std::env::vars_os());
    if withheld.is_empty() {
        return good("environment", "nothing is withheld from commands");
    }
    good("environment", format!("withheld from commands, since it looks like secrets: {}", withheld.join(", ")))
}

fn program(name: &str, path: &OsStr) -> Examined {
    match Command::new(name).arg("--version").env("PATH", path).output() {
        Ok(output) if output.status.success() => {
            let text = String::from_utf8_lossy(&output.stdout);
            good(name, text.lines().next().unwrap_or_default())
        }
        Ok(output) => bad(name, crate::setup::exit_words(output.status), &format!("install {name} anew")),
        Err(error) => bad(name, error.to_string(), &format!("install {name} (apt-get install {name})")),
    }
}

fn switched_off(config: &Config) -> Examined {
    Examined {
        name: "sandbox".to_owned(),
        state: State::Weak,
        found: format!("switched off ({})", config.run.sandbox.source),
        advice: Some("commands can read and change all that you can; remove sandbox = false".to_owned()),
    }
}

fn sandbox(path: &OsStr) -> Examined {
    match iudex_exec::detect_in(path) {
        Ok(Backend::Bubblewrap { program }) => good("sandbox", format!("bubblewrap ({})", program.display())),
        Ok(Backend::Landlock) => Examined {
            name: "sandbox".to_owned(),
            state: State::Weak,
            found: "Landlock: commands have no loopback of their own, and .git is restored after each command"
                .to_owned(),
            advice: Some("install bubblewrap (apt-get install bubblewrap)".to_owned()),
        },
        Ok(Backend::None) | Err(_) => {
            let found = match iudex_exec::detect_in(path) {
                Err(error) => error.to_string(),
                Ok(_) => "none".to_owned(),
            };
            bad("sandbox", found, "install bubblewrap (apt-get install bubblewrap), or use --no-sandbox")
        }
    }
}

fn descendants() -> Examined {
    if cfg!(target_os = "linux") {
        good("processes", "every descendant of a command is owned")
    } else {
        Examined {
            name: "processes".to_owned(),
            state: State::Weak,
            found: "only the process group of a command is owned here".to_owned(),
            advice: Some("a command that starts a daemon may leave it behind".to_owned()),
        }
    }
}

fn ledger(paths: &Paths) -> Examined {
    match crate::paths::create_private(&paths.state)
        .map_err(|refusal| refusal.to_string())
        .and_then(|()| iudex_ledger::Ledger::open(&paths.state).map_err(|error| error.to_string()))
    {
        Ok(_) => good("ledger", paths.state.display().to_string()),
        Err(error) => bad("ledger", error, "make the state directory writable, or set XDG_STATE_HOME"),
    }
}

async fn models(config: &Config, paths: &Paths) -> Vec<Examined> {
    let mut all = Vec::new();
    let key = crate::choice::key(config).unwrap_or_else(|refusal| {
        all.push(bad("key", refusal.message, &refusal.hint.unwrap_or_default()));
        None
    });
    let mut servers: Vec<(String, String, Vec<String>)> = discover(crate::choice::ports(paths).as_deref())
        .await
        .into_iter()
        .map(|server| (server.kind, server.base_url, server.models))
        .collect();
    if let Some(base_url) = &config.model.base_url.value
        && !servers.iter().any(|(_, address, _)| address == base_url)
    {
        match iudex_model::list_models(base_url, key.as_deref(), config.model.ca_file.value.as_deref()).await {
            Ok(models) => servers.push(("configured".to_owned(), base_url.clone(), models)),
            Err(error) => {
                all.push(bad("model", format!("{base_url}: {error}"), "start that server, or change base-url"));
            }
        }
    } else if servers.is_empty() {
        all.push(bad("model", "no server answers", "run `iudex setup`, or start your own server"));
    }
    for (kind, base_url, models) in servers {
        // The key belongs to the configured address alone.
        let key = key.as_ref().filter(|_| crate::choice::is_configured(&base_url, config));
        for model in models {
            all.push(examine_model(config, &kind, &base_url, model, key.cloned()).await);
        }
    }
    all
}

async fn examine_model(config: &Config, kind: &str, base_url: &str, model: String, key: Option<String>) -> Examined {
    let opened = OpenAiModel::open(OpenAiSettings {
        base_url: base_url.to_owned(),
        model: model.clone(),
        api_key: key,
        window: config.model.context.value,
        price: None,
        timeouts: Timeouts { max_retries: 0, ..Timeouts::default() },
        ca_file: config.model.ca_file.value.clone(),
        remembered: None,
    })
    .await;
    let opened = match opened {
        Ok(opened) => opened,
        Err(error) => {
            return bad("model", format!("{model} ({kind}, {base_url}): {error}"), "look at the server's log");
        }
    };
    let facts = opened.facts();
    let format = if facts.enforces_schema { "json (enforced)" } else { "native or text" };
    let found =
        format!("{model} ({kind}, {base_url}), window {} ({}), format {format}", facts.window, facts.window_source);
    if facts.window < 8192 {
        Examined {
            name: "model".to_owned(),
            state: State::Weak,
            found,
            advice: Some("start the server with a window of 8,192 tokens or more".to_owned()),
        }
    } else {
        good("model", found)
    }
}

fn good(name: &str, found: impl Into<String>) -> Examined {
    Examined { name: name.to_owned(), state: State::Good, found: found.into(), advice: None }
}

fn bad(name: &str, found: impl Into<String>, advice: &str) -> Examined {
    Examined { name: name.to_owned(), state: State::Bad, found: found.into(), advice: Some(advice.to_owned()) }
}
