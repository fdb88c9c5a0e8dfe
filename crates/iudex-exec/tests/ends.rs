//! How a command ends, and that nothing of it stays.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare itself fails")]

mod common;

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::{Place, assert_passed, backends, block_on, bubblewrap, eventually, processes_with, run, unique_sleep};
use iudex_exec::{Backend, End};

#[test]
fn a_failure_in_the_midst_of_a_pipe_is_a_failure() {
    for backend in backends() {
        let place = Place::new();
        assert_eq!(place.run(&backend, "false | tail -1").end, End::Exited(1), "{backend:?}");
        assert_passed(&place.run(&backend, "false | tail -1 || true"), backend.word());
    }
}

#[test]
fn an_exit_status_is_told_as_it_is() {
    for backend in backends() {
        let place = Place::new();
        assert_eq!(place.run(&backend, "exit 7").end, End::Exited(7), "{backend:?}");
        assert_eq!(place.run(&backend, "exit 143").end, End::Exited(143), "{backend:?}");
        assert_eq!(place.run(&backend, "no-such-program").end, End::Exited(127), "{backend:?}");
        assert_eq!(place.run(&backend, "./.git").end, End::Exited(126), "{backend:?}");
        assert_eq!(place.run(&backend, "( ").end, End::Exited(2), "{backend:?}");
    }
}

#[test]
fn a_death_by_a_signal_is_no_exit_status() {
    for backend in backends() {
        let place = Place::new();
        assert_eq!(place.run(&backend, "kill -TERM $$; sleep 5").end, End::Signalled(15), "{backend:?}");
        assert_eq!(place.run(&backend, "kill -KILL $$; sleep 5").end, End::Signalled(9), "{backend:?}");
    }
}

#[test]
fn nothing_can_be_read_from_standard_input_and_no_terminal_is_there() {
    for backend in backends() {
        let finished = Place::new().run(&backend, "cat; tty; (: > /dev/tty) 2>/dev/null || echo no terminal");
        assert_eq!(finished.output.text(), "not a tty\nno terminal\n", "{backend:?}");
    }
}

#[test]
fn both_streams_arrive_in_one_order() {
    for backend in backends() {
        let finished = Place::new().run(&backend, "echo 1; echo 2 >&2; echo 3; echo 4 >&2");
        assert_eq!(finished.output.text(), "1\n2\n3\n4\n", "{backend:?}");
    }
}

#[test]
fn the_environment_is_the_given_one_and_the_directory_too() {
    for backend in backends() {
        let place = Place::new();
        let mut spec = place.spec(&backend, "echo \"$WORD|${HOME-unset}|$PWD\"");
        spec.env = vec![("WORD".into(), "wört".into()), ("PATH".into(), "/usr/bin:/bin".into())];
        let finished = run(spec).unwrap();
        assert_eq!(finished.output.text(), format!("wört|unset|{}\n", place.work.display()), "{backend:?}");
    }
}

#[test]
fn a_background_child_that_holds_the_output_neither_delays_nor_fails() {
    for backend in backends() {
        let place = Place::new();
        let sleep = unique_sleep();
        let start = Instant::now();
        let finished = place.run(&backend, &format!("sleep {sleep} & echo done"));
        assert_passed(&finished, backend.word());
        assert_eq!(finished.output.text(), "done\n");
        assert_eq!(finished.left_behind, 1, "{backend:?}");
        assert!(start.elapsed() < Duration::from_secs(30), "{backend:?}");
        assert_eq!(processes_with(&sleep), 0, "{backend:?}");
    }
}

#[test]
fn children_that_left_session_and_parent_are_gone_when_it_returns() {
    for backend in backends() {
        let place = Place::new();
        let sleep = unique_sleep();
        let script = format!(
            "setsid sleep {sleep} > /dev/null 2>&1 < /dev/null &
             (setsid bash -c '(setsid sleep {sleep} &) ; sleep {sleep}' > /dev/null 2>&1 &)
             nohup sleep {sleep} > /dev/null 2>&1 &
             trap '' HUP TERM; (trap '' HUP TERM INT; sleep {sleep}; sleep {sleep}) &
             until [ $(pgrep -cf 'sleep {sleep}') -ge 5 ]; do sleep 0.01; done; exit 3"
        );
        let finished = place.run(&backend, &script);
        assert_eq!(finished.end, End::Exited(3), "{backend:?}: {}", finished.output.text());
        assert!(finished.left_behind >= 5, "{backend:?}: {}", finished.left_behind);
        assert_eq!(processes_with(&sleep), 0, "{backend:?}");
    }
}

