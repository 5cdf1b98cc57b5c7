"""The real Claude Code and Codex, as tools/agent-programs installs them, with a scripted model:
what users have, in each kind of place."""

import json
import os
import shutil
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

import runs_support as runs
import sshd
from model_server import ModelServer
from support import BERTH, ROOT, BerthTest

PROGRAMS = {}
FAKE = Path(BERTH).parent / "plugins" / "fake"
PATHS = {"claude_local": "/v1/messages", "codex_local": "/v1/responses"}
TURN_LIMIT_S = 120
BOX_PROXY = "http://127.0.0.1:3128"  # in a plugin's box, where fake-plugin has its sandboxes


def setUpModule():
    said = subprocess.run([ROOT / "tools" / "agent-programs"], check=True, capture_output=True, text=True)
    PROGRAMS.update({name: Path(path) for name, path in json.loads(said.stdout).items()})


def put(program, place):
    """Avoids copying some hundred megabytes, where possible."""
    try:
        os.link(program, place)
    except OSError:
        shutil.copy(program, place)


class RealAgents(BerthTest):
    HOST = "127.0.0.1"  # where the model listens

    def setUp(self):
        super().setUp()
        self.model = ModelServer(self.HOST)
        self.addCleanup(self.model.close)
        self.server = self.serve(*self.flags())

    def flags(self):
        return ()

    def config(self, adapter, url, **more):
        """An agent config that makes its program use our model, and nothing else."""
        env = {"ANTHROPIC_API_KEY": "sk-test-key", "ANTHROPIC_BASE_URL": url, "OPENAI_API_KEY": "sk-test-key",
               "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", **more.pop("env", {})}
        if adapter == "claude_local":
            return {"env": env, "extraArgs": ["--allowedTools", "Bash"], **more}
        provider = f'{{name="scripted",base_url="{url}/v1",wire_api="responses",env_key="OPENAI_API_KEY"}}'
        return {"env": env, "model": "gpt-5.5", "dangerouslyBypassApprovalsAndSandbox": True,
                "extraArgs": ["-c", f"model_providers.scripted={provider}", "-c", 'model_provider="scripted"',
                              "-c", "features.plugins=false", "-c", "analytics.enabled=false"], **more}

    def folders(self):
        return [str(program.parent) for program in PROGRAMS.values()]

    def agent(self, adapter, url=None, **config):
        path = config.pop("path", None) or self.folders()
        made = self.server.post(f"/api/companies/{self.server.company()}/agents", {
            "name": f"{adapter}-{len(self.model.requests)}", "adapterType": adapter,
            "adapterConfig": self.config(adapter, url or self.model.url, path=path, **config)})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def invoke(self, agent, prompt="do it", **wish):
        answer = self.server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": prompt, **wish})
        self.assertEqual(answer.status, 202, answer.text)
        return answer.json["id"]

    def turn(self, agent, prompt="do it", **wish):
        return runs.wait_for_end(self.server, self.invoke(agent, prompt, **wish), TURN_LIMIT_S)

    def messages(self, run):
        events = self.server.get(f"/api/heartbeat-runs/{run['id']}/events?limit=1000").json
        return [event["message"] for event in events]

    def told(self, run):
        return runs.output(self.server, run["id"]) + runs.output(self.server, run["id"], "stderr")

    def homes(self, agent):
        answer = self.server.get(f"/api/agents/{agent}/homes")
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def home_of(self, agent):
        return self.home_folder(self.homes(agent)[0]["id"])

    def home_folder(self, home):
        return self.server.home / "agents" / home / "home"

    def session_files(self, agent, session):
        return list(self.home_of(agent).rglob(f"*{session}.jsonl"))

    def expect_good(self, run):
        self.assertEqual(run["status"], "succeeded", f"{run['error']}\n{self.told(run)[-3000:]}")
        self.assertIn("done: ", run["resultJson"]["result"])
        self.assertIn("from-the-model-", run["resultJson"]["result"])

    def expect_two_turns(self, agent, adapter, **wish):
        """Both use tools, and the second one remembers the first."""
        first = self.turn(agent, "the first task", **wish)
        self.expect_good(first)
        asked = len(self.model.turns(PATHS[adapter]))
        second = self.turn(agent, "the second task", **wish)
        self.expect_good(second)
        self.assertEqual(second["sessionIdBefore"], first["sessionIdAfter"])
        told = json.dumps(self.model.turns(PATHS[adapter])[asked:][0])
        self.assertIn("the first task", told)
        self.assertIn("the second task", told)
        return first, second


ADAPTERS = ("claude_local", "codex_local")


