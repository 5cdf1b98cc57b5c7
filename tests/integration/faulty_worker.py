#!/usr/bin/env python3
"""A provider whose sandboxes are folders, for the tests of the conformance kit. The variable FAULT
names the one thing that it does wrong; without it, it does nothing wrong."""

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
         "environmentExecute"]
KNOWN = [*HOOKS, "handleWebhook", "environmentSyncIn", "environmentDeleteTemplate",
         "environmentResumeLease"]
writing = threading.Lock()
answered = threading.Event()
started = []


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
    if started:
        raise Refused(-32002, "Worker already initialized")
    started.append(True)
    if FAULT == "slow_start":
        time.sleep(3)
    if FAULT in ("asks", "waits_for_ever"):
        send({"id": 1, "method": "state.get", "params": {"scopeKind": "instance", "stateKey": "x"}})
        answered.wait(None if FAULT == "waits_for_ever" else 2)
    return {"ok": True, "supportedMethods": HOOKS}


def validate(params):
    config = params["config"]
    if FAULT == "drifting_config":
        return {"ok": True, "normalizedConfig": {**config, "n": config.get("n", 0) + 1}}
    if not isinstance(config.get("image", "x"), str):
        return {"ok": False, "errors": [] if FAULT == "no_reasons" else ["image is no text"]}
    return {"ok": True, "normalizedConfig": {"image": config.get("image", "default")}}


def acquire(params):
    lease = params["runId"]
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
    folder = folder_of(lease)
    if FAULT == "destroys_once" and not os.path.exists(folder):
        raise Refused(-32002, "there is no such sandbox")
    for name in os.listdir(folder) if os.path.exists(folder) else []:
        if name.startswith("group-") and FAULT != "orphans":
            kill_group(int(name.removeprefix("group-")))
    if FAULT != "keeps_folders":
        shutil.rmtree(folder, ignore_errors=True)
    return None


def execute(params):
    lease, stdin = params["lease"], params.get("stdin")
    command = [params["command"], *params.get("args", [])]
    environment = {"PATH": "/usr/bin:/bin", **params.get("env", {})}
    if FAULT == "leaks":
        environment = {**os.environ, **environment}
    if FAULT == "one_string":
        command = ["sh", "-c", " ".join(command)]
    try:
        process = subprocess.Popen(
            command, env=environment, cwd=params["cwd"], start_new_session=True,
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    except OSError as error:
        raise Refused(-32002, str(error)) from error
    mark = f"{folder_of(lease['providerLeaseId'])}/group-{process.pid}"
    open(mark, "w").close()
    limit = params.get("timeoutMs")
    timed_out = False
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
    return {"exitCode": code, "signal": None, "timedOut": timed_out,
            "stdout": out.decode(), "stderr": err.decode()}


def realize(params):
    cwd = params["lease"]["metadata"]["remoteCwd"]
    return {"cwd": "workspace" if FAULT == "relative_cwd" else cwd}


def shutdown(params):
    return None


ANSWERS = {"initialize": initialize, "health": lambda params: {"status": "ok"},
           "shutdown": shutdown, "configChanged": lambda params: None,
           "environmentValidateConfig": validate,
           "environmentProbe": lambda params: {"ok": bool(params["config"] is not None)},
           "environmentAcquireLease": acquire, "environmentReleaseLease": destroy,
           "environmentDestroyLease": destroy, "environmentRealizeWorkspace": realize,
           "environmentExecute": execute}


def answer(message):
    method = message["method"]
    try:
        if FAULT == "dies_of_wrong_types" and not isinstance(message.get("params"), dict):
            os._exit(3)
        if method not in ANSWERS:
            if FAULT == "silent":
                return
            raise Refused(-32004 if method in KNOWN else -32601, f"{method} is not there")
        send({"id": message["id"], "result": ANSWERS[method](message["params"])})
    except Refused as error:
        send({"id": message["id"], "error": {"code": error.code, "message": str(error)}})
    except Exception as error:
        send({"id": message["id"], "error": {"code": -32002, "message": repr(error)}})
    if method == "shutdown":
        if FAULT == "stays":
            time.sleep(600)
        os._exit(0)


def main():
    if FAULT == "impatient":
        threading.Timer(0.6, os._exit, [1]).start()
    for line in sys.stdin.buffer:
        if not line.strip():
            continue
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
            answered.set()
        elif FAULT == "one_at_a_time":
            answer(message)
        else:
            threading.Thread(target=answer, args=[message], daemon=True).start()
    if FAULT == "outlives_its_host":
        time.sleep(600)
    os._exit(0)


main()