#[test]
fn a_command_that_left_nothing_behind_is_told_so() {
    for backend in backends() {
        let finished = Place::new().run(&backend, "echo a | cat | cat; (sleep 0.05 & wait)");
        assert_eq!(finished.left_behind, 0, "{backend:?}");
    }
}

#[test]
fn a_time_out_kills_everything_and_keeps_what_was_printed() {
    for backend in backends() {
        let place = Place::new();
        let sleep = unique_sleep();
        let mut spec =
            place.spec(&backend, &format!("echo before; setsid sleep {sleep} & trap '' TERM; sleep {sleep}; sleep 9"));
        spec.time_limit = Duration::from_millis(700);
        let finished = run(spec).unwrap();
        assert_eq!(finished.end, End::TimedOut, "{backend:?}");
        assert_eq!(finished.output.text(), "before\n", "{backend:?}");
        assert!(finished.duration >= Duration::from_millis(700));
        assert_eq!(processes_with(&sleep), 0, "{backend:?}");
    }
}

#[test]
fn a_command_that_runs_into_its_time_limit_may_say_where_it_was() {
    for backend in backends() {
        let place = Place::new();
        let script = "trap 'echo was at $step; exit 0' INT; step=three; echo ready; while :; do sleep 0.05; done";
        let mut spec = place.spec(&backend, script);
        spec.time_limit = Duration::from_secs(2);
        let finished = run(spec).unwrap();
        assert_eq!(finished.end, End::TimedOut, "a success after the time limit is none ({backend:?})");
        assert_eq!(finished.output.text(), "ready\nwas at three\n", "{backend:?}");
    }
}

#[test]
fn dropping_the_future_ends_the_command_at_once() {
    for backend in backends() {
        let place = Place::new();
        let sleep = unique_sleep();
        let spec = place.spec(&backend, &format!("echo ready; setsid sleep {sleep} & sleep {sleep}"));
        block_on(async {
            let (tell, told) = tokio::sync::oneshot::channel();
            let mut tell = Some(tell);
            let mut on_line = |_: &str| {
                if let Some(tell) = tell.take() {
                    tell.send(()).unwrap();
                }
            };
            tokio::select! {
                _ = iudex_exec::run(spec, &mut on_line) => panic!("it ended"),
                _ = told => {}
            }
        });
        assert_eq!(processes_with(&sleep), 0, "{backend:?}");
    }
}

#[test]
fn no_zombie_stays() {
    let own = std::process::id().to_string();
    for backend in backends() {
        let place = Place::new();
        for _ in 0..3 {
            place.run(&backend, "sleep 60 &");
        }
    }
    let zombies = std::fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| std::fs::read_to_string(entry.path().join("stat")).ok())
        .filter(|stat| {
            let fields: Vec<_> =
                stat.rsplit(')').next().unwrap_or_default().split_whitespace().map(str::to_owned).collect();
            fields.first().is_some_and(|state| state == "Z") && fields.get(1) == Some(&own)
        })
        .count();
    assert_eq!(zombies, 0);
}

/// Beside this test program, as the supervisor of all commands here.
fn helper() -> PathBuf {
    let own = std::env::current_exe().unwrap();
    own.parent().unwrap().parent().unwrap().join("examples/supervisor")
}

#[test]
fn a_killed_iudex_leaves_nothing() {
    for backend in backends() {
        let place = Place::new();
        let sleep = unique_sleep();
        let word = match &backend {
            Backend::Bubblewrap { program } => program.to_str().unwrap().to_owned(),
            other => other.word().to_owned(),
        };
        let script = format!("setsid sleep {sleep} & (setsid setsid sleep {sleep} &); sleep {sleep}");
        let mut iudex = Command::new(helper())
            .args([&word, place.work.to_str().unwrap(), place.state.to_str().unwrap(), "60", &script])
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        eventually("three sleeps run", || processes_with(&sleep) == 3);
        iudex.kill().unwrap();
        iudex.wait().unwrap();
        eventually("no sleep is left", || processes_with(&sleep) == 0);
    }
}

