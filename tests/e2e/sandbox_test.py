"""Runs in this machine's sandboxes, from the command line and over the API; what they cannot do,
and that nothing of them is left."""

import contextlib
import http.server
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading
import time
import unittest
from pathlib import Path

import image_test
import machine
import runs_support as runs
from support import BERTH, BerthTest, as_user, clean_environment

# Each server start passes them once too, when it checks whether this machine can create sandboxes.
STEPS_OF_A_SANDBOX = ["keeper.started:2", "linux.confined:2", "acquire.acted",
                      "acquire.recorded", "execute.acted", "execute.recorded", "execute.ended",
                      "release.intended", "keeper.stopped:2", "release.acted"]


WHY_NOT = machine.why_no_sandbox()


def cgroups(folder):
    """Existing Berth groups in every hierarchy, except those of live keepers that hold nothing in
    this folder: servers of other tests create and remove those."""
    found = set()
    for parent, names, _ in os.walk("/sys/fs/cgroup"):
        found.update(f"{parent}/{name}" for name in names
                     if "berth" in name and not is_of_another_test(name, folder))
    return found


def is_of_another_test(group, folder):
    keeper = re.search(r"\.(\d+)-\d+-\d+$", group)
    try:
        holds = Path(f"/proc/{keeper.group(1)}/cmdline").read_bytes() if keeper else b""
    except OSError:
        return False
    return holds != b"" and str(folder).encode() not in holds


def files_of_a_shell():
    libraries = subprocess.run(["ldd", "/bin/sh"], capture_output=True, text=True, check=True).stdout
    return [word for word in libraries.split() if word.startswith("/")] + ["/bin/sh"]


@contextlib.contextmanager
def inside(group):
    """Moves this process, and the processes it starts meanwhile, to another control group."""
    before = machine.group_of("memory")
    (group / "cgroup.procs").write_text(str(os.getpid()))
    try:
        yield
    finally:
        (before / "cgroup.procs").write_text(str(os.getpid()))


