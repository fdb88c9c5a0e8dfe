//! What the model is told.

use super::*;

/// The tokens of the fixed part as `o200k_base` counts them.
fn fixed_tokens(count: &tiktoken_rs::CoreBPE, format: ActionFormat, specs: &[ToolSpec]) -> usize {
    let mut text = prompt::system(format, specs);
    for tool in prompt::wire_tools(format, specs) {
        let function = json!({"name": tool.name, "description": tool.description, "parameters": tool.parameters});
        text.push_str(&json!({"type": "function", "function": function}).to_string());
    }
    count.encode_ordinary(&text).len()
}

#[test]
fn the_fixed_part_stays_at_or_below_900_tokens_in_every_format() {
    let bench = Bench::new(vec![done()]);
    let count = tiktoken_rs::o200k_base().unwrap();
    for format in [ActionFormat::Json, ActionFormat::Native, ActionFormat::Text] {
        let tokens = fixed_tokens(&count, format, bench.agent.tools.specs());
        println!("{format:?}: {tokens}");
        assert!((60..=900).contains(&tokens), "{format:?}: {tokens}");
    }
}

#[tokio::test]
async fn the_fixed_part_is_the_same_bytes_in_every_request_and_requests_only_grow() {
    let mut bench = Bench::new(vec![read("a.py"), write("b.py", "1"), read("b.py"), says(""), done(), done(), done()]);
    bench.put("a.py", "print(1)\n");
    bench.first().await;
    bench.pass(2, PassStart::Continue { directive: "The check is red." }).await;
    let requests = bench.requests();
    assert_eq!(requests.len(), 7, "done is asked again where the second pass changed nothing");
    for pair in requests.windows(2) {
        let (before, after) = (&pair[0].messages, &pair[1].messages);
        assert_eq!(before[0], after[0]);
        assert_eq!(before[..before.len() - 1], after[..before.len() - 1]);
        assert!(after[before.len() - 1].text().starts_with(before[before.len() - 1].text()));
    }
}

#[tokio::test]
async fn the_first_message_names_task_check_and_files() {
    let mut bench = Bench::new(vec![done()]);
    bench.put("a.py", "secret\n");
    bench.put("src/b.py", "");
    bench.put(".gitignore", "*.log\n");
    bench.put("x.log", "");
    bench.first().await;
    let request = bench.requests().remove(0);
    let opening = request.messages[1].text();
    assert!(opening.contains("Task: Make the failing test pass."));
    assert!(opening.contains(&format!("The work is accepted only when this command exits 0:\n{CHECK}")));
    assert!(opening.contains("Files: a.py, src/b.py"), "{opening}");
    assert!(!opening.contains("secret") && !opening.contains("x.log"));
}

#[tokio::test]
async fn several_commands_are_told_as_several() {
    let mut bench = Bench::new(vec![done()]);
    bench.gates[0].requirements = ["cargo test", "cargo clippy"].map(str::to_owned).to_vec();
    bench.first().await;
    assert!(bench.last_prompt().contains("only when each of these commands exits 0:\ncargo test\ncargo clippy"));
}

#[tokio::test]
async fn a_command_of_several_lines_is_told_as_one() {
    let mut bench = Bench::new(vec![done()]);
    bench.gates[0].requirements = vec!["cd a\nmake".to_owned()];
    bench.first().await;
    assert!(bench.last_prompt().contains("only when this command exits 0:\ncd a\nmake"));

    let mut bench = Bench::new(vec![done()]);
    bench.gates[0].requirements = ["cd a\nmake", "cargo test"].map(str::to_owned).to_vec();
    bench.first().await;
    let wanted = "only when each of these 2 commands exits 0:\n(1)\ncd a\nmake\n(2)\ncargo test";
    assert!(bench.last_prompt().contains(wanted), "{}", bench.last_prompt());
}

#[tokio::test]
async fn with_files_their_contents_are_in_the_first_message_as_far_as_they_fit() {
    let mut bench = Bench::with(vec![done()], 4096, settings(), true);
    bench.strategy = PromptStrategy::WithFiles;
    bench.task = Task::from_goal("Fix big_but_named.py.");
    bench.put("small.py", "print('small')\n");
    bench.put("big_but_named.py", &"named = 1\n".repeat(150));
    bench.put("long.py", &"long = 1\n".repeat(900));
    bench.put("image.bin", "a\0b");
    bench.put(".gitignore", "ignored.py\n");
    bench.put("ignored.py", "print('ignored')\n");
    bench.first().await;
    let request = bench.requests().remove(0);
    let opening = request.messages[1].text();
    assert!(opening.contains("=== small.py\nprint('small')"), "{opening}");
    assert!(opening.contains("named = 1"), "what the task names comes first");
    assert!(!opening.contains("long = 1") && !opening.contains("ignored"), "{opening}");
    assert!(opening.contains("Other files: image.bin, long.py"), "{opening}");
    assert!(estimate_tokens(opening) < 4096 / 4 + 120);
}

