"""What third-party providers can rely on: checked by the calls that reach a worker, and by the
sandboxes that are left when runs have ended."""

import base64
import json
import os
import shutil
import time
import unittest
from pathlib import Path

from plugins_test import FAKE, PluginTest
from runs_support import eventually, leases, look, output, start, wait_for_end, wait_until

WORKER = Path(__file__).resolve().parent / "contract_provider.py"
SCHEMA = {"type": "object", "properties": {
    "image": {"type": "string"}, "timeoutMs": {"type": "number"}, "reuseLease": {"type": "boolean"},
    "naming": {"type": "string"}, "apiKey": {"type": "string", "format": "secret-ref"}}}


class ContractTest(PluginTest):
    def package(self, version="1.0.0", name="p", key="test.contract", driver="boxes", role="sandbox_provider",
                **more):
        package = self.folder / name
        package.mkdir(exist_ok=True)
        worker = package / "worker"
        worker.write_text(WORKER.read_text().replace("@STATE@", str(self.state)))
        worker.chmod(0o755)
        entry = {"driverKey": driver, "kind": role, "displayName": "Boxes", "configSchema": SCHEMA, **more}
        (package / "manifest.json").write_text(json.dumps({
            "id": key, "apiVersion": 1, "version": version, "displayName": "Boxes",
            "description": "Folders as sandboxes", "author": "Berth", "categories": ["automation"],
            "capabilities": ["environment.drivers.register"], "entrypoints": {"worker": "./worker"},
            "environmentDrivers": [entry]}))
        return package

    def switch(self, name):
        (self.state / name).touch()

    def make(self, server, name="boxes", **config):
        body = {"name": name, "driver": "sandbox", "config": {"provider": "boxes", **config}}
        answer = server.post(f"/api/companies/{server.company()}/environments", body)
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json["id"]

    def ran(self, server, place, *argv, **more):
        run = wait_for_end(server, start(server, *(argv or ("true",)), environmentId=place, **more))
        self.assertTrue(eventually(lambda: not [one for one in leases(server) if one["status"] in (
            "acquiring", "active", "releasing")]))
        return run

    def held(self, server, place):
        """The lease of a run that lasts until its test is over."""
        run = start(server, "sleep", "300", environmentId=place)
        lease = wait_until(server, run, {"running"})["leaseId"]
        self.addCleanup(lambda: server.post(f"/api/heartbeat-runs/{run}/cancel", {}))
        return lease

    def methods(self):
        return [row["method"].removeprefix("environment") for row in self.calls()
                if row["method"].endswith("Lease")]

    def live(self):
        return sorted(name for name in self.boxes() if "." not in name)

    def agent(self, server, name="Ada"):
        answer = server.post(f"/api/companies/{server.company()}/agents",
                             {"name": name, "adapterType": "process", "adapterConfig": {"command": "true"}})
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json["id"]


