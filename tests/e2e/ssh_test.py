"""Runs on an ssh host: they survive the server and the connection, and leave nothing there."""

import contextlib
import json
import os
import signal
import socket
import sys
import tempfile
import threading
import unittest
from pathlib import Path

import runs_support as runs
from sshd import PROGRAM, Sshd
from support import BerthTest

CRASHES = ["acquire.intended", "acquire.acted", "acquire.recorded", "execute.intended", "execute.acted",
           "execute.recorded", "execute.ended", "release.intended", "release.acted"]


class ProcessLists:
    """Repeatedly records all processes while it is open: their arguments and their variables."""

    def __enter__(self):
        self.all, self.over = set(), False
        self.thread = threading.Thread(target=self.watch)
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over = True
        self.thread.join()

    def watch(self):
        while not self.over:
            for pid in filter(str.isdigit, os.listdir("/proc")):
                # A process that has ended, or no longer has arguments, was seen before. The
                # variables are read first: with the arguments of a keeper that is about to become
                # the command they would be taken for the keeper's own.
                with contextlib.suppress(OSError):
                    environ = Path(f"/proc/{pid}/environ").read_bytes()
                    words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")
                    if words:
                        self.all.add((words.decode(errors="replace"), environ.decode(errors="replace")))


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
                # A host that was never reached has nothing to clean up.
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
        company = server.company()
        values = {name: f"{name}-" + os.urandom(8).hex() for name in ("variable", "secret", "of the agent")}
        marker, file = "berth-e2e-" + os.urandom(8).hex(), self.folder / "token"
        # One process, so that its arguments distinguish its environment from all others.
        program = (f"import os, pathlib, time; pathlib.Path({str(file)!r}).write_text(os.environ['BERTH_API_KEY']); "
                   f"time.sleep(3)  # {marker}")
        with ProcessLists() as seen:
            secret = server.post(f"/api/companies/{company}/secrets",
                                 {"name": "s", "value": values["secret"]}).json["id"]
            reference = {"type": "secret_ref", "secretId": secret}
            agent = server.post(f"/api/companies/{company}/agents", {
                "name": "Ada", "adapterType": "process", "defaultEnvironmentId": self.environment(server),
                "adapterConfig": {"command": sys.executable, "args": ["-c", program],
                                  "env": {"AGENT": values["of the agent"], "SECRET": reference}}}).json["id"]
            run = server.post(f"/api/agents/{agent}/heartbeat/invoke",
                              {"env": {"PROBE": values["variable"]}}).json["id"]
            ended = runs.wait_for_end(server, run)
            self.assertEqual(ended["status"], "succeeded", runs.output(server, run, "stderr"))
            self.check_left(server)
        values["token"] = file.read_text()
        key = (self.sshd.folder / "client_key").read_text().splitlines()
        values.update({f"line {i} of the key": line for i, line in enumerate(key[1:-1])})
        # It has seen the ssh client, the keeper on the host, and what the command itself got.
        own = [environ for words, environ in seen.all if marker in words and "time.sleep" in words]
        for name in ("variable", "secret", "of the agent", "token"):
            self.assertTrue(any(values[name] in environ for environ in own), f"{name} did not reach the command")
        for words in (f"ControlPath={self.home}", f"hold {self.sshd.workspace}"):
            self.assertTrue(any(words in line for line, _ in seen.all), f"no process with {words} was seen")
        for words, environ in seen.all:
            for name, value in values.items():
                self.assertNotIn(value, words, f"{name} is an argument")
                if marker not in words:
                    self.assertNotIn(value, environ, f"{name} is a variable of {words!r}")


if __name__ == "__main__":
    unittest.main()
