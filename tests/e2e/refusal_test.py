"""A server that cannot start reports why and what to do, and leaves everything unchanged."""

import socket
import sqlite3

from support import BerthTest


class Refusal(BerthTest):
    def refuses(self, *flags, says, status=1, **variables):
        done = self.run_berth("serve", "--home", self.home, "--listen", "127.0.0.1:0", *flags,
                              **variables)
        self.assertEqual(done.returncode, status, done.stderr)
        for words in says:
            self.assertIn(words, done.stderr)
        self.assertNotIn("listening on", done.stdout)

    def start_once(self):
        self.assertEqual(self.serve().stop(), 0)

    def test_an_address_that_is_taken(self):
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            done = self.run_berth("serve", "--home", self.home, "--listen", f"127.0.0.1:{port}")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertIn(str(port), done.stderr)

    def test_the_local_mode_beyond_loopback(self):
        done = self.run_berth("serve", "--home", self.home, "--listen", "0.0.0.0:0")
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("0.0.0.0", done.stderr)
        self.assertIn("--mode authenticated", done.stderr)

    def test_a_key_file_that_others_can_read(self):
        self.start_once()
        (self.home / "master.key").chmod(0o644)
        self.refuses(says=["master.key", "chmod"])

    def test_sealed_values_without_their_key(self):
        server = self.serve()
        company = server.company()
        made = server.post(f"/api/companies/{company}/secrets", {"name": "a", "value": "b"})
        self.assertEqual(made.status, 201)
        self.assertEqual(server.stop(), 0)
        (self.home / "master.key").unlink()
        self.refuses(says=["key"])
        self.assertFalse((self.home / "master.key").exists())

    def test_a_file_that_is_no_database(self):
        self.home.mkdir(mode=0o700)
        (self.home / "berth.db").write_bytes(b"these are not the bytes of a database" * 100)
        before = (self.home / "berth.db").read_bytes()
        self.refuses(says=["berth.db"])
        self.assertEqual((self.home / "berth.db").read_bytes(), before)

    def test_a_database_that_another_server_holds(self):
        other = self.folder / "other"
        self.serve(home=other)
        self.refuses("--database", f"sqlite:{other}/berth.db", says=["berth.db"])

    def test_a_home_that_another_server_has(self):
        self.serve()
        self.refuses(says=[str(self.home), "--home DIR"])

    def test_postgres_that_is_not_there(self):
        self.refuses(says=["127.0.0.1"], BERTH_DATABASE_URL="postgresql://nobody@127.0.0.1:1/none")

    def test_a_setting_that_does_not_exist(self):
        self.home.mkdir(mode=0o700)
        (self.home / "berth.toml").write_text('listne = "127.0.0.1:1"\n')
        done = self.run_berth("serve", "--home", self.home)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("listne", done.stderr)
        self.assertIn("berth.toml:1", done.stderr)

    def test_a_wal_is_left_in_order_by_the_end_of_the_server(self):
        self.start_once()
        with sqlite3.connect(self.home / "berth.db") as database:
            self.assertEqual(database.execute("pragma integrity_check").fetchone(), ("ok",))
