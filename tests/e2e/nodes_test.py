"""Two servers on one PostgreSQL: each finishes what the other left, and a late one cannot act."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import agent_homes_test
import machine
import runs_support as runs
from support import POSTGRES, BerthTest, fresh_postgres

# How long a server may be silent, and how long its commands live without it.
TIMES = ("--silence-seconds", "5", "--hold-seconds", "5")
LONG_HOLD = ("--silence-seconds", "5", "--hold-seconds", "60")


def sql(text, url=None):
    done = subprocess.run(["psql", "-qAt", "-d", url or POSTGRES, "-c", text], capture_output=True,
                          text=True, check=True)
    return done.stdout.strip()


def is_running(words):
    line = b"".join(word.encode() + b"\0" for word in words)
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            if entry.read_bytes() == line:
                return True
    return False


class OnOneDatabase(BerthTest):
    def setUp(self):
        super().setUp()
        if not POSTGRES:
            self.skipTest("needs PostgreSQL: tools/with-postgres sets BERTH_TEST_PG")
        self.variables = {"BERTH_DATABASE_URL": fresh_postgres(),
                          "BERTH_MASTER_KEY_FILE": str(self.folder / "master.key")}

    def node(self, name, *flags, times=TIMES):
        return self.serve(*times, *flags, home=self.folder / name, **self.variables)

    def wait_for_beats(self, server, times, servers=2):
        """Waits until each server has sent this many more heartbeats, and has checked the others
        each time."""
        nodes = lambda: {one["id"]: one["heartbeatAt"] for one in server.get("/api/instance/nodes").json}
        self.assertTrue(runs.eventually(lambda: len(nodes()) == servers), nodes())
        for _ in range(times + 1):  # it checks the others after its heartbeat
            before = nodes()
            self.assertTrue(runs.eventually(lambda: all(nodes().get(id) != at for id, at in before.items())), before)

    @contextlib.contextmanager
    def database_away(self):
        name = self.variables["BERTH_DATABASE_URL"].rsplit("/", 1)[1].split("?")[0]
        sql(f"alter database {name} with allow_connections false")
        sql(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
        try:
            yield
        finally:
            sql(f"alter database {name} with allow_connections true")


class Nodes(OnOneDatabase):
    def test_a_frozen_server_is_fenced_and_cannot_act_when_it_comes_back(self):
        first = self.node("first")
        run = runs.start(first, "sleep", "120")
        held = runs.wait_until(first, run, {"running"})
        second = self.node("second")
        os.kill(first.process.pid, signal.SIGSTOP)
        ended = runs.wait_for_end(second, run, limit_s=60)
        self.assertEqual((ended["status"], ended["errorCode"]), ("interrupted", "process_lost"))
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(second)))
        # The keeper was not renewed, so by then the command has ended, whichever process is frozen.
        self.assertFalse(os.path.exists(f"/proc/{held['processPid']}"))

        ended = runs.look(second, run)
        os.kill(first.process.pid, signal.SIGCONT)
        self.assertEqual(first.process.wait(30), 1)
        self.assertIn("node_fenced", first.said())
        after = runs.look(second, run)
        self.assertEqual((after["status"], after["updatedAt"]), (ended["status"], ended["updatedAt"]))

        # Its home folder belongs to another node now, which removes what the old one left on the
        # disk.
        again = self.node("first")
        folder = self.folder / "first" / "leases"
        self.assertTrue(runs.eventually(lambda: not list(folder.iterdir())), list(folder.iterdir()))
        self.assertEqual(runs.wait_for_end(again, runs.start(again, "true"))["status"], "succeeded")

    def test_the_runs_of_a_killed_server_are_ended_by_another(self):
        first, second = self.node("first"), self.node("second")
        # Either may take it; the one that did is killed.
        run = runs.start(first, "sleep", "120")
        seen = runs.wait_until(first, run, {"running"})
        holder = first if self.holds("first", seen) else second
        other = second if holder is first else first
        holder.kill()
        ended = runs.wait_for_end(other, run, limit_s=60)
        self.assertEqual(ended["status"], "interrupted")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(other)))

    def holds(self, name, run):
        return (self.folder / name / "leases" / run["leaseId"]).exists()

    def test_both_take_runs_and_none_runs_twice(self):
        servers = [self.node(name, "--runs-max", "2") for name in ("first", "second")]
        ledger = self.folder / "ledger"
        started = [runs.start(servers[i % 2], "sh", "-c", f"echo $BERTH_RUN_ID >> {ledger}; sleep 0.1")
                   for i in range(40)]
        nodes = {runs.wait_for_end(servers[0], run)["nodeId"] for run in started}
        self.assertEqual(len(nodes), 2, "one server did all the work")
        self.assertEqual(sorted(ledger.read_text().split()), sorted(started))

    def test_a_cancel_through_another_server_ends_the_command(self):
        first, second = self.node("first"), self.node("second")
        run = runs.start(first, "sleep", "120")
        seen = runs.wait_until(first, run, {"running"})
        other = second if self.holds("first", seen) else first
        self.assertEqual(other.post(f"/api/heartbeat-runs/{run}/cancel", {}).status, 200)
        self.assertEqual(runs.wait_for_end(other, run)["status"], "cancelled")

    def test_a_database_that_was_away_makes_nobody_give_up_another(self):
        servers = [self.node(name) for name in ("first", "second")]
        self.wait_for_beats(servers[0], 1)
        with self.database_away():
            time.sleep(8)  # longer than a server may be silent
        self.wait_for_beats(servers[0], 3)
        for server in servers:
            self.assertIsNone(server.process.poll(), server.said())

    def test_a_database_that_goes_away_in_the_middle_of_a_run_loses_nothing(self):
        server = self.serve("--hold-seconds", "60", "--silence-seconds", "60", **self.variables)
        ledger = self.folder / "ledger"
        run = runs.start(server, "sh", "-c", f"echo once >> {ledger}; echo begin; sleep 2; echo end")
        runs.wait_until(server, run, {"running"})
        with self.database_away():
            # The command ends while no server can record it.
            time.sleep(4)
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        self.assertEqual(runs.output(server, run), "begin\nend\n")
        self.assertEqual(ledger.read_text(), "once\n")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))


class SandboxesOfNodes(OnOneDatabase):
    """A sandbox consists of processes and files of the server that made it: no other can act on it."""

    def setUp(self):
        super().setUp()
        if why_not := machine.why_no_sandbox():
            self.skipTest(why_not)
        # It creates the company and its environments before the others start.
        self.first = self.node("first")
        company = self.first.company()
        rows = self.first.get(f"/api/companies/{company}/environments").json
        self.sandbox = next(row["id"] for row in rows if row["name"] == "Sandbox")

    def environment(self, name, **config):
        path = f"/api/companies/{self.first.company()}/environments"
        made = self.first.post(path, {"name": name, "driver": "sandbox",
                                      "config": {"provider": "linux", **config}})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def folder_of(self, name, lease):
        return self.folder / name / "sandboxes" / lease["sandboxId"]

    def lease_of(self, server, run):
        return server.get(f"/api/environment-leases/{runs.look(server, run)['leaseId']}").json

    def ended(self, server, run):
        seen = runs.wait_for_end(server, run, limit_s=60)
        self.assertEqual(seen["status"], "succeeded", seen)
        return seen

    def test_a_run_of_a_silent_server_is_given_up_when_its_keeper_must_be_gone(self):
        # A pid from inside means nothing here; the command is identified by its arguments.
        words = ["sleep", f"120.{os.getpid()}"]
        run = runs.start(self.first, *words, environmentId=self.sandbox)
        runs.wait_until(self.first, run, {"running"})
        self.assertTrue(runs.eventually(lambda: is_running(words)))
        second = self.node("second")
        os.kill(self.first.process.pid, signal.SIGSTOP)
        ended = runs.wait_for_end(second, run, limit_s=60)
        self.assertEqual((ended["status"], ended["errorCode"]), ("interrupted", "process_lost"), ended)
        self.assertFalse(is_running(words))
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(second)))
        os.kill(self.first.process.pid, signal.SIGCONT)
        self.assertEqual(self.first.process.wait(30), 1)

    def test_a_run_goes_on_when_its_server_comes_back(self):
        self.first.stop()
        first = self.node("first", times=LONG_HOLD)
        run = runs.start(first, "sh", "-c", "echo begin; sleep 14; echo end", environmentId=self.sandbox)
        runs.wait_until(first, run, {"running"})
        second = self.node("second", times=LONG_HOLD)
        self.wait_for_beats(second, 1)
        first.kill()
        self.assertTrue(runs.eventually(lambda: "node.fenced" in second.said(), limit_s=30))
        self.wait_for_beats(second, 2, servers=1)  # it checks what the other has left
        self.assertEqual(runs.look(second, run)["status"], "running")
        again = self.node("first", times=LONG_HOLD)
        self.ended(again, run)
        self.assertEqual(runs.output(again, run), "begin\nend\n")

    def test_a_release_through_another_server_ends_the_sandbox(self):
        run = runs.start(self.first, "sleep", "120", environmentId=self.sandbox)
        runs.wait_until(self.first, run, {"running"})
        lease = self.lease_of(self.first, run)
        made = self.first.post(f"/api/environment-leases/{lease['id']}/fork", {})
        self.assertEqual(made.status, 201, made.text)
        fork = made.json
        folder = self.folder_of("first", fork)
        self.assertTrue(folder.exists())
        second = self.node("second")
        done = second.post(f"/api/environment-leases/{fork['id']}/release", {})
        self.assertEqual((done.status, done.json["status"]), (200, "released"), done.text)
        self.assertFalse(folder.exists())

    def test_a_sandbox_is_reused_on_its_own_server_alone(self):
        where = self.environment("again", reuseLease=True)
        second = self.node("second")
        boxes = {}
        for server in (self.first, second) * 4:
            run = runs.start(server, "true", environmentId=where)
            node = self.ended(server, run)["nodeId"]
            boxes.setdefault(node, set()).add(self.lease_of(server, run)["sandboxId"])
            # It serves another run when it is released, which is after the end of the run.
            self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(self.first)))
        self.assertEqual([len(used) for used in boxes.values()], [1, 1], boxes)
        self.assertEqual(len(set.union(*boxes.values())), 2, "one sandbox on two servers")

    def test_a_run_from_a_template_is_taken_by_the_server_that_has_it(self):
        run = runs.start(self.first, "sh", "-c", "echo kept > $HOME/kept; sleep 120",
                         environmentId=self.sandbox)
        runs.wait_until(self.first, run, {"running"})
        lease = self.lease_of(self.first, run)
        captured = self.first.post(f"/api/environment-leases/{lease['id']}/capture", {"name": "tools"})
        self.assertIn(captured.status, (200, 201), captured.text)
        where = self.environment("tooled", template="tools")
        second = self.node("second")
        self.wait_for_beats(second, 1)  # each knows the other from then on
        for server in (self.first, second) * 3:
            self.ended(server, runs.start(server, "sh", "-c", "cat $HOME/kept", environmentId=where))


class AgentsOfNodes(OnOneDatabase):
    """An agent's home is on one server's disk, and so is its session."""

    def setUp(self):
        super().setUp()
        program = self.folder / "claude"
        program.write_text(agent_homes_test.STAND_IN.format(python=sys.executable,
                                                            calls=str(self.folder / "calls")))
        program.chmod(0o755)
        self.servers = [self.node("first"), self.node("second")]
        first = self.servers[0]
        rows = first.get(f"/api/companies/{first.company()}/environments").json
        local = next(row["id"] for row in rows if row["driver"] == "local")
        made = first.post(f"/api/companies/{first.company()}/agents", {
            "name": "Ada", "adapterType": "claude_local", "defaultEnvironmentId": local,
            "adapterConfig": {"path": [str(self.folder)]}})
        self.assertEqual(made.status, 201, made.text)
        self.agent = made.json["id"]

    def turn(self, server):
        answer = server.post(f"/api/agents/{self.agent}/heartbeat/invoke", {"prompt": "go on"})
        self.assertEqual(answer.status, 202, answer.text)
        run = runs.wait_for_end(server, answer.json["id"])
        self.assertEqual(run["status"], "succeeded", run)
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        return run

    def folders(self):
        return {name: [one for one in (self.folder / name / "agents").glob("*") if one.is_dir()]
                for name in ("first", "second")}

    def test_a_session_is_resumed_on_the_server_that_has_it(self):
        last, turns = {}, {}
        for server in self.servers * 4:
            run = self.turn(server)
            node = run["nodeId"]
            self.assertEqual(run["sessionIdBefore"], last.get(node), "the session of the same server, or a new one")
            self.assertNotIn(run["sessionIdAfter"], [one for other, one in last.items() if other != node])
            turns[node] = turns.get(node, 0) + 1
            self.assertEqual(run["resultJson"]["result"], "turn\n" * turns[node])
            if node not in last and last:
                events = server.get(f"/api/heartbeat-runs/{run['id']}/events?limit=1000").json
                self.assertTrue([event for event in events if "is on another server" in event["message"]], events)
            last[node] = run["sessionIdAfter"]
        self.assertEqual(len(last), 2, "both servers have worked")
        homes = self.servers[0].get(f"/api/agents/{self.agent}/homes").json
        self.assertEqual({home["sessionId"] for home in homes}, set(last.values()))
        self.assertEqual(len({home["place"] for home in homes}), 2)
        self.assertEqual({name: len(found) for name, found in self.folders().items()}, {"first": 1, "second": 1})

        # A reset through one server also empties the other's disk.
        reset = self.servers[0].post(f"/api/agents/{self.agent}/reset", {})
        self.assertEqual((reset.status, reset.json["homes"]), (200, 2), reset.text)
        self.assertTrue(runs.eventually(lambda: not any(self.folders().values()), limit_s=60), self.folders())
        self.assertIsNone(self.turn(self.servers[1])["sessionIdBefore"])

    def test_the_session_of_a_server_that_is_gone_is_not_waited_for(self):
        first, second = self.servers
        before = self.turn(first)
        gone, left = (first, second) if self.folders()["first"] else (second, first)
        gone.stop()
        after = self.turn(left)
        self.assertIsNone(after["sessionIdBefore"])
        back = self.node("first" if gone is first else "second")
        left.stop()
        self.assertEqual(self.turn(back)["sessionIdBefore"], before["sessionIdAfter"], "its disk still has it")


class WhoHasWhat(OnOneDatabase):
    """A server names the other server when a caller requests what that one has."""

    def setUp(self):
        super().setUp()
        # Alone and full, so that everything requested from now on is on the other one.
        self.here = self.node("here", "--runs-max", "1")
        runs.wait_until(self.here, runs.start(self.here, "sleep", "120"), {"running"})
        self.there = self.node("there")
        self.address = self.url_of(self.there)

    def url_of(self, server):
        return f"http://127.0.0.1:{server.port}"

    def test_a_run_ends_with_its_code_and_says_once_where_its_output_is(self):
        for script in ("echo hello; sleep 1; exit 3", "sleep 2; exit 3"):
            with self.subTest(script):
                ended = self.run_berth("--url", self.url_of(self.here), "run", "-e", "Local", "--",
                                       "sh", "-c", script, stdin="")
                self.assertEqual((ended.returncode, ended.stdout), (3, ""), ended.stderr)
                self.assertEqual(ended.stderr.count("is on the disk of server"), 1, ended.stderr)
                self.assertIn(self.address, ended.stderr)
                self.assertNotIn("the connection is lost", ended.stderr)

    def test_what_another_server_holds_is_named_with_its_address(self):
        run = runs.start(self.here, "sleep", "120")
        seen = runs.wait_until(self.here, run, {"running"})
        self.assertEqual(seen["server"]["url"], self.address)
        path = f"/api/environment-leases/{seen['leaseId']}"
        self.assertEqual(self.here.get(path).json["server"]["url"], self.address)
        self.assertIn(self.address, self.here.get(path + "/usage").json["error"])
        # At once, although there is no output yet.
        refused = self.here.get(f"/api/heartbeat-runs/{run}/log").json
        self.assertEqual(refused["code"], "log_unavailable")
        self.assertIn(self.address, refused["error"])
        self.assertEqual(self.there.get(f"/api/heartbeat-runs/{run}/log").status, 200)

    def test_the_status_lists_the_servers(self):
        status = self.run_berth("--url", self.url_of(self.here), "status", "--json")
        listed = {server["url"]: server["isSelf"] for server in json.loads(status.stdout)["servers"]}
        self.assertEqual(listed, {self.url_of(self.here): True, self.address: False})
