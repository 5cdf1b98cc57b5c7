"""Agents: each adapter starts its program correctly, and understands its output.

The programs are stand-ins with the same names. Each records how it was called, prints what its
part prescribes, and ends as prescribed."""

import json
import os
import sys
import tempfile
import textwrap
from pathlib import Path

import runs_support as runs
from support import BerthTest

STAND_IN = textwrap.dedent("""\
    #!{python}
    import json, os, pathlib, sys, time, urllib.error, urllib.request
    stage = pathlib.Path({stage!r})

    def callback():
        request = urllib.request.Request(os.environ["BERTH_API_URL"] + "/api/agents/me")
        request.add_header("Authorization", "Bearer " + os.environ["BERTH_API_KEY"])
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                return [answer.status, json.load(answer)["id"]]
        except urllib.error.HTTPError as refused:
            return [refused.code, None]

    def keep_session(said):
        home = pathlib.Path(os.environ["HOME"])
        claude = home / ".claude/projects/work" / (str(said.get("session_id"))[:99] + ".jsonl")
        codex = home / ".codex/sessions/2026/01/01" / f"rollout-1-{{said.get('thread_id')}}.jsonl"
        file = claude if "session_id" in said else codex
        if "\\0" not in str(file):
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text("{{}}")

    called = {{"argv": sys.argv[1:], "stdin": sys.stdin.read(), "environment": dict(os.environ),
              "cwd": os.getcwd(), "callback": callback()}}
    (stage / "called.json").write_text(json.dumps(called))
    for line in (stage / "part").read_text().splitlines():
        if '"init"' in line or '"thread.started"' in line:
            keep_session(json.loads(line))
        line = line.replace("$SECRET", os.environ.get("SECRET", ""))
        # A line need not come in one piece.
        sys.stdout.write(line[:20])
        sys.stdout.flush()
        time.sleep(0.02)
        sys.stdout.write(line[20:] + "\\n")
    sys.stdout.flush()
    sys.exit(int((stage / "status").read_text()))
    """)

SESSION = "6f1d2c3b-0000-4000-8000-000000000001"
THREAD = "6f1d2c3b-0000-4000-8000-000000000002"
CLAUDE = [
    {"type": "system", "subtype": "init", "session_id": SESSION, "model": "opus"},
    {"type": "assistant", "session_id": SESSION,
     "message": {"content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "I look."},
                             {"type": "tool_use", "id": "t1", "name": "Bash", "input": {"command": "ls"}}]}},
    {"type": "user", "message": {"content": [{"type": "tool_result", "tool_use_id": "t1", "content": "a b"}]}},
    {"type": "result", "subtype": "success", "is_error": False, "result": "All done.", "num_turns": 2,
     "session_id": SESSION, "total_cost_usd": 0.25,
     "usage": {"input_tokens": 10, "cache_read_input_tokens": 4, "output_tokens": 7}},
]
CODEX = [
    {"type": "thread.started", "thread_id": THREAD},
    {"type": "item.started", "item": {"id": "i1", "type": "command_execution", "command": "ls"}},
    {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "ls",
                                        "exit_code": 0, "aggregated_output": "a b"}},
    {"type": "item.completed", "item": {"id": "i2", "type": "reasoning", "text": "hm"}},
    {"type": "item.completed", "item": {"id": "i3", "type": "agent_message", "text": "All done."}},
    {"type": "turn.completed", "usage": {"input_tokens": 10, "cached_input_tokens": 4, "output_tokens": 7}},
]


# Claude refuses to skip its permissions as root outside a sandbox.
TOOLS = "Bash,Edit,Glob,Grep,LS,MultiEdit,NotebookEdit,Read,Task,TodoWrite,WebFetch,WebSearch,Write"
MAY_WORK = (["--permission-mode", "acceptEdits", "--allowedTools", TOOLS] if os.geteuid() == 0
            else ["--dangerously-skip-permissions"])


