"""Agent homes and sessions across server crashes. The program is a stand-in that keeps its sessions
like Claude Code."""

import http.client
import shutil
import subprocess
import sys
import textwrap
import unittest

import runs_support as runs
import sandbox_test
from support import BerthTest

STAND_IN = textwrap.dedent("""\
    #!{python}
    import json, os, pathlib, sys, uuid
    folder = pathlib.Path(os.environ.get("CLAUDE_CONFIG_DIR", os.environ["HOME"] + "/.claude")) / "projects" / "work"
    folder.mkdir(parents=True, exist_ok=True)
    sys.stdin.read()
    with open({calls!r}, "a") as calls:
        calls.write("called\\n")
    session = str(uuid.uuid4())
    if "--resume" in sys.argv:
        session = sys.argv[sys.argv.index("--resume") + 1]
        if not (folder / (session + ".jsonl")).exists():
            sys.stderr.write("No conversation found with session ID: " + session + "\\n")
            print(json.dumps({{"type": "result", "subtype": "error_during_execution", "is_error": True,
                               "session_id": session}}))
            sys.exit(1)
    print(json.dumps({{"type": "system", "subtype": "init", "session_id": session, "model": "m"}}))
    (folder / (session + ".jsonl")).open("a").write("turn\\n")
    (pathlib.Path(os.environ["HOME"]) / "kept").write_text("yes")
    print(json.dumps({{"type": "result", "subtype": "success", "is_error": False, "session_id": session,
                       "result": (folder / (session + ".jsonl")).read_text()}}))
    """)


