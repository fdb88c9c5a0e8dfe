//! Which source wins, where files are found, and what `iudex config` shows.

use std::fs;
use std::time::Duration;

use iudex_app::config::{self, Source};
use iudex_app::{Overrides, Paths};
use iudex_core::{PromptStrategy, Usd};
use iudex_model::ActionFormat;
use serde_json::json;

use crate::Machine;

#[test]
fn without_files_every_value_is_the_default() {
    let machine = Machine::new();
    let config = machine.load(&Overrides::default()).unwrap();
    assert!(config::config_lines(&config).iter().all(|line| line.source == Source::Default));
    assert_eq!(config.run.max_retries.value, 3);
    assert_eq!(config.run.max_steps.value, 50);
    assert_eq!(config.run.max_tokens.value, None);
    assert_eq!(config.run.timeout.value, None);
    assert!(!config.run.net.value && config.run.sandbox.value && !config.run.require_gate.value);
    assert_eq!((config.run.keep_days.value, config.run.keep_newest.value), (30, 20));
    assert_eq!(config.gates.check.value, Vec::<String>::new());
    assert_eq!(config.gates.check_timeout.value, Duration::from_mins(10));
    assert_eq!(config.model.first_byte_timeout.value, Duration::from_mins(10));
    assert_eq!(config.model.token_timeout.value, Duration::from_mins(2));
    assert_eq!(config.model.retry_time.value, Duration::from_mins(5));
    assert_eq!(config.model.max_retries.value, 5);
    assert!((config.model.temperature.value - 0.2).abs() < f32::EPSILON);
    assert_eq!(config.agent.stuck_threshold.value, 3);
    assert_eq!(config.agent.bash_timeout.value, Duration::from_mins(2));
    assert_eq!(config.agent.strategy.value, None);
}

#[test]
fn flags_win_over_environment_over_project_over_user_over_default() {
    let mut machine = Machine::new();
    let name = |machine: &Machine, flag: Option<&str>| {
        let overrides = Overrides { model: flag.map(str::to_owned), ..Overrides::default() };
        let name = machine.load(&overrides).unwrap().model.name;
        (name.value, name.source.to_string())
    };
    let got = |value: &str, source: String| (Some(value.to_owned()), source);
    assert_eq!(name(&machine, None), (None, "default".to_owned()));
    machine.write_user("\n[model]\nname = \"of-user\"\n");
    assert_eq!(name(&machine, None), got("of-user", format!("{}:3", machine.paths.config.display())));
    machine.write_project("[model]\nname = \"of-project\"\n");
    machine.trust();
    assert_eq!(name(&machine, None), got("of-project", format!("{}:2", machine.project_file().display())));
    machine.environment.insert("IUDEX_MODEL".to_owned(), "of-environment".into());
    assert_eq!(name(&machine, None), got("of-environment", "IUDEX_MODEL".to_owned()));
    assert_eq!(name(&machine, Some("of-flag")), got("of-flag", "--model".to_owned()));
    machine.environment.insert("IUDEX_MODEL".to_owned(), "".into());
    assert_eq!(name(&machine, None).0.as_deref(), Some("of-project"));
}

#[test]
fn every_flag_reaches_its_key() {
    let machine = Machine::new();
    let overrides = Overrides {
        until: vec!["make test".to_owned(), "make lint".to_owned(), "make test".to_owned()],
        no_config_gates: false,
        check_timeout: Some("3m".to_owned()),
        model: Some("m".to_owned()),
        max_retries: Some(0),
        max_steps: Some(9),
        max_tokens: Some(u64::MAX),
        max_cost: Some(0.0),
        timeout: Some("1h30m".to_owned()),
        seed: Some(7),
        net: true,
        no_sandbox: true,
    };
    let config = machine.load(&overrides).unwrap();
    assert_eq!(config.gates.check.value, ["make test", "make lint"]);
    assert_eq!(config.gates.check.source.to_string(), "--until");
    assert_eq!(config.gates.check_timeout.value, Duration::from_mins(3));
    assert_eq!(config.run.max_retries.value, 0);
    assert_eq!(config.run.max_steps.value, 9);
    assert!(config.run.max_tokens.value > Some(1 << 60));
    assert_eq!(config.run.max_cost.value, Some(Usd { micros: 0 }));
    assert_eq!(config.run.timeout.value, Some(Duration::from_mins(90)));
    assert_eq!(config.model.seed.value, Some(7));
    assert!(config.run.net.value && !config.run.sandbox.value);
    assert_eq!(config.run.sandbox.source.to_string(), "--no-sandbox");
}

#[test]
fn until_adds_to_configured_checks() {
    let machine = Machine::new();
    machine.write_user("[gates]\ncheck = \"cargo test\"\n");
    let overrides = Overrides { until: vec!["make".to_owned(), "cargo test".to_owned()], ..Overrides::default() };
    assert_eq!(machine.load(&overrides).unwrap().gates.check.value, ["cargo test", "make"]);
    let overrides = Overrides { no_config_gates: true, ..overrides };
    let config = machine.load(&overrides).unwrap();
    assert_eq!(config.gates.check.value, ["make", "cargo test"]);
    assert_eq!(config.left_out_checks, ["cargo test"]);
}

