"""Secrets: sealed at rest, never shown, deleted when they should be."""

import signal
import sqlite3
import subprocess

import runs_support as runs
from support import BERTH, BerthTest, clean_environment, ssh_environment

VALUE = "correct-horse-battery-staple-4711"


class Secrets(BerthTest):
    def make(self, server, name="db password", value=VALUE):
        answer = server.post(f"/api/companies/{server.company()}/secrets", {"name": name, "value": value})
        self.assertEqual(answer.status, 201, answer.text)
        return answer.json

    def test_a_value_is_in_no_answer_no_file_and_no_log(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve("--log-level", "debug", home=self.folder / engine, **variables)
                secret, paths = self.use(server)
                for path in paths:
                    answer = server.get(path)
                    self.assertEqual(answer.status, 200, path)
                    self.assertNotIn(VALUE, answer.text, path)
                self.assertEqual(server.stop(), 0)
                self.assertNotIn(VALUE, server.said())
                for file in server.home.rglob("*"):
                    if file.is_file():
                        self.assertNotIn(VALUE.encode(), file.read_bytes(), file.name)
                if engine == "postgres":
                    dump = subprocess.run(["pg_dump", "--data-only", "-d", variables["BERTH_DATABASE_URL"]],
                                          capture_output=True, text=True, check=True).stdout
                    self.assertIn(secret, dump)
                    self.assertNotIn(VALUE, dump)
                    self.assertNotIn(VALUE.encode().hex(), dump)  # as pg_dump writes bytes

    def use(self, server):
        """A secret, another in an environment's config, and a run with both; returns the id of the
        first, and where it could be read."""
        company = server.company()
        secret = self.make(server)["id"]
        body = ssh_environment("e")
        body["config"]["privateKey"] = VALUE
        environment = server.post(f"/api/companies/{company}/environments", body)
        self.assertEqual(environment.status, 201, environment.text)
        self.assertIsNone(environment.json["config"]["privateKey"])
        self.assertEqual(environment.json["config"]["privateKeySecretRef"]["type"], "secret_ref")
        run = runs.start(server, "sh", "-c", 'printf "%s" "$S" | tee /dev/stderr',
                         env={"S": {"type": "secret_ref", "secretId": secret}})
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.assertEqual(runs.output(server, run), "***REDACTED***")
        rotated = server.post(f"/api/secrets/{secret}/rotate", {"value": VALUE + "2"}, {"Idempotency-Key": "r"})
        self.assertEqual(rotated.json["latestVersion"], 2)
        return secret, [
            f"/api/companies/{company}/secrets", f"/api/secrets/{secret}", f"/api/secrets/{secret}/versions",
            f"/api/secrets/{secret}/usage", f"/api/secrets/{secret}/access-events",
            f"/api/companies/{company}/activity", f"/api/companies/{company}/environments",
            f"/api/environments/{environment.json['id']}",
            f"/api/environments/{environment.json['id']}/secret-refs", "/metrics",
            f"/api/heartbeat-runs/{run}", f"/api/heartbeat-runs/{run}/events", f"/api/heartbeat-runs/{run}/log"]

    def test_the_error_of_a_run_does_not_quote_a_secret_variable(self):
        server = self.serve()
        secret = self.make(server)["id"]
        run = runs.start(server, "no-such-program", env={"PATH": {"type": "secret_ref", "secretId": secret}})
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["errorCode"], "command_not_found", ended)
        for path in (f"/api/heartbeat-runs/{run}", f"/api/heartbeat-runs/{run}/events"):
            self.assertNotIn(VALUE, server.get(path).text)
        self.assertEqual(server.stop(), 0)
        for file in server.home.glob("berth.db*"):
            self.assertNotIn(VALUE.encode(), file.read_bytes(), file.name)

    def test_a_refused_value_is_not_repeated_in_the_error(self):
        server = self.serve("--log-level", "debug")
        path = f"/api/companies/{server.company()}/secrets"
        for body in ({"name": "a", "value": [VALUE]}, {"name": "", "value": VALUE},
                     {"name": "a", "value": VALUE, "bogus": VALUE},
                     {"name": "a", "value": VALUE, "externalRef": "x"}):
            answer = server.post(path, body)
            self.assertIn(answer.status, (400, 422))
            self.assertNotIn(VALUE, answer.text)
        self.assertEqual(server.get(path).json, [])
        self.assertNotIn(VALUE, server.said())

    def test_a_secret_made_for_a_field_goes_with_the_field(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                company = server.company()
                shared = self.make(server, "shared")
                body = ssh_environment("e")
                body["config"]["privateKey"] = "key one"
                path = f"/api/companies/{company}/environments"
                made = server.post(path, body).json
                owned = made["config"]["privateKeySecretRef"]["secretId"]
                patched = server.request("PATCH", f"/api/environments/{made['id']}",
                                         {"config": {"privateKey": "key two"}}).json
                second = patched["config"]["privateKeySecretRef"]["secretId"]
                self.assertNotEqual(owned, second)
                self.assertEqual(server.get(f"/api/secrets/{owned}").status, 404)
                ref = {"type": "secret_ref", "secretId": shared["id"]}
                server.request("PATCH", f"/api/environments/{made['id']}",
                               {"config": {"privateKeySecretRef": ref}})
                self.assertEqual(server.get(f"/api/secrets/{second}").status, 404)
                self.assertEqual(server.request("DELETE", f"/api/environments/{made['id']}").status, 200)
                left = [row["name"] for row in server.get(f"/api/companies/{company}/secrets").json]
                self.assertEqual(left, ["shared"])

    def test_a_failed_save_leaves_no_secret_behind(self):
        server = self.serve()
        company = server.company()
        path = f"/api/companies/{company}/environments"
        server.post(path, ssh_environment("taken"))
        body = ssh_environment("taken")
        body["config"]["privateKey"] = VALUE
        self.assertEqual(server.post(path, body).status, 409)
        body["name"] = "other"
        body["envVars"] = {"X": {"type": "secret_ref", "secretId": "00000000-0000-4000-8000-000000000000"}}
        self.assertEqual(server.post(path, body).status, 422)
        self.assertEqual(server.get(f"/api/companies/{company}/secrets").json, [])

    def test_names_keys_and_states_follow_the_rules(self):
        server = self.serve()
        company = server.company()
        secret = self.make(server, "API Key (prod)")
        self.assertEqual(secret["key"], "api-key-prod")
        path = f"/api/companies/{company}/secrets"
        taken = server.post(path, {"name": "API Key (prod)", "value": "x"})
        self.assertEqual((taken.status, taken.json["code"]), (409, "secret_name_taken"))
        taken = server.post(path, {"name": "other", "key": "API KEY prod", "value": "x"})
        self.assertEqual((taken.status, taken.json["code"]), (409, "secret_key_taken"))
        by_id = f"/api/secrets/{secret['id']}"
        self.assertEqual(server.request("PATCH", by_id, {"status": "disabled"}).json["status"], "disabled")
        self.assertEqual(server.post(f"{by_id}/rotate", {"value": "y"}).status, 422)
        self.assertEqual(server.request("PATCH", by_id, {"status": "deleted"}).status, 422)
        server.request("PATCH", by_id, {"status": "active"})
        stale = server.post(f"{by_id}/rotate", {"value": "y", "expectedLatestVersion": 7})
        self.assertEqual((stale.status, stale.json["code"]), (409, "secret_version_stale"))
        self.assertEqual(server.post(f"{by_id}/rotate", {"value": ""}).status, 400)
        self.assertEqual(server.request("DELETE", by_id).json, {"ok": True})
        self.assertEqual(server.get(by_id).status, 404)


class Rekey(BerthTest):
    def key_ids(self):
        with sqlite3.connect(self.home / "berth.db") as database:
            return {row[0] for row in database.execute("select key_id from company_secret_versions")}

    def fill(self, server, count=30):
        path = f"/api/companies/{server.company()}/secrets"
        for number in range(count):
            server.post(path, {"name": f"s{number}", "value": f"value {number}"})

    def test_rekey_seals_everything_anew_and_drops_the_old_key(self):
        server = self.serve()
        self.fill(server)
        before = self.key_ids()
        answer = server.post("/api/instance/rekey", {})
        self.assertEqual((answer.status, answer.json["resealedVersions"]), (200, 30), answer.text)
        after = self.key_ids()
        self.assertEqual(after, {answer.json["keyId"]})
        self.assertTrue(before.isdisjoint(after))
        self.assertEqual(len((self.home / "master.key").read_text().split("\n")), 2)
        server.stop()
        again = self.serve()
        self.assertEqual(again.post("/api/instance/rekey", {}).status, 200)

    def test_a_crash_half_way_loses_nothing(self):
        server = self.serve()
        self.fill(server, 60)
        server.stop()
        for point in ("rekey.begun", "rekey.batch", "rekey.resealed"):
            with self.subTest(point):
                server = self.serve(BERTH_FAULT_POINT=point)
                try:
                    server.post("/api/instance/rekey", {})
                    self.fail("the server should have died")
                except (ConnectionError, OSError):
                    pass
                self.assertEqual(server.process.wait(20), -signal.SIGKILL)
                server = self.serve()
                answer = server.post("/api/instance/rekey", {})
                self.assertEqual(answer.status, 200, answer.text)
                self.assertEqual(self.key_ids(), {answer.json["keyId"]})
                self.assertEqual(server.stop(), 0)

    def test_a_lost_key_file_is_said_and_never_replaced(self):
        server = self.serve()
        self.fill(server, 1)
        server.stop()
        key = self.home / "master.key"
        kept = key.read_text()
        key.unlink()
        refused = self.refused()
        self.assertIn("master_key_missing", refused)
        self.assertFalse(key.exists())
        key.write_text(kept)
        key.chmod(0o644)
        self.assertIn("chmod 600", self.refused())
        key.chmod(0o600)
        self.assertEqual(self.serve().stop(), 0)

    def refused(self):
        done = subprocess.run([BERTH, "serve", "--home", str(self.home), "--listen", "127.0.0.1:0"],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20,
                              env=clean_environment(), check=False)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        return done.stderr
