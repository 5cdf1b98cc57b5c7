"""One company's objects, requested with another company's keys: every route answers as if they did
not exist. The routes come from the API's own description, so that a new one must declare here
what it names."""

import contextlib
import http.client
import io
import json
import re
import tarfile
import unittest
import uuid

import runs_support as runs
from furnished import PLUGIN, PORT, SESSIONS, Company, install_plugin
from ports_test import UPGRADE
from sandbox_test import WHY_NOT
from support import ANSWER_LIMIT_S, Answer, BerthTest, read_events, ssh_environment
from tenancy_test import ALLOWED, BODIES

CALLERS = ("viewer", "operator", "admin", "agent", "run", "nobody")
MISSING = {**{name: str(uuid.uuid4()) for name in ("company", "agent", "environment", "lease", "sandbox", "template",
                                                   "session", "run", "secret", "token")}, "key": "door-of-nobody"}
# Path parameters that are the same for every company.
SHARED = {"plugin": PLUGIN, "port": str(PORT), "path": "f"}
# Differ between responses.
FLEETING = {"Date", "X-Request-Id"}
QUERIES = {"/login": "command=claude", "-leases/{lease}/stream": "command=%5B%22true%22%5D", "/files": "path=f",
           "/archive": "path=.", "/attach": "offset=0"}
# The owner requests these last, because they end the objects.
ENDINGS = ("/cancel", "/release", "/destroy", "/force-resolve", "/finish", "/reset", "/rollback")

PLACE = "/api/environments/{environment}"
COMPANY = "/api/companies/{company}"
# What a request names beside its path, in its query or its body: the kind, and what else the body
# needs. Every field of the description that is an id by its name is listed here, or in NOT_OURS.
NAMED = {
    ("GET", f"{COMPANY}/environment-leases", "environmentId"): "environment",
    ("GET", f"{COMPANY}/sandboxes", "environmentId"): "environment",
    ("GET", f"{COMPANY}/templates", "environmentId"): "environment",
    ("GET", f"{COMPANY}/heartbeat-runs", "environmentId"): "environment",
    ("GET", f"{COMPANY}/heartbeat-runs", "agentId"): "agent",
    ("GET", f"{COMPANY}/activity", "entityId"): "environment",
    ("GET", "/api/session", "company"): "company",
    ("GET", "/api/plugins/{plugin}/config", "companyId"): "company",
    ("POST", "/api/plugins/{plugin}/config", "companyId"): "company",
    ("POST", "/api/plugins/{plugin}/config/test", "companyId"): "company",
    ("PATCH", COMPANY, "defaultEnvironmentId"): "environment",
    ("POST", f"{COMPANY}/agents", "defaultEnvironmentId"): "environment",
    ("PATCH", "/api/agents/{agent}", "defaultEnvironmentId"): "environment",
    ("POST", "/api/agents/{agent}/reset", "environmentId"): "environment",
    ("POST", "/api/agents/{agent}/heartbeat/invoke", "environmentId"): "environment",
    ("POST", "/api/agents/{agent}/wakeup", "environmentId"): "environment",
    ("POST", f"{COMPANY}/runs", "environmentId"): "environment",
    ("POST", f"{COMPANY}/runs", "agentId"): "agent",
    ("POST", f"{COMPANY}/tokens", "agentId"): "agent",
    ("POST", "/api/environment-leases/{lease}/rollback", "template"): "template",
    ("POST", f"{PLACE}/custom-image-setup-sessions", "templateId"): "template",
}
# Names that belong to the provider, a ticket, and fields for instance administrators only.
NOT_OURS = {("POST", "/api/environment-leases/{lease}/adopt", "providerLeaseId"), ("POST", "/api/tokens", "agentId"),
            ("GET", "/api/environment-custom-image-setup-sessions/{session}/terminal/ws", "terminalSessionId")}
