//! The check gate with real processes: what passes, what goes back and with which words, and what is void.
#![expect(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

use std::cell::RefCell;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::Once;
use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{
    Baseline, CheckEvidence, Clock, CommandEnd, CommitId, Directive, DirectiveFacts, Event, EventSink, Gate,
    GateContext, GateKind, NotStarted, PassNumber, Progress, Proposal, Rework, Ruling, Snapshot, TestCounts, TreeId,
    Void, directive_tokens, finding_tokens, most_tokens,
};
use iudex_exec::{Backend, Confinement};
use iudex_gate::{CheckGate, CheckSettings};
use tempfile::TempDir;

const ROOM: u64 = 1_000;

#[derive(Default)]
struct Seen(RefCell<Vec<String>>);

impl EventSink for Seen {
    fn emit(&self, _: Event) {}

    fn progress(&self, progress: Progress<'_>) {
        if let Progress::CommandLine(line) = progress {
            self.0.borrow_mut().push(line.to_owned());
        }
    }
}

struct NoClock;

#[async_trait(?Send)]
impl Clock for NoClock {
    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    async fn sleep(&self, _: Duration) {}
}

/// A work directory with a gate over it.
struct Bench {
    directory: TempDir,
    settings: CheckSettings,
    seen: Seen,
    room: u64,
    time_left: Option<Duration>,
    last_call: bool,
}

impl Bench {
    fn new(commands: &[&str]) -> Self {
        static SUPERVISOR: Once = Once::new();
        SUPERVISOR.call_once(|| {
            let program = std::env::current_exe().unwrap();
            let program = program.parent().unwrap().with_file_name("examples").join("gate_supervisor");
            assert!(program.exists(), "build the examples of this crate first: {}", program.display());
            iudex_exec::set_supervisor(program);
        });
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        for name in ["work", "tmp", "caches"] {
            std::fs::create_dir(path.join(name)).unwrap();
        }
        let settings = CheckSettings {
            commands: commands.iter().map(|command| (*command).to_owned()).collect(),
            work_dir: path.join("work"),
            time_limit: Duration::from_mins(1),
            env: vec![("PATH".into(), std::env::var_os("PATH").unwrap()), ("LC_ALL".into(), "C".into())],
            confinement: Confinement {
                backend: Backend::None,
                work_dir: path.join("work"),
                read_only: Vec::new(),
                hidden: Vec::new(),
                private_tmp: path.join("tmp"),
                caches: path.join("caches"),
                network: false,
            },
            output_dir: path.join("outputs"),
        };
        Self { directory, settings, seen: Seen::default(), room: ROOM, time_left: None, last_call: false }
    }

    fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.settings.work_dir.join(name);
        std::fs::write(&path, text).unwrap();
        if text.starts_with("#!") {
            std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        self
    }

    fn gate(&self) -> CheckGate {
        CheckGate::new(self.settings.clone())
    }

    fn context(&self) -> GateContext<'_> {
        GateContext {
            events: &self.seen,
            clock: &NoClock,
            finding_tokens: self.room,
            time_left: self.time_left,
            last_call: self.last_call,
        }
    }

    fn baseline(&self, gate: &mut CheckGate) -> Result<Ruling, NotStarted> {
        match block_on(gate.baseline(&snapshot("base"), &self.context()))? {
            Baseline::Ruled(ruling) => Ok(ruling),
            Baseline::NotTaken => panic!("a check takes a baseline"),
        }
    }

    fn examine(&self, gate: &mut CheckGate) -> Ruling {
        let proposal = Proposal { pass: PassNumber(2), base: snapshot("base"), snapshot: snapshot("proposed") };
        block_on(gate.examine(&proposal, &self.context()))
    }

    /// The ruling without a baseline.
    fn ask(&self) -> Ruling {
        self.examine(&mut self.gate())
    }
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(future)
}

