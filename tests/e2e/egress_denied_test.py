"""Denied egress of a sandbox, as its run reports it."""

import os
import unittest

import runs_support as runs
import sandbox_test
from support import BerthTest

NOWHERE = "127.0.0.9:4711"


@unittest.skipIf(sandbox_test.WHY_NOT, f"no sandboxes here: {sandbox_test.WHY_NOT}")
@unittest.skipUnless(os.access("/usr/bin/curl", os.X_OK), "there is no curl to try with")
class EgressDenied(BerthTest):
    ASK = f"curl -sf --noproxy '' http://{NOWHERE}/"

    def setUp(self):
        super().setUp()
        self.server = self.serve()
        made = self.server.post(f"/api/companies/{self.server.company()}/environments", {
            "name": "web", "driver": "sandbox",
            "config": {"provider": "linux", "egress": {"allow": ["127.0.0.8:1"]}}})
        self.assertEqual(made.status, 201, made.text)
        self.place = made.json["id"]

    def denials(self, run):
        events = self.server.get(f"/api/heartbeat-runs/{run['id']}/events?limit=1000").json
        return [event["message"] for event in events if event["eventType"] == "sandbox.egress_denied"]

    def test_a_command_that_fails_at_once_names_what_it_was_denied(self):
        for _ in range(5):
            run = runs.wait_for_end(self.server, runs.start(self.server, "sh", "-c", self.ASK,
                                                            environmentId=self.place))
            self.assertEqual((run["status"], run["errorCode"]), ("failed", "command_failed"), run)
            self.assertIn(f"The egress policy denied {NOWHERE}", run["error"])
            self.assertIn("egress.allow", run["error"])
            self.assertEqual(len(self.denials(run)), 1)
        late = self.run_berth("sandbox", "egress", run["id"], "--home", self.server.home)
        self.assertEqual(late.returncode, 4, late.stdout)
        self.assertIn(f"'berth run events {run['id']}'", late.stderr)

    def test_an_agent_that_fails_at_once_names_what_it_was_denied(self):
        agent = self.server.post(f"/api/companies/{self.server.company()}/agents", {
            "name": "Ada", "adapterType": "process",
            "adapterConfig": {"command": "sh", "args": ["-c", self.ASK]}}).json["id"]
        for _ in range(5):
            answer = self.server.post(f"/api/agents/{agent}/heartbeat/invoke", {"environmentId": self.place})
            self.assertEqual(answer.status, 202, answer.text)
            run = runs.wait_for_end(self.server, answer.json["id"])
            self.assertIn(f"The egress policy denied {NOWHERE}", run["error"])
            self.assertEqual(len(self.denials(run)), 1)

    def test_a_command_that_succeeded_says_nothing_of_it(self):
        run = runs.wait_for_end(self.server, runs.start(self.server, "sh", "-c", self.ASK + " || true",
                                                        environmentId=self.place))
        self.assertEqual((run["status"], run["error"], self.denials(run)), ("succeeded", None, []))


if __name__ == "__main__":
    unittest.main()
