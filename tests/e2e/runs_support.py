"""Runs as a caller sees them, and what they leave on the machine."""

import json
import os
import time
from pathlib import Path

FINAL = {"succeeded", "failed", "cancelled", "timed_out", "interrupted"}
END_LIMIT_S = 60


def start(server, *argv, **more):
    body = {"command": argv[0], "args": list(argv[1:]), **more}
    answer = server.post(f"/api/companies/{server.company()}/runs", body)
    assert answer.status == 202, answer.text
    return answer.json["id"]


def look(server, run, wait=0):
    return server.get(f"/api/heartbeat-runs/{run}?wait={wait}").json


def wait_until(server, run, wanted, limit_s=END_LIMIT_S):
    """The run, as soon as its status is one of the wanted ones."""
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        seen = look(server, run, wait=1)
        if seen["status"] in wanted:
            return seen
    raise AssertionError(f"run {run} is still {seen['status']} after {limit_s} s: {json.dumps(seen)}")


def wait_for_end(server, run, limit_s=END_LIMIT_S):
    return wait_until(server, run, FINAL, limit_s)


def output(server, run, stream="stdout"):
    """All output of the run on one stream."""
    text, offset = "", 0
    while True:
        answer = server.get(f"/api/heartbeat-runs/{run}/log?format=raw&stream={stream}&offset={offset}")
        assert answer.status == 200, answer.text
        text += answer.text
        if answer.headers["X-Eof"] == "true":
            return text
        following = int(answer.headers["X-Next-Offset"])
        assert following > offset, "a log that is not over must go on"
        offset = following


def leases(server, **filters):
    query = "&".join(f"{name}={value}" for name, value in filters.items())
    return server.get(f"/api/companies/{server.company()}/environment-leases?{query}").json


def unfinished_leases(server):
    over = {"released", "expired", "failed"}
    return [lease for lease in leases(server) if lease["status"] not in over]


def processes_with(text):
    """Command lines of live processes that contain this text."""
    found = []
    for folder in Path("/proc").iterdir():
        if not folder.name.isdigit() or int(folder.name) == os.getpid():
            continue
        try:
            line = (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:
            continue
        if text in line:
            found.append((int(folder.name), line))
    return found


def eventually(is_so, limit_s=30, every_s=0.05):
    ends = time.monotonic() + limit_s
    while time.monotonic() < ends:
        if is_so():
            return True
        time.sleep(every_s)
    return False
