//! The check gate: commands that must pass, run one after the other where the agent works.
//!
//! Never: an acceptance that the exit statuses do not carry, and void for anything that the work itself has caused.

use std::ffi::OsString;
use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use async_trait::async_trait;
use iudex_core::{
    Accepted, Baseline, CheckEvidence, CommandEnd, CommandEvidence, Finding, Fingerprint, Gate, GateBrief, GateContext,
    GateKind, NotStarted, Place, Progress, Proposal, Rework, Ruling, Snapshot, TestCounts, TreeId, Void, most_tokens,
};
use iudex_exec::{Backend, CommandSpec, Confinement, End, OutputSpec};

use crate::excerpt::{clip, failing_part};
use crate::scan::Scan;
use crate::{fingerprint, missing, scan, words};

/// Bytes of an output that are kept in memory; the rest is read from the kept file.
const HEAD_IN_MEMORY: usize = 64 * 1024;
const TAIL_IN_MEMORY: usize = 256 * 1024;

/// Bytes of one token, generously: the room that is tried first.
const MOST_BYTES_OF_A_TOKEN: usize = 5;

/// What a green baseline means.
const ONLY_GUARDS: &str = "the check passed before any work, so it can only guard";

/// What the check runs and within which bounds.
#[derive(Debug, Clone)]
pub struct CheckSettings {
    /// The commands; all run, even after a red one, and all must pass.
    pub commands: Vec<String>,
    /// Where they run.
    pub work_dir: PathBuf,
    /// The time limit of each command.
    pub time_limit: Duration,
    /// The environment.
    pub env: Vec<(OsString, OsString)>,
    /// What holds them.
    pub confinement: Confinement,
    /// Where whole outputs are kept.
    pub output_dir: PathBuf,
}

/// The check.
#[derive(Debug)]
pub struct CheckGate {
    settings: CheckSettings,
    /// What the base said; `None` until the baseline was taken.
    baseline: Option<Before>,
}

/// What the commands did before any work.
#[derive(Debug)]
struct Before {
    green: bool,
    /// Tests of each command, where its output had a summary.
    tests: Vec<Option<TestCounts>>,
}

/// Everything that one asking of the check has found.
struct Asked {
    evidence: CheckEvidence,
    /// What each command printed, in the same order.
    scans: Vec<Scan>,
    /// The time limit that each command had.
    limits: Vec<Duration>,
    /// Why the machine, and not the work, is the cause.
    machine: Option<String>,
}

impl CheckGate {
    /// A check with these settings.
    pub fn new(settings: CheckSettings) -> Self {
        Self { settings, baseline: None }
    }

    /// Runs all commands, one after the other; only a failure of the machine ends it early.
    async fn ask(&self, tree: &TreeId, label: &str, context: &GateContext<'_>) -> Asked {
        let mut asked = Asked {
            evidence: self.evidence(tree),
            scans: Vec::new(),
            limits: Vec::new(),
            machine: self.make_output_dir().err(),
        };
        let mut left = self.time_for_all(context);
        for (index, command) in self.settings.commands.iter().enumerate() {
            if asked.machine.is_some() {
                break;
            }
            let limit = left.map_or(self.settings.time_limit, |left| left.min(self.settings.time_limit));
            if limit.is_zero() {
                asked.add(not_run(command), scan::Scanner::new().finish(scan::Kept::Whole), limit);
                continue;
            }
            let file = self.settings.output_dir.join(format!("{label}-{}.log", index + 1));
            match self.run(command, limit, &file, context).await {
                Ok(finished) => {
                    left = left.map(|left| left.saturating_sub(finished.duration));
                    asked.take(command, &finished, limit).await;
                }
                Err(reason) => asked.machine = Some(reason),
            }
        }
        asked
    }

    /// The time for all commands together; `None` without a bound. The last call has one time limit in all, and so has a
    /// run whose time ends while the check runs.
    fn time_for_all(&self, context: &GateContext<'_>) -> Option<Duration> {
        if context.last_call {
            return Some(self.settings.time_limit);
        }
        context.time_left.map(|left| left.max(self.settings.time_limit))
    }

