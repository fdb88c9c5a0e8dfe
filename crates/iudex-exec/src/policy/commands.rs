//! The rules for one plain command with its words resolved.

use super::path::{absolute, braces, is_outside, is_raw_device, without_star};
use super::rules;
use super::script::{Judge, cut};
use super::word::Word;

/// Where programs of the system lie; a program by another path is the project's own, whatever its name.
const SYSTEM_DIRECTORIES: [&str; 7] =
    ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/", "/usr/lib/git-core/"];

/// The name of the program that a word calls, by its first possible value.
pub(super) fn program(word: &Word) -> Option<String> {
    let text = word.values.first()?;
    if !text.contains('/') {
        return Some(text.clone());
    }
    SYSTEM_DIRECTORIES.iter().find_map(|directory| text.strip_prefix(directory)).map(str::to_owned)
}

fn shown(words: &[Word]) -> String {
    cut(&words.iter().map(Word::shown).collect::<Vec<_>>().join(" "))
}

/// The words that are not options; all after `--` are.
fn operands(words: &[Word]) -> Vec<&Word> {
    let mut only_operands = false;
    let mut found = Vec::new();
    for word in words.iter().skip(1) {
        let text = word.values.first().map_or("", String::as_str);
        if !only_operands && text == "--" {
            only_operands = true;
        } else if only_operands || text.len() < 2 || !text.starts_with('-') {
            found.push(word);
        }
    }
    found
}

fn asks_for_help(words: &[Word]) -> bool {
    words.len() == 2 && words[1].any(|text| matches!(text, "--help" | "--version" | "-V" | "-h"))
}

