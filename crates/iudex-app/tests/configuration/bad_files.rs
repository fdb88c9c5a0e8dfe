//! Files that must be refused, with the message and the hint that a person gets.

use std::fs;

use iudex_app::Overrides;

use crate::Machine;

/// Text of the file, end of the message (after the path), part of the hint.
const BAD: &[(&str, &str, &str)] = &[
    ("[run]\nmax-retry = 3\n", ":2: unknown key `max-retry` in [run]", "did you mean `max-retries`?"),
    ("[run]\nmax_steps = 3\n", ":2: unknown key `max_steps` in [run]", "did you mean `max-steps`?"),
    ("[runs]\nnet = true\n", ":1: unknown section [runs]", "did you mean [run]?"),
    ("[zebra]\n", ":1: unknown section [zebra]", "the sections are [run], [gates], [model], [agent]"),
    ("net = true\n", ":1: `net` stands outside of its section", "below a line [run]"),
    ("model = \"x\"\n", ":1: `model` is a section, not a value", "write [model]"),
    ("[agent]\n\nmax-steps = 3\n", ":3: unknown key `max-steps` in [agent]", "`max-steps` belongs below [run]"),
    ("[gates]\nxyzzy = 1\n", ":2: unknown key `xyzzy` in [gates]", "[gates] has check, check-timeout"),
    ("[model]\napi-key = \"sk-secret\"\n", ":2: unknown key `api-key` in [model]", "a key never stands in a file"),
    ("[run]\nmax-steps = 0\n", ":2: `run.max-steps` is 0; it must be a whole number from 1 to 1000000", ""),
    ("[run]\nmax-retries = -1\n", ":2: `run.max-retries` is -1; it must be a whole number from 0 to 1000000", ""),
    (
        "[run]\nmax-steps = 1.5\n",
        ":2: `run.max-steps`: this is of the wrong kind: floating point `1.5`, expected a whole number",
        "",
    ),
    (
        "[run]\nmax-steps = \"3\"\n",
        ":2: `run.max-steps`: this is of the wrong kind: string \"3\", expected a whole number",
        "",
    ),
    ("[run]\nnet = 1\n", ":2: `run.net`: this is of the wrong kind: integer `1`, expected true or false", ""),
    ("[run]\nmax-cost = -0.5\n", ":2: `run.max-cost` is -0.5; it must be an amount in US dollars, 0 or more", ""),
    ("[run]\nmax-cost = nan\n", ":2: `run.max-cost` is NaN; it must be an amount in US dollars, 0 or more", ""),
    ("[run]\nmax-cost = inf\n", ":2: `run.max-cost` is inf; it must be an amount in US dollars, 0 or more", ""),
    ("[run]\nmax-tokens = 0\n", "it must be a whole number from 1 to 9223372036854775807", ""),
    ("[run]\ntimeout = 90\n", ":2: `run.timeout`: this is of the wrong kind: integer `90`, expected a string", ""),
    (
        "[run]\ntimeout = \"90\"\n",
        ":2: `run.timeout` is \"90\"; it must be a duration such as 90s, 10m, 1h30m or 250ms",
        "`90s` for seconds",
    ),
    (
        "[run]\ntimeout = \"soon\"\n",
        ":2: `run.timeout` is \"soon\"; it must be a duration such as 90s, 10m, 1h30m or 250ms",
        "",
    ),
    ("[run]\ntimeout = \"0s\"\n", ":2: `run.timeout` is 0s; it must be more than zero", "leave it out"),
    ("[gates]\ncheck = []\n", ":2: `gates.check` is an empty list; it must hold a command", "--no-config-gates"),
    ("[gates]\ncheck = \" \"\n", ":2: `gates.check` is \" \"; it must be a command, not an empty text", "cargo test"),
    (
        "[gates]\ncheck = [\"a\", \"\"]\n",
        ":2: `gates.check` is \"\"; it must be a command, not an empty text",
        "cargo test",
    ),
    (
        "[gates]\ncheck = 1\n",
        ":2: `gates.check`: this is of the wrong kind: integer `1`, expected a command or a list of commands",
        "",
    ),
    ("[model]\ntemperature = 2.1\n", ":2: `model.temperature` is 2.1; it must be from 0 to 2", ""),
    ("[model]\ntemperature = nan\n", ":2: `model.temperature` is NaN; it must be from 0 to 2", ""),
    (
        "[model]\nformat = \"jsn\"\n",
        ":2: `model.format` is \"jsn\"; it must be one of json, native, text",
        "did you mean \"json\"?",
    ),
    ("[model]\nname = \"\"\n", ":2: `model.name` is \"\"; it must name a model, or be `script:FILE`", "iudex doctor"),
    (
        "[model]\nbase-url = \"localhost\"\n",
        ":2: `model.base-url` must be a URL (relative URL without a base) (the value is not shown)",
        "http://",
    ),
    (
        "[model]\nbase-url = \"ftp://x/v1\"\n",
        ":2: `model.base-url` is ftp://x/v1; it must begin with http:// or https:// and name a host",
        "http://",
    ),
    (
        "[model]\nbase-url = \"https://me:sk-secret@x/v1\"\n",
        ":2: `model.base-url` must not hold a user name or password (the value is not shown)",
        "api-key-env",
    ),
    (
        "[model]\nbase-url = \"https://x/v1?key=sk-secret\"\n",
        ":2: `model.base-url` must end with its path, without `?` and `#` (the value is not shown)",
        "http://",
    ),
    (
        "[model]\napi-key-env = \"sk-secret\"\n",
        ":2: `model.api-key-env` must be the name of an environment variable, never the key itself (the value is not shown)",
        "export",
    ),
    (
        "[model]\napi-key-env = \"0123456789abcdef0123456789abcdef\"\n",
        "never the key itself (the value is not shown)",
        "export",
    ),
    (
        "[model]\napi-key-env = \"abcdef0123456789abcdef0123456789\"\n",
        "never the key itself (the value is not shown)",
        "export",
    ),
    ("[model]\nca-file = \"none.pem\"\n", "none.pem, which is no file", "PEM"),
    (
        "[model]\nca-file = \"~/ca.pem\"\n",
        ":2: `model.ca-file` is ~/ca.pem; it must be a path without `~`, which only a shell expands",
        "",
    ),
    ("[model]\n\nprice-prompt = 1\n", ":3: one of the two prices is set, `model.price-output` is not", "set both"),
    (
        "[agent]\nstuck-threshold = 1\n",
        ":2: `agent.stuck-threshold` is 1; it must be a whole number from 2 to 1000",
        "",
    ),
    (
        "[agent]\nstrategy = \"with_files\"\n",
        ":2: `agent.strategy` is \"with_files\"; it must be one of plain, with-files",
        "did you mean \"with-files\"?",
    ),
    ("[run]\nnet = true\nnet = false\n", ":3: this is not TOML: duplicate key", "correct the line"),
    ("[run.net]\nx = 1\n", "`run.net`: this is of the wrong kind: map, expected true or false", ""),
    ("[[run]]\nnet = true\n", ":1: `run` is a section, not a value", "write [run]"),
    ("run = { nett = true }\n", ":1: unknown key `nett` in [run]", "did you mean `net`?"),
    ("run.nett = true\n", ":1: unknown key `nett` in [run]", "did you mean `net`?"),
    ("[run]\nmax-steps = 99999999999999999999\n", ":2: `run.max-steps`: ", ""),
    ("[run]\n\"\\u001b[2J\" = 1\n", ":2: unknown key `\\u{1b}[2J` in [run]", "[run] has"),
    ("[gates]\ncheck = \"make \\u202etest\"\n", "it must not hold control or direction characters", ""),
    ("[model]\nca-file = \"a\\u001b\"\n", "it must be the path of a file", ""),
    ("[run\nnet = true\n", ":1: this is not TOML", "correct the line"),
];

