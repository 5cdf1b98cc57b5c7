"""Completion as users see it: a real zsh on a terminal, and its Tab key. For bash see cli_test.cpp."""

import os
import pty
import select
import time
from pathlib import Path

from support import BERTH, BerthTest, clean_environment

KILL_LINE = b"\x15"
LIMIT_S = 20


class Shell:
    """A zsh without user settings, on its own terminal."""

    def __init__(self, folder):
        variables = clean_environment(PATH=f"{Path(BERTH).parent}:/usr/bin:/bin", HOME=str(folder),
                                      TERM="dumb", PS1="% ")
        self.pid, self.terminal = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe("zsh", ["zsh", "-f", "-i"], variables)

    def type(self, keys, until):
        """What the terminal shows after these keys, once `until` is in it."""
        os.write(self.terminal, keys)
        shown = b""
        deadline = time.monotonic() + LIMIT_S
        while until not in shown and time.monotonic() < deadline:
            if select.select([self.terminal], [], [], 0.1)[0]:
                shown += os.read(self.terminal, 65536)
        return shown

    def end(self):
        os.close(self.terminal)
        os.waitpid(self.pid, 0)


class Completion(BerthTest):
    def setUp(self):
        super().setUp()
        if not Path("/usr/bin/zsh").exists():
            self.skipTest("there is no zsh here: apt-get install zsh")
        self.shell = Shell(self.folder)
        self.addCleanup(self.shell.end)
        # The typed words are echoed too, but do not contain this text as written here.
        shown = self.shell.type(b"autoload -Uz compinit && compinit -u -d dump && "
                                b"source <(berth completion zsh) && echo rea''dy\n", b"ready")
        self.assertIn(b"ready", shown)

    def completes(self, typed, into):
        shown = self.shell.type(typed.encode() + b"\t", into.encode())
        self.shell.type(KILL_LINE, b"")
        self.assertIn(into, shown.decode(errors="replace"))

    def test_zsh_completes_commands_flags_choices_and_files(self):
        (self.folder / "image.tar").touch()
        self.completes("berth sandbox dif", into="berth sandbox diff ")
        self.completes("berth --url http://x sandbox fo", into="sandbox fork ")
        self.completes("berth env create --dri", into="--driver")
        self.completes("berth env create --driver ss", into="--driver ssh")
        self.completes("berth image import im", into="berth image import image.tar")

    def test_zsh_completes_the_names_of_objects(self):
        server = self.serve()
        self.shell.type(f"export BERTH_URL=http://127.0.0.1:{server.port} && echo se''t\n".encode(), b"set")
        self.completes("berth env get Loc", into="berth env get Local")
        self.completes("berth run -e Sandb", into="-e Sandbox")

    def test_zsh_offers_a_flag_once(self):
        shown = self.shell.type(b"berth sandbox diff --\t", b"--url").decode(errors="replace")
        self.assertEqual(shown.count("--help"), 1, shown)
