//! What a command in a sandbox can reach, as root and as an ordinary user.

#![allow(clippy::unwrap_used, reason = "a test that cannot prepare itself fails")]

mod common;

use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::net::UnixListener;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

use common::{Place, assert_passed, bubblewrap, run, sandboxes};
use iudex_exec::{Backend, End};

/// The user `nobody`.
const ORDINARY: u32 = 65_534;

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Runs the script as this user and, when that is root, as an ordinary one too; returns what it printed each time.
fn as_both_users(place: &Place, backend: &Backend, script: &str) -> Vec<(String, String)> {
    let mut outputs = vec![("this user".to_owned(), place.run(backend, script).output.text())];
    if !is_root() {
        eprintln!("SKIPPED: only root can run this as another user too");
        return outputs;
    }
    let helper = place.root().join("iudex");
    if !helper.exists() {
        let own = std::env::current_exe().unwrap();
        std::fs::copy(own.parent().unwrap().parent().unwrap().join("examples/supervisor"), &helper).unwrap();
    }
    let backend_name = match backend {
        Backend::Bubblewrap { program } => program.to_str().unwrap().to_owned(),
        other => other.word().to_owned(),
    };
    let [work, state] = ["ordinary/work", "ordinary/state"].map(|name| place.root().join(name));
    for path in [&work.join(".git/hooks"), &state] {
        std::fs::create_dir_all(path).unwrap();
    }
    std::fs::write(work.join(".git/HEAD"), "ref: refs/heads/main\n").unwrap();
    std::fs::write(state.join("ledger"), "hidden content\n").unwrap();
    let given = Command::new("chown")
        .args(["-R", &ORDINARY.to_string(), place.root().join("ordinary").to_str().unwrap()])
        .status();
    assert!(given.unwrap().success());
    let script = script
        .replace(place.work.to_str().unwrap(), work.to_str().unwrap())
        .replace(place.state.to_str().unwrap(), state.to_str().unwrap());
    let output = Command::new(&helper)
        .args([&backend_name, work.to_str().unwrap(), state.to_str().unwrap(), "60", &script])
        .env("HOME", "/usr")
        .current_dir("/")
        .uid(ORDINARY)
        .gid(ORDINARY)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("end: "), "{backend:?}: {text}");
    outputs.push(("an ordinary user".to_owned(), text));
    outputs
}

/// Each command must fail; `got through: …` names the ones that did not.
fn attempts(commands: &[&str]) -> String {
    commands.iter().fold(String::new(), |script, command| {
        let quoted = command.replace('\'', "'\\''");
        script + &format!("if bash -c '{quoted}' 2>/dev/null; then echo 'got through: {quoted}'; fi\n")
    }) + "echo all tried\n"
}

fn assert_none_got_through(place: &Place, backend: &Backend, commands: &[&str]) {
    for (user, output) in as_both_users(place, backend, &attempts(commands)) {
        assert!(output.contains("all tried"), "{backend:?}, {user}: {output}");
        assert!(!output.contains("got through"), "{backend:?}, {user}: {output}");
    }
}

#[test]
fn writes_in_the_work_directory_the_caches_and_tmp_work() {
    for backend in sandboxes() {
        for place in [Place::new(), Place::elsewhere()] {
            let script = "set -e; echo a > new; mkdir -p d/e; mv new d/e/; echo b >> d/e/new; rm -r d; echo ok > kept
                echo c > \"$TMPDIR/t\"; echo d > \"$(mktemp)\"; mkdir -p \"$XDG_CACHE_HOME\"; echo e > \"$XDG_CACHE_HOME/x\"
                echo f > /dev/null; cat \"$TMPDIR/t\"; echo fine";
            for (user, output) in as_both_users(&place, &backend, script) {
                assert!(output.contains("fine"), "{backend:?}, {user}: {output}");
            }
            assert_eq!(std::fs::read_to_string(place.work.join("kept")).unwrap(), "ok\n");
        }
    }
}