#[test]
fn a_bad_file_is_named_with_line_value_and_next_step() {
    for (text, message, hint) in BAD {
        let machine = Machine::new();
        machine.write_user(text);
        let refusal = machine.load(&Overrides::default()).unwrap_err();
        let path = machine.paths.config.display().to_string();
        assert!(refusal.message.starts_with(&path), "{text:?}: {}", refusal.message);
        assert!(refusal.message.contains(message), "{text:?}: {}", refusal.message);
        assert!(refusal.hint.as_deref().unwrap_or_default().contains(hint), "{text:?}: {:?}", refusal.hint);
        assert!(
            !refusal.message.contains("secret") && !refusal.message.contains("0123456789abcdef"),
            "{}",
            refusal.message
        );
        assert_eq!(refusal.exit_code, 2);

        // The same file in a project is as bad, and no trust is asked for before it is put right.
        let machine = Machine::new();
        machine.write_project(text);
        let in_project = machine.load(&Overrides::default()).unwrap_err();
        if !text.contains("ca-file = \"none") && !text.contains("price-prompt") {
            assert!(in_project.message.contains(message), "{text:?}: {}", in_project.message);
        }
    }
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let machine = Machine::new();
    fs::write(machine.project_file(), b"[run]\nnet = false # \xff\n").unwrap();
    let refusal = machine.load(&Overrides::default()).unwrap_err();
    assert!(refusal.message.ends_with("iudex.toml:2: the file is not UTF-8"), "{}", refusal.message);
}

