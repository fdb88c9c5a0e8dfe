//! One command from start to end: start the supervisor, read, limit, end.
//!
//! Never: return while something of the command is alive.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream as StdUnixStream;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;
use tokio::time::{Instant as TokioInstant, sleep, sleep_until, timeout};

use crate::capture::Capture;
use crate::command::{CommandSpec, End, Finished, OutputSpec, StartError};
use crate::guard::{Guard, Report};
use crate::launch;
use crate::lines::{self, Lines};
use crate::supervise::{ARGUMENT, Adopter, Exit, Message, Order, Request, frame, supervisor, take_message};

/// What is read at once.
const BUFFER: usize = 64 << 10;
/// The kernel's size of a pipe that lets a flood through quickly; the most that an ordinary user may ask for.
const PIPE: usize = 1 << 20;
/// How long it may take until the command runs.
const START: Duration = Duration::from_mins(1);
/// How long the supervisor has for taking a request, and for ending once it said that all is gone.
const ANSWER: Duration = Duration::from_secs(10);
/// How long a command that ran into its time limit may take to end by itself after an interrupt.
const GRACE: Duration = Duration::from_secs(1);
/// How long the supervisor has for killing everything; more than its own patience.
const KILL: Duration = Duration::from_secs(20);
/// How long iudex tries to end what a killed supervisor left.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often a sandbox is set up before its failure counts.
const SETUPS: u32 = 4;
/// The longest argument that Linux takes (`MAX_ARG_STRLEN`, the closing zero included).
const LONGEST: usize = 131_072;

/// Runs a command to its end. `on_line` gets each line of output for display (cut at 1,000 characters; under a flood
/// lines are skipped, never delayed).
///
/// Under a sandbox a few variables are set beyond the given ones: `TMPDIR`, `TMP` and `TEMP` name the private
/// directory, and without a network `CARGO_NET_OFFLINE` keeps cargo from waiting for one.
///
/// Dropping the future kills the command and all its descendants. So does the death of this process.
///
/// # Errors
/// [`StartError`] only when the machine cannot start it; a missing program is an exit status of 127.
pub async fn run(spec: CommandSpec, on_line: &mut dyn FnMut(&str)) -> Result<Finished, StartError> {
    let start = Instant::now();
    if let Some(reason) = not_a_script(&spec.script) {
        return Ok(refused(&reason, &spec.output, start));
    }
    let executable = supervisor().map_err(|error| StartError { message: format!("cannot run a command: {error}") })?;
    let mut tries = SETUPS;
    loop {
        tries -= 1;
        match once(&spec, &executable, start, on_line).await {
            // What was to be covered may have vanished in between (a socket of some other program).
            Err(Failure::Setup(_)) if tries > 0 => {}
            Err(Failure::Setup(error) | Failure::Start(error)) => return Err(error),
            Ok(finished) => return Ok(finished),
        }
    }
}

/// Why a command was not started.
enum Failure {
    /// Trying again may help: bubblewrap did not set up the sandbox.
    Setup(StartError),
    Start(StartError),
}

impl From<StartError> for Failure {
    fn from(error: StartError) -> Self {
        Self::Start(error)
    }
}

async fn once(
    spec: &CommandSpec,
    executable: &Path,
    start: Instant,
    on_line: &mut dyn FnMut(&str),
) -> Result<Finished, Failure> {
    let request = launch::request(spec, executable)?;
    let (mut job, output) = Job::start(executable, &request)?;
    let mut follow = Follow {
        capture: Capture::new(&spec.output),
        lines: Lines::new(Instant::now()),
        started: false,
        ending: Ending::No,
        report: Report::default(),
    };
    let last = follow.until_end(&mut job, &output, &request, spec, on_line).await?;
    let rescued = job.finish();
    drain(&output, &mut follow.capture, &mut follow.lines, &mut |line| {
        if follow.started {
            on_line(line);
        }
    });
    if follow.started {
        follow.lines.finish(on_line);
    }
    let output = follow.capture.finish();
    let (end, left_behind, survivors) = match last {
        Some(Message::Ended { exit, left_behind, survivors }) => (end_of(exit), left_behind, survivors),
        Some(Message::Failed(message)) => return Err(StartError { message }.into()),
        // The command, or someone else, killed what held it inside the sandbox; all of it is gone.
        Some(Message::Vanished(_)) if follow.started => (End::Signalled(9), 0, 0),
        None if follow.started => return Err(without_supervisor(&rescued).into()),
        Some(Message::Vanished(exit)) => {
            let message = format!(
                "the sandbox ({}) could not be set up, {}: {}. hint: `iudex doctor` tells what works here",
                spec.confinement.backend.word(),
                words(exit),
                output.text().trim()
            );
            return Err(Failure::Setup(StartError { message }));
        }
        Some(Message::Started | Message::Guarded(_)) | None => {
            let message = format!(
                "{} did not act as the supervisor of the command: {}",
                executable.display(),
                output.text().trim()
            );
            return Err(StartError { message }.into());
        }
    };
    // After a time-out everything was killed, and nothing of it was left behind.
    let (end, left_behind) = if follow.ending == Ending::No { (end, left_behind) } else { (End::TimedOut, 0) };
    let Report { restored, lost, notes } = follow.report;
    if let Some(first) = lost.first() {
        let message = format!(
            "{} protected files were changed during the command, by it or by somebody else, and could not be put back \
             ({}). hint: look at them before anything else; {}",
            lost.len(),
            first.display(),
            notes.join("; ")
        );
        return Err(StartError { message }.into());
    }
    Ok(Finished { end, duration: start.elapsed(), output, left_behind, survivors, restored, notes })
}

