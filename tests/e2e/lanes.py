"""Runs groups of end-to-end tests in parallel, each group in its own process."""

import os
import re
import subprocess
import sys
import threading
import time

VERDICT = re.compile(r"^(ok|FAIL|skip) +\S")
# Three lanes keep two cores busy: half of the time these tests wait.
LANES = int(os.environ.get("BERTH_E2E_LANES", "3"))
# These expect a server to answer, or to be silent, within seconds. One of them runs at a time.
TIMING = ("crash.", "load.", "network.", "nodes.", "recovery.", "shares.")
# The longest begin first, so that no lane ends long after the others. The rest follows in
# alphabetical order: nothing breaks when this list is outdated.
LONGEST_FIRST = ("plugin_dev.", "nodes.", "load.", "foreign.", "sandbox.", "real_agents.", "plugins.Faults", "recovery.",
                 "templates.", "shares.", "output.", "files.")


class Lanes:
    """Gives the next group to the first free lane. Every group runs to its end, even after a
    failure."""

    def __init__(self, command, groups):
        self.command = command  # runs the tests whose names follow it
        self.waiting = sorted(groups, key=rank)
        self.timing_is_busy = False
        self.all_passed = True
        self.changed = threading.Condition()
        self.printing = threading.Lock()

    def run(self):
        workers = [threading.Thread(target=self._work) for _ in range(LANES)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        return self.all_passed

    def _work(self):
        while group := self._take():
            passed = self._run_group(group)
            with self.changed:
                self.all_passed &= passed
                if is_timing(group):
                    self.timing_is_busy = False
                self.changed.notify_all()

    def _take(self):
        with self.changed:
            while self.waiting:
                for group in self.waiting:
                    if is_timing(group) and self.timing_is_busy:
                        continue
                    self.waiting.remove(group)
                    self.timing_is_busy |= is_timing(group)
                    return group
                self.changed.wait()
        return None

    def _run_group(self, group):
        started = time.monotonic()
        process = subprocess.Popen([*self.command, *group], text=True, errors="replace",
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        block = []
        for line in process.stdout:
            if VERDICT.match(line):
                self._print(block)
                block = []
            block.append(line)
        self._print(block)
        status = process.wait()
        if status not in (0, 1):
            took = time.monotonic() - started
            self._print([f"FAIL  {group[0]}  {took:.1f} s: the process of its group ended with {status}\n"])
        return status == 0

    def _print(self, block):
        """Keeps the lines of one test together."""
        with self.printing:
            sys.stdout.writelines(block)
            sys.stdout.flush()


def rank(group):
    place = next((at for at, name in enumerate(LONGEST_FIRST) if group[0].startswith(name)), len(LONGEST_FIRST))
    return (place, group[0])


def is_timing(group):
    return group[0].startswith(TIMING)
