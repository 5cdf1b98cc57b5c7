"""The server is killed while it starts, disables, upgrades and removes a plugin, and while it looks
for a plugin's sandbox. The next server finishes what was begun, and nothing is lost, doubled or
left behind."""

import http.client
import os
import subprocess

import plugins_test
from runs_support import eventually, output, start, unfinished_leases, wait_for_end

PLUGIN = "/api/plugins/test.boxes"
NO_ANSWER = (OSError, http.client.HTTPException)


class Deaths(plugins_test.PluginTest):
    def archive(self, version="1.0.0", **more):
        self.write_provider(version, **more)
        file = self.folder / "p.tgz"
        subprocess.run(["tar", "-czf", file, "-C", self.folder, "p"], check=True)
        return file

    def installed(self, home):
        """A home folder in which version 1.0.0 is installed from an archive, and an environment
        uses it."""
        server = self.serve(home=home)
        self.install(server, self.archive())
        environment = self.environment(server).json["id"]
        server.stop()
        return environment

    def killed(self, point, home, verb, path, body=None):
        server = self.serve(home=home, BERTH_FAULT_POINT=point)
        with self.assertRaises(NO_ANSWER):
            server.request(verb, path, body, {"Idempotency-Key": point})
        self.dies_at(point, server)
        return self.serve(home=home)

    def folders(self, home):
        return sorted(os.listdir(home / "plugins"))

    def check_ready(self, server, environment, version):
        row = server.get(PLUGIN).json
        self.assertEqual((row["status"], row["version"]), ("ready", version), row)
        self.check_serves(server, environment, version)

    def test_a_plugin_whose_server_died_before_its_worker_began_is_started_by_the_next(self):
        environment = self.installed(self.home)
        starts = len(self.calls("initialize"))
        again = self.killed("plugin.start_intended:2", self.home, "POST", f"{PLUGIN}/restart", {})
        # The dead server had started a worker before it was asked for another one.
        self.assertEqual(len(self.calls("initialize")), starts + 2)
        self.check_ready(again, environment, "1.0.0")
        self.assertEqual(len(self.folders(self.home)), 1)

    def test_a_plugin_that_was_disabled_when_the_server_died_is_not_started_again(self):
        environment = self.installed(self.home)
        again = self.killed("plugin.disable_intended", self.home, "POST", f"{PLUGIN}/disable",
                            {"reason": "quiet"})
        self.assertEqual(self.status(again), "disabled")
        starts = len(self.calls("initialize"))
        probed = again.post(f"/api/environments/{environment}/probe", {})
        self.assertFalse(probed.json.get("ok"), probed.text)
        # The repeated request gets the first one's response.
        repeated = again.request("POST", f"{PLUGIN}/disable", {"reason": "quiet"},
                                 {"Idempotency-Key": "plugin.disable_intended"})
        self.assertEqual((repeated.status, repeated.json["status"]), (200, "disabled"), repeated.text)
        self.assertEqual(len(self.calls("initialize")), starts)
        self.assertEqual(again.post(f"{PLUGIN}/enable", {}).json["status"], "ready")
        self.check_ready(again, environment, "1.0.0")

    def test_an_upgrade_that_its_server_did_not_live_to_apply_is_applied_when_it_is_asked_again(self):
        for added in ((), ("http.outbound",)):
            with self.subTest(added=added):
                home = self.folder / f"home-{len(added)}"
                environment = self.installed(home)
                self.archive("2.0.0", capabilities=("environment.drivers.register", *added))
                again = self.killed("plugin.upgrade_intended", home, "POST", f"{PLUGIN}/upgrade", {})
                row = again.get(PLUGIN).json
                self.assertEqual((row["status"], row["version"], row["pendingUpgrade"]["version"]),
                                 ("upgrade_pending" if added else "ready", "1.0.0", "2.0.0"))
                self.assertEqual(len(self.folders(home)), 2)
                taken = again.post(f"{PLUGIN}/upgrade", {"acceptCapabilities": bool(added)})
                self.assertEqual(taken.status, 200, taken.text)
                self.check_ready(again, environment, "2.0.0")
                self.assertEqual(len(self.folders(home)), 1)
                again.stop()

    def test_an_upgrade_that_was_recorded_when_the_server_died_is_what_the_next_starts(self):
        environment = self.installed(self.home)
        old = self.folders(self.home)
        self.archive("2.0.0")
        again = self.killed("plugin.upgrade_recorded", self.home, "POST", f"{PLUGIN}/upgrade", {})
        self.check_ready(again, environment, "2.0.0")
        self.assertIsNone(again.get(PLUGIN).json.get("pendingUpgrade"))
        self.assertEqual(len(self.folders(self.home)), 1)
        self.assertNotEqual(self.folders(self.home), old)

    def test_a_plugin_that_was_uninstalled_when_the_server_died_is_gone_and_can_come_back(self):
        for purge in ("", "?purge=true"):
            with self.subTest(purge):
                home = self.folder / f"home{purge[1:6]}"
                self.installed(home)
                again = self.killed("plugin.uninstall_intended", home, "DELETE", PLUGIN + purge)
                starts = len(self.calls("initialize"))
                self.assertEqual(again.get("/api/plugins").json, [])
                self.assertEqual(self.folders(home), [])
                repeated = again.request("DELETE", PLUGIN + purge)
                self.assertEqual(repeated.status, 200, repeated.text)
                self.assertEqual(again.get(PLUGIN).status, 404 if purge else 200)
                self.assertEqual(len(self.calls("initialize")), starts)
                self.install(again, self.archive())
                environment = self.environment(again, "later").json["id"]
                self.check_ready(again, environment, "1.0.0")
                self.assertEqual(len(self.folders(home)), 1)
                again.stop()

    def test_a_sandbox_that_was_being_looked_for_when_the_server_died_is_found_by_the_next(self):
        environment = self.installed(self.home)
        ledger = self.state / "ledger"
        first = self.serve(BERTH_FAULT_POINT="acquire.acted")
        run = start(first, "sh", "-c", f"echo once >> {ledger}; echo here", environmentId=environment)
        self.dies_at("acquire.acted", first)
        self.assertEqual(len(self.boxes()), 1)
        self.dies_at("acquire.traced", self.serve(BERTH_FAULT_POINT="acquire.traced"))
        self.assertEqual(len(self.boxes()), 1)
        last = self.serve()
        ended = wait_for_end(last, run)
        self.assertEqual((ended["status"], output(last, run)), ("succeeded", "here\n"), ended)
        self.assertEqual(ledger.read_text(), "once\n")
        self.assertTrue(eventually(lambda: not unfinished_leases(last)), unfinished_leases(last))
        self.assertEqual(self.boxes(), [])