/// The supervisor did not say how the command ended.
fn without_supervisor(rescued: &Rescued) -> StartError {
    let Rescued { killed, survivors, report } = rescued;
    let mut parts = vec![
        "the supervisor of the command was killed, by the command or by somebody else".to_owned(),
        format!("iudex ended {killed} processes that it left"),
    ];
    if *survivors > 0 {
        parts.push(format!("{survivors} could not be ended"));
    }
    for (paths, what) in [(&report.restored, "put back"), (&report.lost, "changed and not put back")] {
        if !paths.is_empty() {
            let paths: Vec<String> = paths.iter().map(|path| path.display().to_string()).collect();
            parts.push(format!("{what}: {}", paths.join(", ")));
        }
    }
    parts.extend(report.notes.iter().cloned());
    StartError { message: parts.join("; ") }
}

/// Why this can be no argument of bash; that is the fault of the script and not of the machine.
fn not_a_script(script: &str) -> Option<String> {
    if script.len() >= LONGEST {
        let length = script.len();
        return Some(format!(
            "iudex: a command of {length} bytes is too long for bash -c (at most {}): put it into a file\n",
            LONGEST - 1
        ));
    }
    script.contains('\0').then(|| "iudex: a command cannot contain a zero byte\n".to_owned())
}

fn refused(reason: &str, output: &OutputSpec, start: Instant) -> Finished {
    let mut capture = Capture::new(output);
    capture.push(reason.as_bytes());
    Finished {
        end: End::Exited(126),
        duration: start.elapsed(),
        output: capture.finish(),
        left_behind: 0,
        survivors: 0,
        restored: Vec::new(),
        notes: Vec::new(),
    }
}

fn end_of(exit: Exit) -> End {
    match exit {
        Exit::Code(code) => End::Exited(code),
        Exit::Signal(signal) => End::Signalled(signal),
    }
}

fn words(exit: Exit) -> String {
    match exit {
        Exit::Code(code) => format!("exit status {code}"),
        Exit::Signal(signal) => format!("signal {signal}"),
    }
}

/// What is known of a command while it runs.
struct Follow {
    capture: Capture,
    lines: Lines,
    started: bool,
    ending: Ending,
    report: Report,
}

/// How far a command that ran into its time limit is on its way to the end.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ending {
    No,
    Interrupted,
    Killed,
}

impl Follow {
    /// Reads until the supervisor says how it ended, or says nothing more.
    async fn until_end(
        &mut self,
        job: &mut Job,
        output: &pipe::Receiver,
        request: &Request,
        spec: &CommandSpec,
        on_line: &mut dyn FnMut(&str),
    ) -> Result<Option<Message>, StartError> {
        let failed = |error: io::Error| StartError { message: format!("cannot speak to the supervisor: {error}") };
        let bytes = frame(request).map_err(failed)?;
        // The time for setting a sandbox up is the machine's and not the command's.
        let mut deadline = TokioInstant::now() + START;
        let Some(control) = &mut job.control else { return Ok(None) };
        // One that cannot act as a supervisor closes the socket: its end is noticed below.
        let _ = timeout(ANSWER, control.write_all(&bytes)).await;
        let mut buffer = vec![0; BUFFER];
        let mut received = Vec::new();
        let mut open = true;
        loop {
            tokio::select! {
                biased;
                () = sleep_until(deadline) => {
                    match self.ending {
                        Ending::No => {}
                        Ending::Interrupted => {
                            self.ending = Ending::Killed;
                            deadline = TokioInstant::now() + KILL;
                            let _ = control.shutdown().await;
                            continue;
                        }
                        Ending::Killed => return Ok(None),
                    }
                    if !self.started {
                        let message = format!("the command was not started within {} seconds", START.as_secs());
                        return Err(StartError { message });
                    }
                    // Many programs say where they were when they are interrupted, and put their things in order.
                    self.ending = Ending::Interrupted;
                    deadline = TokioInstant::now() + GRACE;
                    let bytes = frame(&(&request.word, Order::Interrupt)).map_err(failed)?;
                    let _ = timeout(ANSWER, control.write_all(&bytes)).await;
                }
                read = control.read_buf(&mut received) => {
                    if !matches!(read, Ok(1..)) {
                        return Ok(None);
                    }
                    while let Some(message) = take_message(&mut received, &request.word).map_err(failed)? {
                        match message {
                            Message::Started if self.started => {}
                            Message::Started => {
                                self.started = true;
                                let now = TokioInstant::now();
                                let ages = now + Duration::from_hours(24 * 365);
                                deadline = now.checked_add(spec.time_limit).unwrap_or(ages);
                            }
                            Message::Guarded(report) => self.report = report,
                            last => return Ok(Some(last)),
                        }
                    }
                }
                readable = output.readable(), if open => {
                    match readable.and_then(|()| output.try_read(&mut buffer)) {
                        Ok(0) => open = false,
                        Ok(length) => self.take(&buffer[..length], on_line),
                        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                        Err(_) => open = false,
                    }
                }
                () = sleep(lines::INTERVAL), if self.lines.is_waiting() => self.lines.tick(Instant::now(), on_line),
            }
        }
    }