    async fn run(
        &self,
        command: &str,
        limit: Duration,
        file: &Path,
        context: &GateContext<'_>,
    ) -> Result<iudex_exec::Finished, String> {
        let spec = CommandSpec {
            script: command.to_owned(),
            cwd: self.settings.work_dir.clone(),
            env: self.settings.env.clone(),
            time_limit: limit,
            output: OutputSpec { head: HEAD_IN_MEMORY, tail: TAIL_IN_MEMORY, file: Some(file.to_owned()) },
            confinement: self.settings.confinement.clone(),
        };
        let mut show = |line: &str| context.events.progress(Progress::CommandLine(line));
        let finished = iudex_exec::run(spec, &mut show).await;
        finished.map_err(|error| format!("the check {} could not be started: {error}", words::quoted(command)))
    }

    fn evidence(&self, tree: &TreeId) -> CheckEvidence {
        let confinement = &self.settings.confinement;
        let (sandbox, notes) = match confinement.backend {
            Backend::None => ("none".to_owned(), vec!["no sandbox held the check".to_owned()]),
            _ => (iudex_exec::evidence(confinement), Vec::new()),
        };
        CheckEvidence {
            tree: tree.clone(),
            place: Place::InPlace,
            commands: Vec::new(),
            baseline_green: self.baseline.as_ref().map(|before| before.green),
            sandbox,
            network: confinement.network || confinement.backend == Backend::None,
            notes,
        }
    }

    /// Only a full disk is a reason not to check; anything else shows as an output that could not be kept.
    fn make_output_dir(&self) -> Result<(), String> {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(&self.settings.output_dir);
        match made.map_err(|error| error.to_string()) {
            Err(error) if is_full(&error) => {
                Err(format!("iudex cannot write into {}: {error}", self.settings.output_dir.display()))
            }
            _ => Ok(()),
        }
    }

    /// Rules about what was found.
    fn rule(&self, asked: Asked, context: &GateContext<'_>) -> Ruling {
        if self.settings.commands.is_empty() {
            return void("the check has no command", false, None);
        }
        if let Some(reason) = asked.machine {
            return void(reason, true, Some(asked.evidence));
        }
        let mut failures = Vec::new();
        for index in 0..asked.evidence.commands.len() {
            match self.judge(index, &asked) {
                Ok(None) => {}
                Ok(Some(failure)) => failures.push(failure),
                Err(reason) => return void(reason, true, Some(asked.evidence)),
            }
        }
        if failures.is_empty() {
            return match Accepted::from_check(asked.evidence.clone()) {
                Ok(accepted) => Ruling::Accepted(accepted),
                Err(error) => void(error.to_string(), false, Some(asked.evidence)),
            };
        }
        let fingerprint = fingerprint::digest(failures.iter().map(|failure| failure.fingerprint.as_str()));
        Ruling::Rework(Rework {
            findings: findings(&failures, context.finding_tokens, &self.settings.work_dir),
            fingerprint: Fingerprint(fingerprint),
            evidence: Some(asked.evidence),
        })
    }

    /// What is wrong with one command, if anything; `Err` when that cannot be told.
    fn judge<'a>(&self, index: usize, asked: &'a Asked) -> Result<Option<Failure<'a>>, String> {
        let command = &asked.evidence.commands[index];
        let scan = &asked.scans[index];
        if command.end != CommandEnd::Exited(0) {
            let end = match (command.end, command.duration.is_zero()) {
                (CommandEnd::TimedOut, true) => "did not run".to_owned(),
                (end, _) => end.to_string(),
            };
            // Where it was when it was interrupted is chance.
            let fingerprint = if command.end == CommandEnd::TimedOut {
                fingerprint::digest([command.command.as_str(), &end].into_iter())
            } else {
                fingerprint::of_failure(&command.command, &end, scan)
            };
            return Ok(Some(Failure { heading: words::of_red(command, asked.limits[index], scan), fingerprint, scan }));
        }
        let Some(before) = self.tests_before(index) else { return Ok(None) };
        let word = match command.tests {
            Some(now) if now.ran() > 0 || before.ran() == 0 => return Ok(None),
            Some(_) => "zero tests",
            None if scan.kept == scan::Kept::Lost => {
                return Err(format!(
                    "the output of {} could not be read to its end, so nothing shows that tests ran",
                    words::quoted(&command.command)
                ));
            }
            None => "no summary",
        };
        Ok(Some(Failure {
            heading: words::of_no_tests(&command.command, command.tests, before, scan.kept),
            fingerprint: fingerprint::digest([command.command.as_str(), word].into_iter()),
            scan,
        }))
    }

    fn tests_before(&self, index: usize) -> Option<TestCounts> {
        self.baseline.as_ref()?.tests.get(index).copied()?
    }

    /// Notes that a reader needs to weigh the evidence against the baseline.
    fn compare(&self, evidence: &mut CheckEvidence) {
        let Some(before) = &self.baseline else { return };
        if before.green {
            evidence.notes.push(ONLY_GUARDS.to_owned());
        }
        for (command, before) in evidence.commands.iter().zip(&before.tests) {
            if let (Some(now), Some(before)) = (command.tests, before)
                && now.ran() < before.ran()
            {
                evidence.notes.push(format!(
                    "{} ran {} tests, fewer than the {} before the work",
                    words::quoted(&command.command),
                    now.ran(),
                    before.ran()
                ));
            }
        }
    }
}