class Local(RealAgents):
    def agent(self, adapter, url=None, **config):
        """In one folder: some versions of Claude Code find a session only in the folder where it
        began."""
        work = self.folder / "work"
        work.mkdir(exist_ok=True)
        return super().agent(adapter, url, **{"cwd": str(work), **config})

    def test_two_turns_with_tools(self):
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.agent(adapter)
                first, _ = self.expect_two_turns(agent, adapter)
                self.assertEqual(len(self.session_files(agent, first["sessionIdAfter"])), 1)
                seen = self.server.get(f"/api/agents/{agent}").json
                self.assertIsNotNone(seen["lastHeartbeatAt"])

    def test_two_turns_in_the_folder_that_an_agent_has_of_its_own(self):
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.agent(adapter, cwd=None)
                self.expect_two_turns(agent, adapter)
                self.assertTrue((self.home_of(agent) / "workspace").is_dir())

    def test_a_fresh_session_is_what_the_next_turn_goes_on_with(self):
        agent = self.agent("claude_local")
        first = self.turn(agent, "the first task")
        named = self.server.get(f"/api/agents/{agent}").json["name"]
        done = self.run_berth("--home", self.server.home, "agent", "invoke", named, "--fresh", "-p",
                              "a task of its own", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        fresh = runs.wait_for_end(self.server, json.loads(done.stdout)["id"], TURN_LIMIT_S)
        self.expect_good(fresh)
        self.assertIsNone(fresh["sessionIdBefore"])
        self.assertNotEqual(fresh["sessionIdAfter"], first["sessionIdAfter"])
        self.assertNotIn("the first task", json.dumps(self.model.turns("/v1/messages")[-1]))
        self.assertEqual(self.turn(agent)["sessionIdBefore"], fresh["sessionIdAfter"])

    def test_a_session_whose_file_is_gone_is_begun_anew_and_said(self):
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.agent(adapter)
                first = self.turn(agent)
                self.expect_good(first)
                for file in self.session_files(agent, first["sessionIdAfter"]):
                    file.unlink()
                second = self.turn(agent)
                self.expect_good(second)
                self.assertIsNone(second["sessionIdBefore"])
                self.assertTrue([text for text in self.messages(second) if "is not in the agent's home" in text])

    def test_a_program_that_does_not_know_its_session_is_started_once_more(self):
        for adapter, name in (("claude_local", "CLAUDE_CONFIG_DIR"), ("codex_local", "CODEX_HOME")):
            with self.subTest(adapter):
                elsewhere = self.folder / adapter
                elsewhere.mkdir()
                agent = self.agent(adapter, env={name: str(elsewhere)})
                first = self.turn(agent)
                self.expect_good(first)
                shutil.rmtree(elsewhere)
                elsewhere.mkdir()
                second = self.turn(agent)
                self.expect_good(second)
                self.assertEqual(second["sessionIdBefore"], first["sessionIdAfter"])
                self.assertNotIn(second["sessionIdAfter"], (None, first["sessionIdAfter"]))
                self.assertTrue([text for text in self.messages(second) if "cannot resume session" in text])
                third = self.turn(agent)
                self.expect_good(third)
                self.assertEqual(third["sessionIdBefore"], second["sessionIdAfter"])

    def test_a_broken_session_file_costs_the_session_and_nothing_else(self):
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.agent(adapter)
                first = self.turn(agent)
                self.expect_good(first)
                for file in self.session_files(agent, first["sessionIdAfter"]):
                    file.write_text("{broken\n" * 3)
                second = self.turn(agent)
                self.expect_good(second)
                self.assertTrue([text for text in self.messages(second) if "cannot resume session" in text])

    def test_turns_of_one_session_wait_for_each_other_and_fresh_ones_do_not(self):
        agent = self.agent("claude_local")
        self.model.command = f"touch {self.folder}/begun; sleep 600"
        first = self.invoke(agent)
        self.assertTrue(runs.eventually(lambda: (self.folder / "begun").exists()))
        self.model.command = None
        second = self.invoke(agent)
        waits = runs.look(self.server, second)
        self.assertEqual(waits["status"], "queued", waits)
        self.assertIn("works with its session", waits["queue"]["explanation"])
        self.expect_good(self.turn(agent, forceFreshSession=True))
        self.assertEqual(runs.look(self.server, second)["status"], "queued")
        self.server.post(f"/api/heartbeat-runs/{first}/cancel", {})
        self.assertEqual(runs.wait_for_end(self.server, first)["status"], "cancelled")
        self.expect_good(runs.wait_for_end(self.server, second, TURN_LIMIT_S))

    def test_a_cancelled_turn_and_one_that_timed_out_can_be_gone_on_with(self):
        agent = self.agent("claude_local")
        first = self.turn(agent)
        self.expect_good(first)
        self.model.command = f"touch {self.folder}/begun; sleep 600"
        run = self.invoke(agent)
        self.assertTrue(runs.eventually(lambda: (self.folder / "begun").exists()))
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.assertEqual(runs.wait_for_end(self.server, run)["status"], "cancelled")
        changed = self.server.request("PATCH", f"/api/agents/{agent}", {
            "adapterConfig": {**self.server.get(f"/api/agents/{agent}").json["adapterConfig"], "timeoutSec": 5}})
        self.assertEqual(changed.status, 200, changed.text)
        self.assertEqual(self.turn(agent)["status"], "timed_out")
        self.model.command = None
        self.server.request("PATCH", f"/api/agents/{agent}", {
            "adapterConfig": {**changed.json["adapterConfig"], "timeoutSec": 0}})
        last = self.turn(agent)
        self.expect_good(last)
        self.assertEqual(last["sessionIdBefore"], first["sessionIdAfter"])

    def test_a_refusing_model_fails_the_turn_and_leaves_the_session(self):
        quick = {"CLAUDE_CODE_MAX_RETRIES": "1"}
        for adapter in ADAPTERS:
            agent = self.agent(adapter, env=quick)
            first = self.turn(agent)
            self.expect_good(first)
            for refusal, code in ((401, "agent_key_refused"), (429, "agent_quota_exceeded")):
                with self.subTest(f"{adapter} {refusal}"):
                    self.model.fail = refusal
                    run = self.turn(agent)
                    self.model.fail = None
                    self.assertEqual((run["status"], run["errorCode"]), ("failed", code), run["error"])
            last = self.turn(agent)
            self.expect_good(last)
            self.assertEqual(last["sessionIdBefore"], first["sessionIdAfter"])

    def test_a_model_that_cannot_be_reached_ends_the_turn_within_the_bound(self):
        with socket.socket() as nobody:
            nobody.bind(("127.0.0.1", 0))
            url = f"http://127.0.0.1:{nobody.getsockname()[1]}"
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                run = self.turn(self.agent(adapter, url, unreachableSec=2))
                self.assertEqual((run["status"], run["errorCode"]), ("failed", "agent_model_unreachable"), run)
                self.assertIn("could not be reached for 2 s", run["error"])

    def test_nonsense_and_a_cut_stream_are_no_success_and_no_hang(self):
        for adapter in ADAPTERS:
            agent = self.agent(adapter, env={"CLAUDE_CODE_MAX_RETRIES": "0"}, unreachableSec=5)
            for answer in ("nonsense", "cut"):
                with self.subTest(f"{adapter} {answer}"):
                    self.model.fail = answer
                    run = self.turn(agent)
                    self.model.fail = None
                    self.assertEqual(run["status"], "failed", self.told(run)[-2000:])

    def test_a_home_that_is_full_is_said_and_a_reset_helps(self):
        agent, other = self.agent("claude_local"), self.agent("claude_local")
        self.expect_good(self.turn(agent))
        self.limit_homes(agentHomeBytesMax=8 << 20)
        self.model.command = "head -c 30000000 /dev/zero > ~/big; sleep 600"
        run = self.turn(agent)
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "quota_exceeded"), run["error"])
        self.model.command = None
        run = self.turn(agent)
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "quota_exceeded"), run["error"])
        self.assertIn("is full", run["error"])
        self.assertIn("berth agent reset", run["error"])
        self.expect_good(self.turn(other))
        home = self.home_of(agent)
        self.assertTrue(home.exists())
        named = self.server.get(f"/api/agents/{agent}").json["name"]
        done = self.run_berth("--home", self.server.home, "agent", "reset", agent, "-e", "Local", "--json")
        self.assertEqual(done.returncode, 0, done.stderr + named)
        self.assertEqual(json.loads(done.stdout)["homes"], 1)
        self.assertFalse(home.exists())
        fresh = self.turn(agent)
        self.expect_good(fresh)
        self.assertIsNone(fresh["sessionIdBefore"])

    def test_a_home_goes_with_its_agent_and_not_while_it_works(self):
        agent = self.agent("claude_local")
        self.model.command = f"touch {self.folder}/begun; sleep 600"
        run = self.invoke(agent)
        self.assertTrue(runs.eventually(lambda: (self.folder / "begun").exists()))
        refused = self.server.post(f"/api/agents/{agent}/reset", {})
        self.assertEqual((refused.status, refused.json["code"]), (409, "conflict"), refused.text)
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        runs.wait_for_end(self.server, run)
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(self.server)))
        home = self.home_of(agent)
        self.assertEqual(self.server.request("DELETE", f"/api/agents/{agent}").status, 200)
        self.assertFalse(home.parent.exists())

    def limit_homes(self, **limits):
        changed = self.server.request("PATCH", "/api/instance/settings", limits)
        self.assertEqual(changed.status, 200, changed.text)


