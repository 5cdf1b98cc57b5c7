"""Plugins from outside: installed, configured, run, killed, upgraded and removed."""

import json
import os
import signal
import stat
import subprocess
import unittest
from pathlib import Path

from runs_support import (eventually, output, start, unfinished_leases, wait_for_end,
                          wait_until)
from support import BERTH, BerthTest

FAKE = Path(BERTH).parent / "plugins" / "fake"
SECRET = "sk-hidden-6f1d0c"

# A short provider: a sandbox is a folder, and every call is recorded with its config.
PROVIDER = r'''#!/usr/bin/env python3
import base64, json, os, shutil, subprocess, sys, threading
STATE, VERSION = "@STATE@", "@VERSION@"
speaking = threading.Lock()
def there(name):
    return os.path.exists(os.path.join(STATE, name))
def sandbox(name):
    return os.path.join(STATE, "boxes", name.replace("/", "_"))
def answer(method, p):
    with open(os.path.join(STATE, "calls"), "a") as calls:
        calls.write(json.dumps({"method": method, "config": p.get("config"), "user": os.getuid(),
                                "version": VERSION}) + "\n")
    trap = os.path.join(STATE, "die-at-" + method)
    if os.path.exists(trap):
        os.remove(trap)
        os._exit(7)
    if method == "initialize":
        more = SYNC if there("sync") else []
        return {"ok": True, "supportedMethods": METHODS + ["validateConfig"] + more}
    if method == "health":
        return {"status": "ok"}
    if method == "validateConfig":
        bad = p["config"].get("region") == "moon"
        return {"ok": not bad, "errors": ["there is no moon"] if bad else []}
    if method == "environmentValidateConfig":
        bad = p["config"].get("size") == 13
        return {"ok": not bad, "errors": ["thirteen is unlucky"] if bad else [],
                "normalizedConfig": p["config"]}
    if method == "environmentProbe":
        return {"ok": True, "summary": "key " + str(p["config"].get("apiKey")),
                "metadata": {"echo": p["config"]}}
    if method == "environmentAcquireLease":
        by_run = not os.path.exists(os.path.join(STATE, "names-at-random"))
        name = "box-" + (p["runId"] if by_run else os.urandom(8).hex())
        os.makedirs(sandbox(name), exist_ok=True)
        trap = os.path.join(STATE, "die-after-" + method)
        if os.path.exists(trap):
            os.remove(trap)
            os._exit(7)
        return {"providerLeaseId": name, "metadata": {"remoteCwd": sandbox(name), "leak": p["config"]}}
    if method == "environmentResumeLease":
        name = p["providerLeaseId"]
        return {"providerLeaseId": name if os.path.isdir(sandbox(name)) else None}
    if method in ("environmentReleaseLease", "environmentDestroyLease"):
        if p.get("providerLeaseId"):
            shutil.rmtree(sandbox(p["providerLeaseId"]), ignore_errors=True)
        return None
    if method == "environmentRealizeWorkspace":
        return {"cwd": sandbox(p["lease"]["providerLeaseId"])}
    if method == "environmentExecute":
        words = p.get("args", [])
        if there("lie.tar") and "tar -C" in "".join(words):
            scratch = base64.b64decode(words[5]).decode()
            shutil.copy(os.path.join(STATE, "lie.tar"), scratch)
            return {"exitCode": 0, "timedOut": False, "stdout": str(os.path.getsize(scratch)) + " 0",
                    "stderr": ""}
        env = p.get("env") or {}
        if there("tools"):
            env["PATH"] = os.path.join(STATE, "tools")
        done = subprocess.run([p["command"], *words], cwd=p.get("cwd"), env=env,
                              input=p.get("stdin", ""), capture_output=True, text=True, errors="replace")
        return {"exitCode": done.returncode, "signal": None, "timedOut": False,
                "stdout": done.stdout, "stderr": done.stderr}
    if method in SYNC:
        return {"operations": [carry(method, one) for one in p["operations"]]}
    raise KeyError(method)
def carry(method, operation):
    for file in operation["files"]:
        to = file["targetPath"]
        if method == "environmentSyncOut" and there("lie"):
            lie = os.path.join(STATE, "lie")
            subprocess.run(["cp", "-a", lie, to], check=True)  # in a box the two are of different mounts
            subprocess.run(["rm", "-rf", lie], check=True)
        elif file["kind"] == "directory":
            shutil.rmtree(to, ignore_errors=True)
            shutil.copytree(file["sourcePath"], to, symlinks=True)
        else:
            shutil.copy(file["sourcePath"], to)
    return {"operationId": operation["operationId"], "filesTransferred": 1, "bytesTransferred": 0}
METHODS = ["health", "environmentValidateConfig", "environmentProbe", "environmentAcquireLease",
           "environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease",
           "environmentRealizeWorkspace", "environmentExecute"]
SYNC = ["environmentSyncIn", "environmentSyncOut"]
def serve(message):
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        if message["method"] == "shutdown":
            reply["result"] = None
        else:
            reply["result"] = answer(message["method"], message.get("params") or {})
    except KeyError as error:
        reply["error"] = {"code": -32601, "message": "no " + str(error)}
    except Exception as error:
        reply["error"] = {"code": -32002, "message": str(error)}
    with speaking:
        print(json.dumps(reply), flush=True)
    if message["method"] == "shutdown":
        os._exit(0)
for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
'''

