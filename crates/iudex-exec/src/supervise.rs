//! The supervisor: iudex executed once more, which owns a command and all its descendants.
//!
//! It is their subreaper, notices the death of iudex by a closed socket, and kills until none is left. Inside
//! bubblewrap a second one reports how the command really ended, which bubblewrap alone does not tell.
//!
//! Never: output. What the command prints goes straight into iudex's pipe.

mod descendants;
mod executable;
mod orphans;
mod wire;

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd as _, OwnedFd};
use std::os::unix::net::UnixStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::process::{Pid, Resource, Rlimit, Signal, WaitOptions, WaitStatus, getrlimit, setrlimit};

pub use executable::set_supervisor;
pub(crate) use executable::supervisor;
pub(crate) use orphans::Adopter;
pub(crate) use wire::{Exit, Launch, Message, Order, Program, Request, Word, frame, take_message};

use crate::guard::Guard;

/// The hidden first argument.
pub(crate) const ARGUMENT: &str = "__supervise";

/// How long a killed process may take to be gone before the supervisor gives up on it (a process in the midst of a
/// device access, or of another user).
const PATIENCE: Duration = Duration::from_secs(10);

/// Becomes the supervisor when the arguments (the program's name first) say so, and returns its exit code; `None` for
/// every other command line. The binary calls this before anything else.
pub fn supervise_main(arguments: impl IntoIterator<Item = OsString>) -> Option<ExitCode> {
    if arguments.into_iter().nth(1)? != ARGUMENT {
        return None;
    }
    Some(match serve() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("iudex: the supervisor of a command failed: {error}");
            ExitCode::from(2)
        }
    })
}

fn serve() -> io::Result<()> {
    let standard_input = rustix::io::fcntl_dupfd_cloexec(rustix::stdio::stdin(), 3)?;
    let mut control = UnixStream::from(standard_input);
    control
        .peer_addr()
        .map_err(|_| io::Error::other("`__supervise` is called by iudex itself and is no command for people"))?;
    let request: Request = wire::receive(&mut control)?;
    protect();
    match &request.launch {
        Launch::Own => own(control, &request, None),
        Launch::Inside => {
            crate::landlock::scope_sockets();
            own(control, &request, None)
        }
        Launch::Through(inner) => own(control, &request, Some(inner)),
        Launch::Confined(rules) => confine(control, &request, rules),
    }
}

/// The commands run as the same user; they shall neither trace this process nor hit it by its name.
fn protect() {
    #[cfg(target_os = "linux")]
    {
        let _ = rustix::thread::set_name(c"supervisor");
        let _ = rustix::process::set_dumpable_behavior(rustix::process::DumpableBehavior::NotDumpable);
    }
}

/// Starts the program, waits until it ends or iudex wants it to, ends all descendants and says how it was.
fn own(control: UnixStream, request: &Request, inner: Option<&Request>) -> io::Result<()> {
    let Request { program, word, guarded, displaced, descriptors, .. } = request;
    descendants::adopt()?;
    // No terminal: Ctrl-C is iudex's to handle, and nothing can ask for a password there.
    let _ = rustix::process::setsid();
    let (mut inner_stream, standard_input) = if inner.is_some() {
        let (ours, theirs) = UnixStream::pair()?;
        (Some(ours), Stdio::from(OwnedFd::from(theirs)))
    } else {
        (None, Stdio::null())
    };
    // Kept here, and not in iudex alone: this process outlives it long enough to put things back.
    let guard = Guard::over(guarded, displaced);
    if inner.is_none() {
        limit_descriptors(*descriptors);
    }
    let mut relay = Relay { control, word, inner, started: false, ended: None };
    if inner.is_none() {
        // Said before it is so: the command may kill this process at once, and has run then.
        relay.pass(Message::Started);
    }
    let child = match command(program).stdin(standard_input).process_group(0).spawn() {
        Ok(child) => child,
        Err(error) => return wire::say(&mut relay.control, word, &Message::Failed(not_started(program, &error))),
    };
    let Some(main) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) else {
        return Err(io::Error::other("a process id out of range"));
    };
    if let (Some(stream), Some(inner)) = (&mut inner_stream, inner) {
        stream.set_write_timeout(Some(PATIENCE))?;
        // A wrapper that died at once is noticed below, by its end.
        let _ = wire::send(stream, inner);
    }
    let status = watch(&mut relay, &mut inner_stream, main);
    if status.is_none() {
        let _ = rustix::process::kill_process_group(main, Signal::KILL);
    }
    let descendants::Rest { status: last_status, left_behind, survivors } = descendants::end_all(main, PATIENCE);
    let report = guard.restore();
    if let Some(scratch) = &request.scratch {
        let _ = std::fs::remove_dir_all(scratch);
    }
    // The inner supervisor is gone: what it said before stands in the socket.
    if let Some(stream) = &mut inner_stream {
        stream.set_read_timeout(Some(Duration::from_millis(200)))?;
        while relay.hear(stream).is_ok() {}
    }
    let exit = status.or(last_status).map_or(Exit::Signal(Signal::KILL.as_raw()), exit_of);
    // What this process started became the command, unless it is a wrapper with a supervisor of its own in it.
    let is_command = inner.is_none_or(|inner| relay.started && matches!(inner.launch, Launch::Confined(_)));
    let ended = match relay.ended {
        // Who is left here is what is left of all.
        Some(Message::Ended { exit, left_behind, .. }) => Message::Ended { exit, left_behind, survivors },
        Some(ended) => ended,
        None if is_command => Message::Ended { exit, left_behind, survivors },
        None => Message::Vanished(exit),
    };
    if !report.is_empty() {
        wire::say(&mut relay.control, word, &Message::Guarded(report))?;
    }
    wire::say(&mut relay.control, word, &ended)
}

