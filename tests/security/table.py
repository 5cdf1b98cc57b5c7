#!/usr/bin/env python3
"""Writes docs/security-tests.md from a run of the attempts: tests/security/table.py [BUILD_FOLDER]"""

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PLACES = {
    "by_root_as_user": "root, user",
    "by_root_as_root": "root, root",
    "by_ordinary_user_as_user": "ordinary, user",
    "by_ordinary_user_as_root": "ordinary, root",
    "by_root_without_user_namespaces_as_user": "root, without user namespaces",
    "by_ordinary_user_without_user_namespaces_as_user": "ordinary, without (`minimal`)",
}
HEAD = """# Attempts to break out

Every row is a small hostile program (tests/security/hostile) that is run in six sandboxes: made by
root or by an ordinary user, for commands that are user 1000 or root inside, and for user 1000 where
user namespaces are forbidden (see [sandbox.md](sandbox.md#minimal)). The same programs succeed
without a sandbox, which is tested too where the machine allows it: an attempt that fails everywhere
proves nothing. This table is written by tests/security/table.py from what the tests saw.

`denied` is followed by the kernel's answer, `limited` by how far it came, `killed` by the signal. A
dash means that the attempt was not made, because the sandbox says that it lacks the limit. `OPEN`
stands only in the last column: `minimal` has processes, mounts, settings and the network of the host
in sight, and says so in `missing`; that it can neither connect nor write there is for `Forbidden.*`.

| attempt | why it must fail | """


def verdicts(program):
    """{attempt: {"why": ..., place: verdict}} in the order of the table"""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        subprocess.run([program, f"--gtest_output=json:{report.name}"], check=False,
                       stdout=subprocess.DEVNULL)
        suites = json.load(open(report.name, encoding="utf-8"))["testsuites"]
    found = {}
    for case in (case for suite in suites for case in suite["testsuite"]):
        place, attempt = case["name"].split("/")[1].split("__")
        row = found.setdefault(attempt, {"why": ""})
        row["why"] = case.get("why", row["why"])
        row[place] = case.get("verdict", "-")
    return found


def without_numbers(verdict):
    """The numbers of one run would change the document with every run."""
    return re.sub(r"^limited \d.*|(?<=\S) \d+$", lambda found: "limited" * (found.start() == 0), verdict)


def main(build="build/dev"):
    rows = verdicts(ROOT / build / "tests" / "security" / "attempts_test")
    lines = [HEAD + " | ".join(PLACES.values()) + " |", "| --- " * (2 + len(PLACES)) + "|"]
    for attempt, row in rows.items():
        seen = [without_numbers(row.get(place, "-")) for place in PLACES]
        lines.append(f"| `{attempt}` | {row['why']} | " + " | ".join(seen) + " |")
    (ROOT / "docs" / "security-tests.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
