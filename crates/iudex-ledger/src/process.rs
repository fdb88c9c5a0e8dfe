//! Whether the process that began a run still lives.
//!
//! Never: a signal that does anything.

use rustix::process::{Pid, test_kill_process};

/// When a process began, in clock ticks since the machine did; `None` where the system does not tell.
///
/// A process id alone is used again by the system; with the start it is not.
pub(crate) fn started(pid: u32) -> Option<i64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The second field is the program's name in parentheses, which may hold spaces and parentheses itself.
    let after_name = &stat[stat.rfind(')')? + 1..];
    after_name.split_ascii_whitespace().nth(19)?.parse().ok()
}

/// True while the process that was `pid` when it began at `began` is alive.
pub(crate) fn is_alive(pid: i64, began: Option<i64>) -> bool {
    let Some(process) = i32::try_from(pid).ok().and_then(Pid::from_raw) else { return false };
    let exists = match test_kill_process(process) {
        Ok(()) => true,
        Err(error) => error == rustix::io::Errno::PERM,
    };
    let now = u32::try_from(pid).ok().and_then(started);
    exists && (began.is_none() || now.is_none() || began == now)
}
