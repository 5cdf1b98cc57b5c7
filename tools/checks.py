"""The checks that need no running program; tools/check and tools/test share them."""

import json
import os
import subprocess
import sys
import time

import tidy
from stages import ROOT, counted, heading, result, run, say, tail

CLANG_FORMAT = "clang-format-19"
CLANG_TIDY = "clang-tidy-19"


def code_files():
    return [source.path for source in tidy.sources(ROOT)]


def static_checks(tally):
    """Format and house rules: seconds, and no build."""
    heading("static checks")
    status, output, seconds = run("format", [CLANG_FORMAT, "--dry-run", "-Werror", *code_files()])
    files = sorted({line.split(":")[0] for line in output.splitlines() if ": error:" in line})
    problem = "\n".join([*files, "make format mends it"]) if files else output
    result(tally, "format", None if status == 0 else problem, seconds)
    for name, promise, found in tidy.problems():
        result(tally, f"{name}: {promise}", "\n".join(found) if found else None)
    counted(tally, "tidy-self-test", [sys.executable, ROOT / "tools" / "tidy_test.py"])
    counted(tally, "verdicts-self-test", [sys.executable, ROOT / "tools" / "verdicts_test.py"])
    counted(tally, "complete-self-test", [sys.executable, ROOT / "tools" / "complete_test.py"])
    counted(tally, "npm-ci-self-test", [sys.executable, ROOT / "tools" / "npm_ci_test.py"])
    counted(tally, "fault-points-self-test", [sys.executable, ROOT / "tools" / "fault_points_test.py"])


def headers_alone(tally, target="berth_headers_alone"):
    heading("headers compile alone")
    started = time.monotonic()
    status, output, _ = run("configure-dev", ["cmake", "--preset", "dev"])
    if status == 0:
        status, output, _ = run("headers", ["cmake", "--build", "--preset", "dev", "--target",
                                            target, "--", "-k0"])
    problem = None if status == 0 else tail(output, "headers")
    result(tally, "headers", problem, time.monotonic() - started)


def changed_files():
    """What differs from main, committed or not. On main itself: from the commit before."""
    def git(*words):
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    base = next((name for name in ("origin/main", "main", "origin/HEAD")
                 if git("rev-parse", "-q", "--verify", name).returncode == 0), "HEAD")
    fork = git("merge-base", base, "HEAD").stdout.strip()
    if fork == git("rev-parse", "HEAD").stdout.strip():
        fork = git("rev-parse", "-q", "--verify", "HEAD~1").stdout.strip() or fork
    names = git("diff", "--name-only", fork).stdout.split()
    names += git("ls-files", "--others", "--exclude-standard").stdout.split()
    return {ROOT / name for name in names}


def clang_tidy(tally, everything):
    heading("clang-tidy" + ("" if everything else " on what changed"))
    database = ROOT / "build" / "dev" / "compile_commands.json"
    compiled = {entry["file"] for entry in json.loads(database.read_text())}
    wanted = {str(path) for path in code_files()} if everything else \
        {str(path) for path in changed_files()}
    files = sorted(compiled & wanted)
    if not files:
        say("      no changed source files")
        return
    jobs = str(os.cpu_count() or 2)
    started = time.monotonic()
    command = ["xargs", "-0", "-n1", "-P", jobs, CLANG_TIDY, "--quiet", "-p", str(database.parent)]
    done = subprocess.run(command, input="\0".join(files), cwd=ROOT, capture_output=True, text=True,
                          check=False)
    problem = None if done.returncode == 0 else done.stdout.strip()
    result(tally, f"clang-tidy on {len(files)} files", problem, time.monotonic() - started)
