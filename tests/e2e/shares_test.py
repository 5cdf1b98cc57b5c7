"""What one caller may use of the server, and what is left for the others when it uses all of it."""

import contextlib
import re
import resource
import select
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

from runs_support import eventually
from runs_test import Frames
from support import ANSWER_LIMIT_S, BerthTest, as_user

STREAMS = 10_000
SPARE_FILES = 1000
STRANGER = 65534
# Concurrent requests; defined in src/http/limits.hpp.
KEY_REQUESTS, COMPANY_REQUESTS = 256, 512
TRY_AGAIN_LATER = (1013).to_bytes(2, "big") + b"the server holds too much"  # of a close frame

# Run by another user: requests a run, and prints the status and the body.
ASK = """
import http.client, sys
port, path, body, token = int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4]
connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
headers = {"Content-Type": "application/json"}
if token:
    headers["Authorization"] = "Bearer " + token
connection.request("POST" if body else "GET", path, body=body or None, headers=headers)
answer = connection.getresponse()
print(answer.status, answer.read().decode())
"""

# Run by another user: sends a whole request and disconnects before it is read.
SEND_AND_CLOSE = """
import socket, sys
port, path, body = int(sys.argv[1]), sys.argv[2], sys.argv[3]
for _ in range(200):
    client = socket.create_connection(("127.0.0.1", port))
    client.sendall((f"POST {path} HTTP/1.1\\r\\nHost: 127.0.0.1\\r\\nContent-Type: application/json\\r\\n"
                    f"Content-Length: {len(body)}\\r\\n\\r\\n{body}").encode())
    client.close()
"""


