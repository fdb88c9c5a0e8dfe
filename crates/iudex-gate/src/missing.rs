//! Finds the program that a check needs and this machine does not have, so that a run stops before the first pass.
//!
//! Never: a program that the work itself may bring (a path, something from the work directory, a sourced environment).

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The name of the missing program, when a check that exited 127 needs a bare name that is nowhere on its `PATH`.
pub(crate) fn program(
    script: &str,
    shell_errors: &[String],
    env: &[(OsString, OsString)],
    work_dir: &Path,
) -> Option<String> {
    if defines_commands(script) {
        return None;
    }
    let path = env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, value)| value.as_os_str())?;
    let reported = shell_errors.iter().rev().find_map(|line| reported(line));
    let name = match reported {
        Some(name) => name,
        None => first_program(script)?,
    };
    let bare = !name.is_empty() && !name.contains(['/', '$', '`', '(', '*', '?', '"', '\'', '&', '|', '<', '>', ';']);
    (bare && !is_builtin(name) && !may_be_found(name, path, work_dir)).then(|| name.to_owned())
}

/// A script that sources files, sets `PATH` or defines names may get its commands from the work directory.
fn defines_commands(script: &str) -> bool {
    let mut commands = script.split(['\n', ';', '&', '|', '(', ')', '{']).map(str::trim_start);
    script.contains("()")
        || commands.any(|command| {
            let mut words = command.split_whitespace();
            let sets_path = words.clone().any(|word| word.starts_with("PATH="));
            sets_path || words.next().is_some_and(|word| matches!(word, "source" | "." | "alias" | "function" | "eval"))
        })
}

/// The name in `/usr/bin/bash: line 1: foo: command not found`. A script of the project that lacks a program reports
/// under its own name and is no reason to stop: the work may mend it.
fn reported(line: &str) -> Option<&str> {
    let (shell, rest) = line.split_once(": line ")?;
    let (number, rest) = rest.split_once(": ").filter(|_| shell.rsplit('/').next() == Some("bash"))?;
    number.bytes().all(|b| b.is_ascii_digit()).then(|| rest.strip_suffix(": command not found"))?
}

/// The first program of a command line, through assignments and simple wrappers (`FOO=1 timeout 10 foo`).
fn first_program(script: &str) -> Option<&str> {
    let mut words = script.split_whitespace().peekable();
    loop {
        let word = words.next()?;
        if is_assignment(word) {
            continue;
        }
        let (options_with_value, operands): (&[&str], usize) = match word {
            "env" => (&["-u", "-C", "--unset", "--chdir"], 0),
            "timeout" => (&["-s", "-k", "--signal", "--kill-after"], 1),
            "nice" => (&["-n"], 0),
            "time" | "command" | "exec" | "nohup" | "setsid" => (&[], 0),
            "stdbuf" => (&["-i", "-o", "-e"], 0),
            _ => return Some(word.trim_end_matches(';')),
        };
        while let Some(option) = words.next_if(|next| next.starts_with('-')) {
            if options_with_value.contains(&option) {
                words.next();
            }
        }
        for _ in 0..operands {
            words.next();
        }
    }
}

fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

/// True when the program is on the path, or when a directory of the path is one that the work may fill.
fn may_be_found(name: &str, path: &OsStr, work_dir: &Path) -> bool {
    std::env::split_paths(path).any(|directory| {
        if directory.as_os_str().as_bytes().is_empty() || directory.is_relative() || directory.starts_with(work_dir) {
            return true;
        }
        let found = directory.join(name).metadata();
        found.is_ok_and(|found| found.is_file() && found.permissions().mode() & 0o111 != 0)
    })
}

fn is_builtin(name: &str) -> bool {
    const WORDS: &str = "! : . [ [[ { alias bg bind break builtin caller case cd command compgen complete compopt \
                         continue coproc declare dirs disown do done echo elif else enable esac eval exec exit export \
                         false fc fg fi for function getopts hash help history if in jobs kill let local logout mapfile \
                         popd printf pushd pwd read readarray readonly return select set shift shopt source suspend \
                         test then time times trap true type typeset ulimit umask unalias unset until wait while";
    WORDS.split(' ').any(|word| word == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(script: &str, errors: &[&str]) -> Option<String> {
        let errors: Vec<String> = errors.iter().map(|line| (*line).to_owned()).collect();
        let env = [("PATH".into(), "/usr/bin:/bin".into())];
        program(script, &errors, &env, Path::new("/work/project"))
    }

    #[test]
    fn the_program_that_bash_reports_is_named() {
        let errors = ["/usr/bin/bash: line 1: nosuchtool: command not found"];
        assert_eq!(missing("nosuchtool --all", &errors).as_deref(), Some("nosuchtool"));
        assert_eq!(missing("true && nosuchtool", &errors).as_deref(), Some("nosuchtool"));
        assert_eq!(missing("nosuchtool .", &errors).as_deref(), Some("nosuchtool"));
    }

    #[test]
    fn a_wrapper_hides_no_missing_program() {
        for script in [
            "env -u HOME A=1 nosuchtool x",
            "timeout -k 5 10 nosuchtool",
            "A=1 B=2 time -p nosuchtool",
            "nice -n 5 nohup nosuchtool",
        ] {
            assert_eq!(missing(script, &[]).as_deref(), Some("nosuchtool"), "{script}");
        }
    }

    #[test]
    fn what_the_work_may_bring_does_not_stop_the_run() {
        assert_eq!(missing("./run.sh", &["bash: line 1: ./run.sh: No such file or directory"]), None);
        let inner = "build.sh: line 3: nosuchtool: command not found";
        assert_eq!(missing("sh build.sh", &[inner]), None);
        assert_eq!(
            missing(". venv/bin/activate && nosuchtool", &["bash: line 1: nosuchtool: command not found"]),
            None
        );
        assert_eq!(missing("PATH=$PWD/bin:$PATH nosuchtool", &["bash: line 1: nosuchtool: command not found"]), None);
        let env = [("PATH".into(), "/work/project/node_modules/.bin:/usr/bin".into())];
        assert_eq!(program("nosuchtool", &[], &env, Path::new("/work/project")), None);
    }

    #[test]
    fn builtins_and_programs_that_are_there_are_not_missing() {
        assert_eq!(missing("cd nowhere", &[]), None);
        assert_eq!(missing("bash -c 'exit 127'", &[]), None);
        assert_eq!(missing("$TOOL x", &[]), None);
    }
}
