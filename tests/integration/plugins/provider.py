#!/usr/bin/env python3
"""A sandbox provider for tests: real commands in a folder, and a fault if its config requests one.

Dialect by argument in the manifest's `description`; faults by `config.fault`."""
import base64
import json
import mmap
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time

lock = threading.Lock()
leases = {}
options = {}
sessions = {}


def send(message):
    with lock:
        sys.stdout.write(json.dumps(message) + "\n")
        sys.stdout.flush()


def tell(method, params, invocation=None):
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    if invocation:
        message["paperclipInvocationId"] = invocation
    send(message)


asked = {}
next_id = [0]


def ask(method, params, invocation=None):
    next_id[0] += 1
    message = {"jsonrpc": "2.0", "id": next_id[0], "method": method, "params": params}
    if invocation:
        message["paperclipInvocationId"] = invocation
    done = threading.Event()
    asked[next_id[0]] = [done, None]
    number = next_id[0]
    send(message)
    done.wait(10)
    return asked.pop(number)[1]


METHODS = ["health", "environmentValidateConfig", "environmentProbe", "environmentAcquireLease",
           "environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease",
           "environmentRealizeWorkspace", "environmentExecute"]
TEMPLATES = ["environmentCaptureTemplate", "environmentDeleteTemplate",
             "environmentStartInteractiveSetup", "environmentGetInteractiveSetup",
             "environmentCancelInteractiveSetup"]
SYNC = ["environmentSyncIn", "environmentSyncOut"]
DIALECTS = {
    "a": ["setupTokenPtyOpen", "setupTokenPtyInput", "setupTokenPtyStop", "setupTokenPtyClose"],
    "b": ["setupTokenPtyOpen", "setupTokenPtyInput", "setupTokenPtyStop", "setupTokenPtyClose",
          "duplexChannelOpen", "duplexChannelWrite", "duplexChannelStop", "duplexChannelClose"],
    "c": ["loginPtyOpen", "loginPtyInput", "loginPtyStop", "loginPtyClose",
          "duplexChannelOpen", "duplexChannelWrite", "duplexChannelStop", "duplexChannelClose"],
}


def initialize(params, _):
    words = params["manifest"]["description"].split()
    options.update(word.split("=", 1) for word in words if "=" in word)
    if "ask" in options:
        options["asked"] = ask("state.get", {"scopeKind": "instance", "stateKey": "boot"})
    if options.get("start") == "die":
        sys.stderr.write("I do not like it here\n")
        sys.stderr.flush()
        os._exit(7)
    if options.get("start") == "hang":
        time.sleep(3600)
    if options.get("start") == "refuse":
        return {"ok": False}
    tell("log", {"level": "info", "message": "hello", "meta": {"uid": os.getuid()}})
    methods = METHODS + DIALECTS[options.get("dialect", "c")]
    if options.get("templates") != "none":
        methods = methods + TEMPLATES
    if options.get("sync") == "native":
        methods = methods + SYNC
    return {"ok": True, "supportedMethods": methods}


def fault(config, where, invocation):
    what = config.get("fault", "")
    if what == "die:" + where:
        os._exit(9)
    if what == "throw:" + where:
        raise RuntimeError("thrown on purpose")
    if what == "slow:" + where:
        time.sleep(1.5)
    if what == "null:" + where:
        return [None]
    return None


def lease_of(params):
    name = params.get("providerLeaseId") or params.get("lease", {}).get("providerLeaseId")
    return leases.get(name)


setups = {}


def start_setup(params, _):
    name = "setup://" + params["sessionId"]
    setups[name] = "waiting_for_user"
    return {"providerLeaseId": name, "status": params["config"].get("setup", "waiting_for_user"),
            "connectionSummary": None, "connectionPayload": {"type": "ssh", "command": "never kept"},
            "metadata": {"from": params.get("sourceTemplateRef")}}


