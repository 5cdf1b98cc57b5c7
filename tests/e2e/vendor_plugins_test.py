"""Providers on the SDKs that E2B and Daytona publish (tools/vendor-plugins), each in its box, with
a loopback service that counts sandboxes. The vendor's remaining sandboxes must be those that
Berth knows."""

import json
import os
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from plugins_test import PluginTest
from runs_support import eventually, leases, output, start, wait_for_end, wait_until
from vendor_services import KEY, PORT, Daytona, E2b, Service

ROOT = Path(__file__).resolve().parents[2]


PACKAGES = {}


def setUpModule():
    said = subprocess.run([ROOT / "tools" / "vendor-plugins"], check=True, capture_output=True, text=True)
    # Workers are other users, who cannot pass through a cache folder.
    open_folder = Path(tempfile.mkdtemp(prefix="berth-vendors-", dir="/var/tmp"))
    unittest.addModuleCleanup(shutil.rmtree, open_folder)
    open_folder.chmod(0o755)
    for name, package in json.loads(said.stdout).items():
        modules = Path(package).parent.parent / "node_modules"
        if not PACKAGES:
            shutil.copytree(modules, open_folder / "node_modules", symlinks=True, copy_function=put)
        PACKAGES[name] = shutil.copytree(package, open_folder / "node_modules" / f"berth-compat-{name}")


def put(file, place):
    """Avoids copying a hundred megabytes, where possible."""
    try:
        os.link(file, place)
    except OSError:
        shutil.copy(file, place)


class Vendor:
    """What applies to each of them."""

    NAME = HANDLER = None

    def setUp(self):
        super().setUp()
        self.service = Service(self.folder / "vendor", self.HANDLER)
        self.addCleanup(self.service.close)
        self.server = self.serve()
        self.plugin = self.install(self.server, PACKAGES[self.NAME])
        self.open_way_out(f"{self.service.host}/32:{PORT}")

    def open_way_out(self, *rules):
        answer = self.server.request("PUT", f"/api/plugins/{self.plugin['pluginKey']}/egress", {"allow": rules})
        self.assertEqual(answer.status, 200, answer.text)

    def create(self, name="place", **config):
        return self.server.post(f"/api/companies/{self.server.company()}/environments", {
            "name": name, "driver": "sandbox",
            "config": {"provider": self.NAME, "apiKey": KEY, "apiUrl": self.service.url, **config}})

    def place(self, **config):
        """The id of an environment."""
        answer = self.create(**config)
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json["id"]

    def ran(self, *argv, **more):
        run = wait_for_end(self.server, start(self.server, *argv, **more))
        self.assertTrue(eventually(lambda: self.held() == []), self.held())
        return run

    def held(self):
        return [one for one in leases(self.server) if one["status"] in ("acquiring", "active", "releasing")]

    def known(self):
        """The sandboxes that Berth would still have to end."""
        rows = self.server.get(f"/api/companies/{self.server.company()}/sandboxes").json
        return sorted(row["providerLeaseId"] for row in rows if row["status"] not in ("destroyed", "lost"))

    def assert_live(self, count):
        agreed = lambda: len(self.service.live()) == count and self.service.live() == self.known()
        self.assertTrue(eventually(agreed), (self.service.states(), self.service.live(), self.known()))

    def test_a_probe_takes_its_sandbox_away_and_reports_a_wrong_key_and_a_closed_way_out(self):
        probe = self.server.post(f"/api/environments/{self.place()}/probe", {})
        self.assertTrue(probe.json["ok"], probe.text)
        self.assertGreater(self.service.made, 0)
        self.assert_live(0)
        wrong = self.place(name="wrong", apiKey="e2b_00")
        probe = self.server.post(f"/api/environments/{wrong}/probe", {})
        self.assertFalse(probe.json["ok"], probe.text)
        self.open_way_out()
        before = (self.service.made, len(self.service.requests))
        probe = self.server.post(f"/api/environments/{self.place(name='closed')}/probe", {})
        self.assertFalse(probe.json["ok"], probe.text)
        self.assertEqual((self.service.made, len(self.service.requests)), before)

    def test_a_run_has_its_words_streams_input_and_exit_code(self):
        place = self.place()
        words = ["a b", "it's", 'a "quoted" word', "two\nlines", "$HOME `id` *"]
        script = 'cat; for w in "$@"; do printf "<%s>" "$w"; done; printf "$WORD" >&2; exit 7'
        run = self.ran("sh", "-c", script, "sh", *words, environmentId=place, stdinText="given\n",
                       env={"WORD": "it's\nhere"})
        self.assertEqual((run["status"], run["exitCode"]), ("failed", 7), run)
        said = output(self.server, run["id"])
        self.assertEqual(said, "given\n" + "".join(f"<{word}>" for word in words))
        self.assertEqual(output(self.server, run["id"], "stderr"), "it's\nhere")
        here = self.ran("pwd", environmentId=place)
        self.assertTrue(output(self.server, here["id"]).endswith("/paperclip-workspace\n"))
        there = self.ran("pwd", environmentId=place, cwd="/usr")
        self.assertEqual(output(self.server, there["id"]), "/usr\n")
        self.assert_live(0)
        self.assertNotIn(KEY, json.dumps(leases(self.server)))
        text = "".join(f"{number:07}\n" for number in range(131072))  # 1 MiB
        run = self.ran("cat", environmentId=place, stdinText=text)
        self.assertEqual(run["status"], "succeeded", run)
        self.assertEqual(output(self.server, run["id"]), text)

    def test_a_time_limit_ends_a_command_in_time(self):
        place = self.place()
        begun = time.monotonic()
        run = self.ran("sh", "-c", "sleep 300 & sleep 300", environmentId=place, timeoutMs=1500)
        self.assertEqual(run["status"], "timed_out", run)
        self.assertLess(time.monotonic() - begun, 20)
        self.assert_live(0)

    def test_a_cancel_ends_a_command_and_its_sandbox(self):
        mark = self.folder / "begun"
        run = start(self.server, "sh", "-c", f"touch {mark}; sleep 300", environmentId=self.place())
        wait_until(self.server, run, {"running"})
        self.assertTrue(eventually(mark.exists))
        begun = time.monotonic()
        self.assertEqual(self.server.post(f"/api/heartbeat-runs/{run}/cancel", {}).status, 200)
        self.assertEqual(wait_for_end(self.server, run)["status"], "cancelled")
        self.assertLess(time.monotonic() - begun, 20)
        self.assert_live(0)

    def test_files_go_in_and_out(self):
        run = start(self.server, "sleep", "300", environmentId=self.place())
        lease = wait_until(self.server, run, {"running"})["leaseId"]
        content = os.urandom(100_000)
        path = f"/api/environment-leases/{lease}/files?path=a%20file"
        answer = self.server.request("PUT", path, content, {"Content-Type": "application/octet-stream"})
        self.assertIn(answer.status, (200, 201, 204), answer.text)
        (box,) = self.service.live()
        self.assertEqual((self.folder / "vendor" / box / "paperclip-workspace" / "a file").read_bytes(), content)
        self.assertEqual(self.server.get(path).bytes, content)
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        wait_for_end(self.server, run)
        self.assert_live(0)