# Subscribes while it starts, records the events it gets, and reports that.
LISTENER = r'''#!/usr/bin/env python3
import json, os, sys
STATE = "@STATE@"
def note(row):
    with open(os.path.join(STATE, "calls"), "a") as calls:
        calls.write(json.dumps(row) + "\n")
def send(message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
asked = []
def ask(method, params, invocation=None):
    asked.append(method)
    send({"id": len(asked), "method": method, "params": params,
          **({"paperclipInvocationId": invocation} if invocation else {})})
for line in sys.stdin:
    message = json.loads(line)
    method, params = message.get("method"), message.get("params") or {}
    if method is None:
        if "error" in message:
            note({"method": "wrong", "error": message["error"]["code"]})
    elif method == "initialize":
        ask("events.subscribe", {"eventPattern": "secret.created", "filter": None})
        ask("events.subscribe", {"eventPattern": "plugin.*"})
        ask("events.subscribe", {"eventPattern": "a*b"})
        ask("events.subscribe", {"eventPattern": "run.*", "filter": {"moon": "full"}})
        send({"id": message["id"], "result": {"ok": True, "supportedMethods": []}})
    elif method == "onEvent":
        scope = message["paperclipInvocation"]
        note({"method": method, "event": params["event"], "scope": scope["scope"]})
        if params["event"]["eventType"] == "secret.created":
            ask("events.emit", {"name": "heard", "companyId": params["event"]["companyId"], "payload": {}},
                scope["id"])
    else:
        send({"id": message["id"], "result": None})
        if method == "shutdown":
            sys.exit(0)
'''

SCHEMA = {
    "type": "object", "additionalProperties": False, "required": ["region"],
    "properties": {
        "region": {"type": "string", "enum": ["eu", "us"], "x-paperclip-group": "Place"},
        "size": {"type": "integer", "minimum": 1, "default": 2},
        "apiKey": {"type": "string", "format": "secret-ref"},
        "registries": {"type": "array", "items": {"type": "object", "properties": {
            "url": {"type": "string"}, "token": {"type": "string", "format": "secret-ref"}}}},
    }}


class PluginTest(BerthTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o711)  # workers are other users
        self.state = self.folder / "state"
        (self.state / "boxes").mkdir(parents=True)
        for place in (self.state, self.state / "boxes"):
            place.chmod(0o777)

    def serve(self, *flags, **options):
        # The workers of these tests record their calls where the tests can read them.
        options.setdefault("BERTH_PLUGIN_FOLDERS", str(self.state))
        return super().serve(*flags, **options)

    def write_provider(self, version="1.0.0", capabilities=("environment.drivers.register",), name="p"):
        package = self.folder / name
        package.mkdir(exist_ok=True)
        worker = package / "worker"
        worker.write_text(PROVIDER.replace("@STATE@", str(self.state)).replace("@VERSION@", version))
        worker.chmod(0o755)
        (package / "manifest.json").write_text(json.dumps({
            "id": "test.boxes", "apiVersion": 1, "version": version, "displayName": "Boxes",
            "description": "Folders as sandboxes", "author": "Berth", "categories": ["automation"],
            "capabilities": list(capabilities), "entrypoints": {"worker": "./worker"},
            "instanceConfigSchema": {"type": "object", "properties": {
                "region": {"type": "string"}, "token": {"type": "string", "format": "secret-ref"}}},
            "environmentDrivers": [{"driverKey": "boxes", "kind": "sandbox_provider",
                                    "displayName": "Boxes", "configSchema": SCHEMA}]}))
        return package

    def install(self, server, package):
        answer = server.post("/api/plugins/install", {"packageName": str(package), "isLocalPath": True})
        self.assertEqual(answer.status, 201, answer.text)
        self.assertEqual(answer.json["status"], "ready", answer.text)
        return answer.json

    def environment(self, server, name="boxes", **config):
        body = {"name": name, "driver": "sandbox",
                "config": {"provider": "boxes", "region": "eu", **config}}
        return server.post(f"/api/companies/{server.company()}/environments", body)

    def calls(self, method=None):
        lines = (self.state / "calls").read_text().splitlines()
        rows = [json.loads(line) for line in lines]
        return [row for row in rows if method in (None, row["method"])]

    def boxes(self):
        return sorted(os.listdir(self.state / "boxes"))

    def status(self, server):
        return server.get("/api/plugins/test.boxes").json["status"]

    def worker_pid(self, server):
        return server.get("/api/plugins/test.boxes/health").json["worker"]["pid"]

    def check_serves(self, server, environment, version):
        """A probe and a run are served, only by this version."""
        before = len(self.calls())
        probed = server.post(f"/api/environments/{environment}/probe", {})
        self.assertTrue(probed.json.get("ok"), probed.text)
        run = start(server, "true", environmentId=environment)
        self.assertEqual(wait_for_end(server, run)["status"], "succeeded")
        self.assertTrue(eventually(lambda: not unfinished_leases(server)), unfinished_leases(server))
        self.assertEqual(self.boxes(), [])
        made = self.calls()[before:]
        self.assertEqual({call["version"] for call in made}, {version})
        self.assertLess({"environmentProbe", "environmentExecute"}, {call["method"] for call in made})


