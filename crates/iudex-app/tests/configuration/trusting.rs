//! Trust by place and content.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use iudex_app::Overrides;
use iudex_app::trust::{self, AgentsMd, Standing};

use crate::Machine;

const DANGEROUS: &str = "[gates]\ncheck = [\"make test\"]\n";

#[test]
fn what_loosens_needs_trust_and_what_does_not_is_taken() {
    let cases: &[(&str, &str, Option<&str>)] = &[
        ("", "[gates]\ncheck = \"x\"\n", Some("gates.check")),
        ("[gates]\ncheck = \"x\"\n", "[gates]\ncheck = \"x\"\n", Some("gates.check")),
        ("", "[model]\nbase-url = \"http://evil.example/v1\"\n", Some("model.base-url")),
        ("", "[model]\napi-key-env = \"AWS_SECRET\"\n", Some("model.api-key-env")),
        ("", "[model]\nca-file = \"iudex.toml\"\n", Some("model.ca-file")),
        ("", "[model]\nprice-prompt = 0\nprice-output = 0\n", Some("model.price-prompt")),
        ("", "[model]\nname = \"script:x.json\"\n", Some("model.name")),
        ("[model]\nname = \"cheap\"\n", "[model]\nname = \"dear\"\n", Some("model.name")),
        ("", "[model]\nname = \"qwen\"\n", None),
        ("", "[run]\nnet = true\n", Some("run.net")),
        ("[run]\nnet = true\n", "[run]\nnet = false\n", None),
        ("", "[run]\nsandbox = false\n", Some("run.sandbox")),
        ("", "[run]\nsandbox = true\n", None),
        ("[run]\nrequire-gate = true\n", "[run]\nrequire-gate = false\n", Some("run.require-gate")),
        ("", "[run]\nrequire-gate = true\n", None),
        ("", "[run]\nmax-steps = 51\n", Some("run.max-steps")),
        ("", "[run]\nmax-steps = 10\n", None),
        ("", "[run]\nmax-retries = 4\n", Some("run.max-retries")),
        ("[run]\nmax-cost = 1\n", "[run]\nmax-cost = 2\n", Some("run.max-cost")),
        ("[run]\nmax-cost = 1\n", "[run]\nmax-cost = 0.5\n", None),
        ("", "[run]\nmax-tokens = 1000\n", None),
        ("[run]\ntimeout = \"1m\"\n", "[run]\ntimeout = \"61s\"\n", Some("run.timeout")),
        ("", "[run]\nkeep-days = 0\n", Some("run.keep-days")),
        ("", "[run]\nkeep-days = 365\n", Some("run.keep-days")),
        ("", "[run]\nkeep-newest = 1\n", Some("run.keep-newest")),
        ("", "[gates]\ncheck-timeout = \"1s\"\n", Some("gates.check-timeout")),
        ("", "[gates]\ncheck-timeout = \"30m\"\n", None),
        ("", "[model]\ntoken-timeout = \"1s\"\n", Some("model.token-timeout")),
        ("", "[model]\ncontext = 1000\n", Some("model.context")),
        ("", "[model]\nanswer-tokens = 1\n", Some("model.answer-tokens")),
        ("", "[agent]\nbash-timeout = \"5m\"\nstrategy = \"with-files\"\n[model]\ntemperature = 1\n", None),
    ];
    for (user, project, loose) in cases {
        let machine = Machine::new();
        machine.write_user(user);
        machine.write_project(project);
        let loaded = machine.load(&Overrides::default());
        match loose {
            None => assert!(loaded.is_ok(), "{project:?}: {loaded:?}"),
            Some(key) => {
                let refusal = loaded.unwrap_err();
                assert!(refusal.message.contains("iudex.toml is not trusted and sets"), "{}", refusal.message);
                assert!(refusal.message.contains(key), "{project:?}: {}", refusal.message);
                assert!(refusal.hint.unwrap().contains("`iudex trust`"));
                assert_eq!(refusal.exit_code, 2);
                machine.trust();
                machine.load(&Overrides::default()).unwrap();
            }
        }
    }
}

