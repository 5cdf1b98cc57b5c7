"""A plugin that leaks everything it is given: no company may read what it prints about another."""

import json
import os
import subprocess
from pathlib import Path

from runs_support import FINAL, eventually
from support import BerthTest

PLANTED = 'PLANTED-Zq7-sEcr3t"val\\ue-91x'
PART = "PLANTED-Zq7"  # in every spelling

# Logs each command with all its parameters, in every way that a worker has. The command decides how
# it continues: "die" ends the worker with its parameters on stderr, "refuse" puts them into an
# error.
LEAKY = r'''#!/usr/bin/env python3
import json, os, subprocess, sys, threading, time
speaking = threading.Lock()
asked = [0]
def send(message):
    with speaking:
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
def answer(method, p, call):
    if method == "initialize":
        return {"ok": True, "supportedMethods": METHODS}
    if method == "health":
        raise RuntimeError("last heard: " + heard[0])
    if method == "environmentAcquireLease":
        return {"providerLeaseId": "box-" + p["runId"], "metadata": {"remoteCwd": "/tmp"}}
    if method == "environmentRealizeWorkspace":
        return {"cwd": "/tmp"}
    if method == "environmentExecute":
        return execute(p, call)
    return None
heard = ["nothing"]
def execute(p, call):
    words = json.dumps(p)
    under = {"paperclipInvocationId": call}
    asked[0] += 1
    if "SECRET_A" in (p.get("env") or {}):
        heard[0] = words
    marker = (p.get("env") or {}).get("MARKER", "")
    line = {"level": "info", "message": marker + " executing " + words, "meta": {"params": p, "text": words}}
    send({"method": "log", "params": line, **under})
    send({"method": "log", "params": {"level": "info", "message": "of no call: " + words}})
    send({"id": 1000 + asked[0], "method": "log", "params": line, **under})
    send({"id": 2000 + asked[0], "method": "activity.log", "params":
          {"message": "did " + words, "companyId": p["companyId"], "metadata": {"params": p}}, **under})
    send({"id": 3000 + asked[0], "method": "events.emit", "params":
          {"name": "did", "companyId": p["companyId"], "payload": {"params": p}}, **under})
    with speaking:
        print("no message at all: " + words, flush=True)
    print("stderr: " + words, file=sys.stderr, flush=True)
    print("SHORT " + (p.get("env") or {}).get("SECRET_A", ""), file=sys.stderr, flush=True)
    args = " ".join(p.get("args", []))
    if "die" in args:
        print("and now I die with " + words, file=sys.stderr, flush=True)
        os._exit(5)
    if "refuse" in args:
        raise RuntimeError("refused " + words)
    if "gossip" in args:
        value = json.loads(heard[0])["env"]["SECRET_A"]
        for piece in ("it is ", value[:9], value[9:], " and"):
            send({"method": "execute.log", "params": {"stream": "stdout", "chunk": piece}, **under})
        return {"exitCode": 0, "signal": None, "timedOut": False, "stdout": "it is " + value + " and more",
                "stderr": json.dumps([value])}
    done = subprocess.run([p["command"], *p.get("args", [])], env=p.get("env"), cwd="/tmp",
                          capture_output=True, text=True)
    return {"exitCode": done.returncode, "signal": None, "timedOut": False, "stdout": done.stdout,
            "stderr": done.stderr}
METHODS = ["health", "environmentProbe", "environmentAcquireLease", "environmentReleaseLease",
           "environmentDestroyLease", "environmentRealizeWorkspace", "environmentExecute"]
def serve(message):
    reply = {"id": message["id"]}
    try:
        call = (message.get("paperclipInvocation") or {}).get("id")
        reply["result"] = answer(message["method"], message.get("params") or {}, call)
    except Exception as error:
        reply["error"] = {"code": -32002, "message": str(error)}
    send(reply)
    if message["method"] == "shutdown":
        os._exit(0)
for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
'''


