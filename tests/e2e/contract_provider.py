#!/usr/bin/env python3
"""A sandbox provider that behaves like published third-party ones. The contract tests install a copy
of it, with its folder in place of @STATE@. Every call is recorded with all of its parameters.

A file in that folder with one of these names changes its behaviour:
  no-deadline     commands have no time limit, as in Daytona
  sync            it transfers files itself
  sync-refuses    it declares that it does, and refuses
  no-remote-cwd   acquire names no folder; only realize does, as in Kubernetes
  ignores-cwd     commands always start in /, whatever the given folder, as in Kubernetes
  no-shell        a sandbox without a shell: sh and bash cannot be started
"""

import json
import os
import shutil
import subprocess
import sys
import threading
import uuid

STATE = "@STATE@"
METHODS = ["health", "environmentValidateConfig", "environmentProbe", "environmentAcquireLease",
           "environmentResumeLease", "environmentReleaseLease", "environmentDestroyLease",
           "environmentRealizeWorkspace", "environmentExecute"]
SYNC = ["environmentSyncIn", "environmentSyncOut"]
speaking = threading.Lock()


def there(name):
    return os.path.exists(os.path.join(STATE, name))


def box_of(name):
    return os.path.join(STATE, "boxes", name.replace("/", "_"))


def lease_of(name, **metadata):
    folder = box_of(name)
    if not there("no-remote-cwd"):
        metadata["remoteCwd"] = folder
    return {"providerLeaseId": name, "metadata": metadata}


def acquire(p):
    config = p["config"]
    naming = config.get("naming", "fresh")
    if naming == "environment" and config.get("reuseLease") is True:
        name = "box-env-" + p["environmentId"]
    else:
        name = "box-" + uuid.uuid4().hex
    os.makedirs(box_of(name), exist_ok=True)
    # What identifies a sandbox besides its name, like Daytona's sentinel.
    token = uuid.uuid4().hex
    with open(box_of(name) + ".token", "w") as file:
        file.write(token)
    return lease_of(name, token=token)


def resume(p):
    name = p["providerLeaseId"]
    if not os.path.isdir(box_of(name)):
        return {"providerLeaseId": None, "metadata": {"expired": True}}
    open(box_of(name) + ".started", "w").close()
    with open(box_of(name) + ".token") as file:
        token = file.read()
    if (p.get("leaseMetadata") or {}).get("token") != token:
        return {"providerLeaseId": None, "metadata": {"workspaceSentinel": "missing"}}
    return lease_of(name, token=token)


def destroy(p):
    name = p.get("providerLeaseId")
    if name:
        shutil.rmtree(box_of(name), ignore_errors=True)
        for mark in (".token", ".started"):
            if os.path.exists(box_of(name) + mark):
                os.remove(box_of(name) + mark)
    return None


def release(p):
    # A plugin that was asked to keep a sandbox does so, whatever was declared.
    return None if p["config"].get("reuseLease") is True else destroy(p)


def realize(p):
    return {"cwd": box_of(p["lease"]["providerLeaseId"]),
            "metadata": {"remoteCwd": box_of(p["lease"]["providerLeaseId"])}}


def execute(p):
    home = box_of(p["lease"]["providerLeaseId"])
    env = {"PATH": "/opt/sandbox/bin:/usr/bin:/bin", "HOME": home, **(p.get("env") or {})}
    cwd = "/" if there("ignores-cwd") else p.get("cwd") or home
    if there("no-shell") and os.path.basename(p["command"]) in ("sh", "bash"):
        raise FileNotFoundError(p["command"])
    limit = p.get("timeoutMs") or p["config"].get("timeoutMs")
    given = p.get("stdin")
    process = subprocess.Popen([p["command"], *p.get("args", [])], cwd=cwd, env=env, text=True,
                               stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, errors="replace")
    timed_out = False
    try:
        out, err = process.communicate(given, None if there("no-deadline") or not limit else limit / 1000)
    except subprocess.TimeoutExpired:
        timed_out = True
        process.kill()
        out, err = process.communicate()
    code = process.returncode
    return {"exitCode": None if timed_out or code < 0 else code, "signal": None, "timedOut": timed_out,
            "stdout": out, "stderr": err}


def sync(p):
    if "remoteCwd" not in (p["lease"].get("metadata") or {}) or there("sync-refuses"):
        raise RuntimeError("file sync requires a workspace remote dir on the lease metadata")
    done = []
    for operation in p["operations"]:
        for file in operation["files"]:
            shutil.copy(file["sourcePath"], file["targetPath"])
        done.append({"operationId": operation["operationId"], "filesTransferred": 1, "bytesTransferred": 0})
    return {"operations": done}


ANSWERS = {
    "initialize": lambda p: {"ok": True, "supportedMethods": METHODS + (SYNC if there("sync") else [])},
    "health": lambda p: {"status": "ok"},
    "shutdown": lambda p: None,
    "environmentValidateConfig": lambda p: {"ok": True, "normalizedConfig": p["config"]},
    "environmentProbe": lambda p: {"ok": True},
    "environmentAcquireLease": acquire, "environmentResumeLease": resume,
    "environmentReleaseLease": release, "environmentDestroyLease": destroy,
    "environmentRealizeWorkspace": realize, "environmentExecute": execute,
    "environmentSyncIn": sync, "environmentSyncOut": sync,
}


def serve(message):
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    try:
        params = message.get("params") or {}
        with speaking, open(os.path.join(STATE, "calls"), "a") as calls:
            calls.write(json.dumps({"method": message["method"], "params": params}) + "\n")
        reply["result"] = ANSWERS[message["method"]](params)
    except KeyError as error:
        reply["error"] = {"code": -32601, "message": "no " + str(error)}
    except Exception as error:
        reply["error"] = {"code": -32002, "message": str(error)}
    with speaking:
        print(json.dumps(reply), flush=True)
    if message["method"] == "shutdown":
        os._exit(0)


for line in sys.stdin:
    received = json.loads(line)
    if "method" in received and "id" in received:
        threading.Thread(target=serve, args=(received,), daemon=True).start()
