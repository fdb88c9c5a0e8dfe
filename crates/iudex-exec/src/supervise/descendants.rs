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

/// What was there after the program itself had ended.
pub(super) struct Rest {
    /// The status of the program, when it was taken here.
    pub(super) status: Option<WaitStatus>,
    /// How many descendants were alive at first.
    pub(super) left_behind: u32,
    /// How many could not be killed in time.
    pub(super) survivors: u32,
}

/// Kills until no descendant is left or `patience` is over.
pub(super) fn end_all(main: Pid, patience: Duration) -> Rest {
    let start = Instant::now();
    let mut status = None;
    let mut left_behind = None;
    let mut pause = Duration::from_micros(200);
    loop {
        let children_left = loop {
            match rustix::process::wait(WaitOptions::NOHANG) {
                Ok(Some((pid, its))) if pid == main => status = Some(its),
                Ok(Some(_)) | Err(Errno::INTR) => {}
                Ok(None) => break true,
                Err(_) => break false,
            }
        };
        // A descendant is a child, or it descends from one: no child means that none is left.
        if !children_left {
            return Rest { status, left_behind: left_behind.unwrap_or(0), survivors: 0 };
        }
        let found = descendants_of(&[own()]);
        // A dead leader may have living threads: it is killed with the others, and not counted.
        let alive = found.iter().filter(|process| process.started != DEAD).count();
        let alive = u32::try_from(alive).unwrap_or(u32::MAX);
        let left_behind = *left_behind.get_or_insert(alive);
        for process in &found {
            process.kill();
        }
        // Without /proc the group is all that can be reached.
        #[cfg(not(target_os = "linux"))]
        let _ = rustix::process::kill_process_group(main, Signal::KILL);
        if start.elapsed() > patience {
            // Some child is left, whatever could be read about it.
            return Rest { status, left_behind, survivors: alive.max(1) };
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(5));
    }
}

pub(super) struct Process {
    pub(super) pid: Pid,
    pub(super) parent: i32,
    pub(super) session: i32,
    started: u64,
}

impl Process {
    /// Kills this very process: its number may have been given to another one in the meantime.
    pub(super) fn kill(&self) {
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

/// The number of this process.
pub(super) fn own() -> i32 {
    rustix::process::getpid().as_raw_nonzero().get()
}

/// The session of this process, as `/proc` tells it: 0 when its leader is outside the process namespace, as in a
/// container that was started without `setsid` (there `getsid(2)` gives 0 too, which is no valid number).
pub(super) fn own_session() -> Option<i32> {
    read(rustix::process::getpid()).map(|process| process.session)
}

/// All descendants of these, zombies included.
pub(super) fn descendants_of(parents: &[i32]) -> Vec<Process> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return Vec::new() };
    let mut children: HashMap<i32, Vec<Process>> = HashMap::new();
    for entry in entries.flatten() {
        let pid = entry.file_name().to_str().and_then(|name| name.parse().ok()).and_then(Pid::from_raw);
        if let Some(process) = pid.and_then(read) {
            children.entry(process.parent).or_default().push(process);
        }
    }
    let mut found = Vec::new();
    let mut parents = parents.to_vec();
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
    let session = fields.nth(1)?.parse().ok()?;
    let started = fields.nth(15)?.parse().ok()?;
    Some(Process { pid, parent, session, started: if matches!(state, "Z" | "X") { DEAD } else { started } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_alive_when_the_patience_is_over_is_told() {
        let mut sleep = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let main = Pid::from_raw(i32::try_from(sleep.id()).unwrap()).unwrap();
        let hasty = end_all(main, Duration::ZERO);
        assert_eq!((hasty.left_behind, hasty.survivors), (1, 1));
        let patient = end_all(main, Duration::from_secs(30));
        assert_eq!(patient.survivors, 0);
        // It was waited for already.
        let _ = sleep.wait();
        assert_eq!(patient.status.or(hasty.status).unwrap().terminating_signal(), Some(9));
    }
}