#[tokio::test]
async fn notes_of_the_project_take_at_most_a_tenth_of_the_window() {
    let notes = format!("Use tabs.\n{}", "Always be careful with everything.\n".repeat(400));
    let settings = AgentSettings { project_notes: Some(notes), ..settings() };
    let mut bench = Bench::with(vec![done()], 4096, settings, true);
    bench.first().await;
    let request = bench.requests().remove(0);
    let opening = request.messages[1].text();
    assert!(opening.contains("Use tabs.") && opening.contains("The rest is left out"));
    assert!(estimate_tokens(opening) < 4096 / 10 + 100);
}

#[tokio::test]
async fn a_fresh_pass_has_task_gates_and_directive_and_another_seed() {
    let mut bench = Bench::new(vec![read("a.py"), done()]);
    bench.first().await;
    let before = bench.requests().len();
    bench.pass(2, PassStart::Fresh { directive: "Red: AssertionError 41 != 42." }).await;
    let requests = bench.requests();
    let fresh = prompt_of(&requests[before]);
    assert!(fresh.contains("Make the failing test pass.") && fresh.contains(CHECK));
    assert!(fresh.ends_with("Red: AssertionError 41 != 42."));
    assert!(!fresh.contains("Result of read"));
    assert_eq!(requests[0].seed, Some(7));
    assert_eq!(requests[before].seed, Some(8));
}

#[tokio::test]
async fn the_next_task_of_a_session_goes_on_in_the_same_conversation() {
    let mut bench = Bench::new(vec![write("a", "1"), done()]);
    bench.first().await;
    bench.task = Task::from_goal("Now rename it.");
    bench.pass(1, PassStart::NextTask).await;
    let prompt = bench.last_prompt();
    assert!(prompt.contains("Make the failing test pass.") && prompt.contains("Now rename it."));
}

#[tokio::test]
async fn a_kept_conversation_is_taken_up_again() {
    let mut bench = Bench::new(vec![write("a", "1"), done()]);
    bench.first().await;
    let kept = bench.agent.save();
    let mut other = Bench::new(vec![done()]);
    assert!(other.agent.load(&kept));
    other.pass(1, PassStart::NextTask).await;
    assert!(other.last_prompt().contains("Result of write a"));
    assert!(!other.agent.load(&json!({"version": 99, "talk": {"items": []}})));
    assert!(!other.agent.load(&json!("nonsense")));
}

#[tokio::test]
async fn every_message_is_in_the_record_once() {
    let mut bench = Bench::new(vec![read("a.py"), done()]);
    bench.gates.clear();
    bench.put("a.py", "1\n");
    bench.first().await;
    let events = bench.events.events.borrow();
    let roles: Vec<&str> = events
        .iter()
        .filter_map(|event| match event {
            Event::Message { role, .. } => Some(role.as_str()),
            _ => None,
        })
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "assistant"]);
    let started = events
        .iter()
        .filter(|e| matches!(e, Event::ToolStarted { tool, subject } if tool == "read" && subject == "a.py"));
    let finished = events.iter().filter(|e| matches!(e, Event::ToolFinished { ok: true, .. }));
    assert_eq!((started.count(), finished.count()), (1, 1));
    let calls: Vec<u32> = events
        .iter()
        .filter_map(|event| match event {
            Event::ModelCallStarted { step, .. } | Event::ModelCallFinished { step, .. } => Some(*step),
            _ => None,
        })
        .collect();
    assert_eq!(calls, [1, 1, 2, 2]);
}

#[tokio::test]
async fn a_fresh_conversation_samples_warmer_and_never_colder_than_configured() {
    for (configured, fresh) in [(0.2, 0.5), (0.9, 0.9)] {
        let settings = AgentSettings { temperature: configured, ..settings() };
        let mut bench = Bench::with(vec![write("a", "1"), done()], 8192, settings, true);
        bench.first().await;
        bench.pass(2, PassStart::Continue { directive: "Red." }).await;
        let before: Vec<f32> = bench.requests().iter().map(|request| request.temperature).collect();
        assert!(before.iter().all(|it| (it - configured).abs() < 1e-6), "{before:?}");
        bench.pass(3, PassStart::Fresh { directive: "Red." }).await;
        let after: Vec<f32> = bench.requests()[before.len()..].iter().map(|request| request.temperature).collect();
        assert!(!after.is_empty() && after.iter().all(|it| (it - fresh).abs() < 1e-6), "{after:?}");
    }
}
