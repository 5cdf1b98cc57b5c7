"""npm packages for the tests: installed once, outside build/, in the versions that a lock file
pins.

They are in ${XDG_CACHE_HOME:-~/.cache}/berth, in a folder for each lock file. Package scripts
are not run."""

import hashlib
import os
import shutil
import subprocess
import tempfile
from pathlib import Path

NPM_CI = Path(__file__).resolve().parent / "npm-ci"


def folder_for(name, pinned):
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    lock = (pinned / "package-lock.json").read_bytes()
    return Path(base) / "berth" / name / hashlib.sha256(lock).hexdigest()[:16]


def put(folder, fill):
    """Fills a separate folder, and renames it, so that an existing folder is complete."""
    if folder.is_dir():
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    draft = Path(tempfile.mkdtemp(prefix=".draft-", dir=folder.parent))
    try:
        fill(draft)
        draft.chmod(0o755)
        try:
            draft.rename(folder)
        except OSError:
            if not folder.is_dir():  # another process was faster
                raise
    finally:
        shutil.rmtree(draft, ignore_errors=True)


def install(name, pinned, check=lambda folder: None):
    """The folder with the node_modules that `pinned` describes. `check` ends the program if one is
    incomplete."""
    def fill(draft):
        for file in ("package.json", "package-lock.json"):
            shutil.copy(pinned / file, draft / file)
        if subprocess.run([NPM_CI, draft], stdin=subprocess.DEVNULL, check=False).returncode:
            raise SystemExit(f"{name}: the packages of {pinned / 'package-lock.json'} are not installed")
        check(draft)

    folder = folder_for(name, pinned)
    put(folder, fill)
    return folder
