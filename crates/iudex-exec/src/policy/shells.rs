//! Programs that run other commands: shells, `eval`, `xargs`, `find -exec`, and the many that only put something around
//! one. What is run is judged in place of them.

use super::commands::program;
use super::script::{Flow, Judge, cut};
use super::word::Word;

/// A program that runs the command in its arguments.
struct Wrapper {
    /// Its options that take a value of their own.
    valued: &'static [&'static str],
    /// Operands before the command.
    operands: usize,
}

const fn wrapper(valued: &'static [&'static str], operands: usize) -> Wrapper {
    Wrapper { valued, operands }
}

fn wrapper_of(name: &str) -> Option<Wrapper> {
    Some(match name {
        "nohup" | "command" | "setsid" | "builtin" | "busybox" | "toybox" | "fakeroot" | "coproc" | "unbuffer"
        | "then" | "do" | "else" | "unshare" => wrapper(&[], 0),
        "exec" => wrapper(&["-a"], 0),
        "env" => wrapper(&["-u", "--unset", "-C", "--chdir"], 0),
        "time" => wrapper(&["-f", "--format", "-o", "--output"], 0),
        "nice" => wrapper(&["-n", "--adjustment"], 0),
        "ionice" => wrapper(&["-c", "-n", "-p", "-P", "-u"], 0),
        "stdbuf" => wrapper(&["-i", "-o", "-e"], 0),
        "timeout" => wrapper(&["-k", "--kill-after", "-s", "--signal"], 1),
        "chroot" => wrapper(&["--userspec", "--groups"], 1),
        "flock" => wrapper(&["-w", "--timeout", "-E"], 1),
        "strace" | "ltrace" => wrapper(&["-e", "-o", "-p", "-s", "-u", "-E", "-a"], 0),
        "chrt" | "taskset" => wrapper(&["-T", "-P", "-D"], 1),
        "sudo" => wrapper(&["-u", "-g", "-h", "-p", "-C", "-D", "-R", "-T", "-U", "--user", "--group", "--chdir"], 0),
        "doas" => wrapper(&["-u", "-C"], 0),
        "pkexec" => wrapper(&["--user"], 0),
        _ => return None,
    })
}

