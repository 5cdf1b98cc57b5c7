"""The protection against attackers, as the server and `berth doctor` report it."""

import json
import os
import unittest

from sandbox_test import WHY_NOT
from support import BerthTest

KEYS = {"callers", "listener", "home_files", "key_file", "sandbox", "sandbox_network",
        "sandbox_allowances", "company_machine", "plugin_boxes"}


class Walls(BerthTest):
    def walls(self, server, key=None):
        answer = server.request("GET", "/api/instance/walls",
                                headers={"Authorization": f"Bearer {key}"} if key else {})
        self.assertEqual(answer.status, 200, answer.text)
        return {wall["key"]: wall for wall in answer.json}

    def test_an_administrator_reads_which_walls_stand(self):
        server = self.serve("--mode", "authenticated", place=None)
        key = (server.home / "admin.token").read_text().strip()
        walls = self.walls(server, key)
        self.assertLessEqual(KEYS, set(walls))
        for name in ("callers", "listener", "home_files", "key_file", "sandbox_network",
                     "company_machine", "plugin_boxes"):
            self.assertEqual((walls[name]["state"], walls[name].get("remedy")), ("stands", None), walls[name])
        for wall in walls.values():
            self.assertIn(wall["state"], ("stands", "weak", "open"))
            self.assertTrue(wall["title"] and wall["reason"] and wall["against"], wall)
            self.assertEqual(bool(wall.get("remedy")), wall["state"] != "stands", wall)
        home = server.home
        home.chmod(0o777)
        self.assertEqual(self.walls(server, key)["home_files"]["state"], "open")
        home.chmod(0o700)

    def test_nobody_else_reads_them(self):
        server = self.serve("--mode", "authenticated")
        headers = {"Authorization": "Bearer " + (server.home / "admin.token").read_text().strip()}
        company = server.get("/api/companies", **headers).json[0]["id"]
        for role in ("viewer", "operator", "admin"):
            made = server.post(f"/api/companies/{company}/tokens", {"name": role, "role": role}, headers)
            refused = server.get("/api/instance/walls", Authorization=f"Bearer {made.json['key']}")
            self.assertEqual(refused.status, 403, refused.text)
        self.assertEqual(server.get("/api/instance/walls").status, 401)

    def test_a_server_that_trusts_every_local_user_says_so(self):
        callers = self.walls(self.serve("--trusted-users", "all"))["callers"]
        self.assertEqual(callers["state"], "open" if os.geteuid() == 0 else "weak")
        self.assertEqual(callers["against"], "local_user")
        self.assertIn("--mode authenticated", callers["remedy"])

    def test_a_company_that_may_use_the_machine_is_named_with_what_it_may(self):
        server = self.serve("--mode", "authenticated", place=None)
        key = (server.home / "admin.token").read_text().strip()
        done = self.run_berth("company", "allow", "Default", "local", "--home", server.home)
        self.assertEqual(done.returncode, 0, done.stderr)
        wall = self.walls(server, key)["company_machine"]
        self.assertEqual(wall["state"], "weak")
        self.assertIn("Default (local)", wall["reason"])

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_an_environment_with_the_network_of_the_host_opens_a_wall(self):
        server = self.serve()
        made = server.post(f"/api/companies/{server.company()}/environments", {
            "name": "Wide open", "driver": "sandbox", "config": {"provider": "linux", "network": "host"}})
        self.assertEqual(made.status, 201, made.text)
        wall = self.walls(server)["sandbox_network"]
        self.assertEqual(wall["state"], "open", wall)
        self.assertIn("Wide open", wall["reason"])

    def test_the_doctor_shows_the_walls_of_the_server(self):
        server = self.serve("--mode", "authenticated")
        done = self.run_berth("doctor", "--home", server.home)
        shown = {row["wall"]["key"]: row for row in json.loads(done.stdout) if row["check"] == "wall"}
        self.assertLessEqual(KEYS, set(shown))
        self.assertEqual((shown["callers"]["verdict"], shown["callers"]["wall"]["state"]), ("ok", "stands"))
        # Without a server it reports what these settings would mean, and claims nothing about a
        # database.
        server.stop()
        done = self.run_berth("doctor", "--home", server.home)
        shown = {row["wall"]["key"]: row for row in json.loads(done.stdout) if row["check"] == "wall"}
        self.assertIn("callers", shown)
        self.assertNotIn("sandbox_network", shown)
