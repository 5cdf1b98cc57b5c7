"""A host behind ssh that answers with any bytes costs the server neither its memory nor its disk."""

import os
import subprocess
import unittest
from pathlib import Path

import runs_support as runs
from sshd import PROGRAM, Sshd
from support import BerthTest

# Answers the first script with its end marker, and never ends the line that follows.
ENDLESS = """#!/usr/bin/env python3
import os, sys
out = sys.stdout.buffer
out.write(b"#berth-shell\\n")
out.flush()
for line in sys.stdin.buffer:
    if line.startswith(b"#go "):
        out.write(b"\\n#end " + line[4:].strip() + b" ")
        for _ in range(1024):
            out.write(b"x" * (1 << 20))
        break
"""


@unittest.skipUnless(PROGRAM, "needs sshd: install openssh-server")
class HostileHosts(BerthTest):
    def sshd(self, *lines):
        host = Sshd(self.folder / "sshd")
        with open(host.folder / "config", "a", encoding="utf-8") as config:
            config.writelines(line + "\n" for line in lines)
        self.addCleanup(host.stop)
        return host

    def environment(self, server, host):
        made = server.post(f"/api/companies/{server.company()}/environments",
                           {"name": "host", "driver": "ssh", "config": host.config()})
        self.assertEqual(made.status, 201, made.text)
        return made.json["id"]

    def test_an_answer_without_end_is_refused_before_it_fills_the_memory(self):
        program = self.folder / "endless"
        program.write_text(ENDLESS)
        program.chmod(0o755)
        host = self.sshd(f"ForceCommand {program}").start()
        server = self.serve()
        answer = server.post(f"/api/companies/{server.company()}/environments/probe-config",
                             {"driver": "ssh", "config": host.config()})
        self.assertFalse(answer.json["ok"], answer.text)
        status = Path(f"/proc/{server.process.pid}/status").read_text()
        peak_kb = int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])
        self.assertLess(peak_kb, 400 << 10)

    @unittest.skipUnless(os.geteuid() == 0, "needs root: mounts a small disk")
    def test_its_output_leaves_the_reserve_of_the_disk(self):
        self.home.mkdir()
        subprocess.run(["mount", "-t", "tmpfs", "-o", "size=160m", "tmpfs", self.home], check=True)
        self.addCleanup(subprocess.run, ["umount", "-l", self.home], check=True)
        host = self.sshd().start()
        server = self.serve()
        place = self.environment(server, host)
        run = server.post(f"/api/companies/{server.company()}/runs",
                          {"command": "sh", "args": ["-c", "yes | head -c 400000000"], "environmentId": place})
        self.assertEqual(run.status, 202, run.text)
        reserve = (160 << 20) // 8

        # Without a limit the disk would be full by now, or the run would have all its output.
        runs.eventually(lambda: "run.follow_failed" in server.said())
        disk = os.statvfs(self.home)
        self.assertGreater(disk.f_bavail * disk.f_frsize, reserve // 2)
        server.post(f"/api/heartbeat-runs/{run.json['id']}/cancel", {})


if __name__ == "__main__":
    unittest.main()
