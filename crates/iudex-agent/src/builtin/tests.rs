//! Passes with a model that answers as it is told, and real tools on real files.

mod ends;
mod formats;
mod prompts;
mod window;

use std::cell::RefCell;
use std::collections::VecDeque;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{
    Agent, Clock, Event, EventSink, GateBrief, GateKind, Limits, Meter, PassContext, PassEnd, PassNumber, PassOrder,
    PassReport, PassStart, Progress, PromptStrategy, Task, Tokens, Usage,
};
use iudex_exec::{Backend, Confinement};
use iudex_model::{
    ActionFormat, AssistantCall, ChatModel, ChatRequest, Completion, Delta, Finish, Message, ModelError, ModelFacts,
};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;
use crate::tools::ToolSettings;

/// A model that gives its answers in order and keeps the requests. Out of answers, it repeats the last one.
struct Told {
    facts: ModelFacts,
    answers: RefCell<VecDeque<Answer>>,
    requests: RefCell<Vec<ChatRequest>>,
}

#[derive(Clone)]
enum Answer {
    Says(Completion),
    Fails(ModelError),
    /// Counts the prompt and overflows when it is above the window.
    Checks(u64, Box<Answer>),
    /// As a server that drops the front of longer prompts in silence.
    Counts(u64, Box<Answer>),
    Never,
}

impl Told {
    fn next(&self) -> Answer {
        let mut answers = self.answers.borrow_mut();
        let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
        next.expect("an answer")
    }
}

#[async_trait(?Send)]
impl ChatModel for Told {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    async fn complete(
        &self,
        request: &ChatRequest,
        on_delta: &mut dyn for<'delta> FnMut(Delta<'delta>),
    ) -> Result<Completion, ModelError> {
        self.requests.borrow_mut().push(request.clone());
        let mut answer = self.next();
        if let Answer::Checks(window, inner) = answer {
            let prompt = request.estimate_prompt();
            if prompt + request.max_tokens > window {
                self.answers.borrow_mut().push_front(*inner);
                let message = format!("{prompt} tokens and {} more", request.max_tokens);
                return Err(ModelError::Overflow { message, window: Some(window), prompt: Some(prompt) });
            }
            answer = *inner;
        }
        let mut most = u64::MAX;
        if let Answer::Counts(window, inner) = answer {
            most = window;
            answer = *inner;
        }
        match answer {
            Answer::Says(completion) => {
                on_delta(Delta::Text(&completion.text));
                let mut completion = completion;
                completion.usage = Usage {
                    prompt: Tokens(request.estimate_prompt().min(most)),
                    output: Tokens(10),
                    calls: 1,
                    ..Usage::default()
                };
                Ok(completion)
            }
            Answer::Fails(error) => Err(error),
            Answer::Never => std::future::pending().await,
            Answer::Checks(..) | Answer::Counts(..) => unreachable!("they are not nested"),
        }
    }
}

fn says(text: &str) -> Answer {
    Answer::Says(Completion {
        text: text.to_owned(),
        reasoning: String::new(),
        calls: Vec::new(),
        finish: Finish::Stop,
        usage: Usage::default(),
        retries: 0,
    })
}

fn acts(action: &Value) -> Answer {
    says(&action.to_string())
}

fn cut(text: &str, finish: Finish) -> Answer {
    match says(text) {
        Answer::Says(completion) => Answer::Says(Completion { finish, ..completion }),
        other => other,
    }
}

fn calls(calls: &[(&str, &str, &str)]) -> Answer {
    let made = calls.iter().map(|(id, name, arguments)| AssistantCall {
        id: (*id).to_owned(),
        name: (*name).to_owned(),
        arguments: (*arguments).to_owned(),
    });
    match says("") {
        Answer::Says(completion) => Answer::Says(Completion { calls: made.collect(), ..completion }),
        other => other,
    }
}

fn read(path: &str) -> Answer {
    acts(&json!({"tool": "read", "path": path}))
}

fn write(path: &str, content: &str) -> Answer {
    acts(&json!({"tool": "write", "path": path, "content": content}))
}

fn done() -> Answer {
    acts(&json!({"tool": "done", "summary": "all done"}))
}

/// Keeps every event.
#[derive(Default)]
struct Kept {
    events: RefCell<Vec<Event>>,
}

impl EventSink for Kept {
    fn emit(&self, event: Event) {
        self.events.borrow_mut().push(event);
    }

    fn progress(&self, _: Progress<'_>) {}
}

impl Kept {
    /// The kinds of the interventions, in order.
    fn interventions(&self) -> Vec<String> {
        let events = self.events.borrow();
        let kinds = events.iter().filter_map(|event| match event {
            Event::Intervention { kind, .. } => Some(kind.clone()),
            _ => None,
        });
        kinds.collect()
    }
}

struct Still;

#[async_trait(?Send)]
impl Clock for Still {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {}
}

/// An agent in a directory of its own.
struct Bench {
    dir: TempDir,
    model: Rc<Told>,
    agent: BuiltinAgent,
    events: Kept,
    meter: Meter,
    limits: Limits,
    task: Task,
    gates: Vec<GateBrief>,
    strategy: PromptStrategy,
}

const CHECK: &str = "python3 -m unittest -q";

impl Bench {
    /// A small local model that enforces schemas, with a check.
    fn new(answers: Vec<Answer>) -> Self {
        Self::with(answers, 8192, settings(), true)
    }