class Sandbox(RealAgents):
    HOST = "127.0.0.2"  # 127.0.0.1 is the sandbox's own

    def environment(self, **config):
        made = self.server.post(f"/api/companies/{self.server.company()}/environments", {
            "name": f"Box {config}"[:60], "driver": "sandbox",
            "config": {"provider": "linux", "egress": {"allow": [f"{self.HOST}:{self.model.port}"]}, **config}})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def furnished(self, adapter, place, **config):
        """An agent whose program is in its home, where its installer puts it."""
        agent = self.agent(adapter, path=["/opt/none"], **config)
        run = self.turn(agent, environmentId=place)
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "command_not_found"), run["error"])
        for part in ("/home/agent/.local/bin", "image or template", "home", "/opt/none"):
            self.assertIn(part, run["error"])
        self.put_program(agent, adapter)
        return agent

    def put_program(self, agent, adapter):
        home = self.home_of(agent)
        owner = home.stat()
        folder = home / ".local" / "bin"
        folder.mkdir(parents=True)
        for made in (folder, folder.parent):
            os.chown(made, owner.st_uid, owner.st_gid)
        program = PROGRAMS[adapter.partition("_")[0]]
        put(program, folder / program.name)

    def test_two_turns_with_tools(self):
        place = self.environment()
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.furnished(adapter, place)
                self.expect_two_turns(agent, adapter, environmentId=place)

    def test_two_turns_as_root_of_a_sandbox_that_is_kept(self):
        place = self.environment(user="root", reuseLease=True)
        agent = self.furnished("claude_local", place)
        self.expect_two_turns(agent, "claude_local", environmentId=place)

    def test_what_egress_denied_is_an_event_and_in_the_reason(self):
        place = self.environment(egress={"allow": ["127.0.0.3:1"]})
        agent = self.furnished("codex_local", place, unreachableSec=2)
        run = self.turn(agent, environmentId=place)
        self.assertEqual(run["status"], "failed", run)
        events = self.server.get(f"/api/heartbeat-runs/{run['id']}/events?limit=1000").json
        denied = [event["message"] for event in events if event["eventType"] == "sandbox.egress_denied"]
        self.assertEqual(len(denied), 1, events)
        self.assertIn(f"{self.HOST}:{self.model.port}", denied[0])
        self.assertIn(denied[0], run["error"])


