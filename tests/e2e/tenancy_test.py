"""Every route with every kind of caller: no caller gets further than the permission table allows."""

import datetime
import re

from runs_support import eventually
from support import BerthTest, ssh_environment

MISSING = "00000000-0000-4000-8000-000000000000"

# What each caller may do, by the permission that a route needs.
ALLOWED = {
    "nobody": {"open"},
    "viewer": {"open", "signed_in", "company_read"},
    "operator": {"open", "signed_in", "company_read", "company_operate", "agent_invoke"},
    "admin": {"open", "signed_in", "company_read", "company_operate", "agent_invoke", "company_admin"},
    "agent": {"open", "signed_in", "company_read", "agent_self", "agent_invoke"},
    "instance": {"open", "signed_in", "company_read", "company_operate", "agent_invoke",
                 "company_admin", "instance_admin"},
}

# What a request must contain so that only its path decides the response.
BODIES = {
    ("POST", "/api/companies"): {"name": "new"},
    ("POST", "/api/companies/{company}/agents"): {"name": "n", "adapterType": "codex_local"},
    ("POST", "/api/companies/{company}/secrets"): {"name": "n", "value": "v"},
    ("POST", "/api/companies/{company}/tokens"): {"name": "n"},
    ("POST", "/api/tokens"): {"name": "n"},
    ("POST", "/api/secrets/{secret}/rotate"): {"value": "v2"},
    ("POST", "/api/companies/{company}/runs"): {"command": "true"},
    ("POST", "/api/companies/{company}/environments/probe-config"): {"driver": "local"},
    ("POST", "/api/environment-leases/{lease}/force-resolve"): {"reason": "r"},
    ("POST", "/api/environment-leases/{lease}/adopt"): {"providerLeaseId": "x"},
    ("POST", "/api/templates/{template}/adopt"): {"templateRef": "x"},
    ("POST", "/api/templates/{template}/force-resolve"): {"reason": "r"},
    ("POST", "/api/environment-leases/{lease}/exec"): {"argv": ["true"]},
    ("POST", "/api/environment-leases/{lease}/capture"): {"name": "n"},
}