#[async_trait(?Send)]
impl Gate for CheckGate {
    fn brief(&self) -> GateBrief {
        GateBrief { kind: GateKind::Check, name: "check".to_owned(), requirements: self.settings.commands.clone() }
    }

    async fn baseline(&mut self, base: &Snapshot, context: &GateContext<'_>) -> Result<Baseline, NotStarted> {
        self.baseline = None;
        let mut asked = self.ask(&base.raw, "baseline", context).await;
        for (command, scan) in asked.evidence.commands.iter().zip(&asked.scans) {
            if command.end != CommandEnd::Exited(127) {
                continue;
            }
            let settings = &self.settings;
            let missing = missing::program(&command.command, &scan.shell_errors, &settings.env, &settings.work_dir);
            if let Some(program) = missing {
                return Err(not_installed(&program, &command.command));
            }
        }
        let tests = asked.evidence.commands.iter().map(|command| command.tests).collect();
        let green = asked.evidence.commands.iter().all(|command| command.end == CommandEnd::Exited(0));
        if green && asked.machine.is_none() {
            asked.evidence.notes.push(ONLY_GUARDS.to_owned());
        }
        let ruling = self.rule(asked, context);
        if !matches!(ruling, Ruling::Void(_)) {
            self.baseline = Some(Before { green, tests });
        }
        Ok(Baseline::Ruled(ruling))
    }

    async fn examine(&mut self, proposal: &Proposal, context: &GateContext<'_>) -> Ruling {
        let mut asked = self.ask(&proposal.snapshot.raw, &proposal.pass.to_string(), context).await;
        self.compare(&mut asked.evidence);
        self.rule(asked, context)
    }
}

impl Asked {
    fn add(&mut self, command: CommandEvidence, scan: Scan, limit: Duration) {
        self.evidence.commands.push(command);
        self.scans.push(scan);
        self.limits.push(limit);
    }

    /// Takes a command that has ended into the evidence.
    async fn take(&mut self, command: &str, finished: &iudex_exec::Finished, limit: Duration) {
        let output = &finished.output;
        let scan = scan::scan(output).await;
        if let Some(error) = &output.file_error {
            if is_full(error) {
                self.machine = Some(format!("the output of {} could not be kept: {error}", words::quoted(command)));
            } else {
                let note = format!("the whole output of {} was not kept: {error}", words::quoted(command));
                self.evidence.notes.push(note);
            }
        }
        for path in &finished.restored {
            let note = format!("{} changed {}, put back by iudex", words::quoted(command), path.display());
            self.evidence.notes.push(note);
        }
        self.evidence.notes.extend(finished.notes.iter().map(|note| format!("{}: {note}", words::quoted(command))));
        if finished.survivors > 0 {
            self.machine = Some(format!(
                "{} left {} that could not be ended and may still change files",
                words::quoted(command),
                processes(finished.survivors)
            ));
        }
        if finished.left_behind > 0 {
            self.evidence.notes.push(format!(
                "{} left {} behind, ended by iudex",
                words::quoted(command),
                processes(finished.left_behind)
            ));
        }
        let evidence = CommandEvidence {
            command: command.to_owned(),
            end: match finished.end {
                End::Exited(status) => CommandEnd::Exited(status),
                End::Signalled(signal) => CommandEnd::Signalled(signal),
                End::TimedOut => CommandEnd::TimedOut,
            },
            duration: finished.duration,
            tests: scan.counts,
            last_line: scan.last_line.clone(),
            output_bytes: output.total,
            output_sha256: output.sha256.clone(),
            output_file: output.file.clone(),
        };
        self.add(evidence, scan, limit);
    }
}

