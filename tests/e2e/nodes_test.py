"""Two servers on one PostgreSQL: what one leaves, the other finishes, and a late one cannot act."""

import contextlib
import os
import signal
import subprocess
import time

import runs_support as runs
from support import POSTGRES, BerthTest, fresh_postgres

FLAGS = ("--hold-seconds", "5", "--silence-seconds", "5")


def sql(text, url=None):
    done = subprocess.run(["psql", "-qAt", "-d", url or POSTGRES, "-c", text], capture_output=True,
                          text=True, check=True)
    return done.stdout.strip()


class Nodes(BerthTest):
    def setUp(self):
        super().setUp()
        if not POSTGRES:
            self.skipTest("needs PostgreSQL: tools/with-postgres sets BERTH_TEST_PG")
        self.variables = {"BERTH_DATABASE_URL": fresh_postgres(),
                          "BERTH_MASTER_KEY_FILE": str(self.folder / "master.key")}

    def node(self, name, *flags):
        return self.serve(*FLAGS, *flags, home=self.folder / name, **self.variables)

    def test_a_frozen_server_is_fenced_and_cannot_act_when_it_comes_back(self):
        first = self.node("first")
        run = runs.start(first, "sleep", "120")
        held = runs.wait_until(first, run, {"running"})
        second = self.node("second")
        os.kill(first.process.pid, signal.SIGSTOP)
        ended = runs.wait_for_end(second, run, limit_s=60)
        self.assertEqual((ended["status"], ended["errorCode"]), ("interrupted", "process_lost"))
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(second)))
        # The keeper was not renewed, so by then the command is gone, whoever is frozen.
        self.assertFalse(os.path.exists(f"/proc/{held['processPid']}"))

        ended = runs.look(second, run)
        os.kill(first.process.pid, signal.SIGCONT)
        self.assertEqual(first.process.wait(30), 1)
        self.assertIn("node_fenced", first.said())
        after = runs.look(second, run)
        self.assertEqual((after["status"], after["updatedAt"]), (ended["status"], ended["updatedAt"]))

        # Its home is another node now, and removes what the old one left on the disk.
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

    @contextlib.contextmanager
    def database_away(self):
        name = self.variables["BERTH_DATABASE_URL"].rsplit("/", 1)[1].split("?")[0]
        sql(f"alter database {name} with allow_connections false")
        sql(f"select pg_terminate_backend(pid) from pg_stat_activity where datname = '{name}'")
        try:
            yield
        finally:
            sql(f"alter database {name} with allow_connections true")

    def test_a_database_that_goes_away_in_the_middle_of_a_run_loses_nothing(self):
        server = self.serve("--hold-seconds", "60", "--silence-seconds", "60", **self.variables)
        ledger = self.folder / "ledger"
        run = runs.start(server, "sh", "-c", f"echo once >> {ledger}; echo begin; sleep 2; echo end")
        runs.wait_until(server, run, {"running"})
        with self.database_away():
            # The command ends while nobody can write it down.
            time.sleep(4)
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        self.assertEqual(runs.output(server, run), "begin\nend\n")
        self.assertEqual(ledger.read_text(), "once\n")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
