"""What a run costs: from the request to its end, its output, over ssh, and after many others."""

import json
import os
import sqlite3
import struct
import subprocess
import sys
import time
import urllib.request
import uuid
from pathlib import Path

import lab

sys.path.insert(0, str(lab.ROOT / "tests" / "e2e"))
import sshd  # noqa: E402

TRUE = "/bin/true"
ROUNDS = 7
RUNS_A_ROUND = 30
ECHOES_A_ROUND = 15
OUTPUT_BYTES = 1_000_000_000
OUTPUT_ROUNDS = 3
OUTPUT_LIMIT_S = 300
SSH_ROUNDS = 5
SSH_RUNS_A_ROUND = 10
OLD_RUNS = 10_000
# A run commits once more after it is over: the release of its lease.
COMMITS_AFTER_THE_END = 1


def post(port, path, body):
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", json.dumps(body).encode(),
                                     {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=lab.START_LIMIT_S) as answer:
        return json.load(answer)


def finish_us(port, company, body, count):
    """The median time of a run, in microseconds."""
    return float(lab.output_of([lab.PROGRAMS / "runs", "finish", port, company, json.dumps(body),
                                count]))


def spawn_us(count, *command):
    return float(lab.output_of([lab.PROGRAMS / "bare_spawn", count, *command]))


def commits_in(log):
    """How many transactions a SQLite write-ahead log holds since its last restart."""
    data = log.read_bytes() if log.exists() else b""
    if len(data) < 32:
        return 0
    page_bytes, = struct.unpack_from(">8xI", data)
    salts = data[16:24]
    commits = 0
    for at in range(32, len(data) - 23, 24 + page_bytes):
        # The last frame of a transaction holds the database size; the others have 0 there.
        _, pages, frame_salts = struct.unpack_from(">II8s", data, at)
        if frame_salts != salts:
            break
        commits += pages > 0
    return commits


def commits_of_a_run(home, port, company, body):
    """The commits between the request and the final state, each of them a flush to the disk."""
    runs = 5
    # SQLite restarts its log after some thousand pages; a count across that is wrong.
    for _ in range(10):
        before = commits_in(home / "berth.db-wal")
        finish_us(port, company, body, runs)
        made = commits_in(home / "berth.db-wal") - before
        if made > 0:
            return round(made / runs) - COMMITS_AFTER_THE_END
    raise RuntimeError("no commits seen in the write-ahead log")


def true(report):
    """A run of `true` against a bare spawn of it and the bare commits that make it durable."""
    body = {"command": TRUE}
    with lab.scratch() as folder, lab.berth(folder / "home") as (_, port):
        company = lab.first_company(port)
        finish_us(port, company, body, RUNS_A_ROUND)
        commits = commits_of_a_run(folder / "home", port, company, body)
        newest = json.loads(lab.get(port, f"/api/companies/{company}/heartbeat-runs?limit=1"))[0]["id"]
        row_bytes = len(lab.get(port, f"/api/heartbeat-runs/{newest}"))
        ours, spawns, flushes = [], [], []
        for _ in range(ROUNDS):
            ours.append(finish_us(port, company, body, RUNS_A_ROUND))
            spawns.append(spawn_us(100, TRUE))
            flushes.append(float(lab.output_of([lab.PROGRAMS / "bare_commit", folder, row_bytes,
                                                300])))
    ratio = lab.median([a / (b + commits * c) for a, b, c in zip(ours, spawns, flushes)])
    report.line("run of true, times spawn and commits", ratio,
                f"{lab.median(ours):.0f} us; posix_spawn and wait {lab.median(spawns):.0f} us, "
                f"{commits} commits of {row_bytes} bytes, {lab.median(flushes):.0f} us each",
                at_most=8.0)


def echo(report):
    """A sandboxed `echo` from the request to its output and the release, against a bare spawn."""
    said = "hello from a sandbox"
    with lab.scratch() as folder, lab.berth(folder / "home") as (_, port):
        company = lab.first_company(port)
        place = post(port, f"/api/companies/{company}/environments",
                     {"name": "bench", "driver": "sandbox", "config": {"provider": "linux"}})
        body = json.dumps({"command": "/bin/echo", "args": [said], "environmentId": place["id"]})
        command = [lab.PROGRAMS / "runs", "echo", port, company, body]
        lab.output_of([*command, 3, said])
        ours, spawns = [], []
        for _ in range(ROUNDS):
            ours.append(float(lab.output_of([*command, ECHOES_A_ROUND, said])))
            spawns.append(spawn_us(100, "/bin/echo", said))
    report.line("sandboxed echo, times posix_spawn",
                lab.median([a / b for a, b in zip(ours, spawns)]),
                f"{lab.median(ours):.0f} us from the request to the release, "
                f"posix_spawn and wait {lab.median(spawns):.0f} us", at_most=10.0)


def read_log_mb_s(port, company, script):
    """Output of a run from its log, read over HTTP while the command writes."""
    body = {"command": "/bin/sh", "args": ["-c", script]}
    said = lab.output_of([lab.PROGRAMS / "runs", "read", port, company, json.dumps(body)])
    size, to_last_byte_s, _ = said.split()
    if int(size) != OUTPUT_BYTES:
        raise RuntimeError(f"{size} bytes came of {OUTPUT_BYTES}")
    return OUTPUT_BYTES / float(to_last_byte_s) / 1e6


def berth_run_mb_s(port, script):
    """Output of a run with an attached client, from the client's start to its end."""
    command = [lab.BERTH, "run", "--", "/bin/sh", "-c", script]
    started = time.monotonic()
    subprocess.run(command, env={**os.environ, "BERTH_URL": f"http://127.0.0.1:{port}"},
                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, check=True,
                   timeout=OUTPUT_LIMIT_S)
    return OUTPUT_BYTES / (time.monotonic() - started) / 1e6


