#!/usr/bin/env python3
"""tools/npm-ci with an npm that fails as often as a test requires: it retries, stops, and names the
cause."""

import os
import subprocess
import tempfile
import unittest
from pathlib import Path

NPM_CI = Path(__file__).resolve().parent / "npm-ci"
# Each call is a line in "calls"; the first $FAILURES calls fail as $FAILURE describes.
NPM = """#!/bin/sh
[ "$1" = ci ] || { echo http://registry.test/; exit; }
echo "$@" >>"$CALLS"
[ -z "$HANGS" ] || exec sleep 60
if [ "$(wc -l <"$CALLS")" -le "$FAILURES" ]; then
  echo "npm error code $FAILURE" >&2
  echo "npm error request to http://registry.test/some-library failed" >&2
  exit 1
fi
mkdir -p node_modules/some-library
"""


class NpmCi(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        self.package = self.root / "package"
        self.package.mkdir()
        (self.package / "package-lock.json").write_text('{"pinned": 1}')
        (self.root / "npm").write_text(NPM)
        (self.root / "npm").chmod(0o755)

    def install(self, *options, failures=0, failure="ECONNRESET", hangs=""):
        env = {**os.environ, "PATH": f"{self.root}:{os.environ['PATH']}", "CALLS": str(self.root / "calls"),
               "FAILURES": str(failures), "FAILURE": failure, "HANGS": hangs, "BERTH_NPM_PAUSE_S": "0"}
        return subprocess.run([NPM_CI, *options, self.package], env=env, capture_output=True, text=True, check=False)

    def calls(self):
        return (self.root / "calls").read_text().splitlines()

    def test_tries_three_times(self):
        done = self.install(failures=2)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue((self.package / "node_modules" / "some-library").is_dir())
        self.assertEqual(len(self.calls()), 3)
        self.assertIn("attempt 2 of 3 failed", done.stderr)

    def test_runs_no_script_of_a_package(self):
        self.install()
        self.assertIn("--ignore-scripts", self.calls()[0].split())

    def test_names_the_lock_file_and_the_registry_when_it_does_not_answer(self):
        done = self.install(failures=3)
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(self.calls()), 3)
        last = done.stderr.splitlines()[-1]
        self.assertIn(f"the packages of {self.package}/package-lock.json", last)
        self.assertIn("the npm registry did not answer (http://registry.test/some-library)", last)

    def test_does_not_blame_the_registry_for_another_failure(self):
        done = self.install(failures=3, failure="EUSAGE")
        self.assertEqual(done.returncode, 1)
        self.assertNotIn("did not answer", done.stderr)
        self.assertIn("npm error code EUSAGE", done.stderr)

    def test_stops_an_npm_that_hangs(self):
        done = self.install("--within", "1", hangs="yes")
        self.assertEqual(done.returncode, 1)
        self.assertEqual(len(self.calls()), 1)
        self.assertIn("the npm registry did not answer (http://registry.test/)", done.stderr)

    def test_installs_once_until_the_lock_file_changes(self):
        for calls, lock in ((1, '{"pinned": 1}'), (1, '{"pinned": 1}'), (2, '{"pinned": 2}')):
            (self.package / "package-lock.json").write_text(lock)
            self.assertEqual(self.install().returncode, 0)
            self.assertEqual(len(self.calls()), calls, lock)

    def test_does_not_count_a_failed_installation_as_installed(self):
        self.assertEqual(self.install(failures=3).returncode, 1)
        (self.package / "node_modules").mkdir(exist_ok=True)
        self.assertEqual(self.install(failures=3).returncode, 0)
        self.assertEqual(len(self.calls()), 4)


if __name__ == "__main__":
    unittest.main()
