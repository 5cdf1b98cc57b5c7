"""Clients that are slow, wrong or not who they claim to be."""

import re
import resource
import socket

from support import BerthTest

SLOW_CLIENTS = 10_000
SPARE_FILES = 500


class Network(BerthTest):
    def test_a_page_of_another_origin_is_refused(self):
        server = self.serve()
        own = f"http://127.0.0.1:{server.port}"
        self.assertEqual(server.get("/api/companies", Origin="http://evil.example").status, 403)
        self.assertEqual(server.get("/api/companies", Origin="null").status, 403)
        self.assertEqual(server.get("/api/companies", Origin=own).status, 200)
        for other in (own.replace("http:", "https:"), f"http://127.0.0.1:{server.port + 1}", "http://127.0.0.1"):
            answer = server.get("/api/companies", Origin=other)
            self.assertEqual((answer.status, answer.json["code"]), (403, "untrusted_origin"), other)

    def test_a_rebound_name_is_refused(self):
        server = self.serve()
        answer = server.get("/api/companies", Host=f"evil.example:{server.port}")
        self.assertEqual((answer.status, answer.json["code"]), (403, "untrusted_host"))

    def test_garbage_is_refused_or_closed_and_the_server_lives_on(self):
        server = self.serve()
        for garbage in (b"\x16\x03\x01\x02\x00\x01\x00", b"GET\r\n\r\n", b"\r\n" * 1000,
                        b"GET / HTTP/9.9\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
                        b"GET /%00%ff%zz HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n",
                        b"GET / HTTP/1.1\r\n" + b"A: " + b"b" * 100_000 + b"\r\n\r\n"):
            with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
                client.sendall(garbage)
                client.shutdown(socket.SHUT_WR)
                answer = read_to_end(client)
            self.assertTrue(not answer or re.match(rb"HTTP/1\.1 4\d\d ", answer), (garbage[:40], answer))
            self.assertEqual(server.get("/api/health").status, 200)

    def test_an_id_that_is_no_uuid_is_the_callers_fault(self):
        server = self.serve()
        for path in ("/api/companies/x", "/api/companies/x/environments", "/api/environments/%2e%2e"):
            self.assertIn(server.get(path).status, (400, 404), path)

    def test_ten_thousand_slow_clients_leave_room_for_others(self):
        hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        wanted = SLOW_CLIENTS + SPARE_FILES
        if hard != resource.RLIM_INFINITY and hard < wanted:
            self.skipTest(f"needs {wanted} open files, and the limit here is {hard}")
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        server = self.serve("--connections-max", str(SLOW_CLIENTS + 1000))
        with SlowClients(server.port, SLOW_CLIENTS) as slow:
            for _ in range(5):
                slow.send_a_byte_each()
                # Each of these fails when it takes longer than support.ANSWER_LIMIT_S.
                self.assertEqual(server.get("/api/health").status, 200)
                self.assertEqual(server.get("/api/companies").status, 200)


def read_to_end(client):
    parts = []
    try:
        while part := client.recv(65536):
            parts.append(part)
    except OSError:
        pass
    return b"".join(parts)


class SlowClients:
    """Connections that send a request one byte at a time, and reconnect when they are closed."""

    REQUEST = b"GET /api/health HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Padding: " + b"x" * 4000

    def __init__(self, port, count):
        self.port = port
        self.sent = {}
        for _ in range(count):
            self.connect()

    def connect(self):
        client = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        client.setblocking(False)
        self.sent[client] = 0

    def send_a_byte_each(self):
        for client, sent in list(self.sent.items()):
            try:
                client.send(self.REQUEST[sent:sent + 1])
                self.sent[client] += 1
            except OSError:
                self.drop(client)
                self.connect()

    def drop(self, client):
        del self.sent[client]
        client.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for client in list(self.sent):
            self.drop(client)
