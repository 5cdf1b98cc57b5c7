"""What one agent or one company may use of shared space: payloads, wakeups, the disk."""

import os
import subprocess
import sys
import textwrap
import unittest

import runs_support as runs
import sandbox_test
from support import BERTH, BerthTest, clean_environment

MEGABYTE = 1 << 20

# Reads its own secret endlessly, and prints how often it was allowed.
READER = textwrap.dedent("""
    import os, urllib.error, urllib.request
    granted = refused = 0
    for _ in range(400):
        request = urllib.request.Request(
            os.environ["BERTH_API_URL"] + "/api/agents/me/secrets/door/value", method="POST")
        request.add_header("Authorization", "Bearer " + os.environ["BERTH_API_KEY"])
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                value = answer.read()
                granted += 1
        except urllib.error.HTTPError as error:
            assert error.code == 429, error.code
            refused += 1
    print("all asked", granted < 400, refused > 0, value.decode())
""")

# Fills its home, 8 MiB at a time, until it is full or the program is ended.
FILLER = textwrap.dedent("""\
    #!{python}
    import os, pathlib, sys, time
    sys.stdin.read()
    home = pathlib.Path(os.environ["HOME"])
    for number in range(1000):
        (home / str(number)).write_bytes(bytes(8 << 20))
        time.sleep(0.1)
    """)

# Fills the disk with a file that has no name.
NAMELESS = textwrap.dedent("""\
    #!/usr/bin/python3
    import os, sys, time
    sys.stdin.read()
    path = os.environ["HOME"] + "/nameless"
    with open(path, "wb") as file:
        os.unlink(path)
        for _ in range(1000):
            file.write(bytes(8 << 20))
            time.sleep(0.1)
    """)