class Agents(BerthTest):
    def setUp(self):
        super().setUp()
        self.stage = self.folder / "stage"
        self.stage.mkdir()
        self.server = self.serve(A_SETTING="of the server", AWS_SECRET_ACCESS_KEY="of the server")
        self.plays([])

    def stand_in(self, *names):
        for name in names:
            program = self.stage / name
            program.write_text(STAND_IN.format(python=sys.executable, stage=str(self.stage)))
            program.chmod(0o755)

    def plays(self, lines, status=0):
        part = "\n".join(line if isinstance(line, str) else json.dumps(line) for line in lines)
        (self.stage / "part").write_text(part + "\n")
        (self.stage / "status").write_text(str(status))

    def agent(self, adapter, **config):
        env = {"PATH": f"{self.stage}:/usr/bin:/bin", **config.pop("env", {})}
        made = self.server.post(f"/api/companies/{self.server.company()}/agents",
                                {"name": "Ada", "adapterType": adapter, "adapterConfig": {"env": env, **config}})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def turn(self, agent, **wish):
        """A whole run of the agent, and how its program was called."""
        (self.stage / "called.json").unlink(missing_ok=True)
        answer = self.server.post(f"/api/agents/{agent}/heartbeat/invoke", wish)
        self.assertEqual(answer.status, 202, answer.text)
        ended = runs.wait_for_end(self.server, answer.json["id"])
        written = self.stage / "called.json"
        return ended, json.loads(written.read_text()) if written.exists() else None

    def events(self, run):
        events = self.server.get(f"/api/heartbeat-runs/{run['id']}/events?limit=1000").json
        self.assertEqual([event["seq"] for event in events], list(range(1, len(events) + 1)))
        return events

    def told(self, run):
        """The agent's own events: (type, message)."""
        return [(event["eventType"], event["message"]) for event in self.events(run)
                if event["eventType"].startswith("agent.")]


