"""A host behind ssh that answers with any bytes does not cost the server its memory."""

import unittest
from pathlib import Path

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


if __name__ == "__main__":
    unittest.main()
