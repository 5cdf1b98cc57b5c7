"""Who may use the server's machine without isolation: neither an agent nor a company by itself."""

import contextlib
import json
import sqlite3
import textwrap

import machine
import runs_support as runs
from support import BerthTest

# A stand-in for an agent's program that runs its prompt as a script: it wakes itself with another
# one.
WAKE = textwrap.dedent("""
    cat > wake.py <<'END'
    import json, os, sys, urllib.error, urllib.request
    ask = urllib.request.Request(
        os.environ["BERTH_API_URL"] + "/api/agents/" + os.environ["BERTH_AGENT_ID"] + "/wakeup",
        json.dumps({"prompt": open("next").read()}).encode(),
        {"Authorization": "Bearer " + os.environ["BERTH_API_KEY"], "Content-Type": "application/json"})
    try:
        print("woke", json.load(urllib.request.urlopen(ask))["id"])
    except urllib.error.HTTPError as refused:
        print("refused", refused.code, json.load(refused)["code"])
    END
    cat > next <<'NEXT'
    %s
    NEXT
    python3 wake.py
""")
# The host has a server home folder; a sandbox does not.
LOOK = "test -e %s/master.key && echo ESCAPED || echo inside"


class PlacementWalls(BerthTest):
    def environments(self, server, company, **who):
        rows = server.get(f"/api/companies/{company}/environments", **who).json
        return {row["name"]: row["id"] for row in rows}

    def sandbox_of(self, server):
        if why_not := machine.why_no_sandbox():
            self.skipTest(why_not)
        return self.environments(server, server.company())["Sandbox"]

    def woken(self, server, run):
        said = runs.output(server, run).split()
        self.assertEqual(said[0], "woke", f"{said} {runs.output(server, run, 'stderr')}")
        return said[1]

    def test_a_run_in_a_sandbox_that_wakes_itself_stays_in_it(self):
        # Without a default set by the operator, as before new companies had one.
        server = self.serve(place=None)
        company = server.company()
        sandbox = self.sandbox_of(server)
        cleared = server.request("PATCH", f"/api/companies/{company}", {"defaultEnvironmentId": None})
        self.assertEqual(cleared.status, 200, cleared.text)
        agent = server.post(f"/api/companies/{company}/agents", {
            "name": "Mallory", "adapterType": "process",
            "adapterConfig": {"command": "sh", "args": ["-s"]}}).json["id"]
        look = LOOK % self.home
        first = server.post(f"/api/agents/{agent}/wakeup",
                            {"environmentId": sandbox, "prompt": WAKE % (WAKE.replace("NEXT", "LAST") % look)})
        self.assertEqual(first.status, 202, first.text)
        run = first.json["id"]
        for _ in range(2):
            ended = runs.wait_for_end(server, run)
            self.assertEqual(ended["status"], "succeeded", runs.output(server, run, "stderr"))
            caller, run = run, self.woken(server, run)
            choice = runs.look(server, run)["environmentChoice"]
            self.assertEqual((choice["environmentId"], choice["reason"], choice.get("callingRunId")),
                             (sandbox, "calling_run", caller))
        self.assertEqual(runs.wait_for_end(server, run)["environment"]["name"], "Sandbox")
        self.assertEqual(runs.output(server, run), "inside\n")

    def test_an_agent_key_never_gets_to_local_by_itself(self):
        server = self.serve(place=None)
        company = server.company()
        server.request("PATCH", f"/api/companies/{company}", {"defaultEnvironmentId": None})
        agent = server.post(f"/api/companies/{company}/agents", {
            "name": "Ada", "adapterType": "process", "adapterConfig": {"command": "true"}}).json["id"]
        key = server.post(f"/api/companies/{company}/tokens",
                          {"name": "ada", "kind": "agent_key", "agentId": agent}).json["key"]
        who = {"Authorization": f"Bearer {key}"}
        refused = server.post(f"/api/agents/{agent}/wakeup", {}, who)
        self.assertEqual((refused.status, refused.json["code"]), (403, "forbidden"))
        self.assertIn("berth agent update", refused.text)
        server.default_to("Local")
        self.assertEqual(server.post(f"/api/agents/{agent}/wakeup", {}, who).status, 202)

    def tenant(self, server, name):
        """A separate company on a server with keys: its path, and its keys by role."""
        instance = {"Authorization": "Bearer " + (server.home / "admin.token").read_text().strip()}
        company = server.post("/api/companies", {"name": name}, instance).json["id"]
        home = f"/api/companies/{company}"

        def key(role):
            made = server.post(f"{home}/tokens", {"name": role, "role": role}, instance)
            self.assertEqual(made.status, 201, made.text)
            return {"Authorization": f"Bearer {made.json['key']}"}

        return home, instance, key("operator"), key("admin")

    def attempts(self, server, home, operator):
        """Attempts to give an operator the machine: each name, and its response."""
        local = self.environments(server, home.rpartition("/")[2], **operator)["Local"]
        script = f"head -c 4 {server.home}/admin.token"

        def sandbox(name, **config):
            return server.post(f"{home}/environments", {
                "name": name, "driver": "sandbox", "config": {"provider": "linux", **config}}, operator)

        yield "local", server.post(f"{home}/runs", {"command": "sh", "args": ["-c", script],
                                                    "environmentId": local}, operator)
        yield "probe", server.post(f"{home}/environments/probe-config", {"driver": "local"}, operator)
        yield "network", sandbox("host", network="host")
        yield "egress", sandbox("near", egress={"allow": [f"127.0.0.1/32:{server.port}"]})
        yield "unspecified", sandbox("zero", egress={"allow": [f"0.0.0.0/32:{server.port}"]})
        yield "nested", sandbox("nested", allow=["nested_user_namespaces"])
        yield "minimal", sandbox("minimal", minIsolation="minimal")
        yield "ssh", server.post(f"{home}/environments", {"name": "shell", "driver": "ssh", "config": {
            "host": "127.0.0.1", "username": "root", "remoteWorkspacePath": "/root"}}, operator)

    def test_an_operator_of_a_company_does_not_get_the_machine(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve("--mode", "authenticated", home=self.folder / engine, place=None, **variables)
                home, instance, operator, admin = self.tenant(server, "B")
                for name, answer in self.attempts(server, home, operator):
                    self.assertEqual((answer.status, answer.json["code"]), (403, "not_allowed_here"), name)
                    self.assertIn("berth company allow 'B'", answer.text)
                everything = {"local": True, "hostNetwork": True, "privateEgress": True, "privateSsh": True,
                              "weakSandbox": True}
                for who in (operator, admin):
                    refused = server.request("PATCH", f"{home}/allowances", everything, who)
                    self.assertEqual((refused.status, refused.json["code"]), (403, "forbidden"))
                self.assertEqual(server.get(home, **operator).json["allowed"], [])

                allowed = self.run_berth("--home", server.home, "company", "allow", "B", "local", "host-network",
                                         "private-egress", "private-ssh", "weak-sandbox", "--json", BERTH_URL=f"http://127.0.0.1:{server.port}")
                self.assertEqual(allowed.returncode, 0, allowed.stderr)
                self.assertEqual(json.loads(allowed.stdout)["allowed"], ["local", "host_network", "private_egress",
                                                                        "private_ssh", "weak_sandbox"])
                for name, answer in self.attempts(server, home, operator):
                    self.assertIn(answer.status, (200, 201, 202), f"{name}: {answer.text}")
                    if name == "local":
                        seen = server.get(f"/api/heartbeat-runs/{answer.json['id']}?wait=30&until=end", **operator)
                        self.assertEqual(seen.json["status"], "succeeded", seen.text)
                forbidden = server.request("PATCH", f"{home}/allowances", {"local": False}, instance)
                self.assertEqual(forbidden.json["allowed"], ["host_network", "private_egress", "private_ssh",
                                                              "weak_sandbox"])
                _, answer = next(self.attempts(server, home, operator))
                self.assertEqual(answer.status, 403)

    def test_a_company_of_a_tenant_works_in_its_sandbox(self):
        server = self.serve("--mode", "authenticated", place=None)
        home, _, operator, _ = self.tenant(server, "B")
        if why_not := machine.why_no_sandbox():
            self.skipTest(why_not)
        self.assertIn("Sandbox", self.environments(server, home.rpartition("/")[2], **operator))
        run = server.post(f"{home}/runs", {"command": "true"}, operator)
        self.assertEqual(run.status, 202, run.text)
        seen = server.get(f"/api/heartbeat-runs/{run.json['id']}?wait=30&until=end", **operator).json
        self.assertEqual((seen["status"], seen["environment"]["name"]), ("succeeded", "Sandbox"))

    def downgrade(self):
        """The database of the home folder, as a program of schema 7 left it."""
        with contextlib.closing(sqlite3.connect(self.home / "berth.db")) as database, database:
            database.execute("drop table agent_homes")
            database.execute("drop index sandboxes_company_id_provider_provider_lease_id")
            for index in ("by_name", "stored", "finished", "logs", "retries"):
                database.execute(f"drop index heartbeat_runs_{index}")
            for table, columns in {"companies": ("allowances", "kept_allowances", "quota"),
                                   "plugins": ("egress",),
                                   "sandboxes": ("memory_mb", "disk_mb", "pids", "counted"),
                                   "tokens": ("created_by",),
                                   "heartbeat_runs": ("payload_bytes", "log_removed_at", "name",
                                                      "responsible_user_id")}.items():
                for column in columns:
                    database.execute(f"alter table {table} drop column {column}")
            database.execute("delete from schema_migrations where number >= 8")

    def test_an_upgraded_home_keeps_what_its_companies_used_and_doctor_lists_it(self):
        server = self.serve()
        runs.wait_for_end(server, runs.start(server, "true"))
        made = server.post(f"/api/companies/{server.company()}/environments", {
            "name": "near", "driver": "ssh", "config": {
                "host": "localhost", "username": "me", "remoteWorkspacePath": "/srv/work"}})
        self.assertEqual(made.status, 201, made.text)
        server.post("/api/companies", {"name": "Idle"})
        server.stop()
        self.downgrade()
        flags = ("--mode", "authenticated")
        server = self.serve(*flags, place=None)
        instance = {"Authorization": "Bearer " + (self.home / "admin.token").read_text().strip()}
        companies = {row["name"]: row for row in server.get("/api/companies", **instance).json}
        self.assertEqual(companies["Default"]["allowed"], ["local", "private_ssh"])
        self.assertEqual(companies["Default"]["keptAllowances"], ["local", "private_ssh"])
        self.assertEqual((companies["Idle"]["allowed"], companies["Idle"]["keptAllowances"]), ([], []))
        run = server.post(f"/api/companies/{companies['Default']['id']}/runs", {"command": "true"}, instance)
        self.assertEqual(run.status, 202, run.text)

        url = {"BERTH_URL": f"http://127.0.0.1:{server.port}"}
        said = self.run_berth("--home", self.home, "doctor", **url).stdout
        self.assertIn("'Default' kept from before the upgrade: local, private-ssh", said)
        self.assertIn("berth company forbid 'Default' local private-ssh", said)
        self.assertNotIn("'Idle'", said)
        done = self.run_berth("--home", self.home, "company", "forbid", "Default", "local", "private-ssh",
                              **url)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn("kept from before", self.run_berth("--home", self.home, "doctor", **url).stdout)
        refused = server.post(f"/api/companies/{companies['Default']['id']}/runs", {"command": "true"}, instance)
        self.assertEqual((refused.status, refused.json["code"]), (403, "not_allowed_here"))
