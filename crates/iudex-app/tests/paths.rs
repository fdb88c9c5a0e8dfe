//! Where iudex keeps its files. The environment is read by a child, since a test must not change its own.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use iudex_app::Paths;

/// Prints the places; run by the other tests with an environment of their own.
#[test]
#[ignore = "a helper of the tests beside it"]
fn child_prints_places() {
    match Paths::from_env() {
        Ok(paths) => {
            println!("PLACES {} {} {}", paths.state.display(), paths.config.display(), paths.cache.display());
        }
        Err(refusal) => println!("REFUSED {refusal} HINT {:?}", refusal.hint),
    }
}

fn places(environment: &[(&str, &str)]) -> String {
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_prints_places", "--ignored", "--nocapture"])
        .env_clear()
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let start = text.find("PLACES").or_else(|| text.find("REFUSED")).unwrap();
    text[start..].lines().next().unwrap().to_owned()
}

#[test]
fn the_xdg_variables_win_over_the_home_directory() {
    assert_eq!(places(&[("HOME", "/h")]), "PLACES /h/.local/state/iudex /h/.config/iudex/config.toml /h/.cache/iudex");
    let variables = [("HOME", "/h"), ("XDG_STATE_HOME", "/s"), ("XDG_CONFIG_HOME", "/c"), ("XDG_CACHE_HOME", "/k")];
    assert_eq!(places(&variables), "PLACES /s/iudex /c/iudex/config.toml /k/iudex");
    // A relative one is ignored, as the specification says.
    assert_eq!(
        places(&[("HOME", "/h"), ("XDG_STATE_HOME", "s")]),
        "PLACES /h/.local/state/iudex /h/.config/iudex/config.toml /h/.cache/iudex"
    );
}

#[test]
fn a_missing_home_is_an_error_with_the_next_step() {
    for environment in [&[][..], &[("HOME", "")], &[("HOME", "relative")]] {
        let said = places(environment);
        assert!(said.starts_with("REFUSED HOME is not set to an absolute path"), "{said}");
        assert!(said.contains("export HOME="), "{said}");
    }
}

#[test]
fn the_state_is_for_the_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let paths = Paths::below(folder.path());
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    iudex_app::paths::create_private(&paths.state).unwrap();
    assert_eq!(mode(&paths.state), 0o700);
    fs::set_permissions(&paths.state, fs::Permissions::from_mode(0o755)).unwrap();
    iudex_app::paths::create_private(&paths.state).unwrap();
    assert_eq!(mode(&paths.state), 0o700);
    fs::write(folder.path().join("cache"), "a file").unwrap();
    let refusal = iudex_app::paths::create_private(&paths.cache).unwrap_err();
    assert!(refusal.message.contains("cache"), "{}", refusal.message);
}
