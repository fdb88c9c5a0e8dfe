//! The reference, made from the same definitions as help and configuration.

use std::fmt::Write;

use clap::{Command, CommandFactory};
use iudex_app::config::key_reference;

use super::project::value_text;
use crate::args::{Cli, ReferencePage};

/// A page as Markdown; the file in `docs/reference` is this text, and a test keeps it so.
pub(super) fn markdown(page: ReferencePage) -> String {
    match page {
        ReferencePage::Cli => cli(),
        ReferencePage::Configuration => configuration(),
    }
}

fn cli() -> String {
    let mut text = String::from("# Command line\n\n<!-- Generated: iudex reference cli > docs/reference/cli.md -->\n");
    let mut program = Cli::command();
    program.build();
    section(&mut text, &program, "iudex");
    for command in program.get_subcommands().filter(|command| !command.is_hide_set()) {
        section(&mut text, command, &format!("iudex {}", command.get_name()));
    }
    text
}

fn section(text: &mut String, command: &Command, name: &str) {
    let help = command.clone().term_width(100).bin_name(name).render_long_help().to_string();
    let lines: Vec<&str> = help.trim_end().lines().map(str::trim_end).collect();
    let _ = write!(text, "\n## `{name}`\n\n```text\n{}\n```\n", lines.join("\n"));
}

fn configuration() -> String {
    let mut text = String::from(
        "# Configuration\n\n<!-- Generated: iudex reference configuration > docs/reference/configuration.md -->\n\n\
         `iudex.toml` in the project, `~/.config/iudex/config.toml` for you; the environment (`IUDEX_MODEL`,\n\
         `IUDEX_BASE_URL`, `IUDEX_API_KEY`) wins over both, and flags win over everything. `iudex config` prints each value\n\
         and where it came from. An unknown key is an error that names the nearest.\n\n\
         A project's file takes effect where it tightens. Where it would loosen something (run commands, choose an address\n\
         or a key, open the network, raise a limit) it needs your trust by content: `iudex trust`.\n\n\
         Durations are written `250ms`, `90s`, `10m`, `1h30m`.\n\n| key | default | |\n| --- | --- | --- |\n",
    );
    for key in key_reference() {
        let default = if key.default.is_null() { "-".to_owned() } else { format!("`{}`", value_text(&key.default)) };
        let _ = writeln!(text, "| `{}` | {default} | {} |", key.key, key.about);
    }
    text
}