fn snapshot(raw: &str) -> Snapshot {
    Snapshot {
        raw: TreeId::new(raw),
        git: None,
        ignored: None,
        commit: CommitId::new("commit"),
        not_covered: Vec::new(),
    }
}

#[track_caller]
fn accepted(ruling: Ruling) -> CheckEvidence {
    match ruling {
        Ruling::Accepted(accepted) => accepted.evidence().clone(),
        other => panic!("not accepted: {other:#?}"),
    }
}

#[track_caller]
fn rework(ruling: Ruling) -> Rework {
    match ruling {
        Ruling::Rework(rework) => rework,
        other => panic!("no rework: {other:#?}"),
    }
}

#[track_caller]
fn void(ruling: Ruling) -> Void {
    match ruling {
        Ruling::Void(void) => void,
        other => panic!("not void: {other:#?}"),
    }
}

/// The words of the only finding.
#[track_caller]
fn what(ruling: Ruling) -> String {
    let rework = rework(ruling);
    assert_eq!(rework.findings.len(), 1, "{rework:#?}");
    rework.findings[0].what.clone()
}

#[track_caller]
fn end_of(command: &str) -> (CommandEnd, String) {
    let rework = rework(Bench::new(&[command]).ask());
    (rework.evidence.unwrap().commands[0].end, rework.findings[0].what.clone())
}

#[test]
fn a_green_check_is_accepted_with_its_whole_evidence() {
    let bench = Bench::new(&["echo one; echo two >&2", "exit 0"]);
    let evidence = accepted(bench.ask());
    assert_eq!(evidence.tree, TreeId::new("proposed"));
    assert_eq!(evidence.baseline_green, None);
    assert_eq!(evidence.sandbox, "none");
    assert!(evidence.network, "without a sandbox the network is open");
    let [first, second] = evidence.commands.as_slice() else { panic!("{evidence:?}") };
    assert_eq!(first.command, "echo one; echo two >&2");
    assert_eq!((first.end, second.end), (CommandEnd::Exited(0), CommandEnd::Exited(0)));
    assert_eq!(first.last_line, "two");
    assert_eq!(first.output_bytes, 8);
    assert_eq!(first.output_sha256, "c3f9c8c283a2b1f2f1896f27a01cbe3cddc0c9d93f752e4639035a0f5b36f6e8");
    assert_eq!(first.tests, None);
    let file = first.output_file.clone().unwrap();
    assert_eq!(file, bench.directory.path().canonicalize().unwrap().join("outputs/2-1.log"));
    assert_eq!(std::fs::read_to_string(file).unwrap(), "one\ntwo\n");
    assert_eq!(second.output_file.clone().unwrap().file_name().unwrap(), "2-2.log");
    assert_eq!(*bench.seen.0.borrow(), ["one", "two"]);
}

#[test]
fn pipes_that_hide_a_failure_are_red_and_an_explicit_mask_is_not() {
    assert_eq!(end_of("false | tail -1").0, CommandEnd::Exited(1));
    let (end, what) = end_of("(echo 'test sum ... FAILED'; exit 101) | tee log");
    assert_eq!(end, CommandEnd::Exited(101));
    assert!(what.starts_with("The check `(echo 'test sum ... FAILED'; exit 101) | tee log` exited 101."), "{what}");
    assert!(what.ends_with("test sum ... FAILED"), "{what}");
    accepted(Bench::new(&["false || true"]).ask());
}

#[test]
fn a_broken_pipe_names_pipefail_and_head() {
    let (end, what) = end_of("yes | head -1");
    assert_eq!(end, CommandEnd::Exited(141));
    assert!(what.contains("broken pipe") && what.contains("`head`") && what.contains("`pipefail`"), "{what}");
}

#[test]
fn exit_2_without_fail_lines_is_red() {
    // A clash of ports in the runner itself: no test is named, and nothing looks like a failure.
    let (end, what) = end_of("echo 'listen EADDRINUSE: address already in use :::3000' >&2; echo '12 passed'; exit 2");
    assert_eq!(end, CommandEnd::Exited(2));
    assert!(what.contains("exited 2.") && what.contains("EADDRINUSE"), "{what}");
}

