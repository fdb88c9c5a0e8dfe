//! The command line, as clap reads it. Every command's help ends with an example that works when pasted.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

const ABOUT: &str = "Runs a coding agent and accepts its work only when something other than the agent has checked it.";

/// The whole command line.
#[derive(Debug, Parser)]
#[command(name = "iudex", version, about = ABOUT, max_term_width = 100, disable_help_subcommand = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 validation failed, 2 usage or configuration, 3 stuck, 4 hit limit, 5 blocked,\n\
6 needs you, 7 model unavailable, 130 aborted.\n\n\
Example:\n  iudex run --until \"cargo test\" \"make the failing test pass\""
)]
pub(crate) struct Cli {
    /// Take the last session of this directory up again
    #[arg(long = "continue")]
    pub(crate) continue_session: bool,
    /// For a session: work in a plain directory above 20,000 files or 1 GiB
    #[arg(long)]
    pub(crate) large_directory: bool,
    /// What to do; without a command and in a terminal, a session opens
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// One command.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Work on a goal until the check passes or the budget is spent
    #[command(after_help = "Example:\n  iudex run --until \"cargo test\" \"make the failing test pass\"")]
    Run(Box<RunArgs>),
    /// Bring the files back as they were before a run
    #[command(after_help = "Example:\n  iudex undo")]
    Undo(UndoArgs),
    /// Show what a run changed
    #[command(after_help = "Example:\n  iudex diff | less -R")]
    Diff(RunName),
    /// Show the recorded validation result, tokens and cost of a run
    #[command(after_help = "Example:\n  iudex stats --json")]
    Stats(RunNameJson),
    /// List runs, newest first
    #[command(after_help = "Example:\n  iudex log --all")]
    Log(LogArgs),
    /// Show the transcript of a run
    #[command(after_help = "Example:\n  iudex show")]
    Show(RunNameJson),
    /// Print every setting and where it came from
    #[command(after_help = "Example:\n  iudex config")]
    Config(JsonFlag),
    /// Write a commented iudex.toml and guess the check
    #[command(after_help = "Example:\n  iudex init && iudex run \"make the failing test pass\"")]
    Init(InitArgs),
    /// Trust the configuration and AGENTS.md of this project, as they are now
    #[command(after_help = "Example:\n  iudex trust --show")]
    Trust(TrustArgs),
    /// Say what works on this machine and what to do about the rest
    #[command(after_help = "Example:\n  iudex doctor")]
    Doctor(JsonFlag),
    /// Set up a small local model on this machine
    #[command(after_help = "Example:\n  iudex setup")]
    Setup(SetupArgs),
    /// Print a page of the reference as Markdown
    #[command(hide = true)]
    Reference {
        /// Which page
        page: ReferencePage,
    },
}

/// `iudex run`.
#[derive(Debug, Args)]
pub(crate) struct RunArgs {
    /// The goal, or `-` to read it from standard input
    #[arg(required_unless_present = "file", value_name = "GOAL")]
    pub(crate) goal: Option<String>,
    /// Accept only when this command exits 0; may be given several times
    #[arg(long, value_name = "CMD")]
    pub(crate) until: Vec<String>,
    /// Time limit of each check command (10m)
    #[arg(long, value_name = "DURATION")]
    pub(crate) check_timeout: Option<String>,
    /// Leave the checks of the configuration out; the outcome says so
    #[arg(long)]
    pub(crate) no_config_gates: bool,
    /// The model: a name, or `script:FILE`
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// How often a red check goes back to the agent (3)
    #[arg(long, value_name = "N")]
    pub(crate) max_retries: Option<u32>,
    /// Model calls in one pass (50)
    #[arg(long, value_name = "N")]
    pub(crate) max_steps: Option<u32>,
    /// Prompt and output tokens of the whole run
    #[arg(long, value_name = "N")]
    pub(crate) max_tokens: Option<u64>,
    /// Money for the whole run, in US dollars
    #[arg(long, value_name = "USD")]
    pub(crate) max_cost: Option<f64>,
    /// Wall clock for the whole run (no limit)
    #[arg(long, value_name = "DURATION")]
    pub(crate) timeout: Option<String>,
    /// Sampling seed
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Let commands reach the network
    #[arg(long)]
    pub(crate) net: bool,
    /// Run commands without a sandbox; the outcome says so
    #[arg(long)]
    pub(crate) no_sandbox: bool,
    /// Work in a plain directory above 20,000 files or 1 GiB
    #[arg(long)]
    pub(crate) large_directory: bool,
    /// Print plan, gates and stack, and run nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Print one JSON object an event, and the result as the last
    #[arg(long)]
    pub(crate) json: bool,
    /// Work in this directory instead of the present one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
    /// Read the task from a Markdown or TOML file
    #[arg(long, value_name = "TASK")]
    pub(crate) file: Option<PathBuf>,
}

/// A run, by name.
#[derive(Debug, Args)]
pub(crate) struct RunName {
    /// The run, or the beginning of its name; without it the last one in this directory
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
    /// The directory, instead of the present one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// A run, by name, for people or machines.
#[derive(Debug, Args)]
pub(crate) struct RunNameJson {
    #[command(flatten)]
    pub(crate) name: RunName,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// `iudex undo`.
#[derive(Debug, Args)]
pub(crate) struct UndoArgs {
    #[command(flatten)]
    pub(crate) name: RunName,
    /// Also bring back files that somebody else changed since
    #[arg(long)]
    pub(crate) force: bool,
}

/// `iudex log`.
#[derive(Debug, Args)]
pub(crate) struct LogArgs {
    /// The runs of every directory
    #[arg(long)]
    pub(crate) all: bool,
    /// At most so many
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub(crate) most: u32,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The directory, instead of the present one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// `--json` and `--cwd` alone.
#[derive(Debug, Args)]
pub(crate) struct JsonFlag {
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
    /// The directory, instead of the present one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// `iudex init`.
#[derive(Debug, Args)]
pub(crate) struct InitArgs {
    /// Replace an iudex.toml that is there already
    #[arg(long)]
    pub(crate) force: bool,
    /// The directory, instead of the present one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// `iudex trust`.
#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    /// Only show what would be trusted
    #[arg(long)]
    pub(crate) show: bool,
    /// Take the trust back
    #[arg(long, conflicts_with = "show")]
    pub(crate) remove: bool,
    /// The directory, instead of the present one
    #[arg(long, value_name = "DIR")]
    pub(crate) cwd: Option<PathBuf>,
}

/// `iudex setup`.
#[derive(Debug, Args)]
pub(crate) struct SetupArgs {
    /// Stop the server that was set up
    #[arg(long)]
    pub(crate) stop: bool,
    /// Say what is set up
    #[arg(long, conflicts_with = "stop")]
    pub(crate) status: bool,
}

/// A page of the reference that is made from the program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum ReferencePage {
    /// Commands and flags
    Cli,
    /// Configuration keys
    Configuration,
}