#[test]
fn all_values_of_a_file_are_read() {
    let machine = Machine::new();
    fs::write(machine.paths.config.with_file_name("ca.pem"), "").unwrap();
    machine.write_user(
        "[model]\nformat = \"native\"\ncontext = 8192\ntemperature = 0\nca-file = \"ca.pem\"\nprice-prompt = 1\n\
         price-output = 2.5\nbase-url = \"http://localhost:1234/v1/\"\napi-key-env = \"MY_KEY\"\n\
         [agent]\nstrategy = \"with-files\"\nbash-timeout = \"250ms\"\n",
    );
    let config = machine.load(&Overrides::default()).unwrap();
    assert_eq!(config.model.format.value, Some(ActionFormat::Native));
    assert_eq!(config.model.context.value, Some(8192));
    assert_eq!(config.model.base_url.value.as_deref(), Some("http://localhost:1234/v1"));
    assert_eq!(config.model.ca_file.value, Some(machine.paths.config.with_file_name("ca.pem")));
    assert_eq!(config.model.price_output.value, Some(Usd { micros: 2_500_000 }));
    assert_eq!(config.agent.strategy.value, Some(PromptStrategy::WithFiles));
    assert_eq!(config.agent.bash_timeout.value, Duration::from_millis(250));
}

#[test]
fn the_project_file_is_found_upwards_within_the_repository_only() {
    let machine = Machine::new();
    let below = machine.project().join("a/b");
    fs::create_dir_all(&below).unwrap();
    let find = |directory: &std::path::Path| {
        let overrides = Overrides::default();
        let inputs = config::Inputs { directory, paths: &machine.paths, overrides: &overrides, environment: &|_| None };
        config::load_from(&inputs).unwrap().project.map(|project| project.path)
    };
    // Above the repository, and in the home directory: neither is the project's.
    let home = machine.paths.home.clone();
    fs::write(home.join("iudex.toml"), "[run]\nmax-steps = 1\n").unwrap();
    assert_eq!(find(&below), None);
    machine.write_project("");
    assert_eq!(find(&below), Some(machine.project_file()));
    fs::write(machine.project().join("a/iudex.toml"), "").unwrap();
    assert_eq!(find(&below), Some(machine.project().join("a/iudex.toml")));
    // A nested repository is its own project.
    fs::create_dir(below.join(".git")).unwrap();
    assert_eq!(find(&below), None);
    // Without a repository the search ends below the home directory.
    let plain = home.join("plain/sub");
    fs::create_dir_all(&plain).unwrap();
    assert_eq!(find(&plain), None);
    fs::write(home.join("plain/iudex.toml"), "").unwrap();
    assert_eq!(find(&plain), Some(home.join("plain/iudex.toml")));
}

#[test]
fn a_home_behind_a_link_ends_the_search_too() {
    let machine = Machine::new();
    let root = machine.folder.path().canonicalize().unwrap();
    std::os::unix::fs::symlink(&machine.paths.home, root.join("link")).unwrap();
    fs::write(machine.paths.home.join("iudex.toml"), "[run]\nmax-steps = 1\n").unwrap();
    fs::remove_dir(machine.project().join(".git")).unwrap();
    let paths = Paths { home: root.join("link"), ..machine.paths.clone() };
    let config = iudex_app::Config::load(&machine.project(), &Overrides::default(), &paths).unwrap();
    assert_eq!(config.project, None);
}

#[test]
fn the_reference_has_every_key_with_its_default() {
    let machine = Machine::new();
    let lines = config::config_lines(&machine.inspect());
    let shown: Vec<_> = lines.into_iter().map(|line| (line.key, line.value)).collect();
    let reference = config::key_reference();
    assert!(reference.iter().all(|key| key.about.ends_with('.')), "{reference:?}");
    let listed: Vec<_> = reference.into_iter().map(|key| (key.key, key.default)).collect();
    assert_eq!(listed, shown);
}

#[test]
fn the_key_is_never_held_or_shown() {
    let mut machine = Machine::new();
    machine.write_user("[model]\napi-key-env = \"MY_KEY\"\n");
    machine.environment.insert("MY_KEY".to_owned(), "sk-secret".into());
    machine.environment.insert("IUDEX_API_KEY".to_owned(), "sk-other-secret".into());
    let config = machine.load(&Overrides::default()).unwrap();
    assert_eq!(config.model.api_key_env.value.as_deref(), Some("IUDEX_API_KEY"));
    let lines = config::config_lines(&config);
    let texts: Vec<String> = lines.iter().map(ToString::to_string).collect();
    let shown = texts.join("\n") + &serde_json::to_string(&lines).unwrap();
    assert!(!shown.contains("secret") && !format!("{config:?}").contains("secret"));
    machine.environment.remove("IUDEX_API_KEY");
    assert_eq!(machine.load(&Overrides::default()).unwrap().model.api_key_env.value.as_deref(), Some("MY_KEY"));
}

#[test]
fn config_shows_each_value_and_its_source() {
    let machine = Machine::new();
    machine.write_user("[run]\nmax-cost = 0.25\ntimeout = \"90s\"\n");
    machine.write_project("[gates]\ncheck = [\"cargo test\"]\n");
    let lines = config::config_lines(&machine.inspect());
    let line = |key: &str| lines.iter().find(|line| line.key == key).unwrap();
    let user = machine.paths.config.display();
    assert_eq!(line("run.max-steps").to_string(), "run.max-steps = 50  (default)");
    assert_eq!(line("run.max-cost").to_string(), format!("run.max-cost = 0.25  ({user}:2)"));
    assert_eq!(line("run.timeout").to_string(), format!("run.timeout = \"1m30s\"  ({user}:3)"));
    assert_eq!(line("model.temperature").to_string(), "model.temperature = 0.2  (default)");
    assert_eq!(line("model.seed").to_string(), "model.seed (not set)");
    assert_eq!(
        line("gates.check").to_string(),
        "gates.check = []  (default)  [[\"cargo test\"] of the project is held back: `iudex trust`]"
    );
    assert_eq!(
        serde_json::to_value(line("run.timeout")).unwrap(),
        json!({
            "key": "run.timeout",
            "value": "1m30s",
            "source": {"kind": "user", "path": user.to_string(), "line": 3},
        })
    );
}
