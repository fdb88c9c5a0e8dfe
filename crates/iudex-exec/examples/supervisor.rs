//! The smallest program that can be its own supervisor; the tests of the workspace use it. It also runs a command by
//! itself, for tests that need another user or a process to kill:
//! `supervisor BACKEND WORK PRIVATE SECONDS SCRIPT [net]`, with `WORK/.git` read-only and `PRIVATE` hidden.

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use iudex_exec::{Backend, CommandSpec, Confinement, OutputSpec};

fn main() -> ExitCode {
    if let Some(code) = iudex_exec::supervise_main(std::env::args_os()) {
        return code;
    }
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [backend, work, private, seconds, script, rest @ ..] = arguments.as_slice() else {
        eprintln!("usage: supervisor BACKEND WORK PRIVATE SECONDS SCRIPT [net]");
        return ExitCode::from(2);
    };
    let backend = match backend.as_str() {
        "none" => Backend::None,
        "landlock" => Backend::Landlock,
        "detect" => match iudex_exec::detect() {
            Ok(backend) => backend,
            Err(error) => {
                eprintln!("{error}");
                return ExitCode::FAILURE;
            }
        },
        program => Backend::Bubblewrap { program: PathBuf::from(program) },
    };
    let (work, private) = (PathBuf::from(work), PathBuf::from(private));
    let caches = private.join("caches");
    let confinement = Confinement {
        backend,
        read_only: vec![work.join(".git")],
        hidden: vec![private.clone()],
        private_tmp: private.join("tmp"),
        caches: caches.clone(),
        network: rest.first().is_some_and(|word| word == "net"),
        work_dir: work.clone(),
    };
    println!("backend: {}", iudex_exec::evidence(&confinement));
    let spec = CommandSpec {
        script: script.clone(),
        cwd: work,
        env: iudex_exec::child_environment(&caches),
        time_limit: Duration::from_secs(seconds.parse().unwrap_or(60)),
        output: OutputSpec { head: 65_536, tail: 65_536, file: None },
        confinement,
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let Ok(runtime) = runtime else { return ExitCode::FAILURE };
    match runtime.block_on(iudex_exec::run(spec, &mut |_| {})) {
        Ok(finished) => {
            print!("{}", finished.output.text());
            println!("end: {:?}", finished.end);
            println!("left behind: {}", finished.left_behind);
            println!("restored: {:?}", finished.restored);
            println!("bytes: {}", finished.output.total);
            let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
            println!("{}", status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default());
            println!("took: {:?}", finished.duration);
            ExitCode::SUCCESS
        }
        Err(error) => {
            println!("not started: {error}");
            ExitCode::FAILURE
        }
    }
}