#[test]
fn the_private_directories_outlive_a_command() {
    for backend in sandboxes() {
        let place = Place::new();
        assert_passed(
            &place.run(&backend, "mkdir -p $XDG_CACHE_HOME; echo 1 > $TMPDIR/a; echo 2 > $XDG_CACHE_HOME/b"),
            "",
        );
        assert_eq!(place.run(&backend, "cat $TMPDIR/a $XDG_CACHE_HOME/b").output.text(), "1\n2\n", "{backend:?}");
    }
}

#[test]
fn writes_anywhere_else_fail() {
    for backend in sandboxes() {
        for place in [Place::new(), Place::elsewhere()] {
            let outside = place.outside.display();
            let commands = [
                format!("echo x > {outside}/new"),
                format!("echo x >> {outside}/file"),
                format!("truncate -s 0 {outside}/file"),
                format!("rm {outside}/file"),
                format!("mv {outside}/file {outside}/other"),
                format!("ln {outside}/file here && echo x >> here"),
                format!("ln -s {outside} link && echo x > link/new"),
                "echo x > /etc/iudex-test".to_owned(),
                "echo x > \"$HOME/iudex-test\"".to_owned(),
                "mkdir /iudex-test".to_owned(),
                "mknod device b 1 0 && echo x > device".to_owned(),
                // Opened, not written: a success here must not break the machine.
                "exec 3<>/proc/sys/kernel/core_pattern".to_owned(),
                "exec 3<>/proc/sys/vm/overcommit_memory".to_owned(),
                "exec 3<>/proc/sysrq-trigger".to_owned(),
                "exec 3<>/sys/kernel/mm/transparent_hugepage/enabled".to_owned(),
            ];
            assert_none_got_through(&place, &backend, &commands.each_ref().map(String::as_str));
            let content = std::fs::read_to_string(place.outside.join("file")).unwrap();
            assert_eq!(content, "outside content\n", "{backend:?}");
            assert_eq!(std::fs::read_dir(&place.outside).unwrap().count(), 1, "{backend:?}");
        }
    }
}

#[test]
fn a_remount_or_a_nested_namespace_is_no_way_out() {
    for backend in sandboxes() {
        let place = Place::elsewhere();
        let outside = place.outside.join("file");
        let (outside, git) = (outside.display(), place.work.join(".git"));
        let (git, state) = (git.display(), place.state.display());
        let commands = [
            "mount -o remount,rw,bind /".to_owned(),
            "mount -o remount,rw /".to_owned(),
            format!("mount -o remount,rw,bind {git}"),
            format!("umount {git}"),
            format!("umount {state}"),
            format!("umount -l {state}"),
            format!("unshare -Ur bash -c 'mount -o remount,rw,bind / && echo x >> {outside}'"),
            format!("unshare -Urm bash -c 'mount -o remount,rw,bind /; echo x >> {outside}'"),
            format!("unshare -Urm bash -c 'mount -o remount,rw,bind {git}; echo x >> {git}/HEAD'"),
            format!("unshare -Urm bash -c 'umount -l {state}; cat {state}/ledger'"),
            format!("unshare -Urm bash -c 'mount --bind {state} .; cat ledger'"),
            format!("unshare -m bash -c 'umount {state}; cat {state}/ledger'"),
            format!("nsenter -t 1 -m cat {state}/ledger"),
            "unshare -Urpf --mount-proc true && unshare -Urmpf bash -c 'mount -t proc proc /proc && exec 3<>/proc/sys/kernel/core_pattern'".to_owned(),
            "chroot /proc/1/root true".to_owned(),
            "capsh --has-p=cap_sys_admin".to_owned(),
        ];
        // Under Landlock `.git` can be written and is put back: another test.
        let commands = commands.iter().map(String::as_str);
        let commands: Vec<_> = commands.filter(|it| backend != Backend::Landlock || !it.contains("/HEAD")).collect();
        assert_none_got_through(&place, &backend, &commands);
        assert_eq!(std::fs::read_to_string(place.outside.join("file")).unwrap(), "outside content\n");
    }
}

#[test]
fn nothing_is_left_of_the_capabilities_of_root() {
    for backend in sandboxes() {
        for (user, output) in
            as_both_users(&Place::new(), &backend, "grep -E 'Cap(Eff|Prm|Amb)|NoNewPrivs' /proc/self/status")
        {
            for set in ["CapEff:", "CapPrm:", "CapAmb:"] {
                assert!(output.contains(&format!("{set}\t0000000000000000")), "{backend:?}, {user}: {output}");
            }
            assert!(output.contains("NoNewPrivs:\t1"), "{backend:?}, {user}: {output}");
        }
    }
}