    /// The same without schemas: the native format.
    fn native(answers: Vec<Answer>) -> Self {
        Self::with(answers, 8192, settings(), false)
    }

    fn with(answers: Vec<Answer>, window: u64, settings: AgentSettings, enforces_schema: bool) -> Self {
        let dir = tempfile::tempdir().expect("a directory");
        let work_dir = dir.path().canonicalize().expect("a path");
        let model = Rc::new(Told {
            facts: facts(window, enforces_schema),
            answers: RefCell::new(answers.into()),
            requests: RefCell::default(),
        });
        let tools = ToolBox::new(ToolSettings {
            work_dir: work_dir.clone(),
            read_only: vec![work_dir.join(".git")],
            env: Vec::new(),
            confinement: Confinement {
                backend: Backend::None,
                work_dir: work_dir.clone(),
                read_only: Vec::new(),
                hidden: Vec::new(),
                private_tmp: work_dir.clone(),
                caches: work_dir,
                network: false,
            },
            bash_time_limit: Duration::from_secs(10),
            result_bytes: 16 * 1024,
            writes_in_parts: false,
        });
        Self {
            agent: BuiltinAgent::new(Rc::clone(&model) as Rc<dyn ChatModel>, tools, settings),
            dir,
            model,
            events: Kept::default(),
            meter: Meter::default(),
            limits: Limits::default(),
            task: Task::from_goal("Make the failing test pass."),
            gates: vec![GateBrief {
                kind: GateKind::Check,
                name: "check".to_owned(),
                requirements: vec![CHECK.to_owned()],
            }],
            strategy: PromptStrategy::Plain,
        }
    }

    fn put(&self, path: &str, content: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn file(&self, path: &str) -> Option<String> {
        std::fs::read_to_string(self.dir.path().join(path)).ok()
    }

    async fn pass(&mut self, number: u32, start: PassStart<'_>) -> PassReport {
        let order = PassOrder {
            failing: None,
            number: PassNumber(number),
            start,
            strategy: self.strategy,
            task: &self.task,
            gates: &self.gates,
        };
        let context = PassContext { limits: &self.limits, meter: &self.meter, events: &self.events, clock: &Still };
        let report = self.agent.pass(order, &context).await;
        self.check_requests();
        report
    }

    async fn first(&mut self) -> PassReport {
        self.pass(1, PassStart::Task).await
    }

    fn requests(&self) -> Vec<ChatRequest> {
        self.model.requests.borrow().clone()
    }

    /// Everything that the last request said.
    fn last_prompt(&self) -> String {
        prompt_of(self.requests().last().expect("a request"))
    }

    /// What holds for every request, whatever the format.
    fn check_requests(&self) {
        for request in self.model.requests.borrow().iter() {
            assert!(request.max_tokens > 0);
            let mut open: Vec<&str> = Vec::new();
            let mut last_was_user = false;
            for message in &request.messages {
                let is_user = matches!(message, Message::User { .. });
                assert!(!(is_user && last_was_user), "two messages of the user in a row");
                last_was_user = is_user;
                match message {
                    Message::Tool { call_id, .. } => {
                        assert_eq!(open.first(), Some(&call_id.as_str()), "results in the order of the calls");
                        open.remove(0);
                    }
                    Message::Assistant { text, calls } => {
                        assert!(open.is_empty(), "a call without a result");
                        assert!(!text.is_empty() || !calls.is_empty(), "an empty message of the model");
                        for call in calls {
                            assert!(!open.contains(&call.id.as_str()), "an id twice");
                            assert!(serde_json::from_str::<Value>(&call.arguments).unwrap().is_object());
                            open.push(&call.id);
                        }
                    }
                    Message::System { .. } | Message::User { .. } => {
                        assert!(open.is_empty(), "a call without a result");
                    }
                }
            }
            assert!(open.is_empty(), "a call without a result at the end");
        }
    }
}

fn prompt_of(request: &ChatRequest) -> String {
    request.messages.iter().map(Message::text).collect::<Vec<_>>().join("\n")
}

fn settings() -> AgentSettings {
    AgentSettings {
        format: None,
        stuck_threshold: 3,
        answer_tokens: None,
        temperature: 0.2,
        seed: Some(7),
        project_notes: None,
    }
}

fn facts(window: u64, enforces_schema: bool) -> ModelFacts {
    ModelFacts {
        name: "told".to_owned(),
        address: "test".to_owned(),
        window,
        window_source: "configuration".to_owned(),
        is_local: true,
        is_small: true,
        enforces_schema,
        price: None,
    }
}

fn exists(dir: &Path, path: &str) -> bool {
    dir.join(path).exists()
}