#[test]
fn a_held_back_value_is_not_in_the_configuration() {
    let machine = Machine::new();
    machine.write_project("[model]\nbase-url = \"http://evil.example/v1\"\n[run]\nmax-steps = 9\nnet = true\n");
    let config = machine.inspect();
    assert_eq!(config.model.base_url.value, None);
    assert!(!config.run.net.value);
    assert_eq!(config.run.max_steps.value, 9);
    let keys: Vec<String> = config.project.unwrap().held_back.into_iter().map(|key| key.key).collect();
    assert_eq!(keys, ["run.net", "model.base-url"]);
}

#[test]
fn one_changed_byte_ends_the_trust() {
    let machine = Machine::new();
    machine.write_project(DANGEROUS);
    machine.trust();
    assert_eq!(machine.load(&Overrides::default()).unwrap().gates.check.value, ["make test"]);
    machine.write_project(&format!("{DANGEROUS}\n"));
    let refusal = machine.load(&Overrides::default()).unwrap_err();
    assert!(refusal.message.contains("has changed since you trusted it"), "{}", refusal.message);
    assert!(refusal.message.contains("gates.check = [\"make test\"]  (line 2)"), "{}", refusal.message);
    machine.write_project(DANGEROUS);
    machine.load(&Overrides::default()).unwrap();
}

#[test]
fn the_same_content_elsewhere_is_not_trusted() {
    let machine = Machine::new();
    machine.write_project(DANGEROUS);
    machine.trust();
    let other = machine.paths.home.join("other");
    fs::create_dir_all(other.join(".git")).unwrap();
    fs::write(other.join("iudex.toml"), DANGEROUS).unwrap();
    assert_eq!(trust::plan(&other, &machine.paths).unwrap().files[0].standing, Standing::Unknown);
    assert!(iudex_app::Config::load(&other, &Overrides::default(), &machine.paths).is_err());
}

#[test]
fn gates_of_an_untrusted_project_never_vanish_in_silence() {
    let machine = Machine::new();
    machine.write_project(DANGEROUS);
    let with_until = Overrides { until: vec!["true".to_owned()], ..Overrides::default() };
    assert!(machine.load(&with_until).unwrap_err().hint.unwrap().contains("--no-config-gates"));
    let config = machine.load(&Overrides { no_config_gates: true, ..with_until }).unwrap();
    assert_eq!(config.gates.check.value, ["true"]);
    assert_eq!(config.left_out_checks, ["make test"]);
    // Only the gates are left out: anything else that loosens still stops.
    machine.write_project(&format!("{DANGEROUS}[run]\nnet = true\n"));
    assert!(machine.load(&Overrides { no_config_gates: true, ..Overrides::default() }).is_err());
}

#[test]
fn a_flag_that_overrides_a_value_needs_no_trust_for_it() {
    let machine = Machine::new();
    machine.write_project("[model]\nname = \"script:x.json\"\n");
    let overrides = Overrides { model: Some("mine".to_owned()), ..Overrides::default() };
    assert_eq!(machine.load(&overrides).unwrap().model.name.value.as_deref(), Some("mine"));
}

#[test]
fn trust_shows_what_it_allows_and_can_be_taken_back() {
    let machine = Machine::new();
    machine.write_project(&format!("[run]\nmax-steps = 5\n{DANGEROUS}"));
    fs::write(machine.project().join("AGENTS.md"), "Be brief.").unwrap();
    let plan = trust::plan(&machine.project(), &machine.paths).unwrap();
    assert_eq!(plan.files.len(), 2);
    let loose: Vec<String> = plan.files[0].loose.iter().map(|key| format!("{} {}", key.key, key.line)).collect();
    assert_eq!(loose, ["gates.check 4"]);
    // Exactly what was shown is trusted, not what the file holds by then.
    machine.write_project("[gates]\ncheck = \"evil\"\n");
    plan.record(&machine.paths).unwrap();
    assert!(machine.load(&Overrides::default()).is_err());

    machine.trust();
    machine.load(&Overrides::default()).unwrap();
    fs::remove_file(machine.project().join("AGENTS.md")).unwrap();
    let removed = trust::remove(&machine.project(), &machine.paths).unwrap();
    assert_eq!(removed, [machine.project().join("AGENTS.md"), machine.project_file()]);
    assert!(machine.load(&Overrides::default()).is_err());
    assert_eq!(trust::remove(&machine.project(), &machine.paths).unwrap(), Vec::<std::path::PathBuf>::new());
}

