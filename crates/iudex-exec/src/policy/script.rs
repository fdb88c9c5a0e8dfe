//! Walks a parsed script: which commands would run, with which words, and what flows into them.
//!
//! Never: a rule. Rules are in `commands`, `shells` and `rules`.

use std::cell::Cell;
use std::collections::HashMap;
use std::path::PathBuf;

use tree_sitter::{Node, Parser};

use super::word::Word;
use super::{Decision, PolicyContext, rules};

/// Scripts within scripts that are followed.
const MOST_SCRIPTS: u32 = 8;
/// Nesting that is followed in all: of the syntax, of words in it, of programs that run others.
const MOST_NESTING: u32 = 120;
/// Calls of functions that are followed with their arguments, in all.
const MOST_CALLS: u32 = 100;
/// Nodes that are looked at in all.
const MOST_NODES: u32 = 50_000;

/// What a command reads on its standard input, as far as it is known.
#[derive(Debug, Clone, Default)]
pub(super) struct Flow {
    /// It may come from the network.
    pub remote: bool,
    /// Texts that it may be.
    pub texts: Vec<String>,
}

impl Flow {
    pub fn of(word: &Word) -> Self {
        Self { remote: word.remote, texts: word.values.clone() }
    }

    fn add(&mut self, other: Self) {
        self.remote |= other.remote;
        self.texts.extend(other.texts);
        self.texts.truncate(16);
    }
}

/// The judgement of one command line while it is made.
pub(super) struct Judge<'a> {
    pub context: &'a PolicyContext,
    pub cwd: Option<PathBuf>,
    /// The functions of the scripts, with their bodies.
    functions: HashMap<String, String>,
    calls: u32,
    variables: HashMap<String, Word>,
    refusal: Option<(&'static str, String)>,
    denial: Option<String>,
    scripts: u32,
    nesting: Cell<u32>,
    branches: u32,
    nodes: u32,
}

impl<'a> Judge<'a> {
    pub fn new(context: &'a PolicyContext) -> Self {
        let home = context.home.to_string_lossy().into_owned();
        let variables = HashMap::from([
            ("HOME".to_owned(), Word::known(home)),
            ("PWD".to_owned(), Word::known(context.work_dir.to_string_lossy())),
            ("SHELL".to_owned(), Word::known("/bin/bash")),
            ("BASH".to_owned(), Word::known("/bin/bash")),
        ]);
        Self {
            context,
            cwd: Some(context.work_dir.clone()),
            functions: HashMap::new(),
            calls: 0,
            variables,
            refusal: None,
            denial: None,
            scripts: 0,
            nesting: Cell::new(0),
            branches: 0,
            nodes: 0,
        }
    }

    pub fn decision(self) -> Decision {
        match (self.refusal, self.denial) {
            (Some((rule, reason)), _) => Decision::Refuse { rule, reason },
            (None, Some(reason)) => Decision::Deny { reason },
            (None, None) => Decision::Allow,
        }
    }

    pub fn refuse(&mut self, rule: &'static str, reason: String) {
        self.refusal.get_or_insert((rule, reason));
    }

    pub fn deny(&mut self, reason: String) {
        self.denial.get_or_insert(reason);
    }

    pub fn home(&self) -> String {
        self.context.home.to_string_lossy().into_owned()
    }

    pub fn variable(&self, name: &str) -> Word {
        self.variables.get(name).cloned().unwrap_or_else(Word::unknown)
    }

    /// Sets a variable; in a branch that may not run, its old value stays possible.
    pub fn assign(&mut self, name: &str, value: Word) {
        let value = if self.branches > 0 { value.or(self.variable(name)) } else { value };
        self.variables.insert(name.to_owned(), value);
    }

    /// Judges a script that runs in this shell.
    pub fn script(&mut self, text: &str, stdin: &Flow) {
        if self.scripts >= MOST_SCRIPTS || self.refusal.is_some() {
            return;
        }
        let mut parser = Parser::new();
        if parser.set_language(&tree_sitter_bash::LANGUAGE.into()).is_err() {
            return;
        }
        let Some(tree) = parser.parse(text, None) else { return };
        self.scripts += 1;
        self.collect_functions(tree.root_node(), text);
        self.visit(tree.root_node(), text, stdin);
        self.scripts -= 1;
    }

