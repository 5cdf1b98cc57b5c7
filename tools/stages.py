"""Runs commands one after the other, shows their progress, and counts what passed and failed."""

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOGS = ROOT / "build" / "logs"
PROGRESS_EVERY_S = 10.0
LOG_TAIL_LINES = 60
STOP_LIMIT_S = 30
STOPPED = "stopped by the runner"  # the words under the output of a command that took too long


class Tally:
    def __init__(self):
        self.passed = self.failed = 0
        self.skipped = []   # verdicts of tests that skipped
        self.unsteady = []  # tests that failed, and passed when they ran alone
        self.timed = []     # verdicts of all tests, for the slowest of them

    def line(self):
        counts = f"{self.passed} passed, {self.failed} failed"
        return counts + (f", {len(self.skipped)} skipped" if self.skipped else "")


STAGES_BEGUN = []  # (heading, moment), in order


def stage_times():
    """(seconds, heading) of each stage so far."""
    ends = [moment for _, moment in STAGES_BEGUN[1:]] + [time.monotonic()]
    return [(end - moment, text) for (text, moment), end in zip(STAGES_BEGUN, ends)]


def say(text):
    print(text, flush=True)


def heading(text):
    STAGES_BEGUN.append((text, time.monotonic()))
    say(f"\n== {text}")


def result(tally, name, problem=None, seconds=None):
    """Counts one check and prints its line; `problem` is what is wrong, or None."""
    took = "" if seconds is None else f"  {seconds:.1f} s"
    if problem is None:
        tally.passed += 1
        say(f"ok    {name}{took}")
        return True
    tally.failed += 1
    say(f"FAIL  {name}{took}")
    if problem:
        say("\n".join("      " + line for line in problem.splitlines()))
    return False


def run(name, command, env=None, timeout_s=None):
    """Runs a command with its output in build/logs/NAME.log, and prints its latest line now and
    then to show progress. Returns (exit status, output, seconds)."""
    LOGS.mkdir(parents=True, exist_ok=True)
    log_path = LOGS / f"{name}.log"
    started = shown = time.monotonic()
    lines = []
    with log_path.open("w", errors="replace") as log:
        process = subprocess.Popen(
            [str(word) for word in command], cwd=ROOT, env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            text=True, errors="replace", start_new_session=True)
        deadline = _Deadline(process, timeout_s)
        try:
            for line in process.stdout:
                log.write(line)
                lines.append(line)
                if time.monotonic() - shown >= PROGRESS_EVERY_S and line.strip():
                    shown = time.monotonic()
                    say(f"      {shown - started:4.0f} s  {line.strip()[:90]}")
            status = process.wait()
        except BaseException:
            deadline.kill()
            raise
        finally:
            deadline.cancel()
    output = "".join(lines)
    if deadline.passed:
        output += f"\n{STOPPED} after {timeout_s} s"
    return status, output, time.monotonic() - started


def tail(output, name):
    lines = output.rstrip().splitlines()
    if len(lines) <= LOG_TAIL_LINES:
        return "\n".join(lines)
    left_out = len(lines) - LOG_TAIL_LINES
    return "\n".join([f"... {left_out} lines more in build/logs/{name}.log",
                      *lines[-LOG_TAIL_LINES:]])


def counted(tally, name, command, env=None, timeout_s=None):
    """Runs a command that is one check by itself: it passed when it ended with status 0."""
    status, output, seconds = run(name, command, env, timeout_s)
    return result(tally, name, None if status == 0 else tail(output, name), seconds)


def build(tally, preset, targets=()):
    """Configures and builds a preset. Only a failure counts: a build is not a test."""
    heading(f"build {preset}")
    started = time.monotonic()
    wanted = [word for target in targets for word in ("--target", target)]
    for name, command in ((f"configure-{preset}", ["cmake", "--preset", preset]),
                          (f"build-{preset}", ["cmake", "--build", "--preset", preset, *wanted])):
        status, output, seconds = run(name, command)
        if status != 0:
            return result(tally, name, tail(output, name), seconds)
    say(f"      built in {time.monotonic() - started:.0f} s")
    return True


class BuildAhead:
    """Builds a preset while tests wait, at the lowest priority. The build that follows reports
    errors, and finds the rest done."""

    def __init__(self, preset):
        import shlex
        LOGS.mkdir(parents=True, exist_ok=True)
        words = shlex.quote(preset)
        # If sessions share the processors as groups, the group needs the low priority.
        steps = ("[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup; "
                 f"cmake --preset {words} && cmake --build --preset {words}")
        with (LOGS / f"ahead-{preset}.log").open("w") as log:
            self.process = subprocess.Popen(["nice", "-n", "19", "sh", "-c", steps], cwd=ROOT,
                                            stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                            start_new_session=True)

    def stop(self):
        """The next build restarts what is incomplete. The compilers have their own groups, and
        ninja ends them when it is interrupted."""
        import signal
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGINT)
        try:
            self.process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            _Deadline(self.process, None).kill()
            self.process.wait()


class _Deadline:
    """Kills the process group of a command that takes too long."""

    def __init__(self, process, timeout_s):
        import threading
        self.process = process
        self.passed = False
        self.timer = threading.Timer(timeout_s, self._expire) if timeout_s else None
        if self.timer:
            self.timer.daemon = True
            self.timer.start()

    def _expire(self):
        self.passed = True
        self.kill()

    def kill(self):
        import signal
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def cancel(self):
        if self.timer:
            self.timer.cancel()


if __name__ == "__main__":
    sys.exit("stages.py is a part of tools/test and tools/check")