class Quota(BerthTest):
    def small_disk(self, megabytes):
        folder = self.folder / "small"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        return folder

    def agent_of(self, server, company, command="true", env=None, args=None):
        """An agent, and the headers of its requests."""
        made = server.post(f"/api/companies/{company}/agents", {
            "name": "Ada", "adapterType": "process",
            "adapterConfig": {"command": command, "args": args or [], "env": env or {}}})
        self.assertEqual(made.status, 201, made.text)
        key = server.post(f"/api/companies/{company}/tokens", {
            "name": "of the agent", "kind": "agent_key", "agentId": made.json["id"]})
        self.assertEqual(key.status, 201, key.text)
        environment = server.get(f"/api/companies/{company}/environments?driver=local").json[0]["id"]
        server.request("PATCH", f"/api/agents/{made.json['id']}", {"defaultEnvironmentId": environment})
        return made.json["id"], {"Authorization": f"Bearer {key.json['key']}"}

    def activities(self, server, company, action):
        return [row for row in server.get(f"/api/companies/{company}/activity?limit=500").json
                if row["action"] == action]

    def test_a_large_payload_of_an_agent_is_refused_by_name(self):
        server = self.serve()
        agent, key = self.agent_of(server, server.company())
        for _ in range(5):
            refused = server.post(f"/api/agents/{agent}/wakeup", {"payload": {"x": "x" * 960_000}}, key)
            self.assertEqual((refused.status, refused.json["code"]), (413, "body_too_large"), refused.text)
            self.assertIn("/payload", refused.json["error"])
            self.assertIn("16384", refused.json["error"])
        allowed = server.post(f"/api/agents/{agent}/wakeup", {"payload": {"x": "x" * 16_000}}, key)
        self.assertEqual(allowed.status, 202, allowed.text)
        runs.wait_for_end(server, allowed.json["id"])

    def test_a_loop_of_wakeups_is_limited_and_reported_once_and_others_go_on(self):
        server = self.serve()
        company = server.company()
        agent, key = self.agent_of(server, company)
        codes = [server.post(f"/api/agents/{agent}/wakeup", {}, key) for _ in range(120)]
        limited = [answer for answer in codes if answer.status == 429]
        self.assertGreater(len(limited), 40)
        self.assertEqual({answer.json["code"] for answer in limited}, {"rate_limited"})
        self.assertTrue(limited[0].json["remedy"])
        self.assertEqual(len(self.activities(server, company, "agent.wakeups_limited")), 1)
        other = server.post("/api/companies", {"name": "Other"}).json["id"]
        run = server.post(f"/api/companies/{other}/runs", {"command": "echo", "args": ["through"]})
        self.assertEqual(run.status, 202, run.text)
        self.assertEqual(runs.wait_for_end(server, run.json["id"])["status"], "succeeded")

    def test_a_run_that_reads_its_secret_without_end_is_limited_and_ends(self):
        server = self.serve()
        company = server.company()
        value = "v" * 4000
        secret = server.post(f"/api/companies/{company}/secrets", {"name": "door", "value": value}).json["id"]
        agent, _ = self.agent_of(server, company, sys.executable, args=["-c", READER],
                                 env={"DOOR": {"type": "secret_ref", "secretId": secret}})
        run = server.post(f"/api/agents/{agent}/wakeup", {}).json["id"]
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded",
                         runs.output(server, run, "stderr"))
        said = runs.output(server, run)
        self.assertIn("all asked True True", said)
        self.assertNotIn(value, said)

    def test_a_company_over_its_quota_is_refused_and_sees_why(self):
        server = self.serve()
        company = server.company()
        run = runs.start(server, "head", "-c", "100000", "/dev/zero")
        runs.wait_for_end(server, run)
        usage = f"/api/companies/{company}/usage"
        self.assertTrue(runs.eventually(lambda: server.get(usage).json["bytes"] >= 100_000))
        changed = server.request("PATCH", f"/api/companies/{company}/quota", {"bytesMax": 50_000})
        self.assertEqual((changed.status, changed.json["bytesMax"]), (200, 50_000), changed.text)
        refused = server.post(f"/api/companies/{company}/runs", {"command": "true"})
        self.assertEqual((refused.status, refused.json["code"]), (429, "quota_exceeded"), refused.text)
        shown = self.run_berth("--home", self.home, "company", "usage", company)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn("50000", shown.stdout)
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        self.assertTrue(runs.eventually(lambda: self.run_berth(
            "--home", self.home, "run", "delete", run, "--yes").returncode == 0))
        self.assertEqual(server.get(f"/api/heartbeat-runs/{run}").status, 404)
        self.assertEqual(list((self.home / "runs").glob(f"{run}*")), [])
        self.assertEqual(len(self.activities(server, company, "heartbeat.deleted")), 1)
        again = runs.start(server, "true")
        self.assertEqual(runs.wait_for_end(server, again)["status"], "succeeded")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small disk")
    def test_an_agent_that_fills_the_disk_by_its_home_is_stopped_before_the_reserve(self):
        home = self.small_disk(512)
        server = self.serve(home=home)
        self.addCleanup(server.kill)
        program = self.folder / "claude"
        program.write_text(FILLER.format(python=sys.executable))
        program.chmod(0o755)
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local", "adapterConfig": {"path": [str(self.folder)]}}).json["id"]
        other = runs.start(server, "sleep", "100")
        run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "fill"}).json["id"]
        ended = runs.wait_for_end(server, run)
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "store_full"), ended)
        self.assertIn("to the home of agent 'Ada'", ended["error"])
        disk = os.statvfs(home)
        self.assertGreaterEqual(disk.f_bavail * disk.f_frsize, 64 * MEGABYTE)
        self.assertEqual(runs.look(server, other)["status"], "running", "it is not the one that fills the disk")
        self.assertTrue(runs.eventually(lambda: server.post(f"/api/agents/{agent}/reset", {}).status == 200))
        server.post(f"/api/heartbeat-runs/{other}/cancel", {})

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small disk")
    @unittest.skipIf(sandbox_test.WHY_NOT, f"no sandboxes here: {sandbox_test.WHY_NOT}")
    def test_an_agent_that_fills_the_disk_by_a_deleted_file_is_stopped_before_the_reserve(self):
        home = self.small_disk(512)
        server = self.serve(home=home, place="Sandbox")
        self.addCleanup(server.kill)
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local", "adapterConfig": {"command": "nameless"}}).json["id"]
        for _ in range(2):  # the first turn finds no program, and makes the home
            run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "fill"}).json["id"]
            ended = runs.wait_for_end(server, run)
            program = next((home / "agents").glob("*/home")) / ".local" / "bin" / "nameless"
            program.parent.mkdir(parents=True, exist_ok=True)
            program.write_text(NAMELESS)
            program.chmod(0o755)
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "store_full"), ended)

    def test_a_template_makes_no_prompt_that_is_longer_than_a_prompt_may_be(self):
        server = self.serve()
        template = "{{context.x}}" * 2000
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local",
            "adapterConfig": {"command": "true", "promptTemplate": template}}).json["id"]
        answer = server.post(f"/api/agents/{agent}/wakeup", {"payload": {"x": "x" * 250_000}})
        self.assertEqual((answer.status, answer.json.get("code")), (422, "unprocessable"), answer.text)
        self.assertIn("promptTemplate", answer.json["error"])
        self.assertEqual(server.post(f"/api/agents/{agent}/wakeup", {"payload": {"x": "x"}}).status, 202)

    def test_an_agent_hides_nothing_from_the_limit_of_its_home(self):
        server = self.serve()
        program = self.folder / "claude"
        program.write_text(textwrap.dedent(f"""\
            #!{sys.executable}
            import os, sys
            sys.stdin.read()
            os.chdir(os.environ["HOME"])
            for _ in range(200):
                os.makedirs("d", exist_ok=True)
                os.chdir("d")
            open("hidden", "wb").write(bytes({2 * MEGABYTE}))
            """))
        program.chmod(0o755)
        server.request("PATCH", "/api/instance/settings", {"agentHomeBytesMax": MEGABYTE})
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local", "adapterConfig": {"path": [str(self.folder)]}}).json["id"]
        turns = []
        for _ in range(2):
            run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "hide"}).json["id"]
            turns.append(runs.wait_for_end(server, run))
        self.assertEqual(turns[0]["status"], "succeeded", turns[0])
        self.assertEqual(turns[1]["errorCode"], "quota_exceeded", turns[1])
        self.assertIn("cannot be measured", turns[1]["error"])
        self.assertTrue(runs.eventually(lambda: server.post(f"/api/agents/{agent}/reset", {}).status == 200))

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small disk")
    def test_an_agent_leaves_the_reserve_of_the_disk_to_operators(self):
        home = self.small_disk(64)
        server = self.serve(home=home)
        self.addCleanup(server.kill)
        company = server.company()
        agent, key = self.agent_of(server, company)
        server.request("PATCH", "/api/instance/settings", {"agentWakeupsPerMinute": 0})
        paused = server.request("PATCH", f"/api/agents/{agent}", {"status": "paused"})
        self.assertEqual(paused.status, 200, paused.text)
        held = runs.start(server, "sleep", "100")
        runs.wait_until(server, held, {"running"})

        def free():
            disk = os.statvfs(home)
            return disk.f_bavail * disk.f_frsize

        reserve = 8 * MEGABYTE
        ballast = home / "ballast"
        ballast.write_bytes(bytes(free() - reserve - 8 * MEGABYTE))
        payload = {"payload": {"x": "x" * 16_000}}
        refused, accepted = [], []
        for _ in range(600):
            answer = server.post(f"/api/agents/{agent}/wakeup", payload, key)
            if answer.status == 202:
                accepted.append(answer.json["id"])
            elif answer.json["code"] == "store_full":
                refused.append(answer)
                break
            else:
                # 20 of its runs are queued: an operator ends them, and the agent continues.
                self.assertEqual(answer.json["code"], "overloaded", answer.text)
                for run in accepted:
                    server.post(f"/api/heartbeat-runs/{run}/cancel", {})
                accepted.clear()
        self.assertTrue(refused, "the agent was never refused")
        self.assertEqual(refused[0].status, 507)
        self.assertTrue(refused[0].json["remedy"])
        self.assertGreaterEqual(free(), reserve)
        cancelled = server.post(f"/api/heartbeat-runs/{held}/cancel", {})
        self.assertEqual(cancelled.status, 200, cancelled.text)
        self.assertEqual(runs.wait_for_end(server, held)["status"], "cancelled")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        self.assertTrue(runs.eventually(
            lambda: server.request("DELETE", f"/api/heartbeat-runs/{held}").status == 200))
        self.assertGreaterEqual(free(), reserve)
        ballast.unlink()
        for run in accepted:
            server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.assertEqual(server.post(f"/api/agents/{agent}/wakeup", payload, key).status, 202)

    def test_a_server_that_dies_while_it_removes_runs_leaves_no_log(self):
        for step in ("retention.runs_deleted", "retention.logs_marked"):
            with self.subTest(step):
                home = self.folder / step
                server = self.serve(home=home)
                run = runs.start(server, "echo", "old")
                runs.wait_for_end(server, run)
                self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
                server.request("PATCH", "/api/instance/settings", {
                    "runRetentionDays": 1 if "runs" in step else 0, "logRetentionDays": 1})
                self.assertEqual(server.stop(), 0)
                subprocess.run(["python3", "-c", textwrap.dedent("""
                    import sqlite3, sys
                    database = sqlite3.connect(sys.argv[1])
                    database.execute("update heartbeat_runs set finished_at = 1700000000000")
                    database.commit()
                    """), home / "berth.db"], check=True)
                dies = subprocess.run(
                    [BERTH, "serve", "--home", home, "--listen", "127.0.0.1:0"],
                    env=clean_environment(BERTH_FAULT_POINT=step),
                    capture_output=True, text=True, timeout=30, check=False)
                self.assertEqual(dies.returncode, -9, dies.stderr)
                self.assertTrue(list((home / "runs").glob(f"{run}*")), "the log went before the crash")
                again = self.serve(home=home)
                self.assertTrue(runs.eventually(lambda: not list((home / "runs").glob(f"{run}*"))))
                status = again.get(f"/api/heartbeat-runs/{run}").status
                self.assertEqual(status, 404 if "runs" in step else 200)
                again.stop()


if __name__ == "__main__":
    unittest.main()
