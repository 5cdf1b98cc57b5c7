"""Sandboxes as a whole: captured, compared, restored, forked, frozen; and environments that a user
prepares by hand. Real sandboxes, and a server that is killed meanwhile."""

import contextlib
import json
import os
import pty
import select
import shutil
import signal
import sqlite3
import subprocess
import threading
import time
import unittest

import machine
import runs_support as runs
import runs_test
import sandbox_test
from support import BERTH, clean_environment

LEASES = "/api/environment-leases"
NOBODY = 65534
SESSIONS = "/api/environment-custom-image-setup-sessions"


@unittest.skipIf(sandbox_test.WHY_NOT, sandbox_test.WHY_NOT)
class Whole(sandbox_test.SandboxTest):
    # The base class's tests run only there.
    for name in [name for name in dir(sandbox_test.SandboxTest) if name.startswith("test_")]:
        locals()[name] = None
    del name

    def held(self, server, command=("sleep", "1000"), **config):
        """A lease that a run holds."""
        environment = (self.environment(server, "whole", **config) if config
                       else self.default_sandbox(server))
        run = runs.start(server, *command, environmentId=environment)
        runs.wait_until(server, run, {"running"})
        self.addCleanup(self.end_run, server, run)
        return next(one["id"] for one in runs.leases(server) if one["heartbeatRunId"] == run)

    def end_run(self, server, run):
        if server.process.poll() is None:
            server.post(f"/api/heartbeat-runs/{run}/cancel", {})
            runs.wait_for_end(server, run)
            runs.eventually(lambda: not runs.unfinished_leases(server))

    def said(self, server, lease, script):
        done = server.post(f"{LEASES}/{lease}/exec", {"argv": ["sh", "-c", script]})
        self.assertEqual(done.status, 200, done.text)
        return done.json["stdoutText"]

    def good(self, answer, status=200):
        self.assertEqual(answer.status, status, answer.text)
        return answer.json

    def changes(self, server, lease):
        found = self.good(server.get(f"{LEASES}/{lease}/changes"))
        self.assertFalse(found["isTruncated"])
        return {(one["change"], one["path"]) for one in found["changes"]}

    def release(self, server, lease):
        self.good(server.post(f"{LEASES}/{lease}/release", {}))

    def test_a_fresh_sandbox_has_no_changes_and_each_later_one_is_told(self):
        server = self.serve()
        lease = self.held(server)
        self.assertEqual(self.changes(server, lease), set())
        self.said(server, lease, "mkdir d; echo x > d/f; ln -s f d/l; echo y > /home/sandbox/.profile")
        self.assertEqual(self.changes(server, lease), {
            ("added", "/workspace/d"), ("added", "/workspace/d/f"), ("added", "/workspace/d/l"),
            ("added", "/home/sandbox/.profile")})
        people = self.run_berth("--home", self.home, "sandbox", "diff", lease)
        self.assertIn("/workspace/d/f", people.stdout, people.stderr)

    @unittest.skipUnless(os.geteuid() == 0, "the server of an ordinary user has one id to give to a sandbox")
    def test_a_change_that_hides_behind_its_old_time_is_told(self):
        server = self.serve()
        lease = self.held(server, user="root")
        self.said(server, lease, "echo one > f; echo own > own; echo kept > kept; mkdir mode given; touch mode/f")
        fork = self.good(server.post(f"{LEASES}/{lease}/fork", {}), 201)["id"]
        self.assertEqual(self.said(server, fork, "chown 5:5 own && echo given"), "given\n")
        self.said(server, fork, "touch -r f /tmp/was; echo TWO > f; touch -r /tmp/was f; chmod 700 mode; chown 7 given;"
                                " mode=$(stat -c %a kept); chmod 600 kept; chmod $mode kept; chown 5:5 /")
        self.assertEqual(self.changes(server, fork), {
            ("changed", "/workspace/f"), ("changed", "/workspace/own"), ("changed", "/workspace/mode"),
            ("changed", "/workspace/given")})
        again = self.good(server.post(f"{LEASES}/{fork}/fork", {}), 201)["id"]
        self.assertEqual(self.said(server, again, "stat -c %u f own given"), "0\n5\n7\n", "whoever has the root")
        self.release(server, again)
        self.release(server, fork)

    def test_what_was_captured_is_what_others_start_from(self):
        server = self.serve()
        lease = self.held(server, user="root")
        self.said(server, lease, "echo one > /workspace/mine; echo changed >> /etc/hosts; rm -r /opt")
        made = self.run_berth("--home", self.home, "sandbox", "commit", lease, "with-mine")
        self.assertEqual(made.returncode, 0, made.stderr)
        template = self.good(server.get(f"/api/companies/{server.company()}/templates"))[0]
        self.assertEqual((template["name"], template["status"]), ("with-mine", "ready"))
        self.assertEqual(self.said(server, lease, "echo alive"), "alive\n")

        second = self.environment(server, "second", template="with-mine", user="root")
        run = runs.start(server, "sh", "-c", "cat mine; tail -n 1 /etc/hosts; ls -d /opt; echo $?; cat /proc/1/comm",
                         environmentId=second)
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        # A rebuilt root has a folder that every root has.
        self.assertIn("one\nchanged\n", runs.output(server, run))
        refused = server.request("DELETE", f"/api/templates/{template['id']}")
        self.assertEqual((refused.status, refused.json["code"]), (409, "image_in_use"), refused.text)
        self.good(server.request("DELETE", f"/api/environments/{second}"))
        self.good(server.request("DELETE", f"/api/templates/{template['id']}"))
        self.assertEqual(list((self.home / "templates" / "by-id").iterdir()), [])

    def test_a_fork_goes_its_own_way_and_a_rollback_comes_back(self):
        server = self.serve()
        lease = self.held(server)
        self.said(server, lease, "echo shared > f")
        fork = self.good(server.post(f"{LEASES}/{lease}/fork", {}), 201)["id"]
        self.assertEqual(self.said(server, fork, "cat f; echo fork > f"), "shared\n")
        self.assertEqual(self.said(server, lease, "cat f"), "shared\n")
        self.assertEqual(self.changes(server, fork), {("changed", "/workspace/f")})
        refused = server.post(f"{LEASES}/{lease}/rollback", {})
        self.assertEqual(refused.status, 409, refused.text)
        done = self.run_berth("--home", self.home, "sandbox", "rollback", fork, "--yes")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.said(server, fork, "cat f"), "shared\n")
        self.assertEqual(self.changes(server, fork), set())
        self.release(server, fork)

    def test_a_rollback_beside_a_destroy_leaves_no_sandbox(self):
        server = self.serve()
        lease = self.held(server)
        there = lambda: {one.name for one in (self.home / "sandboxes").iterdir()}
        before = there()
        for pause in (0, 0.002, 0.005, 0.01, 0.02, 0.04):
            fork = self.good(server.post(f"{LEASES}/{lease}/fork", {}), 201)["id"]
            answers = []
            rollback = threading.Thread(
                target=lambda: answers.append(server.post(f"{LEASES}/{fork}/rollback", {})))
            rollback.start()
            time.sleep(pause)  # this tests the race: each pause ends it at another step
            self.good(server.post(f"{LEASES}/{fork}/destroy", {}))
            rollback.join(60)
            self.assertIn(answers[0].status, (200, 409), answers[0].text)
            self.assertTrue(runs.eventually(lambda: there() == before), (pause, answers[0].text))
        kept = self.home / "templates" / "by-id"
        self.assertTrue(runs.eventually(lambda: list(kept.iterdir()) == []), "what the forks stood on")

    @unittest.skipUnless(machine.can_be_frozen(), "no control group can be frozen here")
    def test_a_frozen_sandbox_does_nothing_until_it_is_thawed(self):
        server = self.serve()
        beats = "while true; do date +%s%N > new; mv new beat; sleep 0.05; done"
        lease = self.held(server, command=("sh", "-c", beats))
        beat = lambda: server.get(f"{LEASES}/{lease}/files?path=beat").text
        self.assertTrue(runs.eventually(lambda: beat().strip().isdigit()), beat())
        self.good(server.post(f"{LEASES}/{lease}/freeze", {}))
        listed = json.loads(self.run_berth("--home", self.home, "sandbox", "ls").stdout)
        self.assertEqual([row["state"] for row in listed], ["frozen"])
        self.assertIn(f"berth sandbox thaw {lease}", listed[0]["nextStep"])
        seen = beat()
        time.sleep(0.3)  # six heartbeats, if there were any
        self.assertEqual(beat(), seen)
        self.good(server.post(f"{LEASES}/{lease}/thaw", {}))
        self.assertTrue(runs.eventually(lambda: beat() != seen))
        listed = json.loads(self.run_berth("--home", self.home, "sandbox", "ls").stdout)
        self.assertEqual([row["state"] for row in listed], ["active"])

    def test_what_the_run_of_a_sandbox_has_said_is_printed_at_once(self):
        server = self.serve()
        lease = self.held(server, command=("sh", "-c", "echo started; exec sleep 1000"))
        run = runs.leases(server)[0]["heartbeatRunId"]
        log = f"/api/heartbeat-runs/{run}/log?format=raw"
        self.assertTrue(runs.eventually(lambda: server.get(log).text == "started\n"))
        printed = self.run_berth("--home", self.home, "sandbox", "logs", lease)
        self.assertEqual((printed.returncode, printed.stdout), (0, "started\n"), printed.stderr)

    def test_a_session_prepares_what_every_later_run_starts_from(self):
        server = self.serve()
        environment = self.default_sandbox(server)
        begun = self.good(server.post(f"/api/environments/{environment}/custom-image-setup-sessions", {}), 201)
        session, lease = begun["session"]["id"], begun["session"]["environmentLeaseId"]
        self.assertEqual(begun["session"]["status"], "waiting_for_user")
        second = server.post(f"/api/environments/{environment}/custom-image-setup-sessions", {})
        self.assertEqual(second.status, 409, second.text)
        self.said(server, lease, "echo prepared > tool")
        done = self.run_berth("--home", self.home, "env", "setup", "Sandbox", "--finish")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.good(server.get(f"{SESSIONS}/{session}"))["session"]["status"], "promoted")
        run = runs.start(server, "cat", "tool", environmentId=environment)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.assertEqual(runs.output(server, run), "prepared\n")
        self.check_leases_left(server)

    def test_a_run_whose_template_is_missing_fails_alone_and_the_queue_goes_on(self):
        server = self.serve()
        broken = self.environment(server, "broken")
        server.stop()
        with contextlib.closing(sqlite3.connect(self.home / "berth.db")) as database:
            database.execute("update environments set config = json_set(config, '$.template', 'gone') where id = ?",
                             [broken])
            database.commit()
        server = self.serve()
        lost = [runs.start(server, "true", environmentId=broken) for _ in range(3)]
        other = server.post("/api/companies", {"name": "Other"}).json["id"]
        theirs = server.post(f"/api/companies/{other}/runs", {"command": "true"}).json["id"]
        self.assertEqual(runs.wait_for_end(server, theirs, 20)["status"], "succeeded")
        for run in lost:
            ended = runs.wait_for_end(server, run, 20)
            self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "template_not_found"), ended)
            self.assertIn("gone", ended["error"])
        self.check_leases_left(server)

    def test_a_setup_of_an_environment_that_names_a_template_is_what_its_runs_start_from(self):
        server = self.serve()
        lease = self.held(server)
        self.said(server, lease, "echo one > one")
        first = self.good(server.post(f"{LEASES}/{lease}/capture", {"name": "first"}), 201)
        environment = self.environment(server, "named", template="first")
        path = f"/api/environments/{environment}"
        second = self.prepared(server, environment)
        config = lambda: self.good(server.get(path))["config"]
        self.assertEqual(config()["template"], second["id"])

        def listed():
            run = runs.start(server, "ls", environmentId=environment)
            self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
            return runs.output(server, run).split()
        self.assertEqual(listed(), ["one", "tool"])
        image = self.good(server.get(f"{path}/custom-image-template"))
        self.assertEqual((image["activeTemplate"]["id"], image["activeTemplateMatchesConfig"]), (second["id"], True))
        self.prepared(server, environment)
        self.good(server.post(f"{path}/custom-image-template/rollback", {}))
        self.assertEqual(config()["template"], second["id"])
        self.assertEqual(listed(), ["one", "tool"])
        self.assertTrue(first["id"])

    def test_a_template_that_root_made_serves_the_ordinary_user(self):
        server = self.serve()
        lease = self.held(server, user="root")
        self.said(server, lease, "mkdir -p /home/sandbox && echo tool > /home/sandbox/tool; echo x > made")
        self.good(server.post(f"{LEASES}/{lease}/capture", {"name": "by root"}), 201)
        user = self.environment(server, "of the user", template="by root", user="user")
        run = runs.start(server, "sh", "-c", "cat ~/tool made && touch ~/mine mine && stat -c %U ~ .",
                         environmentId=user)
        ended = runs.wait_for_end(server, run)
        self.assertEqual((ended["status"], runs.output(server, run)), ("succeeded", "tool\nx\nsandbox\nsandbox\n"),
                         runs.output(server, run, "stderr"))

    def prepared(self, server, environment):
        """The template that a session made of an environment whose workspace has a `tool`."""
        begun = self.good(server.post(f"/api/environments/{environment}/custom-image-setup-sessions", {}), 201)
        self.said(server, begun["session"]["environmentLeaseId"], "echo prepared > tool")
        return self.good(server.post(f"{SESSIONS}/{begun['session']['id']}/finish", {}))["template"]

    def test_an_edit_of_the_config_keeps_the_template_unless_it_names_another_thing_to_start_from(self):
        server = self.serve()
        self.import_tree("other:1")
        environment = self.environment(server, "drifts")
        path = f"/api/environments/{environment}"
        self.assertIsNone(self.edited(server, path, timeoutMs=50_000))
        template = self.prepared(server, environment)
        follows = lambda **config: self.edited(server, path, **config)
        self.assertEqual(follows(timeoutMs=60_000), {
            "action": "relinked", "templateId": template["id"], "classification": "knob_only",
            "driftedPaths": ["/config/timeoutMs"]})
        self.assertIsNone(follows(timeoutMs=60_000))
        self.assertIsNone(self.good(server.request("PATCH", path, {"name": "renamed"}))["customImageReconciliation"])
        self.assertTrue(self.has_tool(server, environment))

        gone = follows(image="other:1")
        self.assertEqual((gone["action"], gone["classification"], gone["driftedPaths"]),
                         ("detached", "boot_source_drift", ["/config/image"]))
        self.assertIsNone(follows(timeoutMs=70_000))  # it is still disconnected
        image = self.good(server.get(f"{path}/custom-image-template"))
        self.assertEqual(image["activeTemplateDrift"], {"classification": "boot_source_drift",
                                                        "driftedPaths": ["/config/image", "/config/timeoutMs"]})
        self.assertIs(image["activeTemplateMatchesConfig"], False)
        back = follows(image=None, timeoutMs=60_000)
        self.assertEqual((back["action"], back["driftedPaths"]), ("relinked", []))
        self.assertTrue(self.has_tool(server, environment))

        follows(image="other:1")
        relink = lambda body: server.post(f"{path}/custom-image-template/relink", body)
        self.assertEqual(relink({"confirm": True}).status, 400)
        refused = relink({})
        self.assertEqual((refused.status, refused.json["details"]["classification"],
                          refused.json["details"]["driftedPaths"]),
                         (409, "boot_source_drift", ["/config/image"]))
        confirmed = self.good(relink({"confirmBootSourceDrift": True}))
        self.assertEqual(confirmed["classification"], "boot_source_drift")
        self.assertTrue(self.has_tool(server, environment))
        self.check_leases_left(server)

    def edited(self, server, path, **config):
        return self.good(server.request("PATCH", path, {"config": config}))["customImageReconciliation"]

    def has_tool(self, server, environment):
        run = runs.start(server, "cat", "tool", environmentId=environment)
        runs.wait_for_end(server, run)
        return runs.output(server, run) == "prepared\n"

    def test_a_template_that_is_revoked_and_deleted_goes_when_nothing_stands_on_it(self):
        server = self.serve()
        environment = self.default_sandbox(server)
        template = self.prepared(server, environment)
        lease = self.held(server)
        path = f"/api/environments/{environment}/custom-image-template"
        revoked = self.good(server.request("DELETE", f"{path}?deleteProviderTemplate=true"))
        self.assertEqual((revoked["id"], revoked["role"]), (template["id"], "revoked"))
        self.assertEqual(self.said(server, lease, "cat tool"), "prepared\n")
        self.assertFalse(self.has_tool(server, environment))
        self.assertEqual(server.request("DELETE", path).status, 404)
        self.assertEqual(self.good(server.get(f"/api/templates/{template['id']}"))["status"], "ready")

        again = self.prepared(server, environment)
        done = self.run_berth("--home", self.home, "env", "image", "Sandbox", "--revoke", "--delete")
        self.assertEqual(done.returncode, 0, done.stderr)
        gone = lambda: server.get(f"/api/templates/{again['id']}").status == 404
        self.assertTrue(runs.eventually(gone))
        self.assertEqual([one.name for one in (self.home / "templates" / "by-id").iterdir()], [template["id"]])

    def test_a_revocation_that_its_server_did_not_survive_stays_and_the_template_goes(self):
        home = self.folder / "revoke"
        first = self.serve(home=home, BERTH_FAULT_POINT="revoke.recorded")
        environment = self.default_sandbox(first)
        template = self.prepared(first, environment)
        path = f"/api/environments/{environment}/custom-image-template"
        with self.assertRaises(Exception):
            first.request("DELETE", f"{path}?deleteProviderTemplate=true")
        self.assertEqual(first.process.wait(30), -signal.SIGKILL, "revoke.recorded was not passed")
        again = self.serve(home=home)
        self.assertIsNone(self.good(again.get(path))["activeTemplate"])
        self.assertFalse(self.has_tool(again, environment))
        # By itself only in the sweeper's next pass, but at once on request.
        one = f"/api/templates/{template['id']}"
        self.assertEqual(self.good(again.get(one))["role"], "revoked")
        self.assertLess(again.request("DELETE", one).status, 300)
        self.assertTrue(runs.eventually(lambda: again.get(one).status == 404))
        self.assertEqual(list((home / "templates" / "by-id").iterdir()), [])

    def test_a_server_that_is_not_root_captures_too_also_what_its_user_may_not_open(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can start a server as somebody else")
        os.chown(self.folder, NOBODY, NOBODY)
        os.chmod(self.folder, 0o755)
        if why_not := machine.why_no_sandbox(NOBODY):
            self.skipTest(f"for an ordinary user {why_not}")
        server = self.serve(user=NOBODY)
        lease = self.held(server)
        self.said(server, lease, "mkdir d; echo hidden > d/f; chmod 0 d/f d; mkfifo p; echo x > /etc/mine")
        self.assertEqual(self.changes(server, lease), {
            ("added", "/workspace/d"), ("added", "/workspace/d/f"), ("added", "/workspace/p"), ("added", "/etc/mine")})
        template = self.good(server.post(f"{LEASES}/{lease}/capture", {"name": "mine"}), 201)
        self.assertEqual(self.said(server, lease, "stat -c %a d; chmod 700 d; stat -c %a d/f"), "0\n0\n")
        fork = self.good(server.post(f"{LEASES}/{lease}/fork", {}), 201)["id"]
        self.assertEqual(self.said(server, fork, "cat d/f /etc/mine; rm -r d"), "hidden\nx\n")
        without = self.good(server.post(f"{LEASES}/{fork}/capture", {"name": "without"}), 201)
        self.good(server.post(f"{LEASES}/{fork}/rollback", {}))
        self.assertEqual(self.said(server, fork, "cat d/f"), "hidden\n")
        self.good(server.post(f"{LEASES}/{fork}/rollback", {"template": without["name"]}))
        self.assertEqual(self.said(server, fork, "ls; cat /etc/mine"), "x\n")
        self.release(server, fork)
        second = self.environment(server, "second", template="mine")
        run = runs.start(server, "sh", "-c", "cat d/f; ls", environmentId=second)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.assertEqual(runs.output(server, run), "hidden\nd\n")
        self.good(server.request("DELETE", f"/api/environments/{second}"))
        self.assertTrue(runs.eventually(
            lambda: server.request("DELETE", f"/api/templates/{template['id']}").status in (200, 404)))

    def test_a_page_opens_the_terminal_of_a_session_with_its_token_alone(self):
        server = self.serve()
        environment = self.default_sandbox(server)
        begun = self.good(server.post(f"/api/environments/{environment}/custom-image-setup-sessions", {}), 201)
        session, lease = begun["session"]["id"], begun["session"]["environmentLeaseId"]
        token = lambda: server.post(f"{SESSIONS}/{session}/terminal-session-token", {})
        ticket = self.good(token(), 201)
        self.assertEqual((ticket["setupSessionId"], ticket["environmentId"]), (session, environment))
        self.assertLessEqual(ticket["expiresAt"], begun["session"]["expiresAt"])
        other = self.good(token(), 201)

        def terminal(said):
            frames = runs_test.Frames(server.port, ticket["websocketPath"])
            self.addCleanup(frames.close)
            self.assertEqual(frames.status, 101)
            frames.send({"type": "auth", "token": said})
            return frames

        for wrong in ("", ticket["token"] + "x", other["token"]):
            self.assertEqual(terminal(wrong).news("error")["code"], "unauthenticated")
        frames = terminal(ticket["token"])
        self.assertEqual(frames.news("ready"), {"type": "ready"})
        for wrong in ({"type": "stdin", "data": ""}, {"type": "resize", "cols": 0, "rows": 1}, {"type": "input"}):
            frames.send(wrong)
            self.assertEqual(frames.news("error")["code"], "validation_failed")
        frames.send({"type": "resize", "cols": 91, "rows": 17})
        frames.send({"type": "input", "data": "stty size; echo von der Küste > page; cat page; exit 3\n"})
        shown = ""
        for frame in frames:
            if frame["type"] == "closed":
                break
            self.assertEqual(frame["type"], "output")
            shown += frame["data"]
        self.assertIn("17 91", shown)
        self.assertIn("von der Küste", shown)
        self.assertEqual((frame["reason"], frame["exitCode"]), ("exited", 3))
        self.assertEqual(self.said(server, lease, "cat page"), "von der Küste\n")
        self.good(server.post(f"{SESSIONS}/{session}/cancel", {}))
        self.assertEqual(token().status, 409)
        self.assertEqual(terminal(ticket["token"]).news("error")["code"], "conflict")
        self.check_leases_left(server)

    def test_with_its_key_a_terminal_ends_and_no_ticket_of_it_opens_another(self):
        server = self.serve()
        company = server.company()
        key = self.good(server.post(f"/api/companies/{company}/tokens", {"name": "leaver", "role": "operator"}), 201)
        begun = self.good(server.post(f"/api/environments/{self.default_sandbox(server)}/custom-image-setup-sessions",
                                      {}), 201)
        session, lease = begun["session"]["id"], begun["session"]["environmentLeaseId"]
        ticket = self.good(server.post(f"{SESSIONS}/{session}/terminal-session-token", {},
                                       {"Authorization": f"Bearer {key['key']}"}), 201)

        def by_ticket():
            frames = runs_test.Frames(server.port, ticket["websocketPath"])
            self.addCleanup(frames.close)
            frames.send({"type": "auth", "token": ticket["token"]})
            return frames

        by_key = runs_test.Frames(server.port, f"/api/environment-leases/{lease}/terminal", key["key"])
        self.addCleanup(by_key.close)
        page = by_ticket()
        self.assertEqual((by_key.status, page.news("ready")), (101, {"type": "ready"}))
        self.good(server.request("DELETE", f"/api/tokens/{key['token']['id']}"))
        for open_terminal in (by_key, page):
            for _ in open_terminal:  # until the server closes it
                pass
        self.assertEqual(by_ticket().news("error")["code"], "unauthenticated")
        self.good(server.post(f"{SESSIONS}/{session}/cancel", {}))
        self.check_leases_left(server)

    def test_every_post_honours_its_key(self):
        server = self.serve()
        environment, lease = self.default_sandbox(server), self.held(server)
        twice = lambda path, body, status=200: self.twice(server, path, body, status)
        twice(f"{LEASES}/{lease}/capture", {"name": "once"}, 201)
        fork = twice(f"{LEASES}/{lease}/fork", {}, 201)["id"]
        twice(f"{LEASES}/{fork}/rollback", {})
        self.release(server, fork)
        start = f"/api/environments/{environment}/custom-image-setup-sessions"
        for _ in range(2):
            session = twice(start, {}, 201)["session"]["id"]
            twice(f"{SESSIONS}/{session}/finish", {})
        session = twice(start, {}, 201)["session"]["id"]
        twice(f"{SESSIONS}/{session}/cancel", {})
        twice(f"/api/environments/{environment}/custom-image-template/rollback", {})
        twice(f"/api/environments/{environment}/custom-image-template/relink", {})
        names = [one["name"] for one in server.get(f"/api/companies/{server.company()}/templates").json]
        self.assertEqual(names.count("once"), 1)

    @unittest.skipUnless(machine.can_be_frozen(), "no control group can be frozen here")
    def test_freeze_and_thaw_honour_their_key(self):
        server = self.serve()
        lease = self.held(server)
        for _ in range(2):
            self.assertTrue(self.twice(server, f"{LEASES}/{lease}/freeze", {}, 200)["metadata"]["frozen"])
            self.assertFalse(self.twice(server, f"{LEASES}/{lease}/thaw", {}, 200)["metadata"].get("frozen"))

    keys = iter(range(1000))

    def twice(self, server, path, body, status):
        key = {"Idempotency-Key": f"key-{next(self.keys)}"}
        first, second = server.post(path, body, key), server.post(path, body, key)
        self.assertEqual(first.status, status, path + first.text)
        self.assertEqual((first.status, first.text), (second.status, second.text), path)
        return first.json

    def test_a_terminal_in_a_held_sandbox_is_a_terminal(self):
        server = self.serve()
        lease = self.held(server)
        controller, terminal = pty.openpty()
        self.addCleanup(os.close, controller)
        with subprocess.Popen([BERTH, "--home", str(self.home), "exec", "-it", lease, "--", "sh", "-c",
                               "tty; read line; echo got:$line; exit 7"],
                              stdin=terminal, stdout=terminal, stderr=terminal,
                              env=clean_environment(), start_new_session=True) as client:
            os.close(terminal)
            self.addCleanup(lambda: client.poll() is None and client.kill())
            said = self.until(controller, b"/dev/pts/")
            os.write(controller, b"hello\n")
            said += self.until(controller, b"got:hello")
            self.assertEqual(client.wait(30), 7, said)

    def until(self, controller, wanted):
        """Terminal output until it contains this."""
        said, end = b"", time.monotonic() + 30
        while wanted not in said and time.monotonic() < end:
            if select.select([controller], [], [], 0.5)[0]:
                try:
                    said += os.read(controller, 4096)
                except OSError:
                    break
        self.assertIn(wanted, said)
        return said

    def holding(self, home, step):
        """A server that will die at a step, with a run in its sandbox and its lease."""
        server = self.serve(home=home, BERTH_FAULT_POINT=step)
        run = runs.start(server, "sleep", "1000", environmentId=self.default_sandbox(server))
        runs.wait_until(server, run, {"running"})
        return server, run, runs.leases(server)[0]["id"]

    def test_a_server_that_dies_while_it_captures_leaves_no_template_and_no_frozen_sandbox(self):
        for step in ["capture.intended", "linux.frozen", "linux.copied", "capture.acted"]:
            with self.subTest(step):
                home = self.folder / step
                first, run, lease = self.holding(home, step)
                self.said(first, lease, "echo x > f")
                capture = lambda server: server.post(f"{LEASES}/{lease}/capture", {"name": "wanted"},
                                                     {"Idempotency-Key": step})
                with self.assertRaises(Exception):
                    capture(first)
                self.assertEqual(first.process.wait(30), -signal.SIGKILL, f"{step} was not passed")
                again = self.serve(home=home)
                templates = f"/api/companies/{again.company()}/templates"
                self.assertTrue(runs.eventually(lambda: again.get(templates).json == []),
                                again.get(templates).text)
                kept = home / "templates" / "by-id"
                self.assertEqual(list(kept.iterdir()) if kept.exists() else [], [])
                look = lambda: again.post(f"{LEASES}/{lease}/exec", {"argv": ["cat", "f"]})
                self.assertTrue(runs.eventually(lambda: look().status == 200), look().text)
                self.assertEqual(look().json["stdoutText"], "x\n")
                made = self.good(capture(again), 201)
                self.assertEqual(self.good(capture(again), 201)["id"], made["id"])
                self.end_run(again, run)
                self.check_leases_left(again, home)
                again.stop()

    def test_a_fork_that_its_server_did_not_survive_is_made_by_the_next_under_the_same_key(self):
        for step in ["capture.intended", "capture.acted", "capture.recorded"]:
            with self.subTest(step):
                home = self.folder / step
                first, run, lease = self.holding(home, step)
                self.said(first, lease, "echo x > f")
                fork = lambda server: server.post(f"{LEASES}/{lease}/fork", {}, {"Idempotency-Key": step})
                with self.assertRaises(Exception):
                    fork(first)
                self.assertEqual(first.process.wait(30), -signal.SIGKILL, f"{step} was not passed")
                again = self.serve(home=home)
                self.assertTrue(runs.eventually(lambda: fork(again).status == 201), fork(again).text)
                made = self.good(fork(again), 201)
                self.assertEqual(made["status"], "active")
                self.assertEqual(self.said(again, made["id"], "cat f"), "x\n")
                self.release(again, made["id"])
                self.end_run(again, run)
                self.check_leases_left(again, home)
                again.stop()

    def test_a_rollback_that_its_server_did_not_survive_is_done_by_the_next_when_it_is_asked_again(self):
        for step in ["rollback.intended", "rollback.destroyed", "rollback.acted"]:
            with self.subTest(step):
                home = self.folder / step
                first, run, lease = self.holding(home, step)
                self.said(first, lease, "echo shared > f")
                fork = self.good(first.post(f"{LEASES}/{lease}/fork", {}), 201)["id"]
                self.said(first, fork, "echo own > f; echo more > g")
                roll_back = lambda server: server.post(f"{LEASES}/{fork}/rollback", {}, {"Idempotency-Key": step})
                with self.assertRaises(Exception):
                    roll_back(first)
                self.assertEqual(first.process.wait(30), -signal.SIGKILL, f"{step} was not passed")
                again = self.serve(home=home)
                self.assertTrue(runs.eventually(lambda: roll_back(again).status == 200), roll_back(again).text)
                self.assertEqual(self.said(again, fork, "cat f"), "shared\n")
                self.assertEqual(self.changes(again, fork), set())
                # It is done: repeating the request ends nothing.
                self.said(again, fork, "echo later > g")
                self.good(roll_back(again))
                self.assertEqual(self.said(again, fork, "cat g"), "later\n")
                self.assertEqual(self.said(again, lease, "cat f"), "shared\n")
                self.release(again, fork)
                self.end_run(again, run)
                self.check_leases_left(again, home)
                again.stop()

    def test_a_template_on_the_disk_that_no_row_tells_of_goes(self):
        server = self.serve()
        lease = self.held(server)
        for name in ("known", "lost"):
            self.good(server.post(f"{LEASES}/{lease}/capture", {"name": name}), 201)
        kept = self.home / "templates" / "by-id"
        self.assertEqual(len(list(kept.iterdir())), 2)
        self.release_all(server)
        server.stop()
        with contextlib.closing(sqlite3.connect(self.home / "berth.db")) as database:
            self.assertEqual(database.execute("delete from templates where name = 'lost'").rowcount, 1)
            database.commit()
        again = self.serve()
        self.assertTrue(runs.eventually(lambda: len(list(kept.iterdir())) == 1), list(kept.iterdir()))
        templates = again.get(f"/api/companies/{again.company()}/templates").json
        self.assertEqual([one["id"] for one in templates], [one.name for one in kept.iterdir()])
        again.stop()

    def release_all(self, server):
        for lease in runs.unfinished_leases(server):
            server.post(f"/api/heartbeat-runs/{lease['heartbeatRunId']}/cancel", {})
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))

    def test_a_setup_session_survives_the_server_and_ends_whole(self):
        for step, after in [("setup.intended", "failed"), ("acquire.acted", "failed"),
                            ("capture.acted", "waiting_for_user"), ("setup.promoted", "promoted")]:
            with self.subTest(step):
                home = self.folder / step
                first = self.serve(home=home, BERTH_FAULT_POINT=step)
                environment = self.default_sandbox(first)
                path = f"/api/environments/{environment}/custom-image-setup-sessions"
                try:
                    begun = self.good(first.post(path, {}), 201)["session"]
                    self.said(first, begun["environmentLeaseId"], "echo prepared > tool")
                    first.post(f"{SESSIONS}/{begun['id']}/finish", {})
                except (OSError, ConnectionError, Exception):  # pylint: disable=broad-except
                    pass
                self.assertEqual(first.process.wait(30), -signal.SIGKILL, f"{step} was not passed")
                again = self.serve(home=home)
                image = lambda: again.get(f"/api/environments/{environment}/custom-image-template").json
                self.assertTrue(runs.eventually(lambda: image()["latestSession"]["status"] == after), image())
                if after == "waiting_for_user":
                    lease = image()["latestSession"]["environmentLeaseId"]
                    held = lambda: again.post(f"{LEASES}/{lease}/exec", {"argv": ["cat", "tool"]})
                    self.assertTrue(runs.eventually(lambda: held().status == 200), held().text)
                    self.assertEqual(held().json["stdoutText"], "prepared\n")
                    self.good(again.post(f"{SESSIONS}/{image()['latestSession']['id']}/finish", {}))
                self.check_leases_left(again, home)
                again.stop()


if __name__ == "__main__":
    unittest.main()
