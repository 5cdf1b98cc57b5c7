#!/usr/bin/env python3
"""The runner notices what must not pass: tests that vanish, groups that hide failures, unlisted
skips."""

import tempfile
import unittest
from pathlib import Path

import verdicts
from verdicts import AllowedSkips, Verdict

CTEST = """<testsuite>
  <testcase name="a" status="run" time="0.5"/>
  <testcase name="b" status="fail" message="Failed"><system-out>wrong</system-out></testcase>
  <testcase name="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION_MATCHED"/>
    <system-out>x.cpp:1: Skipped\nno sshd\n</system-out></testcase>
  <testcase name="d" status="notrun"><skipped message="Unable to find executable"/></testcase>
  <testcase name="group" status="{status}" message="Exit 1"/>
</testsuite>"""
GROUP = """<testsuites><testsuite>
  <testcase name="one" classname="Group" status="run" result="completed" time="1"/>
  <testcase name="two" classname="Group" status="run" result="skipped" time="0">
    <skipped message="no such kernel"/></testcase>
  {more}
</testsuite></testsuites>"""
FAILED = '<testcase name="three" classname="Group" result="completed"><failure message="escaped"/></testcase>'


def read(status="run", group=GROUP.format(more="")):
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        (root / "ctest.xml").write_text(CTEST.format(status=status))
        (root / "group.xml").write_text(group)
        return {verdict.name: verdict for verdict in verdicts.in_ctest(root / "ctest.xml", root)}


class Verdicts(unittest.TestCase):
    def test_a_test_that_could_not_start_has_failed(self):
        found = read()
        self.assertEqual([found[name].kind for name in "abcd"], ["ok", "FAIL", "skip", "FAIL"])
        self.assertEqual(found["c"].said, "no sshd")

    def test_a_group_is_counted_one_by_one(self):
        found = read()
        self.assertNotIn("group", found)
        self.assertEqual(found["Group.one"].kind, "ok")
        self.assertEqual((found["Group.two"].kind, found["Group.two"].said), ("skip", "no such kernel"))

    def test_a_failure_in_a_group_with_skips_is_a_failure(self):
        found = read("fail", GROUP.format(more=FAILED))
        self.assertEqual(found["Group.three"], Verdict("Group.three", "FAIL", 0, "escaped"))

    def test_a_group_that_died_has_failed_though_no_test_of_it_says_so(self):
        self.assertEqual(read("fail")["group"].kind, "FAIL")
        self.assertEqual(read("run", "<testsuites>")["group"].kind, "FAIL")

    def test_lines_are_read_and_a_failed_subtest_counts_once(self):
        found = verdicts.in_lines("ok    a.b  0.1 s\nFAIL  a c  1.0 s:(x)\nFAIL  a c  1.0 s\n"
                                  "skip  d  0.0 s: no zsh\nnoise\n")
        self.assertEqual([(v.name, v.kind, v.said) for v in found][::2],
                         [("a.b", "ok", ""), ("d", "skip", "no zsh")])
        self.assertEqual([v.name for v in found], ["a.b", "a c", "d"])

    def test_a_listed_test_without_a_verdict_is_named(self):
        self.assertEqual(verdicts.without_verdict(["a", "b"], [Verdict("a", "ok")]), ["b"])

    def test_a_hostile_attempt_that_got_through_once_is_told_from_one_that_failed_otherwise(self):
        attempt = "Every/SandboxedAttempt.EndsAsItShould/by_root_as_user__tioclinux"
        self.assertTrue(verdicts.got_through(Verdict(attempt, "FAIL", 0, "OPEN typed\nexpected: denied EPERM")))
        self.assertFalse(verdicts.got_through(Verdict(attempt, "FAIL", 0, "denied EPERM\nexpected: OPEN")))
        self.assertFalse(verdicts.got_through(Verdict("Sockets.StayOpen", "FAIL", 0, "OPEN is not CLOSED")))


class Skips(unittest.TestCase):
    def test_only_listed_names_may_skip(self):
        skips = AllowedSkips("# why\nUnconfined*  # the kernel has no modules\n")
        self.assertTrue(skips.allow("Unconfined/x.y"))
        self.assertFalse(skips.allow("sandbox.Sandbox.works"))

    def test_a_pattern_that_matches_no_test_is_named(self):
        skips = AllowedSkips("A*  # because\nB*  # because\n")
        self.assertEqual(skips.unused(["Apple"]), ["B*"])

    def test_a_pattern_needs_a_reason(self):
        with self.assertRaises(ValueError):
            AllowedSkips("A*\n")


if __name__ == "__main__":
    unittest.main()
