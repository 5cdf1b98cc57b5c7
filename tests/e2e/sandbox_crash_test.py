"""The server is killed while it takes, empties, destroys and deletes sandboxes and their templates.
The next one finishes what was begun, and nothing is lost, doubled or left behind."""

import http.client
import shutil
import unittest

import runs_support as runs
import sandbox_test
import templates_test

LEASES = templates_test.LEASES
SESSIONS = templates_test.SESSIONS
NO_ANSWER = (OSError, http.client.HTTPException)


@unittest.skipIf(sandbox_test.WHY_NOT, sandbox_test.WHY_NOT)
class Deaths(templates_test.Whole):
    # The base class's tests run only there.
    for name in [name for name in dir(templates_test.Whole) if name.startswith("test_")]:
        locals()[name] = None
    del name

    def refuses(self, point, server, *request):
        """A request that its server does not live to answer."""
        with self.assertRaises(NO_ANSWER):
            server.request(*request)
        self.dies_at(point, server)

    def image(self, *words):
        done = self.run_berth("--home", self.home, "image", *words)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def import_shell(self, name):
        tree = self.folder / "tree"
        for file in [*sandbox_test.files_of_a_shell(), "/usr/bin/cat"]:
            place = tree / file.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
        (tree / "tmp").mkdir()
        self.image("import", tree, name)

    def test_a_spare_that_was_taken_when_the_server_died_serves_its_run_and_holds_no_image(self):
        first = self.serve()
        self.import_shell("small")
        environment = self.environment(first, "warm", image="small", poolSize=1)
        first.stop()
        folder = self.home / "sandboxes"
        dying = self.serve(BERTH_FAULT_POINT="linux.spare_taken")
        self.assertTrue(runs.eventually(lambda: len(list(folder.iterdir())) == 1), list(folder.iterdir()))
        run = runs.start(dying, "/bin/sh", "-c", "echo here", environmentId=environment)
        self.dies_at("linux.spare_taken", dying)
        again = self.serve()
        ended = runs.wait_for_end(again, run)
        self.assertEqual((ended["status"], runs.output(again, run)), ("succeeded", "here\n"), ended)
        changed = again.request("PATCH", f"/api/environments/{environment}",
                                {"config": {"provider": "linux", "image": "small", "poolSize": 0}})
        self.assertEqual(changed.status, 200, changed.text)
        self.check_leases_left(again)
        self.assertEqual(again.request("DELETE", f"/api/environments/{environment}").status, 200)
        # A holder that the dead server left would keep the image forever.
        self.assertTrue(runs.eventually(
            lambda: self.run_berth("--home", self.home, "image", "rm", "small", "--yes").returncode == 0),
            self.run_berth("--home", self.home, "image", "inspect", "small").stdout)

    def kept_sandbox(self, server):
        """A sandbox that waits for the next run of its environment and contains a file from the
        last."""
        environment = self.environment(server, "kept", reuseLease=True)
        run = runs.start(server, "sh", "-c", "echo mine > file; echo x > /tmp/x", environmentId=environment)
        return environment, run

    def sandboxes(self, server, **filters):
        query = "&".join(f"{name}={value}" for name, value in filters.items())
        return self.good(server.get(f"/api/companies/{server.company()}/sandboxes?{query}"))

    def test_a_sandbox_that_was_being_emptied_when_the_server_died_is_reused_empty(self):
        first = self.serve(BERTH_FAULT_POINT="linux.remade")
        environment, run = self.kept_sandbox(first)
        self.dies_at("linux.remade", first)
        again = self.serve()
        self.assertEqual(runs.wait_for_end(again, run)["status"], "succeeded")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(again)))
        self.assertEqual(list(self.home.glob("sandboxes/*/keeper/exec-*.out")), [], "output of a run that is over")
        second = runs.start(again, "sh", "-c", "cat file; ls -A /tmp; set -- /proc/[0-9]*; echo $#",
                            environmentId=environment)
        self.assertEqual(runs.wait_for_end(again, second)["status"], "succeeded")
        self.assertEqual(runs.output(again, second), "mine\n3\n", "pid 1, the warden and the shell")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(again)))
        kept, = self.sandboxes(again, status="idle")
        self.assertEqual(len({lease["providerLeaseId"] for lease in runs.leases(again)}), 1, "both had the same sandbox")
        self.good(again.request("DELETE", f"/api/sandboxes/{kept['id']}"))
        self.check_leases_left(again)

    def test_a_sandbox_that_was_being_destroyed_when_the_server_died_is_destroyed_by_the_next(self):
        for point in ("sandbox.destroy_intended", "sandbox.destroy_acted"):
            with self.subTest(point):
                home = self.folder / point
                first = self.serve(home=home, BERTH_FAULT_POINT=point)
                environment, run = self.kept_sandbox(first)
                self.assertEqual(runs.wait_for_end(first, run)["status"], "succeeded")
                self.assertTrue(runs.eventually(lambda: self.sandboxes(first, status="idle")))
                kept, = self.sandboxes(first)
                self.refuses(point, first, "DELETE", f"/api/sandboxes/{kept['id']}")
                again = self.serve(home=home)
                seen = lambda: self.good(again.get(f"/api/sandboxes/{kept['id']}"))
                self.assertTrue(runs.eventually(lambda: seen()["status"] == "destroyed"), seen())
                self.check_leases_left(again, home)
                second = runs.start(again, "sh", "-c", "cat file 2>/dev/null; echo new", environmentId=environment)
                self.assertEqual(runs.wait_for_end(again, second)["status"], "succeeded")
                self.assertEqual(runs.output(again, second), "new\n")
                self.assertTrue(runs.eventually(lambda: self.sandboxes(again, status="idle")))
                self.good(again.request("DELETE", f"/api/sandboxes/{self.sandboxes(again, status='idle')[0]['id']}"))
                self.check_leases_left(again, home)
                again.stop()

    def test_a_template_that_was_being_deleted_when_the_server_died_is_deleted_by_the_next(self):
        for point in ("template.delete_intended", "template.delete_acted"):
            with self.subTest(point):
                home = self.folder / point
                first = self.serve(home=home, BERTH_FAULT_POINT=point)
                run = runs.start(first, "sleep", "1000", environmentId=self.default_sandbox(first))
                runs.wait_until(first, run, {"running"})
                lease = runs.leases(first)[0]["id"]
                made = [self.good(first.post(f"{LEASES}/{lease}/capture", {"name": name}), 201)["id"]
                        for name in ("going", "staying")]
                self.end_run(first, run)
                self.refuses(point, first, "DELETE", f"/api/templates/{made[0]}")
                again = self.serve(home=home)
                listed = lambda: [row["id"] for row in again.get(f"/api/companies/{again.company()}/templates").json]
                self.assertTrue(runs.eventually(lambda: listed() == made[1:]), listed())
                kept = home / "templates" / "by-id"
                self.assertTrue(runs.eventually(lambda: [one.name for one in kept.iterdir()] == made[1:]),
                                list(kept.iterdir()))
                deleted = [row for row in again.get(f"/api/companies/{again.company()}/activity").json
                           if row["action"] == "template.deleted"]
                self.assertEqual(len(deleted), 1, deleted)
                self.check_leases_left(again, home)
                again.stop()

    def test_a_setup_session_whose_server_died_when_it_was_open_is_finished_later(self):
        first = self.serve(BERTH_FAULT_POINT="setup.opened")
        environment = self.default_sandbox(first)
        path = f"/api/environments/{environment}/custom-image-setup-sessions"
        self.refuses("setup.opened", first, "POST", path, {}, {"Idempotency-Key": "once"})
        again = self.serve()
        # The same request gets the same session, and no second one is opened.
        session = self.good(again.post(path, {}, {"Idempotency-Key": "once"}), 201)["session"]
        self.assertEqual(session["status"], "waiting_for_user")
        self.assertEqual(len(runs.unfinished_leases(again)), 1)
        lease = session["environmentLeaseId"]
        write = lambda: again.post(f"{LEASES}/{lease}/exec", {"argv": ["sh", "-c", "echo prepared > tool"]})
        self.assertTrue(runs.eventually(lambda: write().status == 200), write().text)
        self.good(again.post(f"{SESSIONS}/{session['id']}/finish", {}))
        self.assertTrue(self.has_tool(again, environment))
        self.check_leases_left(again)

    def test_a_setup_session_that_was_cancelled_when_the_server_died_leaves_no_sandbox(self):
        first = self.serve(BERTH_FAULT_POINT="setup.ended")
        environment = self.default_sandbox(first)
        path = f"/api/environments/{environment}/custom-image-setup-sessions"
        session = self.good(first.post(path, {}), 201)["session"]
        self.assertEqual(len(list((self.home / "sandboxes").iterdir())), 1)
        self.refuses("setup.ended", first, "POST", f"{SESSIONS}/{session['id']}/cancel", {})
        again = self.serve()
        ended = self.good(again.get(f"{SESSIONS}/{session['id']}"))["session"]
        self.assertEqual(ended["status"], "cancelled")
        self.check_leases_left(again)
        image = self.good(again.get(f"/api/environments/{environment}/custom-image-template"))
        self.assertIsNone(image["activeTemplate"])
        # Nothing of it blocks another one.
        other = self.good(again.post(path, {}), 201)["session"]
        self.good(again.post(f"{SESSIONS}/{other['id']}/cancel", {}))
        self.check_leases_left(again)


if __name__ == "__main__":
    unittest.main()
