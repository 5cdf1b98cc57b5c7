"""Sandbox ports from outside: over the API, and from another machine's command line."""

import base64
import contextlib
import hashlib
import http.client
import json
import os
import signal
import socket
import subprocess
import threading
import unittest
import urllib.request

import runs_support as runs
from sandbox_test import WHY_NOT
from support import ANSWER_LIMIT_S, BERTH, BerthTest, clean_environment

# Answers every method with what it received; /redirect, /hostile and /ws do what their names
# suggest.
INSIDE = r"""
import base64, hashlib, http.server, json, socket, sys, threading
class H(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def any(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/hostile":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nSet-Cookie: berth_session=x\r\nContent-Length: 2\r\n\r\nhi")
            self.close_connection = True
            return
        if self.path == "/ws":
            key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
            self.send_response(101)
            self.send_header("Upgrade", "websocket")
            self.send_header("Connection", "Upgrade")
            self.send_header("Sec-WebSocket-Accept",
                             base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())
            self.end_headers()
            self.wfile.write(self.rfile.read(8))
            self.close_connection = True
            return
        seen = json.dumps({"method": self.command, "path": self.path, "headers": dict(self.headers),
                           "bytes": len(body)}).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(seen)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(seen)
    do_GET = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = do_HEAD = any
    def log_message(self, *words): pass
family = sys.argv[1]
class S(http.server.ThreadingHTTPServer):
    address_family = socket.AF_INET6 if family == "6" else socket.AF_INET
server = S(("::1" if family == "6" else "127.0.0.1", int(sys.argv[2])), H)
print("listening", flush=True)
server.serve_forever()
"""

UPGRADE = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
           "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="}


