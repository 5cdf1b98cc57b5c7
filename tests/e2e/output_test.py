"""Output that is large, long, binary or does not fit: it is kept byte for byte, or the loss is
reported."""

import hashlib
import http.client
import json
import os
import subprocess
import unittest
from pathlib import Path

import runs_support as runs
from support import BERTH, BerthTest

SANITIZED = b"__asan_init" in Path(BERTH).read_bytes()
MEGABYTE = 1 << 20


def raw_bytes(server, run, stream="stdout", page=16 * MEGABYTE):
    """Yields the bytes of one stream, page by page."""
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    offset, over = 0, False
    while not over:
        connection.request("GET", f"/api/heartbeat-runs/{run}/log?format=raw&stream={stream}"
                                  f"&offset={offset}&limitBytes={page}")
        answer = connection.getresponse()
        body = answer.read()
        assert answer.status == 200, body
        yield body
        offset, over = int(answer.headers["X-Next-Offset"]), answer.headers["X-Eof"] == "true"
    connection.close()


class Output(BerthTest):
    def run_to_end(self, server, *argv, **more):
        run = runs.start(server, *argv, **more)
        ended = runs.wait_for_end(server, run, limit_s=240)
        self.assertEqual(ended["status"], "succeeded", ended)
        return run, ended

    def test_a_gigabyte_is_kept_byte_for_byte(self):
        size = (100 if SANITIZED else 1024) * MEGABYTE
        server = self.serve()
        run, ended = self.run_to_end(server, "sh", "-c", f"yes 'a line of output' | head -c {size}")
        self.assertEqual(ended["logBytes"], size)
        got, digest = 0, hashlib.sha256()
        for part in raw_bytes(server, run):
            got += len(part)
            digest.update(part)
        self.assertEqual(got, size)
        self.assertEqual(digest.hexdigest(), ended["logSha256"])

    def test_a_line_of_a_hundred_megabytes_is_one_line(self):
        size = (20 if SANITIZED else 100) * MEGABYTE
        server = self.serve()
        run, _ = self.run_to_end(server, "sh", "-c", f"head -c {size} /dev/zero | tr '\\0' x; echo")
        text = b"".join(raw_bytes(server, run))
        self.assertEqual((len(text), text.count(b"\n")), (size + 1, 1))

    def test_a_page_of_lines_is_small_whatever_is_asked_for(self):
        server = self.serve()
        run, ended = self.run_to_end(server, "sh", "-c", "yes | head -c 1000000")
        offset, pages = 0, 0
        while offset < ended["logBytes"]:
            page = server.get(f"/api/heartbeat-runs/{run}/log?limitBytes=16777216&offset={offset}").json
            self.assertLessEqual(len(page["content"]), 256 << 10)
            self.assertGreater(page["nextOffset"], offset)
            offset, pages = page["nextOffset"], pages + 1
        self.assertGreater(pages, 3)
        self.assertTrue(page["eof"])

    def test_every_byte_comes_through_and_lines_stay_json(self):
        server = self.serve()
        script = "import os; os.write(1, bytes(range(256)) * 40); os.write(2, b'\\xff\\xfe\\x00 caf\\xc3')"
        run, ended = self.run_to_end(server, "python3", "-c", script)
        self.assertEqual(b"".join(raw_bytes(server, run)), bytes(range(256)) * 40)
        self.assertEqual(b"".join(raw_bytes(server, run, "stderr")), b"\xff\xfe\x00 caf\xc3")
        page = server.get(f"/api/heartbeat-runs/{run}/log?limitBytes=1048576").json
        lines = [json.loads(line) for line in page["content"].splitlines()]
        self.assertEqual({line["stream"] for line in lines}, {"stdout", "stderr"})
        self.assertEqual([line["seq"] for line in lines], sorted(line["seq"] for line in lines))
        self.assertTrue(page["eof"])
        self.assertIn("caf", ended["stderrExcerpt"])

    def test_what_a_run_says_is_printed_at_once_while_it_goes_on(self):
        server = self.serve()
        run = runs.start(server, "sh", "-c", "echo started; echo beside >&2; exec sleep 60")
        log = f"/api/heartbeat-runs/{run}/log?format=raw"
        self.assertTrue(runs.eventually(lambda: "beside" in server.get(log).text))
        printed = self.run_berth("--home", self.home, "run", "logs", run)
        self.assertEqual((printed.returncode, printed.stdout, printed.stderr), (0, "started\n", "beside\n"))
        self.assertEqual(server.post(f"/api/heartbeat-runs/{run}/cancel", {}).status, 200)
        runs.wait_for_end(server, run)

    def test_pages_of_any_size_give_the_same_bytes(self):
        server = self.serve()
        run, _ = self.run_to_end(server, "sh", "-c", "seq 1 20000; seq 1 20000 >&2")
        whole = b"".join(raw_bytes(server, run))
        for page in (512, 4096, 70_000):
            self.assertEqual(b"".join(raw_bytes(server, run, page=page)), whole, page)

    def small_disk(self, megabytes=24):
        folder = self.folder / "small"
        folder.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", folder],
                                 capture_output=True, text=True, check=False)
        if mounted.returncode:
            self.skipTest(f"cannot mount a tmpfs: {mounted.stderr.strip()}")
        self.addCleanup(subprocess.run, ["umount", "-l", folder], check=False)
        return folder

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small disk")
    def test_a_full_disk_ends_no_command_and_the_run_ends_when_there_is_room(self):
        home = self.small_disk()
        ballast, done = home / "ballast", self.folder / "done"
        server = self.serve(home=home)
        self.addCleanup(server.kill)
        ballast.write_bytes(bytes(12 * MEGABYTE))
        run = runs.start(server, "sh", "-c", f"head -c {30 * MEGABYTE} /dev/zero; echo went on > {done}")
        self.assertTrue(runs.eventually(done.exists, limit_s=60), "the command was held up")
        ballast.unlink()
        ended = runs.wait_for_end(server, run, limit_s=120)
        self.assertEqual((ended["status"], ended["exitCode"]), ("succeeded", 0), ended)
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        events = server.get(f"/api/heartbeat-runs/{run}/events").json
        told = [event["message"] for event in events if event["level"] == "warn"]
        self.assertTrue(told, "the loss is not said")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small disk")
    def test_a_run_that_says_more_than_the_disk_holds_ends_and_leaves_room_for_others(self):
        home = self.small_disk()
        server = self.serve(home=home)
        self.addCleanup(server.kill)
        run = runs.start(server, "sh", "-c", f"head -c {60 * MEGABYTE} /dev/zero; echo end >&2")
        ended = runs.wait_for_end(server, run, limit_s=60)
        self.assertEqual((ended["status"], ended["exitCode"]), ("succeeded", 0), ended)
        events = server.get(f"/api/heartbeat-runs/{run}/events").json
        self.assertTrue([event for event in events if event["level"] == "warn"], "the loss is not said")
        self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
        after, _ = self.run_to_end(server, "echo", "still here")
        self.assertEqual(runs.output(server, after), "still here\n")

    @unittest.skipUnless(os.geteuid() == 0, "needs root to mount a small disk")
    def test_lost_output_is_told_by_exec_and_run(self):
        home = self.small_disk(megabytes=64)
        server = self.serve(home=home)
        self.addCleanup(server.kill)
        held = runs.start(server, "sleep", "100")
        runs.wait_until(server, held, {"running"})
        lease = runs.leases(server)[0]["id"]

        def berth(*words):
            return self.run_berth("--home", home, *words, stdin="")

        # An eighth of the disk is kept free; less is left, but enough for the server's rows.
        left = os.statvfs(home).f_bavail * os.statvfs(home).f_frsize
        ballast = home / "ballast"
        ballast.write_bytes(bytes(left - 6 * MEGABYTE))
        lost = "5 bytes of output were lost: no space left on the disk that keeps it"
        for words in [("exec", lease), ("-q", "exec", lease), ("run",), ("-q", "run")]:
            done = berth(*words, "--", "echo", "head")
            self.assertEqual((done.returncode, done.stdout), (125, ""), (words, done.stderr))
            self.assertIn(lost, done.stderr, words)
        for words in [("exec", lease), ("run",)]:
            failed = berth(*words, "--", "sh", "-c", "echo head; exit 3")
            self.assertEqual(failed.returncode, 3, (words, failed.stderr))
            self.assertIn(lost, failed.stderr, words)
            silent = berth(*words, "--", "true")
            self.assertEqual((silent.returncode, silent.stderr), (0, ""), words)
        told = server.post(f"/api/environment-leases/{lease}/exec", {"argv": ["echo", "head"]}).json
        self.assertEqual((told["exitCode"], told["stdoutText"], told["stderrText"]), (0, "", ""))
        self.assertEqual((told["isTruncated"], told["bytesLost"]), (True, 5))
        run, ended = self.run_to_end(server, "sh", "-c", "echo head; sleep 0.2; echo tail")
        self.assertEqual(ended["usageJson"]["bytesLost"], 10, ended)
        logs = berth("run", "logs", run)
        self.assertEqual((logs.returncode, logs.stdout), (0, ""), logs.stderr)
        self.assertIn("10 bytes of output were lost", logs.stderr)
        self.check_disk(server, "full")
        ballast.unlink()
        self.check_disk(server, "ok")
        whole = berth("exec", lease, "--", "echo", "head")
        self.assertEqual((whole.returncode, whole.stdout, whole.stderr), (0, "head\n", ""))
        server.post(f"/api/heartbeat-runs/{held}/cancel", {})
        runs.wait_for_end(server, held)

    def check_disk(self, server, expected):
        ready = server.get("/api/health/ready")
        self.assertEqual((ready.status, ready.json["status"], ready.json["disk"]), (200, "ready", expected))
        kept = "1" if expected == "ok" else "0"
        self.assertIn(f"berth_output_is_kept {kept}\n", server.get("/metrics").text)
        home = next(found for found in server.get("/api/instance/findings").json if found["check"] == "home")
        self.assertEqual("output of commands is lost" in home["says"], expected == "full", home)


if __name__ == "__main__":
    unittest.main()