    /// Judges a script that runs in a shell of its own.
    pub fn child_script(&mut self, text: &str, stdin: &Flow, parameters: &[Word]) {
        let saved = (self.cwd.clone(), self.variables.clone());
        let all = parameters.iter().skip(1).cloned().fold(Word::default(), Word::or);
        for (number, value) in parameters.iter().enumerate() {
            self.variables.insert(number.to_string(), value.clone());
        }
        self.variables.insert("@".to_owned(), all.clone());
        self.variables.insert("*".to_owned(), all);
        self.script(text, stdin);
        (self.cwd, self.variables) = saved;
    }

    /// Judges the call of a function of the script; false when there is none of that name.
    pub fn function_call(&mut self, name: &str, words: &[Word], stdin: &Flow) -> bool {
        let Some(body) = self.functions.get(name).cloned() else { return false };
        // Its body was judged where it is defined; arguments may make it another thing.
        if words.len() > 1 && self.calls < MOST_CALLS {
            self.calls += 1;
            self.child_script(&body, stdin, words);
        }
        true
    }

    fn collect_functions(&mut self, root: Node<'_>, source: &str) {
        for_each(root, &mut |node| {
            if node.kind() == "function_definition"
                && let Some(name) = node.child_by_field_name("name")
            {
                let text = |node: Node<'_>| source.get(node.byte_range()).unwrap_or_default().to_owned();
                let body = node.child_by_field_name("body").map(text).unwrap_or_default();
                self.functions.insert(text(name), body);
            }
        });
    }

    pub fn visit(&mut self, node: Node<'_>, source: &str, stdin: &Flow) {
        if self.refusal.is_some() || self.nodes >= MOST_NODES || !self.enter() {
            return;
        }
        self.nodes += 1;
        match node.kind() {
            "comment" | "heredoc_start" | "heredoc_end" | "heredoc_content" | "raw_string" => {}
            "command" => self.command(node, source, stdin, Vec::new()),
            "pipeline" => {
                let mut flow = stdin.clone();
                for stage in named(node) {
                    self.in_subshell(|judge| judge.visit(stage, source, &flow));
                    flow = self.output(stage, source, &flow);
                }
            }
            "redirected_statement" => self.redirected(node, source, stdin),
            "subshell" | "command_substitution" | "process_substitution" => {
                self.in_subshell(|judge| judge.children(node, source, stdin));
            }
            "variable_assignment" => self.assignment(node, source, stdin),
            "for_statement" => {
                let value = all_with_field(node, "value")
                    .into_iter()
                    .flat_map(|child| self.words(child, source))
                    .fold(Word::default(), Word::or);
                if let Some(name) = node.child_by_field_name("variable") {
                    let name = source.get(name.byte_range()).unwrap_or_default();
                    self.variables.insert(name.to_owned(), value);
                }
                self.in_branch(|judge| judge.children(node, source, stdin));
            }
            "if_statement" | "while_statement" | "case_statement" | "c_style_for_statement" => {
                self.in_branch(|judge| judge.children(node, source, stdin));
            }
            "function_definition" => {
                if rules::is_fork_bomb(node, source) {
                    let text = source.get(node.byte_range()).unwrap_or_default();
                    self.refuse("fork-bomb", format!("`{}` starts itself without end", cut(text)));
                }
                self.in_branch(|judge| judge.in_subshell(|judge| judge.children(node, source, stdin)));
            }
            "list" => {
                for (index, side) in named(node).into_iter().enumerate() {
                    if index == 0 {
                        self.visit(side, source, stdin);
                    } else {
                        self.in_branch(|judge| judge.visit(side, source, stdin));
                    }
                }
            }
            _ => self.children(node, source, stdin),
        }
        self.leave();
    }

    /// One level deeper; false when that is too deep. Each that is true is followed by [`Judge::leave`].
    pub fn enter(&self) -> bool {
        let nesting = self.nesting.get();
        if nesting < MOST_NESTING {
            self.nesting.set(nesting + 1);
        }
        nesting < MOST_NESTING
    }

    pub fn leave(&self) {
        self.nesting.set(self.nesting.get() - 1);
    }

    fn children(&mut self, node: Node<'_>, source: &str, stdin: &Flow) {
        for child in named(node) {
            self.visit(child, source, stdin);
        }
    }

