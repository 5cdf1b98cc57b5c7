"""Runs from outside: over the API and with `berth run`, as a user or a script would use them."""

import base64
import contextlib
import http.client
import json
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import time

from support import ANSWER_LIMIT_S, BERTH, BerthTest, clean_environment, read_events

END_LIMIT_S = 60
FINAL = {"succeeded", "failed", "cancelled", "timed_out", "interrupted"}


class Frames:
    """A WebSocket with only what the tests need."""

    def __init__(self, port, path, key=None):
        self.socket = socket.create_connection(("127.0.0.1", port), ANSWER_LIMIT_S)
        self.socket.sendall((f"GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\n"
                             "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n" +
                             (f"Authorization: Bearer {key}\r\n" if key else "") + "\r\n").encode())
        self.stream = self.socket.makefile("rb")
        self.status = int(self.stream.readline().split()[1])
        while self.stream.readline() not in (b"\r\n", b""):
            pass

    def close(self):
        self.stream.close()
        self.socket.close()

    def send(self, payload, opcode=1):
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        head = bytes([0x80 | opcode])
        size = len(data)
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += bytes([0x80 | 126]) + struct.pack(">H", size)
        else:
            head += bytes([0x80 | 127]) + struct.pack(">Q", size)
        mask = b"\1\2\3\4"
        self.socket.sendall(head + mask + bytes(b ^ mask[i % 4] for i, b in enumerate(data)))

    def stdin(self, data):
        self.send({"type": "stdin", "data": base64.b64encode(data).decode()})

    def __iter__(self):
        """(stream, offset, bytes) for output, dictionaries for events, until the server closes."""
        while True:
            head = self.stream.read(2)
            if len(head) < 2 or head[0] & 15 == 8:
                return
            size = head[1] & 127
            if size == 126:
                size, = struct.unpack(">H", self.stream.read(2))
            elif size == 127:
                size, = struct.unpack(">Q", self.stream.read(8))
            payload = self.stream.read(size)
            if head[0] & 15 == 1:
                yield json.loads(payload)
            elif head[0] & 15 == 2:
                yield payload[0], struct.unpack(">Q", payload[1:9])[0], payload[9:]

    def news(self, kind):
        return next(item for item in self if isinstance(item, dict) and item["type"] == kind)


class Runs(BerthTest):
    def start(self, *flags, **variables):
        self.server = self.serve(*flags, **variables)
        self.company = self.server.company()
        self.url = f"http://127.0.0.1:{self.server.port}"
        return self.server

    def ask(self, command, *args, **more):
        return self.server.post(f"/api/companies/{self.company}/runs",
                                {"command": command, "args": list(args), **more})

    def started(self, *words, **more):
        answer = self.ask(*words, **more)
        self.assertEqual(answer.status, 202, answer.text)
        return answer.json["id"]

    def look(self, run, wait=0):
        return self.server.get(f"/api/heartbeat-runs/{run}?wait={wait}").json

    def ended(self, run):
        deadline = time.monotonic() + END_LIMIT_S
        while time.monotonic() < deadline:
            view = self.look(run, wait=10)
            if view["status"] in FINAL:
                return view
        self.fail(f"run {run} does not end: {view}")

    def reaches(self, run, status):
        deadline = time.monotonic() + END_LIMIT_S
        while time.monotonic() < deadline:
            view = self.look(run, wait=5)
            if view["status"] == status:
                return view
            self.assertNotIn(view["status"], FINAL, view)
        self.fail(f"run {run} does not become {status}: {view}")

    def raw(self, run, stream="stdout"):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=ANSWER_LIMIT_S)
        with contextlib.closing(connection):
            connection.request("GET", f"/api/heartbeat-runs/{run}/log?format=raw&stream={stream}")
            answer = connection.getresponse()
            return answer, answer.read()

    def attach(self, run, offset=0):
        frames = Frames(self.server.port, f"/api/heartbeat-runs/{run}/attach?offset={offset}")
        self.addCleanup(frames.close)
        return frames

    def berth(self, *words, stdin=b"", **more):
        return subprocess.run([BERTH, *words], input=stdin, capture_output=True,
                              env=clean_environment(BERTH_URL=self.url), timeout=END_LIMIT_S,
                              check=False, **more)

    def popen(self, *words, **more):
        process = subprocess.Popen([BERTH, *words], env=clean_environment(BERTH_URL=self.url), **more)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def refused(self, answer, status, code):
        self.assertEqual((answer.status, answer.json.get("code")), (status, code), answer.text)
        self.assertTrue(answer.json["error"])


