"""The process of an agent's run calls back with the token of its run, and reads its secrets."""

import sys
import tempfile
import textwrap
from pathlib import Path

import runs_support as runs
from support import BerthTest

# Waits for its turn, so that the test can act while the run is running.
PROGRAM = textwrap.dedent("""
    import json, os, pathlib, time, urllib.error, urllib.request
    folder = pathlib.Path({folder!r})

    def ask(verb, path):
        request = urllib.request.Request(os.environ["BERTH_API_URL"] + path, method=verb)
        request.add_header("Authorization", "Bearer " + os.environ["BERTH_API_KEY"])
        try:
            with urllib.request.urlopen(request, timeout=20) as answer:
                assert answer.headers["Cache-Control"] == "no-store"
                return json.load(answer)
        except urllib.error.HTTPError as refused:
            return {{"status": refused.code}}

    (folder / "token").write_text(os.environ["BERTH_API_KEY"])
    while not (folder / "go").exists():
        time.sleep(0.05)
    print("agent", ask("GET", "/api/agents/me")["id"])
    print("keys", *(each["key"] for each in ask("GET", "/api/agents/me/secrets")["secrets"]))
    read = ask("POST", "/api/agents/me/secrets/door/value")
    (folder / "value").write_text(read["value"])
    print("door", read["version"], read["value"])
    print("unbound", ask("POST", "/api/agents/me/secrets/unbound/value")["status"])
    print("secrets of the company", ask("GET", "/api/companies/{company}/secrets")["status"])
    print("token", os.environ["BERTH_API_KEY"])
""")


class RunAccess(BerthTest):
    def given(self, server):
        company = server.company()
        secrets = {name: server.post(f"/api/companies/{company}/secrets",
                                     {"name": name, "value": f"the first value of {name}"}).json["id"]
                   for name in ("door", "unbound")}
        program = PROGRAM.format(folder=str(self.folder), company=company)
        reference = {"type": "secret_ref", "secretId": secrets["door"]}
        agent = server.post(f"/api/companies/{company}/agents", {
            "name": "Ada", "adapterType": "process",
            "adapterConfig": {"command": sys.executable, "args": ["-c", program],
                              "env": {"DOOR": reference}}})
        self.assertEqual(agent.status, 201, agent.text)
        return agent.json["id"], secrets

    def test_a_run_reads_its_secrets_with_its_token_and_its_log_hides_them(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                self.folder = Path(tempfile.mkdtemp(dir=self.folder))
                self.read_and_look(self.serve(home=self.folder / "home", **variables))

    def read_and_look(self, server):
        agent, secrets = self.given(server)
        run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {}).json["id"]
        runs.wait_until(server, run, {"running", *runs.FINAL})
        self.assertTrue(runs.eventually((self.folder / "token").exists), runs.look(server, run))
        # The process has the first value in a variable; it requests the one that is valid now.
        rotated = server.post(f"/api/secrets/{secrets['door']}/rotate", {"value": "the second value"})
        self.assertEqual(rotated.status, 200, rotated.text)
        (self.folder / "go").touch()
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", runs.output(server, run, "stderr"))
        self.assertEqual((self.folder / "value").read_text(), "the second value")
        self.assertEqual(runs.output(server, run).splitlines(), [
            f"agent {agent}", "keys door", "door 2 ***REDACTED***", "unbound 404",
            "secrets of the company 403", "token ***REDACTED***"])

        events = server.get(f"/api/secrets/{secrets['door']}/access-events").json
        self.assertEqual(events[0]["consumerType"], "agent_api")
        self.assertEqual(events[0]["heartbeatRunId"], run)

        token = (self.folder / "token").read_text()
        after = server.get("/api/agents/me", Authorization=f"Bearer {token}")
        self.assertEqual(after.status, 401, "a token ends with its run")

    def test_only_the_server_can_make_a_token(self):
        server = self.serve()
        agent, _ = self.given(server)
        run = server.post(f"/api/agents/{agent}/heartbeat/invoke", {}).json["id"]
        self.assertTrue(runs.eventually((self.folder / "token").exists), runs.look(server, run))
        token = (self.folder / "token").read_text()
        header, payload, signature = token.split(".")
        refusals = set()
        for forged in (f"{header}.{payload}.", f"{header}.{payload}", f"eyJhbGciOiJub25lIn0.{payload}.",
                       f"{header}.{payload}.{signature[::-1]}", "eyJ", f"{header}..{signature}", token[:-1]):
            answer = server.get("/api/agents/me", Authorization=f"Bearer {forged}")
            self.assertEqual(answer.status, 401, forged)
            refusals.add(answer.text)
        self.assertEqual(len(refusals), 1, "nobody learns how close it was")
        me = server.get("/api/agents/me", Authorization=f"Bearer {token}")
        self.assertEqual((me.status, me.json["id"]), (200, agent))
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        runs.wait_for_end(server, run)
