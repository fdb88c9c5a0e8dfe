//! Which model a run uses, and opening it.

use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use iudex_model::{ChatModel, Found, ModelError, OpenAiModel, OpenAiSettings, Price, ScriptModel, Timeouts, discover};

use crate::config::Config;
use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::remembered::Memory;

/// How long a server that was remembered may take to accept a connection before the others are asked.
const KNOCK: Duration = Duration::from_millis(300);

/// A model by name and address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelChoice {
    /// The name, or the file of a script.
    pub name: String,
    /// The base address; `None` for a script.
    pub base_url: Option<String>,
    /// Set when iudex chose it itself, to be said.
    pub chosen_because: Option<String>,
}

impl ModelChoice {
    /// For people: `name at address`.
    pub fn describe(&self) -> String {
        match &self.base_url {
            Some(address) => format!("{} at {address}", self.name),
            None => format!("script {}", self.name),
        }
    }
}

/// Chooses the model that the configuration names, or the only one that a server of this machine has.
pub(crate) async fn choose(config: &Config, paths: &Paths) -> Result<ModelChoice, Refusal> {
    let name = config.model.name.value.clone();
    if let Some(file) = name.as_deref().and_then(|name| name.strip_prefix("script:")) {
        return Ok(ModelChoice { name: file.to_owned(), base_url: None, chosen_because: None });
    }
    if let Some(base_url) = &config.model.base_url.value {
        let base_url = base_url.trim_end_matches('/').to_owned();
        let name = match name {
            Some(name) => name,
            None => only_model_at(config, &base_url).await?,
        };
        return Ok(ModelChoice { name, base_url: Some(base_url), chosen_because: None });
    }
    match name {
        Some(name) => find_by_name(name, paths).await,
        None => only_model_of_machine(paths).await,
    }
}

async fn only_model_of_machine(paths: &Paths) -> Result<ModelChoice, Refusal> {
    let servers = discover(ports(paths).as_deref()).await;
    let mut all: Vec<(String, &Found)> = Vec::new();
    for server in &servers {
        all.extend(server.models.iter().map(|model| (model.clone(), server)));
    }
    match &all[..] {
        [] => Err(Refusal::no_model(
            "no model server answers on this machine (llama.cpp 8080, Ollama 11434, LM Studio 1234, vLLM 8000)",
            "set up a small local model with `iudex setup`, start your own server, or name one under [model] in \
             ~/.config/iudex/config.toml",
        )),
        [(model, server)] => Ok(ModelChoice {
            name: model.clone(),
            base_url: Some(server.base_url.clone()),
            chosen_because: Some(format!("the only model that answers on this machine ({})", server.kind)),
        }),
        many => {
            let list: Vec<String> = many
                .iter()
                .map(|(model, server)| format!("  --model {model}   ({}, {})", server.kind, server.base_url))
                .collect();
            Err(Refusal::usage(
                format!("several models answer on this machine:\n{}", list.join("\n")),
                "choose one with --model, or under [model] in ~/.config/iudex/config.toml",
            ))
        }
    }
}

/// Finds the server that has a model: the one where it was last, when it still answers, else any on the usual ports.
async fn find_by_name(name: String, paths: &Paths) -> Result<ModelChoice, Refusal> {
    if let Some(address) = Memory::new(&paths.state).local_address_of(&name)
        && accepts_connections(&address).await
    {
        let because = Some("where this model answered within the last hour".to_owned());
        return Ok(ModelChoice { name, base_url: Some(address), chosen_because: because });
    }
    let servers = discover(ports(paths).as_deref()).await;
    let having: Vec<&Found> = servers.iter().filter(|server| server.models.contains(&name)).collect();
    match &having[..] {
        [server] => Ok(ModelChoice { name, base_url: Some(server.base_url.clone()), chosen_because: None }),
        [] if servers.is_empty() => Err(Refusal::no_model(
            format!("no model server answers on this machine, so there is no {name}"),
            "start its server, set up a small one with `iudex setup`, or give its address (base-url under [model])",
        )),
        [] => {
            let known: Vec<String> = servers.iter().flat_map(|server| server.models.iter().cloned()).collect();
            let nearest = crate::nearest::nearest(&name, known.iter().map(String::as_str));
            let hint = nearest.map_or_else(
                || format!("the models here are: {}", known.join(", ")),
                |nearest| format!("did you mean --model {nearest}?"),
            );
            Err(Refusal::usage(format!("no server on this machine has the model {name}"), hint))
        }
        several => {
            let addresses: Vec<&str> = several.iter().map(|server| server.base_url.as_str()).collect();
            Err(Refusal::usage(
                format!("several servers have the model {name}: {}", addresses.join(", ")),
                "choose one with base-url under [model] in ~/.config/iudex/config.toml or IUDEX_BASE_URL",
            ))
        }
    }
}

async fn only_model_at(config: &Config, base_url: &str) -> Result<String, Refusal> {
    let models = iudex_model::list_models(
        base_url,
        key_for(base_url, config)?.as_deref(),
        config.model.ca_file.value.as_deref(),
    )
    .await
    .map_err(|error| {
        Refusal::no_model(format!("{base_url} does not tell its models: {error}"), "name the model with --model")
    })?;
    match &models[..] {
        [model] => Ok(model.clone()),
        [] => Err(Refusal::usage(format!("{base_url} has no chat model"), "name the model with --model")),
        many => Err(Refusal::usage(
            format!("{base_url} has several models: {}", many.join(", ")),
            "choose one with --model",
        )),
    }
}