impl Judge<'_> {
    pub(super) fn plain(&mut self, name: &str, words: &[Word]) {
        match name {
            "cd" | "pushd" => self.change_directory(words),
            "popd" => self.cwd = None,
            "rm" => self.removal(words),
            "git" => self.git(words),
            "git-push" | "git-send-pack" => self.push(words),
            "hg" if words.get(1).is_some_and(|word| word.any(|text| text == "push")) => self.push(words),
            "jj" if rules::has_sequence(words, &["git", "push"]) => self.push(words),
            _ if asks_for_help(words) => {}
            "shutdown" | "reboot" | "halt" | "poweroff" => self.refuse_shutdown(words),
            "init" | "telinit" if operands(words).iter().any(|word| word.any(|text| matches!(text, "0" | "6"))) => {
                self.refuse_shutdown(words);
            }
            "systemctl" | "loginctl" if rules::is_power_verb(&operands(words)) => self.refuse_shutdown(words),
            "mke2fs" => self.refuse_device(words, "makes a file system"),
            _ if name == "mkfs" || name.starts_with("mkfs.") => self.refuse_device(words, "makes a file system"),
            "dd" => {
                for target in words.iter().filter_map(|word| rules::value_after(word, "of=")) {
                    self.write_target(&target, "write to");
                }
            }
            "tee" => {
                for target in operands(words) {
                    self.write_target(target, "write to");
                }
            }
            "cp" | "mv" | "install" => self.copy(words),
            _ if rules::DEVICE_PROGRAMS.contains(&name) => {
                let device = operands(words).into_iter().find(|word| self.names_device(word));
                if device.is_some() {
                    self.refuse_device(words, "works on a raw device");
                }
            }
            "perl" if words.iter().any(|word| word.any(rules::is_perl_fork_bomb)) => {
                self.refuse("fork-bomb", format!("`{}` starts itself without end", shown(words)));
            }
            _ => {}
        }
    }

    fn change_directory(&mut self, words: &[Word]) {
        let target = match operands(words).first() {
            None => Some(self.home()),
            Some(word) => word.text().filter(|text| *text != "-" && !text.starts_with('+')).map(str::to_owned),
        };
        self.cwd = target.and_then(|target| absolute(&target, self.cwd.as_deref()));
        let value = self.cwd.as_ref().map_or_else(Word::unknown, |cwd| Word::known(cwd.to_string_lossy()));
        self.assign("PWD", value);
    }

    fn removal(&mut self, words: &[Word]) {
        let is_recursive = words.iter().skip(1).take_while(|word| !word.any(|text| text == "--")).any(|word| {
            word.any(|text| match text.strip_prefix("--") {
                Some(long) => long.len() > 2 && "recursive".starts_with(long),
                None => text.starts_with('-') && text.contains(['r', 'R']),
            })
        });
        if !is_recursive {
            return;
        }
        for word in operands(words) {
            for value in &word.values {
                let choices = if word.braces { braces(value) } else { vec![value.clone()] };
                if choices.iter().any(|choice| self.is_vital(choice, word.glob)) {
                    self.refuse_removal(words, value);
                    return;
                }
            }
        }
    }

    pub(super) fn refuse_removal(&mut self, words: &[Word], target: &str) {
        let reason = format!("`{}` would remove everything in {target}", shown(words));
        self.refuse("recursive-removal", reason);
    }

    /// True when this names the root, the home directory, or a directory that holds it.
    pub(super) fn is_vital(&self, target: &str, glob: bool) -> bool {
        if target.is_empty() {
            return false;
        }
        let named = if glob { without_star(target) } else { target };
        let Some(path) = absolute(named, self.cwd.as_deref()) else { return false };
        let home = &self.context.home;
        if path.parent().is_none() || (path == *home && home.parent().is_some()) {
            return true;
        }
        home.starts_with(&path) && !path.starts_with(&self.context.work_dir)
    }

    fn git(&mut self, words: &[Word]) {
        let Some((verb, aliases)) = rules::git_verb(words) else { return };
        let rest = &words[verb..];
        let name = rest[0].shown().to_owned();
        let texts: Vec<&str> = rest.iter().map(Word::shown).collect();
        match name.as_str() {
            "push" if texts.iter().any(|text| matches!(*text, "--help" | "-h" | "--dry-run" | "-n")) => {}
            "push" | "send-pack" => self.push(words),
            "subtree" | "lfs" if texts.iter().skip(1).find(|text| !text.starts_with('-')) == Some(&"push") => {
                self.push(words);
            }
            "submodule" | "bisect" => {
                let at = texts.iter().position(|text| matches!(*text, "foreach" | "run"));
                if let Some(at) = at {
                    let inner: Vec<Word> = rest[at + 1..]
                        .iter()
                        .filter(|word| !word.any(|text| text == "--recursive" || text == "--quiet"))
                        .cloned()
                        .collect();
                    self.inner_command(&inner);
                }
            }
            "rebase" => {
                for (at, text) in texts.iter().enumerate() {
                    if matches!(*text, "-x" | "--exec") {
                        self.inner_command(rest.get(at + 1..at + 2).unwrap_or_default());
                    } else if let Some(script) = text.strip_prefix("--exec=") {
                        self.inner_command(&[Word::known(script)]);
                    }
                }
            }
            _ => {
                let alias = aliases.iter().rev().find(|(alias, _)| *alias == name).map(|(_, text)| text.clone());
                match alias.as_deref().map(|text| (text, text.strip_prefix('!'))) {
                    Some((_, Some(script))) => self.child_script(script, &super::script::Flow::default(), &[]),
                    Some((text, None)) if text.split_whitespace().next() == Some("push") => self.push(words),
                    _ => {}
                }
            }
        }
    }

    /// A command that is given as one text or as words.
    fn inner_command(&mut self, words: &[Word]) {
        let flow = super::script::Flow::default();
        match words {
            [one] => {
                for text in &one.values {
                    self.child_script(text, &flow, &[]);
                }
            }
            many => self.run(many, &flow),
        }
    }

    fn push(&mut self, words: &[Word]) {
        self.refuse("push", format!("`{}` would push to a remote", shown(words)));
    }

    fn refuse_shutdown(&mut self, words: &[Word]) {
        self.refuse("shutdown", format!("`{}` would stop the machine", shown(words)));
    }

    fn refuse_device(&mut self, words: &[Word], does: &str) {
        self.refuse("raw-device", format!("`{}` {does}", shown(words)));
    }

    fn names_device(&self, word: &Word) -> bool {
        word.any(|text| absolute(text, self.cwd.as_deref()).is_some_and(|path| is_raw_device(&path)))
    }

    fn copy(&mut self, words: &[Word]) {
        let operands = operands(words);
        let named = words.iter().enumerate().find_map(|(at, word)| match word.shown() {
            "-t" | "--target-directory" => words.get(at + 1).cloned(),
            _ => rules::value_after(word, "--target-directory="),
        });
        let target = named.or_else(|| operands.last().filter(|_| operands.len() > 1).map(|word| (*word).clone()));
        if let Some(target) = target {
            self.write_target(&target, "write to");
        }
    }

    /// A file that would be written: a raw device is refused, a place that is certainly outside is denied.
    pub(super) fn write_target(&mut self, target: &Word, does: &str) {
        if self.names_device(target) {
            self.refuse("raw-device", format!("it would write to the raw device {}", target.shown()));
        }
        if target.any(|text| text == "/proc/sysrq-trigger") {
            self.refuse("shutdown", "it would write to /proc/sysrq-trigger".to_owned());
        }
        let Some(text) = target.text().filter(|text| text.starts_with('/')) else { return };
        let Some(path) = absolute(text, None) else { return };
        let mut roots = vec![self.context.work_dir.as_path()];
        roots.extend(["/tmp", "/var/tmp", "/dev", "/proc/self"].map(std::path::Path::new));
        roots.extend(self.context.writable.iter().map(std::path::PathBuf::as_path));
        if is_outside(&path, &roots) {
            let work_dir = self.context.work_dir.display();
            self.deny(format!(
                "this command would {does} {text}, which is outside the work directory {work_dir}. Use a path inside it, or /tmp."
            ));
        }
    }
}
