#!/usr/bin/env python3
"""A worker that tries to get out of its box, and reports what it could reach."""

import ctypes
import errno
import json
import os
import socket
import sys

libc = ctypes.CDLL(None, use_errno=True)
PTRACE_ATTACH = 16
CLONE_NEWUSER = 0x10000000
CLONE_NEWNS = 0x00020000


def called(result):
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return "worked"


def read(path):
    with open(path, "rb") as file:
        return f"{len(file.read(4096))} bytes"


def write(path):
    with open(path, "a") as file:
        file.write("x")
    return "written"


def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as made:
        made.settimeout(3)
        made.connect(address)
    return "connected"


def set_id(folder):
    path = os.path.join(folder, "set-id")
    write(path)
    os.chmod(path, 0o4755)
    return "made"


def others():
    """Processes outside this box; its first one is the keeper's."""
    seen = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    strange = [pid for pid in seen if pid > 64 or len(seen) > 8]
    if not strange:
        raise PermissionError(errno.EPERM, "none")
    return f"{len(seen)} processes"


def attempts(p):
    yield "the master key", lambda: read(p["home"] + "/master.key")
    yield "the database", lambda: read(p["home"] + "/berth.db")
    yield "the names in the home", lambda: str(os.listdir(p["home"]))
    yield "the passwords of the machine", lambda: read("/etc/shadow")
    yield "the files of another plugin", lambda: str(os.listdir(p["other"]))
    yield "a file in the machine's /tmp", lambda: read(p["bait"])
    yield "processes of others", others
    yield "the environment of the server", lambda: read(f"/proc/{p['server']}/environ")
    yield "a signal to the server", lambda: os.kill(p["server"], 0) or "sent"
    yield "the API on loopback", lambda: connect(socket.AF_INET, ("127.0.0.1", p["port"]))
    yield "a unix socket of the machine", lambda: connect(socket.AF_UNIX, p["socket"])
    yield "an abstract socket of the machine", lambda: connect(socket.AF_UNIX, "\0" + p["abstract"])
    yield "debugging the first process", lambda: called(libc.ptrace(PTRACE_ATTACH, 1, 0, 0))
    yield "a mount", lambda: called(libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, None))
    yield "a user namespace", lambda: called(libc.unshare(CLONE_NEWUSER))
    yield "a mount namespace", lambda: called(libc.unshare(CLONE_NEWNS))
    yield "writing to the package", lambda: write(os.path.join(os.getcwd(), "planted"))
    yield "writing to its program", lambda: write(os.path.abspath(__file__))
    yield "writing to /usr", lambda: write("/usr/planted")
    yield "writing to /etc", lambda: write("/etc/planted")
    yield "writing to /", lambda: write("/planted")
    yield "writing to the home", lambda: write(p["home"] + "/planted")
    yield "a set-user-id file", lambda: set_id("/tmp" if p["strong"] else p["mine"])
    yield "another user", lambda: os.setuid(0) or "became"


def attack(p):
    report = {}
    for name, attempt in attempts(p):
        try:
            report[name] = "OPEN: " + str(attempt())
        except OSError as error:
            report[name] = errno.errorcode.get(error.errno, str(error))
    return report


def works(p):
    """What a worker needs, and has."""
    write(os.path.join(p["mine"], "kept"))
    temporary = os.environ.get("TMPDIR", "/tmp")
    write(os.path.join(temporary, "scratch"))
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
    return {"shell": os.popen("echo from a shell").read(), "uid": os.getuid(),
            "status": open("/proc/self/status").read(), "tmp": os.listdir(temporary),
            "cwd": os.getcwd(), "hostname": os.uname().nodename}


def reach(p):
    """A door that the server opened into the box."""
    with socket.create_connection((p["address"], p["port"]), 5) as made:
        made.sendall(b"hello")
        return {"heard": made.recv(100).decode(), "proxy": os.environ.get("HTTPS_PROXY"),
                "servers": open("/etc/resolv.conf").read()}


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    params = message.get("params") or {}
    try:
        result = {"initialize": lambda: {"ok": True, "supportedMethods": []},
                  "attack": lambda: attack(params), "works": lambda: works(params),
                  "reach": lambda: reach(params), "shutdown": lambda: None}[message["method"]]()
        answer = {"result": result}
    except Exception as error:
        answer = {"error": {"code": -32002, "message": repr(error)}}
    print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
    if message["method"] == "shutdown":
        break
