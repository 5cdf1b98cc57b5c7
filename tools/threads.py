"""Races, with ThreadSanitizer, in code that several threads share: what `base` gives to other
threads, the store with its writers and readers, and the SDK with a thread per call. The rest of
the server runs on one loop; `cmake --build --preset tsan` builds all of it."""

import threading
from pathlib import Path

from stages import ROOT, build, heading, result, run, tail

PROGRAMS = ("src/base/base_test", "tests/contract/store_contract_test",
            "tests/integration/sdk_integration_test")
LIMIT_S = 600


def threads(tally):
    if not build(tally, "tsan", [Path(program).name for program in PROGRAMS]):
        return
    heading("races, with ThreadSanitizer")
    examined = [Program(path) for path in PROGRAMS]
    for program in examined:
        program.judge(tally)


class Program:
    """A test program that runs beside others."""

    def __init__(self, path):
        self.name = f"threads-{Path(path).name}"
        self.command = [ROOT / "tools" / "with-postgres", ROOT / "build" / "tsan" / path, "--gtest_brief=1"]
        self.thread = threading.Thread(target=self._run)
        self.thread.start()

    def _run(self):
        self.status, self.output, self.seconds = run(
            self.name, self.command, {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}, LIMIT_S)

    def judge(self, tally):
        self.thread.join()
        passed = self.status == 0 and "[  PASSED  ]" in self.output
        result(tally, self.name, None if passed else tail(self.output, self.name), self.seconds)
