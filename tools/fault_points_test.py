#!/usr/bin/env python3
"""A fault point that no test hits is found, and so is a hit that the source does not explain."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import fault_points

TEXTS = {"a.cpp": 'x(); fault_point("lease.made");\nfault_point(\n    "lease.ended");',
         "b.cpp": '// fault_point says why\n  fault_point("lease.made");'}


class FaultPoints(unittest.TestCase):
    def test_a_point_that_no_test_hits_is_named(self):
        self.assertEqual(fault_points.problems(TEXTS, "lease.made\nlease.ended\nlease.made\n"), [])
        found = fault_points.problems(TEXTS, "lease.made\n")
        self.assertEqual(len(found), 1)
        self.assertIn("lease.ended", found[0])

    def test_a_hit_of_a_point_that_the_source_does_not_have_is_named(self):
        found = fault_points.problems(TEXTS, "lease.made\nlease.ended\nlease.gone\n")
        self.assertEqual([line.split(":")[0] for line in found], ["lease.gone"])

    def test_a_name_that_is_put_together_is_refused(self):
        text = {"c.cpp": 'fault_point("lease.made"); fault_point(place + ".made");'}
        found = fault_points.problems(text, "lease.made\n")
        self.assertEqual(len(found), 1)
        self.assertIn("c.cpp", found[0])

    def test_a_source_without_points_is_not_taken_for_a_good_one(self):
        self.assertNotEqual(fault_points.problems({}, ""), [])

    def test_every_call_in_this_source_is_found(self):
        calls = sum(text.count("fault_point(") for text in fault_points.sources().values())
        read = sum(len(fault_points.CALL.findall(text)) for text in fault_points.sources().values())
        self.assertEqual(read, calls)
        self.assertGreater(calls, 50)
        self.assertEqual(fault_points.in_sources(fault_points.sources())[1], [])

    def test_children_know_the_file_and_it_begins_empty(self):
        with tempfile.TemporaryDirectory() as folder:
            log = Path(folder) / "build" / "hits.log"
            before = os.environ.get("BERTH_FAULT_LOG")
            for _ in range(2):
                fault_points.begin(log)
                subprocess.run([sys.executable, "-c", "import os; "
                                "open(os.environ['BERTH_FAULT_LOG'], 'a').write('a.b\\n')"], check=True)
                self.assertEqual(log.read_text(), "a.b\n")
            os.environ.pop("BERTH_FAULT_LOG")
            if before is not None:
                os.environ["BERTH_FAULT_LOG"] = before


if __name__ == "__main__":
    unittest.main()