@unittest.skipIf(WHY_NOT, WHY_NOT)
class PortsTest(BerthTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()

    def hold(self, *argv, **config):
        """A run that listens in a sandbox, as soon as it reports so; returns its lease id."""
        made = self.server.post(f"/api/companies/{self.server.company()}/environments",
                                {"name": f"ports {config}", "driver": "sandbox",
                                 "config": {"provider": "linux", **config}})
        self.assertEqual(made.status, 201, made.text)
        run = runs.start(self.server, *argv, environmentId=made.json["id"])
        self.addCleanup(self.end, run)
        log = f"/api/heartbeat-runs/{run}/log?format=raw&stream=stdout&offset=0"
        self.assertTrue(runs.eventually(lambda: "listening" in self.server.get(log).text),
                        runs.look(self.server, run))
        return next(lease["id"] for lease in runs.leases(self.server)
                    if lease["heartbeatRunId"] == run)

    def end(self, run):
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        runs.wait_for_end(self.server, run)

    def listen(self, family="4", port=8080, **config):
        return self.hold("python3", "-c", INSIDE, family, str(port), **config)

    def at(self, lease, path="/", port=8080):
        return f"/api/environment-leases/{lease}/ports/{port}{path}"

    def test_a_request_of_any_method_reaches_the_port_and_no_secret_does(self):
        lease = self.listen()
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"]:
            with self.subTest(method):
                answer = self.server.request(method, self.at(lease, "/a/b?x=1&x=2"), body=b"12345",
                                             headers={"Cookie": "berth_session=secret", "X-Mine": "y"})
                self.assertEqual(answer.status, 200, answer.text)
                seen = answer.json
                self.assertEqual((seen["method"], seen["path"], seen["bytes"]), (method, "/a/b?x=1&x=2", 5))
                self.assertEqual(seen["headers"]["Host"], "localhost:8080")
                self.assertEqual(seen["headers"]["X-Mine"], "y")
                self.assertNotIn("secret", answer.text)
        self.assertEqual(self.server.request("HEAD", self.at(lease)).status, 200)

    def test_an_answer_is_confined_and_sets_no_cookie(self):
        answer = self.server.get(self.at(self.listen(), "/hostile"))
        self.assertEqual((answer.status, answer.bytes), (200, b"hi"))
        self.assertEqual(answer.headers["Content-Security-Policy"], "sandbox")
        self.assertEqual(answer.headers["X-Content-Type-Options"], "nosniff")
        self.assertNotIn("Set-Cookie", answer.headers)

    def test_a_body_of_many_megabytes_passes_in_pieces(self):
        size = 48 << 20
        answer = self.server.request("PUT", self.at(self.listen()), body=b"x" * size)
        self.assertEqual((answer.status, answer.json["bytes"]), (200, size))

    def test_a_server_that_listens_on_ipv6_alone_is_found(self):
        self.assertEqual(self.server.get(self.at(self.listen(family="6"))).status, 200)

    def test_a_websocket_passes(self):
        lease = self.listen()
        key = base64.b64encode(os.urandom(16)).decode()
        with contextlib.closing(socket.create_connection(("127.0.0.1", self.server.port),
                                                         timeout=ANSWER_LIMIT_S)) as client:
            client.sendall(f"GET {self.at(lease, '/ws')} HTTP/1.1\r\nHost: localhost\r\nUpgrade: websocket\r\n"
                           f"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: {key}\r\n"
                           "\r\n".encode())
            lines = client.makefile("rb")
            self.assertIn(b" 101 ", lines.readline())
            fields = dict(line.decode().strip().split(": ", 1) for line in iter(lines.readline, b"\r\n"))
            proof = hashlib.sha1((key + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11").encode()).digest()
            self.assertEqual(fields["Sec-WebSocket-Accept"], base64.b64encode(proof).decode())
            client.sendall(b"12345678")
            self.assertEqual(lines.read(8), b"12345678")

    def test_a_port_that_nobody_listens_on_is_told_with_a_remedy(self):
        lease = self.listen()
        for port, status, code in [(8081, 502, "port_unreachable"), (0, 400, "validation_failed"),
                                   (65536, 400, "validation_failed")]:
            answer = self.server.get(self.at(lease, port=port))
            self.assertEqual((answer.status, answer.json["code"]), (status, code), answer.text)
            self.assertTrue(answer.json["remedy"], answer.text)

    def test_no_lease_is_a_way_to_the_ports_of_this_machine(self):
        """A caller that may use a lease may not reach other listeners on the server's loopback."""
        run = runs.start(self.server, "sh", "-c", "echo listening; exec sleep 60")
        self.addCleanup(self.end, run)
        runs.wait_until(self.server, run, {"running"})
        local = next(lease["id"] for lease in runs.leases(self.server) if lease["heartbeatRunId"] == run)
        shared = self.hold("sh", "-c", "echo listening; exec sleep 60", network="host")
        for lease in [local, shared]:
            for path in [self.at(lease, port=self.server.port), self.at(lease, "/api/health", port=22)]:
                answer = self.server.get(path)
                self.assertEqual((answer.status, answer.json["code"]), (422, "execution_unsupported"),
                                 answer.text)

    def test_a_lease_of_another_company_or_of_the_past_is_not_reached(self):
        lease = self.listen()
        other = self.server.post("/api/companies", {"name": "other"}).json["id"]
        key = self.server.post(f"/api/companies/{other}/tokens", {"name": "k", "role": "admin"}).json["key"]
        theirs = {"Authorization": f"Bearer {key}"}
        missing = "00000000-0000-4000-8000-000000000000"

        def check_not_found():
            for path in (self.at("{}"), "/api/environment-leases/{}/tcp/8080", "/api/environment-leases/{}/listening"):
                for fields in (theirs, {**theirs, **UPGRADE}):
                    found, absent = (self.server.request("GET", path.format(one), headers=fields)
                                     for one in (lease, missing))
                    self.assertEqual((found.status, found.json["code"]), (404, "lease_not_found"), path)
                    self.assertEqual(found.text.replace(lease, missing), absent.text)

        self.assertEqual(self.server.get(self.at(lease)).status, 200)
        check_not_found()
        look = lambda: self.server.get(f"/api/environment-leases/{lease}").json
        self.end(look()["heartbeatRunId"])
        self.assertTrue(runs.eventually(lambda: look()["status"] == "expired"), look())
        self.assertEqual(self.server.get(self.at(lease)).status, 409)
        self.assertEqual(self.server.get(f"/api/environment-leases/{lease}/tcp/8080", **UPGRADE).status, 409)
        check_not_found()

    def test_the_command_line_carries_whole_connections(self):
        lease = self.listen()
        forward = subprocess.Popen([BERTH, "--url", f"http://127.0.0.1:{self.server.port}", "sandbox", "port",
                                    lease, "8080"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                   text=True, env=clean_environment())
        self.addCleanup(forward.stdout.close)
        self.addCleanup(forward.kill)
        url = forward.stdout.readline().strip()
        self.assertRegex(url, r"^http://127\.0\.0\.2:\d+$", "another host than the page, for cookies")
        for _ in range(3):
            with urllib.request.urlopen(url + "/page", timeout=ANSWER_LIMIT_S) as answer:
                self.assertEqual(json.load(answer)["path"], "/page")
        forward.send_signal(signal.SIGINT)
        self.assertEqual(forward.wait(ANSWER_LIMIT_S), 130)

    def test_what_a_sandbox_may_reach_is_changed_while_it_runs_and_every_decision_is_kept(self):
        ask = ("import http.client, sys\n"
               "c = http.client.HTTPConnection('127.0.0.1', 3128, timeout=10)\n"
               "c.request('GET', 'http://192.0.2.7/x', headers={'Host': '192.0.2.7'})\n"
               "print(c.getresponse().status)")
        lease = self.hold("sh", "-c", "echo listening; exec sleep 60", egress={"allow": ["203.0.113.0/24"]})
        path = f"/api/environment-leases/{lease}"

        def status():
            done = self.server.post(f"{path}/exec", {"argv": ["python3", "-c", ask]}).json
            return done["stdoutText"].strip() or done

        def decisions():
            return self.server.get(f"{path}/egress").json["entries"]

        self.assertEqual(status(), "403")
        self.assertTrue(runs.eventually(lambda: len(decisions()) == 1), decisions())
        self.assertEqual(decisions()[0]["decision"], "denied")
        wrong = self.server.request("PUT", f"{path}/egress", {"allow": ["10.0.0.1/8"]})
        self.assertEqual(wrong.status, 400, wrong.text)
        self.assertIn("10.0.0.1/8", wrong.text)
        self.assertEqual(wrong.json["details"]["issues"][0]["path"], "/allow/0")
        many = self.server.request("PUT", f"{path}/egress", {"allow": [f"h{i}.example" for i in range(1001)]})
        self.assertEqual(many.status, 422, many.text)
        changed = self.server.request("PUT", f"{path}/egress", {"allow": ["192.0.2.0/24"], "deny": []})
        self.assertEqual(changed.status, 200, changed.text)
        self.assertEqual(changed.json["policy"], {"allow": ["192.0.2.0/24"], "deny": []})
        self.assertNotEqual(status(), "403", "the policy lets it through, and nobody answers there")
        self.assertTrue(runs.eventually(lambda: len(decisions()) == 2), decisions())
        last = self.server.get(f"{path}/egress").json["nextOffset"]
        self.assertEqual(self.server.get(f"{path}/egress?offset={last}").json["entries"], [])
        done = self.server.get(f"/api/companies/{self.server.company()}/activity").json
        self.assertIn("environment.lease_egress_changed", [row["action"] for row in done])
        shown = self.run_berth("--url", f"http://127.0.0.1:{self.server.port}", "sandbox", "egress", lease)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn('"host":"192.0.2.7"', shown.stdout)


if __name__ == "__main__":
    unittest.main()
