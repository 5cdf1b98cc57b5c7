"""What the API guarantees about its objects, on both engines."""

import json
import threading

import runs_support as runs
from support import BerthTest, ssh_environment

MISSING = "00000000-0000-4000-8000-000000000000"


class Environments(BerthTest):
    def test_an_ssh_environment_is_stored_in_the_documented_shape(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                company = server.company()
                body = ssh_environment("build host")
                body["config"].update(port="2222", knownHosts="  ", strictHostKeyChecking=False)
                made = server.post(f"/api/companies/{company}/environments", body)
                self.assertEqual(made.status, 201, made.text)
                self.assertEqual(made.json["config"], {
                    "host": "build-host.invalid", "port": 2222, "username": "work",
                    "remoteWorkspacePath": "/srv/work", "privateKey": None, "privateKeySecretRef": None,
                    "knownHosts": None, "strictHostKeyChecking": False})
                self.assertEqual(made.json["companyId"], company)
                self.assertEqual((made.json["driver"], made.json["status"]), ("ssh", "active"))
                self.assertEqual(made.headers["ETag"], '"1"')
                again = server.get(f"/api/environments/{made.json['id']}")
                self.assertEqual(again.json, made.json)

    def test_every_wrong_field_is_named(self):
        server = self.serve()
        path = f"/api/companies/{server.company()}/environments"
        answer = server.post(path, {"name": "x", "driver": "ssh", "config": {"host": ""}})
        self.assertEqual((answer.status, answer.json["error"]), (422, "SSH environments require a host."))
        self.assertEqual([issue["path"] for issue in answer.json["details"]["issues"]],
                         ["/config/host", "/config/username", "/config/remoteWorkspacePath"])
        answer = server.post(path, {"name": "x", "driver": "docker"})
        self.assertEqual((answer.status, answer.json["code"]), (400, "validation_failed"))
        self.assertIn("local, ssh, sandbox, plugin", answer.json["error"])
        answer = server.post(path, {"name": "x", "driver": "local", "bogus": 1})
        self.assertEqual((answer.status, answer.json["details"]["issues"][0]["path"]), (400, "/bogus"))
        answer = server.post(path, {"driver": "local"})
        self.assertEqual((answer.status, answer.json["details"]["issues"][0]["path"]), (400, "/name"))

    def test_a_wrong_rule_about_the_way_out_is_told_as_any_other_field_of_the_config(self):
        server = self.serve()
        egress = {"allow": ["example.org", "10.0.0.1/8"]}
        answer = server.post(f"/api/companies/{server.company()}/environments",
                             {"name": "x", "driver": "sandbox",
                              "config": {"provider": "linux", "egress": egress}})
        self.assertEqual((answer.status, answer.json["code"]), (422, "unprocessable"), answer.text)
        issue, = answer.json["details"]["issues"]
        self.assertEqual(issue["path"], "/config/egress/allow/1")
        self.assertIn("10.0.0.1/8", answer.json["error"])
        self.assertTrue(answer.json["remedy"])
        self.assertNotIn(answer.json["remedy"], answer.json["error"])

    def test_what_cannot_run_cannot_be_saved(self):
        server = self.serve()
        path = f"/api/companies/{server.company()}/environments"
        cases = [
            ({"driver": "local"}, 409, "environment_local_exists"),
            ({"driver": "sandbox"}, 422, "unprocessable"),
            ({"driver": "sandbox", "config": {"provider": "nope"}}, 422, "provider_unavailable"),
            ({"driver": "sandbox", "config": {"provider": "No Good"}}, 422, "unprocessable"),
            ({"driver": "plugin", "config": {"pluginKey": "p", "driverKey": "d"}}, 422,
             "provider_unavailable"),
            ({"driver": "plugin", "config": {}}, 422, "unprocessable"),
        ]
        for body, status, code in cases:
            answer = server.post(path, {"name": "x", **body})
            self.assertEqual((answer.status, answer.json["code"]), (status, code), answer.text)
            self.assertTrue(answer.json["error"])
        self.assertFalse([each for each in server.get(path).json if each["name"] == "x"])

    def test_names_are_unique_in_a_company(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                path = f"/api/companies/{server.company()}/environments"
                first = server.post(path, ssh_environment("one"))
                second = server.post(path, ssh_environment("two"))
                taken = server.post(path, ssh_environment("one"))
                self.assertEqual((taken.status, taken.json["code"]), (409, "environment_name_taken"))
                renamed = server.request("PATCH", f"/api/environments/{second.json['id']}",
                                         {"name": "one"})
                self.assertEqual(renamed.status, 409)
                other = server.post("/api/companies", {"name": "another"}).json["id"]
                free = server.post(f"/api/companies/{other}/environments", ssh_environment("one"))
                self.assertEqual(free.status, 201)
                self.assertNotEqual(free.json["id"], first.json["id"])

    def test_two_editors_cannot_overwrite_each_other(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                made = server.post(f"/api/companies/{server.company()}/environments",
                                   ssh_environment("shared"))
                path, seen = f"/api/environments/{made.json['id']}", made.headers["ETag"]
                first = server.request("PATCH", path, {"description": "mine"}, {"If-Match": seen})
                second = server.request("PATCH", path, {"description": "yours"}, {"If-Match": seen})
                self.assertEqual((first.status, second.status), (200, 412))
                self.assertEqual(second.json["code"], "precondition_failed")
                self.assertEqual(server.get(path).json["description"], "mine")
                again = server.request("PATCH", path, {"description": "yours"},
                                       {"If-Match": first.headers["ETag"]})
                self.assertEqual(again.status, 200)

    def test_a_patch_merges_config_and_a_new_driver_starts_afresh(self):
        server = self.serve()
        made = server.post(f"/api/companies/{server.company()}/environments", ssh_environment("e"))
        path = f"/api/environments/{made.json['id']}"
        merged = server.request("PATCH", path, {"config": {"port": 23}})
        self.assertEqual((merged.json["config"]["port"], merged.json["config"]["host"]), (23, "build-host.invalid"))
        refused = server.request("PATCH", path, {"driver": "plugin"})
        self.assertEqual(refused.status, 422)
        self.assertEqual(server.get(path).json["driver"], "ssh")
        nulled = server.request("PATCH", path, {"name": None})
        self.assertEqual((nulled.status, nulled.json["details"]["issues"][0]["path"]), (400, "/name"))
        described = server.request("PATCH", path, {"description": "x"})
        self.assertEqual(described.json["description"], "x")
        self.assertIsNone(server.request("PATCH", path, {"description": None}).json["description"])

    def test_delete_says_what_stands_against_it(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, place=None, **variables)
                company = server.company()
                local = server.get(f"/api/companies/{company}/environments?driver=local").json[0]
                answer = server.request("DELETE", f"/api/environments/{local['id']}")
                self.assertEqual(answer.status, 409)
                self.assertEqual(answer.json["details"]["deleteBlockedReasons"], ["managed_local"])

                made = server.post(f"/api/companies/{company}/environments", ssh_environment("e")).json
                agent = server.post(f"/api/companies/{company}/agents", {
                    "name": "a", "adapterType": "process", "adapterConfig": {"command": "true"},
                    "defaultEnvironmentId": made["id"]})
                self.assertEqual(agent.status, 201, agent.text)
                server.request("PATCH", f"/api/companies/{company}", {"defaultEnvironmentId": made["id"]})
                radius = server.get(f"/api/environments/{made['id']}/delete-blast-radius").json
                self.assertEqual((radius["canDelete"], radius["deleteBlockedReasons"]),
                                 (False, ["instance_default"]))
                self.assertEqual(radius["staticReferences"]["agentDefaultCount"], 1)
                self.assertEqual(server.request("DELETE", f"/api/environments/{made['id']}").status, 409)
                server.request("PATCH", f"/api/companies/{company}", {"defaultEnvironmentId": None})
                gone = server.request("DELETE", f"/api/environments/{made['id']}")
                self.assertEqual((gone.status, gone.json["id"]), (200, made["id"]))
                self.assertEqual(server.get(f"/api/environments/{made['id']}").status, 404)
                self.assertIsNone(
                    server.get(f"/api/agents/{agent.json['id']}").json["defaultEnvironmentId"])

    def test_lists_are_paged_without_gaps_or_repeats(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                path = f"/api/companies/{server.company()}/environments"
                count = len(server.get(path).json) + 25
                for number in range(25):
                    server.post(path, ssh_environment(f"e{number}"))
                seen, link = [], f"{path}?limit=4"
                while link:
                    page = server.get(link)
                    self.assertLessEqual(len(page.json), 4)
                    seen += [row["id"] for row in page.json]
                    link = page.headers.get("Link", "").partition(">")[0].lstrip("<")
                self.assertEqual((len(seen), len(set(seen))), (count, count))
                self.assertEqual(server.get(f"{path}?limit=0").status, 400)
                self.assertEqual(server.get(f"{path}?after=junk").status, 400)
                self.assertEqual(server.get(f"{path}?driver=local").json[0]["name"], "Local")
                self.assertEqual(server.get(f"{path}?driver=nope").status, 400)
                self.assertEqual(server.get(f"{path}?bogus=1").status, 400)

    def test_capabilities_never_offer_the_fake_provider_for_work(self):
        server = self.serve()
        answer = server.get(f"/api/companies/{server.company()}/environments/capabilities").json
        self.assertEqual([a["adapterType"] for a in answer["adapters"]],
                         ["process", "claude_local", "codex_local"])
        for adapter in answer["adapters"]:
            self.assertEqual(adapter["sandboxProviders"]["fake"], "unsupported")
        fake = answer["sandboxProviders"]["fake"]
        self.assertEqual((fake["status"], fake["supportsRunExecution"]), ("unsupported", False))
        self.assertEqual(answer["drivers"]["plugin"], "unsupported")

    def test_capabilities_carry_the_schema_of_each_drivers_config(self):
        server = self.serve()
        answer = server.get(f"/api/companies/{server.company()}/environments/capabilities").json
        schemas = answer["driverSchemas"]
        self.assertEqual(sorted(schemas), sorted(answer["drivers"]))
        self.assertEqual(schemas["ssh"]["required"], ["host", "username", "remoteWorkspacePath"])
        self.assertEqual(schemas["ssh"]["properties"]["port"]["maximum"], 65535)
        self.assertFalse(schemas["ssh"]["additionalProperties"])
        self.assertIn("image", answer["sandboxProviders"]["fake"]["configSchema"]["properties"])


class Agents(BerthTest):
    def test_an_agent_cannot_select_what_it_cannot_use(self):
        server = self.serve()
        company = server.company()
        path = f"/api/companies/{company}/agents"
        body = {"name": "a", "adapterType": "process", "adapterConfig": {"command": "/bin/true"}}
        made = server.post(f"/api/companies/{company}/environments",
                           {**ssh_environment("old"), "status": "archived"}).json
        other = server.post("/api/companies", {"name": "other"}).json["id"]
        foreign = server.post(f"/api/companies/{other}/environments", ssh_environment("e")).json
        cases = [(made["id"], "Environment is archived."),
                 (foreign["id"], "Selected environment was not found."),
                 (MISSING, "Selected environment was not found.")]
        for environment, sentence in cases:
            answer = server.post(path, {**body, "defaultEnvironmentId": environment})
            self.assertEqual((answer.status, answer.json["error"]), (422, sentence))
        self.assertEqual(server.get(path).json, [])

    def test_adapter_config_is_checked_and_its_secrets_are_bound(self):
        server = self.serve()
        company = server.company()
        path = f"/api/companies/{company}/agents"
        no_command = server.post(path, {"name": "a", "adapterType": "process"})
        self.assertEqual((no_command.status, no_command.json["details"]["issues"][0]["path"]),
                         (422, "/adapterConfig/command"))
        self.assertEqual(server.post(path, {"name": "a", "adapterType": "grok_local"}).status, 400)
        secret = server.post(f"/api/companies/{company}/secrets", {"name": "K", "value": "v"}).json["id"]
        env = {"PLAIN": "1", "KEY": {"type": "secret_ref", "secretId": secret}}
        made = server.post(path, {"name": "a", "adapterType": "claude_local",
                                  "adapterConfig": {"model": "m", "env": env}})
        self.assertEqual(made.status, 201, made.text)
        self.assertEqual(made.json["adapterConfig"]["env"]["PLAIN"], {"type": "plain", "value": "1"})
        usage = server.get(f"/api/secrets/{secret}/usage").json["bindings"]
        self.assertEqual([(use["configPath"], use["target"]["label"]) for use in usage],
                         [("env.KEY", "a")])
        env["KEY"]["secretId"] = MISSING
        answer = server.post(path, {"name": "b", "adapterType": "claude_local",
                                    "adapterConfig": {"env": env}})
        self.assertEqual((answer.status, answer.json["code"]), (422, "secret_missing"))


class Idempotency(BerthTest):
    def test_a_repeated_key_gets_the_same_answer_and_happens_once(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                path = f"/api/companies/{server.company()}/environments"
                key = {"Idempotency-Key": "order-7"}
                first = server.post(path, ssh_environment("e"), key)
                second = server.post(path, ssh_environment("e"), key)
                self.assertEqual((first.status, second.status), (201, 201), second.text)
                self.assertEqual(first.json, second.json)
                self.assertEqual(first.headers["ETag"], second.headers["ETag"])
                reused = server.post(path, ssh_environment("other"), key)
                self.assertEqual((reused.status, reused.json["code"]), (422, "idempotency_key_reused"))
                self.assertEqual([each["name"] for each in server.get(path).json].count("e"), 1)

    def test_twins_at_the_same_moment_make_one_object(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                path = f"/api/companies/{server.company()}/agents"
                body = {"name": "a", "adapterType": "process", "adapterConfig": {"command": "true"}}
                answers = []

                def send():
                    answers.append(server.post(path, body, {"Idempotency-Key": "k"}))

                threads = [threading.Thread(target=send) for _ in range(8)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual({answer.status for answer in answers}, {201})
                self.assertEqual(len({answer.json["id"] for answer in answers}), 1)
                self.assertEqual(len(server.get(path).json), 1)

    # They only read something, or sign in, and store nothing: each call is a new request.
    LOOKS = {"/api/environments/{environment}/probe", "/api/agents/me/secrets/{key}/value",
             "/api/companies/{company}/environments/probe-config", "/api/session",
             "/api/environment-custom-image-setup-sessions/{session}/terminal-session-token"}

    # Those are in plugins_test.py.
    OF_A_PLUGIN = {"/api/plugins/install", *(f"/api/plugins/{{plugin}}/{verb}" for verb in
                                           ("enable", "disable", "restart", "upgrade", "config",
                                            "config/test"))}
    # An unanswered call is named once.
    OF_A_PLUGIN |= {"/api/environment-leases/{lease}/adopt", "/api/templates/{template}/adopt",
                    "/api/templates/{template}/force-resolve"}
    # Relayed requests depend on the server inside.
    PASSED_ON = {"/api/environment-leases/{lease}/ports/{port}/{path}"}
    # Those that need a sandbox are in templates_test.py.
    OF_A_SANDBOX = {f"/api/environment-leases/{{lease}}/{verb}"
                    for verb in ("capture", "rollback", "fork", "freeze", "thaw")}
    OF_A_SANDBOX |= {"/api/environments/{environment}/custom-image-setup-sessions",
                     "/api/environments/{environment}/custom-image-template/rollback",
                     "/api/environments/{environment}/custom-image-template/relink",
                     "/api/environment-custom-image-setup-sessions/{session}/finish",
                     "/api/environment-custom-image-setup-sessions/{session}/cancel"}
    OF_A_SANDBOX |= {"/api/sandboxes/{sandbox}/lease"}  # kept_sandbox_test.py

    def test_every_post_honours_the_key(self):
        server = self.serve()
        company = server.company()
        secret = server.post(f"/api/companies/{company}/secrets", {"name": "s", "value": "1"}).json["id"]
        agent = server.post(f"/api/companies/{company}/agents", {
            "name": "b", "adapterType": "process", "adapterConfig": {"command": "true"}}).json["id"]
        run = runs.start(server, "true")
        runs.wait_for_end(server, run)
        lease = runs.leases(server)[0]["id"]
        holder = runs.start(server, "sleep", "100")
        runs.wait_until(server, holder, {"running"})
        held = next(each["id"] for each in runs.leases(server) if each["heartbeatRunId"] == holder)
        posts = {
            "/api/companies": {"name": "c"},
            f"/api/companies/{company}/agents":
                {"name": "a", "adapterType": "codex_local"},
            f"/api/companies/{company}/environments": ssh_environment("e"),
            f"/api/companies/{company}/secrets": {"name": "t", "value": "2"},
            f"/api/companies/{company}/tokens": {"name": "k"},
            "/api/tokens": {"name": "i"},
            f"/api/secrets/{secret}/rotate": {"value": "3"},
            f"/api/companies/{company}/runs": {"command": "true"},
            f"/api/agents/{agent}/heartbeat/invoke": {},
            f"/api/agents/{agent}/wakeup": {},
            f"/api/agents/{agent}/reset": {},
            f"/api/heartbeat-runs/{run}/cancel": {},
            f"/api/heartbeat-runs/{run}/retry": {},
            f"/api/environment-leases/{lease}/release": {},
            f"/api/environment-leases/{lease}/destroy": {},
            f"/api/environment-leases/{lease}/force-resolve": {"reason": "none"},
            f"/api/environment-leases/{held}/exec": {"argv": ["sh", "-c", "echo $$"]},
            "/api/instance/rekey": {},
        }
        described = server.get("/api/openapi.json").json["paths"]
        changing = [path for path, verbs in described.items() if "post" in verbs and path not in
                    self.LOOKS | self.PASSED_ON | self.OF_A_SANDBOX | self.OF_A_PLUGIN]
        self.assertEqual(len(posts), len(changing), changing)
        for path, body in posts.items():
            key = {"Idempotency-Key": "key-" + path.replace("/", "-")[-60:]}
            first, second = server.post(path, body, key), server.post(path, body, key)
            self.assertLess(first.status, 300, path + first.text)
            self.assertEqual((first.status, first.text), (second.status, second.text), path)
        server.post(f"/api/heartbeat-runs/{holder}/cancel", {})
        runs.wait_for_end(server, holder)


class Activity(BerthTest):
    def test_a_run_that_is_only_named_is_written_down_if_there_is_one(self):
        server = self.serve()
        company = server.company()
        run = runs.start(server, "true")
        path = f"/api/companies/{company}/environments"
        for name, named, written in (("e", run, run), ("f", "00000000-0000-4000-8000-000000000000", None)):
            made = server.post(path, ssh_environment(name), {"X-Berth-Run-Id": named})
            self.assertEqual(made.status, 201, made.text)
            trail = server.get(f"/api/companies/{company}/activity?entityId={made.json['id']}").json
            self.assertEqual([entry.get("runId") for entry in trail], [written])
        runs.wait_for_end(server, run)

    def test_changes_leave_a_trail_without_values(self):
        server = self.serve()
        company = server.company()
        made = server.post(f"/api/companies/{company}/environments", ssh_environment("e")).json
        server.request("PATCH", f"/api/environments/{made['id']}",
                       {"name": "f", "config": {"port": 99}, "metadata": {"k": "very-private"}})
        trail = server.get(f"/api/companies/{company}/activity?entityId={made['id']}").json
        self.assertEqual([entry["action"] for entry in trail],
                         ["environment.updated", "environment.created"])
        details = trail[0]["details"]
        self.assertEqual(details["changedFields"], ["config", "metadata", "name"])
        self.assertEqual((details["configChanged"], details["metadataTopLevelKeyCount"]), (True, 1))
        self.assertNotIn("very-private", json.dumps(trail))
        self.assertEqual((trail[0]["actorType"], trail[0]["actorId"]), ("user", "local-board"))

    def test_the_stream_resumes_where_it_was(self):
        server = self.serve()
        company = server.company()
        path = f"/api/companies/{company}/activity/stream"
        with server.events(path) as events:
            self.assertEqual(next(events)["event"], "ready")
            server.post(f"/api/companies/{company}/secrets", {"name": "one", "value": "v"})
            first = next(events)
            self.assertEqual(json.loads(first["data"])["details"]["name"], "one")
        server.post(f"/api/companies/{company}/secrets", {"name": "two", "value": "v"})
        server.post(f"/api/companies/{company}/secrets", {"name": "three", "value": "v"})
        with server.events(path, last=first["id"]) as events:
            names = [json.loads(next(events)["data"])["details"]["name"] for _ in range(2)]
        self.assertEqual(names, ["two", "three"])

    def test_a_stream_that_cannot_resume_says_so_and_begins_now(self):
        server = self.serve()
        first = server.company()
        second = server.post("/api/companies", {"name": "second"}).json["id"]
        server.post(f"/api/companies/{second}/secrets", {"name": "foreign", "value": "v"})
        foreign = server.get(f"/api/companies/{second}/activity").json[0]["id"]
        newest = server.get(f"/api/companies/{first}/activity").json[0]["id"]
        for number, last in enumerate(("01a1e4f7-54fd-7000-8000-000000000000", foreign)):
            for stream in ("activity", "changes"):
                with self.subTest(f"{stream} after {last}"), \
                        server.events(f"/api/companies/{first}/{stream}/stream", last=last) as events:
                    missed = next(events)
                    self.assertEqual((missed["event"], missed["id"]), ("missed", newest))
                    self.assertEqual(json.loads(missed["data"])["lastEventId"], last)
                    name = f"{stream}-{number}"
                    server.post(f"/api/companies/{first}/secrets", {"name": name, "value": "v"})
                    entry = next(event for event in events if event["event"] == "activity")
                    self.assertEqual(json.loads(entry["data"])["details"]["name"], name)
                    newest = entry["id"]


class System(BerthTest):
    def test_health_readiness_and_metrics_answer(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                health = server.get("/api/health").json
                self.assertEqual((health["status"], health["deploymentMode"], health["database"]),
                                 ("ok", "local_trusted", engine))
                self.assertEqual(server.get("/api/health/ready").json["status"], "ready")
                metrics = server.get("/metrics").text
                self.assertIn('berth_http_requests_total{route="/api/health"', metrics)
                self.assertIn("berth_http_connections", metrics)

    def test_settings_are_kept_and_strict_secrets_are_enforced(self):
        server = self.serve()
        path = f"/api/companies/{server.company()}/environments"
        plain = {**ssh_environment("e"), "envVars": {"API_TOKEN": "x"}}
        self.assertEqual(server.request("PATCH", "/api/instance/settings",
                                        {"answerRetentionHours": 0}).status, 400)
        changed = server.request("PATCH", "/api/instance/settings", {"strictSecrets": True})
        self.assertEqual(changed.json["strictSecrets"], True)
        refused = server.post(path, plain)
        self.assertEqual((refused.status, refused.json["details"]["issues"][0]["path"]),
                         (422, "/envVars/API_TOKEN"))
        server.request("PATCH", "/api/instance/settings", {"strictSecrets": False})
        self.assertEqual(server.post(path, plain).status, 201)

    def test_a_company_is_deleted_with_all_it_has(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server = self.serve(home=self.folder / engine, **variables)
                company = server.post("/api/companies", {"name": "gone"}).json["id"]
                made = server.post(f"/api/companies/{company}/environments", ssh_environment("e")).json
                server.request("PATCH", f"/api/companies/{company}",
                               {"defaultEnvironmentId": made["id"]})
                server.post(f"/api/companies/{company}/secrets", {"name": "s", "value": "v"})
                self.assertEqual(server.request("DELETE", f"/api/companies/{company}").status, 200)
                self.assertEqual(server.get(f"/api/companies/{company}").status, 404)
                self.assertEqual(server.get(f"/api/environments/{made['id']}").status, 404)
