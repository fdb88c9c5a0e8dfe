//! `iudex init`: writes a commented `iudex.toml`, guesses the check from the project, and trusts what it wrote.
//!
//! Never: a file that is there already is overwritten (unless `force`), and no command of the project is run.

use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::config::find::find_upwards;
use crate::config::{PROJECT_FILE, loose_keys, path_as_text};
use crate::paths::Paths;
use crate::refusal::Refusal;
use crate::trust;

mod guess;
#[cfg(test)]
mod tests;

pub use guess::{Guess, guess_check};

/// What `iudex init` did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Initialized {
    /// The file that was written. It is trusted, since the user had it written.
    #[serde(serialize_with = "path_as_text")]
    pub path: PathBuf,
    /// The check that was guessed; without one the line is a comment.
    pub check: Option<Guess>,
    /// A file further up that held for this directory until now.
    pub covers: Option<String>,
}

/// Writes `iudex.toml` in this directory and records it as trusted.
///
/// # Errors
/// [`Refusal`] when there is one already and `force` is false, or when it cannot be written or recorded.
pub fn init(directory: &Path, paths: &Paths, force: bool) -> Result<Initialized, Refusal> {
    let failed = |error: &dyn std::fmt::Display| {
        Refusal::usage(
            format!("cannot write {PROJECT_FILE} in {}: {error}", directory.display()),
            "choose a directory that is writable for you with --cwd",
        )
    };
    let directory = directory.canonicalize().map_err(|error| failed(&error))?;
    let path = directory.join(PROJECT_FILE);
    let covers = find_upwards(&directory, &paths.home, PROJECT_FILE).filter(|found| *found != path);
    let check = guess_check(&directory);
    let text = template(check.as_ref());
    // What is written must load: a template that does not is a fault of iudex and must not reach the user's project.
    loose_keys(&path, text.as_bytes(), paths)?;

    let mut temporary = tempfile::NamedTempFile::new_in(&directory).map_err(|error| failed(&error))?;
    temporary.write_all(text.as_bytes()).map_err(|error| failed(&error))?;
    let readable = std::fs::Permissions::from_mode(0o644);
    temporary.as_file().set_permissions(readable).map_err(|error| failed(&error))?;
    if force {
        temporary.persist(&path).map_err(|error| failed(&error))?;
    } else {
        temporary.persist_noclobber(&path).map_err(|error| match error.error.kind() {
            std::io::ErrorKind::AlreadyExists => Refusal::usage(
                format!("{} is there already and was left as it is", path.display()),
                "edit it, or replace it with --force",
            ),
            _ => failed(&error),
        })?;
    }
    trust::record(paths, &path, text.as_bytes())?;
    Ok(Initialized { path, check, covers: covers.map(|file| file.display().to_string()) })
}

/// The commented file. Every key stands in it, with its default.
pub(crate) fn template(check: Option<&Guess>) -> String {
    let check = match check {
        Some(Guess { command, because }) => {
            // A file name with a line end in it must not leave the comment.
            let because = because.escape_debug();
            format!("# Guessed from {because}.\ncheck = [{}]", toml::Value::String(command.clone()))
        }
        None => "# No check could be guessed. Without one a run ends as \"done (unvalidated)\".\n\
                 # check = [\"make test\"]"
            .to_owned(),
    };
    TEMPLATE.replace("@CHECK@", &check)
}

const TEMPLATE: &str = r#"# The configuration of iudex for this project. Flags and the environment win over it; `iudex config` shows what holds.
# Whoever did not write this file runs `iudex trust` before its checks and addresses are used; so do you after a change.

[gates]
# Commands that must pass before work is accepted, run by `bash -o pipefail -c` in the work directory.
@CHECK@
# check-timeout = "10m"          # time limit of each check command

[run]
# max-retries = 3                # how often a red check goes back to the agent
# max-steps = 50                 # model calls in one pass
# max-tokens = 2000000           # prompt and output tokens of the whole run; no limit when left out
# max-cost = 1.5                 # US dollars for the whole run; needs a known price; no limit when left out
# timeout = "1h"                 # wall clock of the whole run; no limit when left out
# require-gate = false           # true: refuse a run without a check
# net = false                    # true: commands reach the network
# sandbox = true                 # false: commands run without a sandbox, and the outcome says so
# keep-days = 30                 # days that runs are kept in the ledger
# keep-newest = 20               # this many runs are kept whatever their age

[model]
# name = "qwen2.5-coder"         # or script:FILE; left out: the one chat model on the usual local ports
# base-url = "http://127.0.0.1:8080/v1"
# api-key-env = "MY_API_KEY"     # the NAME of the variable with the key; a key never stands in a file
# context = 16384                # tokens of the window; wins over what the server says
# format = "json"                # json, native or text; left out: chosen by the model
# temperature = 0.2              # 0 to 2
# seed = 1                       # for answers that can be repeated
# answer-tokens = 4096           # most tokens of an answer; left out: 4096 or a quarter of the window
# ca-file = "ca.pem"             # further certificate authorities (PEM); relative to this file
# price-prompt = 0.5             # US dollars for a million prompt tokens
# price-output = 1.5             # US dollars for a million generated tokens
# first-byte-timeout = "10m"     # until an answer begins
# token-timeout = "2m"           # between two pieces of an answer
# connect-timeout = "10s"        # until the connection stands
# max-retries = 5                # how often a failed request is sent again
# retry-time = "5m"              # the most time spent in sending again

[agent]
# stuck-threshold = 3            # this repeat brings an intervention; two more end the pass
# bash-timeout = "2m"            # time limit of one command of the agent
# strategy = "with-files"        # small project files go into the first message; plain: their names; left out: by the model
"#;
