"""A separate berth server, and the ways to talk to it from outside."""

import contextlib
import http.client
import json
import os
import re
import signal
import subprocess
import tempfile
import unittest
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BERTH = os.environ.get("BERTH", str(ROOT / "build" / "release" / "berth"))
POSTGRES = os.environ.get("BERTH_TEST_PG")
ANSWER_LIMIT_S = 20
STOP_LIMIT_S = 30


def clean_environment(**more):
    """Keeps the caller's settings from a program under test. Lists and objects are JSON unless a
    test overrides it, and one-time messages are always shown. BERTH_FAULT_LOG is where a program
    records the fault point at which it dies."""
    kept = {name: value for name, value in os.environ.items()
            if not name.startswith("BERTH_") or name == "BERTH_FAULT_LOG"}
    return {**kept, "BERTH_OUTPUT": "json", "XDG_STATE_HOME": "/dev/null", **more}


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.bytes = status, headers, body

    @property
    def text(self):
        return self.bytes.decode()

    @property
    def json(self):
        return json.loads(self.text)


def as_user(user):
    """The prefix of a command that an ordinary user starts."""
    return ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups"] if user else []


class Server:
    """`berth serve` on a free port. stop() asks it to end, kill() does not ask."""

    def __init__(self, home, *flags, port=0, user=None, **variables):
        self.home = Path(home)
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(
            [*as_user(user), BERTH, "serve", "--home", str(home), "--listen", f"127.0.0.1:{port}", *flags],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.log, text=True,
            env=clean_environment(**variables))
        line = self.process.stdout.readline()
        found = re.fullmatch(r"listening on (https?)://([^\s]+):(\d+)\n", line)
        if not found:
            self.kill()
            raise AssertionError(f"the first line was {line!r}; the log says:\n{self.said()}")
        self.port = int(found.group(3))

    def said(self):
        self.log.seek(0)
        return self.log.read()

    def request(self, verb, path, body=None, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_LIMIT_S)
        with contextlib.closing(connection):
            sent = dict(headers or {})
            if body is not None:
                body = body if isinstance(body, (str, bytes)) else json.dumps(body)
                sent.setdefault("Content-Type", "application/json")
            connection.request(verb, path, body=body, headers=sent)
            answer = connection.getresponse()
            return Answer(answer.status, answer.headers, answer.read())

    def get(self, path, **headers):
        return self.request("GET", path, headers=headers)

    def post(self, path, body, headers=None):
        return self.request("POST", path, body, headers)

    @contextlib.contextmanager
    def events(self, path, last=None):
        """The server-sent events of a stream, as dictionaries."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=ANSWER_LIMIT_S)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Last-Event-ID": last} if last else {})
            answer = connection.getresponse()
            assert answer.status == 200, answer.read()
            yield read_events(answer)

    def company(self):
        return self.get("/api/companies").json[0]["id"]

    def default_to(self, name):
        """Sends the first company's runs without an environment to this one from now on. Needs an
        instance administrator if the server requires keys."""
        key = self.home / "admin.token"
        who = {"Authorization": f"Bearer {key.read_text().strip()}"} if key.exists() else {}
        company = self.request("GET", "/api/companies", None, who).json[0]["id"]
        path = f"/api/companies/{company}"
        rows = self.request("GET", f"{path}/environments", None, who).json
        place = next(row["id"] for row in rows if row["name"] == name)
        if who and name == "Local":
            allowed = self.request("PATCH", f"{path}/allowances", {"local": True}, who)
            assert allowed.status == 200, allowed.text
        changed = self.request("PATCH", path, {"defaultEnvironmentId": place}, who)
        assert changed.status == 200, changed.text

    def stop(self):
        """Ends it with SIGTERM and returns its exit status."""
        self.process.send_signal(signal.SIGTERM)
        status = self.process.wait(STOP_LIMIT_S)
        self.process.stdout.close()
        return status

    def kill(self):
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


def read_events(lines):
    event = {}
    for line in lines:
        field, _, value = line.decode().rstrip("\n").partition(":")
        if field:
            event[field] = value.removeprefix(" ")
        elif event:
            yield event
            event = {}


class BerthTest(unittest.TestCase):
    """Every test has its own folder, and no server outlives its test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="berth-e2e-")
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        self.home = self.folder / "home"
        self.placed = set()

    def serve(self, *flags, home=None, port=0, user=None, place="Local", **variables):
        """A server. Most tests are about commands on this machine itself, so its runs go to `place`
        by default; None keeps the choice of a first start."""
        server = Server(home or self.home, *flags, port=port, user=user, **variables)
        self.addCleanup(server.kill)
        if place and server.home not in self.placed and "--tls-cert" not in flags:
            self.placed.add(server.home)
            server.default_to(place)
        return server

    def dies_at(self, point, server):
        """The server has ended at this fault point, or will soon."""
        self.assertEqual(server.process.wait(60), -signal.SIGKILL, f"{point} was not passed")

    def run_berth(self, *words, stdin=None, **variables):
        return subprocess.run([BERTH, *map(str, words)], input=stdin, capture_output=True, text=True,
                              env=clean_environment(**variables), timeout=ANSWER_LIMIT_S, check=False)

    def engines(self):
        """The settings of each database engine that is available here."""
        yield "sqlite", {}
        if POSTGRES:
            yield "postgres", {"BERTH_DATABASE_URL": fresh_postgres()}


def fresh_postgres():
    """The URL of a new, empty database on the test server."""
    name = "e2e_" + uuid.uuid4().hex[:12]
    subprocess.run(["psql", "-q", "-d", POSTGRES, "-c", f"create database {name}"], check=True,
                   capture_output=True)
    head, _, query = POSTGRES.partition("?")
    scheme, _, rest = head.partition("://")
    return f"{scheme}://{rest.split('/')[0]}/{name}" + (f"?{query}" if query else "")


def ssh_environment(name):
    return {"name": name, "driver": "ssh",
            "config": {"host": "build-host.invalid", "username": "work", "remoteWorkspacePath": "/srv/work"}}
