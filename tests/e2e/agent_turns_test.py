"""Agent turns: how they ended and why, what they used, and how users see them."""

import hashlib
import json
import os
import re
from pathlib import Path

import runs_support as runs
from agents_test import CLAUDE, CODEX, Agents
from output_test import MEGABYTE, SANITIZED

FLOOD_MEMORY_MB = 64  # what a server may grow by while it reads a line of a gigabyte


def peak_mb(server):
    """The most memory that the server has had so far."""
    status = Path(f"/proc/{server.process.pid}/status").read_text()
    return int(re.search(r"VmHWM:\s+(\d+) kB", status).group(1)) / 1024


class Outcomes(Agents):
    def setUp(self):
        super().setUp()
        self.stand_in("claude", "codex")

    def test_a_codex_run_that_reconnected_and_succeeded_has_succeeded(self):
        self.plays([CODEX[0], {"type": "error", "message": "Reconnecting... 1/5 (stream disconnected)"}, *CODEX[1:]])
        run, _ = self.turn(self.agent("codex_local"))
        self.assertEqual((run["status"], run["error"]), ("succeeded", None))
        warned = [event for event in self.events(run) if event["level"] == "warn"]
        self.assertEqual([event["eventType"] for event in warned], ["agent.notice"])

    def test_the_reason_of_a_failure_has_a_code_and_a_remedy(self):
        result = lambda **more: {"type": "result", "subtype": "success", "is_error": True, **more}
        cases = [
            ("claude_local", [CLAUDE[0], result(result="Invalid API key · Fix external API key")], "agent_key_refused"),
            ("claude_local", [CLAUDE[0], result(result="API Error: Request rejected (429) · slow")], "agent_quota_exceeded"),
            ("claude_local", [CLAUDE[0], result(result="API Error: 529 Overloaded.")], "agent_model_overloaded"),
            ("claude_local", [CLAUDE[0], result(result="There's an issue with the selected model (x).")], "agent_model_unknown"),
            ("claude_local", [CLAUDE[0], result(result="API Error: Connection refused (ConnectionRefused)")], "agent_model_unreachable"),
            ("claude_local", [CLAUDE[0], result(result="API Error: API returned an empty or malformed response (HTTP 200)")], "agent_model_unreadable"),
            ("claude_local", [CLAUDE[0], result(subtype="error_max_turns", errors=["Reached maximum number of turns (1)"])], "agent_turn_limit"),
            ("claude_local", [result(subtype="error_during_execution", session_id="4e52357e-0000-4000-8000-000000000000",
                                     errors=["No conversation found with session ID: 4e52357e"])], "agent_session_lost"),
            ("codex_local", [CODEX[0], {"type": "turn.failed", "error": {"message": "exceeded retry limit, last status: 429 Too Many Requests"}}], "agent_quota_exceeded"),
        ]
        for adapter, lines, code in cases:
            with self.subTest(code=code, adapter=adapter):
                self.plays(lines, status=1)
                run, _ = self.turn(self.agent(adapter), forceFreshSession=True)
                self.assertEqual((run["status"], run["errorCode"]), ("failed", code), run["error"])
                self.assertIn("Remedy: ", run["error"])
        self.assertIsNone(run["resultJson"]["sessionId"] if code == "agent_session_lost" else None)

    def test_a_run_that_timed_out_says_what_the_agent_waited_for(self):
        waits = {"type": "error", "message": "Reconnecting... waiting for network"}
        program = self.stage / "slow"
        program.write_text(f"#!/bin/sh\necho '{json.dumps(CODEX[0])}'\necho '{json.dumps(waits)}'\nsleep 60\n")
        program.chmod(0o755)
        run, _ = self.turn(self.agent("codex_local", command=str(program), timeoutSec=2))
        self.assertEqual((run["status"], run["errorCode"]), ("timed_out", "timed_out"))
        self.assertIn("waiting for network", run["error"])

    def test_an_empty_prompt_is_refused_before_anything_starts(self):
        agent = self.agent("claude_local", promptTemplate="{{context.task}}")
        for wish in ({"prompt": " \n"}, {"prompt": ""}, {}):
            answer = self.server.post(f"/api/agents/{agent}/heartbeat/invoke", wish)
            self.assertEqual((answer.status, answer.json["code"]), (422, "unprocessable"), answer.text)
        self.assertEqual(self.server.get(f"/api/companies/{self.server.company()}/heartbeat-runs").json, [])

    def test_a_missing_instructions_file_is_named(self):
        agent = self.agent("codex_local", instructionsFilePath=str(self.stage / "none.md"))
        run, called = self.turn(agent)
        self.assertEqual((run["status"], run["errorCode"]), ("failed", "agent_instructions_missing"))
        self.assertIn("none.md", run["error"])
        self.assertIsNone(called)
        os.mkfifo(self.stage / "pipe")
        run, _ = self.turn(self.agent("codex_local", instructionsFilePath=str(self.stage / "pipe")))
        self.assertEqual(run["errorCode"], "agent_instructions_missing")

    def test_instructions_stand_in_front_of_a_codex_prompt(self):
        (self.stage / "rules.md").write_text("Be brief.")
        agent = self.agent("codex_local", instructionsFilePath=str(self.stage / "rules.md"), instructions="Be kind.")
        run, called = self.turn(agent, prompt="Do it.")
        self.assertEqual(called["stdin"], "Be brief.\n\nBe kind.\n\nDo it.")
        self.assertEqual(run["command"]["promptExcerpt"], "Do it.")

    def test_a_resumed_codex_thread_counts_each_run_by_itself(self):
        agent = self.agent("codex_local", model="gpt-x")
        usage = lambda tokens: {"type": "turn.completed", "usage": {"input_tokens": tokens, "output_tokens": tokens // 2}}
        spent = []
        for total in (46, 92, 138):
            self.plays([*CODEX[:-1], usage(total)])
            run, _ = self.turn(agent)
            spent.append((run["resultJson"]["usage"]["inputTokens"], run["resultJson"]["usage"]["outputTokens"]))
            self.assertEqual(run["resultJson"]["sessionUsage"]["inputTokens"], total)
            self.assertEqual(run["resultJson"]["model"], "gpt-x")
            used = run["usageJson"]  # where clients of Paperclip look
            self.assertEqual((used["model"], used["inputTokens"], used["outputTokens"]), ("gpt-x", 46, 23))
            self.assertIn("cpuMs", used)
        self.assertEqual(spent, [(46, 23), (46, 23), (46, 23)])

    def test_a_line_of_megabytes_keeps_its_result(self):
        done = {"type": "item.completed", "item": {"id": "i1", "type": "command_execution", "command": "cat big",
                                                   "exit_code": 0, "aggregated_output": "x" * 3_000_000}}
        self.plays([CODEX[0], CODEX[1], done, *CODEX[4:]])
        run, _ = self.turn(self.agent("codex_local"))
        self.assertEqual(run["status"], "succeeded", run["error"])
        results = [event for event in self.events(run) if event["eventType"] == "agent.tool_result"]
        self.assertEqual([event["payload"]["exitCode"] for event in results], [0])
        self.assertLess(len(json.dumps(results)), 40_000)

    def test_a_gigabyte_without_a_newline_is_limited_and_told_and_nothing_is_lost(self):
        megabytes = 64 if SANITIZED else 1024
        first, last = json.dumps(CLAUDE[0]) + "\n", "\n" + json.dumps(CLAUDE[-1]) + "\n"
        program = self.stage / "flood"
        program.write_text(f"#!/bin/sh\nprintf '%s' '{first}'\n"
                           f"head -c {megabytes}M /dev/zero | tr '\\0' x\nprintf '%s' '{last}'\n")
        program.chmod(0o755)
        agent = self.agent("claude_local", command=str(program))
        before = peak_mb(self.server)
        run, _ = self.turn(agent)
        self.assertEqual((run["status"], run["error"]), ("succeeded", None))
        self.assertEqual((run["resultJson"]["result"], run["sessionIdAfter"]), ("All done.", CLAUDE[0]["session_id"]))

        events = self.server.get(f"/api/heartbeat-runs/{run['id']}/events?limit=1000")
        self.assertLess(len(events.text), 100_000)
        warned = [event for event in events.json if event["level"] == "warn"]
        self.assertEqual([event["payload"] for event in warned], [{"lineBytes": megabytes * MEGABYTE}])
        self.assertIn("too long to be read", warned[0]["message"])
        listed = self.server.get(f"/api/companies/{self.server.company()}/heartbeat-runs")
        self.assertLess(len(listed.text), 2_000, "a list carries no output")
        if not SANITIZED:
            self.assertLess(peak_mb(self.server) - before, FLOOD_MEMORY_MB)

        written = hashlib.sha256(first.encode())
        for _ in range(megabytes):
            written.update(b"x" * MEGABYTE)
        written.update(last.encode())
        self.assertEqual(run["logSha256"], written.hexdigest())
        told = self.run_berth("run", "get", run["id"], "-o", "table", "--home", self.server.home)
        self.assertIn("All done.", told.stdout)
        self.assertLess(len(told.stdout), 10_000)


class Transcripts(Agents):
    def setUp(self):
        super().setUp()
        self.stand_in("claude", "codex")

    def transcript(self, run, query=""):
        answer = self.server.get(f"/api/heartbeat-runs/{run['id']}/transcript{query}")
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def test_it_has_the_prompt_the_answer_the_calls_and_the_numbers(self):
        self.plays(CLAUDE)
        run, _ = self.turn(self.agent("claude_local"), prompt="Look around.\nThen stop.")
        told = self.transcript(run)
        self.assertEqual([(entry["kind"], entry["text"]) for entry in told["entries"]], [
            ("prompt", "Look around.\nThen stop."), ("thinking", "hm"), ("message", "I look."),
            ("tool_call", ""), ("tool_result", "a b")])
        call, result = told["entries"][3:]
        self.assertEqual((call["toolName"], call["command"], call["toolId"]), ("Bash", "ls", "t1"))
        self.assertEqual(result["toolId"], "t1")
        self.assertEqual((told["agentName"], told["adapterType"], told["model"], told["costUsd"], told["complete"]),
                         ("Ada", "claude_local", "opus", 0.25, True))
        self.assertEqual(told["usage"]["outputTokens"], 7)
        self.assertEqual(run["command"]["promptExcerpt"], "Look around.")

    def test_it_comes_in_pages(self):
        self.plays(CLAUDE)
        run, _ = self.turn(self.agent("claude_local"), prompt="Look.")
        seen, after = [], 0
        while True:
            page = self.transcript(run, f"?afterSeq={after}&limit=2")
            seen += page["entries"]
            after = page["nextSeq"]
            if page["complete"]:
                break
        self.assertEqual(seen, self.transcript(run)["entries"])
        self.assertEqual(self.server.get(f"/api/heartbeat-runs/{run['id']}/transcript?limit=0").status, 400)

    def test_a_secret_in_the_prompt_or_the_answer_is_not_in_it(self):
        secret = self.server.post(f"/api/companies/{self.server.company()}/secrets",
                                  {"name": "door", "value": "open sesame 42"}).json["id"]
        agent = self.agent("claude_local", env={"SECRET": {"type": "secret_ref", "secretId": secret}})
        said = {"type": "assistant", "message": {"content": [{"type": "text", "text": "it is $SECRET!"}]}}
        self.plays([CLAUDE[0], said, CLAUDE[3]])
        run, called = self.turn(agent, prompt="Say open sesame 42 aloud")
        self.assertIn("sesame", called["stdin"])
        everything = json.dumps([run, self.transcript(run), self.events(run)])
        self.assertNotIn("sesame", everything)

    def test_a_command_without_an_agent_has_an_empty_one(self):
        run = runs.wait_for_end(self.server, self.server.post(
            f"/api/companies/{self.server.company()}/runs", {"command": "true"}).json["id"])
        told = self.transcript(run)
        self.assertEqual((told["entries"], told["adapterType"], told["complete"]), ([], None, True))

    def test_the_command_line_prints_it_for_people_and_the_stream_with_raw(self):
        agent = self.agent("claude_local")
        self.plays(CLAUDE)
        home = ["--home", self.server.home]
        done = self.run_berth("agent", "invoke", agent, "-p", "Look.", "-f", *home)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "  ~ hm\nI look.\n* Bash: ls\n  | a b\n"
                                      "-- opus, 10 tokens in, 4 from the cache, 7 out, $0.25\n")
        run = self.server.get(f"/api/companies/{self.server.company()}/heartbeat-runs").json[0]["id"]
        logs = self.run_berth("run", "logs", run, *home)
        self.assertEqual(logs.stdout, "> Look.\n" + done.stdout)
        raw = self.run_berth("run", "logs", run, "--raw", *home)
        self.assertEqual([json.loads(line)["type"] for line in raw.stdout.splitlines()],
                         ["system", "assistant", "user", "result"])
        raw = self.run_berth("agent", "invoke", agent, "-p", "Look.", "-f", "--raw", *home)
        self.assertEqual(json.loads(raw.stdout.splitlines()[0])["type"], "system")

    def test_the_command_line_says_why_a_turn_failed(self):
        agent = self.agent("claude_local")
        self.plays([CLAUDE[0], {"type": "result", "subtype": "success", "is_error": True,
                                "result": "Invalid API key"}], status=1)
        done = self.run_berth("agent", "invoke", agent, "-p", "Look.", "-f", "--home", self.server.home)
        self.assertEqual(done.returncode, 1)
        self.assertIn("The model server refuses the key: Invalid API key. Remedy: ", done.stderr)

    def test_a_missing_program_is_told_once_with_the_remedy_of_its_place(self):
        agent = self.agent("claude_local", command="no-such-claude")
        done = self.run_berth("agent", "invoke", agent, "-p", "Look.", "-f", "--home", self.server.home)
        self.assertEqual(done.returncode, 127, done.stderr)
        self.assertEqual(done.stderr.count("'no-such-claude' was not found"), 1, done.stderr)
        self.assertIn("~/.local/bin of the agent's home", done.stderr)
        self.assertNotIn("check the name", done.stderr)

    def test_a_turn_that_nobody_follows_prints_its_id(self):
        agent = self.agent("claude_local")
        self.plays(CLAUDE)
        home = ["--home", self.server.home]
        done = self.run_berth("agent", "invoke", agent, "-p", "Look.", "-o", "table", *home)
        newest = self.server.get(f"/api/companies/{self.server.company()}/heartbeat-runs").json[0]["id"]
        self.assertEqual((done.returncode, done.stdout), (0, newest + "\n"), done.stderr)
        self.assertEqual(runs.wait_for_end(self.server, newest)["status"], "succeeded")
        self.assertIsNotNone(self.server.get(f"/api/agents/{agent}").json["lastHeartbeatAt"])

        empty = self.run_berth("agent", "invoke", agent, "-p", "", *home)
        self.assertEqual(empty.returncode, 1, empty.stdout)
        self.assertIn("prompt", empty.stderr)
        self.assertEqual(self.server.get(f"/api/companies/{self.server.company()}/heartbeat-runs").json[0]["id"], newest)


class Configs(Agents):
    def setUp(self):
        super().setUp()
        self.home = ["--home", self.server.home]

    def config(self, agent):
        return self.server.get(f"/api/agents/{agent}").json["adapterConfig"]

    def test_set_merges_and_null_removes(self):
        agent = self.agent("claude_local", model="opus", effort="high")
        done = self.run_berth("agent", "update", agent, "--set", "model=haiku", "--set", "effort=null", *self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        config = self.config(agent)
        self.assertEqual((config["model"], "effort" in config, "env" in config), ("haiku", False, True))
        done = self.run_berth("agent", "update", agent, "--config", '{"model": "opus"}', *self.home)
        self.assertEqual(self.config(agent), {"model": "opus"})

    def test_secrets_and_instructions_are_given_by_name(self):
        secret = self.server.post(f"/api/companies/{self.server.company()}/secrets",
                                  {"name": "model key", "value": "sk-0123456789"}).json["id"]
        rules = self.stage / "rules.md"
        rules.write_text("Be kind.\n")
        done = self.run_berth("agent", "create", "coder", "--adapter", "claude_local", "--env-secret",
                              "ANTHROPIC_API_KEY=model key", "--instructions", rules, *self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        config = json.loads(done.stdout)["adapterConfig"]
        self.assertEqual(config["instructions"], "Be kind.\n")
        self.assertEqual(config["env"]["ANTHROPIC_API_KEY"]["secretId"], secret)

    def test_variables_are_given_as_those_of_a_run(self):
        secret = self.server.post(f"/api/companies/{self.server.company()}/secrets",
                                  {"name": "key", "value": "sk-0123456789"}).json["id"]
        file = self.stage / "vars"
        file.write_text("# theirs\nIN_FILE=1\n")
        done = self.run_berth("agent", "create", "coder", "--adapter", "process", "--set", "command=/bin/true",
                              "--var", "KEY=secret:key", "--var", "PLAIN=a=b", "--env-file", file, *self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        agent = json.loads(done.stdout)
        self.assertEqual(agent["adapterConfig"]["env"]["KEY"]["secretId"], secret)
        done = self.run_berth("agent", "update", "coder", "--var", "PLAIN=c", *self.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        env = self.config(agent["id"])["env"]
        plain = lambda name: env[name]["value"] if isinstance(env[name], dict) else env[name]
        self.assertEqual((set(env), plain("PLAIN"), plain("IN_FILE")), ({"KEY", "PLAIN", "IN_FILE"}, "c", "1"))

    def test_an_unknown_key_is_refused_with_the_nearest_one(self):
        agent = self.agent("claude_local", model="opus")
        before = self.config(agent)
        done = self.run_berth("agent", "update", agent, "--set", "modle=x", *self.home)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("did you mean model?", done.stderr)
        self.assertEqual(self.config(agent), before)
        answer = self.server.post(f"/api/companies/{self.server.company()}/agents", {
            "name": "B", "adapterType": "codex_local", "adapterConfig": {"permissionMode": "all"}})
        self.assertEqual((answer.status, answer.json["details"]["issues"][0]["path"]),
                         (422, "/adapterConfig/permissionMode"))

    def test_each_adapter_has_a_schema(self):
        adapters = {each["adapterType"]: each for each in self.server.get("/api/adapters").json}
        self.assertEqual(set(adapters), {"process", "claude_local", "codex_local"})
        mode = adapters["claude_local"]["configSchema"]["properties"]["permissionMode"]
        self.assertEqual((mode["default"], "acceptEdits" in mode["enum"]), ("bypass", True))
        done = self.run_berth("agent", "adapters", *self.home)
        self.assertIn("permissionMode", done.stdout)