#[test]
fn every_end_says_what_it_was() {
    let bench = Bench::new(&["./run.sh"]);
    let text = what(bench.ask());
    assert!(text.contains("exited 127: `./run.sh` was not found."), "{text}");
    bench.write("run.sh", "echo hello\n");
    let text = what(bench.ask());
    assert!(text.contains("exited 126: `./run.sh` is there but cannot be executed"), "{text}");
    bench.write("run.sh", "#!/bin/sh\necho hello\n");
    accepted(bench.ask());
    bench.write("run.sh", "#!/no/such/interpreter\n");
    let text = what(bench.ask());
    assert!(text.contains("`./run.sh` is there, but the interpreter"), "{text}");

    let (end, text) = end_of("true && nosuchtool-4711 --all");
    assert_eq!(end, CommandEnd::Exited(127));
    assert!(text.contains("exited 127: the command `nosuchtool-4711` was not found."), "{text}");
    let (end, text) = end_of("kill -SEGV $$");
    assert!(matches!(end, CommandEnd::Signalled(11) | CommandEnd::Exited(139)), "{end:?}");
    assert!(text.contains("ended by signal 11 (SIGSEGV)"), "{text}");
    let (end, text) = end_of("sh -c 'kill -9 $$'; exit $?");
    assert_eq!(end, CommandEnd::Exited(137));
    assert!(text.contains("when a program in it is ended by signal 9 (SIGKILL)"), "{text}");
    let (_, text) = end_of("exit 3");
    assert_eq!(text, "The check `exit 3` exited 3.\nIt printed nothing.");
}

#[test]
fn a_time_out_names_the_limit_and_keeps_what_was_printed() {
    let mut bench = Bench::new(&["echo before; sleep 300", "echo still asked"]);
    bench.settings.time_limit = Duration::from_secs(1);
    let rework = rework(bench.ask());
    let text = &rework.findings[0].what;
    assert!(text.contains("ran into its time limit of 1 s") && text.ends_with("before"), "{text}");
    let commands = &rework.evidence.as_ref().unwrap().commands;
    assert_eq!(commands[0].end, CommandEnd::TimedOut);
    assert_eq!(commands[0].last_line, "before");
    assert_eq!(commands[1].end, CommandEnd::Exited(0));
}

#[test]
fn all_commands_run_one_after_the_other_even_after_a_red_one() {
    let bench = Bench::new(&["echo 1 >> log; exit 1", "sleep 0.2; echo 2 >> log", "cat log; exit 3"]);
    let rework = rework(bench.ask());
    assert_eq!(rework.findings.len(), 2);
    let ends: Vec<_> = rework.evidence.as_ref().unwrap().commands.iter().map(|command| command.end).collect();
    assert_eq!(ends, [CommandEnd::Exited(1), CommandEnd::Exited(0), CommandEnd::Exited(3)]);
    assert!(rework.findings[1].what.ends_with("1\n2"), "{rework:#?}");
}

#[test]
fn the_last_call_has_one_time_limit_for_all_commands() {
    let mut bench = Bench::new(&["sleep 300", "touch ran", "touch ran"]);
    bench.settings.time_limit = Duration::from_secs(1);
    bench.last_call = true;
    let rework = rework(bench.ask());
    let commands = &rework.evidence.as_ref().unwrap().commands;
    assert_eq!(commands.len(), 3);
    assert!(commands.iter().all(|command| command.end == CommandEnd::TimedOut), "{commands:?}");
    assert_eq!((commands[1].duration, commands[2].duration), (Duration::ZERO, Duration::ZERO));
    assert!(rework.findings[1].what.contains("no time was left for it"), "{rework:#?}");
    assert!(!bench.settings.work_dir.join("ran").exists());
}