def capture(params, _):
    name = params["providerLeaseId"]
    if name not in leases and setups.get(name) != "waiting_for_user":
        raise RuntimeError("there is nothing to capture")
    return {"templateRef": "t-1", "templateKind": "snapshot",
            "metadata": {"size": 3}}


def acquire(params, _):
    config = params["config"]
    name = "py://" + params["runId"]
    folder = tempfile.mkdtemp(prefix="berth-py-", dir=options.get("root"))
    leases[name] = folder
    return {"providerLeaseId": name,
            "metadata": {"remoteCwd": folder, "pluginId": "forged", "provider": "forged",
                         "secretEcho": config.get("apiKey"), "image": "x"}}


def resume(params, _):
    folder = lease_of(params)
    if not folder:
        return {"providerLeaseId": None, "metadata": {"expired": True}}
    return {"providerLeaseId": params["providerLeaseId"], "metadata": {"remoteCwd": folder}}


def destroy(params, _):
    folder = leases.pop(params.get("providerLeaseId"), None)
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
    if options.get("receipt") == "yes":
        return {"providerLeaseId": params.get("providerLeaseId"), "state": "destroyed"}
    return None


def execute(params, invocation):
    folder = lease_of(params)
    if not folder:
        return {"exitCode": 1, "timedOut": False, "stdout": "", "stderr": "no such lease\n"}
    env = {"PATH": "/usr/local/bin:/usr/bin:/bin"}
    env.update(params.get("env") or {})
    argv = [params["command"]] + (params.get("args") or [])
    timeout = params.get("timeoutMs")
    process = subprocess.Popen(argv, cwd=params.get("cwd") or folder, env=env,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE)
    out, err = [], []

    def pump(stream, into, name):
        while True:
            piece = os.read(stream.fileno(), 65536)
            if not piece:
                return
            into.append(piece)
            if options.get("live") != "no":
                tell("execute.log", {"stream": name, "chunk": piece.decode("utf-8", "replace")},
                     invocation)

    pumps = [threading.Thread(target=pump, args=(process.stdout, out, "stdout")),
             threading.Thread(target=pump, args=(process.stderr, err, "stderr"))]
    for one in pumps:
        one.start()
    try:
        process.stdin.write((params.get("stdin") or "").encode())
        process.stdin.close()
    except BrokenPipeError:
        pass
    timed_out = False
    try:
        process.wait(timeout / 1000 if timeout else None)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.kill()
        process.wait()
    for one in pumps:
        one.join()
    code = process.returncode
    return {"exitCode": None if timed_out or code < 0 else code, "timedOut": timed_out,
            "signal": "SIGTERM" if code == -15 else "SIGKILL" if code < 0 else None,
            "stdout": b"".join(out).decode("utf-8", "replace"),
            "stderr": b"".join(err).decode("utf-8", "replace")}


def sync(params, _):
    answers = []
    for operation in params["operations"]:
        for file in operation["files"]:
            shutil.copy(file["sourcePath"], file["targetPath"])
        answers.append({"operationId": operation["operationId"],
                        "filesTransferred": len(operation["files"]), "bytesTransferred": 5})
    return {"operations": answers}


def login_open(params, _):
    session = "session-1"
    prefix = "loginPty" if options.get("dialect", "c") == "c" else "setupTokenPty"
    what = params.get("loginCommandKey") or params.get("command")
    ids = {"workerSessionId": session}
    if prefix == "loginPty":
        ids["hostRouteId"] = params["hostRouteId"]
    sessions["login"] = (prefix, ids)
    tell(prefix + ".output", dict(ids, chunk="login with " + what + "\n"))
    return {"workerSessionId": session}


def login_input(params, _):
    prefix, ids = sessions["login"]
    if params["data"] == "flood":
        for _ in range(20):
            tell(prefix + ".output", dict(ids, chunk="x" * 900000))
        return None
    tell(prefix + ".output", dict(ids, chunk="got " + params["data"]))
    tell(prefix + ".exit", dict(ids, exitCode=0))
    return None


