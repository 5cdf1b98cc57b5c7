"""A private sshd on loopback, with its own keys."""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

PROGRAM = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin:" + os.environ.get("PATH", ""))
START_LIMIT_S = 20


class Sshd:
    def __init__(self, folder):
        self.folder = Path(folder)
        self.folder.mkdir(parents=True)
        self.workspace = self.folder / "workspace"
        self.user = getpass.getuser()
        for name in ("host_key", "client_key"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self.folder / name], check=True)
        (self.folder / "authorized_keys").write_text((self.folder / "client_key.pub").read_text())
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        (self.folder / "config").write_text("\n".join([
            "ListenAddress 127.0.0.1", f"Port {self.port}", f"HostKey {self.folder}/host_key",
            f"AuthorizedKeysFile {self.folder}/authorized_keys", f"PidFile {self.folder}/pid",
            "PubkeyAuthentication yes", "PasswordAuthentication no", "KbdInteractiveAuthentication no",
            "UsePAM no", "StrictModes no", "PermitRootLogin prohibit-password", f"AllowUsers {self.user}",
            "MaxStartups 100", "MaxSessions 100", ""]))
        self.process = None

    def start(self):
        if os.geteuid() == 0:
            Path("/run/sshd").mkdir(exist_ok=True)  # it refuses to start as root without it
        self.process = subprocess.Popen([PROGRAM, "-D", "-f", self.folder / "config",
                                         "-E", self.folder / "log"], stdin=subprocess.DEVNULL)
        ends = time.monotonic() + START_LIMIT_S
        while time.monotonic() < ends:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return self
            time.sleep(0.05)
        raise AssertionError("sshd does not answer: " + (self.folder / "log").read_text())

    def sessions(self):
        """The processes that serve its connections."""
        mine = set()
        for folder in Path("/proc").iterdir():
            if not folder.name.isdigit():
                continue
            try:
                parent = int((folder / "stat").read_text().rsplit(")", 1)[1].split()[1])
            except OSError:
                continue
            if self.process and parent == self.process.pid:
                mine.add(int(folder.name))
        return mine

    def stop(self):
        """Simulates a host that goes down: no connection survives."""
        if self.process is None:
            return
        for pid in self.sessions():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.kill()
        self.process.wait()
        self.process = None

    def config(self, **more):
        """The config of an environment on this host; the private key is stored as a Berth secret."""
        host_key = (self.folder / "host_key.pub").read_text().split()
        return {"host": "127.0.0.1", "port": self.port, "username": self.user,
                "remoteWorkspacePath": str(self.workspace),
                "privateKey": (self.folder / "client_key").read_text(),
                "knownHosts": f"[127.0.0.1]:{self.port} {host_key[0]} {host_key[1]}", **more}
