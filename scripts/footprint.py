#!/usr/bin/env python3
"""Measures start-up time and memory of a release build against a null server: medians of 20.

Usage: scripts/footprint.py [--runs N]

What is measured:
- `iudex --version` against `true`: wall clock of spawn to exit, milliseconds.
- First request: from spawn to the first chat request that the null server sees (--model given, format and window
  remembered, a plain directory of ten files, no gate), milliseconds.
- Peak memory (VmHWM of the iudex process alone, read from /proc just before it ends): headless, and with a check that
  prints 800 MB.
- JSON events with a reader that takes one line in 20 ms: none is lost.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def build() -> tuple[Path, Path]:
    subprocess.run(["cargo", "build", "--release", "--locked", "-p", "iudex"], cwd=ROOT, check=True)
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "-p", "iudex-testkit", "--example", "null_server"], cwd=ROOT, check=True
    )
    release = ROOT / "target" / "release"
    return release / "iudex", release / "examples" / "null_server"


def wall_clock(command: list[str], env: dict | None = None) -> float:
    started = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=env, check=False)
    return (time.perf_counter() - started) * 1000


class Null:
    """The null server: prints its port, then a line `chat NANOSECONDS` as each chat request arrives."""

    def __init__(self, program: Path):
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.port = int(self.process.stdout.readline())
        self.stamps: list[int] = []
        threading.Thread(target=self.read, daemon=True).start()

    def read(self) -> None:
        for line in self.process.stdout:
            if line.startswith("chat "):
                self.stamps.append(int(line.split()[1]))

    def stop(self) -> None:
        self.process.stdin.close()
        self.process.wait(timeout=10)


def peak_memory(process: subprocess.Popen) -> int:
    """Polls VmHWM (KiB) until the process ends; the high-water mark only grows, so the last reading is the peak."""
    peak = 0
    while process.poll() is None:
        try:
            for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
                if line.startswith("VmHWM:"):
                    peak = max(peak, int(line.split()[1]))
        except OSError:
            break
        time.sleep(0.002)
    return peak


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    runs = parser.parse_args().runs
    iudex, null_program = build()
    null = Null(null_program)
    try:
        with tempfile.TemporaryDirectory(prefix="iudex-footprint-") as home:
            measure(iudex, null, Path(home), runs)
    finally:
        null.stop()


def measure(iudex: Path, null: Null, home: Path, runs: int) -> None:
    project = home / "project"
    project.mkdir()
    for number in range(10):
        (project / f"file{number}.txt").write_text(f"{number}\n" * 10)
    env = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "IUDEX_BASE_URL": f"http://127.0.0.1:{null.port}/v1",
        "IUDEX_MODEL": "test-model",
    }
    command = [str(iudex), "run", "--cwd", str(project), "--model", "test-model", "say hello"]
    failed = []

    version = statistics.median(wall_clock([str(iudex), "--version"]) for _ in range(runs))
    nothing = statistics.median(wall_clock(["true"]) for _ in range(runs))
    report(failed, "--version over `true`", version - nothing, 5, "ms")

    wall_clock(command, env)  # Remembers format and window.
    delays = []
    for _ in range(runs):
        before = len(null.stamps)
        started = time.time_ns()
        subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        time.sleep(0.05)
        if len(null.stamps) <= before:
            sys.exit("the null server saw no request; run the command by hand:\n" + " ".join(command))
        delays.append((null.stamps[before] - started) / 1e6)
    report(failed, "start to first request", statistics.median(delays), 30, "ms")

    peaks = []
    for _ in range(runs):
        process = subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        peaks.append(peak_memory(process) / 1024)
    report(failed, "peak memory, headless", statistics.median(peaks), 16, "MiB")

    flood = [*command[:-1], "--max-retries", "0", "--until", "yes 0123456789012345678901234567890123456789 | head -c 800000000; test -f none"]
    process = subprocess.Popen([*flood, "say hello"], env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    report(failed, "peak memory, 800 MB of check output", peak_memory(process) / 1024, 32, "MiB")

    process = subprocess.Popen([*command[:-1], "--json", "say hello"], env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    numbers = []
    for line in process.stdout:
        time.sleep(0.02)
        event = json.loads(line)
        if "seq" in event:
            numbers.append(event["seq"])
    process.wait()
    show = subprocess.run(
        [str(iudex), "show", "--json", "--cwd", str(project)], env=env, stdout=subprocess.PIPE, check=True
    )
    recorded = [event["seq"] for event in json.loads(show.stdout)]
    lost = len(set(recorded) - set(numbers))
    report(failed, "events lost with a slow reader", lost, 0, f"of {len(recorded)}")
    if failed:
        sys.exit(1)


def report(failed: list, name: str, value: float, most: float, unit: str) -> None:
    good = value <= most
    if not good:
        failed.append(name)
    print(f"{name:<38} {value:8.1f} {unit:<6} (at most {most}) {'ok' if good else 'TOO MUCH'}", flush=True)


if __name__ == "__main__":
    main()
