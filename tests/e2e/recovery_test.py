"""The server is killed at every step of a run, and restarted: the run ends correctly with all its
output, nothing runs twice and nothing is left behind."""

import contextlib
import http.client
import os
import signal
import sqlite3
import tempfile
import unittest
from pathlib import Path

import runs_support as runs
from support import POSTGRES, BerthTest, fresh_postgres

# In the order of a run. Each server start passes the keeper's points once, when it checks whether
# this machine can create sandboxes.
STEPS_OF_A_RUN = [
    "claim.recorded", "acquire.intended", "acquire.acted", "acquire.recorded", "realize.acted",
    "execute.intended", "keeper.started:2", "execute.acted", "execute.recorded", "execute.ended",
    "finish.recorded", "release.intended", "keeper.stopped:2", "release.acted", "release.recorded",
]
# Enough for both engines; only the order of rows and actions matters.
STEPS_ON_POSTGRES = ["acquire.acted", "execute.acted", "execute.ended", "release.acted"]


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])


class Recovery(BerthTest):
    def script(self, pause="0.2"):
        """Prints something at both ends, and leaves one line per execution in a file."""
        self.ledger = Path(tempfile.mkdtemp(dir=self.folder)) / "ledger"
        return ["sh", "-c", f"echo once >> {self.ledger}; echo begin; sleep {pause}; echo end; echo said >&2"]

    def executions(self):
        return self.ledger.read_text().count("once") if self.ledger.exists() else 0

    def keepers(self, home=None):
        return runs.processes_with(f"berth-keeper hold {home or self.home}")

    def check_left(self, server, home):
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)),
                        runs.unfinished_leases(server))
        self.assertEqual(list((home / "leases").iterdir()), [])
        self.assertTrue(runs.eventually(lambda: not self.keepers(home)), self.keepers(home))

    def check_run(self, server, run, home):
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        self.assertEqual(runs.output(server, run), "begin\nend\n")
        self.assertEqual(runs.output(server, run, "stderr"), "said\n")
        self.assertEqual(self.executions(), 1)
        self.check_left(server, home)

    def crash_at(self, step, home, pause="0.2", **variables):
        server = self.serve(home=home, BERTH_FAULT_POINT=step, **variables)
        run = runs.start(server, *self.script(pause))
        self.dies_at(step, server)
        return run

    def test_a_run_survives_the_death_of_the_server_at_every_step(self):
        for step in STEPS_OF_A_RUN:
            with self.subTest(step):
                home = self.folder / step
                run = self.crash_at(step, home)
                again = self.serve(home=home)
                self.check_run(again, run, home)
                again.stop()

    @unittest.skipUnless(POSTGRES, "needs PostgreSQL: tools/with-postgres sets BERTH_TEST_PG")
    def test_the_same_on_postgres(self):
        variables = {"BERTH_DATABASE_URL": fresh_postgres()}
        for step in STEPS_ON_POSTGRES:
            with self.subTest(step):
                run = self.crash_at(step, self.home, **variables)
                again = self.serve(**variables)
                self.check_run(again, run, self.home)
                again.stop()

    def test_a_second_death_while_it_takes_over_changes_nothing(self):
        for step in ["adopt.recorded", "execute.recorded"]:
            with self.subTest(step):
                home = self.folder / step
                run = self.crash_at("acquire.recorded", home)
                again = self.serve(home=home, BERTH_FAULT_POINT=step)
                self.dies_at(step, again)
                last = self.serve(home=home)
                self.check_run(last, run, home)

    def test_a_death_of_the_sweeper_leaves_the_lease_to_the_next(self):
        run = self.crash_at("finish.recorded", self.home)
        again = self.serve(BERTH_FAULT_POINT="sweep.claimed")
        self.dies_at("sweep.claimed", again)
        last = self.serve()
        self.check_run(last, run, self.home)

    def test_a_server_that_is_stopped_while_runs_start_ends(self):
        # The step at which the signal hits a run's start is random, hence several rounds.
        for round_number in range(12):
            server = self.serve()
            started = [runs.start(server, "true") for _ in range(2)]
            self.assertEqual(server.stop(), 0, f"round {round_number}")
        again = self.serve()
        for run in started:
            self.assertEqual(runs.wait_for_end(again, run)["status"], "succeeded")

    def test_a_command_goes_on_while_no_server_is_there(self):
        server = self.serve()
        run = runs.start(server, *self.script(pause="3"))
        runs.wait_until(server, run, {"running"})
        self.assertEqual(server.stop(), 0)
        self.assertNotEqual(self.keepers(), [])
        again = self.serve()
        self.check_run(again, run, self.home)

    def test_a_killed_keeper_ends_the_run_as_interrupted(self):
        server = self.serve()
        run = runs.start(server, *self.script(pause="60"))
        runs.wait_until(server, run, {"running"})
        # The process that the keeper forked to watch the command has its name.
        folder = next((self.home / "leases").iterdir())
        keepers = {pid for pid, _ in runs.processes_with(f"berth-keeper hold {folder}")}
        os.kill(next(pid for pid in keepers if parent_of(pid) not in keepers), signal.SIGKILL)
        ended = runs.wait_for_end(server, run)
        self.assertEqual((ended["status"], ended["errorCode"]), ("interrupted", "process_lost"))
        self.check_left(server, self.home)

    def test_a_command_that_no_server_renews_is_ended(self):
        server = self.serve("--hold-seconds", "5")
        run = runs.start(server, *self.script(pause="60"))
        runs.wait_until(server, run, {"running"})
        server.kill()
        self.assertTrue(runs.eventually(lambda: not self.keepers(), limit_s=40))
        again = self.serve("--hold-seconds", "5")
        ended = runs.wait_for_end(again, run)
        self.assertEqual((ended["status"], ended["errorCode"]), ("interrupted", "lease_lapsed"))
        self.check_left(again, self.home)

    def test_a_cancel_that_the_server_did_not_live_to_see_is_carried_out(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                home = self.folder / engine
                server = self.serve(home=home, BERTH_FAULT_POINT="cancel.recorded", **variables)
                run = runs.start(server, *self.script(pause="60"))
                runs.wait_until(server, run, {"running"})
                with self.assertRaises((OSError, http.client.HTTPException)):
                    server.post(f"/api/heartbeat-runs/{run}/cancel", {})
                self.dies_at("cancel.recorded", server)
                self.assertNotEqual(self.keepers(home), [], "the command goes on without a server")
                # The request is in the store, and not repeated.
                again = self.serve(home=home, **variables)
                ended = runs.wait_for_end(again, run, limit_s=30)
                self.assertEqual((ended["status"], ended["errorCode"]), ("cancelled", "cancelled"), ended)
                self.assertEqual((runs.output(again, run), self.executions()), ("begin\n", 1))
                self.check_left(again, home)
                again.stop()

    def test_a_cancel_that_is_recorded_before_the_command_starts_is_carried_out_by_the_next_server(self):
        for step, executions in (("claim.recorded", 0), ("acquire.recorded", 0), ("execute.acted", 1)):
            with self.subTest(step):
                home = self.folder / step
                run = self.crash_at(step, home, pause="60")
                with contextlib.closing(sqlite3.connect(home / "berth.db")) as database:
                    changed = database.execute("update heartbeat_runs set cancel_requested_at = created_at"
                                               " where id = ?", (run,))
                    self.assertEqual(changed.rowcount, 1)
                    database.commit()
                again = self.serve(home=home)
                self.assertEqual(runs.wait_for_end(again, run, limit_s=30)["status"], "cancelled")
                self.assertEqual(self.executions(), executions)
                self.check_left(again, home)
                again.stop()

    def test_a_run_that_was_deleted_when_the_server_died_leaves_no_log(self):
        server = self.serve(BERTH_FAULT_POINT="run.deleted")
        kept, gone = (runs.start(server, "echo", word) for word in ("kept", "gone"))
        for run in (kept, gone):
            self.assertEqual(server.get(f"/api/heartbeat-runs/{run}?wait=30&until=release").status, 200)
        logs = lambda: {file.name.split(".")[0] for file in (self.home / "runs").iterdir()}
        self.assertEqual(logs(), {kept, gone})
        with self.assertRaises((OSError, http.client.HTTPException)):
            server.request("DELETE", f"/api/heartbeat-runs/{gone}")
        self.dies_at("run.deleted", server)
        self.assertEqual(logs(), {kept, gone}, "the log went before the crash")
        again = self.serve()
        self.assertEqual(again.get(f"/api/heartbeat-runs/{gone}").status, 404)
        self.assertTrue(runs.eventually(lambda: logs() == {kept}), logs())
        self.assertEqual(runs.output(again, kept), "kept\n")


if __name__ == "__main__":
    unittest.main()