class Claude(Agents):
    def setUp(self):
        super().setUp()
        self.stand_in("claude")

    def test_it_is_called_with_its_flags_and_has_its_prompt_on_stdin(self):
        rules = self.stage / "rules.md"
        rules.write_text("Be brief.")
        agent = self.agent("claude_local", model="opus", effort="high", maxTurnsPerRun=3,
                           dangerouslySkipPermissions=True, instructionsFilePath=str(rules),
                           extraArgs=["--add-dir", "/srv"],
                           promptTemplate="{{agent.name}}, do {{context.task}} in run {{run.id}}.")
        self.plays(CLAUDE)
        run, called = self.turn(agent, payload={"task": "the dishes"}, reason="it is late")
        self.assertEqual(run["status"], "succeeded", run)
        argv = lambda instructions: [
            "--print", "--output-format", "stream-json", "--verbose", *MAY_WORK,
            "--model", "opus", "--effort", "high", "--max-turns", "3",
            "--append-system-prompt", instructions, "--add-dir", "/srv"]
        self.assertEqual(called["argv"], argv("Be brief."))
        self.assertEqual(called["stdin"], f"Ada, do the dishes in run {run['id']}.")
        self.assertEqual(run["command"]["argv"], ["claude", *argv("[instructions, 9 bytes]")])
        self.assertEqual(run["command"]["promptExcerpt"], called["stdin"])
        self.assertEqual(called["environment"]["CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC"], "1")
        self.assertNotIn("IS_SANDBOX", called["environment"])
        self.assertEqual(run["contextSnapshot"]["reason"], "it is late")
        _, called = self.turn(agent, prompt="Only this.")
        self.assertEqual(called["stdin"], "Only this.")

    def test_without_a_template_the_prompt_names_the_agent(self):
        agent = self.agent("claude_local")
        _, called = self.turn(agent)
        self.assertEqual(called["stdin"], f"You are Ada (agent {agent}). Continue with your work.")

    def test_what_it_says_becomes_events_and_a_result(self):
        agent = self.agent("claude_local")
        self.plays([CLAUDE[0], "no JSON at all", *CLAUDE[1:]])
        run, _ = self.turn(agent)
        self.assertEqual(self.told(run), [
            ("agent.session", SESSION), ("agent.raw", "no JSON at all"), ("agent.thinking", "hm"),
            ("agent.assistant", "I look."), ("agent.tool_call", "Bash: ls"), ("agent.tool_result", "a b"),
            ("agent.result", "All done.")])
        by_type = {event["eventType"]: event for event in self.events(run)}
        self.assertEqual(by_type["agent.tool_call"]["payload"], {
            "id": "t1", "name": "Bash", "command": "ls", "input": {"command": "ls"}})
        self.assertEqual(by_type["agent.tool_result"]["payload"], {"id": "t1", "content": "a b"})
        self.assertEqual(by_type["agent.assistant"]["stream"], "stdout")
        self.assertEqual(run["sessionIdAfter"], SESSION)
        self.assertEqual(run["resultJson"], {
            "sessionId": SESSION, "model": "opus", "result": "All done.", "error": None,
            "usage": {"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 7,
                      "cacheWriteInputTokens": 0}, "sessionUsage": None, "costUsd": 0.25})
        self.assertGreaterEqual(run["usageJson"]["userMs"], 0)

    def test_the_next_turn_goes_on_with_the_session_unless_a_fresh_one_is_asked_for(self):
        agent = self.agent("claude_local")
        self.plays(CLAUDE)
        first, called = self.turn(agent)
        self.assertNotIn("--resume", called["argv"])
        self.assertIsNone(first["sessionIdBefore"])
        second, called = self.turn(agent)
        self.assertEqual(called["argv"][called["argv"].index("--resume"):][:2], ["--resume", SESSION])
        self.assertEqual(second["sessionIdBefore"], SESSION)
        fresh, called = self.turn(agent, forceFreshSession=True)
        self.assertNotIn("--resume", called["argv"])
        self.assertIsNone(fresh["sessionIdBefore"])
        _, called = self.turn(self.agent("claude_local"))
        self.assertNotIn("--resume", called["argv"], "a session is its own agent's")

    def test_a_retry_repeats_the_prompt_and_the_variables(self):
        agent = self.agent("claude_local", promptTemplate="the template")
        self.plays(CLAUDE)
        first, called = self.turn(agent, prompt="Only this.", env={"WORD": "given"}, forceFreshSession=True)
        self.assertEqual((called["stdin"], called["environment"]["WORD"]), ("Only this.", "given"))
        for again in range(2):
            (self.stage / "called.json").unlink()
            answer = self.server.post(f"/api/heartbeat-runs/{first['id']}/retry", None)
            self.assertEqual(answer.status, 202, answer.text)
            first = runs.wait_for_end(self.server, answer.json["id"])
            self.assertEqual(first["status"], "succeeded", first)
            called = json.loads((self.stage / "called.json").read_text())
            self.assertEqual((called["stdin"], called["environment"]["WORD"]), ("Only this.", "given"))
            self.assertNotIn("--resume", called["argv"], "a fresh session was asked for")
        # A command that was given for an agent is repeated, not the agent's turn.
        answer = self.server.post(f"/api/companies/{self.server.company()}/runs",
                                  {"agentId": agent, "command": "sh", "args": ["-c", "cat"], "stdinText": "plain"})
        named = runs.wait_for_end(self.server, answer.json["id"])
        again = self.server.post(f"/api/heartbeat-runs/{named['id']}/retry", None).json["id"]
        self.assertEqual(runs.wait_for_end(self.server, again)["stdoutExcerpt"], "plain")

    def test_what_is_no_session_id_never_becomes_an_argument(self):
        agent = self.agent("claude_local")
        for told in ("--dangerously-skip-permissions", "a\0b", "y" * 140_000):
            self.plays([{**CLAUDE[0], "session_id": told}, {**CLAUDE[3], "session_id": told}])
            run, called = self.turn(agent)
            self.assertEqual((run["status"], run["sessionIdAfter"]), ("succeeded", None), run["error"])
            self.assertNotIn("--resume", called["argv"])

    def test_an_error_that_it_reports_fails_the_run_whatever_its_status(self):
        agent = self.agent("claude_local")
        self.plays([CLAUDE[0], {**CLAUDE[3], "is_error": True, "result": "Credit balance is too low"}])
        run, _ = self.turn(agent)
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "agent_quota_exceeded"))
        self.assertIn("Credit balance is too low", run["error"])
        self.assertIn("Remedy: ", run["error"])
        self.assertEqual(self.told(run)[-1], ("agent.error", "Credit balance is too low"))
        self.assertEqual(run["resultJson"]["error"], "Credit balance is too low")
        self.plays(CLAUDE, status=3)
        run, _ = self.turn(agent)
        self.assertEqual((run["status"], run["exitCode"]), ("failed", 3))

    def test_a_missing_program_is_said_with_a_remedy(self):
        (self.stage / "claude").unlink()
        run, _ = self.turn(self.agent("claude_local", env={"PATH": str(self.stage)}))
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "command_not_found"))
        self.assertIn("claude", run["error"])
        self.assertIn("Remedy: ", run["error"])
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(self.server)))

    def test_a_secret_of_the_agent_is_in_the_process_and_in_nothing_that_it_says(self):
        secret = self.server.post(f"/api/companies/{self.server.company()}/secrets",
                                  {"name": "door", "value": "open sesame 42"}).json["id"]
        agent = self.agent("claude_local", env={"SECRET": {"type": "secret_ref", "secretId": secret}})
        said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "it is $SECRET!"}]}}
        self.plays([CLAUDE[0], said, {**CLAUDE[3], "result": "I said $SECRET"}])
        run, called = self.turn(agent)
        self.assertEqual(called["environment"]["SECRET"], "open sesame 42")
        self.assertEqual(self.told(run)[1:], [("agent.assistant", "it is ***REDACTED***!"),
                                              ("agent.result", "I said ***REDACTED***")])
        everything = json.dumps([run, self.events(run)]) + runs.output(self.server, run["id"])
        self.assertNotIn("sesame", everything)


