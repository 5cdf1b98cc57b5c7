"""Interactive commands in plugin sandboxes: logins, byte streams, setups."""

import json
import os
import pty
import subprocess

from plugins_test import FAKE, PROVIDER, PluginTest
from runs_support import eventually, start, unfinished_leases, wait_until
from support import BERTH, BerthTest, clean_environment

# The provider of plugins_test.py with a terminal and byte streams, each to a real process. Each
# open one has its own file.
LIVE = r'''
import base64, pty, threading
routes, saying = {}, threading.Lock()
def say(message):
    with saying:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()
def mark(route):
    return os.path.join(STATE, "routes", route)
def pump(name, ids, fd, process):
    while True:
        try:
            piece = os.read(fd, 65536)
        except OSError:  # what a terminal says when nobody has it open
            piece = b""
        if not piece:
            break
        chunk = piece.decode("utf-8", "replace") if name == "loginPty.output" else base64.b64encode(piece).decode()
        say({"jsonrpc": "2.0", "method": name, "params": {**ids, "chunk": chunk}})
    name = name.split(".")[0] + ".exit"
    say({"jsonrpc": "2.0", "method": name, "params": {**ids, "exitCode": process.wait(), "transportClosed": False}})
def open_route(method, p):
    ids = {"hostRouteId": p["hostRouteId"], "workerSessionId": "of-" + p["hostRouteId"]}
    if method == "loginPtyOpen":
        reads, slave = pty.openpty()
        script = "printf 'Code for %s: ' " + p["loginCommandKey"] + "; read -r code; echo token sk-$code"
        process = subprocess.Popen(["sh", "-c", script], stdin=slave, stdout=slave, stderr=slave,
                                   start_new_session=True)
        os.close(slave)
        writes, name = reads, "loginPty.output"
    else:
        process = subprocess.Popen(p["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        reads, writes, name = process.stdout.fileno(), process.stdin.fileno(), "duplexChannel.data"
    open(mark(p["hostRouteId"]), "w").close()
    routes[ids["workerSessionId"]] = (process, writes)
    threading.Thread(target=pump, args=(name, ids, reads, process), daemon=True).start()
    return ids
def live(method, p):
    if method.endswith("Open"):
        return open_route(method, p)
    session = "of-" + p["hostRouteId"] if method.endswith("Close") else p["workerSessionId"]
    process, writes = routes[session]
    if method == "loginPtyInput":
        os.write(writes, p["data"].encode())
    elif method == "duplexChannelWrite":
        os.write(writes, base64.b64decode(p["data"]))
    else:
        process.kill()
    if method.endswith("Close"):
        os.remove(mark(p["hostRouteId"]))
        return {"hostRouteId": p["hostRouteId"], "workerSessionId": session}
def serve(message):
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    is_last = message["method"] == "shutdown"
    try:
        reply["result"] = None if is_last else answer(message["method"], message.get("params") or {})
    except Exception as error:
        reply["error"] = {"code": -32002, "message": repr(error)}
    say(reply)
    if is_last:
        os._exit(0)
for line in sys.stdin:
    message = json.loads(line)
    if "method" in message and "id" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
'''
METHODS = [prefix + verb for prefix, verbs in (("loginPty", ("Open", "Input", "Stop", "Close")),
                                               ("duplexChannel", ("Open", "Write", "Stop", "Close")))
           for verb in verbs]