#[test]
fn agents_md_is_taken_only_as_it_was_trusted() {
    let machine = Machine::new();
    assert_eq!(machine.inspect().agents_md, AgentsMd::None);
    let file = machine.project().join("AGENTS.md");
    fs::write(&file, "Be brief.").unwrap();
    assert_eq!(machine.inspect().agents_md, AgentsMd::LeftOut(file.clone()));
    machine.trust();
    assert_eq!(machine.inspect().agents_md, AgentsMd::Trusted("Be brief.".to_owned()));
    fs::write(&file, "Be brief!").unwrap();
    assert_eq!(machine.inspect().agents_md, AgentsMd::LeftOut(file));
}

#[test]
fn nothing_to_trust_is_an_error() {
    let machine = Machine::new();
    let refusal = trust::plan(&machine.project(), &machine.paths).unwrap_err();
    assert!(refusal.message.starts_with("there is no iudex.toml and no AGENTS.md"), "{}", refusal.message);
    machine.write_project("[run]\nmax-stepz = 3\n");
    assert!(trust::plan(&machine.project(), &machine.paths).unwrap_err().message.contains("unknown key `max-stepz`"));
}

#[test]
fn the_list_is_private_and_a_broken_one_trusts_nothing() {
    let machine = Machine::new();
    machine.write_project(DANGEROUS);
    machine.trust();
    let list = machine.paths.state.join("trust.toml");
    assert_eq!(fs::metadata(&list).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&machine.paths.state).unwrap().permissions().mode() & 0o777, 0o700);

    let good = fs::read_to_string(&list).unwrap();
    for broken in ["garbage", "[[file]]\npath = \"x\"\n", "[[file]]\npath = \"x\"\nsha256 = \"y\"\nalways = true\n"] {
        fs::write(&list, broken).unwrap();
        let refusal = machine.load(&Overrides::default()).unwrap_err();
        assert!(refusal.message.contains("the list of trusted files"), "{}", refusal.message);
    }
    fs::write(&list, good).unwrap();
    machine.load(&Overrides::default()).unwrap();
    fs::set_permissions(&list, fs::Permissions::from_mode(0o666)).unwrap();
    let refusal = machine.load(&Overrides::default()).unwrap_err();
    assert!(refusal.message.contains("can be written by others"), "{}", refusal.message);
}

#[test]
fn two_at_once_lose_no_trust() {
    let machine = Machine::new();
    let projects: Vec<_> = (0..8)
        .map(|number| {
            let project = machine.paths.home.join(format!("p{number}"));
            fs::create_dir_all(project.join(".git")).unwrap();
            fs::write(project.join("iudex.toml"), DANGEROUS).unwrap();
            project
        })
        .collect();
    std::thread::scope(|scope| {
        for project in &projects {
            scope.spawn(|| trust::plan(project, &machine.paths).unwrap().record(&machine.paths).unwrap());
        }
    });
    for project in &projects {
        assert_eq!(trust::plan(project, &machine.paths).unwrap().files[0].standing, Standing::Trusted);
    }
}

#[test]
fn the_newest_run_is_always_kept() {
    let machine = Machine::new();
    machine.write_user("[run]\nkeep-newest = 0\n");
    assert!(machine.load(&Overrides::default()).unwrap_err().message.contains("from 1 to"));
}

#[test]
fn a_file_of_somebody_else_above_the_directory_is_passed_over() {
    let machine = Machine::new();
    let below = machine.project().join("below");
    fs::create_dir_all(&below).unwrap();
    machine.write_project("[run]\nmax-steps = 7\n");
    let load = || iudex_app::Config::load(&below, &Overrides::default(), &machine.paths).unwrap();
    assert_eq!(load().run.max_steps.value, 7);
    // Only root can give a file away.
    if std::os::unix::fs::chown(machine.project_file(), Some(65534), None).is_ok() {
        assert_eq!(load().run.max_steps.value, 50);
    }
}