class Life(PluginTest):
    def test_a_plugin_is_installed_runs_as_nobody_and_survives_a_restart(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                home = self.folder / engine
                server = self.serve(home=home, **variables)
                made = self.install(server, self.write_provider())
                again = server.post("/api/plugins/install",
                                    {"packageName": str(self.folder / "p"), "isLocalPath": True})
                self.assertEqual((again.status, again.json["code"]), (409, "plugin_exists"))
                health = server.get("/api/plugins/test.boxes/health").json
                self.assertTrue(health["healthy"], health)
                if os.geteuid() == 0:
                    self.assertNotEqual(self.calls("initialize")[-1]["user"], 0)
                self.assertEqual(server.stop(), 0)
                server = self.serve(home=home, **variables)
                self.assertEqual(server.get("/api/plugins").json[0]["id"], made["id"])
                self.assertEqual(self.status(server), "ready")
                disabled = server.post("/api/plugins/test.boxes/disable", {"reason": "quiet"})
                self.assertEqual((disabled.json["status"], disabled.json["lastError"]),
                                 ("disabled", "quiet"))
                refused = server.post("/api/plugins/test.boxes/restart", {})
                self.assertEqual((refused.status, refused.json["code"]), (409, "conflict"))
                self.assertEqual(server.post("/api/plugins/test.boxes/enable", {}).json["status"], "ready")
                worker = lambda: server.get("/api/plugins/test.boxes/health").json["worker"]["pid"]
                before = worker()
                self.assertEqual(server.post("/api/plugins/test.boxes/restart", {}).json["status"], "ready")
                self.assertNotEqual(worker(), before)
                gone = server.request("DELETE", "/api/plugins/test.boxes?purge=true")
                self.assertEqual(gone.status, 200, gone.text)
                self.assertEqual(server.get("/api/plugins/test.boxes").json["code"], "plugin_not_found")
                server.stop()

    def test_a_failed_install_leaves_nothing(self):
        server = self.serve()
        package = self.write_provider()
        manifest = json.loads((package / "manifest.json").read_text())
        manifest["environmentDrivers"][0]["configSchema"] = {"properties": {"a": {"$ref": "http://x/y"}}}
        (package / "manifest.json").write_text(json.dumps(manifest))
        archive = self.folder / "p.tgz"
        subprocess.run(["tar", "-czf", archive, "-C", self.folder, "p"], check=True)
        for name in (package, archive):
            answer = server.post("/api/plugins/install", {"packageName": str(name), "isLocalPath": True})
            self.assertEqual(answer.json.get("code"), "plugin_manifest_invalid", answer.text)
            self.assertIn("/environmentDrivers/0/configSchema", answer.text)
        self.assertEqual(server.get("/api/plugins").json, [])
        self.assertEqual(os.listdir(self.home / "plugins"), [])
        for name in ("../x", "-g", "a b", "http://x/y", "@x", "/nowhere/at/all"):
            answer = server.post("/api/plugins/install", {"packageName": name})
            self.assertEqual((answer.status, answer.json.get("code")), (400, "plugin_package_invalid"), answer.text)
            self.assertIn(name, answer.json["error"])
            self.assertTrue(answer.json["remedy"])

    def test_an_archive_is_unpacked_into_a_folder_that_goes_with_its_plugin(self):
        server = self.serve()
        self.write_provider()
        archive = self.folder / "p.tgz"
        subprocess.run(["tar", "-czf", archive, "-C", self.folder, "p"], check=True)
        made = self.install(server, archive)
        self.assertTrue(made["packagePath"].startswith(str(self.home / "plugins")), made)
        self.assertEqual(len(os.listdir(self.home / "plugins")), 1)
        server.request("DELETE", "/api/plugins/test.boxes")
        self.assertEqual(os.listdir(self.home / "plugins"), [])
        back = self.install(server, archive)
        self.assertEqual(back["id"], made["id"])
        modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in os.scandir(self.home)}
        modes.pop("plugins")
        self.assertEqual(modes.pop("plugin-exchange") & 0o066, 0)
        self.assertEqual(modes.pop("plugin-files") & 0o066, 0)
        self.assertEqual({name: mode for name, mode in modes.items() if mode & 0o077}, {})

    def test_what_an_upgrade_asks_for_in_addition_is_reviewed_first(self):
        server = self.serve()
        self.install(server, self.write_provider())
        environment = self.environment(server).json["id"]
        self.write_provider("1.1.0")
        self.assertEqual(server.post("/api/plugins/test.boxes/upgrade", {}).json["version"], "1.1.0")
        self.write_provider("2.0.0", ("environment.drivers.register", "http.outbound"))
        asked = server.post("/api/plugins/test.boxes/upgrade", {})
        self.assertEqual((asked.status, asked.json["code"]), (409, "plugin_review_needed"), asked.text)
        self.assertIn("http.outbound", asked.text)
        self.assertEqual(self.status(server), "upgrade_pending")
        self.check_serves(server, environment, "1.1.0")
        # After a restart the folder holds only the version that was never approved.
        server.stop()
        server = self.serve()
        self.assertIn("http.outbound", server.get("/api/plugins/test.boxes").json["lastError"])
        self.check_serves_nobody(server, environment)
        again = server.post("/api/plugins/test.boxes/upgrade", {})
        self.assertEqual((again.status, again.json["code"]), (409, "plugin_review_needed"), again.text)
        self.check_serves_nobody(server, environment)
        taken = server.post("/api/plugins/test.boxes/upgrade", {"acceptCapabilities": True})
        self.assertEqual((taken.json["status"], taken.json["version"]), ("ready", "2.0.0"), taken.text)
        self.check_serves(server, environment, "2.0.0")

    def check_serves_nobody(self, server, environment):
        """A probe and a run are refused, with code and remedy, and no worker sees them."""
        before = len(self.calls())
        probed = server.post(f"/api/environments/{environment}/probe", {}).json
        self.assertFalse(probed["ok"], probed)
        self.assertEqual(probed["steps"][0]["code"], "provider_unavailable")
        self.assertTrue(probed["steps"][0]["remedy"])
        run = server.post(f"/api/companies/{server.company()}/runs",
                          {"command": "true", "environmentId": environment})
        self.assertEqual((run.status, run.json["code"]), (422, "unsupported_adapter_environment"), run.text)
        self.assertTrue(run.json["remedy"])
        self.assertEqual(self.calls()[before:], [])

    def test_an_archive_that_asks_for_more_waits_while_the_old_one_serves_also_after_a_restart(self):
        server = self.serve()
        self.write_provider()
        archive = self.folder / "p.tgz"
        pack = lambda: subprocess.run(["tar", "-czf", archive, "-C", self.folder, "p"], check=True)
        pack()
        self.install(server, archive)
        environment = self.environment(server).json["id"]
        self.write_provider("2.0.0", ("environment.drivers.register", "http.outbound"))
        pack()
        asked = server.post("/api/plugins/test.boxes/upgrade", {})
        self.assertEqual((asked.status, asked.json["code"]), (409, "plugin_review_needed"), asked.text)
        self.check_serves(server, environment, "1.0.0")
        server.stop()
        server = self.serve()
        self.assertEqual(self.status(server), "upgrade_pending")
        self.check_serves(server, environment, "1.0.0")
        taken = server.post("/api/plugins/test.boxes/upgrade", {"acceptCapabilities": True})
        self.assertEqual((taken.json["status"], taken.json["version"]), ("ready", "2.0.0"), taken.text)
        self.check_serves(server, environment, "2.0.0")

    def test_a_worker_that_goes_on_crashing_is_not_called_ready(self):
        server = self.serve()
        self.install(server, self.write_provider())
        (self.folder / "p" / "worker").write_text("#!/bin/sh\nexit 3\n")
        os.kill(self.worker_pid(server), signal.SIGKILL)
        self.assertTrue(eventually(lambda: self.status(server) == "error"))
        self.assertFalse(server.get("/api/plugins/test.boxes/health").json["healthy"])
        self.write_provider()
        self.assertTrue(eventually(lambda: self.status(server) == "ready", limit_s=60))

    def test_a_request_that_is_repeated_under_its_key_is_done_once(self):
        server = self.serve()
        package = self.write_provider()
        plugin = "/api/plugins/test.boxes"
        wish = {"packageName": str(package), "isLocalPath": True}

        def twice(path, body, key):
            answers = [server.request("POST", path, body, {"Idempotency-Key": key}) for _ in range(2)]
            self.assertEqual(answers[0].status, answers[1].status, answers[1].text)
            return answers

        first, second = twice("/api/plugins/install", wish, "install-1")
        self.assertEqual((first.status, second.json["id"]), (201, first.json["id"]), second.text)
        other = server.request("POST", "/api/plugins/install", {**wish, "version": "1.0.0"},
                               {"Idempotency-Key": "install-1"})
        self.assertEqual(other.json["code"], "idempotency_key_reused", other.text)
        starts = lambda: len(self.calls("initialize"))
        before = starts()
        self.assertEqual(twice(f"{plugin}/disable", {}, "disable-1")[1].json["status"], "disabled")
        self.assertEqual(twice(f"{plugin}/enable", {}, "enable-1")[1].json["status"], "ready")
        self.assertEqual(starts(), before + 1)
        self.assertEqual(twice(f"{plugin}/restart", {}, "restart-1")[1].json["status"], "ready")
        self.assertEqual(starts(), before + 2)
        self.write_provider("1.1.0")
        self.assertEqual(twice(f"{plugin}/upgrade", {}, "upgrade-1")[1].json["version"], "1.1.0")
        self.assertEqual(starts(), before + 3)
        config = {"companyId": server.company(), "configJson": {"region": "eu"}}
        first, second = twice(f"{plugin}/config", config, "config-1")
        self.assertEqual(first.json, second.json)
        # A late one does not undo what was set after it.
        server.post(f"{plugin}/config", {**config, "configJson": {"region": "us"}})
        server.request("POST", f"{plugin}/config", config, {"Idempotency-Key": "config-1"})
        self.assertEqual(server.get(f"{plugin}/config?companyId={server.company()}").json["configJson"],
                         {"region": "us"})

    def test_events_reach_whoever_has_subscribed_to_them_and_may(self):
        server = self.serve()
        package = self.write_provider(capabilities=(
            "environment.drivers.register", "events.subscribe", "events.emit"))
        worker = package / "worker"
        worker.write_text(LISTENER.replace("@STATE@", str(self.state)))
        first = server.company()
        server.post(f"/api/companies/{first}/secrets", {"name": "before", "value": "v"})
        self.install(server, package)
        other = server.post("/api/companies", {"name": "Other"}).json["id"]
        for company in (first, other):
            made = server.post(f"/api/companies/{company}/secrets", {"name": "s", "value": "v"})
            self.assertEqual(made.status, 201, made.text)
        heard = lambda kind: [row for row in self.calls("onEvent") if row["event"]["eventType"] == kind]
        self.assertTrue(eventually(lambda: len(heard("secret.created")) == 2, limit_s=60), self.calls())
        self.assertEqual({row["event"]["companyId"] for row in heard("secret.created")},
                         {first, other})
        for row in heard("secret.created"):
            self.assertEqual(row["scope"], {"companyId": row["event"]["companyId"]})
            self.assertEqual(row["event"]["entityType"], "secret")
        # What it emits under an event belongs to the event's company, and is delivered in turn.
        self.assertTrue(eventually(lambda: len(heard("plugin.test.boxes.heard")) == 2, limit_s=60))
        self.assertEqual([row for row in self.calls("onEvent")
                          if row["event"]["eventType"] not in ("secret.created", "plugin.test.boxes.heard")], [])
        self.assertEqual([row["error"] for row in self.calls("wrong")], [-32603, -32603])
        # The same worker without the capability gets an error.
        server.request("DELETE", "/api/plugins/test.boxes?purge=true")
        manifest = json.loads((package / "manifest.json").read_text())
        manifest["capabilities"] = ["environment.drivers.register"]
        (package / "manifest.json").write_text(json.dumps(manifest))
        self.install(server, package)
        self.assertEqual([row["error"] for row in self.calls("wrong")][2:], [-32001] * 4)

    def test_the_client_does_it_all(self):
        server = self.serve()
        package = self.write_provider()
        url = f"http://127.0.0.1:{server.port}"

        def berth(*words):
            done = self.run_berth(*words, "--url", url)
            self.assertEqual(done.returncode, 0, done.stderr)
            return done.stdout

        berth("plugin", "install", str(package))
        self.assertEqual(json.loads(berth("plugin", "list"))[0]["pluginKey"], "test.boxes")
        berth("plugin", "config", "test.boxes", "--set", "region=eu")
        self.assertEqual(json.loads(berth("plugin", "config", "test.boxes"))["configJson"]["region"], "eu")
        self.assertTrue(json.loads(berth("plugin", "health", "test.boxes"))["healthy"])
        self.assertIn("installed", berth("plugin", "logs", "test.boxes"))
        berth("plugin", "disable", "test.boxes")
        berth("plugin", "enable", "test.boxes")
        self.assertEqual(json.loads(berth("plugin", "restart", "test.boxes"))["status"], "ready")
        berth("plugin", "uninstall", "test.boxes", "--yes")
        self.assertEqual(json.loads(berth("plugin", "list")), [])


