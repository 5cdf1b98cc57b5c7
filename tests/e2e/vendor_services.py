"""The services of two sandbox vendors, as far as their own SDKs need them, on a loopback address. A
sandbox is a folder and the processes that were started in it. Every request is recorded."""

import base64
import hashlib
import json
import os
import random
import re
import shutil
import signal
import socket
import struct
import subprocess
import threading
import urllib.parse
import uuid
from email.parser import BytesParser
from email.policy import HTTP
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PORT = 8443  # one of those that a plugin's box can reach
KEY = "e2b_0123456789abcdef0123456789abcdef01234567"


class Box:
    """One sandbox: its own home, and process groups that end with it."""

    def __init__(self, folder):
        self.id = "i" + uuid.uuid4().hex[:20]
        self.home = folder / self.id
        self.home.mkdir(parents=True)
        self.state = "started"
        self.sessions = {}
        self.processes = []

    def start(self, argv, cwd=None, env=None):
        process = subprocess.Popen(
            argv, cwd=cwd or self.home, start_new_session=True, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(self.home), **(env or {})})
        self.processes.append(process)
        return process

    @staticmethod
    def end(process):
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def end_all(self):
        for process in self.processes:
            self.end(process)

    def destroy(self):
        self.end_all()
        shutil.rmtree(self.home, ignore_errors=True)


class Service:
    """A vendor. `live` are the billed sandboxes, running or not."""

    def __init__(self, folder, handler):
        self.folder = folder
        self.made = 0
        self.boxes = {}
        self.requests = []
        self.lock = threading.Lock()
        self.host = f"127.{random.randrange(1, 255)}.{random.randrange(256)}.{random.randrange(1, 255)}"
        bound = type("Bound", (handler,), {"service": self})
        self.server = QuietServer((self.host, PORT), bound)
        self.url = f"http://{self.host}:{PORT}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.server.shutdown()
        self.server.server_close()
        for box in self.boxes.values():
            box.destroy()

    def make(self):
        box = Box(self.folder)
        with self.lock:
            self.made += 1
            self.boxes[box.id] = box
        return box

    def remove(self, box):
        with self.lock:
            del self.boxes[box.id]
        box.destroy()

    def live(self):
        with self.lock:
            return sorted(self.boxes)

    def states(self):
        with self.lock:
            return sorted(box.state for box in self.boxes.values())


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    ROUTES = ()  # (verb, pattern of the path, function)

    def log_message(self, *_):
        pass

    def body(self):
        if "chunked" in self.headers.get("Transfer-Encoding", ""):
            whole = b""
            while size := int(self.rfile.readline().split(b";")[0], 16):
                whole += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
            return whole
        return self.rfile.read(int(self.headers.get("Content-Length") or 0))

    def answer(self, status, value=None, kind="application/json"):
        data = b"" if value is None else value if isinstance(value, bytes) else json.dumps(value).encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def serve(self):
        url = urllib.parse.urlsplit(self.path)
        self.query = dict(urllib.parse.parse_qsl(url.query, keep_blank_values=True))
        self.sent = b"" if self.headers.get("Upgrade") else self.body()
        self.service.requests.append((self.command, url.path))
        for verb, pattern, function in self.ROUTES:
            found = re.fullmatch(pattern, url.path)
            if verb == self.command and found:
                try:
                    return function(self, *found.groups())
                except Missing as missing:
                    return self.missing(str(missing))
        return self.missing(f"{self.command} {self.path}")

    do_GET = do_POST = do_DELETE = do_PUT = serve

    def missing(self, what):
        self.answer(404, {"code": 404, "statusCode": 404, "message": f"{what} not found"})

    def box(self, name):
        box = self.service.boxes.get(name)
        if box is None:
            raise Missing(name)
        return box

    def parts(self):
        """(name, file name, bytes) of a multipart body."""
        head = b"Content-Type: " + self.headers["Content-Type"].encode() + b"\r\n\r\n"
        for part in BytesParser(policy=HTTP).parsebytes(head + self.sent).iter_parts():
            yield (part.get_param("name", header="content-disposition"), part.get_filename(),
                   part.get_payload(decode=True))


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request, client_address):
        """A client that has disconnected need not be reported."""


class Missing(Exception):
    """A sandbox, session or command that does not exist."""


