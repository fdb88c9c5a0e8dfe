"""Runs a program in a pseudo-terminal, types what a list of steps says and waits for what it must show.

Usage: driver.py STEPS PROGRAM [ARGUMENT]...   STEPS is a JSON list:
  ["expect", TEXT]   waits until the screen shows TEXT after what was expected before
  ["type", LINE]     types a line
  ["interrupt"]      presses Ctrl-C
  ["terminate"]      sends SIGTERM
  ["end-of-input"]   presses Ctrl-D
  ["file", PATH]     waits until the file is there
  ["exit", CODE]     waits until the program ends with CODE
The whole screen text goes to standard output; status 1 names the step that did not come true.
"""

import json
import os
import pty
import re
import select
import signal
import sys
import time

PATIENCE = 90  # seconds; only against hanging
ESCAPES = re.compile(rb"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][0-9A-B]?|\x1b\][^\x07]*\x07|\r")


class Terminal:
    def __init__(self, command):
        self.raw = b""
        self.seen = 0
        self.status = None
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm-256color"
            os.execvp(command[0], command)

    def screen(self):
        return ESCAPES.sub(b"", self.raw).decode("utf-8", "replace")

    def pump(self):
        """Takes what the program has written; false when its end of the terminal is closed."""
        ready, _, _ = select.select([self.fd], [], [], 0.05)
        if not ready:
            return True
        try:
            data = os.read(self.fd, 65536)
        except OSError:
            return False
        self.raw += data
        return bool(data)

    def until(self, holds):
        deadline = time.monotonic() + PATIENCE
        alive = True
        while not holds():
            if time.monotonic() > deadline:
                return False
            if not alive:
                # Nothing more comes: one last look.
                return holds()
            alive = self.pump()
        return True

    def expect(self, text):
        def shown():
            at = self.screen().find(text, self.seen)
            if at >= 0:
                self.seen = at + len(text)
            return at >= 0

        return self.until(shown)

    def write(self, data):
        os.write(self.fd, data)
        return True

    def exit(self, code):
        def ended():
            if self.status is None:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
                if pid:
                    self.status = os.waitstatus_to_exitcode(status)
            return self.status is not None

        deadline = time.monotonic() + PATIENCE
        while not ended():
            if time.monotonic() > deadline:
                return False
            if not self.pump():
                time.sleep(0.02)
        return self.status == code

    def step(self, step):
        kind, *rest = step
        if kind == "expect":
            return self.expect(rest[0])
        if kind == "type":
            return self.write(rest[0].encode() + b"\r")
        if kind == "interrupt":
            return self.write(b"\x03")
        if kind == "terminate":
            os.kill(self.pid, signal.SIGTERM)
            return True
        if kind == "end-of-input":
            return self.write(b"\x04")
        if kind == "file":
            return self.until(lambda: os.path.exists(rest[0]))
        if kind == "exit":
            return self.exit(rest[0])
        raise ValueError(f"no step {kind}")


def main():
    steps = json.loads(sys.argv[1])
    terminal = Terminal(sys.argv[2:])
    failed = next((step for step in steps if not terminal.step(step)), None)
    if terminal.status is None:
        os.kill(terminal.pid, signal.SIGKILL)
        os.waitpid(terminal.pid, 0)
    sys.stdout.write(terminal.screen())
    if failed is not None:
        sys.stderr.write(f"this did not come true: {failed}, status {terminal.status}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