class Reuse(ContractTest):
    REUSES = {"sandboxCapabilities": {"reusableLeases": True}}

    def test_reuse_that_a_provider_does_not_declare_is_refused_when_it_is_asked_for(self):
        server = self.serve()
        self.install(server, self.package())
        body = {"name": "kept", "driver": "sandbox", "config": {"provider": "boxes", "reuseLease": True}}
        answer = server.post(f"/api/companies/{server.company()}/environments", body)
        self.assertEqual((answer.status, answer.json["code"]), (422, "unprocessable"), answer.text)
        self.assertIn("/config/reuseLease", answer.text)
        place = self.make(server)
        answer = server.request("PATCH", f"/api/environments/{place}", {"config": body["config"]})
        self.assertEqual(answer.status, 422, answer.text)

    def test_reuse_that_a_provider_no_longer_declares_leaves_no_sandbox(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True)
        self.ran(server, place)
        self.assertEqual(len(self.live()), 1)
        self.package("1.1.0")
        self.assertEqual(server.post("/api/plugins/test.contract/upgrade", {}).json["version"], "1.1.0")
        for _ in range(2):
            run = self.ran(server, place)
            self.assertEqual(run["status"], "succeeded", run)
        events = server.get(f"/api/heartbeat-runs/{run['id']}/events").json
        self.assertTrue([one for one in events if "does not declare reusable leases" in one["message"]], events)
        acquires = self.calls("environmentAcquireLease")
        self.assertEqual([row["params"]["config"]["reuseLease"] for row in acquires], [True, False, False])
        self.assertTrue(eventually(lambda: self.live() == []), self.live())

    def test_a_sandbox_is_resumed_with_what_its_provider_said_of_it(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True)
        for _ in range(3):
            self.assertEqual(self.ran(server, place)["status"], "succeeded")
        self.assertEqual(self.methods(), ["AcquireLease", "ReleaseLease", "ResumeLease", "ReleaseLease",
                                          "ResumeLease", "ReleaseLease"])
        self.assertEqual(len(self.live()), 1)

    def test_a_sandbox_that_cannot_be_resumed_is_destroyed_before_another_is_made(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True)
        self.ran(server, place)
        (token,) = (self.state / "boxes").glob("*.token")
        token.write_text("of another life")
        self.assertEqual(self.ran(server, place)["status"], "succeeded")
        self.assertEqual(self.methods(), ["AcquireLease", "ReleaseLease", "ResumeLease", "DestroyLease",
                                          "AcquireLease", "ReleaseLease"])
        self.assertEqual(len(self.live()), 1)

    def test_a_plugin_upgrade_ends_reuse_and_destroys_what_waited(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True)
        self.ran(server, place)
        (before,) = self.live()
        self.package("1.1.0", **self.REUSES)
        self.assertEqual(server.post("/api/plugins/test.contract/upgrade", {}).json["version"], "1.1.0")
        self.ran(server, place)
        self.assertTrue(eventually(lambda: len(self.live()) == 1 and before not in self.live()), self.live())

    def test_acquire_and_resume_are_told_who_asks(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True)
        agent = self.agent(server)
        issue = "0198c7f2-4a3b-7c1d-8e2f-0123456789ab"
        server.request("PATCH", f"/api/agents/{agent}", {"defaultEnvironmentId": place})
        for _ in range(2):
            answer = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"payload": {"issueId": issue}})
            self.assertEqual(answer.status, 202, answer.text)
            wait_for_end(server, answer.json["id"])
            self.assertTrue(eventually(lambda: server.get(
                f"/api/companies/{server.company()}/environment-leases").json[0]["status"] == "released"))
        (acquire,) = self.calls("environmentAcquireLease")
        (resume,) = self.calls("environmentResumeLease")
        for call in (acquire["params"], resume["params"]):
            self.assertEqual((call["agentId"], call["adapterType"], call["issueId"]), (agent, "process", issue))
            self.assertRegex(call["executionWorkspaceId"], "^[0-9a-f-]{36}$")
        self.assertEqual(acquire["params"]["executionWorkspaceId"], resume["params"]["executionWorkspaceId"])
        self.assertEqual(leases(server)[0]["issueId"], issue)


    def test_a_lease_with_an_end_says_so_to_its_provider(self):
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        answer = server.post(f"/api/environments/{place}/probe", {})
        self.assertTrue(answer.json["ok"], answer.text)
        (acquire,) = self.calls("environmentAcquireLease")
        until = acquire["params"]["requestedExpiresAt"]
        self.assertRegex(until, r"^\d{4}-\d\d-\d\dT")
        self.assertEqual(self.calls("environmentExecute")[-1]["params"]["lease"]["expiresAt"], until)
        self.assertEqual(self.live(), [])