#[test]
fn a_pipe_in_the_place_of_the_file_does_not_hang() {
    let machine = Machine::new();
    let made = std::process::Command::new("mkfifo").arg(machine.project_file()).status().unwrap();
    assert!(made.success());
    let refusal = machine.load(&Overrides::default()).unwrap_err();
    assert!(refusal.message.ends_with("iudex.toml is not a regular file"), "{}", refusal.message);
}

#[test]
fn byte_order_mark_and_windows_line_ends_are_taken() {
    let machine = Machine::new();
    machine.write_user("\u{feff}[run]\r\nmax-steps = 7\r\n");
    assert_eq!(machine.load(&Overrides::default()).unwrap().run.max_steps.value, 7);
    machine.write_user("\u{feff}[run]\r\nmax-step = 7\r\n");
    assert!(machine.load(&Overrides::default()).unwrap_err().message.contains(":2: unknown key `max-step`"));
}

#[test]
fn a_bad_flag_or_variable_is_named() {
    let mut machine = Machine::new();
    let overrides = Overrides { max_steps: Some(0), ..Overrides::default() };
    let refusal = machine.load(&overrides).unwrap_err();
    assert_eq!(refusal.message, "`--max-steps` is 0; it must be a whole number from 1 to 1000000");
    let overrides = Overrides { timeout: Some("5".to_owned()), ..Overrides::default() };
    assert_eq!(
        machine.load(&overrides).unwrap_err().hint.as_deref(),
        Some("a duration needs a unit: `5s` for seconds, `5m` for minutes")
    );
    let overrides = Overrides { until: vec![" ".to_owned()], ..Overrides::default() };
    assert!(machine.load(&overrides).unwrap_err().message.starts_with("`--until` is \" \""));
    let overrides = Overrides { max_cost: Some(f64::NAN), ..Overrides::default() };
    assert!(machine.load(&overrides).unwrap_err().message.starts_with("`--max-cost` is NaN"));
    machine.environment.insert("IUDEX_BASE_URL".to_owned(), "nowhere".into());
    assert!(machine.load(&Overrides::default()).unwrap_err().message.starts_with("`IUDEX_BASE_URL` must be a URL"));
}