REST_OF_A_BODY = {
    "/api/plugins/{plugin}/config": {"configJson": {"region": "new"}},
    "/api/plugins/{plugin}/config/test": {"configJson": {"region": "new"}},
    "/api/agents/{agent}/heartbeat/invoke": {"prompt": "p"}, "/api/agents/{agent}/wakeup": {"prompt": "p"},
    f"{COMPANY}/tokens": {"name": "n", "kind": "agent_key"},
}


def by_reference(secret):
    return {"DOOR": {"type": "secret_ref", "secretId": secret}}


# Objects deep in a body: the kind, and the body with one of them.
DEEP = [
    ("POST", f"{COMPANY}/environments", "template", lambda id: {
        "name": "deep", "driver": "sandbox", "config": {"provider": "linux", "template": id}}),
    ("PATCH", PLACE, "template", lambda id: {"config": {"template": id}}),
    ("POST", f"{COMPANY}/environments/probe-config", "template", lambda id: {
        "driver": "sandbox", "config": {"provider": "linux", "template": id}}),
    ("POST", f"{COMPANY}/environments", "secret", lambda id: {**ssh_environment("deeper"), "envVars": by_reference(id)}),
    ("PATCH", PLACE, "secret", lambda id: {"envVars": by_reference(id)}),
    ("POST", f"{COMPANY}/agents", "secret", lambda id: {
        "name": "deep", "adapterType": "codex_local", "adapterConfig": {"env": by_reference(id)}}),
    ("PATCH", "/api/agents/{agent}", "secret", lambda id: {"adapterConfig": {"env": by_reference(id)}}),
    ("POST", f"{COMPANY}/runs", "secret", lambda id: {"command": "true", "env": by_reference(id)}),
    ("POST", "/api/agents/{agent}/heartbeat/invoke", "secret", lambda id: {"prompt": "p", "env": by_reference(id)}),
    ("POST", f"{COMPANY}/environments", "secret", lambda id: {
        "name": "deepest", "driver": "ssh",
        "config": {**ssh_environment("")["config"], "privateKeySecretRef": by_reference(id)["DOOR"]}}),
]


def empty_archive():
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w"):
        pass
    return written.getvalue()


def body_of(verb, path):
    if path.endswith("/files"):
        return b"new" if verb == "PUT" else None
    if path.endswith("/archive"):
        return empty_archive() if verb == "PUT" else None
    if path.endswith("/egress"):
        return {"allow": []} if verb == "PUT" else None
    if (verb, path) == ("POST", "/api/companies/{company}/environments"):
        return ssh_environment("n")
    return BODIES.get((verb, path), {} if verb in ("POST", "PATCH") else None)


def names_in(path):
    return re.findall(r"{(\w+)}", path)


def names_an_object(path):
    return any(name not in SHARED for name in names_in(path))


class Route:
    def __init__(self, verb, path, operation, upgrades):
        self.verb, self.path, self.upgrades = verb, path, upgrades
        self.permission = operation["x-berth-permission"]

    def __str__(self):
        return f"{self.verb} {self.path}" + (" as a WebSocket" if self.upgrades else "")

    def at(self, ids, ticket):
        filled = re.sub(r"{(\w+)}", lambda match: {**SHARED, **ids}[match.group(1)], self.path)
        query = next((words for end, words in QUERIES.items() if self.path.endswith(end)), "")
        if self.path.endswith("/terminal/ws"):
            query = f"terminalSessionId={ticket}"
        return filled + (f"?{query}" if query else "")

    def order(self):
        """Requests that end something come after those that need it."""
        if self.verb == "DELETE" and "{lease}" not in self.path:
            return 3 + ("{agent}" in self.path) + 2 * self.path.endswith("/{environment}")
        return 2 if self.path.endswith(ENDINGS) else int(self.verb not in ("GET", "HEAD", "OPTIONS", "TRACE"))


