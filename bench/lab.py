"""Shared by every benchmark: starting and stopping programs, and printing one line per number."""

import contextlib
import json
import os
import re
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ROOT / "build" / "bench" / "bench"
BERTH = Path(os.environ.get("BERTH", ROOT / "build" / "bench" / "berth"))
KEEPER = BERTH.with_name("berth-keeper")
START_LIMIT_S = 20
STOP_LIMIT_S = 20


class Report:
    def __init__(self):
        self.missed = 0

    def line(self, name, value, text, at_least=None, at_most=None):
        """One number with its bound and whether it holds."""
        if at_least is not None:
            holds, bound = value >= at_least, f">= {at_least:g}"
        else:
            holds, bound = value <= at_most, f"<= {at_most:g}"
        self.missed += not holds
        verdict = "ok  " if holds else "MISS"
        print(f"{verdict}  {name:<34} {value:8.2f}  (bound {bound})  {text}", flush=True)


@contextlib.contextmanager
def scratch():
    """A folder in the build's file system, which is also that of the measured databases."""
    with tempfile.TemporaryDirectory(dir=ROOT / "build", prefix="bench-") as folder:
        yield Path(folder)


@contextlib.contextmanager
def serving(command, env=None):
    """A server whose first line gives its address; yields (process, port)."""
    # The log is discarded: a terminal or a disk would be measured with the server.
    process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, **(env or {})})
    try:
        line = process.stdout.readline()
        found = re.match(r"listening on http://[^:]+:(\d+)", line)
        if not found:
            raise RuntimeError(f"{command[0]} said {line!r} instead of where it listens")
        yield process, int(found.group(1))
    finally:
        process.terminate()
        try:
            process.wait(STOP_LIMIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        process.stdout.close()


def berth(home):
    return serving([BERTH, "serve", "--home", home, "--listen", "127.0.0.1:0"])


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=START_LIMIT_S) as answer:
        return answer.read().decode()


def first_company(port):
    """Returns its id. Runs without an environment are measured on this machine itself, without a
    sandbox."""
    company = json.loads(get(port, "/api/companies"))[0]["id"]
    rows = json.loads(get(port, f"/api/companies/{company}/environments"))
    local = next(row["id"] for row in rows if row["name"] == "Local")
    change = urllib.request.Request(f"http://127.0.0.1:{port}/api/companies/{company}",
                                    json.dumps({"defaultEnvironmentId": local}).encode(),
                                    {"Content-Type": "application/json"}, method="PATCH")
    urllib.request.urlopen(change, timeout=START_LIMIT_S).close()
    return company


def output_of(command):
    done = subprocess.run([str(word) for word in command], stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, check=False, timeout=600)
    if done.returncode != 0:
        raise RuntimeError(f"{Path(command[0]).name}: {done.stderr.strip()[-2000:]}")
    return done.stdout


def wait_for(path_of_port, port):
    """The time of the first response, polled without a noticeable pause."""
    deadline = time.monotonic() + START_LIMIT_S
    while time.monotonic() < deadline:
        with contextlib.suppress(OSError):
            get(port, path_of_port)
            return time.monotonic()
        time.sleep(0.0005)
    raise RuntimeError(f"nothing answers on port {port}")


def median(values):
    return sorted(values)[len(values) // 2]