    fn in_subshell(&mut self, inner: impl FnOnce(&mut Self)) {
        let saved = (self.cwd.clone(), self.variables.clone());
        inner(self);
        (self.cwd, self.variables) = saved;
    }

    fn in_branch(&mut self, inner: impl FnOnce(&mut Self)) {
        self.branches += 1;
        inner(self);
        self.branches -= 1;
    }

    fn assignment(&mut self, node: Node<'_>, source: &str, stdin: &Flow) {
        self.children(node, source, stdin);
        let Some(name) = node.child_by_field_name("name") else { return };
        let name = source.get(name.byte_range()).unwrap_or_default();
        let value = node.child_by_field_name("value").map_or_else(|| Word::known(""), |value| self.word(value, source));
        let appends = source.get(node.byte_range()).is_some_and(|text| text[name.len()..].starts_with("+="));
        match name.split_once('[') {
            Some((array, _)) => self.assign(array, value.or(self.variable(array))),
            None if appends => {
                let value = self.variable(name).then(&value);
                self.assign(name, value);
            }
            None => self.assign(name, value),
        }
    }

    fn redirected(&mut self, node: Node<'_>, source: &str, stdin: &Flow) {
        let mut flow = stdin.clone();
        let mut late_words = Vec::new();
        let redirects = all_with_field(node, "redirect");
        let redirects = if redirects.is_empty() { named(node) } else { redirects };
        for redirect in redirects.iter().filter(|child| child.kind().ends_with("_redirect")) {
            flow = self.redirect(*redirect, source, flow, &mut late_words);
        }
        match node.child_by_field_name("body") {
            Some(body) if body.kind() == "command" => self.command(body, source, &flow, late_words),
            Some(body) => self.visit(body, source, &flow),
            None if late_words.is_empty() => {}
            None => self.run(&late_words, &flow),
        }
        let heredocs: Vec<_> = redirects.into_iter().filter(|child| child.kind() == "heredoc_redirect").collect();
        for heredoc in heredocs {
            for child in named(heredoc) {
                match child.kind() {
                    "pipeline" => {
                        let mut next = node
                            .child_by_field_name("body")
                            .map_or_else(Flow::default, |body| self.output(body, source, &flow));
                        for stage in named(child) {
                            self.visit(stage, source, &next);
                            next = self.output(stage, source, &next);
                        }
                    }
                    kind if kind.ends_with("_redirect") || kind.starts_with("heredoc_") => {}
                    _ => self.visit(child, source, stdin),
                }
            }
        }
    }

    /// Judges one redirection; returns what the command then reads. Words that the grammar takes for further
    /// destinations are arguments of the command.
    fn redirect(&mut self, node: Node<'_>, source: &str, mut flow: Flow, late_words: &mut Vec<Word>) -> Flow {
        match node.kind() {
            "file_redirect" => {
                self.children(node, source, &flow);
                let destinations = all_with_field(node, "destination");
                let mut words: Vec<Word> = destinations.iter().map(|child| self.word(*child, source)).collect();
                if words.is_empty() {
                    return flow;
                }
                let target = words.remove(0);
                late_words.extend(words);
                let mut cursor = node.walk();
                let operator = node
                    .children(&mut cursor)
                    .find(|child| !child.is_named())
                    .map_or("", |child| source.get(child.byte_range()).unwrap_or_default());
                if operator.contains('>') {
                    self.write_target(&target, "write to");
                } else if operator == "<" {
                    flow = Flow { remote: target.remote, texts: Vec::new() };
                }
                flow
            }
            "herestring_redirect" => {
                self.children(node, source, &flow);
                let mut cursor = node.walk();
                let word = node.named_children(&mut cursor).last().map(|child| self.word(child, source));
                word.map_or(flow, |word| Flow::of(&word))
            }
            "heredoc_redirect" => {
                let mut cursor = node.walk();
                for child in node.named_children(&mut cursor) {
                    if child.kind().ends_with("_redirect") {
                        flow = self.redirect(child, source, flow, late_words);
                    } else if child.kind() == "heredoc_body" {
                        self.children(child, source, &flow);
                        flow.add(Flow::of(&self.quoted(child, source, child.start_byte(), child.end_byte())));
                    }
                }
                late_words.extend(all_with_field(node, "argument").iter().flat_map(|child| self.words(*child, source)));
                flow
            }
            _ => flow,
        }
    }