class Config(PluginTest):
    def test_a_form_that_is_filled_in_wrongly_names_the_field(self):
        server = self.serve()
        company = server.company()
        self.assertEqual(self.environment(server).json["code"], "provider_unavailable")
        self.install(server, self.write_provider())
        offered = server.get(f"/api/companies/{company}/environments/capabilities").json
        schema = offered["sandboxProviders"]["boxes"]["configSchema"]
        self.assertEqual(schema["properties"]["region"]["x-paperclip-group"], "Place")
        for config, pointer in (({"region": "mars"}, "/config/region"),
                                ({"size": "big"}, "/config/size"),
                                ({"registries": [{"url": "u"}, {"token": 3}]}, "/config/registries/1/token"),
                                ({"colour": "red"}, "/config/colour")):
            answer = self.environment(server, **config)
            self.assertEqual(answer.status, 422, answer.text)
            self.assertEqual([i["path"] for i in answer.json["details"]["issues"]], [pointer], answer.text)
        unlucky = self.environment(server, size=13)
        self.assertEqual((unlucky.status, unlucky.json["error"]), (422, "thirteen is unlucky"))
        made = self.environment(server)
        self.assertEqual(made.json["config"]["size"], 2)
        server.post("/api/plugins/test.boxes/disable", {})
        self.assertEqual(self.environment(server, name="later").status, 422)

    def test_secrets_at_any_depth_are_kept_apart_and_go_with_their_field(self):
        server = self.serve()
        company = server.company()
        self.install(server, self.write_provider())
        own = server.post(f"/api/companies/{company}/secrets", {"name": "own", "value": "kept-elsewhere"})
        made = self.environment(server, apiKey=SECRET, registries=[
            {"url": "a", "token": {"type": "secret_ref", "secretId": own.json["id"]}},
            {"url": "b", "token": SECRET + "-2"}])
        self.assertEqual(made.status, 201, made.text)
        environment = made.json["id"]
        self.assertNotIn(SECRET, made.text)
        self.assertEqual(made.json["config"]["registries"][0]["token"], own.json["id"])
        names = server.get(f"/api/companies/{company}/secrets").json
        self.assertEqual(len(names), 3)
        probed = server.post(f"/api/environments/{environment}/probe", {})
        self.assertTrue(probed.json["ok"], probed.text)
        self.assertNotIn(SECRET, probed.text)
        seen = self.calls("environmentAcquireLease")[-1]["config"]
        self.assertEqual((seen["apiKey"], seen["registries"][0]["token"], seen["registries"][1]["token"]),
                         (SECRET, "kept-elsewhere", SECRET + "-2"))
        run = start(server, "sh", "-c", "echo here", environmentId=environment)
        self.assertEqual(wait_for_end(server, run)["status"], "succeeded")
        self.assertEqual(output(server, run), "here\n")
        for path in (f"/api/companies/{company}/environment-leases", f"/api/companies/{company}/activity",
                     "/api/plugins/test.boxes/logs?limit=500", f"/api/heartbeat-runs/{run}",
                     f"/api/environments/{environment}"):
            self.assertNotIn(SECRET, server.get(path).text, path)
        self.assertNotIn(SECRET, server.said())
        self.assertTrue(eventually(lambda: self.boxes() == []), self.boxes())
        server.request("PATCH", f"/api/environments/{environment}", {"config": {"apiKey": ""}})
        self.assertEqual(len(server.get(f"/api/companies/{company}/secrets").json), 2)
        server.request("DELETE", f"/api/environments/{environment}")
        left = server.get(f"/api/companies/{company}/secrets").json
        self.assertEqual([row["name"] for row in left], ["own"])

    def test_a_company_sees_its_own_config_of_a_plugin_alone(self):
        server = self.serve()
        first = server.company()
        second = server.post("/api/companies", {"name": "Other"}).json["id"]
        self.install(server, self.write_provider())
        path = "/api/plugins/test.boxes/config"
        wrong = server.post(path, {"companyId": first, "configJson": {"region": 3}})
        self.assertEqual((wrong.status, wrong.json["details"]["issues"][0]["path"]), (422, "/configJson/region"))
        plain = server.post(path, {"companyId": first, "configJson": {"token": "in the clear"}})
        self.assertEqual(plain.status, 422, plain.text)
        foreign = server.post(f"/api/companies/{second}/secrets", {"name": "s", "value": "v"}).json["id"]
        stolen = server.post(path, {"companyId": first, "configJson": {
            "token": {"type": "secret_ref", "secretId": foreign}}})
        self.assertEqual((stolen.status, stolen.json["code"]), (422, "secret_missing"), stolen.text)
        self.assertEqual(server.post(path, {"companyId": first, "configJson": {"region": "eu"}}).status, 200)
        self.assertIsNone(server.get(f"{path}?companyId={second}").json)
        self.assertTrue(eventually(lambda: self.calls("configChanged")))
        tested = server.post(f"{path}/test", {"companyId": first, "configJson": {"region": "moon"}})
        self.assertEqual((tested.json["valid"], tested.json["message"]), (False, "there is no moon"))