@unittest.skipIf(WHY_NOT, WHY_NOT)
class SandboxTest(BerthTest):
    def setUp(self):
        super().setUp()
        self.groups_before = cgroups(self.folder)
        self.addCleanup(self.check_nothing_left)

    def check_nothing_left(self):
        gone = runs.eventually(lambda: not runs.processes_with(f"berth-keeper hold {self.folder}"))
        self.assertTrue(gone, runs.processes_with(f"berth-keeper hold {self.folder}"))
        self.assertTrue(runs.eventually(lambda: cgroups(self.folder) <= self.groups_before),
                        cgroups(self.folder) - self.groups_before)
        self.assertNotIn(str(self.folder), Path("/proc/self/mountinfo").read_text())

    def check_leases_left(self, server, home=None):
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)),
                        runs.unfinished_leases(server))
        folder = (home or self.home) / "sandboxes"
        self.assertTrue(runs.eventually(lambda: not list(folder.iterdir())), list(folder.iterdir()))

    def environment(self, server, name, **config):
        made = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": name, "driver": "sandbox",
                            "config": {"provider": "linux", **config}})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def default_sandbox(self, server):
        rows = server.get(f"/api/companies/{server.company()}/environments").json
        return next(row["id"] for row in rows if row["name"] == "Sandbox")

    def test_a_new_company_has_a_sandbox_beside_its_local_environment(self):
        server = self.serve()
        sandbox = self.default_sandbox(server)
        made = server.get(f"/api/environments/{sandbox}").json
        self.assertEqual(made["driver"], "sandbox")
        self.assertEqual(made["config"]["provider"], "linux")
        able = server.get(f"/api/companies/{server.company()}/environments/capabilities").json
        self.assertEqual(able["sandboxProviders"]["linux"]["status"], "supported")
        schema = able["sandboxProviders"]["linux"]["configSchema"]
        self.assertEqual(schema["properties"]["network"]["enum"], ["none", "host"])

    def test_a_run_in_it_sees_a_root_of_its_own_and_leaves_nothing(self):
        server = self.serve()
        run = runs.start(server, "sh", "-c",
                         f"echo out; echo err >&2; ls -d {self.home}; id -u; pwd; exit 3",
                         environmentId=self.default_sandbox(server))
        ended = runs.wait_for_end(server, run)
        self.assertEqual((ended["status"], ended["exitCode"]), ("failed", 3), ended)
        self.assertEqual(runs.output(server, run), "out\n1000\n/workspace\n")
        self.assertIn("No such file", runs.output(server, run, "stderr"))
        self.check_leases_left(server)
        lease = runs.leases(server)[0]
        self.assertIn(lease["isolation"]["level"], ["weak", "standard", "strong"])
        self.assertTrue(lease["isolation"]["features"])
        self.assertEqual(lease["provider"], "linux")

    def test_a_config_that_is_wrong_is_refused_by_its_path(self):
        server = self.serve()
        for config, path in [({"memoryMb": "much"}, "/config/memoryMb"), ({"openFiles": 16}, "/config/openFiles"),
                             ({"imgae": "x"}, "/config/imgae"), ({"network": "bridge"}, "/config/network")]:
            with self.subTest(config):
                made = server.post(f"/api/companies/{server.company()}/environments",
                                   {"name": "x", "driver": "sandbox",
                                    "config": {"provider": "linux", **config}})
                self.assertEqual(made.status, 422, made.text)
                self.assertIn(path, made.text)

    @unittest.skipUnless(machine.limits_memory(), "no control group limits memory here")
    def test_a_run_that_eats_its_memory_is_told_so(self):
        server = self.serve()
        run = runs.start(server, "sh", "-c", "head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null",
                         environmentId=self.environment(server, "small", memoryMb=64))
        ended = runs.wait_for_end(server, run)
        self.check_leases_left(server)
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "out_of_memory"), ended)

    @unittest.skipUnless(machine.limits_memory(), "no control group limits memory here")
    def test_berth_run_says_that_the_memory_was_too_little(self):
        server = self.serve()
        self.environment(server, "small", memoryMb=64)
        done = self.run_berth("--home", self.home, "run", "-e", "small", "--", "sh", "-c",
                              "head -c 200000000 /dev/zero | tail -c 150000000 > /dev/null", stdin="")
        self.check_leases_left(server)
        self.assertEqual(done.returncode, 137, done.stderr)
        for text in ("out_of_memory", "'small'", "memoryMb"):
            self.assertIn(text, done.stderr)

    def test_berth_run_says_which_limit_of_time_it_was(self):
        server = self.serve()
        self.environment(server, "hasty", timeoutMs=500)
        for environment, timeout, told, untold in [("hasty", "1m", "raise timeoutMs", "longer timeout"),
                                                   ("Sandbox", "300ms", "longer timeout", "timeoutMs")]:
            with self.subTest(environment):
                done = self.run_berth("--home", self.home, "run", "-e", environment, "--timeout", timeout,
                                      "--", "sleep", "60", stdin="")
                self.assertEqual(done.returncode, 124, done.stderr)
                self.assertIn(f"'{environment}'", done.stderr)
                self.assertIn(told, done.stderr)
                self.assertNotIn(untold, done.stderr)
        self.check_leases_left(server)

    def import_tree(self, name, text=""):
        tree = self.folder / f"tree-{name}-{text}"
        (tree / "etc").mkdir(parents=True)
        (tree / "etc" / "motd").write_text(text)
        made = self.run_berth("--home", self.home, "--json", "image", "import", tree, name)
        self.assertEqual(made.returncode, 0, made.stderr)
        return json.loads(made.stdout)["digest"]

    def test_a_config_that_names_what_is_not_there_is_refused_when_it_is_saved(self):
        server = self.serve()
        self.import_tree("there")
        kept = self.environment(server, "x", image="there")
        for config, path in [({"image": "nothing"}, "/config/image"), ({"image": "No Name"}, "/config/image"),
                             ({"template": "nothing"}, "/config/template")]:
            with self.subTest(config):
                made = server.post(f"/api/companies/{server.company()}/environments",
                                   {"name": "y", "driver": "sandbox",
                                    "config": {"provider": "linux", **config}})
                changed = server.request("PATCH", f"/api/environments/{kept}", {"config": config})
                for refused in (made, changed):
                    self.assertEqual(refused.status, 422, refused.text)
                    self.assertEqual([issue["path"] for issue in refused.json["details"]["issues"]], [path],
                                     refused.text)
        self.assertEqual(server.get(f"/api/environments/{kept}").json["config"]["image"], "there")

    def test_an_image_that_went_missing_fails_the_run_and_leaves_nothing(self):
        server = self.serve()
        self.import_tree("fleeting")
        environment = self.environment(server, "x", image="fleeting")
        removed = self.run_berth("--home", self.home, "--yes", "image", "rm", "fleeting", "--force")
        self.assertEqual(removed.returncode, 0, removed.stderr)
        ended = runs.wait_for_end(server, runs.start(server, "true", environmentId=environment))
        self.assertEqual(ended["status"], "failed", ended)
        self.assertIn("fleeting", ended["error"])
        self.check_leases_left(server)

    def test_a_server_removes_old_images_that_nobody_has_a_use_for(self):
        unused, by_digest, named = (self.import_tree("moving", text) for text in ("1", "2", "3"))
        server = self.serve(BERTH_IMAGE_AGE_HOURS="0")
        self.environment(server, "by digest", image=by_digest)
        server.stop()
        young = self.import_tree("young", "4")
        self.import_tree("young", "5")
        folder = self.home / "images" / "by-digest"
        there = lambda: {path.name.replace("-", ":") for path in folder.iterdir()}
        for digest in (unused, by_digest, named):
            file = folder / digest.replace(":", "-") / "image.json"
            record = json.loads(file.read_text())
            record["createdAt"] = "2020-01-01T00:00:00.000Z"
            file.write_text(json.dumps(record))
        again = self.serve()
        self.assertTrue(runs.eventually(lambda: unused not in there()), there())
        self.assertLessEqual({by_digest, named, young}, there())
        again.stop()

    def test_a_test_of_the_environment_tells_its_steps_and_isolation(self):
        server = self.serve()
        told = server.post(f"/api/environments/{self.default_sandbox(server)}/probe", {})
        self.assertEqual(told.status, 200, told.text)
        self.assertTrue(told.json["ok"], told.text)
        draft = server.post(f"/api/companies/{server.company()}/environments/probe-config",
                            {"driver": "sandbox", "config": {"provider": "linux"}})
        self.assertTrue(draft.json["ok"], draft.text)
        self.assertEqual([step["name"] for step in draft.json["steps"]],
                         ["sandbox", "command", "cleanup"])
        self.assertIn("level", draft.json["details"]["isolation"])
        self.check_leases_left(server)

    def test_cancel_timeout_and_stdin_reach_into_it(self):
        server = self.serve()
        sandbox = self.default_sandbox(server)
        run = runs.start(server, "sh", "-c", "exec sleep 100", environmentId=sandbox)
        runs.wait_until(server, run, {"running"})
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.assertEqual(runs.wait_for_end(server, run)["status"], "cancelled")
        run = runs.start(server, "sleep", "100", environmentId=sandbox, timeoutMs=500)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "timed_out")
        piped = self.run_berth("--home", self.home, "run", "-e", "Sandbox", "--", "cat", stdin="through\n")
        self.assertEqual((piped.returncode, piped.stdout), (0, "through\n"), piped.stderr)
        self.check_leases_left(server)

    def test_a_reused_sandbox_keeps_its_files_and_nothing_else(self):
        server = self.serve()
        kept = self.environment(server, "kept", reuseLease=True)
        first = runs.start(server, "sh", "-c", "echo mine > file; echo x > /tmp/x", environmentId=kept)
        self.assertEqual(runs.wait_for_end(server, first)["status"], "succeeded")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        self.assertEqual(list(self.home.glob("sandboxes/*/keeper/exec-*.out")), [], "output of a run that is over")
        second = runs.start(server, "sh", "-c", "cat file; ls -A /tmp", environmentId=kept)
        self.assertEqual(runs.wait_for_end(server, second)["status"], "succeeded")
        self.assertEqual(runs.output(server, second), "mine\n")
        for lease in runs.leases(server):
            server.post(f"/api/environment-leases/{lease['id']}/destroy", {})
        self.check_leases_left(server)

    def test_a_reused_sandbox_on_an_image_keeps_only_its_workspace(self):
        tree = self.folder / "tree"
        for file in [*files_of_a_shell(), "/usr/bin/cat", "/usr/bin/mkdir"]:
            place = tree / file.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
        (tree / "etc").mkdir(exist_ok=True)
        (tree / "etc" / "setting").write_text("of the image\n")
        (tree / "workspace").mkdir()
        (tree / "workspace" / "given").write_text("given\n")
        server = self.serve()
        made = self.run_berth("--home", self.home, "image", "import", tree, "small")
        self.assertEqual(made.returncode, 0, made.stderr)
        kept = self.environment(server, "kept", image="small", reuseLease=True, user="root")
        leave = ("echo mine > file; mkdir -p /root; echo trap > /root/.profile; echo trap > /etc/setting; "
                 "echo trap > /etc/more; echo trap > /trap")
        look = "cat file given /etc/setting; cat /root/.profile /etc/more /trap 2>/dev/null; echo looked"
        for script, says in [(leave, ""), (look, "mine\ngiven\nof the image\nlooked\n"),
                             (leave, ""), (look, "mine\ngiven\nof the image\nlooked\n")]:
            run = runs.start(server, "/bin/sh", "-c", script, environmentId=kept)
            ended = runs.wait_for_end(server, run)
            self.assertEqual((ended["status"], runs.output(server, run)), ("succeeded", says), ended)
            self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        used = {lease["providerLeaseId"] for lease in runs.leases(server)}
        self.assertEqual(len(used), 1, "each run had the same sandbox")
        for lease in runs.leases(server):
            server.post(f"/api/environment-leases/{lease['id']}/destroy", {})
        self.check_leases_left(server)

    def test_a_process_of_one_run_is_not_there_when_its_sandbox_is_reused(self):
        server = self.serve()
        kept = self.environment(server, "kept", reuseLease=True)
        daemon = ("import glob, os, time\n"
                  "end = time.time() + 60\n"
                  "while time.time() < end:\n"
                  "    for name in glob.glob('/proc/[0-9]*/environ'):\n"
                  "        try: found = open(name, 'rb').read()\n"
                  "        except OSError: continue\n"
                  "        if b'TOKEN_X' in found and b'NEXT' in found: open('/workspace/stolen', 'wb').write(found)\n")
        hostile = runs.start(server, "sh", "-c", "setsid python3 -c \"$0\" >/dev/null 2>&1 </dev/null & "
                             "sleep 0.3; kill -9 $PPID; sleep 100", daemon, environmentId=kept)
        self.assertEqual(runs.wait_for_end(server, hostile)["errorCode"], "process_lost")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        secret = runs.start(server, "sh", "-c", "sleep 1; set -- /proc/[0-9]*; echo $#", environmentId=kept,
                            env={"TOKEN_X": "NEXT-RUNS-SECRET"})
        self.assertEqual(runs.wait_for_end(server, secret)["status"], "succeeded")
        self.assertEqual(runs.output(server, secret), "3\n", "more than pid 1, the warden and the shell")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        again = runs.start(server, "sh", "-c", "cat stolen 2>/dev/null; echo looked", environmentId=kept)
        self.assertEqual(runs.wait_for_end(server, again)["status"], "succeeded")
        self.assertEqual(runs.output(server, again), "looked\n")
        for lease in runs.leases(server):
            server.post(f"/api/environment-leases/{lease['id']}/destroy", {})
        self.check_leases_left(server)

    def test_a_reused_sandbox_whose_tmp_is_a_link_is_emptied_behind_it(self):
        tree = self.folder / "tree"
        for file in files_of_a_shell():
            place = tree / file.lstrip("/")
            place.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, place)
        (tree / "var" / "tmp").mkdir(parents=True)
        (tree / "tmp").symlink_to("var/tmp")
        server = self.serve()
        made = self.run_berth("--home", self.home, "image", "import", tree, "linked")
        self.assertEqual(made.returncode, 0, made.stderr)
        kept = self.environment(server, "kept", image="linked", reuseLease=True)
        for script, says in [("echo mine > file; echo x > /tmp/x", ""),
                             ("read line < file; echo $line; echo /var/tmp/*", "mine\n/var/tmp/*\n")]:
            run = runs.start(server, "/bin/sh", "-c", script, environmentId=kept)
            ended = runs.wait_for_end(server, run)
            self.assertEqual((ended["status"], runs.output(server, run)), ("succeeded", says), ended)
            self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        for lease in runs.leases(server):
            server.post(f"/api/environment-leases/{lease['id']}/destroy", {})
        self.check_leases_left(server)

    def quota(self, server, **limits):
        changed = server.request("PATCH", f"/api/companies/{server.company()}/quota", limits)
        self.assertEqual(changed.status, 200, changed.text)
        return changed.json

    def test_a_run_over_the_sum_of_its_company_waits_with_the_reason_and_starts_later(self):
        server = self.serve()
        small = self.environment(server, "small", memoryMb=100, diskMb=50)
        self.quota(server, memoryMbMax=150)
        first = runs.start(server, "sleep", "1000", environmentId=small)
        runs.wait_until(server, first, {"running"})
        second = runs.start(server, "true", environmentId=small)
        self.assertTrue(runs.eventually(lambda: runs.look(server, second).get("queue")), runs.look(server, second))
        waiting = runs.look(server, second)
        self.assertEqual((waiting["status"], waiting["queue"]["reason"]), ("queued", "company_quota"), waiting)
        self.assertIn("100 of 150 MB of memory", waiting["queue"]["explanation"])
        usage = server.get(f"/api/companies/{server.company()}/usage").json
        self.assertEqual((usage["memoryMb"], usage["memoryMbMax"], usage["sandboxes"]), (100, 150, 1), usage)
        other = server.post("/api/companies", {"name": "Other"}).json["id"]
        theirs = server.post(f"/api/companies/{other}/runs", {"command": "true"}).json["id"]
        self.assertEqual(runs.wait_for_end(server, theirs)["status"], "succeeded")
        server.post(f"/api/heartbeat-runs/{first}/cancel", {})
        self.assertEqual(runs.wait_for_end(server, second)["status"], "succeeded")
        self.check_leases_left(server)

    def test_sandboxes_that_wait_for_reuse_give_way_to_a_run_without_room(self):
        server = self.serve()
        kept = self.environment(server, "kept", reuseLease=True)
        fresh = self.environment(server, "fresh")
        self.quota(server, sandboxesMax=1)
        for _ in range(2):
            run = runs.start(server, "sh", "-c", "echo x >> file; cat file", environmentId=kept)
            self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
            self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        self.assertEqual(runs.output(server, run), "x\nx\n", "reuse asks for no more room")
        run = runs.start(server, "true", environmentId=fresh)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.check_leases_left(server)

    def test_a_config_over_a_bound_is_refused_by_field_and_an_old_one_goes_on_until_it_is_edited(self):
        server = self.serve()
        before = self.environment(server, "before", memoryMb=900)
        settings = server.request("PATCH", "/api/instance/settings",
                                  {"sandboxMemoryMbMax": 500, "warmSandboxesMax": 3})
        self.assertEqual(settings.status, 200, settings.text)
        self.quota(server, diskMbMax=200, pidsMax=50)
        place = f"/api/companies/{server.company()}/environments"
        for field, value, bound in [("memoryMb", 501, "500"), ("diskMb", 201, "200"), ("pids", 51, "50"),
                                    ("poolSize", 4, "3")]:
            refused = server.post(place, {"name": field, "driver": "sandbox",
                                          "config": {"provider": "linux", field: value}})
            self.assertEqual((refused.status, refused.json["code"]), (422, "unprocessable"), refused.text)
            self.assertIn(f"/config/{field}", refused.json["error"])
            self.assertIn(f"at most {bound}", refused.json["error"])
            self.assertTrue(refused.json["remedy"])
        self.quota(server, diskMbMax=0, pidsMax=0)
        run = runs.start(server, "true", environmentId=before)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        renamed = server.request("PATCH", f"/api/environments/{before}", {"name": "renamed"})
        self.assertEqual(renamed.status, 200, renamed.text)
        edited = server.request("PATCH", f"/api/environments/{before}",
                                {"config": {"provider": "linux", "memoryMb": 901}})
        self.assertEqual(edited.status, 422, edited.text)

    def test_warm_pools_stay_within_the_quota_of_their_company(self):
        server = self.serve()
        self.quota(server, sandboxesMax=4)
        warm = self.environment(server, "warm", poolSize=8, memoryMb=64, diskMb=64)
        usage = lambda: server.get(f"/api/companies/{server.company()}/usage").json
        self.assertEqual(usage()["sandboxes"], 2, "half of the quota is for runs")
        folder = self.home / "sandboxes"
        self.assertTrue(runs.eventually(lambda: len(list(folder.iterdir())) == 2))
        run = runs.start(server, "true", environmentId=self.default_sandbox(server))
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.assertIn("pool.trimmed", server.said())
        server.request("PATCH", f"/api/environments/{warm}", {"config": {"provider": "linux", "poolSize": 0}})
        self.check_leases_left(server)

    def test_a_sandbox_that_waits_for_reuse_is_seen_and_removed(self):
        server = self.serve()
        run = runs.start(server, "true", environmentId=self.environment(server, "kept", reuseLease=True))
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        listed = json.loads(self.run_berth("--home", self.home, "sandbox", "ls").stdout)
        self.assertEqual([(row["state"], row["environment"]) for row in listed], [("kept", "kept")])
        kept = listed[0]["id"]
        shown = json.loads(self.run_berth("--home", self.home, "sandbox", "inspect", kept).stdout)
        self.assertIn(f"until {shown['expiresAt']}", shown["nextStep"])
        lease = server.get(f"/api/environment-leases/{runs.leases(server)[0]['id']}").json
        self.assertIn(f"berth sandbox rm {kept}", lease["nextStep"])
        removed = self.run_berth("--home", self.home, "sandbox", "rm", kept, "--yes")
        self.assertEqual(removed.returncode, 0, removed.stderr)
        self.assertEqual(json.loads(self.run_berth("--home", self.home, "sandbox", "ls").stdout), [])
        self.check_leases_left(server)

    def test_a_run_cannot_start_itself_outside_of_its_sandbox(self):
        server = self.serve()
        company = server.company()
        secret = server.post(f"/api/companies/{company}/secrets", {"name": "door", "value": "a value"}).json["id"]
        outside = next(place["id"] for place in server.get(f"/api/companies/{company}/environments").json
                       if place["driver"] == "local")
        wishes = [{"environmentId": outside}, {"env": {"BASH_ENV": "$(touch /tmp/x)"}},
                  {"env": {"STOLEN": {"type": "secret_ref", "secretId": secret}}}]
        program = ("import json, os, urllib.error, urllib.request\n"
                   "for wish in json.loads(os.environ['WISHES']):\n"
                   "    for verb in ('wakeup', 'heartbeat/invoke'):\n"
                   "        ask = urllib.request.Request(os.environ['BERTH_API_URL'] + '/api/agents/' +\n"
                   "            os.environ['BERTH_AGENT_ID'] + '/' + verb, json.dumps(wish).encode(),\n"
                   "            {'Authorization': 'Bearer ' + os.environ['BERTH_API_KEY'],\n"
                   "             'Content-Type': 'application/json'})\n"
                   "        try: print(urllib.request.urlopen(ask).status)\n"
                   "        except urllib.error.HTTPError as refused: print(refused.code)\n")
        agent = server.post(f"/api/companies/{company}/agents", {
            "name": "Mallory", "adapterType": "process", "defaultEnvironmentId": self.default_sandbox(server),
            "adapterConfig": {"command": "python3", "args": ["-c", program],
                              "env": {"WISHES": json.dumps(wishes)}}})
        self.assertEqual(agent.status, 201, agent.text)
        run = server.post(f"/api/agents/{agent.json['id']}/wakeup", {}).json["id"]
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", runs.output(server, run, "stderr"))
        self.assertEqual(runs.output(server, run).split(), ["403"] * 6)
        self.check_leases_left(server)

    def test_what_a_command_says_is_kept_up_to_its_limit(self):
        server = self.serve()
        run = runs.start(server, "sh", "-c", "head -c 3000000 /dev/zero; echo told >&2",
                         environmentId=self.environment(server, "terse", outputMb=1))
        ended = runs.wait_for_end(server, run)
        self.assertEqual((ended["status"], ended["usageJson"]["stdoutBytes"]), ("succeeded", 3000000), ended)
        self.assertGreater(ended["usageJson"]["bytesOverLimit"], 0, ended)
        self.assertLessEqual(ended["logBytes"], 1024 * 1024)
        self.check_leases_left(server)

    def test_less_isolation_than_asked_for_is_refused(self):
        server = self.serve()
        for opened in [{"network": "host"}, {"allow": ["nested_user_namespaces"]}]:
            refused = server.post(f"/api/companies/{server.company()}/environments",
                                  {"name": "asked", "driver": "sandbox",
                                   "config": {"provider": "linux", "minIsolation": "standard", **opened}})
            self.assertEqual(refused.status, 422, refused.text)
            self.assertIn("/config/minIsolation", refused.text)
        self.check_leases_left(server)

    def test_an_image_is_what_the_root_is_and_stays_while_it_is_used(self):
        tree = self.folder / "tree"
        (tree / "bin").mkdir(parents=True)
        shutil.copy(Path(BERTH).parent / "berth-keeper", tree / "bin" / "keeper")
        server = self.serve()
        made = self.run_berth("--home", self.home, "image", "import", tree, "tiny")
        self.assertEqual(made.returncode, 0, made.stderr)
        tiny = self.environment(server, "tiny", image="tiny")
        run = runs.start(server, "/bin/keeper", "version", environmentId=tiny)
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        waiting = runs.start(server, "/bin/keeper", "serve-stdio", "/tmp/x", environmentId=tiny,
                             stdinOpen=True)
        runs.wait_until(server, waiting, {"running"})
        refused = self.run_berth("--home", self.home, "--yes", "image", "rm", "tiny", "--force")
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("image_in_use", refused.stderr)
        server.post(f"/api/heartbeat-runs/{waiting}/cancel", {})
        self.check_leases_left(server)
        removed = self.run_berth("--home", self.home, "--yes", "image", "rm", "tiny", "--force")
        self.assertEqual(removed.returncode, 0, removed.stderr)

    def import_with_user(self, user, name):
        """An image with only a shell, whose config names its user."""
        shell = []
        for file in files_of_a_shell():
            member = tarfile.TarInfo(file.lstrip("/"))
            content = Path(file).read_bytes()
            member.size, member.mode = len(content), 0o755
            shell.append((member, content))
        accounts = [("etc/passwd", b"root:x:0:0::/root:/bin/sh\napp:x:33:7::/srv/app:/bin/sh\n"),
                    ("etc/group", b"staff:x:50:app\nwww:x:7:\n")]
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for member, content in shell:
                tar.addfile(member, io.BytesIO(content))
        layers = [out.getvalue(), image_test.tar_of(accounts)]
        layout = image_test.Layout(self.folder / f"layout-{name}", layers, User=user)
        made = self.run_berth("--home", self.home, "image", "import", layout.folder, name)
        self.assertEqual(made.returncode, 0, made.stderr)

    WHO = ("while read key rest; do case $key in Uid:|Gid:|Groups:) echo $key $rest;; esac; done "
           "< /proc/self/status; echo $HOME; : > $HOME/made && echo writes")

    def who(self, server, environment):
        run = runs.start(server, "/bin/sh", "-c", self.WHO, environmentId=environment)
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        lines = runs.output(server, run).splitlines()
        return [line.split()[1] for line in lines[:2]] + [lines[2].split()[1:]] + lines[3:]

    def test_commands_run_as_the_user_of_the_image_unless_the_environment_says_otherwise(self):
        server = self.serve()
        self.import_with_user("app", "named")
        self.import_with_user("1234:50", "numbered")
        by_root = os.geteuid() == 0
        for image, config, wanted in [
                ("named", {}, ["33", "7", ["50"] if by_root else [], "/srv/app", "writes"]),
                ("numbered", {}, ["1234", "50", [], "/home/sandbox", "writes"]),
                ("named", {"user": "user"}, ["1000", "1000", [], "/home/sandbox", "writes"]),
                ("named", {"user": "root"}, ["0", "0", [], "/root", "writes"])]:
            with self.subTest(image=image, config=config):
                environment = self.environment(server, f"{image}-{config}", image=image, **config)
                self.assertEqual(self.who(server, environment), wanted)
        self.check_leases_left(server)

    def test_a_file_that_is_brought_in_belongs_to_the_user_of_the_image(self):
        server = self.serve()
        self.import_with_user("app", "named")
        environment = self.environment(server, "named", image="named")
        run = runs.start(server, "/bin/sh", "-c", "read line", environmentId=environment, stdinOpen=True)
        runs.wait_until(server, run, {"running"})
        lease = next(one["id"] for one in runs.leases(server) if one["heartbeatRunId"] == run)
        put = server.request("PUT", f"/api/environment-leases/{lease}/files?path=f", {"any": "bytes"})
        self.assertEqual(put.status, 201, put.text)
        look = server.post(f"/api/environment-leases/{lease}/exec",
                           {"argv": ["/bin/sh", "-c", "test -O f && echo mine; test -G f && echo ours"]})
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.assertEqual(look.json["stdoutText"], "mine\nours\n", look.text)
        self.check_leases_left(server)

    def test_a_user_that_the_image_does_not_know_is_refused_by_name(self):
        server = self.serve()
        self.import_with_user("ghost", "haunted")
        made = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": "haunted", "driver": "sandbox",
                            "config": {"provider": "linux", "image": "haunted"}})
        self.assertEqual(made.status, 422, made.text)
        for text in ("/config/image", "haunted", "ghost", "user: root"):
            self.assertIn(text, made.text)
        self.environment(server, "as root", image="haunted", user="root")

    def serve_file(self, text):
        """A web server on a loopback port that answers everything with the text."""
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(text)))
                self.end_headers()
                self.wfile.write(text.encode())

            def log_message(self, *_):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return server.server_address[1]

    @unittest.skipUnless(os.access("/usr/bin/curl", os.X_OK), "there is no curl to try with")
    def test_the_way_out_leads_where_the_rules_allow_and_nowhere_else(self):
        allowed, denied = self.serve_file("let out\n"), self.serve_file("not for you\n")
        server = self.serve()
        rules = {"allow": [f"127.0.0.1:{allowed}"]}
        web = self.environment(server, "web", egress=rules)
        script = ("echo $http_proxy; "
                  f"curl -s --noproxy '' http://127.0.0.1:{allowed}/; "
                  f"curl -s -o /dev/null -w '%{{http_code}}\n' --noproxy '' http://127.0.0.1:{denied}/; "
                  f"curl -s --noproxy '*' http://127.0.0.1:{denied}/ || echo no route")
        run = runs.start(server, "sh", "-c", script, environmentId=web)
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", runs.output(server, run, "stderr"))
        self.assertEqual(runs.output(server, run),
                         "http://127.0.0.1:3128\nlet out\n403\nno route\n")
        wrong = server.post(f"/api/companies/{server.company()}/environments",
                            {"name": "x", "driver": "sandbox",
                             "config": {"provider": "linux", "egress": {"allow": ["http://a"]}}})
        self.assertIn(wrong.status, (400, 422), wrong.text)
        self.assertIn("allow", wrong.text)
        self.check_leases_left(server)

    @unittest.skipUnless(os.access("/usr/bin/curl", os.X_OK), "there is no curl to try with")
    def test_a_run_reaches_this_server_and_goes_on_to_after_it_was_killed(self):
        first = self.serve()
        script = ("curl -s $BERTH_API_URL/api/health; echo; until [ -e go ]; do sleep 0.05; done; "
                  "until curl -sf -m 2 $BERTH_API_URL/api/health; do sleep 0.1; done")
        run = runs.start(first, "sh", "-c", script, environmentId=self.default_sandbox(first))
        runs.wait_until(first, run, {"running"})
        said = lambda: first.get(f"/api/heartbeat-runs/{run}/log?format=raw").text
        self.assertTrue(runs.eventually(lambda: len(said()) > 50))
        first.kill()
        again = self.serve()
        lease = runs.leases(again)[0]["id"]
        self.assertTrue(runs.eventually(lambda: again.post(
            f"/api/environment-leases/{lease}/exec", {"argv": ["touch", "go"]}).status == 200))
        ended = runs.wait_for_end(again, run)
        self.assertEqual(ended["status"], "succeeded", runs.output(again, run, "stderr"))
        self.assertEqual(runs.output(again, run).count('"ok"'), 2, runs.output(again, run))
        self.check_leases_left(again)

    def test_one_more_command_runs_in_a_sandbox_that_is_held(self):
        server = self.serve()
        run = runs.start(server, "sh", "-c", "echo here > file; exec sleep 100",
                         environmentId=self.default_sandbox(server))
        runs.wait_until(server, run, {"running"})
        lease = runs.leases(server)[0]["id"]
        listed = self.run_berth("--home", self.home, "sandbox", "ls")
        self.assertIn(lease, listed.stdout)
        counted = self.run_berth("--home", self.home, "sandbox", "stats", lease)
        self.assertGreater(json.loads(counted.stdout)[0]["processes"], 0, counted.stderr)
        done = self.run_berth("--home", self.home, "exec", lease, "--", "sh", "-c",
                              "until cat file; do sleep 0.1; done; id -u; echo err >&2; exit 5")
        self.assertEqual((done.returncode, done.stdout), (5, "here\n1000\n"), done.stderr)
        self.assertTrue(done.stderr.endswith("err\n"), done.stderr)
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.check_leases_left(server)
        over = server.post(f"/api/environment-leases/{lease}/exec", {"argv": ["true"]})
        self.assertEqual(over.status, 409, over.text)

    def test_what_root_inside_makes_of_what_it_was_born_with_is_told_whatever_its_files_are_called(self):
        server = self.serve()
        run = runs.start(server, "sleep", "100", environmentId=self.environment(server, "rooted", user="root"))
        runs.wait_until(server, run, {"running"})
        lease = f"/api/environment-leases/{runs.leases(server)[0]['id']}"
        script = ("mkdir /var/e; ln -sfn /var/e /sbin; rmdir /opt; ln -s /var/e /opt; chmod 666 /etc/passwd;"
                  r""" touch "bad$(printf '\377')" "two$(printf '\342\200\213')"; chown 1000 /etc/group && echo given""")
        done = server.post(f"{lease}/exec", {"argv": ["sh", "-c", script]})
        self.assertEqual(done.status, 200, done.text)
        expected = {("added", "/var/e"), ("changed", "/opt"), ("changed", "/etc/passwd"),
                    ("added", "/workspace/bad\\xff"), ("added", "/workspace/two\\xe2\\x80\\x8b")}
        if Path("/sbin").is_symlink():
            expected.add(("changed", "/sbin"))
        if done.json["stdoutText"] == "given\n":  # an ordinary user's root has no other user to give it to
            expected.add(("changed", "/etc/group"))
        told = lambda answer: {(one["change"], one["path"]) for one in answer["changes"]}
        self.assertEqual(told(server.get(f"{lease}/changes").json), expected)
        people = self.run_berth("--home", self.home, "sandbox", "diff", lease.rpartition("/")[2])
        self.assertEqual(told(json.loads(people.stdout)), expected, people.stderr)
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.check_leases_left(server)

    def test_a_command_in_a_held_sandbox_gives_every_byte_and_ends_as_it_ended(self):
        server = self.serve()
        run = runs.start(server, "sleep", "100", environmentId=self.default_sandbox(server))
        runs.wait_until(server, run, {"running"})
        lease = runs.leases(server)[0]["id"]

        def look(*words):
            return subprocess.run([BERTH, "--home", self.home, "exec", lease, *words], input=b"not for it",
                                  capture_output=True, env=clean_environment(), timeout=60, check=False)

        much = look("--", "seq", "1", "2000000")
        self.assertEqual((much.returncode, len(much.stdout)), (0, 14888896), much.stderr)
        for words, code, out in [(("--", "printf", "\\377\\000x"), 0, b"\xff\0x"),
                                 (("--", "cat"), 0, b""),
                                 (("--", "sh", "-c", "kill -9 $$"), 137, b""),
                                 (("--timeout", "300ms", "--", "sleep", "60"), 124, b"")]:
            done = look(*words)
            self.assertEqual((done.returncode, done.stdout), (code, out), (words, done.stderr))
        killed = look("--json", "--", "sh", "-c", "echo x; kill -9 $$")
        self.assertEqual(killed.returncode, 137, killed.stderr)
        told = json.loads(killed.stdout)
        self.assertEqual((told["stdoutText"], told["signal"], told["isTruncated"]), ("x\n", "SIGKILL", False))
        cut = look("--json", "--", "seq", "1", "2000000")
        self.assertTrue(json.loads(cut.stdout)["isTruncated"])
        named = server.post(f"/api/environment-leases/{lease}/exec", {"argv": ["env"], "env": {"A=B": "c"}})
        self.assertEqual(named.status, 400, named.text)
        self.assertIn("LANG=C.UTF-8", look("--", "env").stdout.decode())
        kept = sum(file.stat().st_size for file in self.home.glob("sandboxes/*/keeper/exec-*.out"))
        self.assertLess(kept, 5 * 1024 * 1024, "what nobody can ask for again takes no room")
        server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.check_leases_left(server)

    def test_the_sandbox_of_a_failed_run_is_kept_for_inspection_also_when_nobody_renews_it(self):
        hold_s = 5
        server = self.serve("--hold-seconds", str(hold_s))
        kept = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": "kept", "driver": "sandbox", "config": {"provider": "linux"},
                            "metadata": {"leasePolicy": "retain_on_failure"}})
        self.assertEqual(kept.status, 201, kept.text)
        run = runs.start(server, "sh", "-c", "echo evidence > note; false",
                         environmentId=kept.json["id"])
        self.assertEqual(runs.wait_for_end(server, run)["status"], "failed")
        lease = runs.leases(server)[0]
        self.assertEqual(lease["status"], "retained", lease)
        time.sleep(hold_s + 1)  # longer than it would live by itself
        seen = self.run_berth("--home", self.home, "exec", lease["id"], "--", "cat", "note")
        self.assertEqual(seen.stdout, "evidence\n", seen.stderr)
        self.run_berth("--home", self.home, "lease", "release", lease["id"])
        self.check_leases_left(server)

    def test_a_sandbox_is_kept_also_when_the_server_dies_before_it_has_renewed_it(self):
        hold_s = 10
        for step in ["finish.recorded", "sweep.kept"]:
            with self.subTest(step):
                home = self.folder / step
                first = self.serve("--hold-seconds", str(hold_s), home=home, BERTH_FAULT_POINT=step)
                kept = first.post(f"/api/companies/{first.company()}/environments",
                                  {"name": "kept", "driver": "sandbox", "config": {"provider": "linux"},
                                   "metadata": {"leasePolicy": "retain_on_failure"}})
                runs.start(first, "sh", "-c", "echo evidence > note; false", environmentId=kept.json["id"])
                self.assertEqual(first.process.wait(30), -signal.SIGKILL, f"{step} was not passed")
                died = time.monotonic()
                again = self.serve("--hold-seconds", str(hold_s), home=home)
                lease = runs.leases(again)[0]
                self.assertEqual(lease["status"], "retained", lease)
                # Longer than it would live by itself.
                time.sleep(max(0.0, died + hold_s + 1 - time.monotonic()))
                seen = self.run_berth("--home", home, "exec", lease["id"], "--", "cat", "note")
                self.assertEqual(seen.stdout, "evidence\n", seen.stderr)
                self.run_berth("--home", home, "lease", "release", lease["id"])
                self.check_leases_left(again, home)
                again.stop()

    def test_a_server_has_sandboxes_ready_before_the_first_run_asks(self):
        first = self.serve()
        environment = self.environment(first, "ready", poolSize=2)
        self.assertEqual(first.stop(), 0)
        again = self.serve()
        folder = self.home / "sandboxes"
        self.assertTrue(runs.eventually(lambda: len(list(folder.iterdir())) == 2), list(folder.iterdir()))
        run = runs.start(again, "echo", "here", environmentId=environment)
        self.assertEqual(runs.wait_for_end(again, run)["status"], "succeeded")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(again)))
        self.assertEqual(again.stop(), 0)
        self.assertTrue(runs.eventually(lambda: not list(folder.iterdir())), list(folder.iterdir()))

    def test_a_pool_follows_its_environment_without_a_run(self):
        server = self.serve()
        folder = self.home / "sandboxes"

        def check_ready(count):
            is_so = runs.eventually(lambda: len(list(folder.iterdir())) == count, limit_s=10)
            self.assertTrue(is_so, (count, list(folder.iterdir())))

        def change(**fields):
            changed = server.request("PATCH", f"/api/environments/{pooled}", fields)
            self.assertEqual(changed.status, 200, changed.text)

        pooled = self.environment(server, "pooled", poolSize=2)
        check_ready(2)
        change(config={"provider": "linux", "poolSize": 1})
        check_ready(1)
        # An environment without a pool has the same plan: what it takes is replaced.
        run = runs.start(server, "echo", "here", environmentId=self.default_sandbox(server))
        self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        check_ready(1)
        other = self.environment(server, "other", poolSize=2)
        check_ready(3)
        self.assertEqual(server.request("DELETE", f"/api/environments/{other}").status, 200)
        check_ready(1)
        change(status="archived")
        check_ready(0)

    def test_a_run_and_its_lease_tell_at_their_end_what_they_have_used(self):
        server = self.serve()
        busy = "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; head -c 3000000 /dev/zero | tail -c 1 > /tmp/x"
        for environment in [self.default_sandbox(server), None]:
            with self.subTest(environment):
                more = {"environmentId": environment} if environment else {}
                run = runs.start(server, "sh", "-c", busy, **more)
                ended = runs.wait_for_end(server, run)
                self.assertEqual(ended["status"], "succeeded", ended)
                used = ended["usageJson"]
                self.assertGreater(used["cpuMs"], 0, used)
                self.assertGreater(used["memoryBytesPeak"], 0, used)
                self.assertEqual(used["oomKills"], 0, used)
                self.assertIn("readBytes", used)
                self.check_leases_left(server)
                lease = next(row for row in runs.leases(server) if row["heartbeatRunId"] == run)
                self.assertEqual(lease["usage"]["cpuMs"], used["cpuMs"])

    def test_without_control_groups_a_run_tells_what_the_kernel_counts_of_its_command(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can start a server as somebody else")
        nobody = 65534
        os.chown(self.folder, nobody, nobody)
        os.chmod(self.folder, 0o755)
        if why_not := machine.why_no_sandbox(nobody):
            self.skipTest(f"for an ordinary user {why_not}")
        server = self.serve(user=nobody)
        # What is left behind is alive when the sandbox is measured, and has used next to nothing.
        busy = "sleep 100 & i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done"
        run = runs.start(server, "sh", "-c", busy, environmentId=self.default_sandbox(server))
        ended = runs.wait_for_end(server, run)
        self.assertEqual(ended["status"], "succeeded", ended)
        used = ended["usageJson"]
        self.assertGreater(used["memoryBytesPeak"], 0, used)
        self.assertGreater(used["cpuMs"], 0, used)
        self.assertGreaterEqual(used["cpuMs"], used["userMs"], used)

    def test_a_limit_in_the_config_that_is_not_in_force_is_refused_by_the_server(self):
        if os.geteuid() != 0 or not shutil.which("setpriv"):
            self.skipTest("only root can start a server as somebody else")
        nobody = 65534
        os.chown(self.folder, nobody, nobody)
        os.chmod(self.folder, 0o755)
        if why_not := machine.why_no_sandbox(nobody):
            self.skipTest(f"for an ordinary user {why_not}")
        if machine.limits_memory(nobody):
            self.skipTest("an ordinary user limits memory here")
        server = self.serve(user=nobody)
        demanding = self.environment(server, "demanding", memoryMb=256, pids=64)
        hog = "head -c 500000000 /dev/zero | tail -c 400000000 >/dev/null && echo took 400 MB"
        ended = runs.wait_for_end(server, runs.start(server, "sh", "-c", hog, environmentId=demanding))
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "isolation_too_weak"), ended)
        probe = server.post(f"/api/environments/{demanding}/probe", {})
        self.assertEqual((probe.status, probe.json["ok"]), (200, False), probe.text)
        for text in [json.dumps(ended), probe.text]:
            for part in ["memoryMb: the memory limit of 268435456 bytes is not in force",
                         "minIsolation: weak"]:
                self.assertIn(part, text)
        # A limit that the config does not name is not required, and minIsolation permits less. Then
        # the limit applies only to each single process.
        content = self.environment(server, "content", memoryMb=256, minIsolation="weak")
        for environment, status in [(self.default_sandbox(server), "succeeded"), (content, "failed")]:
            run = runs.start(server, "sh", "-c", hog, environmentId=environment)
            self.assertEqual(runs.wait_for_end(server, run)["status"], status, runs.output(server, run, "stderr"))
        lease = next(row for row in runs.leases(server) if row["environmentId"] == content)
        self.assertIn("process-memory", lease["isolation"]["features"])
        self.assertIn("memory limit of 268435456 bytes", json.dumps(lease["isolation"]["missing"]))
        self.check_leases_left(server)

    def group(self, name):
        """A separate control group, for the duration of the test."""
        group = machine.group_of("memory") / f"{name}-{os.getpid()}"
        group.mkdir()

        def is_removed():
            with contextlib.suppress(OSError):
                group.rmdir()
            return not group.exists()

        self.addCleanup(lambda: self.assertTrue(runs.eventually(is_removed), f"{group} is still there"))
        return group

    def test_a_server_in_other_control_groups_removes_those_of_a_killed_keeper(self):
        if os.geteuid() != 0 or not machine.limits_memory():
            self.skipTest("no control groups can be made here")
        former, latter = self.group("former"), self.group("latter")
        with inside(former):
            server = self.serve()
            run = runs.start(server, "sleep", "100", environmentId=self.default_sandbox(server))
            runs.wait_until(server, run, {"running"})
        server.kill()
        for pid, _ in runs.processes_with(f"berth-keeper hold {self.folder}"):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.assertNotEqual(list(former.glob("berth-*")), [], "the test has killed nothing")
        with inside(latter):
            again = self.serve()
        ended = runs.wait_for_end(again, run)
        self.assertEqual((ended["status"], ended["errorCode"]), ("interrupted", "process_lost"), ended)
        self.check_leases_left(again)
        self.assertTrue(runs.eventually(lambda: not list(former.glob("berth-*"))), list(former.glob("berth-*")))

    def test_the_death_of_the_server_at_every_step_leaves_no_sandbox(self):
        for step in STEPS_OF_A_SANDBOX:
            with self.subTest(step):
                home = self.folder / step.replace(":", "-")
                first = self.serve(home=home, BERTH_FAULT_POINT=step)
                run = runs.start(first, "sh", "-c", "echo begin; sleep 0.2; echo end",
                                 environmentId=self.default_sandbox(first))
                self.assertEqual(first.process.wait(30), -signal.SIGKILL, f"{step} was not passed")
                again = self.serve(home=home)
                ended = runs.wait_for_end(again, run)
                self.assertEqual(ended["status"], "succeeded", ended)
                self.assertEqual(runs.output(again, run), "begin\nend\n")
                self.check_leases_left(again, home)
                again.stop()