def output(report):
    """Output through keeper, log and HTTP while the command writes it, against a pipe."""
    script = f"head -c {OUTPUT_BYTES} /dev/zero | cat"
    read, attached, bare = [], [], []
    with lab.scratch() as folder, lab.berth(folder / "home") as (_, port):
        company = lab.first_company(port)
        for _ in range(OUTPUT_ROUNDS):
            read.append(read_log_mb_s(port, company, script))
            attached.append(berth_run_mb_s(port, script))
            bare.append(float(lab.output_of([lab.PROGRAMS / "bare_pipe", OUTPUT_BYTES])))
    for name, ours in (("log of a run", read), ("berth run", attached)):
        share = lab.median([a / b for a, b in zip(ours, bare)])
        text = (f"{lab.median(ours):.0f} MB/s over HTTP, {lab.median(bare):.0f} MB/s of cat "
                f"through a pipe, 1 GB")
        # Either bound is enough: a machine may be slow, and its pipes may be fast.
        if share >= 0.5:
            report.line(f"{name}, share of a pipe", share, text, at_least=0.5)
        else:
            report.line(f"{name}, MB/s", lab.median(ours), text, at_least=200)


def master_of(server):
    """The control socket of the connection that a server holds."""
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            words = (entry / "cmdline").read_text().split("\0")
        except OSError:
            continue
        if parent == server.pid and "ControlMaster=yes" in words:
            return next(word for word in words if word.startswith("ControlPath="))
    raise RuntimeError("the server holds no connection")


def ssh(report):
    """A run over an open connection, against `ssh host true` over the same one."""
    with lab.scratch() as folder:
        host = sshd.Sshd(folder / "sshd").start()
        try:
            with lab.berth(folder / "home") as (server, port):
                company = lab.first_company(port)
                place = post(port, f"/api/companies/{company}/environments",
                             {"name": "bench", "driver": "ssh", "config": host.config()})
                body = {"command": TRUE, "environmentId": place["id"]}
                finish_us(port, company, body, 3)
                bare_call = ["ssh", "-F", "none", "-o", master_of(server), "-o", "BatchMode=yes",
                             "127.0.0.1", "true"]
                ours, bare = [], []
                for _ in range(SSH_ROUNDS):
                    ours.append(finish_us(port, company, body, SSH_RUNS_A_ROUND))
                    bare.append(spawn_us(SSH_RUNS_A_ROUND, *bare_call))
        finally:
            host.stop()
    report.line("run over ssh, times ssh host true",
                lab.median([a / b for a, b in zip(ours, bare)]),
                f"{lab.median(ours) / 1000:.1f} ms, ssh over the same connection "
                f"{lab.median(bare) / 1000:.1f} ms", at_most=3.0)


def copy_run(database, run, times):
    """Copies everything that refers to a run, or its lease, under new ids."""
    database.row_factory = sqlite3.Row
    lease, = database.execute("select lease_id from heartbeat_runs where id = ?", [run]).fetchone()
    copies = []
    for table, mentions in (("heartbeat_runs", "id = :run"),
                            ("environment_leases", "id = :lease"),
                            ("heartbeat_run_events", "run_id = :run"),
                            ("activity", "entity_id in (:run, :lease)")):
        found = database.execute(f"select * from {table} where {mentions}",
                                 {"run": run, "lease": lease}).fetchall()
        for row in found:
            names = [name for name in row.keys() if (table, name) != ("heartbeat_run_events", "id")]
            into = f"insert into {table} ({', '.join(names)}) values ({', '.join('?' * len(names))})"
            copies.append((into, [row[name] for name in names], names))
    for age in range(1, times + 1):
        new = {run: str(uuid.uuid4()), lease: str(uuid.uuid4())}
        for into, values, names in copies:
            fresh = []
            for name, value in zip(names, values):
                if name == "id" and value not in new:
                    value = str(uuid.uuid4())
                elif name.endswith("_at") and value is not None:
                    value -= age * 60_000
                fresh.append(new.get(value, value))
            database.execute(into, fresh)


def remember_runs(home):
    """Gives a home folder 10,000 finished runs and leases: copies of its one run, with other ids."""
    database = sqlite3.connect(home / "berth.db")
    with database:
        run, = database.execute("select id from heartbeat_runs").fetchone()
        copy_run(database, run, OLD_RUNS)
    database.execute("pragma wal_checkpoint(truncate)")
    database.close()


def history(report):
    """A run of `true` beside 10,000 old runs and leases against one in an empty home folder."""
    body = {"command": TRUE}
    with lab.scratch() as folder:
        with lab.berth(folder / "old") as (_, port):
            finish_us(port, lab.first_company(port), body, 1)
        remember_runs(folder / "old")
        with lab.berth(folder / "old") as (_, old), lab.berth(folder / "new") as (_, new):
            times = {old: [], new: []}
            companies = {port: lab.first_company(port) for port in times}
            for port, company in companies.items():
                finish_us(port, company, body, RUNS_A_ROUND)
            for round_ in range(ROUNDS):
                order = (old, new) if round_ % 2 else (new, old)
                for port in order:
                    times[port].append(finish_us(port, companies[port], body, RUNS_A_ROUND))
    report.line("run after 10,000 others, old/new",
                lab.median([a / b for a, b in zip(times[old], times[new])]),
                f"{lab.median(times[old]):.0f} us with {OLD_RUNS} old runs and leases, "
                f"{lab.median(times[new]):.0f} us without", at_most=1.2)