class AgentHomes(BerthTest):
    def setUp(self):
        super().setUp()
        self.calls = self.folder / "calls"
        program = self.folder / "claude"
        program.write_text(STAND_IN.format(python=sys.executable, calls=str(self.calls)))
        program.chmod(0o755)

    def agent(self, server, **env):
        made = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local",
            "adapterConfig": {"path": [str(self.folder)], "env": env}})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def turn(self, server, agent, **wish):
        answer = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "go on", **wish})
        self.assertEqual(answer.status, 202, answer.text)
        return runs.wait_for_end(server, answer.json["id"])

    def homes(self, server):
        return [folder for folder in (server.home / "agents").iterdir() if folder.is_dir()]

    def test_the_second_turn_resumes_also_after_a_restart_of_the_server(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                home = self.folder / engine
                server = self.serve(home=home, **variables)
                agent = self.agent(server)
                first = self.turn(server, agent)
                self.assertEqual(first["status"], "succeeded", first)
                server.stop()
                server = self.serve(home=home, **variables)
                second = self.turn(server, agent)
                self.assertEqual(second["sessionIdBefore"], first["sessionIdAfter"])
                self.assertEqual(second["resultJson"]["result"], "turn\nturn\n")
                rows = server.get(f"/api/agents/{agent}/homes").json
                self.assertEqual([row["sessionId"] for row in rows], [first["sessionIdAfter"]])
                self.assertGreater(rows[0]["bytes"], 0)
                usage = server.get(f"/api/companies/{server.company()}/usage").json
                self.assertGreaterEqual(usage["bytes"], rows[0]["bytes"])

    def test_a_lost_session_is_begun_anew_once_across_a_crash(self):
        for point in ("session.lost", "session.begun_again"):
            with self.subTest(point):
                home, elsewhere = self.folder / point, self.folder / f"config-{point}"
                server = self.serve(home=home)
                agent = self.agent(server, CLAUDE_CONFIG_DIR=str(elsewhere))
                first = self.turn(server, agent)
                self.assertEqual(first["status"], "succeeded", first)
                for file in elsewhere.rglob("*.jsonl"):
                    file.unlink()
                server.stop()
                self.calls.unlink()
                server = self.serve(home=home, BERTH_FAULT_POINT=point)
                run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "go on"}).json["id"]
                self.dies_at(point, server)
                server = self.serve(home=home)
                second = runs.wait_for_end(server, run)
                self.assertEqual(second["status"], "succeeded", second)
                self.assertEqual(second["resultJson"]["result"], "turn\n")
                self.assertNotEqual(second["sessionIdAfter"], first["sessionIdAfter"])
                self.assertEqual(self.calls.read_text(), "called\n" * 2)
                events = server.get(f"/api/heartbeat-runs/{run}/events?limit=1000").json
                said = [event for event in events if "cannot resume session" in event["message"]]
                self.assertEqual(len(said), 1, events)

    def test_a_reset_that_was_cut_off_is_finished_by_the_next_server(self):
        for point in ("agent_homes.reset", "agent_homes.lost"):
            with self.subTest(point):
                home = self.folder / point
                server = self.serve(home=home)
                agent = self.agent(server)
                first = self.turn(server, agent)
                # A home that a lease still holds is not reset.
                server.get(f"/api/heartbeat-runs/{first['id']}?wait=30&until=release")
                server.stop()
                server = self.serve(home=home, BERTH_FAULT_POINT=point)
                with self.assertRaises((OSError, http.client.HTTPException)):
                    server.post(f"/api/agents/{agent}/reset", {})
                self.dies_at(point, server)
                self.assertEqual(len(self.homes(server)), 1)
                server = self.serve(home=home)
                self.assertTrue(runs.eventually(lambda: not self.homes(server)))
                again = self.turn(server, agent)
                self.assertIsNone(again["sessionIdBefore"])
                self.assertNotEqual(again["sessionIdAfter"], first["sessionIdAfter"])

    def test_a_run_that_outlives_its_server_is_still_held_to_the_limit_of_its_home(self):
        mark, begun = self.folder / "mark", self.folder / "begun"
        program = self.folder / "claude"
        program.write_text(textwrap.dedent(f"""\
            #!{sys.executable}
            import os, pathlib, sys, time
            sys.stdin.read()
            pathlib.Path({str(begun)!r}).touch()
            while not os.path.exists({str(mark)!r}):
                time.sleep(0.1)
            with open(os.path.join(os.environ["HOME"], "big"), "wb") as out:
                out.write(bytes(4 << 20))
            time.sleep(600)
            """))
        server = self.serve()
        server.request("PATCH", "/api/instance/settings", {"agentHomeBytesMax": 1 << 20})
        agent = self.agent(server)
        run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "grow"}).json["id"]
        self.assertTrue(runs.eventually(begun.exists))
        server.kill()
        server = self.serve()
        self.addCleanup(server.post, f"/api/heartbeat-runs/{run}/cancel", {})
        self.assertEqual(runs.look(server, run)["status"], "running")
        mark.touch()
        ended = runs.wait_for_end(server, run, limit_s=40)
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "quota_exceeded"), ended)
        self.assertIn("is full", ended["error"])

    def test_what_an_agent_links_to_is_neither_counted_nor_removed(self):
        server = self.serve()
        agent = self.agent(server)
        self.turn(server, agent)
        treasure = self.folder / "treasure"
        treasure.mkdir()
        (treasure / "big").write_bytes(b"x" * (4 << 20))
        home = self.homes(server)[0] / "home"
        (home / "out").symlink_to(treasure)
        self.assertEqual(self.turn(server, agent)["status"], "succeeded")
        row = server.get(f"/api/agents/{agent}/homes").json[0]
        self.assertLess(row["bytes"], 1 << 20)
        # Its lease ends a moment after the run.
        self.assertTrue(runs.eventually(lambda: server.post(f"/api/agents/{agent}/reset", {}).status == 200))
        self.assertEqual(self.homes(server), [])
        self.assertTrue((treasure / "big").exists())
        self.assertEqual(oct((server.home / "agents").stat().st_mode & 0o777), "0o700")

    def test_a_session_id_that_is_no_uuid_is_not_kept(self):
        server = self.serve()
        agent = self.agent(server)
        program = self.folder / "claude"
        program.write_text(program.read_text().replace("str(uuid.uuid4())", "'../../etc/passwd'"))
        run = self.turn(server, agent)
        self.assertIsNone(run["sessionIdAfter"])
        self.assertIsNone(server.get(f"/api/agents/{agent}/homes").json[0]["sessionId"])


# The same for a sandbox, which always has a shell.
SHELL_STAND_IN = r"""#!/bin/sh
cat > /dev/null
folder=$HOME/.claude/projects/work
mkdir -p "$folder"
session=
while [ $# -gt 0 ]; do
  [ "$1" = --resume ] && session=$2
  shift
done
if [ -n "$session" ] && [ ! -e "$folder/$session.jsonl" ]; then
  echo "No conversation found with session ID: $session" >&2
  exit 1
fi
[ -n "$session" ] || session=$(cat /proc/sys/kernel/random/uuid)
echo "{\"type\":\"system\",\"subtype\":\"init\",\"session_id\":\"$session\",\"model\":\"m\"}"
echo turn >> "$folder/$session.jsonl"
said="$(cat "$HOME/given") $(wc -l < "$folder/$session.jsonl")"
echo own > "$HOME/given"
echo "{\"type\":\"result\",\"subtype\":\"success\",\"is_error\":false,\"session_id\":\"$session\",\"result\":\"$said\"}"
"""


