"""The Paperclip API as a real server answered, field by field: tests/compat/answers.json. Our
differences are in tests/compat/differences.txt, each with its reason; there are no others."""

import json
from pathlib import Path

from runs_support import eventually, look, wait_for_end
from support import BERTH, ROOT, BerthTest

COMPAT = ROOT / "tests" / "compat"
FAKE = Path(BERTH).parent / "plugins" / "fake"
KINDS = {type(None): "null", bool: "boolean", int: "number", float: "number", str: "string", list: "array",
         dict: "object"}
# The responses whose object later requests are about.
NAMED = {"company-create": "company", "secret-create": "secret", "secret-create-ssh-key": "key",
         "environment-create-ssh": "ssh", "environment-create-ssh-inline-key": "ssh2",
         "plugin-install-local-path": "plugin", "environment-create-sandbox-plugin": "box",
         "environment-create-sandbox-plugin-reuse": "box2", "agent-create-process-local": "agent",
         "invoke-processLocal": "run"}


def flatten(value, at, found):
    """The kinds of every field, by its path; elements of an array are one field."""
    found.setdefault(at or "/", set()).add(KINDS[type(value)])
    if isinstance(value, dict):
        for name, inner in value.items():
            flatten(inner, f"{at}/{name}", found)
    elif isinstance(value, list):
        for inner in value:
            flatten(inner, f"{at}/[]", found)
    return found


def differences(row, answer):
    """What a program written for the recorded response would miss. Additional fields are not a
    difference."""
    if answer.status != row["status"]:
        yield f"status {row['status']} is {answer.status}"
        if answer.status >= 400:
            return  # an error has other fields
    ours = flatten(answer.json, "", {})
    for path, kinds in row["fields"].items():
        wanted = set(kinds.split("|")) - {"null"}
        if path in ours:
            given = ours[path] - {"null"}
            if wanted and given and not wanted & given:
                yield f"{path} {kinds} is {'|'.join(sorted(ours[path]))}"
            continue
        parent = path.rpartition("/")[0] or "/"
        # Fields of a missing or null object are not compared, nor elements of an empty array.
        if ours.get(parent, set()) & {"object"}:
            yield f"{path} is missing"


def listed():
    """(names of answers, difference, reason) of each line."""
    for line in (COMPAT / "differences.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            what, _, reason = line.partition("  # ")
            names, _, difference = what.strip().partition(" ")
            yield names.split(","), difference.strip(), reason


class Answers(BerthTest):
    def setUp(self):
        super().setUp()
        if not (FAKE / "manifest.json").exists():
            self.skipTest(f"{FAKE} is not built")
        self.given = {"folder": str(self.folder), "private_key": "-----BEGIN OPENSSH PRIVATE KEY-----"}

    def fill(self, value):
        """Replaces {names} in texts with the ids of our objects."""
        if isinstance(value, dict):
            return {name: self.fill(inner) for name, inner in value.items()}
        if isinstance(value, list):
            return [self.fill(inner) for inner in value]
        if isinstance(value, str):
            for name, given in self.given.items():
                value = value.replace("{" + name + "}", given)
        return value

    def ask(self, server, row):
        if row["name"] == "plugin-install-local-path":
            row = {**row, "body": {**row["body"], "packageName": str(FAKE.resolve())}}
        answer = server.request(row["verb"], self.fill(row["path"]), self.fill(row.get("body")))
        if row["name"] in NAMED and isinstance(answer.json, dict) and "id" in answer.json:
            self.given[NAMED[row["name"]]] = answer.json["id"]
        if row["name"] == "environments-list-initial":
            self.given["local"] = next(one["id"] for one in answer.json if one["driver"] == "local")
            server.request("PATCH", f"/api/companies/{self.given['company']}",
                           {"defaultEnvironmentId": self.given["local"]})
        return answer

    def over(self, server, run):
        """The run's lease, when both have ended."""
        lease = wait_for_end(server, run)["leaseId"]
        status = lambda: server.get(f"/api/environment-leases/{lease}").json["status"]
        self.assertTrue(eventually(lambda: status() == "released"), look(server, run))
        return lease

    def run_in_sandbox(self, server):
        body = {"command": "true", "environmentId": self.given["box"]}
        run = server.post(f"/api/companies/{self.given['company']}/runs", body)
        self.assertEqual(run.status, 202, run.text)
        self.given["lease"] = self.over(server, run.json["id"])

    def found(self, server):
        for row in json.loads((COMPAT / "answers.json").read_text()):
            answer = self.ask(server, row)
            if row["name"] == "invoke-processLocal":
                self.over(server, self.given["run"])
                self.run_in_sandbox(server)
            for difference in differences(row, answer):
                yield row["name"], difference

    def test_what_differs_from_the_recorded_answers_is_listed_with_a_reason(self):
        server = self.serve()
        found = list(self.found(server))
        lines = list(listed())
        fits = lambda line, one: one[0] in line[0] and one[1] == line[1]
        unlisted = [" ".join(one) for one in found if not any(fits(line, one) for line in lines)]
        stale = [f"{name} {line[1]}" for line in lines for name in line[0]
                 if not any(fits(([name], line[1]), one) for one in found)]
        self.assertEqual((unlisted, stale), ([], []), "unlisted differences, and lines that are no longer true")
        self.assertEqual([line for line in lines if len(line[2]) < 10], [], "lines without a reason")

    def test_a_missing_field_another_kind_and_another_status_are_differences(self):
        class Given:
            status, json = 201, {"a": 1, "list": [{"x": None}], "none": None}
        row = {"status": 200, "fields": {"/": "object", "/a": "string", "/b": "null", "/list": "array", "/list/[]":
               "object", "/list/[]/x": "string", "/list/[]/y": "string", "/none": "object", "/none/z": "string"}}
        self.assertEqual(list(differences(row, Given)), [
            "status 200 is 201", "/a string is number", "/b is missing", "/list/[]/y is missing"])