#[test]
fn time_that_ends_while_the_checks_run_leaves_them_one_time_limit_together_also_before_any_work() {
    let mut bench = Bench::new(&["sleep 300", "touch ran"]);
    bench.settings.time_limit = Duration::from_secs(1);
    bench.time_left = Some(Duration::from_millis(300));
    for ruling in [bench.ask(), bench.baseline(&mut bench.gate()).unwrap()] {
        let commands = rework(ruling).evidence.unwrap().commands;
        assert!(commands.iter().all(|command| command.end == CommandEnd::TimedOut), "{commands:?}");
        assert!(commands[0].duration >= Duration::from_secs(1), "{commands:?}");
        assert_eq!(commands[1].duration, Duration::ZERO);
    }
    assert!(!bench.settings.work_dir.join("ran").exists());
    bench.settings.commands = vec!["true".to_owned(), "touch ran".to_owned()];
    accepted(bench.ask());
}

#[test]
fn a_green_baseline_can_only_guard_and_a_red_one_proves() {
    let bench = Bench::new(&["test -f done"]);
    let mut gate = bench.gate();
    let before = rework(bench.baseline(&mut gate).unwrap());
    let evidence = before.evidence.unwrap();
    assert_eq!((evidence.baseline_green, evidence.tree), (None, TreeId::new("base")));
    assert!(bench.directory.path().join("outputs/baseline-1.log").exists());
    bench.write("done", "");
    let evidence = accepted(bench.examine(&mut gate));
    assert_eq!(evidence.baseline_green, Some(false));
    assert!(!evidence.notes.iter().any(|note| note.contains("only guard")), "{evidence:?}");

    let mut gate = bench.gate();
    let note = "the check passed before any work, so it can only guard".to_owned();
    assert!(accepted(bench.baseline(&mut gate).unwrap()).notes.contains(&note));
    let evidence = accepted(bench.examine(&mut gate));
    assert_eq!(evidence.baseline_green, Some(true));
    assert!(evidence.notes.contains(&note));
}

/// A script that prints what libtest prints.
fn suite(passed: u64, failed: u64) -> String {
    let (word, status) = if failed > 0 { ("FAILED", 101) } else { ("ok", 0) };
    format!(
        "#!/bin/sh\necho 'running {} tests'\necho\necho 'test result: {word}. {passed} passed; {failed} failed; 0 \
         ignored; 0 measured; 0 filtered out; finished in 0.00s'\nexit {status}\n",
        passed + failed
    )
}

#[test]
fn zero_tests_where_there_were_some_is_not_green() {
    let bench = Bench::new(&["./suite"]);
    bench.write("suite", &suite(3, 2));
    let mut gate = bench.gate();
    assert!(what(bench.baseline(&mut gate).unwrap()).contains("Tests: 2 failed, 3 passed."));
    bench.write("suite", &suite(0, 0));
    let rework = rework(bench.examine(&mut gate));
    let text = &rework.findings[0].what;
    assert!(text.contains("exited 0, but zero tests ran; before the work it ran 5 tests"), "{text}");
    assert_eq!(rework.evidence.unwrap().commands[0].tests, Some(TestCounts::default()));
}

#[test]
fn a_summary_that_vanishes_is_not_green() {
    let bench = Bench::new(&["./suite"]);
    bench.write("suite", &suite(1, 1));
    let mut gate = bench.gate();
    rework(bench.baseline(&mut gate).unwrap());
    // The worker announces success in words of its own.
    bench.write("suite", "#!/bin/sh\necho '4966/4966 passed'\n");
    let text = what(bench.examine(&mut gate));
    assert!(text.contains("its output has no test summary; before the work it had one (2 tests)"), "{text}");
}

#[test]
fn fewer_tests_than_before_are_noted() {
    let bench = Bench::new(&["./suite", "echo unknown runner"]);
    bench.write("suite", &suite(4, 1));
    let mut gate = bench.gate();
    rework(bench.baseline(&mut gate).unwrap());
    bench.write("suite", &suite(3, 0));
    let evidence = accepted(bench.examine(&mut gate));
    assert_eq!(evidence.notes[1..], ["`./suite` ran 3 tests, fewer than the 5 before the work"]);
    bench.write("suite", &suite(6, 0));
    assert_eq!(accepted(bench.examine(&mut gate)).notes.len(), 1);
}

