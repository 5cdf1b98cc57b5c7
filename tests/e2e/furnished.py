"""A company that has one real object of each kind, and a key of each role. Objects with their own
API path are in `ids`, under the name of their path parameter."""

import json
import sys
import textwrap

import runs_support as runs
from plugin_leaks_test import LEAKY

PLUGIN = "test.leaky"
SESSIONS = "/api/environment-custom-image-setup-sessions"
PORT = 8080

LISTENS = ("import http.server; print('listening', flush=True); "
           f"http.server.HTTPServer(('127.0.0.1', {PORT}), http.server.SimpleHTTPRequestHandler).serve_forever()")

# Keeps the token of its run where the test finds it.
CALLS_BACK = "import os, pathlib, time; pathlib.Path({file!r}).write_text(os.environ['BERTH_API_KEY']); time.sleep(600)"

# Answers one turn like Claude Code, and leaves a file in its agent's home.
CLAUDE = textwrap.dedent("""\
    #!{python}
    import json, os, pathlib, sys
    sys.stdin.read()
    session = "4e52357e-0000-4000-8000-000000000000"
    (pathlib.Path(os.environ["HOME"]) / "kept").write_text("yes")
    print(json.dumps({{"type": "system", "subtype": "init", "session_id": session, "model": "m"}}))
    print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "session_id": session,
                       "result": "the answer of {name}"}}))
    """)


def install_plugin(server, folder):
    """An instance plugin that writes a log line for each command; companies have settings for it."""
    package = folder / "leaky"
    package.mkdir(exist_ok=True)
    (package / "worker").write_text(LEAKY)
    (package / "worker").chmod(0o755)
    (package / "manifest.json").write_text(json.dumps({
        "id": PLUGIN, "apiVersion": 1, "version": "1.0.0", "displayName": "Leaky", "description": "Tells everything",
        "author": "Berth", "categories": ["automation"],
        "capabilities": ["environment.drivers.register", "activity.log.write", "events.emit"],
        "entrypoints": {"worker": "./worker"},
        "instanceConfigSchema": {"type": "object", "properties": {"region": {"type": "string"}}},
        "environmentDrivers": [{"driverKey": "leaky", "kind": "sandbox_provider", "displayName": "Leaky",
                                "configSchema": {"type": "object"}}]}))
    made = server.request("POST", "/api/plugins/install", {"packageName": str(package), "isLocalPath": True},
                          {"Authorization": f"Bearer {server.keys['instance']}"})
    assert (made.status, made.json.get("status")) == (201, "ready"), made.text


