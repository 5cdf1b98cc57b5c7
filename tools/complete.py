"""Whether every test that is written has run. A test that no list names any more, of sources, of groups or of
patterns, fails nothing and is missed by nobody."""

import json
import re

WRITTEN = re.compile(r"^(?:TYPED_)?TEST(?:_F|_P)?\(\s*(\w+),\s*(\w+)\)", re.M)
RUN = re.compile(r"([\w/]+)\.(\w+)")
SHOWN_MAX = 20


def never_run(code, names):
    """The GoogleTests in the masked code that have none of these names, nor any with parameters."""
    # The suite stands behind the name of an instantiation, and before the number of a type.
    ran = {(suite, found.group(2)) for name in names if (found := RUN.match(name))
           for suite in found.group(1).split("/")}
    return [f"{source.name}: {'.'.join(test)}" for source in code for test in WRITTEN.findall(source.code)
            if test not in ran]


def grouped_programs(entries):
    """The programs whose tests share entries of CTest, from what `ctest --show-only=json-v1` prints."""
    return sorted({entry["command"][0] for entry in json.loads(entries)["tests"]
                   if any(word.startswith("--gtest_output=") for word in entry.get("command", ()))})


def in_program(listing):
    """Names of tests, from what a program prints with --gtest_list_tests."""
    suite, names = "", []
    for line in listing.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  "):
            names.append(suite + word)
        elif word.endswith("."):
            suite = word
    return [name for name in names if "DISABLED_" not in name]


def said(lost, of):
    """The problem in words, or None."""
    if not of:
        return "no test is written"
    if not lost:
        return None
    more = [f"... and {len(lost) - SHOWN_MAX} more"] if len(lost) > SHOWN_MAX else []
    return "\n".join([f"{len(lost)} of {of} tests have not run:", *lost[:SHOWN_MAX], *more])