#[test]
fn an_unknown_runner_has_no_rule_about_tests() {
    let bench = Bench::new(&["cat report; exit $(cat status)"]);
    bench.write("report", "12 of 13 fine\n").write("status", "1");
    let mut gate = bench.gate();
    rework(bench.baseline(&mut gate).unwrap());
    bench.write("report", "").write("status", "0");
    accepted(bench.examine(&mut gate));
}

#[test]
fn summaries_beyond_memory_are_summed_from_the_kept_file() {
    let flood = "head -c 700000 /dev/zero | tr '\\0' x | fold -w 100";
    let bench = Bench::new(&["./suite; FLOOD; echo; ./suite; FLOOD; echo; ./suite".replace("FLOOD", flood).as_str()]);
    bench.write("suite", &suite(7, 0));
    let evidence = accepted(bench.ask());
    assert_eq!(evidence.commands[0].tests, Some(TestCounts { passed: 21, failed: 0, skipped: 0 }));
}

#[test]
fn a_program_that_is_missing_at_the_baseline_stops_the_run() {
    for command in ["nosuchtool-4711 --all", "true && nosuchtool-4711", "A=1 timeout 5 nosuchtool-4711"] {
        let bench = Bench::new(&["true", command]);
        let stopped = bench.baseline(&mut bench.gate()).unwrap_err();
        assert!(stopped.message.contains("`nosuchtool-4711`"), "{stopped:?}");
        assert!(stopped.hint.unwrap().contains("nosuchtool-4711"));
        // After the baseline it is the work's own doing.
        rework(bench.ask());
    }
    let bench = Bench::new(&["./run.sh"]);
    rework(bench.baseline(&mut bench.gate()).unwrap());
}

#[test]
fn a_machine_that_cannot_start_or_keep_anything_is_void() {
    let mut bench = Bench::new(&["true"]);
    bench.settings.confinement.backend = Backend::Bubblewrap { program: PathBuf::from("/nonexistent/bwrap") };
    let cannot_start = void(bench.ask());
    assert!(cannot_start.may_change && cannot_start.reason.contains("could not be started"), "{cannot_start:?}");

    let bench = Bench::new(&[]);
    let empty = void(bench.ask());
    assert!(!empty.may_change);
}

#[test]
fn an_output_that_cannot_be_kept_is_noted_and_does_not_decide() {
    let mut bench = Bench::new(&["true"]);
    bench.write("file", "");
    bench.settings.output_dir = bench.settings.work_dir.join("file");
    let evidence = accepted(bench.ask());
    assert_eq!(evidence.commands[0].output_file, None);
    assert!(evidence.notes[1].starts_with("the whole output of `true` was not kept: "), "{evidence:?}");
}

#[test]
fn a_background_child_that_holds_stdout_neither_delays_nor_fails_a_passed_check() {
    let bench = Bench::new(&["sleep 300 & echo passed"]);
    let evidence = accepted(bench.ask());
    assert!(evidence.commands[0].duration < Duration::from_secs(30), "{evidence:?}");
}