class Codex(Agents):
    def setUp(self):
        super().setUp()
        self.stand_in("codex")

    def test_it_is_called_with_its_flags_and_has_its_prompt_on_stdin(self):
        agent = self.agent("codex_local", model="o4", modelReasoningEffort="low", search=True,
                           dangerouslyBypassApprovalsAndSandbox=True, extraArgs=["--color", "never"])
        self.plays(CODEX)
        run, called = self.turn(agent, prompt="Tidy up.")
        self.assertEqual(run["status"], "succeeded", run)
        flags = ["--search", "exec", "--json", "--skip-git-repo-check",
                 "-c", "features.plugins=false", "-c", "analytics.enabled=false",
                 "--dangerously-bypass-approvals-and-sandbox", "--model", "o4",
                 "-c", 'model_reasoning_effort="low"', "--color", "never"]
        self.assertEqual(called["argv"], [*flags, "-"])
        self.assertEqual(called["stdin"], "Tidy up.")
        again, called = self.turn(agent)
        self.assertEqual(called["argv"], [*flags, "resume", THREAD, "-"])
        self.assertEqual(again["sessionIdBefore"], THREAD)

    def test_what_it_says_becomes_events_and_a_result(self):
        self.plays(CODEX)
        run, _ = self.turn(self.agent("codex_local"))
        self.assertEqual(self.told(run), [
            ("agent.session", THREAD), ("agent.tool_call", "shell: ls"), ("agent.tool_result", "a b"),
            ("agent.thinking", "hm"), ("agent.assistant", "All done."), ("agent.result", "All done.")])
        self.assertEqual(run["resultJson"]["usage"],
                         {"inputTokens": 10, "cachedInputTokens": 4, "outputTokens": 7,
                          "cacheWriteInputTokens": 0})
        self.assertEqual((run["sessionIdAfter"], run["resultJson"]["result"]), (THREAD, "All done."))

    def test_a_turn_that_failed_fails_the_run(self):
        self.plays([CODEX[0], {"type": "turn.failed", "error": {"message": "stream disconnected"}}])
        run, _ = self.turn(self.agent("codex_local"))
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "agent_model_unreachable"))
        self.assertIn("stream disconnected", run["error"])

    def test_a_missing_program_is_said_with_a_remedy(self):
        (self.stage / "codex").unlink()
        run, _ = self.turn(self.agent("codex_local", env={"PATH": str(self.stage)}))
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "command_not_found"))
        self.assertIn("Remedy: ", run["error"])


