"""What this machine offers, found by examining the machine itself. A test skips because of these
results and never because of Berth's answer, which is what it tests."""

import ctypes
import json
import subprocess
from pathlib import Path

from support import as_user

SYS_LANDLOCK_CREATE_RULESET = 444
LANDLOCK_ASKS_FOR_VERSION = 1


def why_no_sandbox(user=None):
    """Nothing if this user, or the user who runs the tests, may create a sandbox's namespaces; else
    why not."""
    done = subprocess.run([*as_user(user), "unshare", "--user", "--map-root-user", "--mount", "--pid", "--net", "--ipc",
                           "--uts", "--fork", "true"], capture_output=True, text=True, check=False, cwd="/")
    return None if done.returncode == 0 else f"no namespaces can be made here: {done.stderr.strip()}"


def group_of(controller):
    """The control group of this process in a controller's hierarchy; nothing if there is none."""
    for line in Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        number, names, path = line.split(":", 2)
        if controller in names.split(","):
            return Path(f"/sys/fs/cgroup/{controller}{path}")
        if number == "0" and not Path(f"/sys/fs/cgroup/{controller}").is_dir():
            group = Path(f"/sys/fs/cgroup{path}")
            # Every group of version 2 can be frozen; the other controllers are listed.
            known = group / "cgroup.controllers"
            there = controller == "freezer" or controller in known.read_text(encoding="utf-8").split()
            return group if there else None
    return None


def can_make_groups(controller, user=None):
    """Whether this user may create groups below that of the tests, with this controller."""
    group = group_of(controller)
    return group is not None and subprocess.run([*as_user(user), "test", "-w", str(group)], check=False).returncode == 0


def has_landlock():
    answer = ctypes.CDLL(None, use_errno=True).syscall(SYS_LANDLOCK_CREATE_RULESET, None, 0, LANDLOCK_ASKS_FOR_VERSION)
    return answer > 0


def can_be_frozen():
    return can_make_groups("freezer")


def limits_memory(user=None):
    return can_make_groups("memory", user)


if __name__ == "__main__":  # for tests in other languages
    print(json.dumps({"whyNoSandbox": why_no_sandbox(), "canBeFrozen": can_be_frozen()}))