class Exclusive(ContractTest):
    REUSES = Reuse.REUSES

    def overlap(self, server, place, state, **second):
        """Two concurrent runs, each of which writes and then reads a file; the second may be
        another agent's."""
        script = ("echo $1 >mine; : >%s/at-$1; while [ ! -e %s/go ]; do sleep 0.05; done; cat mine" %
                  (state, state))
        runs = []
        for number in ("1", "2"):
            runs.append(start(server, "sh", "-c", script, "sh", number, environmentId=place,
                              **(second if number == "2" else {})))
            self.assertTrue(eventually(lambda: (Path(state) / f"at-{number}").exists()),
                            look(server, runs[-1]))
        seen = [look(server, run)["environmentLease"]["providerLeaseId"] for run in runs]
        (Path(state) / "go").touch()
        for number, run in zip(("1", "2"), runs):
            self.assertEqual(wait_for_end(server, run)["status"], "succeeded", look(server, run))
            self.assertEqual(output(server, run), number + "\n")
        return seen

    def test_two_runs_never_share_a_sandbox_that_is_named_by_its_environment(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                self.install(server, self.package(**self.REUSES))
                place = self.make(server, reuseLease=True, naming="environment")
                one, other = self.overlap(server, place, self.state)
                self.assertNotEqual(one, other)
                self.assertEqual(one, "box-env-" + place)
                self.ran(server, place)
                last = leases(server)[0]
                self.assertEqual(last["providerLeaseId"], one)
                self.assertTrue(eventually(lambda: self.live() == [one]), self.live())
                shutil.rmtree(self.state / "boxes" / one)
                for name in ("go", "at-1", "at-2", "calls"):
                    (self.state / name).unlink()
                server.stop()

    def test_an_agent_never_works_in_the_sandbox_that_another_left(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True, naming="environment")
        self.ran(server, place, "touch", "left-behind")
        run = self.ran(server, place, "ls", agentId=self.agent(server))
        self.assertEqual(output(server, run["id"]), "")
        self.assertEqual(self.live(), ["box-env-" + place])

    def test_runs_that_race_for_one_sandbox_have_one_each(self):
        server = self.serve()
        self.install(server, self.package(**self.REUSES))
        place = self.make(server, reuseLease=True, naming="environment")
        runs = [start(server, "sh", "-c", "[ ! -e taken ] && touch taken && sleep 0.5 && rm taken",
                      environmentId=place) for _ in range(6)]
        ends = [wait_for_end(server, run) for run in runs]
        self.assertEqual([run["status"] for run in ends], ["succeeded"] * 6, [run["error"] for run in ends])
        self.assertTrue(eventually(lambda: self.live() == ["box-env-" + place]), self.live())

    @unittest.skipUnless((FAKE / "manifest.json").exists(), f"{FAKE} is not built")
    def test_two_runs_never_share_a_sandbox_of_the_fake_plugin(self):
        server = self.serve()
        answer = server.post("/api/plugins/install", {"packageName": str(FAKE.resolve()), "isLocalPath": True})
        self.assertEqual(answer.status, 201, answer.text)
        self.assertEqual(answer.json["status"], "ready", answer.text)
        body = {"name": "fake", "driver": "sandbox", "config": {"provider": "fake-plugin", "reuseLease": True}}
        answer = server.post(f"/api/companies/{server.company()}/environments", body)
        self.assertEqual(answer.status, 201, answer.text)
        one, other = self.overlap(server, answer.json["id"], self.state)
        self.assertNotEqual(one, other)


class Commands(ContractTest):
    def exec_calls(self):
        return [row["params"] for row in self.calls("environmentExecute") if not row["params"]["bypassSession"]]

    def test_a_run_is_sent_exactly_so(self):
        server = self.serve()
        plugin = self.install(server, self.package())
        place = self.make(server, image="i")
        run = self.ran(server, place, "printf", "%s", "a b", env={"WORD": "it's"})
        self.assertEqual(run["status"], "succeeded", run)
        (acquire,), (realize,) = (self.calls("environment" + one)
                                  for one in ("AcquireLease", "RealizeWorkspace"))
        base = {"driverKey": "boxes", "companyId": server.company(), "environmentId": place, "issueId": None,
                "config": {"image": "i", "reuseLease": False}}
        acquire["params"]["config"].setdefault("reuseLease", False)
        self.assertEqual(acquire["params"], {**base, "runId": run["id"]})
        (call,) = self.exec_calls()
        call["config"].setdefault("reuseLease", False)
        box = call["lease"]["providerLeaseId"]
        env = call.pop("env")
        self.assertEqual(env.pop("WORD"), "it's")
        self.assertRegex(env.pop("BERTH_EXEC_MARK"), "^[0-9a-f-]{36}$")
        self.assertEqual({name for name in env if not name.startswith(("PAPERCLIP_", "BERTH_"))}, set())
        self.assertEqual(env["PAPERCLIP_RUN_ID"], run["id"])
        metadata = {"remoteCwd": call["cwd"], "token": call["lease"]["metadata"]["token"]}
        self.assertEqual(call, {**base, "command": "printf", "args": ["%s", "a b"], "cwd": call["cwd"],
                                "bypassSession": False,
                                "lease": {"providerLeaseId": box, "metadata": metadata, "expiresAt": None}})
        self.assertEqual(realize["params"]["lease"], call["lease"])
        (release,) = self.calls("environmentReleaseLease")
        self.assertEqual((release["params"]["providerLeaseId"], release["params"]["leaseMetadata"]),
                         (box, metadata))
        self.assertEqual(plugin["pluginKey"], "test.contract")

    def test_a_command_has_the_home_and_the_path_of_its_sandbox(self):
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        run = self.ran(server, place, "/bin/sh", "-c", "echo $HOME; echo $PATH; echo ${LANG-none} ${TERM-none}")
        home, path, rest = output(server, run["id"]).splitlines()
        self.assertTrue(home.startswith(str(self.state)), home)
        self.assertEqual((path, rest), ("/opt/sandbox/bin:/usr/bin:/bin", "none none"))
        run = self.ran(server, place, "/bin/sh", "-c", "echo $HOME", env={"HOME": "/mine"})
        self.assertEqual(output(server, run["id"]), "/mine\n")
        lease = self.held(server, place)
        answer = server.post(f"/api/environment-leases/{lease}/exec", {"argv": ["/bin/sh", "-c", "echo $PATH"]})
        self.assertEqual(answer.json["stdoutText"], "/opt/sandbox/bin:/usr/bin:/bin\n")

    def test_a_command_without_input_is_sent_none(self):
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        for run in (self.ran(server, place, "true", stdinText=""), self.ran(server, place, "true")):
            self.assertEqual(run["status"], "succeeded", run)
        done = self.run_berth("run", "-e", "boxes", "--url", f"http://127.0.0.1:{server.port}", "--", "cat",
                              stdin="")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([row for row in self.exec_calls() if "stdin" in row], [])
        run = self.ran(server, place, "cat", stdinText="given")
        self.assertEqual(output(server, run["id"]), "given")

    def test_the_limit_of_a_run_counts_and_that_of_the_config_where_it_has_none(self):
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server, timeoutMs=500)
        own = self.ran(server, place, "sleep", "1", timeoutMs=20000)
        self.assertEqual(own["status"], "succeeded", own)
        none = self.ran(server, place, "sleep", "60")
        self.assertEqual(none["status"], "timed_out", none)
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "process", "defaultEnvironmentId": place,
            "adapterConfig": {"command": "sleep", "args": ["1"]}}).json["id"]
        answer = server.post(f"/api/agents/{agent}/heartbeat/invoke", {})
        self.assertEqual(wait_for_end(server, answer.json["id"])["status"], "succeeded")
        self.assertEqual([call.get("timeoutMs") for call in self.exec_calls()], [20000, 500, 14_400_000])

    def test_a_limit_ends_a_command_whose_provider_keeps_none(self):
        self.switch("no-deadline")
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        begun = time.monotonic()
        # A grandchild that holds the pipe makes a provider wait for its end.
        run = self.ran(server, place, "sh", "-c", "sleep 300 & sleep 300", timeoutMs=1000)
        self.assertEqual(run["status"], "timed_out", run)
        self.assertLess(time.monotonic() - begun, 20)

    def test_control_commands_are_marked(self):
        server = self.serve()
        self.install(server, self.package())
        lease = self.held(server, self.make(server))
        self.assertEqual(server.get(f"/api/environment-leases/{lease}/files").status, 200)
        marked = [row["params"] for row in self.calls("environmentExecute")
                  if row["params"]["command"] != "sleep"]
        self.assertNotEqual(marked, [])
        for call in marked:
            self.assertTrue(call["bypassSession"])
            self.assertEqual(call["env"], {"PAPERCLIP_SANDBOX_EXEC_CHANNEL": "bridge"})