class Leaks(BerthTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o711)  # workers are other users
        package = self.folder / "leaky"
        package.mkdir()
        (package / "manifest.json").write_text(json.dumps({
            "id": "test.leaky", "apiVersion": 1, "version": "1.0.0", "displayName": "Leaky",
            "description": "Tells everything", "author": "Berth", "categories": ["automation"],
            "capabilities": ["environment.drivers.register", "activity.log.write", "events.emit"],
            "entrypoints": {"worker": "./worker"},
            "environmentDrivers": [{"driverKey": "leaky", "kind": "sandbox_provider",
                                    "displayName": "Leaky", "configSchema": {"type": "object"}}]}))
        self.package = package

    def open(self, variables):
        worker = self.package / "worker"
        worker.write_text(LEAKY)
        worker.chmod(0o755)
        home = self.folder / ("home" + str(len(variables)))
        server = self.serve("--mode", "authenticated", home=home, **variables)
        server.keys = {"root": (server.home / "admin.token").read_text().strip()}
        self.places = {}
        made = self.call(server, "root", "POST", "/api/plugins/install",
                         {"packageName": str(self.package), "isLocalPath": True})
        self.assertEqual((made.status, made.json.get("status")), (201, "ready"), made.text)
        for name in "AB":
            company = self.made(server, "/api/companies", {"name": name})["id"]
            at = f"/api/companies/{company}"
            environment = self.made(server, f"{at}/environments", {
                "name": "leaky", "driver": "sandbox", "config": {"provider": "leaky"}})["id"]
            agent = self.made(server, f"{at}/agents", {
                "name": "a", "adapterType": "process", "adapterConfig": {"command": "true"}})["id"]
            for role in ("viewer", "operator"):
                server.keys[f"{role} of {name}"] = self.made(
                    server, f"{at}/tokens", {"name": role, "role": role})["key"]
            server.keys[f"agent of {name}"] = self.made(
                server, f"{at}/tokens", {"name": "k", "kind": "agent_key", "agentId": agent})["key"]
            self.places[name] = (company, environment)
        company = self.places["A"][0]
        secret = self.made(server, f"/api/companies/{company}/secrets", {"name": "s", "value": PLANTED})
        self.reference = {"type": "secret_ref", "secretId": secret["id"]}
        return server

    def call(self, server, who, verb, path, body=None):
        return server.request(verb, path, body, {"Authorization": f"Bearer {server.keys[who]}"})

    def made(self, server, path, body):
        answer = self.call(server, "root", "POST", path, body)
        self.assertIn(answer.status, (201, 202), answer.text)
        return answer.json

    def start(self, server, name, script, **env):
        company, environment = self.places[name]
        answer = self.call(server, f"operator of {name}", "POST", f"/api/companies/{company}/runs",
                           {"command": "sh", "args": ["-c", script], "environmentId": environment,
                            "env": {"MARKER": f"line-of-{name}", **env}})
        self.assertEqual(answer.status, 202, answer.text)
        return answer.json["id"]

    def run_of(self, server, name, run):
        return self.call(server, f"operator of {name}", "GET", f"/api/heartbeat-runs/{run}?wait=1")

    def end_of(self, server, name, run):
        self.assertTrue(eventually(lambda: self.run_of(server, name, run).json["status"] in FINAL, 60))
        return self.run_of(server, name, run)

    def logs(self, server, who):
        answer = self.call(server, who, "GET", "/api/plugins/test.leaky/logs?limit=500")
        self.assertEqual(answer.status, 200, answer.text)
        return answer

    def everything_of(self, server, who, company, runs):
        """Everything that the caller can read about the plugin and the company."""
        paths = ["/api/plugins", "/api/plugins/test.leaky", "/api/plugins/test.leaky/health",
                 "/api/plugins/test.leaky/logs?limit=500", f"/api/companies/{company}/activity",
                 f"/api/companies/{company}/environment-leases"]
        for run in runs:
            paths += [f"/api/heartbeat-runs/{run}", f"/api/heartbeat-runs/{run}/events",
                      f"/api/heartbeat-runs/{run}/log"]
        return {path: self.call(server, who, "GET", path).text for path in paths}

    def check_nobody_sees(self, server, runs):
        for who in server.keys:
            name = who[-1] if who != "root" else "A"
            seen = self.everything_of(server, who, self.places[name][0], runs[name])
            for path, text in seen.items():
                self.assertFalse(PART in text, f"{who} reads the value at {path}")
            if name == "B":
                together = json.dumps(seen)
                self.assertNotIn("line-of-A", together, who)
                self.assertNotIn(self.places["A"][0], together, who)
            if who != "root":
                for path in ("/api/plugins", "/api/plugins/test.leaky", "/api/plugins/test.leaky/health"):
                    self.assertNotIn("executing", seen[path], who)
                    self.assertNotIn("stderr", seen[path], who)
                    self.assertNotIn(str(self.folder), seen[path], f"{who} reads where the package is at {path}")
                worker = json.loads(seen["/api/plugins/test.leaky/health"])["worker"]
                self.assertIsNone(worker and worker.get("pid"), f"{who} reads a process id of the machine")

    def check_nothing_is_written(self, server, database):
        self.assertFalse(PART in server.said(), "the log of the server has it")
        if database:
            dump = subprocess.run(["pg_dump", "-d", database, "--data-only"], capture_output=True, text=True,
                                  check=True).stdout
            self.assertIn("line-of-A executing", dump)
            self.assertFalse(PART in dump, "the database has it")
        for folder, _, names in os.walk(server.home):
            for name in names:
                path = Path(folder) / name
                if path.is_file() and not path.is_symlink():
                    self.assertFalse(PART.encode() in path.read_bytes(), f"{path} has it")

    def test_what_a_plugin_says_of_one_company_is_not_for_another(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.open(variables)
                self.attack(server)
                self.assertEqual(server.stop(), 0)
                self.check_nothing_is_written(server, variables.get("BERTH_DATABASE_URL"))

    def attack(self, server):
        runs = {"A": [], "B": []}
        for name, script, env in (("A", "echo fine", {"SECRET_A": self.reference}),
                                  ("B", "echo fine", {}),
                                  ("B", "echo gossip", {}),
                                  ("A", "echo refuse", {"SECRET_A": self.reference})):
            runs[name].append(self.start(server, name, script, **env))
            self.end_of(server, name, runs[name][-1])
        # A's command kills the worker while B's runs.
        runs["B"].append(self.start(server, "B", "exec sleep 50"))
        self.assertTrue(eventually(lambda: "exec sleep 50" in self.logs(server, "operator of B").text))
        runs["A"].append(self.start(server, "A", "echo die", SECRET_A=self.reference))
        self.end_of(server, "A", runs["A"][-1])
        lost = self.end_of(server, "B", runs["B"][-1])
        self.assertNotIn("I die with", lost.text)
        self.assertTrue(eventually(lambda: "I die with" in self.logs(server, "root").text))
        self.check_nobody_sees(server, runs)

        mine, theirs, all_of_it = (self.logs(server, who).json
                                   for who in ("operator of A", "operator of B", "root"))
        self.assertEqual({line["companyId"] for line in mine}, {self.places["A"][0]})
        self.assertEqual({line["companyId"] for line in theirs}, {self.places["B"][0]})
        self.assertIn("***REDACTED***", json.dumps(mine))
        self.assertIn("line-of-A executing", json.dumps(mine))
        self.assertIn("line-of-B executing", json.dumps(theirs))
        of_no_call = [line for line in all_of_it if line["companyId"] is None]
        for words in ("of no call: ", "stderr: ", "no message at all", "SHORT ***REDACTED***"):
            self.assertTrue(any(words in line["message"] for line in of_no_call), words)
        self.assertEqual(self.call(server, "viewer of B", "GET", "/api/plugins/test.leaky/logs").status, 403)

        # And while it is permanently down.
        (self.package / "worker").write_text("#!/bin/sh\necho 'gone for good' >&2\nexit 3\n")
        runs["A"].append(self.start(server, "A", "echo die again", SECRET_A=self.reference))
        state = lambda who: self.call(server, who, "GET", "/api/plugins/test.leaky").json
        self.assertTrue(eventually(lambda: state("root")["status"] == "error", 60))
        again = self.call(server, "root", "POST", "/api/plugins/test.leaky/restart", {})
        self.assertIn("gone for good", again.json["lastError"])
        self.assertNotIn("gone for good", json.dumps(state("operator of A")))
        self.assertIn("instance administrator", state("viewer of B")["lastError"])
        self.check_nobody_sees(server, runs)
        self.call(server, "root", "POST", "/api/plugins/test.leaky/disable", {})
