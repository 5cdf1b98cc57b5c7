"""The box around a plugin's worker: what a hostile plugin can reach on the server that started it."""

import http.server
import json
import os
import shutil
import threading

from plugins_test import PluginTest
from runs_support import eventually

ORDINARY = 54321

# Attacks as soon as it is started, and records what worked.
EVIL = r'''#!/usr/bin/env python3
import json, os, socket, sys, urllib.request
STATE, HOME, PORT = "@STATE@", "@HOME@", @PORT@
def post():
    url = "http://127.0.0.1:%d/api/companies" % PORT
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    company = json.load(opener.open(url, timeout=5))[0]["id"]
    body = json.dumps({"command": "touch", "args": [STATE + "/escaped"]}).encode()
    run = urllib.request.Request("%s/%s/runs" % (url, company), body, {"Content-Type": "application/json"})
    return opener.open(run, timeout=5).status
def through_proxy():
    with socket.create_connection(("127.0.0.1", 3128), 5) as proxy:
        proxy.sendall(b"GET http://127.0.0.1:%d/api/companies HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n\r\n" % (PORT, PORT))
        answer = proxy.recv(4096)
    if not answer.startswith(b"HTTP/1.1 200"):
        raise PermissionError(answer[:200])
    return answer.decode()
def by_name():
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    return opener.open("http://localhost:%d/api/companies" % PORT, timeout=5).status
def names_in_home():
    # The folders that lead to the worker's own are there, and nothing else.
    names = set(os.listdir(HOME)) - {"plugin-exchange", "plugin-files", "plugins"}
    if not names:
        raise PermissionError("nothing but the way to its own folders")
    return names
report = {}
for name, attempt in {
        "a run": post, "the API through the proxy": through_proxy, "the API by name": by_name,
        "the master key": lambda: open(HOME + "/master.key", "rb").read().hex(),
        "the database": lambda: len(open(HOME + "/berth.db", "rb").read()),
        "the administrator's token": lambda: open(HOME + "/admin.token").read(),
        "the home": names_in_home}.items():
    try:
        report[name] = "OPEN " + str(attempt())
    except Exception as error:
        report[name] = "closed: " + repr(error)
with open(STATE + "/report.new", "w") as out:
    json.dump(report, out)
os.rename(STATE + "/report.new", STATE + "/report")
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"ok": True, "supportedMethods": []} if message["method"] == "initialize" else None
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''

# Requests two addresses from the proxy as soon as it is started, with data that must not be logged.
ASKS = r'''#!/usr/bin/env python3
import json, socket, sys
def ask(host, port):
    with socket.create_connection(("127.0.0.1", 3128), 5) as proxy:
        proxy.sendall(("GET http://%s:%d/path?key=@HIDDEN@ HTTP/1.1\r\nHost: %s:%d\r\nConnection: close\r\n"
                       "Authorization: Bearer @HIDDEN@\r\n\r\n" % (host, port, host, port)).encode())
        while proxy.recv(4096):
            pass
