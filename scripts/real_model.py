#!/usr/bin/env python3
"""Runs five tasks with a real small model, raw once and with --until three times each, and prints a table.

Usage: scripts/real_model.py [--tasks a,b] [--trials N] [--no-raw] [--timeout 4m] [--try-runs N] [--keep DIR] [--binary FILE]

--try-runs N runs the sample project of ./try N times instead, with seeds 1 to N.

The model is the one that IUDEX_BASE_URL names, or the one that scripts/local-model sets up (and stops again). Times are
wall clock: nothing else should run on the machine. A raw run has no gate; its result is checked here afterwards, so
that the claim "done" can be compared with the truth.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TASKS = ROOT / "tests" / "real-model"
ORDER = ["create-file", "fix-bug", "implement-fib", "refactor", "merge-intervals"]


def build() -> Path:
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "iudex"], cwd=ROOT, check=True)
    return ROOT / "target" / "release" / "iudex"


def start_model() -> bool:
    """Starts the local model unless one was named; True when it must be stopped again."""
    if os.environ.get("IUDEX_BASE_URL"):
        return False
    url = subprocess.run([ROOT / "scripts" / "local-model", "start", "0"], check=True, stdout=subprocess.PIPE, text=True)
    os.environ["IUDEX_BASE_URL"] = url.stdout.strip()
    return True


def load(task: str) -> tuple[dict, Path]:
    """The goal and check of a task, and the folder with its project."""
    if task == "try":
        goal = "Finish count_vowels in words.py, so that the tests in test_words.py pass."
        return {"goal": goal, "check": "python3 -m unittest -q"}, ROOT / "examples" / "try"
    return json.loads((TASKS / task / "task.json").read_text()), TASKS / task / "project"


def is_right(check: str, project: Path) -> bool:
    """Runs the check in a sandbox of its own: the files that it runs are a model's."""
    sandbox = ["bwrap", "--unshare-all", "--die-with-parent", "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc"]
    sandbox += ["--tmpfs", "/tmp", "--bind", str(project), str(project), "--chdir", str(project)]
    env = {"PATH": os.environ["PATH"], "HOME": "/tmp"}
    try:
        command = [*sandbox, "bash", "-o", "pipefail", "-c", check]
        return subprocess.run(command, env=env, capture_output=True, timeout=60).returncode == 0
    except subprocess.TimeoutExpired:
        return False


def run_once(iudex: Path, task: str, gated: bool, seed: int, timeout: str, keep: Path | None) -> dict:
    spec, files = load(task)
    project = Path(tempfile.mkdtemp(prefix=f"iudex-{task}-"))
    for file in files.iterdir():
        if file.is_file() and file.name != ".keep":
            shutil.copy(file, project)
    command = [iudex, "run", "--json", "--cwd", project, "--seed", str(seed), "--timeout", timeout, "--check-timeout", "20s"]
    if gated:
        command += ["--until", spec["check"]]
    started = time.monotonic()
    done = subprocess.run([*map(str, command), spec["goal"]], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    seconds = time.monotonic() - started
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.strip()]
    result = lines[-1] if lines else {}
    if not result:
        print(done.stderr, file=sys.stderr)
    # The truth, with the project's own check files as they were.
    for file in files.iterdir():
        if file.name.startswith(("test_", "check")):
            shutil.copy(file, project)
    usage = result.get("spent", {}).get("usage", {})
    row = {
        "task": task,
        "mode": "until" if gated else "raw",
        "seed": seed,
        "outcome": result.get("outcome", f"exit {done.returncode}"),
        "exit": done.returncode,
        "right": is_right(spec["check"], project),
        "seconds": seconds,
        "calls": usage.get("calls", 0),
        "prompt": usage.get("prompt", 0),
        "output": usage.get("output", 0),
        "passes": result.get("passes", 0),
    }
    if keep:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{task}-{row['mode']}-{seed}.jsonl").write_text(done.stdout)
    shutil.rmtree(project, ignore_errors=True)
    return row


HEAD = "| task | mode | seed | outcome | right | passes | calls | tokens in | tokens out | seconds |"


def show(row: dict) -> str:
    right = "yes" if row["right"] else "no"
    return (
        f"| {row['task']} | {row['mode']} | {row['seed']} | {row['outcome']} | {right} | {row['passes']} | {row['calls']} "
        f"| {row['prompt']} | {row['output']} | {row['seconds']:.0f} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", default=",".join(ORDER))
    parser.add_argument("--trials", type=int, default=3)
    parser.add_argument("--timeout", default="4m")
    parser.add_argument("--keep", type=Path, help="keep the event streams in this folder")
    parser.add_argument("--binary", type=Path, help="measure this binary instead of a fresh release build")
    parser.add_argument("--no-raw", action="store_true", help="only the runs with --until")
    parser.add_argument("--try-runs", type=int, default=0, help="run the sample project of ./try so many times instead")
    arguments = parser.parse_args()
    tasks = ["try"] if arguments.try_runs else arguments.tasks.split(",")
    unknown = [task for task in tasks if task not in [*ORDER, "try"]]
    if unknown:
        parser.error(f"unknown task {unknown[0]}; the tasks are {', '.join(ORDER)}")

    iudex = arguments.binary or build()
    started = start_model()
    rows = []
    try:
        print(HEAD)
        print("|" + " --- |" * 10, flush=True)
        for task in tasks:
            trials = [] if arguments.no_raw or arguments.try_runs else [(False, 1)]
            trials += [(True, seed) for seed in range(1, (arguments.try_runs or arguments.trials) + 1)]
            for gated, seed in trials:
                rows.append(run_once(iudex, task, gated, seed, arguments.timeout, arguments.keep))
                print(show(rows[-1]), flush=True)
    finally:
        if started:
            subprocess.run([ROOT / "scripts" / "local-model", "stop"], check=False)

    print()
    false_done = [row for row in rows if row["mode"] == "until" and row["exit"] == 0 and not row["right"]]
    for task in tasks:
        gated = [row for row in rows if row["task"] == task and row["mode"] == "until"]
        solved = sum(row["exit"] == 0 and row["right"] for row in gated)
        print(f"{task}: {solved} of {len(gated)} with --until")
    print(f"accepted although wrong: {len(false_done)}")
    sys.exit(1 if false_done else 0)


if __name__ == "__main__":
    main()
