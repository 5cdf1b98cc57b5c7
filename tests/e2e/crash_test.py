"""Acknowledged changes survive kill -9; unacknowledged ones are whole or absent."""

import http.client
import threading

from support import BerthTest, ssh_environment


class Crash(BerthTest):
    def test_every_acknowledged_create_is_there_after_kill_9(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                home = self.folder / engine
                server = self.serve(home=home, **variables)
                company = server.company()
                path = f"/api/companies/{company}/environments"
                acknowledged = create_until_killed(server, path, clients=8, after=200)
                again = self.serve(home=home, **variables)
                stored = {row["id"] for row in all_rows(again, path)}
                self.assertGreaterEqual(len(acknowledged), 200)
                self.assertEqual(acknowledged - stored, set())

    def test_a_repeated_request_is_not_done_twice_across_a_crash(self):
        for engine, variables in self.engines():
            with self.subTest(engine):
                home = self.folder / engine
                server = self.serve(home=home, **variables)
                company = server.company()
                path = f"/api/companies/{company}/environments"
                key = {"Idempotency-Key": "one-and-the-same"}
                first = server.post(path, ssh_environment("once"), key)
                server.kill()
                again = self.serve(home=home, **variables)
                second = again.post(path, ssh_environment("once"), key)
                self.assertEqual((first.status, first.json), (second.status, second.json))
                made = [row["name"] for row in again.get(path).json if row["driver"] == "ssh"]
                self.assertEqual(made, ["once"])


def create_until_killed(server, path, clients, after):
    """Creates from several clients at once, and kills the server meanwhile."""
    acknowledged, lock, enough = set(), threading.Lock(), threading.Event()

    def client(number):
        for i in range(10_000):
            try:
                answer = server.post(path, ssh_environment(f"host {number}-{i}"))
            except (OSError, http.client.HTTPException):
                return  # the server died before or during its response
            if answer.status != 201:
                return
            with lock:
                acknowledged.add(answer.json["id"])
                if len(acknowledged) >= after:
                    enough.set()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(clients)]
    for thread in threads:
        thread.start()
    enough.wait(60)
    server.kill()
    for thread in threads:
        thread.join()
    return acknowledged


def all_rows(server, path):
    rows, after = [], f"{path}?limit=1000"
    while after:
        answer = server.get(after)
        rows += answer.json
        link = answer.headers.get("Link")
        after = link[link.index("<") + 1:link.index(">")] if link else None
    return rows
