//! What iudex does when a supervisor is killed: what it owned comes to iudex, which ends it.
//!
//! Never: a signal to a process that iudex started for itself.

use std::collections::BTreeSet;
use std::io;
use std::process::{Child, Command};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, WaitOptions};

use super::descendants::{Process, descendants_of, own, own_session};

/// The supervisors that were started and not waited for.
static LIVING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

fn living() -> MutexGuard<'static, BTreeSet<i32>> {
    LIVING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// As long as one is there, orphans of killed supervisors come to this process.
#[derive(Debug)]
pub(crate) struct Adopter(i32);

impl Adopter {
    /// Starts a supervisor.
    pub(crate) fn start(command: &mut Command) -> io::Result<(Child, Self)> {
        // Held while it starts: none is taken for an orphan before it is known.
        let mut living = living();
        adopt(true);
        let child = command.spawn();
        if child.is_err() && living.is_empty() {
            adopt(false);
        }
        let child = child?;
        let pid = i32::try_from(child.id()).map_err(io::Error::other)?;
        living.insert(pid);
        Ok((child, Self(pid)))
    }

    /// Ends what a killed supervisor left; it was waited for. Returns how many were killed and how many are still alive.
    pub(crate) fn end_orphans(&self, patience: Duration) -> (u32, u32) {
        let mut living = living();
        living.remove(&self.0);
        let Some(session) = own_session() else { return (0, 0) };
        let start = Instant::now();
        let mut killed = BTreeSet::new();
        let mut empty_looks = 0;
        loop {
            // Every supervisor has a session of its own, and so has what it started; nobody gets into the one of iudex.
            let is_orphan = |process: &&Process| {
                process.parent == own()
                    && process.session != session
                    && !living.contains(&process.pid.as_raw_nonzero().get())
            };
            let children = descendants_of(&[own()]);
            let orphans: Vec<&Process> = children.iter().filter(is_orphan).collect();
            let numbers: Vec<i32> = orphans.iter().map(|process| process.pid.as_raw_nonzero().get()).collect();
            let below = descendants_of(&numbers);
            for process in orphans.iter().copied().chain(&below) {
                process.kill();
                killed.insert(process.pid.as_raw_nonzero().get());
            }
            for number in &numbers {
                let _ = rustix::process::waitpid(Pid::from_raw(*number), WaitOptions::NOHANG);
            }
            // One look may miss a child whose parent ended during it.
            empty_looks = if orphans.is_empty() { empty_looks + 1 } else { 0 };
            let count = |length: usize| u32::try_from(length).unwrap_or(u32::MAX);
            if empty_looks == 2 {
                return (count(killed.len()), 0);
            }
            if start.elapsed() > patience {
                return (count(killed.len()), count(numbers.len() + below.len()));
            }
            std::thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Adopter {
    fn drop(&mut self) {
        let mut living = living();
        living.remove(&self.0);
        if living.is_empty() {
            adopt(false);
        }
    }
}

fn adopt(adopts: bool) {
    let own = adopts.then(rustix::process::getpid);
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(own);
    #[cfg(not(target_os = "linux"))]
    let _ = own;
}
