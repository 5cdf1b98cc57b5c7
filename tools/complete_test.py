#!/usr/bin/env python3
"""A test that has vanished from a list is missed."""

import json
import unittest
from collections import namedtuple

import complete

Source = namedtuple("Source", "name code")
CODE = [Source("a_test.cpp", "TEST(Plain, One) {}\nTEST_F(Fixture, Two) {}\n// TEST(Not, This)\n"),
        Source("b_test.cpp", "TEST_P(Every, Three) {}\nTYPED_TEST(Kinds, Four) {}\nTEST_F(Long,\n       Five) {}\n")]
NAMES = ["Plain.One", "Fixture.Two", "All/Every.Three/by_root", "Kinds/0.Four", "Long.Five"]


class Complete(unittest.TestCase):
    def test_nothing_is_lost_where_each_test_ran_in_some_form(self):
        self.assertEqual(complete.never_run(CODE, NAMES), [])

    def test_each_kind_of_test_is_missed(self):
        for at, name in enumerate(NAMES):
            lost = complete.never_run(CODE, NAMES[:at] + NAMES[at + 1:])
            self.assertEqual(len(lost), 1, name)

    def test_a_lost_test_is_named_with_its_file(self):
        self.assertEqual(complete.never_run(CODE, NAMES[1:]), ["a_test.cpp: Plain.One"])
        self.assertIn("a_test.cpp: Plain.One", complete.said(["a_test.cpp: Plain.One"], 5))
        self.assertIsNone(complete.said([], 5))
        self.assertIsNotNone(complete.said([], 0))

    def test_the_programs_of_groups_are_found(self):
        entries = json.dumps({"tests": [
            {"name": "group", "command": ["/b/attempts", "--gtest_output=xml:/x"]},
            {"name": "Plain.One", "command": ["/b/plain", "--gtest_filter=Plain.One"]}, {"name": "NOT_BUILT"}]})
        self.assertEqual(complete.grouped_programs(entries), ["/b/attempts"])

    def test_the_list_of_a_program_is_read(self):
        listing = ("Running main() from gtest_main.cc\nPlain.\n  One\n  DISABLED_Two\nAll/Every.\n"
                   "  Three/by_root  # GetParam() = ...\nKinds/0.  # TypeParam = int\n  Four\n")
        self.assertEqual(complete.in_program(listing), ["Plain.One", "All/Every.Three/by_root", "Kinds/0.Four"])


if __name__ == "__main__":
    unittest.main()