def close_login(params, _):
    if options.get("close") == "wrong":
        return {"hostRouteId": "another"}
    sessions.pop("login", None)
    tell("log", {"level": "info", "message": "closed a login"})
    return {"hostRouteId": params["hostRouteId"]}


def close_duplex(params, _):
    ids, process = sessions.pop("duplex")
    process.kill()
    tell("log", {"level": "info", "message": "closed a stream"})
    return {"hostRouteId": params["hostRouteId"]} if options.get("close") == "wrong" else ids


def is_base64():
    return options.get("dialect", "c") == "c"


def coded(data):
    return base64.b64encode(data).decode() if is_base64() else data.decode("utf-8", "replace")


def duplex_open(params, _):
    if options.get("duplex") == "refuse":
        raise RuntimeError("not today")
    ids = {"hostRouteId": params["hostRouteId"], "workerSessionId": "duplex-1"}
    process = subprocess.Popen(params["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    sessions["duplex"] = (ids, process)
    tell("duplexChannel.data", dict(ids, chunk=coded(b"early ")))

    def pump():
        while piece := os.read(process.stdout.fileno(), 65536):
            tell("duplexChannel.data", dict(ids, chunk=coded(piece)))
        tell("duplexChannel.exit", dict(ids, exitCode=process.wait(), transportClosed=False))

    threading.Thread(target=pump, daemon=True).start()
    return ids


def duplex_write(params, _):
    if options.get("stray") == "yes":
        tell("duplexChannel.data", {"hostRouteId": "nobody", "workerSessionId": "x", "chunk": ""})
    _, process = sessions["duplex"]
    data = params["data"]
    process.stdin.write(base64.b64decode(data) if is_base64() else data.encode())
    process.stdin.flush()
    return None


def facts(_params, _invocation):
    status = open("/proc/self/status").read()
    return {"uid": os.getuid(), "gid": os.getgid(), "groups": os.getgroups(),
            "env": dict(os.environ), "fds": sorted(os.listdir("/proc/self/fd")),
            "noNewPrivs": "NoNewPrivs:\t1" in status, "cwd": os.getcwd()}


def scatter(_params, _invocation):
    """A process that leaves the session and its parent behind."""
    made = subprocess.Popen(["sh", "-c", "setsid sleep 1000 & echo $!"], stdout=subprocess.PIPE)
    return int(made.stdout.readline())


def grow(params, _invocation):
    kept = []
    if params.get("shared"):  # which a limit on private memory does not see
        for _ in range(4096):
            kept.append(mmap.mmap(-1, 1 << 20))
            kept[-1].write(b"x" * (1 << 20))
        return {"grewMb": len(kept)}
    try:
        for _ in range(4096):
            kept.append(b"x" * (1 << 20))
    except MemoryError:
        size = len(kept)
        kept = None
        return {"refusedAfterMb": size}
    return {"grewMb": len(kept)}


def say(params, invocation):
    """Sends a text in the requested way."""
    text = params["text"]
    if params["by"] == "log under the call":
        tell("log", {"level": "info", "message": text, "meta": {"text": [text]}}, invocation)
    if params["by"] == "log":
        tell("log", {"level": "info", "message": text})
    if params["by"] == "stderr":
        sys.stderr.write(text + "\n")
        sys.stderr.flush()
    if params["by"] == "error":
        raise RuntimeError(text)
    if params["by"] == "last words":
        sys.stderr.write(text)
        sys.stderr.flush()
        os._exit(4)
    return None


def hostile(params, _invocation):
    what = params["what"]
    out = sys.stdout
    with lock:
        try:
            if what == "endless line":
                while True:
                    out.write("x" * 65536)
            if what == "deep":
                out.write("[" * 100000 + "\n")
                out.flush()
            if what == "flood":
                line = json.dumps({"jsonrpc": "2.0", "method": "noise", "params": {}}) + "\n"
                while True:
                    out.write(line * 100)
            if what == "many values":
                out.write('{"jsonrpc":"2.0","method":"log","params":[' + "0," * 4000000 + "0]}\n")
                out.flush()
            if what == "garbage":
                for number in range(2000):
                    out.write("console.log says %d\n" % number)
                out.flush()
        except (BrokenPipeError, ValueError):
            os._exit(1)
    return None


HANDLERS = {
    "facts": facts, "scatter": scatter, "grow": grow, "hostile": hostile,
    "crash": lambda p, i: (sys.stderr.write("last words\n"), sys.stderr.flush(), os._exit(3)),
    "say": say,
    "initialize": initialize,
    "health": lambda p, i: {"status": "ok", "message": options.get("health", "well")},
    "configChanged": lambda p, i: options.update({"health": p["config"].get("name", "none")}),
    "environmentValidateConfig": lambda p, i: {
        "ok": p["config"].get("image") != "bad", "errors": ["image is bad"],
        "normalizedConfig": dict(p["config"], timeoutMs=60000)},
    "environmentProbe": lambda p, i: {
        "ok": True, "summary": "key is " + str(p["config"].get("apiKey")),
        "diagnostics": [{"severity": "warning", "message": "careful", "code": "c1"}],
        "metadata": {"state": ask("config.get", {}, i)}},
    "environmentAcquireLease": acquire,
    "environmentResumeLease": resume,
    "environmentReleaseLease": destroy,
    "environmentDestroyLease": destroy,
    "environmentRealizeWorkspace": lambda p, i: {"cwd": lease_of(p)},
    "environmentExecute": execute,
    "environmentSyncIn": sync,
    "environmentSyncOut": sync,
    "environmentCaptureTemplate": capture,
    "environmentDeleteTemplate": lambda p, i: {
        "deleted": p["templateRef"] == "t-1" and p["metadata"] == {"size": 3}},
    "environmentStartInteractiveSetup": start_setup,
    "environmentGetInteractiveSetup": lambda p, i: {
        "providerLeaseId": p["providerLeaseId"], "status": setups.get(p["providerLeaseId"], "missing"),
        "connectionSummary": None,
        "connectionPayload": {"type": "ssh", "command": "ssh py@box", "token": "t0"}},
    "environmentCancelInteractiveSetup": lambda p, i: {
        "status": "cancelled" if setups.pop(p["providerLeaseId"], None) else "missing"},
    "loginPtyOpen": login_open, "setupTokenPtyOpen": login_open,
    "loginPtyInput": login_input, "setupTokenPtyInput": login_input,
    "loginPtyClose": close_login, "setupTokenPtyClose": close_login, "duplexChannelClose": close_duplex,
    "duplexChannelOpen": duplex_open, "duplexChannelWrite": duplex_write,
}


def serve(message):
    method = message["method"]
    invocation = (message.get("paperclipInvocation") or {}).get("id")
    handler = HANDLERS.get(method)
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        if method == "shutdown":
            if options.get("stop") == "hang":
                time.sleep(3600)
            send(dict(reply, result=None))
            os._exit(0)
        if handler is None:
            raise KeyError(method)
        params = message.get("params") or {}
        faulty = fault(params.get("config") or {}, method, invocation)
        send(dict(reply, result=faulty[0] if faulty else handler(params, invocation)))
    except Exception as wrong:  # the host must always get a response
        code = -32601 if handler is None else -32002
        send(dict(reply, error={"code": code, "message": str(wrong)}))


for line in sys.stdin:
    message = json.loads(line)
    if "method" in message:
        threading.Thread(target=serve, args=(message,), daemon=True).start()
    elif message.get("id") in asked:
        slot = asked[message["id"]]
        slot[1] = message.get("result", message.get("error"))
        slot[0].set()
os._exit(0)
