"""A thousand runs, sixteen at a time: none is lost, none runs twice, and the server does not grow."""

import json
import os
import re
import threading
from collections import Counter
from pathlib import Path

import runs_support as runs
from support import BERTH, BerthTest

RUNS = 1000
CALLERS = 16
# A sanitizer keeps freed memory, and is slow: fewer runs, and no memory check.
SANITIZED = b"__asan_init" in Path(BERTH).read_bytes()


def resident_mb(pid):
    kb = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text()).group(1)
    return int(kb) / 1024


class Load(BerthTest):
    def run_many(self, server, count, ledger):
        """Each caller starts a run and waits for its end, repeatedly."""
        company, ended, lock = server.company(), [], threading.Lock()
        left = iter(range(count))

        def caller():
            while True:
                with lock:
                    number = next(left, None)
                if number is None:
                    return
                body = {"command": "sh", "args": ["-c", f"echo $BERTH_RUN_ID >> {ledger}"]}
                answer = server.post(f"/api/companies/{company}/runs", body)
                run = answer.json["id"] if answer.status == 202 else None
                seen = runs.wait_for_end(server, run) if run else {"status": answer.text}
                with lock:
                    ended.append((run, seen["status"]))

        callers = [threading.Thread(target=caller) for _ in range(CALLERS)]
        for thread in callers:
            thread.start()
        for thread in callers:
            thread.join()
        return ended

    def test_none_is_lost_and_none_runs_twice(self):
        count = RUNS // 5 if SANITIZED else RUNS
        for engine, variables in self.engines():
            with self.subTest(engine):
                home, ledger = self.folder / engine, self.folder / f"{engine}.ledger"
                server = self.serve(home=home, **variables)
                first = self.run_many(server, count // 5, ledger)
                before = resident_mb(server.process.pid)
                ended = first + self.run_many(server, count - count // 5, ledger)
                after = resident_mb(server.process.pid)

                self.assertEqual(Counter(status for _, status in ended), {"succeeded": count})
                executed = Counter(ledger.read_text().split())
                self.assertEqual(executed, Counter(run for run, _ in ended))
                self.assertTrue(runs.eventually(lambda: not runs.unfinished_leases(server)))
                self.assertEqual(list((home / "leases").iterdir()), [])
                if not SANITIZED:
                    self.assertLess(after - before, 8, f"{before:.1f} MB became {after:.1f} MB")
                self.assertEqual(server.stop(), 0)

    def test_a_limit_of_the_server_makes_runs_wait_visibly(self):
        server = self.serve("--runs-max", "1")
        gate = self.folder / "gate"
        os.mkfifo(gate)
        first = runs.start(server, "sh", "-c", f"cat {gate}")
        runs.wait_until(server, first, {"running"})
        second = runs.start(server, "true")
        third = runs.start(server, "true")
        place = runs.look(server, third)["queue"]
        self.assertEqual((place["position"], place["reason"]), (2, "server_limit"), json.dumps(place))
        self.assertEqual(runs.look(server, second)["queue"]["position"], 1)
        gate.write_text("go\n")
        for run in (first, second, third):
            self.assertEqual(runs.wait_for_end(server, run)["status"], "succeeded")