class Live(PluginTest):
    def write_provider(self, *args, **options):
        package = super().write_provider(*args, **options)
        text = PROVIDER[:PROVIDER.index("for line in sys.stdin:")] + LIVE
        text = text.replace("@STATE@", str(self.state)).replace("raise KeyError(method)", "return live(method, p)")
        (package / "worker").write_text(text.replace("METHODS + [", f"METHODS + {json.dumps(METHODS)} + ["))
        manifest = json.loads((package / "manifest.json").read_text())
        manifest["environmentDrivers"][0].update(supportsLoginPty=True,
                                                 sandboxCapabilities={"duplexCommandStream": True})
        (package / "manifest.json").write_text(json.dumps(manifest))
        return package

    def setUp(self):
        super().setUp()
        (self.state / "routes").mkdir()
        (self.state / "routes").chmod(0o777)
        self.server = self.serve()
        self.install(self.server, self.write_provider())
        environment = self.environment(self.server).json["id"]
        self.run_id = start(self.server, "sleep", "1000", environmentId=environment)
        wait_until(self.server, self.run_id, {"running"})
        self.lease = unfinished_leases(self.server)[0]["id"]

    def open_routes(self):
        return os.listdir(self.state / "routes")

    def words(self, *words):
        return [BERTH, "exec", self.lease, "--url", f"http://127.0.0.1:{self.server.port}", *words]

    def exec(self, *words, stdin=""):
        return subprocess.run(self.words(*words), input=stdin, capture_output=True, text=True,
                              env=clean_environment(), timeout=60, check=False)

    def begin(self, *words):
        process = subprocess.Popen(self.words(*words), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, env=clean_environment())
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def test_a_login_tells_its_token_to_whoever_began_it_and_to_nobody_else(self):
        done = self.exec("--login", "claude", stdin="c0de\n")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("Code for claude: ", done.stdout)
        self.assertIn("token sk-c0de", done.stdout)
        self.assertTrue(eventually(lambda: not self.open_routes()), self.open_routes())
        company = self.server.company()
        activity = self.server.get(f"/api/companies/{company}/activity").text
        self.assertIn("environment.lease_login", activity)
        for path in (f"/api/companies/{company}/activity", "/api/plugins/test.boxes/logs?limit=500",
                     f"/api/environment-leases/{self.lease}", f"/api/heartbeat-runs/{self.run_id}/events"):
            self.assertNotIn("c0de", self.server.get(path).text, path)
        self.assertNotIn("c0de", self.server.said())
        found = subprocess.run(["grep", "-rlaF", "sk-c0de", self.server.home], capture_output=True, text=True,
                               check=False)
        self.assertEqual(found.stdout, "", "it is kept in a file")

    def test_a_second_login_is_told_that_it_is_busy_until_the_first_client_is_gone(self):
        first = self.begin("--login", "claude")
        self.assertTrue(eventually(self.open_routes))
        second = self.exec("--login", "codex")
        self.assertNotEqual(second.returncode, 0)
        self.assertIn("another login terminal of this plugin is open", second.stderr)
        first.kill()
        self.assertTrue(eventually(lambda: not self.open_routes()), "the route was not closed")
        third = self.exec("--login", "codex", stdin="x\n")
        self.assertEqual(third.returncode, 0, third.stderr)
        self.assertIn("Code for codex", third.stdout)

    def test_a_command_is_fed_as_it_runs_once_an_administrator_allows_it(self):
        whole = self.exec("-i", "--", "sh", "-c", "cat; exit 3", stdin="all of it\n")
        self.assertEqual((whole.returncode, whole.stdout), (3, "all of it\n"), whole.stderr)
        controller, terminal = pty.openpty()
        refused = subprocess.run(self.words("-i", "--", "cat"), stdin=terminal, capture_output=True, text=True,
                                 env=clean_environment(), timeout=60, check=False)
        os.close(terminal)
        os.close(controller)
        self.assertEqual(refused.returncode, 125, refused.stderr)
        self.assertIn("enableSandboxDuplexBridge=true", refused.stderr)
        allowed = self.run_berth("settings", "set", "enableSandboxDuplexBridge=true",
                                 "--url", f"http://127.0.0.1:{self.server.port}")
        self.assertEqual(allowed.returncode, 0, allowed.stderr)
        live = self.begin("-i", "--", "sh", "-c", "cat; echo $?; pwd; exit 4")
        for word in (b"one\n", b"\xff\x00\n"):
            live.stdin.write(word)
            live.stdin.flush()
            self.assertEqual(live.stdout.readline(), word)
        out, err = live.communicate(timeout=60)
        self.assertEqual((live.returncode, out.splitlines()[0]), (4, b"0"), err)
        self.assertIn(b"boxes/box-", out)
        gone = self.begin("-i", "--", "cat")
        self.assertTrue(eventually(self.open_routes))
        gone.kill()
        self.assertTrue(eventually(lambda: not self.open_routes()), "the route was not closed")

    def test_a_worker_that_dies_in_the_middle_is_told_of_and_comes_back(self):
        self.server.request("PATCH", "/api/instance/settings", {"enableSandboxDuplexBridge": True})
        live = self.begin("-i", "--", "cat")
        live.stdin.write(b"one\n")
        live.stdin.flush()
        self.assertEqual(live.stdout.readline(), b"one\n")
        (self.state / "die-at-duplexChannelWrite").touch()
        live.stdin.write(b"two\n")
        live.stdin.flush()
        _, err = live.communicate(timeout=60)
        self.assertEqual(live.returncode, 125, err)
        self.assertIn(b"worker", err)
        self.assertTrue(eventually(lambda: self.status(self.server) == "ready", limit_s=60))


class Elsewhere(BerthTest):
    def test_input_goes_to_a_command_of_any_place_and_a_login_only_to_a_plugin(self):
        server = self.serve()
        run = start(server, "sleep", "1000")
        wait_until(server, run, {"running"})
        lease = unfinished_leases(server)[0]["id"]
        url = ("--url", f"http://127.0.0.1:{server.port}")
        fed = self.run_berth("exec", "-i", lease, *url, "--", "sh", "-c", "cat; exit 3", stdin="text\n")
        self.assertEqual((fed.returncode, fed.stdout), (3, "text\n"), fed.stderr)
        login = self.run_berth("exec", lease, "--login", "claude", *url)
        self.assertEqual(login.returncode, 125, login.stderr)
        self.assertIn(f"berth exec -it {lease} -- claude setup-token", login.stderr)


class Setup(BerthTest):
    def test_a_setup_shows_the_provider_s_own_door_and_is_captured_by_the_client(self):
        if not (FAKE / "manifest.json").exists():
            self.skipTest(f"{FAKE} is not built")
        server = self.serve()
        answer = server.post("/api/plugins/install", {"packageName": str(FAKE), "isLocalPath": True})
        self.assertEqual(answer.status, 201, answer.text)
        made = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": "fake", "driver": "sandbox", "config": {"provider": "fake-plugin"}})
        controller, terminal = pty.openpty()
        client = subprocess.Popen([BERTH, "env", "setup", "fake", "--url", f"http://127.0.0.1:{server.port}"],
                                  stdin=terminal, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  env=clean_environment())
        os.write(controller, b"yes\n")
        said, _ = client.communicate(timeout=60)
        os.close(terminal)
        os.close(controller)
        self.assertEqual(client.returncode, 0, said)
        self.assertIn(b"connect with: ssh fake@[placeholder]", said)
        image = server.get(f"/api/environments/{made.json['id']}/custom-image-template").json
        self.assertTrue(image["activeTemplate"]["templateRef"].startswith("fake-template:"), image)
        self.assertTrue(eventually(lambda: not unfinished_leases(server)))
