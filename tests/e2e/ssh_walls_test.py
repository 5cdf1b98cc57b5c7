"""SSH environments cannot be used to reach the server's own networks, and a draft of one can be
tested."""

import json
import socket
import unittest

import runs_support as runs
from sshd import PROGRAM, Sshd
from support import BerthTest

# Spellings of the loopback that a resolver accepts, and a name that does not resolve.
NEAR = ["localhost", "LOCALHOST", "127.1", "2130706433", "0x7f000001", "017700000001", "0x0"]
NOWHERE = "no-such-host.invalid"


@unittest.skipUnless(PROGRAM, "needs sshd: install openssh-server")
class SshWalls(BerthTest):
    def setUp(self):
        super().setUp()
        self.sshd = Sshd(self.folder / "sshd").start()
        self.addCleanup(self.sshd.stop)
        self.port = self.sshd.port

    def bait(self):
        """A loopback port that every environment names from now on; nothing may connect to it."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        listener.setblocking(False)
        self.port = listener.getsockname()[1]
        return listener

    def tenant(self, **variables):
        """A server that requires keys, and an operator of a company on it."""
        self.server = self.serve("--mode", "authenticated", place=None, **variables)
        self.instance = {"Authorization": "Bearer " + (self.home / "admin.token").read_text().strip()}
        company = self.server.post("/api/companies", {"name": "B"}, self.instance).json["id"]
        self.company = f"/api/companies/{company}"
        made = self.server.post(f"{self.company}/tokens", {"name": "op", "role": "operator"}, self.instance)
        self.operator = {"Authorization": f"Bearer {made.json['key']}"}

    def config(self, host):
        key = self.sshd.config()["knownHosts"].split(" ", 1)[1]
        return self.sshd.config(host=host, port=self.port, knownHosts=f"[{host.lower()}]:{self.port} {key}")

    def create(self, host):
        return self.server.post(f"{self.company}/environments",
                                {"name": f"at {host}", "driver": "ssh", "config": self.config(host)}, self.operator)

    def probe(self, host):
        return self.server.post(f"{self.company}/environments/probe-config",
                                {"driver": "ssh", "config": self.config(host)}, self.operator)

    def allow(self, allowed):
        changed = self.server.request("PATCH", f"{self.company}/allowances", {"privateSsh": allowed}, self.instance)
        self.assertEqual(changed.status, 200, changed.text)

    def refusals(self, host):
        """What an operator reads about a host, from every endpoint, without the host's name."""
        def plain(text):
            return text.replace(host, "HOST")

        draft = self.probe(host)
        self.assertEqual(draft.status, 200, draft.text)
        self.assertFalse(draft.json["ok"], draft.text)
        yield plain(draft.json["summary"] + draft.json["steps"][-1]["remedy"])
        made = self.create(host)
        self.assertEqual(made.status, 201, made.text)
        saved = self.server.post(f"/api/environments/{made.json['id']}/probe", {}, self.operator).json
        yield plain(saved["summary"] + saved["steps"][-1]["remedy"])
        run = self.server.post(f"{self.company}/runs", {"command": "true", "environmentId": made.json["id"]},
                               self.operator)
        self.assertEqual(run.status, 202, run.text)
        path = f"/api/heartbeat-runs/{run.json['id']}?wait=30&until=end"
        ended = self.server.get(path, **self.operator).json
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "ssh_unreachable"), ended)
        yield plain(ended["error"])

    def test_a_company_reaches_no_private_address_and_cannot_tell_it_from_a_missing_host(self):
        self.tenant()
        bait = self.bait()
        for address in ("127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "0.0.0.0"):
            for answer in (self.create(address), self.probe(address)):
                self.assertEqual((answer.status, answer.json["code"]), (403, "not_allowed_here"), address)
                self.assertIn("berth company allow 'B' private-ssh", answer.json["remedy"])
        expected = list(self.refusals(NOWHERE))
        for host in NEAR:
            with self.subTest(host):
                self.assertEqual(list(self.refusals(host)), expected)
        with self.assertRaises(BlockingIOError, msg="the server connected to an address that is not public"):
            bait.accept()

    def test_an_allowance_opens_private_addresses_and_closes_them_again(self):
        self.tenant()
        environment = self.create("localhost").json["id"]
        self.allow(True)
        probed = self.server.post(f"/api/environments/{environment}/probe", {}, self.operator).json
        self.assertTrue(probed["ok"], probed)
        run = self.server.post(f"{self.company}/runs", {"command": "sleep", "args": ["600"],
                                                        "environmentId": environment}, self.operator).json["id"]

        def look():
            return self.server.get(f"/api/heartbeat-runs/{run}", **self.operator).json

        self.assertTrue(runs.eventually(lambda: look()["status"] == "running"), look())
        lease = look()["leaseId"]
        done = self.run_berth("exec", lease, "--", "true", **self.as_operator())
        self.assertEqual(done.returncode, 0, done.stderr)
        self.allow(False)
        refused = self.run_berth("exec", lease, "--", "true", **self.as_operator())
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("private-ssh", refused.stderr)
        # What is now forbidden can still be ended and removed.
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", {}, self.operator)
        ended = self.server.get(f"/api/heartbeat-runs/{run}?wait=30&until=end", **self.operator).json
        self.assertEqual(ended["status"], "cancelled", ended)
        self.assertTrue(runs.eventually(lambda: not runs.processes_with(f"hold {self.sshd.workspace}")))

    def as_operator(self):
        return {"BERTH_URL": f"http://127.0.0.1:{self.server.port}",
                "BERTH_TOKEN": self.operator["Authorization"].split()[1]}

    def test_a_draft_with_a_pasted_key_is_tested_and_nothing_of_the_key_is_kept(self):
        server = self.serve()
        body = {"driver": "ssh", "config": self.sshd.config()}
        probed = server.post(f"/api/companies/{server.company()}/environments/probe-config", body)
        self.assertEqual((probed.status, probed.json["ok"]), (200, True), probed.text)
        details = probed.json["details"]
        self.assertEqual({key: details[key] for key in ("host", "port", "username", "remoteWorkspacePath")},
                         {key: body["config"][key] for key in ("host", "port", "username", "remoteWorkspacePath")})
        self.assertEqual(details["remoteCwd"], str(self.sshd.workspace))

        draft = self.folder / "draft.json"
        draft.write_text(json.dumps(body))
        url = {"BERTH_URL": f"http://127.0.0.1:{server.port}"}
        tested = self.run_berth("env", "test", "--draft", f"@{draft}", "--json", **url)
        self.assertEqual(tested.returncode, 0, tested.stdout + tested.stderr)

        body["config"]["privateKey"] = body["config"]["privateKey"].replace("OPENSSH", "OPENSSL")
        wrong = server.post(f"/api/companies/{server.company()}/environments/probe-config", body)
        self.assertFalse(wrong.json["ok"], wrong.text)
        self.assertEqual(wrong.json["details"]["error"], wrong.json["summary"])
        self.assertEqual(server.get(f"/api/companies/{server.company()}/secrets").json, [])
        server.stop()
        middle = body["config"]["privateKey"].splitlines()[2].encode()
        for file in self.home.rglob("*"):
            if file.is_file():
                self.assertNotIn(middle, file.read_bytes(), file)
        self.assertNotIn(middle.decode(), server.said())