def routes_of(document):
    """Every route; one that can be upgraded to a WebSocket is also listed as a plain request."""
    for path, verbs in document["paths"].items():
        for verb, operation in verbs.items():
            yield Route(verb.upper(), path, operation, upgrades=False)
            if "101" in operation["responses"]:
                yield Route(verb.upper(), path, operation, upgrades=True)


def fields_of(document, operation):
    """The names in the query and at the top level of the body."""
    names = [one["name"] for one in operation.get("parameters", []) if one["in"] == "query"]
    schema = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    if "$ref" in schema:
        schema = document["components"]["schemas"][schema["$ref"].rsplit("/", 1)[1]]
    return names + list(schema.get("properties", {}))


def named_in(document):
    """(verb, path, field, kind) of every id that a request carries beside its path."""
    for route in routes_of(document):
        operation = document["paths"][route.path][route.verb.lower()]
        for field in fields_of(document, operation):
            what = (route.verb, route.path, field)
            if not re.search(r"(Id|Ids|^company|^template)$", field) or what in NOT_OURS or route.upgrades:
                continue
            in_query = route.path.startswith(PLACE) and field == "companyId"
            yield *what, "company" if in_query else NAMED[what]


@unittest.skipIf(WHY_NOT, WHY_NOT)
class Foreign(BerthTest):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o711)  # plugin workers are other users

    def open(self, engine, variables):
        """A server with two companies that have one of everything."""
        server = self.serve("--mode", "authenticated", home=self.folder / engine, place=None, **variables)
        server.keys = {"instance": (server.home / "admin.token").read_text().strip(), "nobody": None}
        install_plugin(server, self.folder)
        stage = self.folder / f"stage of {engine}"
        stage.mkdir()
        companies = []
        for name in ("red", "blue"):
            companies.append(Company(server, stage, name))
            self.addCleanup(self.close, server, companies[-1])
            companies[-1].furnish()
            made = self.ask(server, f"operator of {name}", "POST",
                            f"{SESSIONS}/{companies[-1].ids['session']}/terminal-session-token", {})
            companies[-1].ticket = made.json["id"]
        self.document = server.get("/api/openapi.json").json
        return server, *companies

    @staticmethod
    def close(server, company):
        if server.process.poll() is None:
            company.end()

    def ask(self, server, who, verb, path, body=None, upgrades=False):
        """The response, without its body if that never ends."""
        fields = {**(UPGRADE if upgrades else {})}
        if server.keys[who]:
            fields["Authorization"] = f"Bearer {server.keys[who]}"
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body)
            fields["Content-Type"] = "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_LIMIT_S)
        with contextlib.closing(connection):
            connection.request(verb, path, body=body, headers=fields)
            answer = connection.getresponse()
            goes_on = answer.status == 101 or answer.headers.get("Content-Type") == "text/event-stream"
            return Answer(answer.status, answer.headers, b"" if goes_on else answer.read())

    def same(self, foreign, missing, red, what):
        """Only the ids that were sent distinguish the two."""
        text = foreign.text
        for name, value in red.ids.items():
            text = text.replace(value, MISSING[name])
        self.assertEqual((foreign.status, text), (missing.status, missing.text), what)
        fields = [{name: value for name, value in answer.headers.items() if name not in FLEETING}
                  for answer in (foreign, missing)]
        for each in fields:
            each.pop("Content-Length", None)  # secret names differ in length
        self.assertEqual(*fields, what)

    def test_a_foreign_object_cannot_be_told_from_a_missing_one(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server, red, blue = self.open(engine, variables)
                routes = list(routes_of(self.document))
                before = self.state_of(server, red)
                for route in filter(lambda route: names_an_object(route.path), routes):
                    for who in CALLERS:
                        self.check_foreign(server, route, who, red, blue)
                for route in filter(lambda route: not names_an_object(route.path), routes):
                    self.check_instance(server, route, red)
                self.check_lists(server, routes, red, blue)
                self.assertEqual(self.state_of(server, red), before, "somebody has touched it")
                for route in sorted(routes, key=Route.order):
                    self.check_real(server, route, red)

    def check_foreign(self, server, route, who, red, blue):
        name = who if who in server.keys else f"{who} of blue"
        body = body_of(route.verb, route.path)
        foreign, missing = (self.ask(server, name, route.verb, route.at(ids, blue.ticket), body, route.upgrades)
                            for ids in (red.ids, MISSING))
        self.same(foreign, missing, red, f"{who}: {route}")
        # An agent reads about itself only within a run.
        if route.permission in ALLOWED["agent" if who == "run" else who] and \
                (who, route.permission) != ("agent", "agent_self"):
            self.assertEqual(foreign.status, 404, f"{who}: {route}: {foreign.text}")

    def check_real(self, server, route, red):
        """For its owner the same object exists: otherwise the responses above prove nothing."""
        if not names_an_object(route.path) or route.permission == "instance_admin":
            return
        who = "run of red" if route.permission == "agent_self" else "admin of red"
        ids = {**red.ids, "run": red.turn} if route.path.endswith("/transcript") else red.ids
        answer = self.ask(server, who, route.verb, route.at(ids, red.ticket),
                          body_of(route.verb, route.path), route.upgrades)
        # Some actions are impossible in this state; the server inside knows only some methods.
        is_found = answer.status < 400 or answer.status in (409, 422, 501) or "is a WebSocket" in answer.text
        self.assertTrue(is_found, f"{route}: {answer.status} {answer.text}")
        if route.path.endswith("/transcript"):
            self.assertIn("answer of red", answer.text)

    def check_instance(self, server, route, red):
        """Objects of the instance reveal nothing about another company."""
        if route.verb != "GET" or route.path.endswith("/config"):  # see the test below
            return
        for who in CALLERS:
            name = who if who in server.keys else f"{who} of blue"
            answer = self.ask(server, name, route.verb, route.at({}, None))
            self.check_silent(answer, red, f"{who}: {route}")
        if route.path.endswith("/logs"):
            mine = self.ask(server, "operator of red", route.verb, route.at({}, None))
            self.assertIn("line of red", mine.text)

    def check_lists(self, server, routes, red, blue):
        for route in routes:
            if route.verb == "GET" and names_in(route.path) == ["company"]:
                answer = self.ask(server, "admin of blue", "GET", route.at(blue.ids, None))
                self.assertEqual(answer.status, 200, f"{route}: {answer.text}")
                self.check_silent(answer, red, str(route))

    def check_silent(self, answer, red, what, sent=None):
        for trace in red.traces():
            if trace != sent:
                self.assertNotIn(trace, answer.text, what)

    def test_what_a_request_names_beside_its_path_is_not_found_with_another_company(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                server, red, blue = self.open(engine, variables)
                named = list(named_in(self.document))
                self.assertLessEqual(set(NAMED), {one[:3] for one in named}, "routes or fields that are gone")
                for verb, path, field, kind in sorted(named, key=lambda one: one[0] == "DELETE"):
                    self.check_named(server, verb, path, kind, red, blue, self.carries(verb, path, field))
                for verb, path, kind, body in DEEP:
                    self.check_named(server, verb, path, kind, red, blue, lambda id, body=body: ("", body(id)))

    def carries(self, verb, path, field):
        """A function from an id to the query and the body that name it."""
        in_query = any(one["name"] == field
                       for one in self.document["paths"][path][verb.lower()].get("parameters", []))
        rest = body_of(verb, path) if in_query else REST_OF_A_BODY.get(path, body_of(verb, path))
        return lambda id: (f"?{field}={id}", rest) if in_query else ("", {**rest, field: id})

    def check_named(self, server, verb, path, kind, red, blue, carries):
        ids = {**SHARED, **blue.ids, **(blue.free if path.endswith(("{lease}/rollback", "-setup-sessions")) else {})}

        def ask(id):
            at = re.sub(r"{(\w+)}", lambda match: ids[match.group(1)], path)
            query, body = carries(id)
            return self.ask(server, "admin of blue", verb, at + query, body)

        foreign, missing = ask(red.ids[kind]), ask(MISSING[kind])
        what = f"{verb} {path} with the {kind} of another"
        self.same(foreign, missing, red, what)
        is_filter = verb == "GET" or path.endswith("/reset")  # nothing matches a missing object
        self.assertIn(foreign.status, (403, 404, 409, 422, *([200] if is_filter else [])), f"{what}: {foreign.text}")
        self.check_silent(foreign, red, what, sent=red.ids[kind])
        # The same field works if the object is the caller's own.
        own = ask(blue.ids[kind])
        self.assertTrue(own.status < 400 or own.status == 409, f"{verb} {path} with its own {kind}: {own.text}")
        if not path.endswith("/reset"):  # the homes of its agent are elsewhere
            self.assertNotEqual((own.status, own.text.replace(blue.ids[kind], MISSING[kind])),
                                (missing.status, missing.text), f"{what} makes no difference")

    def test_the_streams_of_a_company_tell_nothing_of_another(self):
        server = self.serve("--mode", "authenticated", place=None)
        server.keys = {"instance": (server.home / "admin.token").read_text().strip(), "nobody": None}
        red, blue = (Company(server, self.folder, name) for name in ("red", "blue"))
        for company in (red, blue):
            self.addCleanup(company.end)
        secret = lambda company, name: company.made(f"{company.at}/secrets", {"name": name, "value": "v"})
        for path in ("activity/stream", "changes/stream"):
            with self.stream(server, "viewer of blue", f"{blue.at}/{path}") as events:
                self.assertEqual(next(events)["event"], "ready")
                secret(red, f"door of red in {path}")
                mine = f"door of blue in {path}"
                secret(blue, mine)
                seen = []
                while not seen or mine not in seen[-1]:
                    seen.append(json.dumps(next(events)))
            for trace in red.traces():
                self.assertNotIn(trace, " ".join(seen), path)

    @contextlib.contextmanager
    def stream(self, server, who, path):
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=ANSWER_LIMIT_S)
        with contextlib.closing(connection):
            connection.request("GET", path, headers={"Authorization": f"Bearer {server.keys[who]}"})
            answer = connection.getresponse()
            self.assertEqual(answer.status, 200, path)
            yield read_events(answer)

    def state_of(self, server, company):
        """What its owner reads of it, except what grows by itself."""
        ids, state = company.ids, {}
        for kind, path in (("agent", "agents"), ("secret", "secrets"), ("token", "tokens"), ("sandbox", "sandboxes"),
                           ("environment", "environments"), ("template", "templates"), ("company", "companies")):
            state[kind] = self.ask(server, "admin of red", "GET", f"/api/{path}/{ids[kind]}").text
        lease = self.ask(server, "admin of red", "GET", f"/api/environment-leases/{ids['lease']}").json
        state["lease"] = (lease["status"], lease.get("frozenAt"))
        listed = self.ask(server, "admin of red", "GET", f"{company.at}/heartbeat-runs").json
        state["runs"] = [(one["id"], one["status"]) for one in listed]
        session = self.ask(server, "admin of red", "GET", f"{SESSIONS}/{ids['session']}").json["session"]
        state["session"] = session["status"]
        for path in (f"/api/environment-leases/{ids['lease']}/files?path=f",
                     f"/api/environment-leases/{ids['lease']}/changes", f"/api/agents/{ids['agent']}/homes",
                     f"/api/environments/{ids['environment']}/custom-image-template",
                     f"{company.at}/activity", f"{company.at}/environments"):
            answer = self.ask(server, "admin of red", "GET", path)
            self.assertEqual(answer.status, 200, path)
            state[path] = answer.text
        return state


if __name__ == "__main__":
    unittest.main()