class Api(Runs):
    def test_a_command_runs_and_everything_about_it_can_be_read(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                self.start(home=self.folder / engine, **variables)
                run = self.started("sh", "-c", "printf out; printf err >&2; exit 3")
                view = self.ended(run)
                self.assertEqual((view["status"], view["exitCode"]), ("failed", 3))
                self.assertEqual(view["environment"]["name"], "Local")
                self.assertEqual(view["environmentChoice"]["reason"], "company_default")
                self.assertTrue(view["environmentChoice"]["explanation"])
                self.assertEqual([phase["phase"] for phase in view["phases"]][:2], ["queued", "acquire"])
                self.assertEqual(view["logBytes"], 6)
                answer, out = self.raw(run)
                self.assertEqual(out, b"out")
                self.assertEqual((answer.headers["X-Next-Offset"], answer.headers["X-Eof"]), ("6", "true"))
                self.assertEqual(answer.headers["Content-Type"], "application/octet-stream")
                self.assertEqual(self.raw(run, "stderr")[1], b"err")
                log = self.server.get(f"/api/heartbeat-runs/{run}/log")
                self.assertEqual(log.headers["Cache-Control"], "no-store")
                self.assertEqual((log.json["nextOffset"], log.json["eof"]), (6, True))
                lines = [json.loads(line) for line in log.json["content"].splitlines()]
                self.assertEqual({line["stream"]: line["chunk"] for line in lines},
                                 {"stdout": "out", "stderr": "err"})

    def test_bytes_that_are_no_text_come_back_as_they_were(self):
        self.start()
        run = self.started("printf", r"\000\377\376x\r\n")
        self.ended(run)
        self.assertEqual(self.raw(run)[1], b"\0\xff\xfex\r\n")

    def test_a_wait_answers_when_the_state_changes(self):
        self.start()
        run = self.started("sh", "-c", "read line; exit 0", stdinOpen=True)
        self.reaches(run, "running")
        before = time.monotonic()
        frames = self.attach(run)
        frames.news("state")
        frames.stdin(b"go\n")
        self.assertEqual(self.ended(run)["status"], "succeeded")
        self.assertLess(time.monotonic() - before, 30)
        for wrong in ("-1", "61", "soon"):
            self.refused(self.server.get(f"/api/heartbeat-runs/{run}?wait={wrong}"), 400,
                         "validation_failed")

    def test_a_wait_for_the_end_or_the_release_passes_over_what_comes_before(self):
        self.start()
        run = self.started("sh", "-c", "echo said; sleep 0.2")
        until = lambda moment: self.server.get(f"/api/heartbeat-runs/{run}?wait=60&until={moment}")
        self.assertEqual(until("end").json["status"], "succeeded")
        self.assertEqual(self.raw(run)[1], b"said\n")
        self.assertEqual(until("release").json["environmentLease"]["status"], "released")
        self.refused(until("never"), 400, "validation_failed")

    def test_a_queued_run_says_its_position_and_why(self):
        self.start("--runs-max", "1")
        first = self.started("sleep", "600")
        self.reaches(first, "running")
        second, third = self.started("true"), self.started("true")
        view = self.look(third)
        self.assertEqual((view["status"], view["queue"]["position"]), ("queued", 2))
        self.assertEqual(view["queue"]["reason"], "server_limit")
        self.assertTrue(view["queue"]["explanation"])
        self.assertEqual(self.look(second)["queue"]["position"], 1)
        cancelled = self.server.post(f"/api/heartbeat-runs/{first}/cancel", None)
        self.assertEqual(cancelled.status, 200, cancelled.text)
        self.assertEqual(self.ended(first)["status"], "cancelled")
        self.assertEqual(self.ended(third)["status"], "succeeded")

    def test_the_event_stream_resumes_and_ends_with_the_run(self):
        self.start()
        run = self.started("sh", "-c", "read line", stdinOpen=True)
        frames = self.attach(run)
        with self.server.events(f"/api/heartbeat-runs/{run}/events/stream") as events:
            first = next(events)
            self.assertEqual((first["id"], first["event"]), ("1", "lifecycle"))
            self.assertEqual(json.loads(first["data"])["seq"], 1)
            frames.send({"type": "stdin_end"})
            rest = list(events)
        listed = self.server.get(f"/api/heartbeat-runs/{run}/events").json
        self.assertEqual([event["seq"] for event in listed], list(range(1, len(listed) + 1)))
        self.assertEqual([event["id"] for event in [first, *rest]],
                         [str(event["seq"]) for event in listed])
        self.assertIn(json.loads(rest[-1]["data"])["payload"]["status"], FINAL)
        with self.server.events(f"/api/heartbeat-runs/{run}/events/stream", last="2") as events:
            self.assertEqual([event["id"] for event in events],
                             [str(seq) for seq in range(3, len(listed) + 1)])
        page = self.server.get(f"/api/heartbeat-runs/{run}/events?afterSeq=1&limit=1").json
        self.assertEqual([event["seq"] for event in page], [2])
        wrong = self.server.get(f"/api/heartbeat-runs/{run}/events/stream", **{"Last-Event-ID": "x"})
        self.refused(wrong, 400, "validation_failed")

    def test_lists_are_filtered_and_paged(self):
        self.start()
        agent = self.server.post(f"/api/companies/{self.company}/agents",
                                 {"name": "a", "adapterType": "process",
                                  "adapterConfig": {"command": "true"}}).json["id"]
        good = [self.started("true") for _ in range(3)]
        bad = self.started("false", agentId=agent)
        for run in [*good, bad]:
            self.ended(run)
        path = f"/api/companies/{self.company}/heartbeat-runs"
        ids = lambda query: [row["id"] for row in self.server.get(path + query).json]
        self.assertEqual(ids(""), [bad, *reversed(good)])
        self.assertEqual(ids("?status=failed"), [bad])
        self.assertEqual(ids(f"?agentId={agent}"), [bad])
        local = self.server.get(f"/api/companies/{self.company}/environments?driver=local").json[0]["id"]
        self.assertEqual(len(ids(f"?environmentId={local}")), 4)
        page = self.server.get(path + "?limit=3")
        following = page.headers["Link"].split(">")[0].lstrip("<")
        self.assertEqual([row["id"] for row in self.server.get(following).json], [good[0]])
        self.refused(self.server.get(path + "?status=gone"), 400, "validation_failed")

    def test_a_list_tells_what_changed_and_carries_no_output(self):
        self.start()
        path = f"/api/companies/{self.company}/heartbeat-runs"
        script = "printf %0100000d 7; printf %0100000d 8 >&2; exit 3"
        old = self.started("sh", args=["-c", script])
        self.ended(old)
        row, = self.server.get(path).json
        self.assertEqual((row["title"], row["exitCode"], row["status"]), (script, 3, "failed"))
        self.assertLess(len(json.dumps(row)), 1500)
        since = row["updatedAt"]
        later = self.started("true")
        self.ended(later)
        changed = [each["id"] for each in self.server.get(f"{path}?changedSince={since}&limit=50").json]
        self.assertEqual(changed[0], later)
        now = self.server.get(path).json[0]["finishedAt"]
        changed = [each["id"] for each in self.server.get(f"{path}?changedSince={now}").json]
        self.assertEqual(changed, [later])
        self.refused(self.server.get(f"{path}?changedSince={now}&status=failed"), 422, "unprocessable")
        self.refused(self.server.get(f"{path}?changedSince=yesterday"), 400, "validation_failed")

    def test_an_agent_is_invoked_and_its_run_is_its_own(self):
        self.start()
        agent = self.server.post(f"/api/companies/{self.company}/agents",
                                 {"name": "a", "adapterType": "process",
                                  "adapterConfig": {"command": "sh", "args": ["-c", "echo hi"]}}).json["id"]
        for verb in ("heartbeat/invoke", "wakeup"):
            answer = self.server.post(f"/api/agents/{agent}/{verb}", {"reason": "because"})
            self.assertEqual(answer.status, 202, answer.text)
            view = self.ended(answer.json["id"])
            self.assertEqual((view["status"], view["agentId"]), ("succeeded", agent), view)
            self.assertEqual(self.raw(view["id"])[1], b"hi\n")

    def test_a_retry_is_a_new_run_of_the_same(self):
        self.start()
        first = self.started("sh", "-c", "exit 4")
        self.ended(first)
        answer = self.server.post(f"/api/heartbeat-runs/{first}/retry", None)
        self.assertEqual((answer.status, answer.json["retryOfRunId"]), (202, first), answer.text)
        self.assertEqual(self.ended(answer.json["id"])["exitCode"], 4)
        waiting = self.started("sleep", "600")
        self.refused(self.server.post(f"/api/heartbeat-runs/{waiting}/retry", None), 409, "conflict")
        self.server.post(f"/api/heartbeat-runs/{waiting}/cancel", None)
        self.ended(waiting)

    def test_what_a_caller_sends_wrong_is_refused_with_code_and_remedy(self):
        self.start()
        for answer, status in (
                (self.ask("true", env={"1A": "x"}), 422),
                (self.ask("true", env={"A B": "x"}), 422),
                (self.ask("true", env={"A": 1}), 422),
                (self.ask("a\0b"), 422),
                (self.ask("echo", "a\0b"), 422),
                (self.ask(""), 422),
                (self.ask("true", cwd="relative"), 422),
                (self.ask("true", timeoutMs=0), 422),
                (self.ask("true", terminal={"columns": 0, "rows": 1}), 422),
                (self.ask("echo", *["x" * 1000] * 3000), 422),
                (self.ask("true", unknown=1), 400),
                (self.ask("true", environmentId="00000000-0000-4000-8000-000000000000"), 404),
                (self.server.post(f"/api/companies/{self.company}/runs", {}), 400)):
            self.assertEqual(answer.status, status, answer.text)
            self.assertTrue(answer.json["code"] and answer.json["error"], answer.text)
        wide = {f"V{number}": "" for number in range(1001)}
        for body in ({"command": "true", "env": wide}, {"command": "true", "args": ["x"] * 4097}):
            self.refused(self.server.post(f"/api/companies/{self.server.company()}/runs", body), 422,
                         "unprocessable")
        missing = "/api/heartbeat-runs/00000000-0000-4000-8000-000000000000"
        for path in ("", "/events", "/log", "/attach"):
            self.refused(self.server.get(missing + path), 404, "run_not_found")
        run = self.started("true")
        self.ended(run)
        for query in ("limitBytes=511", "limitBytes=16777217", "offset=-1", "stream=stdout",
                      "format=raw&stream=stdin", "format=pdf"):
            self.refused(self.server.get(f"/api/heartbeat-runs/{run}/log?{query}"), 400,
                         "validation_failed")

    def test_what_cannot_be_started_ends_the_run_with_its_cause(self):
        self.start()
        script = self.folder / "script"
        script.write_text("#!/bin/sh\n")
        for command, more, code in (
                ("no-such-command-here", {}, "command_not_found"),
                (str(script), {}, "command_not_executable"),
                ("true", {"cwd": "/no/such/folder"}, "working_directory_missing")):
            view = self.ended(self.started(command, **more))
            self.assertEqual((view["status"], view["errorCode"]), ("failed", code), view)
            self.assertIsNone(view["exitCode"])
            self.assertTrue(view["error"])

    def test_leases_show_who_held_what(self):
        self.start()
        run = self.started("sleep", "600")
        lease = self.reaches(run, "running")["environmentLease"]
        self.assertEqual(lease["status"], "active")
        path = f"/api/companies/{self.company}/environment-leases"
        self.assertEqual([row["id"] for row in self.server.get(path + "?status=active").json],
                         [lease["id"]])
        one = self.server.get(f"/api/environment-leases/{lease['id']}").json
        self.assertEqual((one["heartbeatRunId"], one["driver"], one["parkedAt"]), (run, "local", None))
        self.assertTrue(one["nextStep"])
        self.assertEqual(self.server.get(path + "?parked=true").json, [])
        held = self.server.post(f"/api/environment-leases/{lease['id']}/release", None)
        self.refused(held, 409, "conflict")
        self.assertIn("cancel", held.json["remedy"])
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", None)
        self.assertEqual(self.ended(run)["status"], "cancelled")
        self.assertEqual(self.server.get(path + "?status=active").json, [])
        again = self.server.post(f"/api/environment-leases/{lease['id']}/release", None)
        self.assertEqual((again.status, again.json["status"]), (200, "expired"), again.text)
        listed = self.berth("lease", "list")
        self.assertEqual([row["id"] for row in json.loads(listed.stdout)], [lease["id"]])
        missing = "/api/environment-leases/00000000-0000-4000-8000-000000000000"
        self.refused(self.server.post(missing + "/release", None), 404, "lease_not_found")
        self.refused(self.server.post(missing + "/force-resolve", {}), 400, "validation_failed")

    def test_the_local_environment_passes_its_test(self):
        self.start()
        environments = self.server.get(f"/api/companies/{self.company}/environments").json
        local = next(each["id"] for each in environments if each["driver"] == "local")
        report = self.server.post(f"/api/environments/{local}/probe", None)
        self.assertEqual((report.status, report.json["ok"]), (200, True), report.text)
        self.assertTrue(all(step["ok"] for step in report.json["steps"]))
        self.assertTrue(report.json["steps"])
        told = self.berth("env", "test", "Local")
        self.assertEqual((told.returncode, json.loads(told.stdout)["ok"]), (0, True), told.stderr)
        draft = self.server.post(f"/api/companies/{self.company}/environments/probe-config",
                                 {"driver": "local", "config": {}})
        self.assertEqual((draft.status, draft.json["ok"]), (200, True), draft.text)
        after = self.server.get(f"/api/companies/{self.company}/environments").json
        self.assertEqual(after, environments)


class Attached(Runs):
    def test_input_goes_in_output_comes_out_and_the_end_is_told(self):
        self.start()
        run = self.started("cat", stdinOpen=True)
        frames = self.attach(run)
        self.assertEqual(frames.status, 101)
        frames.stdin(b"one\n\0\xff")
        frames.send({"type": "stdin_end"})
        seen = list(frames)
        output = [item for item in seen if isinstance(item, tuple)]
        self.assertEqual(b"".join(item[2] for item in output), b"one\n\0\xff")
        self.assertEqual({item[0] for item in output}, {1})
        self.assertEqual(output[-1][1], 6)
        self.assertEqual(seen[-1]["type"], "ended")
        self.assertEqual((seen[-1]["run"]["status"], seen[-1]["run"]["exitCode"]), ("succeeded", 0))
        taken = [item["bytes"] for item in seen if isinstance(item, dict) and item["type"] == "stdin_taken"]
        self.assertEqual(sum(taken), 6)

    def test_an_offset_leaves_out_what_was_seen(self):
        self.start()
        run = self.started("printf", "0123456789")
        self.ended(run)
        seen = [item for item in self.attach(run, offset=7) if isinstance(item, tuple)]
        self.assertEqual((b"".join(item[2] for item in seen), seen[-1][1]), (b"789", 10))

    def test_a_wrong_frame_is_answered_and_does_not_end_the_socket(self):
        self.start()
        run = self.started("cat", stdinOpen=True)
        frames = self.attach(run)
        for wrong in (b"{", b"[]", b'{"type":"explode"}', b'{"type":"stdin","data":"%"}',
                      b'{"type":"resize","columns":0,"rows":1}', b'{"type":"signal","name":"SIGWHAT"}'):
            frames.send(wrong)
            told = frames.news("error")
            self.assertTrue(told["error"] and told["code"], wrong)
        frames.send(b"binary", opcode=2)
        self.assertEqual(frames.news("error")["code"], "validation_failed")
        frames.stdin(b"still here")
        self.assertEqual(next(item for item in frames if isinstance(item, tuple))[2], b"still here")
        frames.send({"type": "cancel"})
        self.assertEqual(frames.news("ended")["run"]["status"], "cancelled")

    def test_a_viewer_sees_the_output_and_sends_nothing(self):
        server = self.serve("--mode", "authenticated")
        admin = {"Authorization": "Bearer " + (server.home / "admin.token").read_text().strip()}
        company = server.get("/api/companies", **admin).json[0]["id"]
        home = f"/api/companies/{company}"
        viewer = server.post(f"{home}/tokens", {"name": "v", "role": "viewer"}, admin).json["key"]
        run = server.post(f"{home}/runs", {"command": "sh", "args": ["-c", "echo hi; read line"],
                                           "stdinOpen": True}, admin).json["id"]
        path = f"/api/heartbeat-runs/{run}"
        self.assertEqual(Frames(server.port, path + "/attach").status, 401)
        frames = Frames(server.port, path + "/attach", viewer)
        self.addCleanup(frames.close)
        self.assertEqual(next(item for item in frames if isinstance(item, tuple))[2], b"hi\n")
        for wish in ({"type": "cancel"}, {"type": "stdin_end"}, {"type": "signal", "name": "SIGKILL"}):
            frames.send(wish)
            self.assertEqual(frames.news("error")["code"], "forbidden", wish)
        server.post(path + "/cancel", None, admin)
        self.assertEqual(frames.news("ended")["run"]["status"], "cancelled")

    def test_a_signal_reaches_the_command(self):
        self.start()
        run = self.started("sh", "-c", 'trap "echo got it; exit 5" USR1; echo ready; read line',
                           stdinOpen=True)
        frames = self.attach(run)
        self.assertEqual(next(item for item in frames if isinstance(item, tuple))[2], b"ready\n")
        frames.send({"type": "signal", "name": "SIGUSR1"})
        seen = list(frames)
        self.assertEqual(b"".join(item[2] for item in seen if isinstance(item, tuple)), b"got it\n")
        self.assertEqual(seen[-1]["run"]["exitCode"], 5)

    def test_who_waits_in_the_queue_is_told(self):
        self.start("--runs-max", "1")
        first = self.started("sleep", "600")
        self.reaches(first, "running")
        second = self.started("cat", stdinOpen=True)
        frames = self.attach(second)
        self.assertEqual(frames.news("state")["run"]["queue"]["position"], 1)
        frames.stdin(b"early")  # kept until the command reads
        frames.send({"type": "stdin_end"})
        self.server.post(f"/api/heartbeat-runs/{first}/cancel", None)
        seen = list(frames)
        self.assertEqual(b"".join(item[2] for item in seen if isinstance(item, tuple)), b"early")
        self.assertEqual(seen[-1]["run"]["status"], "succeeded")


class Cli(Runs):
    def test_it_streams_both_ways_and_ends_as_the_command_does(self):
        self.start()
        done = self.berth("run", "--", "sh", "-c", "cat; printf err >&2; exit 7", stdin=b"\0\xffin")
        self.assertEqual((done.stdout, done.stderr, done.returncode), (b"\0\xffin", b"err", 7))
        done = self.berth("run", "-e", "Local", "-C", "/", "--env", "A=b c", "--", "sh", "-c",
                          'printf "%s %s" "$A" "$PWD"')
        self.assertEqual((done.stdout, done.returncode), (b"b c /", 0), done.stderr)

    def test_much_input_and_output_arrive_whole(self):
        self.start()
        data = os.urandom(3_000_000)
        done = self.berth("run", "--", "cat", stdin=data)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(len(done.stdout), len(data))
        self.assertTrue(done.stdout == data)

    def test_every_end_has_its_exit_code(self):
        self.start()
        for words, code in ((["true"], 0), (["false"], 1), (["sh", "-c", "kill -9 $$"], 137),
                            (["no-such-command-here"], 127)):
            done = self.berth("run", "--", *words)
            self.assertEqual(done.returncode, code, (words, done.stderr))
        self.assertIn(b"command_not_found", done.stderr)
        self.assertIn(b"fix:", done.stderr)
        done = self.berth("run", "--timeout", "300ms", "--", "sleep", "600")
        self.assertEqual(done.returncode, 124, done.stderr)
        self.assertIn(b"Timed out after 300 ms", done.stderr)
        self.assertEqual(self.berth("run").returncode, 2)
        self.assertEqual(self.berth("run", "-e", "nowhere", "--", "true").returncode, 125)

    def test_a_closed_standard_input_is_empty(self):
        self.start()
        done = subprocess.run(["sh", "-c", 'exec "$@" <&-', "sh", BERTH, "run", "--", "sh", "-c",
                               "cat; echo end"], capture_output=True, timeout=END_LIMIT_S, check=False,
                              env=clean_environment(BERTH_URL=self.url))
        self.assertEqual((done.returncode, done.stdout), (0, b"end\n"), done.stderr)

    def test_one_more_command_in_its_place_gives_every_byte_and_ends_as_it_ended(self):
        self.start()
        run = self.started("sleep", "600")
        self.reaches(run, "running")
        lease = self.server.get(f"/api/companies/{self.company}/environment-leases").json[0]["id"]
        much = self.berth("exec", lease, "--", "sh", "-c", "head -c 3000000 /dev/zero; printf '\\377' >&2")
        self.assertEqual((much.returncode, len(much.stdout), much.stderr), (0, 3_000_000, b"\xff"))
        for words, code in ((["sh", "-c", "kill -9 $$"], 137), (["cat"], 0), (["false"], 1),
                            (["no-such-command-here"], 127)):
            done = self.berth("exec", lease, "--", *words, stdin=b"not for it")
            self.assertEqual((done.returncode, done.stdout), (code, b""), (words, done.stderr))
        self.assertEqual(self.berth("exec", lease, "--timeout", "300ms", "--", "sleep", "60").returncode, 124)
        self.server.post(f"/api/heartbeat-runs/{run}/cancel", {})
        self.ended(run)

    def test_a_variable_can_be_a_secret_and_is_not_shown(self):
        self.start()
        made = self.berth("secret", "create", "deploy", stdin=b"hunter2-hunter2")
        self.assertEqual(made.returncode, 0, made.stderr)
        done = self.berth("run", "--env-secret", "KEY=deploy", "--", "sh", "-c",
                          'printf "%s" "$KEY"; printf "%s" "$KEY" | wc -c')
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertNotIn(b"hunter2", done.stdout)
        self.assertTrue(done.stdout.rstrip().endswith(b"15"), done.stdout)

    def test_ctrl_c_cancels_the_run(self):
        self.start()
        process = self.popen("run", "--", "sh", "-c", "echo ready; exec sleep 600",
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        process.send_signal(signal.SIGINT)
        _, told = process.communicate(timeout=END_LIMIT_S)
        self.assertEqual(process.returncode, 130, told)
        self.assertIn(b"cancelling", told)
        rows = self.server.get(f"/api/companies/{self.company}/heartbeat-runs").json
        self.assertEqual([row["status"] for row in rows], ["cancelled"])

    def test_a_reader_that_goes_away_cancels_the_run(self):
        self.start()
        process = self.popen("run", "--", "yes", stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
        self.assertEqual(process.stdout.read(2), b"y\n")
        process.stdout.close()
        self.assertEqual(process.wait(END_LIMIT_S), 141)
        run = self.server.get(f"/api/companies/{self.company}/heartbeat-runs").json[0]["id"]
        self.assertEqual(self.ended(run)["status"], "cancelled")

    def test_detached_it_goes_on_and_can_be_looked_at(self):
        self.start()
        made = self.berth("run", "-d", "--", "sh", "-c", "echo one; echo two >&2; sleep 1; echo three")
        self.assertEqual(made.returncode, 0, made.stderr)
        run = json.loads(made.stdout)["id"]
        followed = self.berth("run", "logs", "-f", run)
        self.assertEqual((followed.stdout, followed.stderr), (b"one\nthree\n", b"two\n"))
        self.assertEqual(self.berth("run", "logs", run, "--stream", "stderr").stdout, b"two\n")
        self.assertEqual(self.berth("run", "logs", run, "--raw").stdout.count(b"\n"), 3)
        self.assertEqual(json.loads(self.berth("run", "get", run).stdout)["status"], "succeeded")
        self.assertEqual(len(json.loads(self.berth("run", "list", "--status", "succeeded").stdout)), 1)
        events = [json.loads(line) for line in self.berth("run", "events", run).stdout.splitlines()]
        self.assertEqual(events[0]["seq"], 1)
        again = self.berth("run", "retry", run, "-f")
        self.assertEqual((again.returncode, again.stdout), (0, b"one\nthree\n"), again.stderr)
        self.assertEqual(self.berth("run", "get", "00000000").returncode, 3)

    def test_json_leaves_stdout_to_the_run_as_it_ended(self):
        self.start()
        done = self.berth("run", "--json", "--", "sh", "-c", "echo out; exit 2")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(json.loads(done.stdout)["exitCode"], 2)
        self.assertEqual(done.stderr, b"out\n")

    def test_it_attaches_again_when_the_server_was_restarted(self):
        self.start()
        port = self.server.port
        process = self.popen("run", "--", "sh", "-c", "echo before; sleep 6; echo after; exit 9",
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(process.stdout.readline(), b"before\n")
        self.server.kill()
        self.server = self.serve(port=port)
        out, told = process.communicate(timeout=END_LIMIT_S)
        self.assertEqual((out, process.returncode), (b"after\n", 9), told)
        self.assertIn(b"the connection is lost", told)
        self.assertIn(b"attached again", told)

    def test_a_terminal_is_a_terminal_and_is_given_back_as_it_was(self):
        self.start()
        leader, follower = pty.openpty()
        self.addCleanup(os.close, leader)
        import termios
        before = termios.tcgetattr(follower)
        process = self.popen("run", "-it", "--", "sh", "-c",
                             "test -t 0 && test -t 1 && echo yes; read line; echo got $line; exit 6",
                             stdin=follower, stdout=follower, stderr=follower, start_new_session=True)
        seen = self.read_until(leader, b"yes")
        self.assertNotEqual(termios.tcgetattr(follower)[3] & termios.ICANON, termios.ICANON)
        os.write(leader, b"words\r")
        seen += self.read_until(leader, b"got words")
        self.assertEqual(process.wait(END_LIMIT_S), 6, seen)
        self.assertEqual(termios.tcgetattr(follower), before)
        os.close(follower)

    def read_until(self, fd, wanted):
        seen = b""
        deadline = time.monotonic() + END_LIMIT_S
        while wanted not in seen and time.monotonic() < deadline:
            if select.select([fd], [], [], 1)[0]:
                seen += os.read(fd, 4096)
        self.assertIn(wanted, seen)
        return seen

    def test_an_agent_is_invoked_and_followed(self):
        self.start()
        self.server.post(f"/api/companies/{self.company}/agents",
                         {"name": "builder", "adapterType": "process",
                          "adapterConfig": {"command": "sh", "args": ["-c", "echo built; exit 3"]}})
        done = self.berth("agent", "invoke", "builder", "-f")
        self.assertEqual((done.stdout, done.returncode), (b"built\n", 3), done.stderr)