ask("127.0.0.1", @PORT@)
ask("169.254.169.254", 80)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"ok": True, "supportedMethods": []} if message["method"] == "initialize" else None
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
'''
HIDDEN = "never-in-a-log"


class Quiet(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, format, *arguments):
        pass


class Box(PluginTest):
    def install_evil(self, server):
        package = self.write_provider()
        text = EVIL.replace("@STATE@", str(self.state)).replace("@HOME@", str(server.home))
        (package / "worker").write_text(text.replace("@PORT@", str(server.port)))
        manifest = json.loads((package / "manifest.json").read_text())
        del manifest["environmentDrivers"]
        manifest["capabilities"] = ["plugin.state.read"]
        (package / "manifest.json").write_text(json.dumps(manifest))
        return self.install(server, package)

    def attacked(self):
        self.assertTrue(eventually((self.state / "report").exists))
        return json.loads((self.state / "report").read_text())

    def check(self, server):
        view = self.install_evil(server)
        self.assertEqual(view["isolation"], "strong", view)
        report = self.attacked()
        self.assertEqual({name: said for name, said in report.items() if said.startswith("OPEN")}, {})
        self.assertEqual(server.get(f"/api/companies/{server.company()}/heartbeat-runs").json, [])
        self.assertFalse((self.state / "escaped").exists())

    def test_a_plugin_of_a_server_of_root_reaches_neither_its_api_nor_its_home(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.check(self.serve())

    def test_a_plugin_of_an_ordinary_user_s_server_reaches_neither_its_api_nor_its_home(self):
        if os.geteuid() != 0:
            self.skipTest("needs root, to become somebody else")
        home = self.folder / "theirs"
        home.mkdir()
        shutil.chown(home, ORDINARY, ORDINARY)
        self.check(self.serve(home=home, user=ORDINARY))

    def test_an_administrator_says_what_a_plugin_may_reach_and_the_box_is_shown(self):
        server = self.serve()
        made = self.install(server, self.write_provider())
        self.assertEqual(made["box"]["level"], made["isolation"])
        self.assertIn("seccomp", made["box"]["features"])
        changed = server.request("PUT", "/api/plugins/test.boxes/egress", {"allow": ["10.0.0.0/8:443"]})
        self.assertEqual((changed.status, changed.json["egress"]["allow"]), (200, ["10.0.0.0/8:443"]), changed.text)
        wrong = server.request("PUT", "/api/plugins/test.boxes/egress", {"allow": ["10.0.0.0/99"]})
        self.assertEqual((wrong.status, wrong.json["code"]), (400, "validation_failed"), wrong.text)
        listed = self.run_berth("plugin", "list", BERTH_URL=f"http://127.0.0.1:{server.port}")
        self.assertIn("strong", listed.stdout)

    def test_an_administrator_sees_what_a_plugin_has_asked_to_reach(self):
        target = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Quiet)
        self.addCleanup(target.server_close)
        threading.Thread(target=target.serve_forever, daemon=True).start()
        self.addCleanup(target.shutdown)
        port = target.server_address[1]
        server = self.serve()
        package = self.write_provider()
        (package / "worker").write_text(ASKS.replace("@PORT@", str(port)).replace("@HIDDEN@", HIDDEN))
        self.install(server, package)
        path = "/api/plugins/test.boxes/egress"
        rule = f"127.0.0.1/32:{port}"
        self.assertEqual(server.request("PUT", path, {"allow": [rule]}).status, 200)
        self.assertEqual(server.post("/api/plugins/test.boxes/restart", {}).json["status"], "ready")
        found = server.get(path)
        self.assertEqual(found.status, 200, found.text)
        self.assertEqual(found.json["allow"], [rule])
        seen = [(row["host"], row["port"], row["path"], row["decision"]) for row in found.json["entries"]]
        # Of both workers, oldest first.
        self.assertEqual(seen, [("127.0.0.1", port, "/path", "denied"), ("169.254.169.254", 80, "/path", "denied"),
                                ("127.0.0.1", port, "/path", "allowed"), ("169.254.169.254", 80, "/path", "denied")])
        self.assertNotIn(HIDDEN, found.text)
        self.assertEqual(len(server.get(f"{path}?limit=1").json["entries"]), 1)
        self.assertEqual(server.get(f"{path}?limit=1001").status, 400)
        url = f"http://127.0.0.1:{server.port}"
        shown = self.run_berth("plugin", "egress", "test.boxes", BERTH_URL=url)
        self.assertEqual([row["decision"] for row in json.loads(shown.stdout)],
                         ["denied", "denied", "allowed", "denied"], shown.stderr)
        self.assertEqual(server.get(path).json["allow"], [rule], "a look changes nothing")
        ended = self.run_berth("plugin", "egress", "test.boxes", "--none", BERTH_URL=url)
        self.assertEqual((ended.returncode, server.get(path).json["allow"]), (0, []), ended.stderr)

    def test_a_plugin_starts_in_no_weaker_box_than_the_server_wants(self):
        server = self.serve(BERTH_PLUGIN_MIN_ISOLATION="strong")
        self.assertEqual(self.install(server, self.write_provider())["isolation"], "strong")
