#!/usr/bin/env python3
"""A provider whose sandboxes are folders, for the tests of the conformance kit. The variable FAULT
names its one fault; without it, it is correct."""

import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time

FAULT = os.environ.get("FAULT", "")
HOOKS = ["environmentValidateConfig", "environmentProbe", "environmentAcquireLease",
         "environmentReleaseLease", "environmentDestroyLease", "environmentRealizeWorkspace",
         "environmentExecute", "environmentResumeLease", "environmentSyncIn", "environmentSyncOut",
         "environmentStartInteractiveSetup", "environmentGetInteractiveSetup",
         "environmentCancelInteractiveSetup", "environmentCaptureTemplate",
         "environmentDeleteTemplate", "duplexChannelOpen", "duplexChannelWrite",
         "duplexChannelStop", "duplexChannelClose", "loginPtyOpen", "loginPtyClose",
         "setupTokenPtyOpen", "setupTokenPtyClose"]
KNOWN = [*HOOKS, "handleWebhook"]
# Exists while a worker runs, and is left behind by one that was killed.
MARK = os.path.join(os.path.dirname(os.path.abspath(__file__)), "running")
writing = threading.Lock()
answered = threading.Event()
ready = threading.Event()
started = []
crashed = []
answers_heard = []
released = set()
channels = {}


class Refused(Exception):
    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


def send(message):
    text = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=FAULT != "raw")
    with writing:
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


def folder_of(lease):
    return "/tmp/faulty-worker-" + base64.urlsafe_b64encode(lease.encode()).decode().rstrip("=")


def kill_group(group):
    try:
        os.killpg(group, signal.SIGKILL)
    except ProcessLookupError:
        pass


def initialize(params):
    if started and FAULT != "starts_again":
        raise Refused(-32002, "Worker already initialized")
    started.append(True)
    if FAULT == "forgets_after_crash":
        crashed.extend([True] if os.path.exists(MARK) else [])
        open(MARK, "w").close()
    if FAULT in ("slow_start", "dies_while_starting"):
        time.sleep(3 if FAULT == "slow_start" else 0.5)
    if FAULT in ("asks", "waits_for_ever", "dies_of_doubles"):
        send({"id": 1, "method": "state.get", "params": {"scopeKind": "instance", "stateKey": "x"}})
        answered.wait(None if FAULT == "waits_for_ever" else 2)
    without = {"no_probe": "environmentProbe", "breaks_its_word": "environmentSyncIn"}.get(FAULT)
    ready.set()
    return {"ok": FAULT != "does_not_start",
            "supportedMethods": [hook for hook in HOOKS if hook != without]}


def validate(params):
    config = params["config"]
    if FAULT == "refuses_config":
        return {"ok": False, "errors": ["no config is good enough"]}
    if FAULT == "drifting_config":
        return {"ok": True, "normalizedConfig": {**config, "n": config.get("n", 0) + 1}}
    if not isinstance(config.get("image", "x"), str):
        return {"ok": False, "errors": [] if FAULT == "no_reasons" else ["image is no text"]}
    return {"ok": True, "normalizedConfig": {"image": config.get("image", "default")}}


def check_memory():
    """A worker that keeps its state only in memory cannot continue after it was killed."""
    if crashed:
        crashed.clear()
        raise Refused(-32002, "what was made before is not known")


def acquire(params):
    lease = params["runId"]
    check_memory()
    if FAULT == "no_lease_id":
        return {"metadata": {}}
    if FAULT == "one_sandbox":
        lease = "the-only-one"
    if FAULT == "second_sandbox":
        lease += "-" + str(time.monotonic_ns())
    os.makedirs(folder_of(lease) + "/workspace", exist_ok=True)
    return {"providerLeaseId": lease, "metadata": {
        "remoteCwd": folder_of(lease) + "/workspace",
        **({"token": os.environ.get("TOKEN", "")} if FAULT == "secret_in_lease" else {})}}


def destroy(params):
    lease = params["providerLeaseId"]
    if lease is None:
        return None
    check_memory()
    folder = folder_of(lease)
    if FAULT == "destroys_once" and not os.path.exists(folder):
        raise Refused(-32002, "there is no such sandbox")
    for name in os.listdir(folder) if os.path.exists(folder) else []:
        if name.startswith("group-") and FAULT != "orphans":
            kill_group(int(name.removeprefix("group-")))
    if FAULT != "keeps_folders":
        shutil.rmtree(folder, ignore_errors=True)
    return None


