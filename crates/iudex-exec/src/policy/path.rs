//! Paths as text: what a word names when it is taken as a path. Never follows a link for a refusal.

use std::path::{Component, Path, PathBuf};

/// The absolute form of `text` without `.` and `..`; `None` for a relative path when `cwd` is unknown.
pub(super) fn absolute(text: &str, cwd: Option<&Path>) -> Option<PathBuf> {
    let path = Path::new(text);
    let joined = if path.is_absolute() { path.to_path_buf() } else { cwd?.join(path) };
    let mut clean = PathBuf::from("/");
    for component in joined.components() {
        match component {
            Component::Normal(name) => clean.push(name),
            Component::ParentDir => {
                clean.pop();
            }
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(clean)
}

/// `dir/*` and the like: the directory whose whole content the pattern names, else the text as it is.
pub(super) fn without_star(text: &str) -> &str {
    let mut rest = text;
    loop {
        let trimmed = rest.trim_end_matches('/');
        let (parent, last) = match trimmed.rfind('/') {
            Some(at) => (&trimmed[..=at], &trimmed[at + 1..]),
            None => ("", trimmed),
        };
        let is_everything = last.contains('*') && last.chars().all(|c| "*?.[]!^".contains(c));
        if !is_everything {
            return if rest.is_empty() { "." } else { rest };
        }
        rest = parent;
    }
}

/// Text with `{a,b}` written out (one level at a time, at most 32 results).
pub(super) fn braces(text: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![text.to_owned()];
    while let Some(next) = open.pop() {
        match split_braces(&next) {
            Some(parts) if done.len() + open.len() < 32 => open.extend(parts),
            _ => done.push(next),
        }
    }
    done
}

fn split_braces(text: &str) -> Option<Vec<String>> {
    let start = text.find('{')?;
    let mut depth = 0_u32;
    let mut cuts = vec![start];
    for (at, c) in text[start..].char_indices() {
        let at = start + at;
        match c {
            '{' => depth += 1,
            ',' if depth == 1 => cuts.push(at),
            '}' if depth == 1 => {
                cuts.push(at);
                let choices = cuts.windows(2).map(|pair| &text[pair[0] + 1..pair[1]]);
                return (cuts.len() > 2)
                    .then(|| choices.map(|choice| format!("{}{choice}{}", &text[..start], &text[at + 1..])).collect());
            }
            '}' => depth -= 1,
            _ => {}
        }
    }
    None
}

/// A path that is a block device (or the memory) by its name.
pub(super) fn is_raw_device(path: &Path) -> bool {
    let Some(name) = path.to_str().and_then(|text| text.strip_prefix("/dev/")) else { return false };
    let followed_by_digit = |prefix: &str| {
        name.strip_prefix(prefix)
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '*' || c == '?'))
    };
    let followed_by_letter = |prefix: &str| {
        name.strip_prefix(prefix).is_some_and(|rest| {
            rest.starts_with(|c: char| c.is_ascii_lowercase() || c == '*' || c == '?' || c == '[')
                && rest.chars().skip(1).all(|c| c.is_ascii_alphanumeric() || "*?[]-".contains(c))
                && rest.len() <= 12
        })
    };
    ["sd", "hd", "vd", "xvd"].iter().any(|prefix| followed_by_letter(prefix))
        || ["nvme", "mmcblk", "loop", "dm-", "md", "sr", "nbd", "zram", "ram", "mtdblock", "pmem", "rbd", "drbd"]
            .iter()
            .any(|prefix| followed_by_digit(prefix))
        || ["mapper/", "disk/", "md/", "block/"].iter().any(|prefix| name.starts_with(prefix))
        || matches!(name, "mem" | "kmem" | "port")
}

/// True when `path` is certainly not beneath one of `roots`, links taken into account.
pub(super) fn is_outside(path: &Path, roots: &[&Path]) -> bool {
    let beneath = |path: &Path| roots.iter().any(|root| path.starts_with(root));
    if beneath(path) {
        return false;
    }
    let real = path.ancestors().find_map(|ancestor| ancestor.canonicalize().ok());
    !real.is_some_and(|real| beneath(&real))
}
