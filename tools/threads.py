"""Races, with ThreadSanitizer. Only the parts that have threads of their own are built: the store with its
writers and readers, what `base` gives to other threads, and the SDK. All else lives on one loop."""

from pathlib import Path

from stages import ROOT, build, counted, heading

PROGRAMS = ("src/base/base_test", "tests/contract/store_contract_test",
            "tests/integration/sdk_integration_test")
LIMIT_S = 600


def threads(tally):
    if not build(tally, "tsan", [Path(program).name for program in PROGRAMS]):
        return
    heading("races, with ThreadSanitizer")
    options = {"TSAN_OPTIONS": "halt_on_error=1:second_deadlock_stack=1"}
    for program in PROGRAMS:
        counted(tally, f"threads-{Path(program).name}",
                [ROOT / "tools" / "with-postgres", ROOT / "build" / "tsan" / program, "--gtest_brief=1"],
                options, LIMIT_S)
