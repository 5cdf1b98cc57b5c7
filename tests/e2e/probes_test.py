"""The result of an environment test: the details that other clients read."""

import unittest

from sandbox_test import WHY_NOT
from support import BerthTest


class Probes(BerthTest):
    def setUp(self):
        super().setUp()
        self.server = self.serve()
        self.company = f"/api/companies/{self.server.company()}"

    def draft(self, **body):
        return self.server.post(f"{self.company}/environments/probe-config", body)

    def saved(self, **body):
        made = self.server.post(f"{self.company}/environments", {"name": "probed", **body})
        self.assertEqual(made.status, 201, made.text)
        answer = self.server.post(f"/api/environments/{made.json['id']}/probe", {})
        self.assertEqual(answer.status, 200, answer.text)
        return answer.json

    def test_the_built_in_fake_is_probed_as_a_draft_and_never_saved(self):
        for config in ({}, {"provider": "fake"}, {"provider": " "}):
            answer = self.draft(driver="sandbox", config=config)
            self.assertEqual((answer.status, answer.json["ok"]), (200, True), answer.text)
            self.assertEqual(answer.json["summary"], "Fake sandbox provider is ready for image ubuntu:24.04.")
            self.assertEqual(answer.json["details"], {"provider": "fake", "image": "ubuntu:24.04", "reuseLease": False})
        wrong = self.draft(driver="sandbox", config={"provider": "fake", "image": ""})
        self.assertEqual((wrong.status, wrong.json["code"]), (422, "unprocessable"), wrong.text)
        kept = self.server.post(f"{self.company}/environments", {"name": "f", "driver": "sandbox", "config": {}})
        self.assertEqual(kept.status, 422, kept.text)

    def test_a_probe_of_this_machine_says_where_it_is(self):
        answer = self.draft(driver="local")
        self.assertTrue(answer.json["ok"], answer.text)
        self.assertEqual(set(answer.json["details"]), {"hostname", "cwd", "keeperVersion"})
        self.assertTrue(answer.json["details"]["hostname"])

    def test_a_failure_has_its_reason_among_the_details(self):
        config = {"host": "build-host.invalid", "username": "me", "remoteWorkspacePath": "/srv/work"}
        for answer in (self.draft(driver="ssh", config=config).json, self.saved(driver="ssh", config=config)):
            self.assertFalse(answer["ok"], answer)
            details = answer["details"]
            self.assertEqual(details["error"], answer["summary"])
            self.assertEqual({key: details[key] for key in config}, config)
            self.assertEqual((details["port"], details["code"]), (22, "ssh_auth_failed"))

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_a_saved_sandbox_tells_of_the_lease_that_it_took(self):
        answer = self.saved(driver="sandbox", config={"provider": "linux", "reuseLease": True})
        self.assertTrue(answer["ok"], answer)
        details = answer["details"]
        self.assertEqual(details["leasePolicy"], "ephemeral")
        self.assertEqual(details["metadata"]["driver"], "sandbox")
        lease = self.server.get(f"/api/environment-leases/{details['leaseId']}").json
        self.assertEqual(lease["providerLeaseId"], details["providerLeaseId"])