def release(params):
    lease = params["providerLeaseId"]
    if FAULT == "releases_once" and lease in released:
        raise Refused(-32002, "there is no such sandbox")
    released.add(lease)
    return destroy(params)


def resume(params):
    lease = params["providerLeaseId"]
    if not os.path.exists(folder_of(lease)):
        if FAULT == "resumes_with_an_error":
            raise Refused(-32002, "there is no such sandbox")
        return {"providerLeaseId": None}
    return {"providerLeaseId": lease, "metadata": {"remoteCwd": folder_of(lease) + "/workspace"}}


def sync(params):
    done = []
    for operation in params["operations"]:
        for file in operation["files"]:
            if file["kind"] == "directory":
                shutil.copytree(file["sourcePath"], file["targetPath"])
                continue
            shutil.copy(file["sourcePath"], file["targetPath"])
            if "mode" in file and FAULT != "forgets_modes":
                os.chmod(file["targetPath"], file["mode"])
        done.append({"operationId": operation["operationId"]})
    return {"operations": done}


def setup(status):
    return lambda params: {"providerLeaseId": params.get("providerLeaseId", "setup-1"),
                           "status": status}


def cancel_setup(params):
    return {"status": "waiting_for_user" if FAULT == "setup_stays" else "cancelled"}


def open_channel(params):
    route = params["hostRouteId"]
    ids = {"hostRouteId": route, "workerSessionId": "session-of-" + route}
    process = subprocess.Popen(params["command"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    channels[route] = (ids, process)

    def read():
        while piece := os.read(process.stdout.fileno(), 65536):
            if FAULT == "mangles_bytes":
                piece = piece.decode("ascii", "replace").encode()
            send({"method": "duplexChannel.data",
                  "params": {**ids, "chunk": base64.b64encode(piece).decode()}})
    threading.Thread(target=read, daemon=True).start()
    return ids


def write_channel(params):
    _, process = channels[params["hostRouteId"]]
    process.stdin.write(base64.b64decode(params["data"]))
    process.stdin.flush()
    return None


def stop_channel(params):
    _, process = channels[params["hostRouteId"]]
    process.kill()
    process.wait()
    return None


def close_channel(params):
    return channels.pop(params["hostRouteId"])[0]


def close_terminal(fault):
    return lambda params: {} if FAULT == fault else {"hostRouteId": params["hostRouteId"]}


def refuse_terminal(params):
    raise Refused(-32002, "there is no such program in the sandbox")


def execute(params, invocation=None):
    lease, stdin = params["lease"], params.get("stdin")
    command = [params["command"], *params.get("args", [])]
    environment = {"PATH": "/usr/bin:/bin"}
    if FAULT != "ignores_variables":
        environment.update(params.get("env", {}))
    if FAULT == "leaks":
        environment = {**os.environ, **environment}
    if FAULT == "one_string":
        command = ["sh", "-c", " ".join(command)]
    try:
        process = subprocess.Popen(
            command, env=environment, cwd=params["cwd"], start_new_session=True,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if FAULT == "one_stream" else subprocess.PIPE)
    except OSError as error:
        if FAULT == "always_succeeds":
            return {"exitCode": 0, "signal": None, "timedOut": False, "stdout": "", "stderr": ""}
        raise Refused(-32002, str(error)) from error
    mark = f"{folder_of(lease['providerLeaseId'])}/group-{process.pid}"
    open(mark, "w").close()
    limit = params.get("timeoutMs")
    timed_out = False
    if stdin is not None and FAULT == "cuts_input":
        stdin = stdin[:65536]
    try:
        out, err = process.communicate(None if stdin is None else stdin.encode(),
                                       None if limit is None else limit / 1000)
    except subprocess.TimeoutExpired:
        timed_out = True
        kill_group(process.pid)
        out, err = process.communicate()
    kill_group(process.pid)
    os.remove(mark)
    code = None if timed_out or process.returncode < 0 else process.returncode
    if FAULT == "times_out_with_a_code" and timed_out:
        code = 124
    if FAULT == "prints":
        with writing:
            print("ran", params["command"], flush=True)
    out, err = out.decode(), (err or b"").decode()
    if FAULT == "cuts_output":
        out = out[:65536]
    for stream, text in (("stdout", out), ("stderr", err)):
        chunk = text.upper() if FAULT == "live_output_differs" else text
        send({"method": "execute.log", "params": {"stream": stream, "chunk": chunk},
              "paperclipInvocationId": invocation})
    return {"exitCode": code, "signal": None, "timedOut": timed_out, "stdout": out, "stderr": err}


def realize(params):
    cwd = params["lease"]["metadata"]["remoteCwd"]
    return {"cwd": "workspace" if FAULT == "relative_cwd" else cwd}


def shutdown(params):
    return None


ANSWERS = {"initialize": initialize,
           "health": lambda params: {"status": "splendid" if FAULT == "odd_health" else "ok"},
           "shutdown": shutdown, "configChanged": lambda params: None,
           "environmentValidateConfig": validate,
           "environmentProbe": lambda params: {
               "ok": params["config"] is not None and FAULT != "probe_fails"},
           "environmentAcquireLease": acquire, "environmentReleaseLease": release,
           "environmentDestroyLease": destroy, "environmentRealizeWorkspace": realize,
           "environmentExecute": execute, "environmentResumeLease": resume,
           "environmentSyncIn": sync, "environmentSyncOut": sync,
           "environmentStartInteractiveSetup": setup("waiting_for_user"),
           "environmentGetInteractiveSetup": setup("waiting_for_user"),
           "environmentCancelInteractiveSetup": cancel_setup,
           "environmentCaptureTemplate":
               lambda params: {"templateRef": "template-1", "templateKind": "image"},
           "environmentDeleteTemplate": lambda params: {"deleted": FAULT != "template_stays"},
           "duplexChannelOpen": open_channel, "duplexChannelWrite": write_channel,
           "duplexChannelStop": stop_channel, "duplexChannelClose": close_channel,
           "loginPtyOpen": refuse_terminal, "setupTokenPtyOpen": refuse_terminal,
           "loginPtyClose": close_terminal("login_stays_open"),
           "setupTokenPtyClose": close_terminal("setup_token_stays_open")}


def answer(message):
    method = message["method"]
    try:
        if FAULT == "dies_of_wrong_types" and not isinstance(message.get("params"), dict):
            os._exit(3)
        if FAULT == "dies_while_starting" and method != "initialize" and not ready.is_set():
            os._exit(3)
        if method not in ANSWERS:
            absent = -32601 if FAULT == "knows_no_hooks" else -32004
            unknown = -32004 if FAULT == "knows_all_methods" else -32601
            raise Refused(absent if method in KNOWN else unknown, f"{method} is not there")
        if method == "environmentExecute":
            invocation = (message.get("paperclipInvocation") or {}).get("id")
            result = execute(message["params"], invocation)
        else:
            result = ANSWERS[method](message["params"])
        for _ in range(2 if FAULT == "answers_twice" and method == "health" else 1):
            send({"id": message["id"], "result": result})
    except Refused as error:
        send({"id": message["id"], "error": {"code": error.code, "message": str(error)}})
    except Exception as error:
        send({"id": message["id"], "error": {"code": -32002, "message": repr(error)}})
    if method == "shutdown":
        if FAULT == "stays":
            time.sleep(600)
        if os.path.exists(MARK):
            os.remove(MARK)
        os._exit(0)


def hear_answer():
    answers_heard.append(True)
    if FAULT == "dies_of_strays" or (FAULT == "dies_of_doubles" and len(answers_heard) > 1):
        os._exit(3)
    answered.set()


def main():
    if FAULT == "impatient":
        threading.Timer(0.6, os._exit, [1]).start()
    for line in sys.stdin.buffer:
        if not line.strip():
            if FAULT == "dies_of_blank_lines":
                os._exit(3)
            continue
        if FAULT == "short_lines" and len(line) > 1 << 20:
            os._exit(3)
        try:
            message = json.loads(line)
            if not isinstance(message, dict) or message.get("jsonrpc") != "2.0":
                raise ValueError("no JSON-RPC 2.0")
        except (ValueError, RecursionError) as error:
            if FAULT == "dies_of_garbage":
                raise
            send({"id": None, "error": {"code": -32700, "message": str(error)}})
            continue
        if message.get("id") is None:
            continue
        if "result" in message or "error" in message:
            hear_answer()
        elif FAULT == "one_at_a_time":
            answer(message)
        else:
            threading.Thread(target=answer, args=[message], daemon=True).start()
    if FAULT == "outlives_its_host":
        time.sleep(600)
    os._exit(0)


main()
