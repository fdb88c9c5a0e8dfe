//! Measures snapshots: `cargo run -p iudex-repo --example measure --release`. Prints the best and the
//! median of twenty for each kind of directory. For people; nothing depends on it.
#![allow(clippy::unwrap_used, reason = "a tool for people, not part of the product")]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use iudex_repo::{SizeLimits, Snapshots};

fn main() {
    let temporary = std::env::temp_dir().join(format!("iudex-measure-{}", std::process::id()));
    for (name, files, repository) in
        [("plain-10", 10, false), ("repo-10", 10, true), ("plain-5000", 5_000, false), ("repo-5000", 5_000, true)]
    {
        measure(&temporary, name, files, repository);
    }
    std::fs::remove_dir_all(&temporary).unwrap();
}

fn measure(temporary: &Path, name: &str, files: usize, repository: bool) {
    let root = temporary.join(name);
    for number in 0..files {
        let directory = root.join(format!("d{}", number / 100));
        std::fs::create_dir_all(&directory).unwrap();
        std::fs::write(directory.join(format!("f{number}.txt")), format!("file {number}\n").repeat(20)).unwrap();
    }
    if repository {
        for arguments in
            [&["init", "-q"][..], &["add", "-A"], &["-c", "user.name=x", "-c", "user.email=x@y", "commit", "-qm", "x"]]
        {
            assert!(Command::new("git").arg("-C").arg(&root).args(arguments).status().unwrap().success());
        }
    }
    let (mut first, mut again, mut pass) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..20 {
        let state = temporary.join(format!("state-{name}-{round}"));
        let started = Instant::now();
        let snapshots = Snapshots::open(&state, &root, SizeLimits::default()).unwrap();
        let base = snapshots.take_base("run-1").unwrap();
        first.push(started.elapsed().as_secs_f64() * 1e3);
        let started = Instant::now();
        let snapshots = Snapshots::open(&state, &root, SizeLimits::default()).unwrap();
        snapshots.take_base("run-2").unwrap();
        again.push(started.elapsed().as_secs_f64() * 1e3);
        std::fs::write(root.join("d0/f0.txt"), format!("changed {round}\n")).unwrap();
        let started = Instant::now();
        let taken = snapshots.take("run-2", "pass-1").unwrap();
        pass.push(started.elapsed().as_secs_f64() * 1e3);
        assert_ne!(taken.raw, base.raw);
        std::fs::remove_dir_all(&state).unwrap();
        if files > 1_000 && round == 6 {
            break;
        }
    }
    let show = |times: &mut Vec<f64>| {
        times.sort_by(f64::total_cmp);
        format!("{:7.1} {:7.1}", times[0], times[times.len() / 2])
    };
    println!("{name:11} first base {}   base {}   pass {}   (ms)", show(&mut first), show(&mut again), show(&mut pass));
}