class WorkingFolder(ContractTest):
    HARD = ["a b", "it's", 'a "quoted" word', "two\nlines", "$HOME `id` $(id) *", "\\", "", "-n", "--", "ü\u2028"]

    def started(self):
        """The commands of runs, as the worker got them."""
        return [[row["params"]["command"], *row["params"]["args"]] for row in self.calls("environmentExecute")
                if not row["params"]["bypassSession"]]

    def here(self, server, place, **more):
        run = self.ran(server, place, "/bin/pwd", **more)
        self.assertEqual(run["status"], "succeeded", run)
        return output(server, run["id"]).rstrip("\n")

    def test_a_command_starts_in_its_folder_though_the_provider_ignores_it(self):
        self.switch("ignores-cwd")
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        self.assertTrue(self.here(server, place).startswith(str(self.state / "boxes")))
        hard = self.state / "it's $HOME \"here\"\nand there"
        hard.mkdir(mode=0o755)
        self.assertEqual(self.here(server, place, cwd=str(hard)), str(hard))
        lease = self.held(server, place)
        answer = server.post(f"/api/environment-leases/{lease}/exec", {"argv": ["/bin/pwd"], "cwd": "/usr"})
        self.assertEqual(answer.json["stdoutText"], "/usr\n", answer.text)

    def test_words_are_exact_on_every_way(self):
        script = "import json, sys; print(json.dumps([sys.argv[1:], sys.stdin.read()]))"
        for way in ("kept", "ignored"):
            with self.subTest(way):
                if way == "ignored":
                    self.switch("ignores-cwd")
                server = self.serve(home=self.folder / way)
                self.install(server, self.package())
                run = self.ran(server, self.make(server), "python3", "-c", script, *self.HARD, stdinText="in")
                self.assertEqual(json.loads(output(server, run["id"])), [self.HARD, "in"])
                server.stop()

    def test_a_command_that_fails_says_so_by_way_of_the_shell(self):
        self.switch("ignores-cwd")
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        run = self.ran(server, place, "sh", "-c", "echo out; echo err >&2; exit 7")
        self.assertEqual((run["status"], run["exitCode"]), ("failed", 7), run)
        self.assertEqual((output(server, run["id"]), output(server, run["id"], "stderr")), ("out\n", "err\n"))
        missing = self.ran(server, place, "true", cwd="/no/such/folder")
        self.assertEqual((missing["status"], missing["exitCode"]), ("failed", 126), missing)
        self.assertIn("/no/such/folder", output(server, missing["id"], "stderr"))

    def test_a_provider_that_goes_to_the_folder_is_sent_the_command_itself(self):
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        for _ in range(2):
            self.here(server, place, cwd="/usr")
        self.assertEqual(self.started(), [["/bin/pwd"]] * 2)
        trials = [row for row in self.calls("environmentExecute") if row["params"]["cwd"] == "/dev"]
        self.assertEqual(len(trials), 1, "a version of a plugin is tried once")

    def test_a_sandbox_without_a_shell_is_sent_the_command_itself(self):
        for switch in ("no-shell", "ignores-cwd"):
            self.switch(switch)
            server = self.serve(home=self.folder / switch)
            self.install(server, self.package())
            run = self.ran(server, self.make(server), "/bin/echo", "there")
            self.assertEqual((run["status"], output(server, run["id"])), ("succeeded", "there\n"), run)
            server.stop()
        self.assertEqual(self.started(), [["/bin/echo", "there"]] * 2)


