//! What makes a command one of those that the rules name. Pure questions without an answer of their own.

use tree_sitter::Node;

use super::script::{Judge, named};
use super::word::Word;

/// Programs that change what lies on a block device when they are given one.
pub(super) const DEVICE_PROGRAMS: [&str; 24] = [
    "shred",
    "wipefs",
    "fdisk",
    "sfdisk",
    "cfdisk",
    "gdisk",
    "sgdisk",
    "parted",
    "blkdiscard",
    "badblocks",
    "mkswap",
    "hdparm",
    "cryptsetup",
    "pvcreate",
    "vgcreate",
    "pvremove",
    "mdadm",
    "zpool",
    "truncate",
    "debugfs",
    "tune2fs",
    "resize2fs",
    "mkntfs",
    "mkdosfs",
];

/// True for a program that prints what it fetches from another machine.
pub(super) fn is_remote_fetch(name: &str, words: &[Word]) -> bool {
    if !matches!(name, "curl" | "wget" | "fetch" | "http" | "https" | "xh" | "aria2c" | "lwp-request" | "GET") {
        return false;
    }
    let addresses: Vec<&str> = words
        .iter()
        .skip(1)
        .flat_map(|word| word.values.iter().map(String::as_str))
        .filter(|text| !text.starts_with('-') && (text.contains("://") || is_loopback(text)))
        .collect();
    addresses.is_empty() || !addresses.iter().all(|address| is_loopback(address))
}

fn is_loopback(address: &str) -> bool {
    if address.starts_with("file://") {
        return true;
    }
    let rest = address.split_once("://").map_or(address, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let name = host.split(':').next().unwrap_or_default();
    let is_v4 = name.strip_prefix("127.").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'));
    name == "localhost" || is_v4 || host.starts_with("[::1]")
}

/// The starting points of a `find` whose tests leave nothing out; `None` when it narrows them.
pub(super) fn find_roots(judge: &Judge<'_>, words: &[Word]) -> Option<Vec<String>> {
    const WIDE: [&str; 20] = [
        "-type",
        "-mindepth",
        "-maxdepth",
        "-depth",
        "-d",
        "-xdev",
        "-mount",
        "-print",
        "-print0",
        "-delete",
        "-ls",
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-o",
        "-a",
        "-ignore_readdir_race",
        "-follow",
        "-noleaf",
    ];
    let mut roots = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.shown();
        if matches!(text, "-H" | "-L" | "-P") && roots.is_empty() {
            at += 1;
            continue;
        }
        if text.starts_with('-') || matches!(text, "(" | "!" | ",") {
            break;
        }
        roots.extend(
            word.values.iter().map(|value| if word.glob { super::path::without_star(value) } else { value }.to_owned()),
        );
        at += 1;
    }
    let mut in_command = false;
    for (index, word) in words.iter().enumerate().skip(at) {
        let text = word.shown();
        if in_command {
            in_command = !matches!(text, ";" | "+");
        } else if matches!(text, "-exec" | "-execdir" | "-ok" | "-okdir") {
            in_command = true;
        } else if matches!(text, "-name" | "-iname")
            && words.get(index + 1).is_some_and(|word| word.any(|text| text == "*"))
        {
            // Everything has a name.
        } else if text.starts_with('-') && !WIDE.contains(&text) {
            return None;
        }
    }
    if roots.is_empty() {
        roots.extend(judge.cwd.iter().map(|cwd| cwd.to_string_lossy().into_owned()));
    }
    Some(roots)
}

/// `of=/dev/sda` after `of=`.
pub(super) fn value_after(word: &Word, prefix: &str) -> Option<Word> {
    let values: Vec<String> =
        word.values.iter().filter_map(|text| text.strip_prefix(prefix)).map(str::to_owned).collect();
    (!values.is_empty()).then(|| Word { values, ..word.clone() })
}

pub(super) fn has_sequence(words: &[Word], sequence: &[&str]) -> bool {
    words
        .windows(sequence.len())
        .any(|window| window.iter().zip(sequence).all(|(word, text)| word.any(|value| value == *text)))
}

pub(super) fn is_power_verb(operands: &[&Word]) -> bool {
    const VERBS: [&str; 8] =
        ["poweroff", "reboot", "halt", "kexec", "suspend", "hibernate", "soft-reboot", "hybrid-sleep"];
    operands.first().is_some_and(|word| word.any(|text| VERBS.contains(&text)))
}

/// Where the subcommand of `git` stands, and the aliases that `-c` sets.
pub(super) fn git_verb(words: &[Word]) -> Option<(usize, Vec<(String, String)>)> {
    let mut aliases = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        let text = word.shown();
        if !text.starts_with('-') {
            return Some((at, aliases));
        }
        if text == "-c"
            && let Some(setting) = words.get(at + 1)
            && let Some((name, value)) = setting.shown().split_once('=')
            && let Some(alias) = name.strip_prefix("alias.")
        {
            aliases.push((alias.to_owned(), value.to_owned()));
        }
        let takes_value = matches!(
            text,
            "-C" | "-c"
                | "--git-dir"
                | "--work-tree"
                | "--namespace"
                | "--exec-path"
                | "--super-prefix"
                | "--config-env"
                | "--attr-source"
        );
        at += if takes_value { 2 } else { 1 };
    }
    None
}

pub(super) fn is_perl_fork_bomb(text: &str) -> bool {
    let dense: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    dense.contains("forkwhilefork")
        || dense.contains("forkwhile1")
        || dense.contains("while(1){fork")
        || dense.contains("while1{fork")
}

/// A function that calls itself at least twice whatever happens, in the background or in a pipe.
pub(super) fn is_fork_bomb(definition: Node<'_>, source: &str) -> bool {
    let (Some(name), Some(body)) = (definition.child_by_field_name("name"), definition.child_by_field_name("body"))
    else {
        return false;
    };
    let name = source.get(name.byte_range()).unwrap_or_default();
    let mut calls = 0;
    let mut grows = false;
    let mut open = vec![(body, false)];
    while let Some((node, multiplied)) = open.pop() {
        let is_conditional = matches!(
            node.kind(),
            "if_statement"
                | "case_statement"
                | "while_statement"
                | "for_statement"
                | "c_style_for_statement"
                | "function_definition"
        );
        if is_conditional {
            continue;
        }
        let in_background = node.next_sibling().is_some_and(|next| !next.is_named() && next.kind() == "&");
        let multiplied = multiplied || in_background || node.kind() == "pipeline";
        if node.kind() == "command"
            && let Some(called) = node.child_by_field_name("name")
            && source.get(called.byte_range()) == Some(name)
        {
            calls += 1;
            grows |= multiplied;
        }
        let children = named(node);
        // What stands behind `&&` or `||` may not run.
        let most = if node.kind() == "list" { 1 } else { children.len() };
        open.extend(children.into_iter().take(most).map(|child| (child, multiplied)));
    }
    calls >= 2 && grows
}