class Process(Agents):
    def setUp(self):
        super().setUp()
        self.stand_in("worker")

    def test_it_is_called_as_its_config_says_and_its_output_is_only_output(self):
        work = Path(tempfile.mkdtemp(dir=self.folder))
        agent = self.agent("process", command="worker", args=["--once", "a b"], cwd=str(work),
                           promptTemplate="for {{agent.name}}")
        self.plays([*CLAUDE, "plain"])
        run, called = self.turn(agent)
        self.assertEqual(run["status"], "succeeded", run)
        self.assertEqual((called["argv"], called["stdin"]), (["--once", "a b"], "for Ada"))
        self.assertEqual(called["cwd"], str(work))
        self.assertEqual(self.told(run), [])
        self.assertTrue(runs.output(self.server, run["id"]).endswith("plain\n"))
        self.assertIsNone(run["resultJson"])
        self.assertIsNone(run["sessionIdAfter"])

    def test_its_environment_is_what_was_promised_and_nothing_of_the_servers(self):
        run, called = self.turn(self.agent("process", command="worker", env={"GIVEN": "yes"}),
                                env={"ASKED": "also"})
        self.assertEqual(run["status"], "succeeded", run)
        seen = called["environment"]
        prefixed = ["COMPANY_ID", "RUN_ID", "AGENT_ID", "API_URL", "API_KEY", "RUN_SCRATCH_DIR",
                    "TASK_SCRATCH_DIR", "SCRATCH_DIR", "TMPDIR", "WORKSPACE_CWD"]
        promised = {"PATH", "HOME", "LANG", "TERM", "TMPDIR", "TMP", "TEMP", "GIVEN", "ASKED",
                    *("BERTH_" + name for name in prefixed), *("PAPERCLIP_" + name for name in prefixed)}
        # An interpreter may add its chosen encoding.
        self.assertEqual(set(seen) - {"LC_CTYPE"}, promised)
        self.assertNotIn("of the server", seen.values())
        for name in prefixed:
            self.assertEqual(seen["BERTH_" + name], seen["PAPERCLIP_" + name])
        self.assertEqual(seen["BERTH_RUN_ID"], run["id"])
        self.assertEqual(seen["BERTH_COMPANY_ID"], self.server.company())
        self.assertEqual(seen["BERTH_API_URL"], f"http://127.0.0.1:{self.server.port}")
        self.assertEqual(seen["BERTH_WORKSPACE_CWD"], called["cwd"])

    def test_its_token_opens_the_door_as_long_as_its_run_lasts(self):
        agent = self.agent("process", command="worker")
        _, called = self.turn(agent)
        self.assertEqual(called["callback"], [200, agent])
        token = called["environment"]["BERTH_API_KEY"]
        after = self.server.get("/api/agents/me", Authorization=f"Bearer {token}")
        self.assertEqual(after.status, 401, after.text)

    def test_an_environments_variables_stand_behind_the_agents_and_those_behind_the_runs(self):
        company = self.server.company()
        local = next(each for each in self.server.get(f"/api/companies/{company}/environments").json
                     if each["driver"] == "local")
        changed = self.server.request("PATCH", f"/api/environments/{local['id']}", {
            "envVars": {"A": "environment", "B": "environment", "C": "environment"}})
        self.assertEqual(changed.status, 200, changed.text)
        agent = self.agent("process", command="worker", env={"B": "agent", "C": "agent"})
        _, called = self.turn(agent, env={"C": "run"})
        self.assertEqual([called["environment"][name] for name in "ABC"], ["environment", "agent", "run"])

    def test_a_missing_program_is_said_with_a_remedy(self):
        run, _ = self.turn(self.agent("process", command="no-such-program"))
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "command_not_found"))
        self.assertIn("no-such-program", run["error"])
        self.assertIn("Remedy: ", run["error"])
