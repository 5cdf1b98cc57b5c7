"""The test results: one verdict per test, read from each runner's output."""

import fnmatch
import re
import xml.etree.ElementTree as xml
from dataclasses import dataclass, replace

LINE = re.compile(r"^(ok|FAIL|skip) +(\S.*?)  (\d+\.\d) s(?:: (.*))?", re.MULTILINE)
ATTEMPT, GOT_THROUGH = "SandboxedAttempt.", "OPEN"  # tests/security/attempts_test.cpp, and what its program prints
SKIPPED_ITSELF = "SKIP_REGULAR_EXPRESSION"


@dataclass(frozen=True)
class Verdict:
    name: str
    kind: str  # ok, FAIL or skip
    seconds: float = 0.0
    said: str = ""  # why it failed or was skipped


def in_lines(output):
    """Verdicts of a runner that prints `ok|FAIL|skip NAME  SECONDS s[: REASON]`. A name may contain
    single spaces. A test whose subtests fail prints several lines, and counts once, with the
    worst of them."""
    found = {}
    for kind, name, seconds, said in LINE.findall(output):
        if name not in found or kind == "FAIL":
            found[name] = Verdict(name, kind, float(seconds), said)
    return list(found.values())


def in_ctest(report, groups):
    """Verdicts of a CTest run. `groups` is the folder with the reports of entries that contain many
    tests: those are counted one by one."""
    verdicts = []
    for case in xml.parse(report).getroot().iter("testcase"):
        own_report = groups / f"{case.get('name')}.xml"
        if own_report.exists():
            verdicts += in_group(case, own_report)
        else:
            verdicts.append(in_case(case))
    return verdicts


def in_case(case):
    name, seconds = case.get("name"), float(case.get("time") or 0)
    said = case.findtext("system-out") or ""
    if case.get("status") == "run":
        return Verdict(name, "ok", seconds)
    if case.get("status") == "disabled":
        return Verdict(name, "skip", seconds, "disabled")
    # CTest also reports a test that it could not start as skipped, with another message.
    skipped = case.find("skipped")
    if skipped is not None and SKIPPED_ITSELF in (skipped.get("message") or ""):
        return Verdict(name, "skip", seconds, reason_in(said))
    return Verdict(name, "FAIL", seconds, said or case.get("message") or "did not run")


def in_group(case, own_report):
    """A program that died leaves tests without a verdict, or an unreadable report."""
    try:
        tests = list(xml.parse(own_report).getroot().iter("testcase"))
    except xml.ParseError:
        tests = []
    verdicts = [in_gtest(test) for test in tests]
    entry = in_case(case)
    explained = any(verdict.kind == "FAIL" for verdict in verdicts)
    if not verdicts or (entry.kind != "ok" and not explained):
        verdicts.append(replace(entry, kind="FAIL", said=entry.said or "left no report"))
    return verdicts


def in_gtest(test):
    name = f"{test.get('classname')}.{test.get('name')}"
    seconds = float(test.get("time") or 0)
    failures = [failure.get("message") or "" for failure in test.iter("failure")]
    if failures:
        return Verdict(name, "FAIL", seconds, "\n".join(failures))
    if test.get("result") == "skipped":
        skipped = test.find("skipped")
        return Verdict(name, "skip", seconds, (skipped.get("message") or "") if skipped is not None else "")
    if test.get("result") != "completed":
        return Verdict(name, "FAIL", seconds, f"ended as {test.get('result')!r}")
    return Verdict(name, "ok", seconds)


def reason_in(said):
    lines = [line.strip() for line in said.splitlines()]
    after = [follow for line, follow in zip(lines, lines[1:]) if line.endswith("Skipped")]
    return after[0] if after else "no reason given"


def got_through(verdict):
    """Whether a hostile attempt did what it must not: once is enough, however it ends the next time."""
    return ATTEMPT in verdict.name and GOT_THROUGH in verdict.said.partition("\nexpected:")[0]


def without_verdict(listed, verdicts):
    return sorted(set(listed) - {verdict.name for verdict in verdicts})


class AllowedSkips:
    """The tests that may skip, by pattern, each with its reason: tests/skips.txt."""

    def __init__(self, text):
        self.patterns = {}
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip() or line.startswith("#"):
                continue
            pattern, separator, reason = (part.strip() for part in line.partition("  # "))
            if not separator or not reason:
                raise ValueError(f"line {number} of tests/skips.txt has no reason: {line}")
            self.patterns[pattern] = reason

    def allow(self, name):
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.patterns)

    def unused(self, names):
        """Patterns that match no test at all. A test that ran is not a reason to remove its
        pattern: another machine may lack what this one has."""
        return [pattern for pattern in self.patterns
                if not any(fnmatch.fnmatchcase(name, pattern) for name in names)]