class CommandLine(unittest.TestCase):
    """`berth sandbox run`, as root and as an ordinary user; no server is involved."""

    def sandbox(self, *words, user=None, stdin="", variables=None, **more):
        return subprocess.run([*as_user(user), BERTH, "sandbox", "run", *words], input=stdin,
                              capture_output=True, text=True, timeout=60, check=False,
                              env=clean_environment(HOME="/nonexistent", **(variables or {})), **more)

    def users(self):
        yield None
        if os.geteuid() == 0 and os.access(BERTH, os.X_OK):
            yield 65534

    def each_user(self):
        for user in self.users():
            with self.subTest(user=user):
                if why_not := machine.why_no_sandbox(user):
                    self.skipTest(f"for user {user} {why_not}")
                yield user

    def test_it_may_make_as_many_files_as_what_it_may_write_can_hold(self):
        for user in self.each_user():
            for flags, files in [((), 750000), (("--disk", "300"), 76800),
                                 (("--disk", "300", "--inodes", "6000"), 6000)]:
                done = self.sandbox("-q", *flags, "--", "stat", "-f", "-c", "%c", "/", user=user)
                self.assertEqual((done.returncode, done.stdout.strip()), (0, str(files - files // 3)), done.stderr)
        done = self.sandbox("--inodes", "7", "--", "true")
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("--inodes: must be from 1024", done.stderr)

    def test_streams_and_exit_code_pass_through_and_nothing_is_left(self):
        runtime = Path(self.enterContext(tempfile.TemporaryDirectory()))
        runtime.chmod(0o777)
        own = {"XDG_RUNTIME_DIR": str(runtime)}
        for user in self.each_user():
            done = self.sandbox("-q", "--", "sh", "-c", "cat; echo err >&2; exit 7", user=user, stdin="in\n",
                                variables=own)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "in\n", "err\n"))
            done = self.sandbox("--", "sh", "-c", "kill -9 $$", user=user, variables=own)
            self.assertEqual(done.returncode, 137, done.stderr)
            self.assertEqual(list(runtime.iterdir()), [])

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_a_closed_stream_is_empty_or_takes_everything(self):
        def closed(redirections, script):
            berth = [BERTH, "sandbox", "run", "-q", "--", "sh", "-c", script]
            return subprocess.run(["sh", "-c", f'exec "$@" {redirections}', "sh", *berth],
                                  capture_output=True, text=True, timeout=60, check=False,
                                  env=clean_environment(HOME="/nonexistent"))

        no_input = closed("<&-", "read x; echo got:$x")
        self.assertEqual((no_input.returncode, no_input.stdout), (0, "got:\n"), no_input.stderr)
        no_output = closed(">&-", "echo out; echo err >&2")
        self.assertEqual((no_output.returncode, no_output.stdout, no_output.stderr), (0, "", "err\n"))
        nothing = closed("<&- >&- 2>&-", "cat; echo out; echo err >&2; exit 7")
        self.assertEqual((nothing.returncode, nothing.stdout, nothing.stderr), (7, "", ""))

    def test_a_limit_that_is_not_in_force_is_refused_unless_little_will_do(self):
        for user in self.each_user():
            asked = self.sandbox("--memory", "64", "--", "echo", "ran", user=user)
            if machine.limits_memory(user):
                self.assertEqual((asked.returncode, asked.stdout), (0, "ran\n"), asked.stderr)
                self.assertNotIn("memory limit", asked.stderr)
                continue
            self.assertEqual((asked.returncode, asked.stdout), (125, ""), asked.stderr)
            for text in ("--memory", "isolation_too_weak", "fix:"):
                self.assertIn(text, asked.stderr)
            weak = ["--memory", "64", "--min-isolation", "weak", "--", "echo", "ran"]
            told = self.sandbox(*weak, user=user)
            self.assertEqual((told.returncode, told.stdout), (0, "ran\n"), told.stderr)
            self.assertIn("berth: not in force: memory limit of 67108864 bytes", told.stderr)
            silent = self.sandbox("-q", *weak, user=user)
            self.assertEqual((silent.returncode, silent.stdout, silent.stderr), (0, "ran\n", ""))

    def test_what_is_wrong_in_the_flags_is_told_from_what_the_command_says(self):
        for flags in [("--memory", "0"), ("--weaken", "foo"), ("--allow", "x", "--net", "host"),
                      ("--timeout", "25h")]:
            wrong = self.sandbox(*flags, "--", "true")
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            self.assertIn(flags[0] + ": ", wrong.stderr)
        absent = self.sandbox("--image", "nothing-of-this-name", "--", "true")
        self.assertEqual(absent.returncode, 125, absent.stderr)

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_what_a_flag_takes_away_is_mended_by_leaving_out_the_flag(self):
        told = self.sandbox("--net", "host", "--weaken", "ptrace", "--", "true")
        self.assertEqual(told.returncode, 0, told.stderr)
        for remedy in ("fix: leave out --net host", "fix: leave out --weaken ptrace"):
            self.assertIn(remedy, told.stderr)

    def test_a_low_limit_of_processes_on_this_machine_is_no_obstacle(self):
        def lower():
            resource.setrlimit(resource.RLIMIT_NPROC, (1000, 1000))

        for user in self.each_user():
            done = self.sandbox("--", "echo", "made", user=user, preexec_fn=lower)
            self.assertEqual((done.returncode, done.stdout), (0, "made\n"), done.stderr)

    def test_what_it_may_write_is_all_that_it_can_write(self):
        fill = ("for f in /workspace /tmp /dev/shm; do head -c 20M /dev/zero > $f/x; done; "
                "cat /workspace/x /tmp/x /dev/shm/x | wc -c")
        for user in self.each_user():
            done = self.sandbox("--disk", "9", "--", "sh", "-c", fill, user=user)
            written = int(done.stdout)
            self.assertLessEqual(written, 9 * 1024 * 1024 + 65536, done.stderr)
            self.assertGreater(written, 8 * 1024 * 1024, done.stderr)

    def test_a_limit_of_time_and_a_command_that_is_missing_have_their_codes(self):
        for user in self.each_user():
            late = self.sandbox("-q", "--timeout", "300ms", "--", "sleep", "9", user=user)
            self.assertEqual(late.returncode, 124)
            self.assertIn("Timed out after 300 ms", late.stderr)
            missing = self.sandbox("--", "no-such-command", user=user)
            self.assertEqual(missing.returncode, 127)
            self.assertIn("no-such-command", missing.stderr)

    def test_it_has_no_network_and_not_our_files(self):
        for user in self.each_user():
            done = self.sandbox("--", "sh", "-c", f"ls {BERTH}; cat /proc/net/dev | wc -l", user=user)
            self.assertIn("No such file", done.stderr)
            self.assertEqual(done.stdout, "3\n", done.stdout)

    @staticmethod
    def words_of(process):
        try:
            return process.read_bytes().decode(errors="replace")
        except OSError:
            return ""

    def without_user_namespaces(self):
        """Starts berth not as root, in a user namespace that cannot create more."""
        forbid = ("echo 0 > /proc/sys/user/max_user_namespaces || exit 99; "
                  'exec setpriv --inh-caps=-all --ambient-caps=-all -- "$0" "$@"')
        inside = ["unshare", "--user", "--map-user=1000", "--map-group=1000", "--keep-caps", "sh", "-c", forbid]

        def berth(*words):
            return subprocess.run([*inside, BERTH, *words], capture_output=True, text=True, timeout=60,
                                  check=False, cwd="/", env=clean_environment(HOME="/nonexistent"))
        return berth

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_where_user_namespaces_are_forbidden_it_is_refused_with_the_command_that_allows_them(self):
        berth = self.without_user_namespaces()
        refused = berth("sandbox", "run", "--", "true")
        self.assertEqual(refused.returncode, 125, refused.stderr)
        self.assertIn("sandbox_unavailable", refused.stderr)
        self.assertIn("user.max_user_namespaces", refused.stderr)
        with tempfile.TemporaryDirectory() as home:
            found = json.loads(berth("--json", "--home", home, "doctor").stdout)
        namespaces = next(one for one in found if one["check"] == "user namespaces")
        self.assertEqual((namespaces["verdict"], namespaces["remedy"]),
                         ("warn", "sysctl -w user.max_user_namespaces=15000"))
        said = [one["says"] for one in found if one["check"] == "sandbox"]
        self.assertTrue(said[0].startswith("cannot be made"), said)
        self.assertTrue(any("its isolation is minimal" in one for one in said), said)

    def test_root_of_a_user_namespace_only_has_a_sandbox_as_an_ordinary_user_has(self):
        for user in self.each_user():
            around = [*as_user(user), "unshare", "--user", "--map-root-user"]
            done = subprocess.run([*around, BERTH, "sandbox", "run", "--", "id", "-u"], capture_output=True,
                                  text=True, timeout=60, check=False, cwd="/",
                                  env=clean_environment(HOME="/nonexistent"))
            if user is None and os.geteuid() == 0:
                # The only id that it could map is this machine's root.
                self.assertEqual(done.returncode, 125, done.stderr)
                for text in ("sandbox_unavailable", "outside of that user namespace"):
                    self.assertIn(text, done.stderr)
                continue
            self.assertEqual((done.returncode, done.stdout), (0, "1000\n"), done.stderr)
            self.assertIn("not in force: uid-range", done.stderr)

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    @unittest.skipUnless(machine.has_landlock(), "this kernel has no Landlock")
    def test_where_user_namespaces_are_forbidden_the_least_is_made_for_who_asks_for_it(self):
        berth = self.without_user_namespaces()
        bait = Path(self.enterContext(tempfile.TemporaryDirectory())) / "bait"
        bait.parent.chmod(0o755)
        bait.write_text("secret\n")
        left = f"{os.getpid()}9.25"
        done = berth("sandbox", "run", "-q", "--min-isolation", "minimal", "--", "sh", "-c",
                     f"setsid sleep {left} & pwd; echo $HOME; echo x > f; mktemp; cat f; cat {bait}; ls /home; "
                     "python3 -c 'import socket; socket.socket(socket.AF_UNIX)'; exit 3")
        self.assertEqual(done.returncode, 3, done.stderr)
        cwd, home, scratch, written = done.stdout.splitlines()
        self.assertEqual(written, "x")
        self.assertTrue(cwd.endswith("/box/workspace") and home.endswith("/box/home/sandbox"), done.stdout)
        self.assertIn("/box/tmp/", scratch)
        self.assertFalse(Path(cwd).exists(), cwd)
        self.assertEqual(done.stderr.count("Permission denied"), 3, done.stderr)
        self.assertEqual([one for one in Path("/proc").glob("[0-9]*/cmdline") if left in self.words_of(one)], [])
        for words, why in [(("--bind", "/usr:/data:ro"), "folder of the host"),
                           (("--user", "root"), "root"), (("--allow", "a.test"), "egress needs namespaces")]:
            refused = berth("sandbox", "run", "--min-isolation", "minimal", *words, "--", "true")
            self.assertEqual(refused.returncode, 125, refused.stderr)
            self.assertIn(why, refused.stderr)

    def test_folders_of_the_machine_are_seen_only_as_they_are_given(self):
        for user in self.each_user():
            with tempfile.TemporaryDirectory() as folder:
                Path(folder).chmod(0o755)
                if user:
                    os.chown(folder, user, user)
                (Path(folder) / "given").write_text("given\n")
                done = self.sandbox("--bind", f"{folder}:/data", "--bind", f"{folder}:/kept:ro", "--", "sh", "-c",
                                    "cat /data/given; echo new > /data/made; echo no > /kept/made2", user=user)
                self.assertEqual(done.stdout, "given\n", done.stderr)
                self.assertIn("Read-only file system", done.stderr)
                self.assertEqual(sorted(os.listdir(folder)), ["given", "made"])
            wrong = self.sandbox("--bind", "/usr:relative", "--", "true", user=user)
            self.assertEqual(wrong.returncode, 2, wrong.stderr)
            twice = self.sandbox("--bind", "/usr:/data:ro", "--bind", "/etc:/data:ro", "--", "true", user=user)
            self.assertEqual(twice.returncode, 2, twice.stderr)
            self.assertIn("/usr is at /data already", twice.stderr)
            nowhere = self.sandbox("--bind", "/usr:/etc/passwd:ro", "--", "true", user=user)
            self.assertEqual(nowhere.returncode, 125, nowhere.stderr)
            self.assertIn("fix: ", nowhere.stderr)

    def test_it_reaches_what_it_is_allowed_and_nothing_else(self):
        class Here(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", "3")
                self.end_headers()
                self.wfile.write(b"yes")

            def log_message(self, *words):
                pass

        here = http.server.HTTPServer(("127.0.0.1", 0), Here)
        threading.Thread(target=here.serve_forever, daemon=True).start()
        self.addCleanup(here.server_close)
        self.addCleanup(here.shutdown)
        port = here.server_address[1]
        ask = ["--", "python3", "-c", "import urllib.request as u\n"
               f"try: print(u.urlopen(u.Request('http://127.0.0.1:{port}/'), timeout=10).read())\n"
               "except OSError as error: print(type(error).__name__, error)"]
        # The proxy is named explicitly: python would not use it for a loopback address.
        by_proxy = ["--env", "no_proxy=", "--env", "NO_PROXY="]
        for user in self.each_user():
            for flags, wanted in [([], "URLError"), (["--allow", "example.org"], "HTTPError"),
                                  (["--allow", f"127.0.0.1/32:{port}"], "b'yes'"),
                                  (["--allow", f"127.0.0.1/32:{port}", "--deny", "127.0.0.1"], "HTTPError")]:
                done = self.sandbox(*flags, *by_proxy, *ask, user=user)
                self.assertTrue(done.stdout.startswith(wanted), f"{flags}: {done.stdout} {done.stderr}")

    def test_a_signal_ends_the_command_and_is_told_by_the_exit_code(self):
        for user in self.each_user():
            for number, code in [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]:
                process = subprocess.Popen([*as_user(user), BERTH, "sandbox", "run", "--", "sh", "-c",
                                            "echo ready; sleep 100"],
                                           stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True,
                                           env=clean_environment(HOME="/nonexistent"))
                self.assertEqual(process.stdout.readline(), "ready\n")
                process.send_signal(number)
                self.assertEqual(process.wait(30), code)
                process.stdout.close()

    def test_a_reader_that_goes_away_ends_the_command_without_a_word(self):
        for user in self.each_user():
            process = subprocess.Popen([*as_user(user), BERTH, "sandbox", "run", "-q", "--", "yes"],
                                       stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                       env=clean_environment(HOME="/nonexistent"))
            self.assertEqual(process.stdout.read(2), b"y\n")
            process.stdout.close()
            said = process.stderr.read()
            process.stderr.close()
            self.assertEqual((process.wait(30), said), (128 + signal.SIGPIPE, b""))

    @unittest.skipIf(WHY_NOT, WHY_NOT)
    def test_a_folder_has_a_remedy_where_it_cannot_be_put(self):
        with tempfile.TemporaryDirectory() as folder:
            for target, remedy in [("/etc/passwd", "of the same kind as the source"),
                                   ("/usr/lib/not-there", "outside of what is read-only")]:
                refused = self.sandbox("--bind", f"{folder}:{target}", "--", "true")
                self.assertEqual(refused.returncode, 125, refused.stderr)
                self.assertIn(f"bind target '{target}'", refused.stderr)
                self.assertIn(remedy, refused.stderr)


if __name__ == "__main__":
    unittest.main()