#[test]
fn a_supervisor_killed_by_the_command_is_never_a_pass() {
    for backend in backends() {
        let place = Place::new();
        let sleep = unique_sleep();
        // Under a sandbox with a process namespace or scope this hits what is inside, else the supervisor.
        let script =
            format!("setsid sleep {sleep} & (setsid setsid sleep {sleep} &); kill -KILL $PPID; sleep 0.3; exit 0");
        let ended = run(place.spec(&backend, &script)).map(|finished| finished.end);
        match (&backend, ended) {
            (Backend::Landlock, Ok(end)) => assert_eq!(end, End::Exited(0)),
            (Backend::Bubblewrap { .. }, Ok(end)) => assert_eq!(end, End::Signalled(9)),
            (_, Err(error)) => assert!(error.message.contains("supervisor of the command was killed"), "{error}"),
            (Backend::None, Ok(end)) => panic!("the machine's fault was taken for {end:?}"),
        }
        assert_eq!(processes_with(&sleep), 0, "{backend:?}");
    }
}

#[test]
fn a_session_leader_outside_the_process_namespace_does_no_harm() {
    let Some(Backend::Bubblewrap { program }) = bubblewrap() else { return };
    let ended = Command::new(program)
        .args(["--unshare-pid", "--die-with-parent", "--dev-bind", "/", "/", "--proc", "/proc"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "a_supervisor_killed_by_the_command_is_never_a_pass"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn a_missing_directory_is_the_machines_fault_and_named() {
    for backend in backends() {
        let place = Place::new();
        let mut spec = place.spec(&backend, "true");
        spec.cwd = place.work.join("gone");
        let error = run(spec).unwrap_err();
        assert!(error.message.contains("work/gone"), "{}", error.message);
    }
}

#[test]
fn a_sandbox_that_cannot_be_set_up_is_the_machines_fault() {
    let place = Place::new();
    let missing = Backend::Bubblewrap { program: "/no/such/bwrap".into() };
    let error = run(place.spec(&missing, "true")).unwrap_err();
    assert!(error.message.contains("/no/such/bwrap"), "{}", error.message);
    // It starts and refuses, as bubblewrap does without user namespaces.
    let refusing = place.root().join("bwrap");
    std::fs::write(&refusing, "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n").unwrap();
    std::fs::set_permissions(&refusing, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let error = run(place.spec(&Backend::Bubblewrap { program: refusing }, "true")).unwrap_err();
    assert!(error.message.contains("setting up uid map: Permission denied"), "{}", error.message);
    assert!(error.message.contains("exit status 1"), "{}", error.message);
}

#[test]
fn a_script_that_bash_cannot_take_is_not_the_machines_fault() {
    let place = Place::new();
    let long = place.run(&Backend::None, &format!("true {}", "x".repeat(200_000)));
    assert_eq!(long.end, End::Exited(126));
    assert!(long.output.text().contains("200005 bytes"), "{}", long.output.text());
    assert_eq!(place.run(&Backend::None, "echo a\0b").end, End::Exited(126));
    assert_passed(&place.run(&Backend::None, &format!("true {}", "x".repeat(131_000))), "the longest");
}

#[test]
fn a_bash_that_a_command_could_have_written_is_not_run() {
    for backend in backends() {
        let place = Place::new();
        let planted = place.work.join("bash");
        std::fs::write(&planted, "#!/bin/sh\necho planted\n").unwrap();
        std::fs::set_permissions(&planted, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let mut spec = place.spec(&backend, "echo real");
        let path = format!("{}:/usr/bin:/bin", place.work.display());
        spec.env.retain(|(name, _)| name != "PATH");
        spec.env.push(("PATH".into(), path.into()));
        assert_eq!(run(spec).unwrap().output.text(), "real\n", "{backend:?}");
    }
}