def each_chunk(process, take):
    """Passes on the output of both streams, until both have ended."""
    def read(name, stream):
        while chunk := os.read(stream.fileno(), 32768):
            take(name, chunk)
    threads = [threading.Thread(target=read, args=(name, getattr(process, name)), daemon=True)
               for name in ("stdout", "stderr")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


class E2b(Handler):
    """The control API and, by header, the daemon in the sandbox (Connect protocol, JSON codec)."""

    def control(self, box, status=200):
        self.answer(status, {"sandboxID": box.id, "templateID": "base", "clientID": "c", "envdVersion": "0.5.2",
                             "envdAccessToken": "t", "domain": None})

    def create(self):
        if self.headers.get("X-API-KEY") != KEY:
            return self.answer(401, {"code": 401, "message": "wrong key"})
        return self.control(self.service.make(), 201)

    def connect(self, name):
        box = self.box(name)
        box.state = "started"
        self.control(box)

    def set_timeout(self, name):
        self.box(name)
        self.answer(204)

    def pause(self, name):
        self.box(name).state = "paused"
        self.answer(204)

    def kill(self, name):
        self.service.remove(self.box(name))
        self.answer(204)

    def inside(self):
        return self.box(self.headers.get("E2b-Sandbox-Id"))

    def envelope(self, value, flag=0):
        payload = json.dumps(value).encode()
        data = bytes([flag]) + struct.pack(">I", len(payload)) + payload
        with self.service.lock:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def start_process(self):
        wish = json.loads(self.sent[5:])["process"]
        box = self.inside()
        cwd = wish.get("cwd") or str(box.home)
        self.send_response(200)
        self.send_header("Content-Type", "application/connect+json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        if not os.path.isdir(cwd):
            self.envelope({"error": {"code": "invalid_argument", "message": f"cwd '{cwd}' does not exist"}}, 2)
            self.wfile.write(b"0\r\n\r\n")
            return
        process = box.start([wish["cmd"], *wish.get("args", [])], cwd, wish.get("envs"))
        limit = self.headers.get("Connect-Timeout-Ms")
        late = threading.Event()
        timer = threading.Timer(int(limit) / 1000, lambda: (late.set(), box.end(process))) if limit else None
        if timer:
            timer.start()
        self.envelope({"event": {"start": {"pid": process.pid}}})
        each_chunk(process, lambda stream, chunk: self.envelope(
            {"event": {"data": {stream: base64.b64encode(chunk).decode()}}}))
        code = process.wait()
        if timer:
            timer.cancel()
        if late.is_set():
            self.envelope({"error": {"code": "deadline_exceeded", "message": "the time is over"}}, 2)
        else:
            self.envelope({"event": {"end": {"exitCode": max(code, -1), "exited": code >= 0,
                                             "status": f"exit status {code}"}}})
            self.envelope({}, 2)
        self.wfile.write(b"0\r\n\r\n")

    def write_file(self):
        self.inside()
        for _, _, content in self.parts():
            Path(self.query["path"]).write_bytes(content)
        self.answer(200, [{"name": Path(self.query["path"]).name, "type": "file", "path": self.query["path"]}])

    def remove_file(self):
        self.inside()
        Path(json.loads(self.sent)["path"]).unlink(missing_ok=True)
        self.answer(200, {})

    ROUTES = (("POST", "/v2/sandboxes", create), ("POST", "/v2/sandboxes/([^/]+)/connect", connect),
              ("POST", "/sandboxes/([^/]+)/timeout", set_timeout), ("POST", "/sandboxes/([^/]+)/pause", pause),
              ("DELETE", "/sandboxes/([^/]+)", kill), ("POST", "/process.Process/Start", start_process),
              ("POST", "/files", write_file), ("POST", "/filesystem.Filesystem/Remove", remove_file))


class Daytona(Handler):
    """The control API, and the toolbox of each sandbox."""

    MARKS = {"stdout": b"\1\1\1", "stderr": b"\2\2\2"}

    def show(self, box, status=200):
        self.answer(status, {
            "id": box.id, "name": box.id, "organizationId": "o", "user": "daytona", "env": {}, "labels": {},
            "public": False, "networkBlockAll": False, "target": "here", "cpu": 1, "gpu": 0, "memory": 1, "disk": 1,
            "state": box.state, "autoStopInterval": 15, "autoArchiveInterval": 60, "autoDeleteInterval": -1,
            "toolboxProxyUrl": f"{self.service.url}/toolbox"})

    def create(self):
        if self.headers.get("Authorization") != f"Bearer {KEY}":
            return self.answer(401, {"statusCode": 401, "message": "wrong key"})
        return self.show(self.service.make())

    def get(self, name):
        self.show(self.box(name))

    def delete(self, name):
        box = self.box(name)
        self.service.remove(box)
        box.state = "destroyed"
        self.show(box)

    def start_box(self, name):
        self.box(name).state = "started"
        self.show(self.box(name))

    def stop_box(self, name):
        box = self.box(name)
        box.end_all()
        box.sessions.clear()
        box.state = "stopped"
        self.show(box)

    def work_dir(self, name):
        self.answer(200, {"dir": str(self.box(name).home)})

    def make_folder(self, name):
        self.box(name)
        Path(self.query["path"]).mkdir(parents=True, exist_ok=True)
        self.answer(201)

    def upload(self, name):
        self.box(name)
        paths = {}
        for field, _, content in self.parts():
            number, what = re.fullmatch(r"files\[(\d+)\]\.(\w+)", field).groups()
            if what == "path":
                paths[number] = content.decode()
            else:
                Path(paths[number]).write_bytes(content)
        self.answer(200, {})

    def download(self, name):
        self.box(name)
        border = uuid.uuid4().hex
        body = b""
        for path in json.loads(self.sent)["paths"]:
            body += (f'--{border}\r\nContent-Disposition: form-data; name="file"; filename="{path}"\r\n'
                     "Content-Type: application/octet-stream\r\n\r\n").encode()
            body += Path(path).read_bytes() + b"\r\n"
        self.answer(200, body + f"--{border}--\r\n".encode(), f"multipart/form-data; boundary={border}")

    def permissions(self, name):
        self.box(name)
        os.chmod(self.query["path"], int(self.query["mode"], 8))
        self.answer(200, {})

    def delete_file(self, name):
        self.box(name)
        Path(self.query["path"]).unlink(missing_ok=True)
        self.answer(204)

    def execute(self, name):
        wish = json.loads(self.sent)
        process = self.box(name).start(["sh", "-c", wish["command"]])
        try:
            out, err = process.communicate(timeout=wish.get("timeout"))
        except subprocess.TimeoutExpired:
            Box.end(process)
            return self.answer(408, {"statusCode": 408, "code": "PROCESS_EXECUTION_TIMEOUT", "message": "too late"})
        return self.answer(200, {"exitCode": process.returncode, "result": (out + err).decode(errors="replace")})

    def open_session(self, name):
        self.box(name).sessions[json.loads(self.sent)["sessionId"]] = {}
        self.answer(201, {})

    def close_session(self, name, session):
        commands = self.session(name, session)
        for command in commands.values():
            Box.end(command["process"])
        del self.box(name).sessions[session]
        self.answer(204)

    def session(self, name, session):
        found = self.box(name).sessions.get(session)
        if found is None:
            raise Missing(session)
        return found

    def begin(self, name, session):
        commands = self.session(name, session)
        process = self.box(name).start(["sh", "-c", json.loads(self.sent)["command"]])
        command = {"process": process, "frames": [], "ended": False, "news": threading.Condition()}

        def take(stream, chunk):
            with command["news"]:
                command["frames"].append(self.MARKS[stream] + chunk)
                command["news"].notify_all()

        def follow():
            each_chunk(process, take)
            process.wait()
            with command["news"]:
                command["ended"] = True
                command["news"].notify_all()

        threading.Thread(target=follow, daemon=True).start()
        name = uuid.uuid4().hex
        commands[name] = command
        self.answer(202, {"cmdId": name})

    def command_of(self, name, session, command):
        found = self.session(name, session).get(command)
        if found is None:
            raise Missing(command)
        return found

    def look(self, name, session, command):
        found = self.command_of(name, session, command)
        value = {"id": command, "command": "?"}
        if found["ended"]:
            code = found["process"].returncode
            value["exitCode"] = code if code >= 0 else 128 - code
        self.answer(200, value)

    def logs(self, name, session, command):
        """A WebSocket that sends everything from the first byte on, and is closed at the end."""
        found = self.command_of(name, session, command)
        if not self.headers.get("Upgrade"):
            return self.answer(200, {"output": "", "stdout": "", "stderr": ""})
        key = self.headers["Sec-WebSocket-Key"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
        self.send_response(101)
        for field, value in (("Upgrade", "websocket"), ("Connection", "Upgrade"), (
                "Sec-WebSocket-Accept", base64.b64encode(hashlib.sha1(key.encode()).digest()).decode())):
            self.send_header(field, value)
        self.end_headers()
        said = 0
        while True:
            with found["news"]:
                found["news"].wait_for(lambda: len(found["frames"]) > said or found["ended"])
                frames, over = found["frames"][said:], found["ended"]
            for frame in frames:
                self.send_frame(2, frame)
            said += len(frames)
            if over and said == len(found["frames"]):
                break
        self.send_frame(8, struct.pack(">H", 1000))
        self.connection.shutdown(socket.SHUT_WR)
        self.close_connection = True
        return None

    def send_frame(self, kind, data):
        size = len(data)
        length = bytes([size]) if size < 126 else (
            b"\x7e" + struct.pack(">H", size) if size < 65536 else b"\x7f" + struct.pack(">Q", size))
        self.wfile.write(bytes([0x80 | kind]) + length + data)

    TOOLBOX = "/toolbox/([^/]+)"
    SESSION = TOOLBOX + "/process/session/([^/]+)"
    ROUTES = (("POST", "/sandbox", create), ("GET", "/sandbox/([^/]+)", get), ("DELETE", "/sandbox/([^/]+)", delete),
              ("POST", "/sandbox/([^/]+)/start", start_box), ("POST", "/sandbox/([^/]+)/stop", stop_box),
              ("GET", TOOLBOX + "/work-dir", work_dir), ("POST", TOOLBOX + "/files/folder", make_folder),
              ("POST", TOOLBOX + "/files/bulk-upload", upload),
              ("POST", TOOLBOX + "/files/bulk-download", download),
              ("POST", TOOLBOX + "/files/permissions", permissions), ("DELETE", TOOLBOX + "/files", delete_file),
              ("POST", TOOLBOX + "/process/execute", execute),
              ("POST", TOOLBOX + "/process/session", open_session), ("DELETE", SESSION, close_session),
              ("POST", SESSION + "/exec", begin), ("GET", SESSION + "/command/([^/]+)", look),
              ("GET", SESSION + "/command/([^/]+)/logs", logs))