#[test]
fn git_stays_as_it_was() {
    for backend in sandboxes() {
        let place = Place::new();
        let script = "echo evil > .git/hooks/pre-commit; echo evil > .git/HEAD; rm -rf .git/hooks; mv .git away; \
                      rm -rf .git; mkdir -p .git; echo evil > .git/config; true";
        assert_passed(&place.run(&backend, script), backend.word());
        assert_eq!(std::fs::read_to_string(place.work.join(".git/HEAD")).unwrap(), "ref: refs/heads/main\n");
        assert_eq!(std::fs::read_dir(place.work.join(".git")).unwrap().count(), 2, "{backend:?}");
        assert_eq!(std::fs::read_dir(place.work.join(".git/hooks")).unwrap().count(), 0, "{backend:?}");
    }
}

#[test]
fn a_git_that_is_a_link_or_a_file_stays_what_it_was() {
    for backend in sandboxes() {
        let place = Place::new();
        let [link, file] = ["sub", "tree"].map(|name| place.work.join(name));
        std::fs::create_dir(&link).unwrap();
        std::fs::create_dir(&file).unwrap();
        std::os::unix::fs::symlink("../.git", link.join(".git")).unwrap();
        std::fs::write(file.join(".git"), "gitdir: elsewhere\n").unwrap();
        let mut spec = place.spec(
            &backend,
            "rm sub/.git; mkdir sub/.git; echo evil > sub/.git/HEAD; echo evil > .git/HEAD; echo evil > tree/.git; true",
        );
        spec.confinement.read_only = vec![place.work.join(".git"), link.join(".git"), file.join(".git")];
        assert_passed(&run(spec).unwrap(), backend.word());
        assert_eq!(std::fs::read_link(link.join(".git")).unwrap(), PathBuf::from("../.git"), "{backend:?}");
        assert_eq!(std::fs::read_to_string(place.work.join(".git/HEAD")).unwrap(), "ref: refs/heads/main\n");
        assert_eq!(std::fs::read_to_string(file.join(".git")).unwrap(), "gitdir: elsewhere\n", "{backend:?}");
    }
}

#[test]
fn what_landlock_cannot_protect_is_put_back_and_told_also_after_a_time_out() {
    if !sandboxes().contains(&Backend::Landlock) {
        return;
    }
    let place = Place::new();
    let mut spec = place.spec(&Backend::Landlock, "echo evil > .git/HEAD; echo evil > .git/config; sleep 60");
    spec.time_limit = std::time::Duration::from_millis(500);
    let finished = run(spec).unwrap();
    assert_eq!(finished.end, End::TimedOut);
    assert_eq!(finished.restored, [place.work.join(".git/HEAD"), place.work.join(".git/config")]);
    assert!(!place.work.join(".git/config").exists());
}

#[test]
fn the_state_of_iudex_can_neither_be_read_nor_written() {
    for backend in sandboxes() {
        for place in [Place::new(), Place::elsewhere()] {
            let state = place.state.display();
            let commands = [
                format!("cat {state}/ledger"),
                format!("ls {state}/ledger"),
                format!("ls {state} | grep ledger"),
                format!("echo x > {state}/new"),
                format!("rm {state}/ledger"),
                format!("mv {state} {state}-away"),
                format!("ln {state}/ledger here && cat here"),
                format!("ln -s {state} link && cat link/ledger"),
                format!("cat /proc/1/root{state}/ledger"),
            ];
            let mut commands: Vec<_> = commands.iter().map(String::as_str).collect();
            if place.state.starts_with("/tmp") {
                // In the private /tmp a command may make what it likes under any name.
                commands.retain(|command| command.contains("ledger"));
            }
            if backend == Backend::Landlock {
                // It hides contents and lists, and not that a name exists.
                commands.retain(|command| !command.starts_with("ls") || command.contains("grep"));
            }
            assert_none_got_through(&place, &backend, &commands);
            assert_eq!(std::fs::read_to_string(place.state.join("ledger")).unwrap(), "hidden content\n");
        }
    }
}

