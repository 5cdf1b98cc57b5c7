"""What a new user sees."""

import os
import pty
import signal
import stat
import subprocess

import runs_support as runs
from support import BERTH, STOP_LIMIT_S, BerthTest, clean_environment, ssh_environment


class FirstStart(BerthTest):
    def test_a_new_home_has_one_company_and_its_environments(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, place=None, **variables)
                companies = server.get("/api/companies").json
                self.assertEqual(len(companies), 1)
                path = f"/api/companies/{companies[0]['id']}/environments"
                rows = {row["name"]: row for row in server.get(path).json}
                self.assertEqual(rows["Local"]["driver"], "local")
                # The sandbox exists if this machine can create one: sandbox_test.py.
                self.assertEqual(set(rows) - {"Sandbox"}, {"Local"})
                self.assertEqual(companies[0]["defaultEnvironmentId"], rows.get("Sandbox", {}).get("id"))
                self.assertEqual(companies[0]["allowed"], ["local", "host_network", "private_egress",
                                                           "private_ssh", "weak_sandbox"])
                # Wherever it runs, a new user's command works.
                url = {"BERTH_URL": f"http://127.0.0.1:{server.port}"}
                done = self.run_berth("run", "--", "uname", "-s", **url)
                self.assertEqual((done.returncode, done.stdout), (0, "Linux\n"), done.stderr)

    def test_a_second_start_finds_what_the_first_one_made(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                home = self.folder / engine
                server = self.serve(home=home, **variables)
                company = server.company()
                path = f"/api/companies/{company}/environments"
                self.assertEqual(server.post(path, ssh_environment("builder")).status, 201)
                self.assertEqual(server.stop(), 0)
                again = self.serve(home=home, **variables)
                self.assertEqual(again.company(), company)
                names = {row["name"] for row in again.get(path).json}
                self.assertEqual(names - {"Sandbox"}, {"Local", "builder"})

    def test_the_health_routes_answer(self):
        server = self.serve()
        self.assertEqual(server.get("/api/health").json["status"], "ok")
        self.assertEqual(server.get("/api/health/ready").status, 200)
        self.assertEqual(server.get("/api/openapi.json").json["openapi"][:3], "3.1")
        self.assertIn("# TYPE", server.get("/metrics").text)

    def test_nobody_else_can_read_the_home(self):
        server = self.serve()
        runs.wait_for_end(server, runs.start(server, "true"))
        # Root's plugins run as other users. They pass through the home folder to their programs,
        # and to transferred files by a name that only they get.
        through = 0o011 if os.geteuid() == 0 else 0
        self.assertEqual(stat.S_IMODE(self.home.stat().st_mode) & 0o077, through)
        of_plugins = ("plugins", "plugin-exchange", "plugin-files")
        for name in of_plugins[1:]:
            self.assertEqual(stat.S_IMODE((self.home / name).stat().st_mode) & 0o066, 0, name)
        entries = [entry for entry in self.home.iterdir() if entry.name not in of_plugins]
        self.assertIn("master.key", [entry.name for entry in entries])
        for entry in entries:
            self.assertEqual(stat.S_IMODE(entry.stat().st_mode) & 0o077, 0, entry)

    def test_the_client_finds_the_server_and_the_company(self):
        server = self.serve()
        url = {"BERTH_URL": f"http://127.0.0.1:{server.port}"}
        self.assertEqual(self.run_berth("status", **url).returncode, 0)
        shown = self.run_berth("env", "list", "--json", **url)
        self.assertEqual(shown.returncode, 0, shown.stderr)
        self.assertIn('"Local"', shown.stdout)

    def test_a_hangup_ends_what_has_a_terminal_in_order_and_nothing_else(self):
        server = self.serve()
        server.process.send_signal(signal.SIGHUP)
        self.assertTrue(runs.eventually(lambda: "server.nothing_to_reload" in server.said()), server.said())
        self.assertEqual(server.get("/api/health").status, 200)
        self.assertEqual(server.stop(), 0)

        terminal, inside = pty.openpty()
        self.addCleanup(os.close, terminal)
        started = subprocess.Popen([BERTH, "serve", "--home", self.home, "--listen", "127.0.0.1:0"],
                                   stdin=inside, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                   env=clean_environment())
        self.addCleanup(started.kill)
        os.close(inside)
        self.assertIn("listening on", started.stdout.readline())
        started.send_signal(signal.SIGHUP)
        _, said = started.communicate(timeout=STOP_LIMIT_S)
        self.assertEqual(started.returncode, 0, said)
        self.assertIn("server.stopping", said)