@unittest.skipUnless(sshd.PROGRAM, "there is no sshd")
class Ssh(RealAgents):
    def test_two_turns_with_tools(self):
        host = sshd.Sshd(self.folder / "sshd")
        host.start()
        self.addCleanup(host.stop)
        made = self.server.post(f"/api/companies/{self.server.company()}/environments", {
            "name": "Host", "driver": "ssh", "config": host.config(), "metadata": {"callback": "none"}})
        self.assertEqual(made.status, 201, made.text)
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.agent(adapter)
                first, _ = self.expect_two_turns(agent, adapter, environmentId=made.json["id"])
                self.addCleanup(self.forget, first["sessionIdAfter"])

    @staticmethod
    def forget(session):
        """The account belongs to the user who runs the tests."""
        for folder in (".claude/projects", ".codex/sessions"):
            for file in (Path.home() / folder).rglob(f"*{session}*.jsonl"):
                file.unlink()


class Plugin(RealAgents):
    HOST = "127.0.0.2"  # 127.0.0.1 is the loopback of the plugin's box

    def package(self):
        """The plugin with the programs beside it: a worker in its box can execute nothing else."""
        folder = Path(tempfile.mkdtemp(prefix="berth-agents-", dir="/var/tmp"))
        self.addCleanup(shutil.rmtree, folder)
        folder.chmod(0o755)
        for name in ("fake-plugin", "manifest.json", "berth-keeper"):
            shutil.copy(FAKE / name, folder / name)
        for program in PROGRAMS.values():
            put(program, folder / program.name)
        return folder

    def test_two_turns_with_tools(self):
        package = self.package()
        installed = self.server.post("/api/plugins/install", {"packageName": str(package), "isLocalPath": True})
        self.assertEqual(installed.status, 201, installed.text)
        opened = self.server.request("PUT", f"/api/plugins/{installed.json['pluginKey']}/egress",
                                     {"allow": [f"{self.HOST}:{self.model.port}"]})
        self.assertEqual(opened.status, 200, opened.text)
        made = self.server.post(f"/api/companies/{self.server.company()}/environments", {
            "name": "Foreign", "driver": "sandbox", "config": {"provider": "fake-plugin"}})
        self.assertEqual(made.status, 201, made.text)
        for adapter in ADAPTERS:
            with self.subTest(adapter):
                agent = self.agent(adapter, path=[str(package)], env={"HTTP_PROXY": BOX_PROXY})
                first, _ = self.expect_two_turns(agent, adapter, environmentId=made.json["id"])
                self.assertTrue([text for text in self.messages(first) if "no way to the API" in text])