/// The key for a server, which is that of the configured address alone: whatever else listens on a port of this machine
/// never gets it.
pub(crate) fn key_for(base_url: &str, config: &Config) -> Result<Option<String>, Refusal> {
    if is_configured(base_url, config) { key(config) } else { Ok(None) }
}

pub(crate) fn is_configured(base_url: &str, config: &Config) -> bool {
    config
        .model
        .base_url
        .value
        .as_deref()
        .is_some_and(|own| own.trim_end_matches('/') == base_url.trim_end_matches('/'))
}

/// The key: `IUDEX_API_KEY`, else the variable that the configuration names.
pub(crate) fn key(config: &Config) -> Result<Option<String>, Refusal> {
    let own = std::env::var("IUDEX_API_KEY").unwrap_or_default();
    if !own.trim().is_empty() {
        return Ok(Some(own.trim().to_owned()));
    }
    let Some(variable) = &config.model.api_key_env.value else { return Ok(None) };
    match std::env::var(variable) {
        Ok(key) if !key.trim().is_empty() => Ok(Some(key.trim().to_owned())),
        _ => Err(Refusal::usage(
            format!("the variable {variable}, which should hold the key of the model, is not set"),
            format!("export {variable}=…, or change api-key-env under [model]"),
        )),
    }
}

/// A limit on money means nothing while the price is unknown. Local and scripted models cost nothing.
pub(crate) fn refuse_unknown_price(choice: &ModelChoice, config: &Config) -> Result<(), Refusal> {
    let is_free = choice.base_url.as_deref().is_none_or(iudex_model::is_local_address);
    if config.run.max_cost.value.is_none() || is_free || price(config).is_some() {
        return Ok(());
    }
    Err(Refusal::usage(
        format!("--max-cost needs the price of {}, which is unknown", choice.name),
        "set price-prompt and price-output (US dollars per million tokens) under [model], or use --max-tokens",
    ))
}

/// The price, when both parts are known.
fn price(config: &Config) -> Option<Price> {
    Some(Price { prompt: config.model.price_prompt.value?, output: config.model.price_output.value? })
}

fn timeouts(config: &Config) -> Timeouts {
    Timeouts {
        first_byte: config.model.first_byte_timeout.value,
        between_tokens: config.model.token_timeout.value,
        connect: config.model.connect_timeout.value,
        max_retries: config.model.max_retries.value,
        retry_time: config.model.retry_time.value,
    }
}

/// Opens a chosen model.
pub(crate) async fn open(choice: &ModelChoice, config: &Config, paths: &Paths) -> Result<Rc<dyn ChatModel>, Refusal> {
    let Some(base_url) = &choice.base_url else {
        let file = PathBuf::from(&choice.name);
        let model = ScriptModel::open(&file).map_err(|error| {
            Refusal::usage(error.to_string(), "give the path of a scripted model: --model script:FILE")
        })?;
        return Ok(Rc::new(model));
    };
    let memory = Memory::new(&paths.state);
    let settings = OpenAiSettings {
        base_url: base_url.clone(),
        model: choice.name.clone(),
        api_key: key_for(base_url, config)?,
        window: config.model.context.value,
        price: price(config),
        timeouts: timeouts(config),
        ca_file: config.model.ca_file.value.clone(),
        remembered: memory.facts(base_url, &choice.name),
    };
    let model = OpenAiModel::open(settings).await.map_err(|error| cannot_open(&error, choice))?;
    memory.keep_facts(model.facts());
    Ok(Rc::new(model))
}

/// The window, as far as it is known without asking the model for an answer.
pub(crate) async fn known_window(choice: &ModelChoice, config: &Config, paths: &Paths) -> Result<Option<u64>, Refusal> {
    let Some(base_url) = &choice.base_url else {
        return Ok(Some(open(choice, config, paths).await?.facts().window));
    };
    let remembered = Memory::new(&paths.state).facts(base_url, &choice.name);
    Ok(config.model.context.value.or(remembered.map(|facts| facts.window)))
}

fn cannot_open(error: &ModelError, choice: &ModelChoice) -> Refusal {
    Refusal::no_model(
        format!("the model {} cannot be used: {error}", choice.describe()),
        "see `iudex doctor` for what answers on this machine",
    )
}

/// The ports that are asked. `IUDEX_PORTS=8080,9000` replaces the usual ones, for tests and odd set-ups; empty asks
/// none. The server that `iudex setup` started is asked wherever it had to listen.
pub(crate) fn ports(paths: &Paths) -> Option<Vec<u16>> {
    if let Ok(text) = std::env::var("IUDEX_PORTS") {
        return Some(text.split(',').filter_map(|port| port.trim().parse().ok()).collect());
    }
    let own = crate::setup::port(paths)?;
    let mut ports = iudex_model::USUAL_PORTS.to_vec();
    if !ports.contains(&own) {
        ports.push(own);
    }
    Some(ports)
}

async fn accepts_connections(base_url: &str) -> bool {
    let Some(rest) = base_url.strip_prefix("http://") else { return true };
    let host = rest.split('/').next().unwrap_or_default();
    let address = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    matches!(tokio::time::timeout(KNOCK, tokio::net::TcpStream::connect(address)).await, Ok(Ok(_)))
}