/// What the inner supervisor said and what of it goes on to iudex at once.
struct Relay<'a> {
    control: UnixStream,
    word: &'a Word,
    inner: Option<&'a Request>,
    started: bool,
    ended: Option<Message>,
}

impl Relay<'_> {
    fn hear(&mut self, stream: &mut UnixStream) -> io::Result<()> {
        let Some(inner) = self.inner else { return Err(io::ErrorKind::NotConnected.into()) };
        let message = wire::hear(stream, &inner.word)?;
        self.pass(message);
        Ok(())
    }

    /// Interrupts the command, which the inner supervisor knows, if there is one.
    fn interrupt(&self, inner: Option<&mut UnixStream>, main: Pid) {
        match (self.inner, inner) {
            (Some(Request { launch: Launch::Inside, word, .. }), Some(stream)) => {
                let _ = wire::send(stream, &(word, Order::Interrupt));
            }
            _ => {
                let _ = rustix::process::kill_process_group(main, Signal::INT);
            }
        }
    }

    /// The start is told at once; how it ended when everything is gone.
    fn pass(&mut self, message: Message) {
        match message {
            Message::Started => {
                self.started = true;
                // A dead iudex is noticed by the closed socket.
                let _ = wire::say(&mut self.control, self.word, &message);
            }
            Message::Guarded(_) => {}
            Message::Failed(_) | Message::Ended { .. } | Message::Vanished(_) => self.ended = Some(message),
        }
    }
}

/// Returns how the program ended, or `None` when iudex is dead or wants an end.
fn watch(relay: &mut Relay, inner: &mut Option<UnixStream>, main: Pid) -> Option<WaitStatus> {
    #[cfg(target_os = "linux")]
    let end = rustix::process::pidfd_open(main, rustix::process::PidfdFlags::empty()).ok();
    #[cfg(not(target_os = "linux"))]
    let end: Option<OwnedFd> = None;
    // With a pidfd the pause only bounds how long an adopted zombie stays.
    let pause = if end.is_some() { Duration::from_millis(500) } else { Duration::from_millis(5) };
    let mut said_ended: Option<Instant> = None;
    loop {
        if let Some(status) = reap(main) {
            return Some(status);
        }
        if said_ended.is_some_and(|since| since.elapsed() > Duration::from_secs(2)) {
            return None;
        }
        let (control_ready, inner_ready) = {
            let mut descriptors = vec![PollFd::new(&relay.control, PollFlags::IN)];
            if let Some(end) = &end {
                descriptors.push(PollFd::from_borrowed_fd(end.as_fd(), PollFlags::IN));
            }
            if let Some(inner) = &*inner {
                descriptors.push(PollFd::new(inner, PollFlags::IN));
            }
            let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(pause.subsec_nanos()) };
            match rustix::event::poll(&mut descriptors, Some(&timeout)) {
                Ok(_) => {}
                Err(rustix::io::Errno::INTR) => continue,
                Err(_) => return None,
            }
            let ready = |descriptor: &PollFd<'_>| !descriptor.revents().is_empty();
            (ready(&descriptors[0]), inner.is_some() && descriptors.last().is_some_and(ready))
        };
        if control_ready {
            match wire::hear(&mut relay.control, relay.word) {
                Ok(Order::Interrupt) => relay.interrupt(inner.as_mut(), main),
                // Closed: iudex is dead, or it wants an end.
                _ => return None,
            }
        }
        if inner_ready && let Some(stream) = inner {
            match relay.hear(stream) {
                Ok(()) if relay.ended.is_some() => said_ended = Some(Instant::now()),
                Ok(()) => {}
                Err(_) => *inner = None,
            }
        }
    }
}

/// Takes the statuses of all children that have ended; returns the one of `main`.
fn reap(main: Pid) -> Option<WaitStatus> {
    let mut of_main = None;
    loop {
        match rustix::process::wait(WaitOptions::NOHANG) {
            Ok(Some((pid, status))) if pid == main => of_main = Some(status),
            Ok(Some(_)) | Err(rustix::io::Errno::INTR) => {}
            Ok(None) | Err(_) => return of_main,
        }
    }
}

fn exit_of(status: WaitStatus) -> Exit {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Exit::Code(code),
        (None, signal) => Exit::Signal(signal.unwrap_or(Signal::KILL.as_raw())),
    }
}

/// Confines this process and becomes the program.
fn confine(mut control: UnixStream, request: &Request, rules: &crate::landlock::Rules) -> io::Result<()> {
    let Request { program, word, descriptors, .. } = request;
    limit_descriptors(*descriptors);
    if let Err(reason) = crate::landlock::apply(rules) {
        return wire::say(&mut control, word, &Message::Failed(reason));
    }
    wire::say(&mut control, word, &Message::Started)?;
    // The socket is closed by a successful execution.
    let error = command(program).stdin(Stdio::null()).exec();
    wire::say(&mut control, word, &Message::Failed(not_started(program, &error)))
}

/// What the supervisor raised for itself the command does not get.
fn limit_descriptors(current: Option<u64>) {
    if current.is_some() {
        let _ = setrlimit(Resource::Nofile, Rlimit { current, ..getrlimit(Resource::Nofile) });
    }
}

fn command(program: &Program) -> Command {
    let mut command = Command::new(&program.arguments[0]);
    command
        .args(&program.arguments[1..])
        .env_clear()
        .envs(program.environment.iter().map(|(name, value)| (name, value)))
        .current_dir(&program.directory);
    command
}

fn not_started(program: &Program, error: &io::Error) -> String {
    let directory = program.directory.display();
    if !program.directory.is_dir() {
        return format!("the directory of the command cannot be entered: {directory}");
    }
    format!("cannot start {} in {directory}: {error}", program.arguments[0].display())
}
