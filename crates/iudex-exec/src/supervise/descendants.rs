//! Finds and ends the descendants of this process, those that left their session and their parent included.
//!
//! Never: a signal to a process that is not a descendant.

use std::collections::HashMap;
use std::io;
use std::time::{Duration, Instant};

use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitOptions, WaitStatus};

/// From now on orphaned descendants become children of this process.
pub(super) fn adopt() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    rustix::process::set_child_subreaper(Some(rustix::process::getpid()))?;
    Ok(())
}

/// Kills until no descendant is left or `patience` is over. Returns the status of `main` when it was taken here, and
/// how many descendants were alive at first.
pub(super) fn end_all(main: Pid, patience: Duration) -> (Option<WaitStatus>, u32) {
    let start = Instant::now();
    let mut of_main = None;
    let mut left_behind = None;
    let mut pause = Duration::from_micros(200);
    loop {
        let children_left = loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, status))) if pid == main => of_main = Some(status),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        // A descendant is a child, or it descends from one: no child means that none is left.
        if !children_left {
            return (of_main, left_behind.unwrap_or(0));
        }
        let found = descendants();
        // A dead leader may have living threads: it is killed with the others, and not counted.
        let alive = found.iter().filter(|process| process.started != DEAD).count();
        left_behind.get_or_insert(u32::try_from(alive).unwrap_or(u32::MAX));
        for process in &found {
            process.kill();
        }
        // Without /proc the group is all that can be reached.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(main, Signal::KILL);
        if start.elapsed() > patience {
            return (of_main, left_behind.unwrap_or(0));
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

struct Process {
    pid: Pid,
    parent: i32,
    started: u64,
}

impl Process {
    /// Kills this very process: its number may have been given to another one in the meantime.
    fn kill(&self) {
        #[cfg(target_os = "linux")]
        if let Ok(handle) = rustix::process::pidfd_open(self.pid, rustix::process::PidfdFlags::empty()) {
            if read(self.pid).is_some_and(|now| now.started == self.started) {
                let _ = rustix::process::pidfd_send_signal(&handle, Signal::KILL);
            }
            return;
        }
        let _ = rustix::process::kill_process(self.pid, Signal::KILL);
    }
}

/// All descendants, zombies included.
fn descendants() -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(process) = pid.and_then(read) {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![rustix::process::getpid().as_raw_nonzero().get()];
    while let Some(parent) = parents.pop() {
        for process in children.remove(&parent).unwrap_or_default() {
            parents.push(process.pid.as_raw_nonzero().get());
            found.push(process);
        }
    }
    found
}

/// In place of a start time: a zombie, whose children count all the same.
const DEAD: u64 = u64::MAX;

/// Reads `/proc/PID/stat` (`proc_pid_stat(5)`): state, parent and start time stand behind the name in brackets.
fn read(pid: Pid) -> Option<Process> {
    let stat = std::fs::read(format!("/proc/{}/stat", pid.as_raw_nonzero())).ok()?;
    let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
    let text = str::from_utf8(&stat[after_name..]).ok()?;
    let mut fields = text.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    let started = fields.nth(17)?.parse().ok()?;
    Some(Process { pid, parent, started: if matches!(state, "Z" | "X") { DEAD } else { started } })
}