const SHELLS: [&str; 10] = ["sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "fish", "rbash", "yash"];

/// The command inside a wrapper; `None` when this is no wrapper.
fn unwrapped(words: &[Word]) -> Option<&[Word]> {
    let name = program(words.first()?)?;
    let wrapper = wrapper_of(&name)?;
    let mut at = 1;
    let mut operands = wrapper.operands;
    while let Some(word) = words.get(at) {
        let text = word.values.first().map_or("", String::as_str);
        if name == "command" && matches!(text, "-v" | "-V") {
            return Some(&[]);
        }
        if text == "--" {
            at += 1;
        } else if text.len() > 1 && text.starts_with('-') {
            at += if wrapper.valued.contains(&text) { 2 } else { 1 };
        } else if (name == "env" || name == "sudo") && is_assignment(text) {
            at += 1;
        } else if operands > 0 {
            operands -= 1;
            at += 1;
        } else {
            break;
        }
    }
    Some(words.get(at..).unwrap_or_default())
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=')
        .is_some_and(|(name, _)| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

/// The value of an option that may stand apart or behind `=` or the letter itself.
fn option_value(words: &[Word], short: &str, long: &str) -> Option<Word> {
    for (at, word) in words.iter().enumerate().skip(1) {
        let text = word.values.first().map_or("", String::as_str);
        if text == short || text == long {
            return words.get(at + 1).cloned();
        }
        let behind = text
            .strip_prefix(long)
            .and_then(|rest| rest.strip_prefix('='))
            .or_else(|| (!text.starts_with("--")).then(|| text.strip_prefix(short)).flatten());
        if let Some(value) = behind {
            return Some(Word { values: vec![value.to_owned()], ..word.clone() });
        }
    }
    None
}

/// What a command prints, as far as it is known.
pub(super) fn output_of(judge: &Judge<'_>, words: &[Word], input: &Flow) -> Flow {
    let mut words = words;
    while let Some(inner) = unwrapped(words) {
        words = inner;
    }
    let name = words.first().and_then(program).unwrap_or_default();
    let remote = input.remote || words.iter().any(|word| word.remote) || super::rules::is_remote_fetch(&name, words);
    let arguments = words.get(1..).unwrap_or_default();
    let texts = match name.as_str() {
        "echo" | "printf" => {
            joined(arguments.iter().skip_while(|word| word.any(|text| matches!(text, "-n" | "-e" | "-ne" | "-en"))))
                .map(|text| if name == "printf" || text.contains('\\') { text.replace("\\n", "\n") } else { text })
                .into_iter()
                .collect()
        }
        "cat" | "tee" if !arguments.iter().any(|word| name == "cat" && !word.any(|text| text.starts_with('-'))) => {
            input.texts.clone()
        }
        "pwd" => judge.cwd.iter().map(|cwd| cwd.to_string_lossy().into_owned()).collect(),
        "find" => super::rules::find_roots(judge, words).unwrap_or_default(),
        _ => Vec::new(),
    };
    Flow { remote, texts }
}

/// Words as one text, when all are known.
fn joined<'w>(words: impl Iterator<Item = &'w Word>) -> Option<String> {
    let mut text = String::new();
    for word in words {
        if !text.is_empty() {
            text.push(' ');
        }
        text.push_str(word.text()?);
    }
    Some(text)
}

impl Judge<'_> {
    /// Judges one command with its words resolved.
    pub(super) fn run(&mut self, words: &[Word], stdin: &Flow) {
        if self.enter() {
            self.run_within(words, stdin);
            self.leave();
        }
    }

    fn run_within(&mut self, words: &[Word], stdin: &Flow) {
        let Some(first) = words.first() else { return };
        let Some(name) = program(first) else { return };
        if self.function_call(&name, words, stdin) {
            return;
        }
        match name.as_str() {
            "sudo" | "doas" | "su" | "pkexec" => self.deny(format!(
                "`{name}` is not available here. Run the command without it, inside the work directory."
            )),
            _ => {}
        }
        if matches!(name.as_str(), "env" | "flock" | "script" | "su" | "watch")
            && let Some(script) = match name.as_str() {
                "env" => option_value(words, "-S", "--split-string"),
                "watch" => joined(words.iter().skip(1).skip_while(|word| word.any(|text| text.starts_with('-'))))
                    .map(Word::known),
                _ => option_value(words, "-c", "--command"),
            }
        {
            self.run_text(&script, stdin, &[], &name);
            return;
        }
        if let Some(inner) = unwrapped(words) {
            let inner = inner.to_vec();
            self.run(&inner, stdin);
            return;
        }
        match name.as_str() {
            shell if SHELLS.contains(&shell) => self.shell(words, stdin),
            "eval" => self.eval(words, stdin),
            "source" | "." => {
                if let Some(file) = words.get(1) {
                    if file.remote {
                        self.refuse_remote(words);
                    } else if file.any(is_stdin) {
                        self.shell_stdin(words, stdin);
                    }
                }
            }
            "trap" => {
                if let Some(script) = words.get(1).filter(|word| !word.any(|text| text.starts_with('-'))) {
                    self.run_text(script, &Flow::default(), &[], "trap");
                }
            }
            "xargs" | "parallel" => self.xargs(words, stdin),
            "find" | "fd" | "fdfind" => self.find(words),
            _ => self.plain(&name, words),
        }
    }

    /// Judges text that a shell will run.
    fn run_text(&mut self, script: &Word, stdin: &Flow, parameters: &[Word], by: &str) {
        if script.remote {
            self.refuse("remote-script", format!("`{by}` would run text that comes from the network"));
        }
        for text in &script.values {
            self.child_script(text, stdin, parameters);
        }
    }

    fn eval(&mut self, words: &[Word], stdin: &Flow) {
        if words.iter().any(|word| word.remote) {
            self.refuse_remote(words);
        } else if let Some(text) = joined(words.iter().skip(1)) {
            self.script(&text, stdin);
        } else if let [_, only] = words {
            for text in &only.values {
                self.script(text, stdin);
            }
        }
    }

    fn shell(&mut self, words: &[Word], stdin: &Flow) {
        let mut at = 1;
        let (mut takes_script, mut reads_stdin) = (false, false);
        while let Some(word) = words.get(at) {
            let text = word.values.first().map_or("", String::as_str);
            if text == "--" || text == "-" {
                at += 1;
                break;
            }
            if !text.starts_with(['-', '+']) || text.len() < 2 {
                break;
            }
            at += 1;
            if text.starts_with("--") {
                at += usize::from(matches!(text, "--rcfile" | "--init-file"));
                continue;
            }
            takes_script |= text.starts_with('-') && text.contains('c');
            reads_stdin |= text.contains('s');
            at += usize::from(text.ends_with(['o', 'O']));
        }
        let operands = words.get(at..).unwrap_or_default();
        match operands.first() {
            Some(script) if takes_script => {
                let (script, parameters) = (script.clone(), operands[1..].to_vec());
                let by = words[0].shown().to_owned();
                self.run_text(&script, stdin, &parameters, &by);
            }
            Some(file) if !reads_stdin => {
                if file.remote {
                    self.refuse_remote(words);
                } else if file.any(is_stdin) {
                    self.shell_stdin(words, stdin);
                }
            }
            _ => self.shell_stdin(words, stdin),
        }
    }

    fn shell_stdin(&mut self, words: &[Word], stdin: &Flow) {
        if stdin.remote {
            self.refuse_remote(words);
        }
        for text in &stdin.texts {
            self.child_script(text, &Flow::default(), &[]);
        }
    }

    fn refuse_remote(&mut self, words: &[Word]) {
        let shown = words.iter().map(Word::shown).collect::<Vec<_>>().join(" ");
        self.refuse("remote-script", format!("`{}` would run a script that comes from the network", cut(&shown)));
    }

    fn xargs(&mut self, words: &[Word], stdin: &Flow) {
        const VALUED: [&str; 14] = [
            "-I",
            "-i",
            "-n",
            "-L",
            "-P",
            "-d",
            "-s",
            "-E",
            "-a",
            "-j",
            "--delimiter",
            "--max-args",
            "--max-procs",
            "--replace",
        ];
        let mut at = 1;
        let mut place = None;
        while let Some(text) = words.get(at).and_then(|word| word.values.first()).filter(|text| text.starts_with('-')) {
            if let Some(behind) = text.strip_prefix("-I") {
                let named = if behind.is_empty() {
                    words.get(at + 1).map(|word| word.shown().to_owned())
                } else {
                    Some(behind.to_owned())
                };
                place = named;
            }
            at += if VALUED.contains(&text.as_str()) { 2 } else { 1 };
        }
        let mut inner = words.get(at..).unwrap_or_default().to_vec();
        let items: Vec<String> =
            stdin.texts.iter().flat_map(|text| text.split_whitespace().map(str::to_owned)).collect();
        let item = Word { values: items, unknown: true, remote: stdin.remote, ..Word::default() };
        match place {
            Some(place) => put_in(&mut inner, &place, &item),
            None => inner.push(item),
        }
        self.run(&inner, &Flow::default());
    }

    fn find(&mut self, words: &[Word]) {
        let roots = super::rules::find_roots(self, words);
        let item = roots.clone().map_or_else(Word::unknown, |values| Word { values, ..Word::default() });
        let texts: Vec<&str> = words.iter().map(Word::shown).collect();
        if texts.contains(&"-delete")
            && let Some(root) = roots.iter().flatten().find(|root| self.is_vital(root, false))
        {
            let root = root.clone();
            self.refuse_removal(words, &root);
        }
        // What lies within a command that was judged is not judged again.
        let mut judged = 0;
        for (at, text) in texts.iter().enumerate() {
            if at < judged {
                continue;
            }
            if !matches!(*text, "-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch") {
                continue;
            }
            let rest = &words[at + 1..];
            let end = rest.iter().position(|word| word.any(|text| matches!(text, ";" | "+"))).unwrap_or(rest.len());
            judged = at + 1 + end;
            let mut inner = rest[..end].to_vec();
            put_in(&mut inner, "{}", &item);
            self.run(&inner, &Flow::default());
        }
    }
}

/// Puts the possible values of `item` where `place` stands.
fn put_in(words: &mut [Word], place: &str, item: &Word) {
    for word in words.iter_mut().filter(|word| word.any(|text| text.contains(place))) {
        let mut values = Vec::new();
        for text in &word.values {
            values.extend(item.values.iter().take(16).map(|value| text.replace(place, value)));
        }
        *word = Word {
            values,
            unknown: word.unknown || item.unknown,
            remote: word.remote || item.remote,
            ..Word::default()
        };
    }
}

fn is_stdin(text: &str) -> bool {
    matches!(text, "-" | "/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0")
}