#[test]
fn a_dropped_check_leaves_nothing_running() {
    let bench = Bench::new(&["echo $$ > pid; setsid sleep 297 & sleep 297"]);
    let pid = bench.settings.work_dir.join("pid");
    let proposal = Proposal { pass: PassNumber(1), base: snapshot("base"), snapshot: snapshot("proposed") };
    let mut gate = bench.gate();
    let context = bench.context();
    block_on(async {
        let running = gate.examine(&proposal, &context);
        let started = async {
            while std::fs::read_to_string(&pid).is_ok_and(|text| text.ends_with('\n')).eq(&false) {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        tokio::select! {
            ruling = running => panic!("it ended by itself: {ruling:?}"),
            () = started => {}
        }
    });
    let pid = std::fs::read_to_string(pid).unwrap();
    assert!(!std::path::Path::new("/proc").join(pid.trim()).exists());
}

#[test]
fn the_findings_of_all_red_commands_share_their_room() {
    let flood = "for i in $(seq 400); do echo \"line $i of a long and boring log that says nothing\"; done; exit 1";
    let mut bench = Bench::new(&[flood, "echo short; exit 2", flood]);
    for room in [75, 250, 500, 1_000, finding_tokens(directive_tokens(32_768))] {
        bench.room = room;
        let rework = rework(bench.ask());
        let lengths: Vec<_> = rework.findings.iter().map(|finding| finding.what.len()).collect();
        assert_eq!(lengths.len(), 3);
        let used = rework.findings.iter().map(|finding| most_tokens(&finding.what)).sum::<u64>();
        assert!(used <= room, "{used} of {room}: {lengths:?}");
        assert!(lengths[0].abs_diff(lengths[2]) < 200, "{lengths:?}");
        if room > 250 {
            assert!(rework.findings[1].what.ends_with("short"), "{rework:#?}");
            assert!(rework.findings[0].what.ends_with("line 400 of a long and boring log that says nothing"));
        }
        let changed: Vec<String> = (0..20).map(|n| format!("crates/some-crate/src/module_{n}.rs")).collect();
        let tried: Vec<String> = (0..4).map(|n| format!("attempt {n} changed src/lib.rs; not accepted.")).collect();
        let directive = Directive::write(&DirectiveFacts {
            gate: GateKind::Check,
            rework: &rework,
            same_as_last: true,
            changed: Some(&changed),
            unchanged: false,
            from_base: false,
            tried: &tried,
            max_tokens: directive_tokens(32_768),
        });
        let tokens = count_tokens(directive.as_str());
        assert!(tokens <= 2_000, "{tokens} tokens");
    }
}

fn count_tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().encode_ordinary(text).len()
}

#[test]
fn the_same_failure_has_the_same_fingerprint_and_another_has_not() {
    let bench = Bench::new(&["cat report; exit 1", "true"]);
    let print = |text: &str| {
        bench.write("report", text);
        rework(bench.ask()).fingerprint
    };
    let first = print("error in /tmp/tmpab12cd/x.py line 12 after 0.3s\n");
    assert_eq!(first, print("error in /home/me/x.py line 99 after 12s\n"));
    assert_ne!(first, print("error in /tmp/tmpab12cd/y.py line 12 after 0.3s\n"));
    assert_ne!(first, print("another error\n"));

    let other = Bench::new(&["cat report; exit 2", "true"]);
    other.write("report", "another error\n");
    assert_ne!(rework(other.ask()).fingerprint, print("another error\n"));
}

#[test]
fn terminal_escapes_and_broken_text_reach_no_finding() {
    let (_, what) = end_of(r"printf '10%%\r50%%\r\033[31mred\033[0m \xff\r\n'; exit 1");
    assert!(what.ends_with("red \u{fffd}"), "{what:?}");
}

#[test]
fn the_agent_is_told_every_command() {
    let brief = Bench::new(&["cargo test", "./lint"]).gate().brief();
    assert_eq!(brief.kind, GateKind::Check);
    assert_eq!(brief.name, "check");
    assert_eq!(brief.requirements, ["cargo test", "./lint"]);
}

#[test]
fn the_sandbox_is_named_in_the_evidence() {
    let mut bench = Bench::new(&["touch here; ! touch /etc/iudex-was-here"]);
    let Ok(backend) = iudex_exec::detect() else { return };
    let word = backend.word();
    bench.settings.confinement.backend = backend;
    let evidence = accepted(bench.ask());
    assert!(evidence.sandbox.starts_with(word), "{evidence:?}");
    assert!(!evidence.network);
    assert!(bench.settings.work_dir.join("here").exists());
}