class Files(ContractTest):
    def put(self, server, lease, name, text):
        answer = server.request("PUT", f"/api/environment-leases/{lease}/files?path={name}", text.encode(),
                                {"Content-Type": "application/octet-stream"})
        self.assertIn(answer.status, (200, 201, 204), answer.text)

    def fetched(self, server, lease, name):
        return server.get(f"/api/environment-leases/{lease}/files?path={name}").text

    def test_a_folder_that_only_realize_names_is_told_to_later_calls(self):
        self.switch("no-remote-cwd")
        self.switch("sync")
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        lease = self.held(server, place)
        execute = self.calls("environmentExecute")[-1]["params"]
        self.assertEqual(execute["lease"]["metadata"]["remoteCwd"], execute["cwd"])
        self.put(server, lease, "a.txt", "hello")
        self.assertEqual(self.fetched(server, lease, "a.txt"), "hello")

    def test_files_go_by_commands_where_the_plugin_refuses_its_own_way(self):
        self.switch("sync")
        self.switch("sync-refuses")
        server = self.serve()
        self.install(server, self.package())
        lease = self.held(server, self.make(server))
        self.put(server, lease, "a.txt", "hello")
        self.assertEqual(self.fetched(server, lease, "a.txt"), "hello")
        (box,) = self.live()
        self.assertEqual((self.state / "boxes" / box / "a.txt").read_text(), "hello")
        self.assertNotEqual(self.calls("environmentSyncIn"), [])