#[test]
fn a_file_with_a_secret_is_empty_or_closed() {
    for backend in sandboxes() {
        let place = Place::visible();
        for folder in [".ssh", ".docker", ".config/gh"] {
            std::fs::create_dir_all(place.outside.join(folder)).unwrap();
        }
        let secrets = [".ssh/id_ed25519", ".netrc", ".docker/config.json", ".config/gh/hosts.yml", ".npmrc"];
        for name in secrets {
            std::fs::write(place.outside.join(name), "hidden content\n").unwrap();
        }
        let mut spec = place.spec(
            &backend,
            "cat ~/.ssh/* ~/.netrc ~/.docker/config.json ~/.config/gh/* ~/.npmrc; cat ~/file; git --version && python3 -c 1",
        );
        spec.env.retain(|(name, _)| name != "HOME");
        spec.env.push(("HOME".into(), place.outside.clone().into()));
        spec.confinement.hidden.extend(iudex_exec::secret_places(&place.outside));
        let finished = run(spec).unwrap();
        assert_passed(&finished, backend.word());
        let text = finished.output.text();
        assert!(text.contains("outside content") && !text.contains("hidden content"), "{backend:?}: {text}");
    }
}

#[test]
fn settings_for_cargo_that_a_command_left_are_gone_for_the_next_one() {
    for backend in sandboxes() {
        let place = Place::new();
        let plant = "mkdir -p $CARGO_HOME; for f in config.toml config credentials.toml env; do
            echo planted > $CARGO_HOME/$f; done; mkdir -p $CARGO_HOME/bin; echo planted > $CARGO_HOME/bin/cargo-x
            echo kept > $CARGO_HOME/registry/kept; echo kept > $CARGO_HOME/git/kept; true";
        assert_passed(&place.run(&backend, plant), backend.word());
        let text =
            place.run(&backend, "cat $CARGO_HOME/* $CARGO_HOME/bin/cargo-x $CARGO_HOME/registry/kept").output.text();
        assert!(!text.contains("planted") && text.contains("kept"), "{backend:?}: {text}");
    }
}

#[test]
fn state_inside_the_work_directory_is_hidden_too() {
    for backend in sandboxes() {
        let place = Place::new();
        std::fs::create_dir(place.work.join("inner")).unwrap();
        std::fs::write(place.work.join("inner/secret"), "hidden content").unwrap();
        let mut spec = place.spec(&backend, "cat inner/secret; echo x > inner/new; true");
        spec.confinement.hidden.push(place.work.join("inner"));
        if backend == Backend::Landlock {
            // What is granted on the work directory cannot be taken back below it.
            assert!(run(spec).unwrap_err().message.contains("inner"));
            continue;
        }
        let finished = run(spec).unwrap();
        assert!(!finished.output.text().contains("hidden content"), "{backend:?}");
        assert_eq!(std::fs::read_dir(place.work.join("inner")).unwrap().count(), 1);
    }
}

#[test]
fn a_network_is_out_of_reach() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    listener.set_nonblocking(true).unwrap();
    for backend in sandboxes() {
        let place = Place::new();
        let commands = [
            format!("echo x > /dev/tcp/127.0.0.1/{port}"),
            format!("python3 -c 'import socket; socket.create_connection((\"127.0.0.1\", {port}), 5)'"),
            "echo x > /dev/udp/8.8.8.8/53".to_owned(),
        ];
        assert_none_got_through(&place, &backend, &commands.each_ref().map(String::as_str));
        assert!(listener.accept().is_err(), "{backend:?}: someone connected");
    }
}

#[test]
fn with_a_network_the_listener_of_the_machine_is_reached() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    for backend in sandboxes() {
        let place = Place::new();
        let mut spec = place.spec(&backend, &format!("echo hello > /dev/tcp/127.0.0.1/{port}"));
        spec.confinement.network = true;
        assert_passed(&run(spec).unwrap(), backend.word());
        listener.accept().unwrap();
    }
}