/// `1 process`, `3 processes`.
fn processes(count: u32) -> String {
    if count == 1 { "1 process".to_owned() } else { format!("{count} processes") }
}

/// One red command.
struct Failure<'a> {
    heading: String,
    fingerprint: String,
    scan: &'a Scan,
}

/// Writes the findings of all red commands into the room that they share, without frames of foreign code.
fn findings(failures: &[Failure<'_>], tokens: u64, work_dir: &Path) -> Vec<Finding> {
    let texts = fitting(failures, tokens).into_iter();
    texts.map(|text| Finding::new(iudex_exec::without_foreign_frames(&text, work_dir))).collect()
}

/// The texts of all red commands in at most so many tokens.
fn fitting(failures: &[Failure<'_>], tokens: u64) -> Vec<String> {
    let most = usize::try_from(tokens).unwrap_or(usize::MAX);
    let mut room = most.saturating_mul(MOST_BYTES_OF_A_TOKEN);
    for _ in 0..8 {
        let texts = share(failures, room);
        let used = texts.iter().map(|text| most_tokens(text)).sum::<u64>();
        if used <= tokens {
            return texts;
        }
        let length: usize = texts.iter().map(String::len).sum();
        room = length * most / usize::try_from(used).unwrap_or(usize::MAX) * 19 / 20;
    }
    // No byte is counted as more than two tokens.
    share(failures, room.min(most / 2))
}

/// Equal shares; what one failure does not need goes to those after it.
fn share(failures: &[Failure<'_>], bytes: usize) -> Vec<String> {
    let mut order: Vec<(usize, String)> =
        failures.iter().map(|failure| write_failure(failure, usize::MAX)).enumerate().collect();
    order.sort_by_key(|(_, text)| text.len());
    let mut left = bytes;
    let count = order.len();
    for (done, (index, text)) in order.iter_mut().enumerate() {
        let room = left / (count - done);
        if text.len() > room {
            *text = write_failure(&failures[*index], room);
        }
        left = left.saturating_sub(text.len());
    }
    order.sort_by_key(|(index, _)| *index);
    order.into_iter().map(|(_, text)| text).collect()
}

fn write_failure(failure: &Failure<'_>, room: usize) -> String {
    let label = if failure.scan.cases.list.is_empty() { "Its output:" } else { "The failing part of its output:" };
    let body = failing_part(failure.scan, room.saturating_sub(failure.heading.len() + label.len() + 2));
    let text = if failure.scan.edges.is_blank() {
        format!("{}\nIt printed nothing.", failure.heading)
    } else if body.is_empty() {
        failure.heading.clone()
    } else {
        format!("{}\n{label}\n{body}", failure.heading)
    };
    clip(&text, room)
}

/// A command for which no time was left.
fn not_run(command: &str) -> CommandEvidence {
    CommandEvidence {
        command: command.to_owned(),
        end: CommandEnd::TimedOut,
        duration: Duration::ZERO,
        tests: None,
        last_line: String::new(),
        output_bytes: 0,
        output_sha256: SHA256_OF_NOTHING.to_owned(),
        output_file: None,
    }
}

/// FIPS 180-4, of the empty message.
const SHA256_OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

fn void(reason: impl Into<String>, may_change: bool, evidence: Option<CheckEvidence>) -> Ruling {
    Ruling::Void(Void { reason: reason.into(), may_change, evidence })
}

/// True for the system's words about a full disk or quota.
fn is_full(error: &str) -> bool {
    let error = error.to_lowercase();
    ["no space left", "os error 28)", "quota exceeded", "os error 122)"].iter().any(|words| error.contains(words))
}

fn not_installed(program: &str, command: &str) -> NotStarted {
    NotStarted {
        message: format!("the check {} needs `{program}`, which is not on the PATH", words::quoted(command)),
        hint: Some(format!("install `{program}`, add its directory to PATH, or give the check its path")),
    }
}

#[cfg(test)]
mod tests;
