"""The API description is part of the product: it changes only on purpose."""

import json

from support import ROOT, BerthTest

GOLDEN = ROOT / "docs" / "openapi.json"


class OpenApi(BerthTest):
    def test_the_document_is_the_one_in_docs(self):
        said = self.serve().get("/api/openapi.json").json
        said["info"]["version"] = "0"
        if not GOLDEN.exists() or json.loads(GOLDEN.read_text()) != said:
            new = ROOT / "build" / "openapi.json"
            new.parent.mkdir(exist_ok=True)
            new.write_text(json.dumps(said, indent=1) + "\n")
            self.fail(f"the API changed: look at 'diff {GOLDEN} {new}', then copy it over")

    def test_every_route_is_described(self):
        document = self.serve().get("/api/openapi.json").json
        self.assertEqual(document["openapi"], "3.1.0")
        seen = set()
        for path, verbs in document["paths"].items():
            for verb, operation in verbs.items():
                self.assertTrue(operation["summary"], f"{verb} {path}")
                self.assertIn("x-berth-permission", operation)
                seen.add(operation["operationId"])
        self.assertEqual(len(seen), sum(len(verbs) for verbs in document["paths"].values()))
        self.resolve(document, document)

    def test_files_and_ports_are_described_as_they_answer(self):
        paths = self.serve().get("/api/openapi.json").json["paths"]
        files = paths["/api/environment-leases/{lease}/files"]
        read = files["get"]["responses"]["200"]
        self.assertEqual(set(read["content"]), {"application/json", "application/octet-stream"})
        self.assertEqual(set(read["headers"]), {"X-Next-Offset", "X-Eof", "X-File-Mode", "X-File-Mtime",
                                                "X-File-Bytes"})
        self.assertEqual(set(files["put"]["responses"]), {"201", "204", "default"})
        ports = paths["/api/environment-leases/{lease}/ports/{port}/{path}"]
        self.assertEqual(set(ports), {"get", "put", "post", "delete", "options", "head", "patch", "trace"})

    def resolve(self, document, part):
        """Every reference resolves."""
        if isinstance(part, dict):
            if "$ref" in part:
                found = document
                for step in part["$ref"].removeprefix("#/").split("/"):
                    found = found[step]
            for value in part.values():
                self.resolve(document, value)
        elif isinstance(part, list):
            for value in part:
                self.resolve(document, value)