    fn take(&mut self, bytes: &[u8], on_line: &mut dyn FnMut(&str)) {
        self.capture.push(bytes);
        self.lines.push(bytes, Instant::now(), on_line);
    }
}

/// Takes what the pipe still holds. Nobody is alive to write more, so this ends; if someone is after all (a process
/// that could not be killed), it ends too.
fn drain(output: &pipe::Receiver, capture: &mut Capture, lines: &mut Lines, on_line: &mut dyn FnMut(&str)) {
    let mut buffer = vec![0; BUFFER];
    let mut left = 4 * PIPE;
    while left > 0 {
        // Not `try_read`: it trusts what it knew of the pipe the last time that it waited.
        match rustix::io::read(output, &mut buffer[..]) {
            Ok(length @ 1..) => {
                capture.push(&buffer[..length]);
                lines.push(&buffer[..length], Instant::now(), on_line);
                left = left.saturating_sub(length);
            }
            Err(rustix::io::Errno::INTR) => {}
            Ok(0) | Err(_) => return,
        }
    }
}

/// A running supervisor. Dropping it ends the command and waits until it is gone.
struct Job {
    child: Child,
    control: Option<UnixStream>,
    adopter: Adopter,
    /// In case that the supervisor is killed, and its own guard with it.
    guard: Option<Guard>,
}

/// What iudex did in place of a killed supervisor.
#[derive(Default)]
struct Rescued {
    killed: u32,
    survivors: u32,
    report: Report,
}

impl Job {
    fn start(executable: &Path, request: &Request) -> Result<(Self, pipe::Receiver), StartError> {
        let failed = |error: io::Error| StartError {
            message: format!("cannot start the supervisor {}: {error}", executable.display()),
        };
        let (ours, theirs) = StdUnixStream::pair().map_err(failed)?;
        ours.set_nonblocking(true).map_err(failed)?;
        let control = UnixStream::from_std(ours).map_err(failed)?;
        let (reader, writer) = io::pipe().map_err(failed)?;
        #[cfg(target_os = "linux")]
        let _ = rustix::pipe::fcntl_setpipe_size(&reader, PIPE);
        let output = pipe::Receiver::from_owned_fd(OwnedFd::from(reader)).map_err(failed)?;
        let errors = writer.try_clone().map_err(failed)?;
        let guard = Some(Guard::without_objects(&request.guarded, &request.displaced));
        let mut command = Command::new(executable);
        command
            // Not found by those who kill iudex by its name: it has work to do then.
            .arg0("supervisor")
            .arg(ARGUMENT)
            .env_clear()
            .current_dir("/")
            .stdin(OwnedFd::from(theirs))
            .stdout(writer)
            .stderr(errors);
        let (child, adopter) = Adopter::start(&mut command).map_err(failed)?;
        // It holds the other ends, which shall close with the supervisor.
        drop(command);
        Ok((Self { child, control: Some(control), adopter, guard }, output))
    }

    /// Waits for the supervisor, which is about to end; kills it when it does not.
    fn finish(&mut self) -> Rescued {
        self.control = None;
        let did_its_work = self.wait();
        let Some(guard) = self.guard.take() else { return Rescued::default() };
        if did_its_work {
            guard.disarm();
            return Rescued::default();
        }
        let (killed, survivors) = self.adopter.end_orphans(PATIENCE);
        Rescued { killed, survivors, report: guard.restore() }
    }

    /// Whether the supervisor ended by itself.
    fn wait(&mut self) -> bool {
        let start = Instant::now();
        let mut pause = Duration::from_micros(100);
        loop {
            match self.child.try_wait() {
                Ok(None) if start.elapsed() < KILL => std::thread::sleep(pause),
                Ok(Some(status)) => return status.code().is_some(),
                Ok(None) | Err(_) => break,
            }
            pause = (pause * 2).min(Duration::from_millis(5));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
        false
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.finish();
    }
}
