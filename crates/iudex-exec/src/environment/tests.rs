use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt as _;
use std::path::Path;

use super::{child_environment_from, withheld};

fn environment(names: &[&str], secrets: &[&str]) -> Vec<(String, String)> {
    let variables = names.iter().map(|name| (OsString::from(name), OsString::from("value")));
    child_environment_from(variables, Path::new("/caches"), secrets)
        .into_iter()
        .map(|(name, value)| (name.into_string().unwrap(), value.into_string().unwrap()))
        .collect()
}

fn has(environment: &[(String, String)], name: &str) -> bool {
    environment.iter().any(|(other, value)| other == name && value == "value")
}

#[test]
fn keys_of_providers_and_other_secrets_reach_no_child() {
    let secret = [
        "OPENAI_API_KEY",
        "anthropic_api_key",
        "GITHUB_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "AWS_SECRET_ACCESS_KEY",
        "PGPASSWORD",
        "MY_PASSPHRASE",
        "GOOGLE_APPLICATION_CREDENTIALS",
        "DEEPSEEK_KEY",
    ];
    let environment = environment(&secret, &[]);
    for name in secret {
        assert!(!has(&environment, name), "{name} was passed on");
    }
}

#[test]
fn a_configured_key_variable_is_dropped_whatever_its_name() {
    assert!(has(&environment(&["LLM"], &[]), "LLM"));
    assert!(!has(&environment(&["LLM"], &["LLM"]), "LLM"));
}

#[test]
fn sockets_of_agents_and_what_steers_bash_or_git_are_dropped() {
    let dropped = [
        "SSH_AUTH_SOCK",
        "GPG_AGENT_INFO",
        "DBUS_SESSION_BUS_ADDRESS",
        "DOCKER_HOST",
        "BASH_ENV",
        "ENV",
        "PROMPT_COMMAND",
        "SHELLOPTS",
        "BASH_FUNC_ls%%",
        "LD_PRELOAD",
        "GIT_DIR",
        "GIT_WORK_TREE",
        "GIT_INDEX_FILE",
    ];
    let environment = environment(&dropped, &[]);
    for name in dropped {
        assert!(!has(&environment, name), "{name} was passed on");
    }
}

#[test]
fn what_a_build_needs_is_kept() {
    let kept = ["PATH", "HOME", "LANG", "LD_LIBRARY_PATH", "RUSTUP_HOME", "CI", "TOKENIZERS_PARALLELISM", "MONKEY"];
    let environment = environment(&kept, &[]);
    for name in kept {
        assert!(has(&environment, name), "{name} is missing");
    }
}

#[test]
fn numbers_of_tokens_are_no_secrets() {
    let kept = ["MAX_TOKENS", "LLM_TOKENS_PER_MINUTE", "TOKENIZER_PATH"];
    let environment = environment(&kept, &[]);
    for name in kept {
        assert!(has(&environment, name), "{name} is missing");
    }
    assert_eq!(withheld(kept.map(|name| (name.into(), "1".into()))), Vec::<String>::new());
}

#[test]
fn what_looks_like_a_secret_is_named_and_what_is_dropped_for_other_reasons_is_not() {
    let names = ["HOME", "GITHUB_TOKEN", "DJANGO_SECRET_KEY", "MAX_TOKENS", "GIT_TOKEN", "SSH_AUTH_SOCK"];
    let variables = names.map(|name| (OsString::from(name), OsString::from("value")));
    assert_eq!(withheld(variables), ["DJANGO_SECRET_KEY", "GITHUB_TOKEN"]);
}

#[test]
fn caches_are_private_and_prompts_pagers_and_colours_are_off() {
    let environment = environment(&["CARGO_HOME", "PAGER"], &[]);
    let value = |name: &str| {
        let values: Vec<_> = environment.iter().filter(|(other, _)| other == name).collect();
        assert_eq!(values.len(), 1, "{name}");
        values[0].1.clone()
    };
    assert_eq!(value("CARGO_HOME"), "/caches/cargo");
    assert_eq!(value("XDG_CACHE_HOME"), "/caches/xdg");
    assert_eq!(value("GOCACHE"), "/caches/go-build");
    assert_eq!(value("npm_config_cache"), "/caches/npm");
    assert_eq!(value("PIP_CACHE_DIR"), "/caches/pip");
    assert_eq!(value("GIT_TERMINAL_PROMPT"), "0");
    assert_eq!(value("GIT_OPTIONAL_LOCKS"), "0");
    assert_eq!(value("PAGER"), "cat");
    assert_eq!(value("TERM"), "dumb");
    assert_eq!(value("NO_COLOR"), "1");
}

#[test]
fn a_name_that_is_no_text_is_dropped_and_a_value_that_is_none_is_kept() {
    let odd = OsString::from_vec(vec![b'A', 0xff]);
    let variables = [(odd.clone(), OsString::from("1")), (OsString::from("B"), odd.clone())];
    let environment = child_environment_from(variables, Path::new("/caches"), &[]);
    assert!(!environment.iter().any(|(name, _)| *name == odd));
    assert!(environment.contains(&(OsString::from("B"), odd)));
}