class Faults(PluginTest):
    def test_a_worker_that_dies_at_any_call_loses_and_doubles_nothing(self):
        server = self.serve()
        self.install(server, self.write_provider())
        environment = self.environment(server).json["id"]
        for where, method in (("at", "environmentAcquireLease"), ("after", "environmentAcquireLease"),
                              ("at", "environmentRealizeWorkspace"), ("at", "environmentExecute"),
                              ("at", "environmentReleaseLease")):
            with self.subTest(f"{where} {method}"):
                self.assertTrue(eventually(lambda: self.status(server) == "ready", limit_s=60))
                trap = self.state / f"die-{where}-{method}"
                trap.touch()
                run = start(server, "true", environmentId=environment)
                ended = wait_for_end(server, run)
                self.assertTrue(eventually(lambda: not trap.exists()), "the worker was never asked")
                wanted = {"succeeded"} if method == "environmentReleaseLease" else {"failed", "interrupted"}
                self.assertIn(ended["status"], wanted, ended)
                self.assertTrue(eventually(lambda: not unfinished_leases(server), limit_s=60),
                                unfinished_leases(server))
                self.assertEqual(self.boxes(), [])

    def test_a_server_that_dies_at_any_step_leaves_nothing_half_done(self):
        self.write_provider()
        archive = self.folder / "p.tgz"
        subprocess.run(["tar", "-czf", archive, "-C", self.folder, "p"], check=True)
        wish = {"packageName": str(archive), "isLocalPath": True}
        for number, step in enumerate(("plugin.fetch_intended", "plugin.fetch_acted", "plugin.install_recorded",
                                       "plugin.start_intended", "plugin.start_acted")):
            with self.subTest(step):
                home = self.folder / f"home{number}"
                server = self.serve(home=home, BERTH_FAULT_POINT=step)
                with self.assertRaises(OSError):
                    server.post("/api/plugins/install", wish)
                self.dies_at(step, server)
                server = self.serve(home=home)
                rows = server.get("/api/plugins").json
                folders = os.listdir(home / "plugins")
                self.assertEqual(len(folders), len(rows))
                for row in rows:
                    self.assertEqual(row["status"], "ready")
                server.kill()

    def test_a_server_that_dies_at_any_step_of_a_lease_settles_it_through_the_plugin(self):
        server = self.serve()
        self.install(server, self.write_provider())
        environment = self.environment(server).json["id"]
        server.stop()
        for step in ("acquire.intended", "acquire.acted", "acquire.recorded", "release.intended",
                     "release.acted"):
            with self.subTest(step):
                server = self.serve(BERTH_FAULT_POINT=step)
                try:
                    start(server, "true", environmentId=environment)
                except OSError:
                    pass
                self.dies_at(step, server)
                server = self.serve()
                self.assertTrue(eventually(lambda: not unfinished_leases(server), limit_s=60),
                                unfinished_leases(server))
                self.assertEqual(self.boxes(), [])
                server.stop()

    def parked(self, server):
        path = f"/api/companies/{server.company()}/environment-leases?parked=true"
        return server.get(path).json

    def resolve(self, server, is_there):
        """The lease that waits for an operator: with all known facts, and resolved by the
        operator's answer."""
        self.assertTrue(eventually(lambda: self.parked(server), limit_s=60), unfinished_leases(server))
        lease, = self.parked(server)
        self.assertEqual(lease["status"], "pending_cleanup")
        for known in ("acquire_unanswered: ", lease["id"], lease["heartbeatRunId"], '"boxes"'):
            self.assertIn(known, lease["failureReason"])
        self.assertIn(f"berth lease adopt {lease['id']} --sandbox ID", lease["nextStep"])
        self.assertEqual(len(self.boxes()), 1 if is_there else 0, "what the search made is gone")
        words = ["adopt", lease["id"], "--sandbox", *self.boxes()] if is_there else \
            ["force-resolve", lease["id"], "--reason", "not there"]
        done = self.run_berth("lease", *words, "--yes", "--url", f"http://127.0.0.1:{server.port}")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual((self.boxes(), unfinished_leases(server)), ([], []))

    def test_a_sandbox_that_nobody_can_find_again_waits_for_an_operator(self):
        server = self.serve()
        self.install(server, self.write_provider())
        environment = self.environment(server).json["id"]
        (self.state / "names-at-random").touch()
        for where in ("at", "after"):
            with self.subTest(f"the worker dies {where} its acquire"):
                self.assertTrue(eventually(lambda: self.status(server) == "ready", limit_s=60))
                (self.state / f"die-{where}-environmentAcquireLease").touch()
                run = start(server, "true", environmentId=environment)
                self.assertEqual(wait_for_end(server, run)["status"], "failed")
                self.resolve(server, is_there=where == "after")
        server.stop()
        for step in ("acquire.intended", "acquire.acted"):
            with self.subTest(f"the server dies at {step}"):
                server = self.serve(BERTH_FAULT_POINT=step)
                try:
                    start(server, "true", environmentId=environment)
                except OSError:
                    pass
                self.dies_at(step, server)
                server = self.serve()
                self.resolve(server, is_there=step == "acquire.acted")
                server.stop()

    def test_the_sandbox_of_another_company_is_not_adopted(self):
        server = self.serve()
        self.install(server, self.write_provider())
        (self.state / "names-at-random").touch()
        (self.state / "die-at-environmentAcquireLease").touch()
        wait_for_end(server, start(server, "true", environmentId=self.environment(server).json["id"]))
        self.assertTrue(eventually(lambda: self.parked(server), limit_s=60), unfinished_leases(server))
        lease, = self.parked(server)
        self.assertTrue(eventually(lambda: self.status(server) == "ready", limit_s=60))
        second = server.post("/api/companies", {"name": "second"}).json["id"]
        self.assertEqual(server.company(), second, "the newest is the first of the list")
        mark = self.state / "go"
        run = start(server, "sh", "-c", f"while [ ! -e {mark} ]; do sleep 0.1; done",
                    environmentId=self.environment(server).json["id"])
        self.assertTrue(eventually(lambda: self.calls("environmentExecute")))
        box, = self.boxes()
        path = f"/api/environment-leases/{lease['id']}"
        refused = server.post(f"{path}/adopt", {"providerLeaseId": box})
        self.assertEqual((refused.status, refused.json.get("code")), (409, "conflict"), refused.text)
        held = server.get(f"/api/companies/{second}/environment-leases").json[0]["id"]
        self.assertNotIn(held, refused.text)
        self.assertEqual(self.boxes(), [box])
        self.assertEqual(server.post(f"{path}/force-resolve", {"reason": "not there"}).status, 200)
        mark.touch()
        wait_for_end(server, run)

    def test_a_plugin_that_holds_sandboxes_is_not_let_go_and_finishes_them_when_it_is_back(self):
        server = self.serve()
        package = self.write_provider()
        self.install(server, package)
        environment = self.environment(server).json["id"]
        mark = self.state / "go"
        run = start(server, "sh", "-c", f"while [ ! -e {mark} ]; do sleep 0.1; done",
                    environmentId=environment)
        self.assertTrue(eventually(lambda: self.calls("environmentExecute")))
        refused = server.request("DELETE", "/api/plugins/test.boxes")
        self.assertEqual((refused.status, refused.json["code"]), (409, "plugin_in_use"), refused.text)
        forced = server.request("DELETE", "/api/plugins/test.boxes?force=true")
        self.assertEqual((forced.status, forced.json["status"]), (200, "uninstalled"), forced.text)
        mark.touch()
        self.assertNotEqual(wait_for_end(server, run)["status"], "succeeded")
        waiting = lambda: [lease["status"] for lease in unfinished_leases(server)]
        self.assertTrue(eventually(lambda: waiting() == ["pending_cleanup"]), waiting())
        self.assertEqual(len(self.boxes()), 1)
        self.install(server, package)
        self.assertTrue(eventually(lambda: not waiting(), limit_s=60), waiting())
        self.assertEqual(self.boxes(), [])


