"""What a plugin may use of shared space: its own folder, the activities, the state."""

import json

import plugin_leaks_test
from plugins_test import PluginTest
from runs_support import eventually, start, wait_for_end

# Fills its own folder as soon as a file beside its program requests it.
GREEDY = r'''#!/usr/bin/env python3
import json, os, sys, tempfile, threading, time
def fill():
    for number in range(40):
        with open(os.path.join(tempfile.gettempdir(), "fill%d" % number), "wb") as out:
            out.write(b"x" * (1 << 20))
    time.sleep(1000)
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = {"ok": True, "supportedMethods": ["health"]} if message["method"] == "initialize" else {"status": "ok"}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
    if message["method"] == "initialize":
        threading.Thread(target=fill, daemon=True).start()
'''

# Answers once, and never again: each later start ends at once, with its number.
FRAIL = r'''#!/usr/bin/env python3
import json, os, sys, tempfile
count = os.path.join(tempfile.gettempdir(), "starts")
number = 1 + (int(open(count).read()) if os.path.exists(count) else 0)
open(count, "w").write(str(number))
if number > 1:
    sys.exit("this was start %d" % number)
message = json.loads(sys.stdin.readline())
result = {"ok": True, "supportedMethods": []}
print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
sys.exit("this was start 1")
'''

FLOOD = r'''
    if "flood" in args:
        for number in range(600):
            while number - len(replies) > 20:
                time.sleep(0.01)
            send({"id": 10000 + number, "method": "events.emit", "params":
                  {"name": "flood", "companyId": p["companyId"], "payload": {"number": number}}, **under})
        while len(replies) < 600:
            time.sleep(0.05)
        refused = [reply["error"] for reply in replies if "error" in reply]
        return {"exitCode": 0, "signal": None, "timedOut": False, "stderr": "",
                "stdout": "%d refused, %s" % (len(refused), refused[0]["message"])}
    done = subprocess.run('''


class Limits(PluginTest):
    def package_of(self, worker):
        package = self.write_provider()
        (package / "worker").write_text(worker)
        manifest = json.loads((package / "manifest.json").read_text())
        del manifest["environmentDrivers"]
        manifest["capabilities"] = ["plugin.state.read"]
        (package / "manifest.json").write_text(json.dumps(manifest))
        return package

    def test_the_last_error_of_a_plugin_is_its_newest(self):
        server = self.serve()
        server.post("/api/plugins/install", {"packageName": str(self.package_of(FRAIL)), "isLocalPath": True})
        shown = lambda: server.get("/api/plugins/test.boxes").json
        self.assertTrue(eventually(lambda: "this was start 3" in (shown()["lastError"] or "")), shown())

    def test_a_long_answer_about_a_sandbox_is_refused(self):
        server = self.serve()
        package = self.write_provider()
        worker, honest = (package / "worker").read_text(), '"leak": p["config"]}'
        self.assertIn(honest, worker)
        (package / "worker").write_text(worker.replace(honest, '"long": "x" * 300000}'))
        self.install(server, package)
        run = start(server, "true", environmentId=self.environment(server).json["id"])
        ended = wait_for_end(server, run)
        self.assertEqual((ended["status"], ended["errorCode"]), ("failed", "plugin_protocol"), ended)
        self.assertIn("the metadata has more than 262144 bytes", ended["error"])
        self.assertTrue(eventually(lambda: not self.boxes()), "its sandbox is left behind")

    def test_a_plugin_that_fills_its_folder_is_stopped_with_a_reason_and_a_remedy(self):
        server = self.serve(BERTH_PLUGIN_FILES_MB="8")
        self.install(server, self.package_of(GREEDY))
        shown = lambda: server.get("/api/plugins/test.boxes").json
        self.assertTrue(eventually(lambda: shown()["status"] == "error"), shown())
        self.assertIn("holds more than 8 MB", shown()["lastError"])
        self.assertIn("plugin_files_mb", shown()["lastError"])
        # Enabled again with a full folder, it ends in the same way.
        server.post("/api/plugins/test.boxes/enable", {})
        self.assertTrue(eventually(lambda: shown()["status"] == "error"), shown())


class Floods(plugin_leaks_test.Leaks):
    # The base class's tests run only there.
    for name in [name for name in dir(plugin_leaks_test.Leaks) if name.startswith("test_")]:
        locals()[name] = None
    del name

    def test_a_flood_of_events_is_limited_and_others_write_on(self):
        original = plugin_leaks_test.LEAKY
        plugin_leaks_test.LEAKY = (
            original.replace("    done = subprocess.run(", FLOOD, 1)
            .replace("heard = [", "replies = []\nheard = [", 1)
            .replace("        threading.Thread(target=serve, args=(message,), daemon=True).start()",
                     "        threading.Thread(target=serve, args=(message,), daemon=True).start()\n"
                     "    elif message.get(\"id\", 0) >= 10000:\n        replies.append(message)"))
        self.addCleanup(setattr, plugin_leaks_test, "LEAKY", original)
        server = self.open({})
        run = self.start(server, "A", "echo flood")
        self.assertEqual(self.end_of(server, "A", run).json["status"], "succeeded")
        log = self.call(server, "operator of A", "GET", f"/api/heartbeat-runs/{run}/log?format=raw").text
        self.assertIn("too often", log)
        self.assertGreater(int(log.split(" refused")[0]), 300, log)
        other = self.start(server, "B", "echo fine")
        self.assertEqual(self.end_of(server, "B", other).json["status"], "succeeded")
        company = self.places["B"][0]
        written = self.call(server, "root", "GET", f"/api/companies/{company}/activity?limit=100").text
        self.assertIn("plugin.test.leaky.did", written)