@unittest.skipIf(sandbox_test.WHY_NOT, f"no sandboxes here: {sandbox_test.WHY_NOT}")
class SeededHomes(BerthTest):
    """An agent starts with the home contents of its environment's image or template."""

    def log(self, server, run):
        return server.get(f"/api/heartbeat-runs/{run}/log?format=raw").text

    def template(self, server, place):
        run = runs.start(server, "sh", "-c",
                         "mkdir -p ~/.local/bin && cat > ~/.local/bin/claude && chmod +x ~/.local/bin/claude && "
                         "echo image > ~/given && echo ready && sleep 600",
                         environmentId=place, stdinText=SHELL_STAND_IN)
        self.assertTrue(runs.eventually(lambda: "ready" in self.log(server, run)))
        lease = runs.look(server, run)["leaseId"]
        made = server.post(f"/api/environment-leases/{lease}/capture", {"name": "tools"})
        self.assertIn(made.status, (200, 201), made.text)
        server.post(f"/api/heartbeat-runs/{run}/cancel", None)
        runs.wait_for_end(server, run)

    def turn(self, server, agent):
        answer = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "go on"})
        self.assertEqual(answer.status, 202, answer.text)
        ended = server.get(f"/api/heartbeat-runs/{answer.json['id']}?wait=30&until=release").json
        self.assertEqual(ended["status"], "succeeded", ended)
        return ended

    def image(self, server):
        """A tree with only a shell, what the stand-in and the copy need, and a home."""
        tree = self.folder / "tree"
        tools = [f"/usr/bin/{name}" for name in ("cat", "mkdir", "wc", "cp", "du", "cut")]
        for tool in tools:
            linked = subprocess.run(["ldd", tool], capture_output=True, text=True, check=True).stdout
            tools += [word for word in linked.split() if word.startswith("/") and word not in tools]
        for file in [*sandbox_test.files_of_a_shell(), *tools]:
            place = tree / file.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
        programs = tree / "home" / "sandbox" / ".local" / "bin"
        programs.mkdir(parents=True)
        (programs / "claude").write_text(SHELL_STAND_IN)
        (programs / "claude").chmod(0o755)
        (tree / "home" / "sandbox" / "given").write_text("image\n")
        made = self.run_berth("--home", server.home, "image", "import", tree, "small")
        self.assertEqual(made.returncode, 0, made.stderr)

    def agent_in(self, server, **config):
        place = server.post(f"/api/companies/{server.company()}/environments", {
            "name": "tooled", "driver": "sandbox", "config": {"provider": "linux", **config}})
        self.assertEqual(place.status, 201, place.text)
        return server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local",
            "adapterConfig": {},
            "defaultEnvironmentId": place.json["id"]}).json["id"]

    def expect_seeded_once(self, server, agent):
        first = self.turn(server, agent)
        self.assertEqual(first["resultJson"]["result"], "image 1")
        second = self.turn(server, agent)
        self.assertEqual(second["resultJson"]["result"], "own 2", "it is seeded once")
        self.assertEqual(second["sessionIdBefore"], first["sessionIdAfter"])
        reset = server.post(f"/api/agents/{agent}/reset", {})
        self.assertEqual(reset.status, 200, reset.text)
        third = self.turn(server, agent)
        self.assertEqual(third["resultJson"]["result"], "image 1", "after a reset it is seeded again")
        self.assertIsNone(third["sessionIdBefore"])

    def test_a_home_begins_with_what_the_template_has_and_goes_on_with_its_own(self):
        server = self.serve()
        plain = server.post(f"/api/companies/{server.company()}/environments", {
            "name": "plain", "driver": "sandbox", "config": {"provider": "linux"}}).json["id"]
        self.template(server, plain)
        self.expect_seeded_once(server, self.agent_in(server, template="tools"))

    def test_a_home_begins_with_what_the_image_has(self):
        server = self.serve()
        self.image(server)
        self.expect_seeded_once(server, self.agent_in(server, image="small"))