class Company:
    """Its keys are in server.keys, as "ROLE of NAME"; "run of NAME" is the token of an active run."""

    def __init__(self, server, folder, name):
        self.server, self.folder, self.name, self.turn = server, folder, name, None
        self.id = self.made("/api/companies", {"name": f"company {name}"})["id"]
        self.at = f"/api/companies/{self.id}"
        self.asked("PATCH", f"{self.at}/allowances", {"local": True})
        self.local = next(row["id"] for row in self.asked("GET", f"{self.at}/environments")
                          if row["name"] == "Local")
        self.secret = self.made(f"{self.at}/secrets", {"name": f"door of {name}", "value": f"value of {name}"})
        self.ids = {"company": self.id, "secret": self.secret["id"], "key": self.secret["key"],
                    "token": self.made(f"{self.at}/tokens", {"name": "spare"})["token"]["id"]}
        for role in ("viewer", "operator", "admin"):
            server.keys[f"{role} of {name}"] = self.made(f"{self.at}/tokens", {"name": role, "role": role})["key"]
        self.make_agent_that_calls_back()

    def asked(self, verb, path, body=None):
        answer = self.server.request(verb, path, body, {"Authorization": f"Bearer {self.server.keys['instance']}"})
        assert answer.status in (200, 201, 202), f"{verb} {path}: {answer.text}"
        return answer.json

    def made(self, path, body):
        return self.asked("POST", path, body)

    def agent(self, name, adapter, **config):
        env = {"DOOR": {"type": "secret_ref", "secretId": self.secret["id"]}}
        return self.made(f"{self.at}/agents", {"name": name, "adapterType": adapter, "defaultEnvironmentId": self.local,
                                               "adapterConfig": {"env": env, **config}})["id"]

    def make_agent_that_calls_back(self):
        file = self.folder / f"token of {self.name}"
        caller = self.agent("caller", "process", command=sys.executable,
                            args=["-c", CALLS_BACK.format(file=str(file))])
        self.caller_run = self.made(f"/api/agents/{caller}/heartbeat/invoke", {})["id"]
        assert runs.eventually(lambda: file.exists() and file.read_text()), self.run(self.caller_run)
        self.server.keys[f"run of {self.name}"] = file.read_text()
        self.server.keys[f"agent of {self.name}"] = self.made(f"{self.at}/tokens", {
            "name": "agent", "kind": "agent_key", "agentId": caller})["key"]

    def furnish(self):
        """Everything that the routes name."""
        self.make_turn()
        self.make_places()
        self.make_idle_sandbox()
        self.use_plugin()

    def run(self, run, query="wait=1"):
        return self.asked("GET", f"/api/heartbeat-runs/{run}?{query}")

    def ended(self, run):
        assert runs.eventually(lambda: self.run(run)["status"] in runs.FINAL, 60), self.run(run)
        assert self.run(run)["status"] == "succeeded", self.run(run)
        return self.run(run, "wait=30&until=release")

    def make_turn(self):
        """An agent with a home, and the transcript of its turn."""
        stage = self.folder / f"stage {self.name}"
        stage.mkdir()
        (stage / "claude").write_text(CLAUDE.format(python=sys.executable, name=self.name))
        (stage / "claude").chmod(0o755)
        self.ids["agent"] = self.agent(f"agent of {self.name}", "claude_local", path=[str(stage)])
        self.turn = self.made(f"/api/agents/{self.ids['agent']}/heartbeat/invoke", {"prompt": "go on"})["id"]
        self.ended(self.turn)

    def place(self, name, **config):
        return self.made(f"{self.at}/environments", {"name": f"{name} of {self.name}", "driver": "sandbox",
                                                     "config": {"provider": "linux", **config}})["id"]

    def make_places(self):
        """An environment that a user has prepared twice and prepares again, and a run that listens
        in it."""
        place = self.ids["environment"] = self.place("place", egress={"allow": ["example.org"]})
        for _ in range(2):
            begun = self.made(f"/api/environments/{place}/custom-image-setup-sessions", {})["session"]["id"]
            self.ids["template"] = self.made(f"{SESSIONS}/{begun}/finish", {})["template"]["id"]
        self.ids["session"] = self.made(f"/api/environments/{place}/custom-image-setup-sessions", {})["session"]["id"]
        self.ids["run"] = self.made(f"{self.at}/runs", {"command": "python3", "args": ["-u", "-c", LISTENS],
                                                        "environmentId": place})["id"]
        log = f"/api/heartbeat-runs/{self.ids['run']}/log?format=raw&stream=stdout"
        key = {"Authorization": f"Bearer {self.server.keys['instance']}"}
        assert runs.eventually(lambda: "listening" in self.server.request("GET", log, None, key).text), \
            self.run(self.ids["run"])
        self.ids["lease"] = self.run(self.ids["run"])["leaseId"]
        done = self.made(f"/api/environment-leases/{self.ids['lease']}/exec",
                         {"argv": ["sh", "-c", f"echo file of {self.name} > f"]})
        assert done["exitCode"] == 0, done
        # A lease without a run, and an environment without a setup session.
        self.free = {"lease": self.made(f"/api/environment-leases/{self.ids['lease']}/fork", {})["id"],
                     "environment": self.place("free")}

    def make_idle_sandbox(self):
        run = self.made(f"{self.at}/runs", {"command": "true", "environmentId": self.place("kept", reuseLease=True)})
        lease = self.ended(run["id"])["leaseId"]
        self.ids["sandbox"] = self.asked("GET", f"/api/environment-leases/{lease}")["sandboxId"]

    def use_plugin(self):
        self.made(f"/api/plugins/{PLUGIN}/config", {"companyId": self.id,
                                                    "configJson": {"region": f"region of {self.name}"}})
        place = self.made(f"{self.at}/environments", {"name": "leaky", "driver": "sandbox",
                                                      "config": {"provider": "leaky"}})["id"]
        self.ended(self.made(f"{self.at}/runs", {"command": "true", "environmentId": place,
                                                 "env": {"MARKER": f"line of {self.name}"}})["id"])

    def traces(self):
        """Texts that no other company may read anywhere."""
        words = [f"{what} of {self.name}" for what in ("company", "door", "value", "agent", "answer", "file", "place",
                                                       "kept", "region", "line")]
        return [one for one in (*self.ids.values(), self.turn, self.caller_run, *words) if one]

    def end(self):
        """Ends what would outlive the test."""
        key = {"Authorization": f"Bearer {self.server.keys['instance']}"}
        rows = lambda what: self.server.request("GET", f"{self.at}/{what}", None, key).json
        for session in filter(None, [self.ids.get("session")]):
            self.server.post(f"{SESSIONS}/{session}/cancel", {}, key)

        def is_over():
            for run in rows("heartbeat-runs"):
                if run["status"] not in runs.FINAL:
                    self.server.post(f"/api/heartbeat-runs/{run['id']}/cancel", {}, key)
            for lease in rows("environment-leases"):
                if lease["status"] == "active" and not lease["heartbeatRunId"]:
                    self.server.post(f"/api/environment-leases/{lease['id']}/destroy", {}, key)
            left = [one["id"] for one in rows("sandboxes") if one["status"] != "destroyed"]
            for one in left:
                self.server.request("DELETE", f"/api/sandboxes/{one}", None, key)
            return not left

        assert runs.eventually(is_over, every_s=0.2), [(one["provider"], one["status"]) for one in rows("sandboxes")]