class Tenancy(BerthTest):
    def start(self, **variables):
        server = self.serve("--mode", "authenticated", home=self.folder / str(len(variables)), place=None,
                            **variables)
        server.keys = {"instance": (server.home / "admin.token").read_text().strip(), "nobody": None}
        return server

    def call(self, server, who, verb, path, body=None):
        key = server.keys[who]
        return server.request(verb, path, body, {"Authorization": f"Bearer {key}"} if key else {})

    def furnish(self, server, name):
        """A company with one object of each kind, and a key of each role; the ids by path
        parameter."""
        def made(path, body):
            answer = self.call(server, "instance", "POST", path, body)
            self.assertIn(answer.status, (201, 202), answer.text)
            return answer.json

        company = made("/api/companies", {"name": name})["id"]
        home = f"/api/companies/{company}"
        local = next(row["id"] for row in self.call(server, "instance", "GET", f"{home}/environments").json
                     if row["name"] == "Local")
        for path, body in ((f"{home}/allowances", {"local": True}), (home, {"defaultEnvironmentId": local})):
            changed = self.call(server, "instance", "PATCH", path, body)
            self.assertEqual(changed.status, 200, changed.text)
        agent = made(f"{home}/agents", {"name": "a", "adapterType": "process",
                                        "adapterConfig": {"command": "true"}})["id"]
        environment = made(f"{home}/environments", ssh_environment("e"))["id"]
        secret = made(f"{home}/secrets", {"name": "s", "value": "v"})["id"]
        token = made(f"{home}/tokens", {"name": "spare"})["token"]["id"]
        run = made(f"{home}/runs", {"command": "true"})["id"]
        for role in ("viewer", "operator", "admin"):
            server.keys[f"{role} of {name}"] = made(f"{home}/tokens", {"name": role, "role": role})["key"]
        server.keys[f"agent of {name}"] = made(f"{home}/tokens", {
            "name": "agent", "kind": "agent_key", "agentId": agent})["key"]
        return {"company": company, "agent": agent, "environment": environment, "secret": secret,
                "token": token, "run": run, "lease": MISSING, "sandbox": MISSING, "template": MISSING,
                "session": MISSING, "plugin": MISSING, "key": "s"}

    def routes(self, server):
        for path, verbs in server.get("/api/openapi.json").json["paths"].items():
            for verb, operation in verbs.items():
                yield verb.upper(), path, operation["x-berth-permission"]

    def body(self, verb, path):
        if (verb, path) == ("POST", "/api/companies/{company}/environments"):
            return ssh_environment("n")
        return BODIES.get((verb, path), {} if verb in ("POST", "PATCH") else None)

    def filled(self, path, ids):
        # Parameters that are not object ids are the same for every company.
        more = {"port": "8080", "path": "index.html"}
        query = {"/login": "?command=claude", "/stream": "?command=%5B%22true%22%5D"}
        full = path + query.get(path[path.rfind("/"):], "")
        return re.sub(r"{(\w+)}", lambda match: ids.get(match.group(1)) or more[match.group(1)], full)

    def test_no_caller_gets_further_than_its_role(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.start(**variables)
                ids = self.furnish(server, "red")
                tried = 0
                for verb, path, permission in self.routes(server):
                    for who, allowed in ALLOWED.items():
                        name = who if who in server.keys else f"{who} of red"
                        if permission in allowed:
                            continue
                        answer = self.call(server, name, verb, self.filled(path, ids),
                                           self.body(verb, path))
                        wanted = 401 if who == "nobody" else 403
                        self.assertEqual(answer.status, wanted, f"{who}: {verb} {path}: {answer.text}")
                        tried += 1
                self.assertGreater(tried, 100)

    def test_what_a_role_allows_it_can_do(self):
        server = self.start()
        ids = self.furnish(server, "red")
        for verb, path, permission in self.routes(server):
            if path.startswith(("/api/plugins", "/api/session")):
                continue  # plugins_test.py covers these, and tests/web signs in and out
            # The environment is a host that does not exist, sockets and streams are not plain
            # responses, and a run's secrets need its token.
            if verb == "DELETE" or path == "/api/instance/rekey" or \
                    any(part in path for part in ("{lease}", "{sandbox}", "{template}", "custom-image-")) or \
                    path.endswith(("}/probe", "/attach", "/stream")) or path.startswith("/api/agents/me/secrets"):
                continue
            for who in ("viewer", "operator", "admin", "agent", "instance"):
                if permission not in ALLOWED[who]:
                    continue
                name = who if who in server.keys else f"{who} of red"
                answer = self.call(server, name, verb, self.filled(path, ids), self.body(verb, path))
                self.assertIn(answer.status, (200, 201, 202, 409), f"{who}: {verb} {path}: {answer.text}")

    def test_an_agent_starts_itself_and_no_other(self):
        server = self.start()
        ids = self.furnish(server, "red")
        other = self.call(server, "operator of red", "POST", f"/api/companies/{ids['company']}/agents",
                          {"name": "b", "adapterType": "process",
                           "adapterConfig": {"command": "true"}}).json["id"]
        mine = self.call(server, "agent of red", "POST", f"/api/agents/{ids['agent']}/heartbeat/invoke", {})
        self.assertEqual((mine.status, mine.json.get("agentId")), (202, ids["agent"]), mine.text)
        for path in ("heartbeat/invoke", "wakeup"):
            theirs = self.call(server, "agent of red", "POST", f"/api/agents/{other}/{path}", {})
            self.assertEqual((theirs.status, theirs.json["code"]), (403, "forbidden"))

    def test_viewers_and_agents_see_no_config(self):
        server = self.start()
        ids = self.furnish(server, "red")
        path = f"/api/environments/{ids['environment']}"
        for who in ("viewer", "agent"):
            seen = self.call(server, f"{who} of red", "GET", path).json
            self.assertEqual((seen["config"], seen["envVars"], seen["metadata"]), ({}, {}, None))
            self.assertEqual((seen["configRedacted"], seen["metadataRedacted"]), (True, True))
            listed = self.call(server, f"{who} of red", "GET",
                               f"/api/companies/{ids['company']}/environments").json
            self.assertTrue(all(row["config"] == {} for row in listed))
        seen = self.call(server, "operator of red", "GET", path).json
        self.assertEqual((seen["config"]["host"], seen["configRedacted"]), ("build-host.invalid", False))

    def test_a_revoked_or_expired_key_opens_nothing(self):
        server = self.start()
        ids = self.furnish(server, "red")
        home = f"/api/companies/{ids['company']}"
        self.assertEqual(self.call(server, "viewer of red", "GET", home).status, 200)
        tokens = self.call(server, "admin of red", "GET", f"{home}/tokens").json
        viewer = next(token for token in tokens if token["name"] == "viewer")
        self.assertNotIn(server.keys["viewer of red"], str(tokens))
        self.assertEqual(self.call(server, "admin of red", "DELETE",
                                   f"/api/tokens/{viewer['id']}").status, 200)
        refused = self.call(server, "viewer of red", "GET", home)
        self.assertEqual((refused.status, refused.json["code"]), (401, "unauthenticated"))
        server.keys["forged"] = "brt_" + "A" * 43
        server.keys["odd"] = "x" * 5000
        for who in ("forged", "odd"):
            self.assertEqual(self.call(server, who, "GET", home).status, 401)
        soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=5)
        server.keys["fleeting"] = self.call(server, "admin of red", "POST", f"{home}/tokens", {
            "name": "f", "expiresAt": soon.strftime("%Y-%m-%dT%H:%M:%S.000Z")}).json["key"]
        self.assertEqual(self.call(server, "fleeting", "GET", home).status, 200)
        self.assertTrue(eventually(lambda: self.call(server, "fleeting", "GET", home).status == 401))
        past = self.call(server, "admin of red", "POST", f"{home}/tokens",
                         {"name": "p", "expiresAt": "2020-01-01T00:00:00.000Z"})
        self.assertEqual(past.status, 400)

    def test_the_key_of_a_deleted_agent_is_dead(self):
        server = self.start()
        ids = self.furnish(server, "red")
        me = self.call(server, "agent of red", "GET", "/api/agents/me")
        self.assertEqual((me.status, me.json["id"]), (200, ids["agent"]))
        self.call(server, "operator of red", "DELETE", f"/api/agents/{ids['agent']}")
        self.assertEqual(self.call(server, "agent of red", "GET", "/api/agents/me").status, 401)

    def test_keys_are_stored_only_as_hashes(self):
        server = self.start()
        self.furnish(server, "red")
        server.stop()
        for file in server.home.rglob("berth.db*"):
            content = file.read_bytes()
            for key in server.keys.values():
                if key:
                    self.assertNotIn(key.encode(), content)

    def test_the_first_key_is_for_the_owner_alone_and_made_once(self):
        server = self.start()
        file = server.home / "admin.token"
        self.assertEqual(file.stat().st_mode & 0o777, 0o600)
        server.stop()
        kept = file.read_text()
        again = self.serve("--mode", "authenticated", home=server.home, place=None)
        self.assertEqual(file.read_text(), kept)
        answer = again.request("GET", "/api/companies", None,
                               {"Authorization": f"Bearer {kept.strip()}"})
        self.assertEqual(answer.status, 200)

    def test_the_settings_of_the_instance_are_for_its_administrators(self):
        server = self.start()
        self.furnish(server, "A")
        for who in ("viewer of A", "operator of A", "admin of A", "agent of A"):
            refused = self.call(server, who, "GET", "/api/instance/settings")
            self.assertEqual((refused.status, refused.json["code"]), (403, "forbidden"), who)
            page = self.call(server, who, "GET", "/api/session").json
            self.assertEqual(set(page["settings"] or {}), {"strictSecrets", "answerRetentionHours"}, who)
        self.assertEqual(self.call(server, "instance", "GET", "/api/instance/settings").status, 200)

    def test_the_paths_of_the_machine_are_for_instance_administrators(self):
        server = self.start()
        self.furnish(server, "A")
        for who in ("operator of A", "admin of A"):
            found = self.call(server, who, "GET", "/api/instance/findings")
            self.assertEqual(found.status, 200, who)
            self.assertNotIn(str(server.home), found.text, who)
            self.assertNotIn("berth-keeper", found.text, who)
        self.assertIn(str(server.home), self.call(server, "instance", "GET", "/api/instance/findings").text)
