"""JSON whose keys all fall into one slot of an object's table of that size. Parsing it must not
take longer than any other JSON, because one thread serves all clients."""

import json
import sys
import textwrap
import threading
import time

import runs_support as runs
from support import BerthTest

# Of FNV-1a, which Boost.JSON uses to find a key's slot.
PRIME, START = 0x100000001B3, 0xCBF29CE484222325
# Of a table's address: a large one begins after the header that malloc puts at the start of a page.
ADDRESS = 0x10
SLOWEST_S = 1.0


def keys_of_one_slot(bits):
    """2**bits keys of five characters for the same slot among as many."""
    mask = (1 << bits) - 1
    wanted = 0x123 * pow(PRIME, -1, mask + 1) & mask
    letters = [c for c in range(ord("#"), 127) if c != ord("\\")]
    last = set(letters)
    keys = []
    for a in letters:
        for b in letters:
            for c in letters:
                state = START + ADDRESS
                for letter in (a, b, c):
                    state = (state ^ letter) * PRIME & mask
                for d in letters:
                    e = ((state ^ d) * PRIME & mask) ^ wanted
                    if e in last:
                        keys.append(bytes((a, b, c, d, e)).decode())
                if len(keys) > mask:
                    return keys[:mask + 1]
    raise AssertionError("too few letters")


class HostileJson(BerthTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        table = "{" + ",".join(f"{json.dumps(key)}:0" for key in keys_of_one_slot(14)) + "}"
        # The tables are at different addresses, one in four of them where the keys collide.
        cls.tables = "[" + ",".join([table] * 6) + "]"

    def slowest_health(self, server, work):
        """The longest wait of other clients while the work ran."""
        over = threading.Event()
        waited = []

        def ask():
            while not over.is_set():
                began = time.monotonic()
                self.assertEqual(server.get("/api/health").status, 200)
                waited.append(time.monotonic() - began)

        asking = threading.Thread(target=ask)
        asking.start()
        try:
            work()
        finally:
            over.set()
            asking.join()
        return max(waited)

    def test_a_caller_does_not_hold_the_server_up_with_the_keys_of_a_body(self):
        server = self.serve("--mode", "authenticated", place=None)
        key = {"Authorization": "Bearer " + (server.home / "admin.token").read_text().strip()}
        body = '{"name":"x","tables":' + self.tables + "}"
        self.assertLess(len(body), 1 << 20, "longer than any body may be")

        def send():
            for _ in range(3):
                # Signing in does not need a key.
                self.assertIn(server.post("/api/session", body).status, (400, 413))
                self.assertEqual(server.post("/api/companies", body, key).status, 400)

        self.assertLess(self.slowest_health(server, send), SLOWEST_S)

    def test_an_agent_does_not_hold_the_server_up_with_a_line_of_its_output(self):
        server = self.serve()
        line = self.folder / "line"
        line.write_text('{"type":"assistant","tables":' + self.tables + "}\n")
        program = self.folder / "claude"
        program.write_text(textwrap.dedent(f"""\
            #!{sys.executable}
            import sys
            sys.stdin.read()
            for _ in range(3):
                sys.stdout.write(open({str(line)!r}).read())
            """))
        program.chmod(0o755)
        agent = server.post(f"/api/companies/{server.company()}/agents", {
            "name": "Eve", "adapterType": "claude_local",
            "adapterConfig": {"path": [str(self.folder)]}}).json["id"]

        def turn():
            started = server.post(f"/api/agents/{agent}/heartbeat/invoke", {"prompt": "go"})
            self.assertEqual(started.status, 202, started.text)
            self.assertEqual(runs.wait_for_end(server, started.json["id"])["status"], "succeeded")

        self.assertLess(self.slowest_health(server, turn), SLOWEST_S)
