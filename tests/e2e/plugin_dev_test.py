"""What a plugin author does: a skeleton, its build, its examination."""

import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from support import BERTH, ROOT, clean_environment

BUILD_LIMIT_S = 300


def berth(*arguments, cwd=None):
    return subprocess.run([BERTH, *arguments], cwd=cwd, env=clean_environment(), text=True,
                          capture_output=True, timeout=BUILD_LIMIT_S, check=False)


class PluginDevelopment(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def examined(self, path, *more):
        done = berth("plugin", "test", str(path), *more)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        return done.returncode, json.loads(done.stdout)

    def assert_conforms(self, path, *more, at_least=30):
        status, report = self.examined(path, *more)
        failed = [check for check in report["checks"] if check["verdict"] == "failed"]
        self.assertEqual(failed, [])
        self.assertEqual((status, report["conforms"], report["score"]), (0, True, 100))
        self.assertGreater(report["passed"], at_least)

    @unittest.skipUnless(shutil.which("clang++-19") and shutil.which("cmake"),
                         "there is no clang++-19 or no cmake")
    def test_a_new_provider_in_cpp_builds_and_passes_the_kit(self):
        made = berth("plugin", "new", "acme-sandbox", "--sdk", str(ROOT / "sdk" / "cpp"),
                     cwd=self.folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        source = self.folder / "acme-sandbox"
        for command in (["cmake", "-S", ".", "-B", "build", "-DCMAKE_CXX_COMPILER=clang++-19",
                         "-DCMAKE_BUILD_TYPE=Debug"],
                        ["cmake", "--build", "build", "-j2"]):
            built = subprocess.run(command, cwd=source, text=True, capture_output=True,
                                   timeout=BUILD_LIMIT_S, check=False)
            self.assertEqual(built.returncode, 0, built.stdout + built.stderr)
        self.assert_conforms(source / "build" / "plugin")

    @unittest.skipUnless(shutil.which("node"), "there is no node")
    def test_a_new_provider_in_javascript_passes_the_kit(self):
        made = berth("plugin", "new", "acme.js", "--language", "js", cwd=self.folder)
        self.assertEqual(made.returncode, 0, made.stderr)
        self.assert_conforms(self.folder / "acme.js")

    def test_a_provider_on_the_published_sdk_passes_the_kit_in_both_dialects(self):
        sdk = ROOT / "build" / "compat"
        installed = subprocess.run([ROOT / "tests" / "compat" / "install", sdk], text=True,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                   timeout=BUILD_LIMIT_S, check=False)
        if installed.returncode != 0:
            self.skipTest("the published SDK could not be installed: " + installed.stdout.strip())
        self.assert_conforms(sdk / "c")
        # The SDK waits half a minute for a silent host: once is enough.
        for part in ("start", "execute", "crash"):
            self.assert_conforms(sdk / "a", "--only", part, at_least=3)

    def test_a_skeleton_is_not_written_over_what_is_there(self):
        (self.folder / "acme").mkdir()
        made = berth("plugin", "new", "acme", "--language", "js", cwd=self.folder)
        self.assertNotEqual(made.returncode, 0)
        self.assertEqual(list((self.folder / "acme").iterdir()), [])

    def test_a_name_that_no_manifest_may_have_is_refused(self):
        made = berth("plugin", "new", "../Acme", cwd=self.folder)
        self.assertNotEqual(made.returncode, 0)
        self.assertIn("is not a plugin name", made.stderr)

    def test_a_provider_with_a_fault_is_told_what_to_mend(self):
        worker = (ROOT / "tests" / "integration" / "faulty_worker.py").read_text()
        (self.folder / "worker").write_text(worker)
        (self.folder / "worker").chmod(0o755)
        (self.folder / "manifest.json").write_text(json.dumps({
            "id": "test.faulty", "apiVersion": 1, "version": "1.0.0", "displayName": "Faulty",
            "description": "For tests.", "author": "Berth", "categories": ["automation"],
            "capabilities": ["environment.drivers.register"],
            "entrypoints": {"worker": "./worker"},
            "environmentDrivers": [{
                "driverKey": "faulty", "kind": "sandbox_provider", "displayName": "Faulty",
                "configSchema": {"type": "object", "properties": {"image": {"type": "string"}}},
            }]}))
        status, report = self.examined(self.folder, "--env", "FAULT=leaks", "--only", "execute.no_leak")
        failed = [check for check in report["checks"] if check["verdict"] == "failed"]
        self.assertEqual([check["check"] for check in failed], ["execute.no_leak"])
        self.assertEqual((status, report["conforms"]), (1, False))
        self.assertIn("environment of your own making", failed[0]["mend"])

    def test_the_fake_provider_conforms(self):
        built = Path(BERTH).parent / "plugins" / "fake"
        if not os.access(built / "fake-plugin", os.X_OK):
            self.skipTest("fake-plugin is not built beside berth")
        self.assert_conforms(built)
