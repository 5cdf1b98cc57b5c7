"""Runs on a host behind ssh: they survive the server and the connection, and leave nothing there."""

import json
import os
import signal
import socket
import tempfile
import unittest
from pathlib import Path

import runs_support as runs
from sshd import PROGRAM, Sshd
from support import BerthTest

CRASHES = ["acquire.intended", "acquire.acted", "acquire.recorded", "execute.intended", "execute.acted",
           "execute.recorded", "execute.ended", "release.intended", "release.acted"]


@unittest.skipUnless(PROGRAM, "needs sshd: install openssh-server")
class OverSsh(BerthTest):
    def setUp(self):
        super().setUp()
        self.sshd = Sshd(self.folder / "sshd").start()
        self.addCleanup(self.sshd.stop)

    def environment(self, server, **more):
        body = {"name": "remote " + os.urandom(4).hex(), "driver": "ssh", "config": self.sshd.config(**more)}
        answer = server.post(f"/api/companies/{server.company()}/environments", body)
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json["id"]

    def script(self, pause="0.2"):
        self.ledger = Path(tempfile.mkdtemp(dir=self.folder)) / "ledger"
        return ["sh", "-c", f"echo once >> {self.ledger}; echo begin; sleep {pause}; echo end; echo said >&2"]

    def keepers(self):
        return runs.processes_with(f"hold {self.sshd.workspace}")

    def check_run(self, server, run):
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        self.assertEqual(runs.output(server, run), "begin\nend\n")
        self.assertEqual(runs.output(server, run, "stderr"), "said\n")
        self.assertEqual(self.ledger.read_text(), "once\n")
        self.check_left(server)

    def check_left(self, server):
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)),
                        runs.unfinished_leases(server))
        self.assertTrue(runs.eventually(lambda: not self.keepers()), self.keepers())
        leases = self.sshd.workspace / ".berth" / "leases"
        self.assertEqual(list(leases.iterdir()) if leases.exists() else [], [])

    def test_a_run_has_its_lease_and_its_output(self):
        server = self.serve()
        environment = self.environment(server)
        run = runs.start(server, *self.script(), environmentId=environment)
        self.check_run(server, run)
        lease = runs.leases(server)[0]
        self.assertIn(f"ssh://{self.sshd.user}@127.0.0.1:{self.sshd.port}", lease["providerLeaseId"])
        for name in ("host", "port", "username", "remoteWorkspacePath", "remoteCwd"):
            self.assertIn(name, lease["metadata"])
        # Nothing of the connection outlives the server.
        self.assertEqual(server.stop(), 0)
        self.assertTrue(runs.eventually(lambda: not runs.processes_with(str(self.home))),
                        runs.processes_with(str(self.home)))

    def test_an_agent_calls_back_at_the_first_candidate_that_answers(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        wanted = f"http://127.0.0.1:{port}"
        server = self.serve(port=port, PAPERCLIP_RUNTIME_API_CANDIDATES_JSON=json.dumps(
            ["http://127.0.0.1:1", wanted]))
        environment = self.environment(server)
        made = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "process", "defaultEnvironmentId": environment,
            "adapterConfig": {"command": "sh", "args": ["-c", "echo $PAPERCLIP_API_URL"]}})
        self.assertEqual(made.status, 201, made.text)
        run = server.post(f"/api/agents/{made.json['id']}/heartbeat/invoke", {}).json["id"]
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded", runs.look(server, run))
        self.assertEqual(runs.output(server, run), wanted + "\n")
        self.assertEqual(runs.leases(server)[0]["metadata"]["paperclipApiUrl"], wanted)

    def test_a_run_survives_the_death_of_the_server_at_every_step(self):
        for step in CRASHES:
            with self.subTest(step):
                home = self.folder / step
                first = self.serve(home=home)
                environment = self.environment(first)
                first.stop()
                server = self.serve(home=home, BERTH_FAULT_POINT=step)
                run = runs.start(server, *self.script(), environmentId=environment)
                self.assertEqual(server.process.wait(60), -signal.SIGKILL, f"{step} was not passed")
                again = self.serve(home=home)
                self.check_run(again, run)
                again.stop()
                self.assertTrue(runs.eventually(lambda: not runs.processes_with(str(home))),
                                runs.processes_with(str(home)))

    def test_a_host_that_goes_down_and_comes_back_loses_nothing(self):
        server = self.serve()
        run = runs.start(server, *self.script(pause="4"), environmentId=self.environment(server))
        runs.wait_until(server, run, {"running"})
        self.sshd.stop()
        self.assertNotEqual(self.keepers(), [], "the command goes on without a connection")
        self.sshd.start()
        self.check_run(server, run)

    def test_cancel_kills_the_remote_tree(self):
        server = self.serve()
        marker = "berth-e2e-" + os.urandom(6).hex()
        script = f"trap '' TERM; (setsid sh -c 'trap \"\" TERM; sleep 600; : {marker}' &) ; sleep 600; : {marker}"
        run = runs.start(server, "sh", "-c", script, environmentId=self.environment(server), graceMs=500)
        runs.wait_until(server, run, {"running"})
        self.assertTrue(runs.eventually(lambda: len(runs.processes_with(marker)) >= 2))
        self.assertEqual(server.post(f"/api/heartbeat-runs/{run}/cancel", {}).status, 200)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "cancelled")
        self.assertTrue(runs.eventually(lambda: not runs.processes_with(marker)))
        self.check_left(server)

    def test_what_is_wrong_with_a_host_is_said_by_a_code_and_a_remedy(self):
        server = self.serve()
        other = Sshd(self.folder / "other")
        wrong_host_key = other.config()["knownHosts"].split(" ", 1)[1]
        cases = {
            "ssh_host_key_changed": {"knownHosts": f"[127.0.0.1]:{self.sshd.port} {wrong_host_key}"},
            "ssh_host_key_unknown": {"knownHosts": None},
            "ssh_auth_failed": {"privateKey": (other.folder / "client_key").read_text()},
            "ssh_key_invalid": {"privateKey": "-----BEGIN NONSENSE-----\nAAAA\n-----END NONSENSE-----\n"},
            "ssh_unreachable": {"port": other.port, "knownHosts": other.config()["knownHosts"]},
        }
        for code, more in cases.items():
            with self.subTest(code):
                environment = self.environment(server, **more)
                run = runs.start(server, "true", environmentId=environment)
                ended = runs.wait_for_end(server, run)
                self.assertEqual((ended["status"], ended["errorCode"]), ("failed", code), ended)
                self.assertIn("127.0.0.1", ended["error"])
                self.assertIn("Remedy: ", ended["error"])
                probe = server.post(f"/api/environments/{environment}/probe", {}).json
                self.assertFalse(probe["ok"])
                wrong = [step for step in probe["steps"] if not step["ok"]]
                self.assertEqual([step["code"] for step in wrong], [code], probe)
                self.assertTrue(wrong[0]["remedy"])
                # A host that was never entered has nothing that must be cleaned up.
                self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))

    def test_a_probe_lists_its_steps_with_their_times(self):
        server = self.serve()
        probe = server.post(f"/api/environments/{self.environment(server)}/probe", {}).json
        self.assertTrue(probe["ok"], probe)
        names = [step["name"] for step in probe["steps"]]
        for name in ("connect", "workspace", "lease", "command", "release"):
            self.assertIn(name, names)
        self.check_left(server)

    def test_no_variable_and_no_key_is_seen_in_a_process_list(self):
        server = self.serve()
        value = "seen-" + os.urandom(8).hex()
        run = runs.start(server, "sleep", "3", environmentId=self.environment(server), env={"PROBE": value})
        runs.wait_until(server, run, {"running"})
        self.assertEqual(runs.processes_with(value), [])
        runs.wait_for_end(server, run)


if __name__ == "__main__":
    unittest.main()