#[test]
fn bubblewrap_gives_a_loopback_of_its_own() {
    let Some(backend) = bubblewrap() else { return };
    let script = "python3 - <<'END'
import socket
server = socket.create_server(('127.0.0.1', 0))
client = socket.create_connection(server.getsockname())
print('connected')
END";
    assert_eq!(Place::new().run(&backend, script).output.text(), "connected\n");
}

#[test]
fn daemons_cannot_be_reached_by_their_sockets() {
    for backend in sandboxes() {
        let place = Place::elsewhere();
        let path = place.outside.join("daemon.sock");
        // The longest address of a unix socket is 107 bytes.
        let short = tempfile::Builder::new().prefix("s").tempdir_in("/var").ok();
        let path = short.as_ref().map_or(path, |directory| directory.path().join("d.sock"));
        let listener = UnixListener::bind(&path).unwrap();
        listener.set_nonblocking(true).unwrap();
        for network in [false, true] {
            let connect = format!(
                "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{}\"); print(\"connected\")'; true",
                path.display()
            );
            let mut spec = place.spec(&backend, &connect);
            spec.confinement.network = network;
            let finished = run(spec).unwrap();
            assert!(!finished.output.text().contains("connected\n"), "{backend:?}: {}", finished.output.text());
            assert!(listener.accept().is_err(), "{backend:?}");
        }
    }
}

#[test]
fn tmp_is_private() {
    let Some(backend) = bubblewrap() else { return };
    let mut outside = tempfile::NamedTempFile::new_in("/tmp").unwrap();
    outside.write_all(b"of others").unwrap();
    let place = Place::elsewhere();
    let name = outside.path().display();
    let finished =
        place.run(&backend, &format!("cat {name}; ls -A /tmp /var/tmp; echo mine > /tmp/mine; cat /var/tmp/mine"));
    assert!(!finished.output.text().contains("of others"), "{}", finished.output.text());
    assert!(finished.output.text().ends_with("mine\n"), "{}", finished.output.text());
    assert!(!std::path::Path::new("/tmp/mine").exists());
    assert_eq!(std::fs::read_to_string(place.state.join("tmp/mine")).unwrap(), "mine\n");
}

#[test]
fn processes_outside_can_be_neither_seen_nor_hit() {
    for backend in sandboxes() {
        let place = Place::new();
        let own = std::process::id();
        let commands = [format!("kill -0 {own}"), format!("kill -CONT {own}"), format!("cat /proc/{own}/environ")];
        assert_none_got_through(&place, &backend, &commands.each_ref().map(String::as_str));
    }
}

#[test]
fn a_command_cannot_say_for_the_supervisor_that_it_passed() {
    let Some(backend) = bubblewrap() else { return };
    // Takes the socket of every process that it may (pidfd_open, pidfd_getfd) and writes an end into it.
    let script = r#"python3 - <<'END'
import ctypes, json, os, struct
libc = ctypes.CDLL(None)
got = 0
for pid in [int(name) for name in os.listdir('/proc') if name.isdigit() and int(name) != os.getpid()]:
    handle = libc.syscall(434, pid, 0)
    for number in range(0, 12):
        fd = libc.syscall(438, handle, number, 0)
        if fd < 0 or not os.readlink(f'/proc/self/fd/{fd}').startswith('socket:'):
            continue
        got += 1
        message = json.dumps([[0] * 16, {"Ended": {"exit": {"Code": 0}, "left_behind": 0}}]).encode()
        os.write(fd, struct.pack('<I', len(message)) + message)
print('sockets', got)
END
exit 5"#;
    let finished = Place::new().run(&backend, script);
    assert_eq!(finished.output.text(), "sockets 0\n");
    assert_eq!(finished.end, End::Exited(5));
}

#[test]
fn the_evidence_names_what_is_not_held() {
    let place = Place::new();
    let of = |backend: Backend| iudex_exec::evidence(&place.spec(&backend, "").confinement);
    assert_eq!(of(Backend::Bubblewrap { program: "/usr/bin/bwrap".into() }), "bubblewrap");
    assert!(of(Backend::Landlock).contains("no own loopback"));
    assert!(of(Backend::Landlock).contains(".git restored after each command"));
    assert!(of(Backend::None).contains("no sandbox"));
}
