"""Sandboxes that are kept for the next run, and users who work in them meanwhile."""

import http.client
import os
import signal
import unittest

import runs_support as runs
import sandbox_test
from support import BerthTest


@unittest.skipIf(sandbox_test.WHY_NOT, f"no sandboxes here: {sandbox_test.WHY_NOT}")
class KeptSandboxes(BerthTest):
    def setUp(self):
        super().setUp()
        self.addCleanup(self.check_nothing_left)

    def check_nothing_left(self):
        held = f"berth-keeper hold {self.folder}"
        self.assertTrue(runs.eventually(lambda: not runs.processes_with(held)), runs.processes_with(held))

    def keep(self, server, script="echo mine > file", **config):
        """An environment whose one sandbox is idle after a run: both ids, and the run."""
        made = server.post(f"/api/companies/{server.company()}/environments", {
            "name": "kept", "driver": "sandbox", "config": {"provider": "linux", "reuseLease": True, **config}})
        self.assertEqual(made.status, 201, made.text)
        run = runs.start(server, "sh", "-c", script, environmentId=made.json["id"])
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        return made.json["id"], self.idle(server), run

    def sandboxes(self, server):
        return [box for box in server.get(f"/api/companies/{server.company()}/sandboxes").json
                if box["status"] not in ("destroyed", "lost")]

    def idle(self, server):
        """The only sandbox, as soon as it is kept."""
        self.assertTrue(runs.eventually(lambda: [box["status"] for box in self.sandboxes(server)] == ["idle"]),
                        self.sandboxes(server))
        return self.sandboxes(server)[0]["id"]

    def remove(self, server):
        for box in self.sandboxes(server):
            answer = server.request("DELETE", f"/api/sandboxes/{box['id']}")
            self.assertEqual(answer.status, 200, answer.text)

    def berth(self, server, *words):
        return self.run_berth("--home", server.home, *words)

    def test_exec_cp_and_ls_go_into_a_sandbox_that_is_kept(self):
        server = self.serve()
        place, box, run = self.keep(server)
        for named in (box, box[-8:], run, "last"):
            with self.subTest(named):
                done = self.berth(server, "exec", named, "sh", "-c", "cat file; sleep 600 >/dev/null 2>&1 & exit 3")
                self.assertEqual((done.returncode, done.stdout), (3, "mine\n"), done.stderr)
                self.assertEqual(self.idle(server), box, "it is kept again")
        fetched = self.folder / "fetched"
        done = self.berth(server, "cp", f"{box}:file", fetched)
        self.assertEqual((done.returncode, fetched.read_text()), (0, "mine\n"), done.stderr)
        given = self.folder / "given"
        given.write_text("yours\n")
        done = self.berth(server, "cp", given, f"{box}:given")
        self.assertEqual(done.returncode, 0, done.stderr)
        listed = self.berth(server, "ls", f"{box}:")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("given", listed.stdout)
        self.assertEqual(self.idle(server), box)
        after = runs.start(server, "sh", "-c", "cat given; set -- /proc/[0-9]*; echo $#", environmentId=place)
        self.assertEqual(runs.wait_for_end(server, after)["status"], "succeeded")
        self.assertEqual(runs.output(server, after).splitlines()[0], "yours")
        self.assertLess(int(runs.output(server, after).splitlines()[1]), 4, "what was left behind has ended")
        self.assertEqual(self.idle(server), box, "the next run had the same one")
        acts = server.get(f"/api/companies/{server.company()}/activity?limit=200").json
        self.assertEqual(sum(act["action"] == "environment.sandbox_visited" for act in acts), 7)
        self.remove(server)

    def test_who_works_in_it_has_it_alone(self):
        server = self.serve()
        place, box, _ = self.keep(server)
        key = {"Idempotency-Key": "one-visit"}
        taken = server.post(f"/api/sandboxes/{box}/lease", {}, key)
        self.assertEqual((taken.status, taken.json["status"], taken.json["sandboxId"]), (201, "active", box))
        self.assertEqual(server.post(f"/api/sandboxes/{box}/lease", {}, key).json["id"], taken.json["id"])
        again = server.post(f"/api/sandboxes/{box}/lease", {})
        self.assertEqual((again.status, again.json["code"]), (409, "conflict"), again.text)
        self.assertIn(taken.json["id"], again.json["error"])
        beside = runs.start(server, "sh", "-c", "cat file", environmentId=place)
        self.assertEqual(runs.wait_for_end(server, beside)["status"], "failed", "a run gets one of its own")
        given = server.post(f"/api/environment-leases/{taken.json['id']}/release", {})
        self.assertEqual((given.status, given.json["status"]), (200, "released"), given.text)
        self.assertEqual(self.idle(server), box)
        self.remove(server)

    def test_it_is_given_back_when_its_time_is_over(self):
        server = self.serve()
        _, box, _ = self.keep(server)
        taken = server.post(f"/api/sandboxes/{box}/lease", {"ttlSeconds": 1})
        self.assertEqual(taken.status, 201, taken.text)
        self.assertEqual(self.idle(server), box)
        for wrong in (0, -1, 10**9):
            refused = server.post(f"/api/sandboxes/{box}/lease", {"ttlSeconds": wrong})
            self.assertEqual((refused.status, refused.json["code"]), (422, "unprocessable"), refused.text)
        self.remove(server)

    def test_an_environment_that_has_changed_gives_it_to_nobody(self):
        server = self.serve()
        place, box, _ = self.keep(server)
        changed = server.request("PATCH", f"/api/environments/{place}", {
            "config": {"provider": "linux", "reuseLease": True, "memoryMb": 256}})
        self.assertEqual(changed.status, 200, changed.text)
        refused = server.post(f"/api/sandboxes/{box}/lease", {})
        self.assertEqual((refused.status, refused.json["code"]), (409, "conflict"), refused.text)
        self.assertIn("as it is today", refused.json["error"])
        self.assertEqual(self.idle(server), box, "the refusal has changed nothing")
        self.remove(server)

    def test_one_that_died_meanwhile_is_not_replaced_by_an_empty_one(self):
        server = self.serve()
        _, box, _ = self.keep(server)
        for pid, _ in runs.processes_with(f"berth-keeper hold {self.folder}"):
            os.kill(pid, signal.SIGKILL)
        refused = server.post(f"/api/sandboxes/{box}/lease", {})
        self.assertEqual((refused.status, refused.json["code"]), (404, "sandbox_not_found"), refused.text)
        self.assertTrue(runs.eventually(lambda: not self.sandboxes(server)), self.sandboxes(server))

    def test_a_server_that_dies_at_any_step_leaves_it_kept_or_gone(self):
        for point in ("acquire.intended", "acquire.acted", "acquire.recorded"):
            with self.subTest(point):
                home = self.folder / point
                server = self.serve(home=home)
                _, box, _ = self.keep(server)
                server.stop()
                server = self.serve(home=home, BERTH_FAULT_POINT=point)
                with self.assertRaises((OSError, http.client.HTTPException)):
                    server.post(f"/api/sandboxes/{box}/lease", {})
                server.process.wait(30)
                server = self.serve(home=home)
                self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)),
                                runs.unfinished_leases(server))
                for left in self.sandboxes(server):
                    self.assertEqual(left["status"], "idle", left)
                self.remove(server)
                self.assertTrue(runs.eventually(lambda: not list((home / "sandboxes").iterdir())))
                server.stop()


if __name__ == "__main__":
    unittest.main()