class Streams:
    """Event streams of one key: as many connections as requested, and the response of each."""

    def __init__(self, port, path, key):
        self.port, self.clients, self.answers = port, [], []
        fields = f"Host: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n"
        self.request = f"GET {path} HTTP/1.1\r\n{fields}\r\n".encode()

    def open(self, count):
        """Requests that many at the same time; returns the statuses."""
        asked = []
        for _ in range(count):
            client = socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_LIMIT_S)
            client.sendall(self.request)
            asked.append(client)
        self.clients += asked
        return [self.status(client) for client in asked]

    @staticmethod
    def status(client):
        try:
            line = client.recv(12, socket.MSG_WAITALL)
        except OSError:
            return 0
        return int(line.split()[1]) if line.startswith(b"HTTP/1.1") else 0

    def refusal(self):
        """The response to one more, as text."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=ANSWER_LIMIT_S) as client:
            client.sendall(self.request.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
            parts = []
            while part := client.recv(65536):
                parts.append(part)
            return b"".join(parts).decode()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.close()


def is_readable(client):
    watch = select.poll()  # select cannot handle a number above 1023
    watch.register(client, select.POLLIN)
    return bool(watch.poll(0))


class Authenticated(BerthTest):
    def start(self, *flags):
        self.server = self.serve("--mode", "authenticated", *flags)
        self.admin = {"Authorization": "Bearer " + (self.server.home / "admin.token").read_text().strip()}
        self.company = self.made("/api/companies", {"name": "first"})["id"]
        self.viewer = self.key(self.company, "viewer")
        self.path = f"/api/companies/{self.company}/changes/stream"

    def made(self, path, body):
        answer = self.server.post(path, body, self.admin)
        self.assertIn(answer.status, (201, 202), answer.text)
        return answer.json

    def key(self, company, role, name=None):
        return self.made(f"/api/companies/{company}/tokens", {"name": name or role, "role": role})["key"]

    def expect_service(self):
        began = time.monotonic()
        self.assertEqual(self.server.get("/api/health").status, 200)
        self.assertEqual(self.server.request("GET", "/api/companies", headers=self.admin).status, 200)
        self.assertLess(time.monotonic() - began, 5)

    def test_ten_thousand_streams_of_a_viewer_are_limited_reported_and_affect_no_one_else(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        wanted = min(STREAMS, hard - SPARE_FILES) if hard != resource.RLIM_INFINITY else STREAMS
        self.start()
        other = self.made("/api/companies", {"name": "second"})["id"]
        of_another = self.key(other, "viewer")
        answers = []
        with Streams(self.server.port, self.path, self.viewer) as streams:
            while len(answers) < wanted:
                answers += streams.open(min(500, wanted - len(answers)))
                self.expect_service()
            self.assertEqual(answers.count(200), 128)
            self.assertEqual(answers.count(503), wanted - 128)
            refused = streams.refusal()
            for words in ("503", '"code":"overloaded"', "token ", "128 streams", "streams_per_key"):
                self.assertIn(words, refused)
            with Streams(self.server.port, f"/api/companies/{other}/changes/stream", of_another) as theirs:
                self.assertEqual(theirs.open(10), [200] * 10)
            metrics = self.server.request("GET", "/metrics", headers=self.admin).text
            self.assertIn("berth_http_streams 1", metrics)
        self.assertEqual(self.server.said().count("http.share_used_up"), 1)

    def test_keys_of_one_company_share_what_the_company_may_have(self):
        self.start("--streams-per-key", "20", "--streams-per-company", "30")
        second = self.key(self.company, "viewer", "second")
        with Streams(self.server.port, self.path, self.viewer) as one, \
                Streams(self.server.port, self.path, second) as two:
            self.assertEqual(one.open(25).count(200), 20)
            self.assertEqual(two.open(25).count(200), 10)
            self.assertIn(f"company {self.company}", two.refusal())
            self.expect_service()

    def test_health_and_administrators_are_answered_when_connections_run_out(self):
        self.start("--connections-max", "40", "--streams-per-key", "1000", "--streams-per-company", "1000")
        with Streams(self.server.port, self.path, self.viewer) as streams:
            streams.open(40)
            for _ in range(20):
                self.expect_service()
            streams.open(200)
            for _ in range(20):
                self.expect_service()
        self.assertIn("http.stream_evicted", self.server.said())

    def test_health_and_administrators_are_answered_while_requests_hold_every_connection(self):
        self.start("--connections-max", "20")
        operator = {"Authorization": "Bearer " + self.key(self.company, "operator")}
        waits = self.wait_for_a_run(operator)
        with contextlib.ExitStack() as open_ones:
            for _ in range(100):  # one that is not running yet may be evicted for the next
                client = open_ones.enter_context(
                    socket.create_connection(("127.0.0.1", self.server.port), timeout=ANSWER_LIMIT_S))
                client.sendall(waits)
                answer = self.server.request("GET", "/api/companies", headers=operator)
                if answer.status == 503:
                    break
            self.assertEqual((answer.status, answer.json["code"]), (503, "overloaded"), answer.text)
            self.assertIn("administrators", answer.text)
            for _ in range(20):
                self.expect_service()

    def test_bodies_that_do_not_end_leave_room_for_the_answers_of_others(self):
        self.start()
        with contextlib.ExitStack() as held:
            operator = self.key(self.company, "operator")
            for key in ("", f"Authorization: Bearer {operator}\r\n"):
                head = (f"POST /api/companies/{self.company}/agents HTTP/1.1\r\nHost: 127.0.0.1\r\n{key}"
                        "Content-Type: application/json\r\nContent-Length: 1048576\r\n\r\n").encode()
                for _ in range(270):  # nearly a MiB each, where all together may have 256
                    client = held.enter_context(
                        socket.create_connection(("127.0.0.1", self.server.port), timeout=ANSWER_LIMIT_S))
                    with contextlib.suppress(ConnectionError):  # it was rejected before it was read
                        client.sendall(head + bytes(1_040_000))
                until = time.monotonic() + 3  # what was sent is read gradually
                while time.monotonic() < until:
                    answer = self.server.request("GET", "/api/openapi.json", headers=self.admin)
                    self.assertEqual(answer.status, 200, answer.text[:200])

    def test_keys_of_one_company_have_no_more_requests_at_work_than_the_company_may(self):
        self.start()
        other = self.made("/api/companies", {"name": "second"})["id"]
        of_another = {"Authorization": "Bearer " + self.key(other, "operator")}
        keys = [{"Authorization": "Bearer " + self.key(self.company, "operator", f"key {i}")} for i in range(3)]
        waits = self.wait_for_a_run(keys[0]).decode()
        with contextlib.ExitStack() as open_ones:
            clients = []
            for key in keys:  # each below the limit of one key
                for _ in range(KEY_REQUESTS - 56):
                    client = socket.create_connection(("127.0.0.1", self.server.port), timeout=ANSWER_LIMIT_S)
                    clients.append(open_ones.enter_context(client))
                    client.sendall(waits.replace(keys[0]["Authorization"], key["Authorization"]).encode())
            answered = lambda: [client for client in clients if is_readable(client)]
            refused = len(clients) - COMPANY_REQUESTS
            self.assertTrue(eventually(lambda: len(answered()) >= refused), len(answered()))
            for _ in range(20):
                self.expect_service()
                theirs = self.server.request("GET", f"/api/companies/{other}", headers=of_another)
                self.assertEqual(theirs.status, 200, theirs.text)
                for key in keys:
                    mine = self.server.request("GET", f"/api/companies/{self.company}", headers=key)
                    self.assertEqual((mine.status, mine.json["code"]), (503, "overloaded"), mine.text)
                    self.assertIn(f"company {self.company} may have {COMPANY_REQUESTS} requests", mine.text)
            over = answered()
            self.assertEqual([Streams.status(client) for client in over], [503] * refused)
            # When the run ends, every request that waits for it ends, and none is counted any more.
            run = re.search(r"/heartbeat-runs/(\S+)\?", waits).group(1)
            self.server.post(f"/api/heartbeat-runs/{run}/cancel", {}, self.admin)
            mine = lambda: self.server.request("GET", f"/api/companies/{self.company}", headers=keys[0]).status
            self.assertTrue(eventually(lambda: mine() == 200), "what is over still counts")
            self.assertEqual(sorted({Streams.status(client) for client in clients if client not in over}), [200])

    def memory_mb(self):
        status = Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+) kB", status).group(1)) >> 10

    def attached(self, run, keys, each):
        """Sockets of these keys that are attached to a run and read nothing."""
        request = (f"GET /api/heartbeat-runs/{run}/attach HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\n"
                   "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                   "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nAuthorization: Bearer ")
        for key in keys:
            for _ in range(each):
                client = socket.socket()
                self.addCleanup(client.close)
                client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
                client.settimeout(ANSWER_LIMIT_S)
                client.connect(("127.0.0.1", self.server.port))
                client.sendall(f"{request}{key}\r\n\r\n".encode())
                yield client

    def started(self, *argv):
        run = self.made(f"/api/companies/{self.company}/runs", {"command": argv[0], "args": argv[1:]})["id"]
        self.addCleanup(self.server.post, f"/api/heartbeat-runs/{run}/cancel", {}, self.admin)
        return run

    def test_messages_that_do_not_end_take_no_more_memory_than_bodies(self):
        self.start()
        run = self.started("sleep", "600")
        keys = [self.key(self.company, "viewer", f"viewer {number}") for number in range(2)]
        before = self.memory_mb()
        unfinished = b"\x01\xff" + (1_000_000).to_bytes(8, "big") + bytes(4) + b"x" * 1_000_000
        clients = list(self.attached(run, keys, 100))
        self.assertEqual({Streams.status(client) for client in clients}, {101})
        closed = 0
        for client in clients:
            client.sendall(unfinished + b"\x89\x84" + bytes(4) + b"here")
            seen = b""
            # The pong comes when the server has read what is before the ping, and a close frame when it had no room.
            while b"here" not in seen and TRY_AGAIN_LATER not in seen:
                seen += client.recv(65536)
            closed += TRY_AGAIN_LATER in seen
        self.assertGreater(closed, 100)
        self.assertLess(self.memory_mb() - before, 120)
        self.expect_service()
        for client in clients:
            client.close()
        # With them goes what they held.
        last, = self.attached(run, keys[:1], 1)
        self.assertEqual(Streams.status(last), 101)
        last.sendall(unfinished)

    def test_readers_that_do_not_read_take_no_more_memory_than_answers(self):
        self.start()
        run = self.started("sh", "-c", "yes 0123456789012345678901234567890123456789 | head -c 20000000; sleep 600")
        end = f"/api/heartbeat-runs/{run}/log?format=raw&offset=19999999"
        printed = lambda: int(self.server.request("GET", end, headers=self.admin).headers["X-Next-Offset"])
        self.assertTrue(eventually(lambda: printed() == 20_000_000), printed())
        keys = [self.key(self.company, "viewer", f"viewer {number}") for number in range(2)]
        before = self.memory_mb()
        clients = list(self.attached(run, keys, 128))
        self.assertEqual({Streams.status(client) for client in clients}, {101})
        self.expect_service()
        self.assertLess(self.memory_mb() - before, 160)

    def test_a_client_that_closes_while_it_waits_gives_its_share_back(self):
        self.start()
        operator = {"Authorization": "Bearer " + self.key(self.company, "operator")}
        waits = self.wait_for_a_run(operator)
        mine = lambda: self.server.request("GET", f"/api/companies/{self.company}", headers=operator).status
        with contextlib.ExitStack() as open_ones:
            for number in range(KEY_REQUESTS):
                client = socket.create_connection(("127.0.0.1", self.server.port), timeout=ANSWER_LIMIT_S)
                # What a client has sent behind its request does not hide that it is gone.
                open_ones.enter_context(client).sendall(waits * (1 + number % 2))
            self.assertTrue(eventually(lambda: mine() == 503), "the waits take no share")
        began = time.monotonic()
        self.assertTrue(eventually(lambda: mine() == 200), "waits without a client still count")
        self.assertLess(time.monotonic() - began, 15)
        # A client that only sends no more gets its answer.
        with socket.create_connection(("127.0.0.1", self.server.port), timeout=ANSWER_LIMIT_S) as client:
            client.sendall(waits.replace(b"wait=60", b"wait=0"))
            client.shutdown(socket.SHUT_WR)
            self.assertEqual(Streams.status(client), 200)

    def wait_for_a_run(self, operator):
        """A request that waits for a run that does not end by itself."""
        started = self.server.post(f"/api/companies/{self.company}/runs",
                                   {"command": "sleep", "args": ["600"]}, self.admin)
        self.assertEqual(started.status, 202, started.text)
        run = started.json["id"]
        self.addCleanup(self.server.post, f"/api/heartbeat-runs/{run}/cancel", {}, self.admin)
        return (f"GET /api/heartbeat-runs/{run}?wait=60&until=end HTTP/1.1\r\nHost: 127.0.0.1\r\n"
                f"Authorization: {operator['Authorization']}\r\n\r\n").encode()

    def test_metrics_are_for_instance_administrators(self):
        self.start()
        admin_of_a_company = self.key(self.company, "admin")
        for key in (self.viewer, admin_of_a_company):
            answer = self.server.get("/metrics", Authorization=f"Bearer {key}")
            self.assertEqual((answer.status, answer.json["code"]), (403, "forbidden"))
        self.assertEqual(self.server.get("/metrics").status, 401)
        self.assertIn("# TYPE", self.server.request("GET", "/metrics", headers=self.admin).text)


class LocalUsers(BerthTest):
    """In local_trusted the kernel identifies the caller."""

    def ask(self, server, path, body="", token="", user=STRANGER):
        done = subprocess.run([*as_user(user), sys.executable, "-c", ASK, str(server.port), path, body, token],
                              capture_output=True, text=True, timeout=ANSWER_LIMIT_S, check=True)
        status, _, text = done.stdout.partition(" ")
        return int(status), text

    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)

    RUN = '{"command":"id"}'

    def test_another_user_of_the_machine_is_not_the_operator(self):
        server = self.serve()
        runs = f"/api/companies/{server.company()}/runs"
        status, text = self.ask(server, runs, self.RUN)
        self.assertEqual(status, 403, text)
        for words in ('"code":"local_user_not_trusted"', f"user {STRANGER}", "--mode authenticated",
                      "--trusted-users all"):
            self.assertIn(words, text)
        self.assertEqual(self.ask(server, "/api/companies")[0], 403)
        self.assertEqual(self.ask(server, "/api/health")[0], 200)
        self.assertEqual(self.ask(server, runs, self.RUN, user=None)[0], 202)
        self.assertNotIn("server.everybody_is_root", server.said())

    def test_a_user_who_closes_before_being_looked_at_does_not_pass_for_root(self):
        server = self.serve()
        company = server.company()
        subprocess.run([*as_user(STRANGER), sys.executable, "-c", SEND_AND_CLOSE, str(server.port),
                        f"/api/companies/{company}/runs", self.RUN], check=True, timeout=60)
        self.assertTrue(eventually(lambda: sum(self.answers(server).values()) == 200))
        self.assertEqual(set(self.answers(server)), {"403"})

    @staticmethod
    def answers(server):
        """How many requests for a run were answered, by status."""
        lines = re.findall(r'^berth_http_requests_total\{(.*/runs".*)\} (\d+)$', server.get("/metrics").text,
                           re.MULTILINE)
        return {re.search(r'status="(\d+)"', labels).group(1): int(count) for labels, count in lines
                if 'verb="post"' in labels}

    def test_a_key_is_good_for_every_user(self):
        server = self.serve()
        made = server.post(f"/api/companies/{server.company()}/tokens", {"name": "k", "role": "operator"})
        self.assertEqual(self.ask(server, "/api/companies", token=made.json["key"])[0], 200)

    def test_an_ordinary_user_serves_itself_and_root(self):
        home = self.folder / "home"
        home.mkdir(mode=0o700)
        subprocess.run(["chown", "61234:61234", str(home)], check=True)
        server = self.serve(user=61234)
        self.assertEqual(server.get("/api/companies").status, 200)
        self.assertEqual(self.ask(server, "/api/companies", user=61234)[0], 200)
        self.assertEqual(self.ask(server, "/api/companies")[0], 403)

    def test_every_user_is_trusted_where_that_is_asked_for_and_root_warns_of_it(self):
        server = self.serve("--trusted-users", "all")
        self.assertEqual(self.ask(server, f"/api/companies/{server.company()}/runs", self.RUN)[0], 202)
        self.assertIn("server.everybody_is_root", server.said())


class Attached(BerthTest):
    def test_stdin_frames_without_bytes_are_not_kept_without_limit(self):
        server = self.serve("--runs-max", "1")
        runs = f"/api/companies/{server.company()}/runs"
        blocker = server.post(runs, {"command": "sleep", "args": ["600"]}).json["id"]
        self.addCleanup(server.post, f"/api/heartbeat-runs/{blocker}/cancel", {})
        waiting = server.post(runs, {"command": "cat", "stdinOpen": True}).json["id"]
        frames = Frames(server.port, f"/api/heartbeat-runs/{waiting}/attach?offset=0")
        self.addCleanup(frames.close)
        before = self.resident_kb(server)
        for _ in range(50_000):
            frames.send({"type": "stdin_end"})
        sender = threading.Thread(target=self.flood, args=(frames,))
        sender.start()
        told = frames.news("error")
        self.assertEqual(told["code"], "overloaded")
        frames.close()
        sender.join()
        self.assertLess(self.resident_kb(server) - before, 30_000)

    @staticmethod
    def flood(frames):
        with contextlib.suppress(OSError, ValueError):
            for _ in range(200_000):
                frames.stdin(b"")

    @staticmethod
    def resident_kb(server):
        with open(f"/proc/{server.process.pid}/status", encoding="ascii") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))