class Absent(BerthTest):
    def test_what_names_a_plugin_that_is_not_there_is_refused(self):
        server = self.serve()
        path = f"/api/companies/{server.company()}/environments"
        for config in ({"driver": "plugin", "config": {"pluginKey": "acme.none", "driverKey": "none",
                                                       "driverConfig": {}}},
                       {"driver": "sandbox", "config": {"provider": "acme-none"}}):
            answer = server.post(path, {"name": "absent", **config})
            self.assertEqual((answer.status // 100, answer.json["code"]), (4, "provider_unavailable"), answer.text)
        self.assertNotIn("absent", [row["name"] for row in server.get(path).json])


@unittest.skipUnless((FAKE / "manifest.json").exists(), f"{FAKE} is not built")
class Fake(BerthTest):
    def serve_fake(self):
        server = self.serve()
        answer = server.post("/api/plugins/install", {"packageName": str(FAKE), "isLocalPath": True})
        self.assertEqual((answer.status, answer.json.get("status")), (201, "ready"), answer.text)
        return server

    def environment(self, server, name="fake", **body):
        body = {"driver": "sandbox", "config": {"provider": "fake-plugin"}, **body}
        made = server.post(f"/api/companies/{server.company()}/environments", {"name": name, **body})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def images_of_leases(self, server):
        leases = server.get(f"/api/companies/{server.company()}/environment-leases").json
        return {lease["id"]: (lease.get("metadata") or {}).get("image") for lease in leases}

    def test_a_run_works_in_a_sandbox_of_the_fake_plugin(self):
        server = self.serve_fake()
        run = start(server, "sh", "-c", "pwd; echo err >&2; exit 4", environmentId=self.environment(server))
        ended = wait_for_end(server, run)
        self.assertEqual((ended["status"], ended["exitCode"]), ("failed", 4), ended)
        self.assertEqual(output(server, run, "stderr"), "err\n")
        # The client's input is passed on whole, when it has ended.
        piped = self.run_berth("run", "-e", "fake", "--", "cat", stdin="one\ntwo\n",
                               BERTH_URL=f"http://127.0.0.1:{server.port}")
        self.assertEqual((piped.returncode, piped.stdout), (0, "one\ntwo\n"), piped.stderr)
        self.assertTrue(eventually(lambda: not unfinished_leases(server)))

    def test_a_run_works_in_an_environment_of_driver_plugin(self):
        server = self.serve_fake()
        place = self.environment(server, driver="plugin", config={
            "pluginKey": "berth.fake-plugin", "driverKey": "fake-plugin", "driverConfig": {"image": "own"}})
        probed = server.post(f"/api/environments/{place}/probe", {})
        self.assertTrue(probed.json["ok"], probed.text)
        run = start(server, "sh", "-c", "pwd", environmentId=place)
        self.assertEqual(wait_for_end(server, run)["status"], "succeeded")
        self.assertIn("paperclip-fake-sandbox-", output(server, run))
        self.assertIn("own", self.images_of_leases(server).values())
        self.assertTrue(eventually(lambda: not unfinished_leases(server)))

    def test_a_setup_becomes_the_template_that_later_sandboxes_start_from(self):
        server = self.serve_fake()
        place = self.environment(server)
        opened = server.post(f"/api/environments/{place}/custom-image-setup-sessions", {})
        self.assertEqual(opened.status, 201, opened.text)
        door = opened.json["connectionPayload"]
        self.assertEqual((door["type"], door["command"]), ("ssh", "ssh fake@[placeholder]"))
        session = opened.json["session"]["id"]
        busy = server.post(f"/api/environments/{place}/custom-image-setup-sessions", {})
        self.assertEqual(busy.status, 409, busy.text)
        sessions = "/api/environment-custom-image-setup-sessions"
        self.assertEqual(server.get(f"{sessions}/{session}").json["connectionPayload"]["token"],
                         "[placeholder]")
        done = server.post(f"{sessions}/{session}/finish", {})
        self.assertEqual(done.status, 200, done.text)
        ref = done.json["template"]["templateRef"]
        self.assertEqual(ref, f"fake-template:{place}:{session}")
        self.assertTrue(eventually(lambda: not unfinished_leases(server)))
        run = start(server, "true", environmentId=place)
        self.assertEqual(wait_for_end(server, run)["status"], "succeeded")
        self.assertIn(ref, self.images_of_leases(server).values())
        # A forgotten session changes nothing.
        again = server.post(f"/api/environments/{place}/custom-image-setup-sessions", {}).json["session"]["id"]
        self.assertEqual(server.post(f"{sessions}/{again}/cancel", {}).json["status"], "cancelled")
        image = server.get(f"/api/environments/{place}/custom-image-template").json
        self.assertEqual(image["activeTemplate"]["templateRef"], ref)
        self.assertEqual(server.request("DELETE", f"/api/environments/{place}/custom-image-template").status, 200)
        template = done.json["template"]["id"]
        self.assertTrue(eventually(lambda: not unfinished_leases(server)))
        self.assertEqual(server.request("DELETE", f"/api/templates/{template}").json["status"], "deleted")

    def test_a_sandbox_is_committed_and_its_template_deleted_by_the_client(self):
        server = self.serve_fake()
        place = self.environment(server)
        url = f"http://127.0.0.1:{server.port}"

        def berth(*words):
            done = self.run_berth(*words, "--url", url)
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(done.stdout)

        run = start(server, "sleep", "1000", environmentId=place)
        wait_until(server, run, {"running"})
        lease = unfinished_leases(server)[0]["id"]
        refused = server.post(f"/api/environment-leases/{lease}/freeze", {})
        self.assertEqual((refused.status, refused.json["code"]), (422, "execution_unsupported"), refused.text)
        made = berth("sandbox", "commit", lease, "mine")
        self.assertEqual(made["templateRef"], f"fake-template:{place}:{run}", made)
        self.assertEqual(berth("template", "list")[0]["id"], made["id"])
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.assertTrue(eventually(lambda: not unfinished_leases(server)))
        self.assertEqual(berth("template", "delete", made["id"], "--yes")["status"], "deleted")