    fn command(&mut self, node: Node<'_>, source: &str, stdin: &Flow, late_words: Vec<Word>) {
        let mut flow = stdin.clone();
        let mut extra = Vec::new();
        let mut cursor = node.walk();
        let children: Vec<_> = node.children(&mut cursor).collect();
        for child in &children {
            if child.kind().ends_with("_redirect") {
                flow = self.redirect(*child, source, flow, &mut extra);
            } else if child.is_named() {
                // Substitutions in words run; assignments before a command hold for that command.
                self.visit(*child, source, stdin);
            }
        }
        let mut words = self.command_words(node, source);
        words.extend(extra);
        words.extend(late_words);
        self.run(&words, &flow);
    }

    fn command_words(&self, node: Node<'_>, source: &str) -> Vec<Word> {
        let mut cursor = node.walk();
        node.children(&mut cursor)
            .filter(|child| {
                !child.kind().ends_with("_redirect")
                    && !matches!(child.kind(), "variable_assignment" | "subshell" | "comment")
            })
            .flat_map(|child| match (child.kind(), child.named_child(0)) {
                ("command_name", Some(inner)) => self.words(inner, source),
                _ => self.words(child, source),
            })
            .collect()
    }

    /// What a statement prints, as far as it is known.
    pub fn output(&self, node: Node<'_>, source: &str, input: &Flow) -> Flow {
        if !self.enter() {
            return Flow::default();
        }
        let flow = self.output_within(node, source, input);
        self.leave();
        flow
    }

    fn output_within(&self, node: Node<'_>, source: &str, input: &Flow) -> Flow {
        match node.kind() {
            "command" => super::shells::output_of(self, &self.command_words(node, source), input),
            "function_definition" | "comment" => Flow::default(),
            "redirected_statement" => {
                let mut flow = input.clone();
                for child in named(node) {
                    for body in named(child).into_iter().filter(|body| body.kind() == "heredoc_body") {
                        flow.add(Flow::of(&self.quoted(body, source, body.start_byte(), body.end_byte())));
                    }
                    if matches!(child.kind(), "herestring_redirect" | "file_redirect")
                        && let Some(word) = named(child).last().map(|word| self.word(*word, source))
                        && (child.kind() == "herestring_redirect" || word.process)
                    {
                        flow.add(Flow::of(&word));
                    }
                }
                let body = node.child_by_field_name("body");
                body.map_or_else(Flow::default, |body| self.output(body, source, &flow))
            }
            "pipeline" => {
                let mut flow = input.clone();
                for stage in named(node) {
                    flow = self.output(stage, source, &flow);
                }
                flow
            }
            _ => {
                let mut flow = Flow::default();
                for child in named(node) {
                    flow.add(self.output(child, source, input));
                }
                flow
            }
        }
    }

    /// True when something beneath this node fetches from the network.
    pub fn fetches(&self, node: Node<'_>, source: &str) -> bool {
        self.output(node, source, &Flow::default()).remote
    }

    /// The word that `$(…)` becomes.
    pub fn substitution(&self, node: Node<'_>, source: &str) -> Word {
        let flow = self.output(node, source, &Flow::default());
        match flow.texts.as_slice() {
            [text] if named(node).len() == 1 => {
                Word { remote: flow.remote, ..Word::known(text.trim_end_matches('\n')) }
            }
            _ => Word { remote: flow.remote, ..Word::unknown() },
        }
    }
}

/// The named children.
pub(super) fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}

fn all_with_field<'t>(node: Node<'t>, field: &str) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name(field, &mut cursor).collect()
}

/// Calls `each` for the node and everything beneath it, without recursion.
fn for_each<'t>(root: Node<'t>, each: &mut dyn FnMut(Node<'t>)) {
    let mut open = vec![root];
    while let Some(node) = open.pop() {
        each(node);
        open.extend(named(node));
    }
}

/// The first line of a command, short enough for a message.
pub(super) fn cut(text: &str) -> String {
    let line = text.trim().replace('\n', " ");
    if line.chars().count() <= 80 { line } else { line.chars().take(79).chain(['…']).collect() }
}