class Shapes(ContractTest):
    def capability(self, server):
        path = f"/api/companies/{server.company()}/environments/capabilities"
        return server.get(path).json["sandboxProviders"]["boxes"]

    def test_a_capability_is_what_is_declared_and_advertised(self):
        server = self.serve()
        self.install(server, self.package(supportsLoginPty=True, supportsReusableLeases=True))
        can = self.capability(server)
        self.assertEqual((can["supportsLoginPty"], can["supportsReusableLeases"]), (False, True))

    def test_a_driver_may_name_its_bridge(self):
        server = self.serve()
        refused = server.post("/api/plugins/install", {"isLocalPath": True, "packageName": str(
            self.package(bridge={"transport": "pigeon"}))})
        self.assertEqual(refused.json["code"], "plugin_manifest_invalid", refused.text)
        self.assertIn("/environmentDrivers/0/bridge/transport", refused.text)
        self.install(server, self.package(bridge={"transport": "worker"}))

    def test_a_lease_of_a_driver_plugin_names_plugin_and_driver(self):
        server = self.serve()
        self.install(server, self.package(role="environment_driver"))
        body = {"name": "driven", "driver": "plugin", "config": {
            "pluginKey": "test.contract", "driverKey": "boxes", "driverConfig": {"reuseLease": True}}}
        answer = server.post(f"/api/companies/{server.company()}/environments", body)
        self.assertEqual(answer.status, 201, answer.text)
        self.assertEqual(self.ran(server, answer.json["id"])["status"], "succeeded")
        self.assertEqual(leases(server)[0]["provider"], "plugin:test.contract:boxes")
        self.assertEqual(self.live(), [], "nobody would ever use it again")


class Tokens(ContractTest):
    def test_the_token_of_a_run_has_the_claims_that_agents_read(self):
        server = self.serve()
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "process", "adapterConfig": {
                "command": "sh", "args": ["-c", f"echo $PAPERCLIP_API_KEY >{self.state}/token"]}}).json["id"]
        run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {}).json["id"]
        self.assertEqual(wait_for_end(server, run)["status"], "succeeded")
        payload = (self.state / "token").read_text().split(".")[1]
        claims = json.loads(base64.urlsafe_b64decode(payload + "=" * (-len(payload) % 4)))
        self.assertEqual({name: claims[name] for name in (
            "sub", "company_id", "run_id", "adapter_type", "iss", "aud", "instance_id", "responsible_user_id")},
            {"sub": agent, "company_id": server.company(), "run_id": run, "adapter_type": "process",
             "iss": "paperclip", "aud": "paperclip-api", "instance_id": "default",
             "responsible_user_id": "local-board"})
        self.assertEqual(claims["exp"] - claims["iat"], 48 * 3600)


class Requests(ContractTest):
    def test_a_company_in_the_query_must_be_the_right_one(self):
        server = self.serve()
        self.install(server, self.package())
        place = self.make(server)
        company = server.company()
        other = server.post("/api/companies", {"name": "other"}).json["id"]
        for verb, path, body in (("PATCH", f"/api/environments/{place}", {"description": "x"}),
                                 ("POST", f"/api/environments/{place}/probe", {}),
                                 ("GET", f"/api/environments/{place}", None),
                                 ("GET", f"/api/environments/{place}/leases", None)):
            with self.subTest(path, verb=verb):
                fits = server.request(verb, f"{path}?companyId={company}", body)
                self.assertIn(fits.status, (200, 201), fits.text)
                foreign = server.request(verb, f"{path}?companyId={other}", body)
                self.assertEqual((foreign.status, foreign.json["code"]), (403, "forbidden"), foreign.text)
                wrong = server.request(verb, f"{path}?companyId=nonsense", body)
                self.assertEqual(wrong.status, 400, wrong.text)


class PrivateFolder(ContractTest):
    @unittest.skipUnless(os.geteuid() == 0, "workers are other users only where the server is root")
    def test_a_plugin_in_a_private_folder_works_or_says_how_to_make_it_work(self):
        server = self.serve()
        outer = self.folder / "private"
        private = outer / "inner"
        private.mkdir(parents=True)
        package = self.package(name="private/inner/p")
        private.chmod(0o700)
        outer.chmod(0o700)
        done = self.run_berth("plugin", "install", str(package), "--url", f"http://127.0.0.1:{server.port}")
        if done.returncode == 0:
            self.assertEqual(server.get("/api/plugins/test.contract").json["status"], "ready", done.stdout)
            return
        self.assertIn(f"chmod o+x {outer} {private},", done.stderr, "each folder that is in the way")
        self.assertLess(len(done.stderr), 600)
        self.assertEqual(server.get("/api/plugins").json, [])