class OfE2b(Vendor, PluginTest):
    NAME, HANDLER = "e2b", E2b

    def test_reuse_that_it_does_not_declare_is_refused_and_leaves_no_sandbox(self):
        refused = self.create(reuseLease=True)
        self.assertEqual((refused.status, refused.json["code"]), (422, "unprocessable"), refused.text)
        place = self.place()
        for _ in range(3):
            self.assertEqual(self.ran("true", environmentId=place)["status"], "succeeded")
        self.assertEqual(self.service.made, 3)
        self.assert_live(0)
        self.assertNotIn("/pause", " ".join(path for _, path in self.service.requests))


class OfDaytona(Vendor, PluginTest):
    NAME, HANDLER = "daytona", Daytona

    def test_three_runs_of_an_agent_work_in_one_sandbox(self):
        place = self.place(reuseLease=True)
        agent = self.server.post(f"/api/companies/{self.server.company()}/agents", {
            "name": "Ada", "adapterType": "process", "defaultEnvironmentId": place,
            "adapterConfig": {"command": "sh", "args": ["-c", "echo x >>count; cat count"]}}).json["id"]
        for number in range(1, 4):
            answer = self.server.post(f"/api/agents/{agent}/heartbeat/invoke", {})
            self.assertEqual(answer.status, 202, answer.text)
            run = wait_for_end(self.server, answer.json["id"])
            self.assertEqual((run["status"], output(self.server, run["id"])), ("succeeded", "x\n" * number), run)
            self.assertTrue(eventually(lambda: self.held() == []), self.held())
        self.assertEqual(self.service.made, 1)
        self.assert_live(1)
        self.assertEqual(self.service.states(), ["stopped"])
        (idle,) = self.server.get(f"/api/companies/{self.server.company()}/sandboxes").json
        gone = self.server.request("DELETE", f"/api/sandboxes/{idle['id']}")
        self.assertEqual(gone.status, 200, gone.text)
        self.assert_live(0)

    def test_a_sandbox_that_is_not_taken_up_again_is_deleted(self):
        # A run without an agent has no workspace of its own, so the provider writes no sentinel.
        place = self.place(reuseLease=True)
        for _ in range(3):
            self.assertEqual(self.ran("true", environmentId=place)["status"], "succeeded")
        self.assertEqual(self.service.made, 3)
        self.assert_live(1)

    def test_a_stopped_sandbox_that_the_vendor_deleted_is_replaced(self):
        place = self.place(reuseLease=True)
        self.ran("true", environmentId=place)
        self.service.remove(next(iter(self.service.boxes.values())))
        self.assertEqual(self.ran("true", environmentId=place)["status"], "succeeded")
        self.assert_live(1)

    def test_output_arrives_while_the_command_runs(self):
        go = self.folder / "go"
        run = start(self.server, "sh", "-c", f"echo first; while [ ! -e {go} ]; do sleep 0.05; done; echo last",
                    environmentId=self.place())
        self.assertTrue(eventually(lambda: "first\n" in output_so_far(self.server, run)))
        go.touch()
        self.assertEqual(wait_for_end(self.server, run)["status"], "succeeded")
        self.assertEqual(output(self.server, run), "first\nlast\n")


def output_so_far(server, run):
    answer = server.get(f"/api/heartbeat-runs/{run}/log?format=raw&stream=stdout&offset=0")
    return answer.text if answer.status == 200 else ""
