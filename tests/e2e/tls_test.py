"""The server over TLS, and the client that talks to it."""

import http.client
import socket
import ssl
import subprocess

from support import BerthTest


class Tls(BerthTest):
    def certificate(self):
        cert, key = self.folder / "cert.pem", self.folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=localhost",
                        "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                       check=True, capture_output=True)
        return cert, key

    def serve_tls(self):
        cert, key = self.certificate()
        return self.serve("--tls-cert", str(cert), "--tls-key", str(key)), cert

    def test_a_client_that_trusts_the_certificate_is_served(self):
        server, cert = self.serve_tls()
        trust = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("localhost", server.port, context=trust, timeout=20)
        connection.request("GET", "/api/companies")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_the_command_line_checks_the_certificate(self):
        server, cert = self.serve_tls()
        url = f"https://localhost:{server.port}"
        trusted = self.run_berth("--url", url, "status", SSL_CERT_FILE=str(cert))
        self.assertEqual((trusted.returncode, trusted.stderr), (0, ""))
        self.assertIn('"ready": true', trusted.stdout)
        stranger = self.run_berth("--url", url, "status")
        self.assertEqual(stranger.returncode, 6, stranger.stdout)
        self.assertIn("certificate", stranger.stderr)

    def test_a_run_streams_over_tls(self):
        server, cert = self.serve_tls()
        done = self.run_berth("--url", f"https://localhost:{server.port}", "run", "--", "sh", "-c",
                              "cat; exit 4", stdin="through and back", SSL_CERT_FILE=str(cert))
        self.assertEqual((done.stdout, done.returncode), ("through and back", 4), done.stderr)

    def test_plain_bytes_on_a_tls_port_do_no_harm(self):
        server, cert = self.serve_tls()
        with socket.create_connection(("127.0.0.1", server.port), timeout=20) as client:
            client.sendall(b"GET /api/health HTTP/1.1\r\nHost: localhost\r\n\r\n")
            client.shutdown(socket.SHUT_WR)
            while client.recv(4096):
                pass
        trust = ssl.create_default_context(cafile=str(cert))
        connection = http.client.HTTPSConnection("localhost", server.port, context=trust, timeout=20)
        connection.request("GET", "/api/health")
        self.assertEqual(connection.getresponse().status, 200)
        connection.close()

    def test_a_key_that_does_not_fit_is_said(self):
        cert, _ = self.certificate()
        other = self.folder / "other.pem"
        subprocess.run(["openssl", "genpkey", "-algorithm", "EC", "-pkeyopt", "ec_paramgen_curve:P-256",
                        "-out", other], check=True, capture_output=True)
        done = self.run_berth("serve", "--home", self.home, "--listen", "127.0.0.1:0",
                              "--tls-cert", cert, "--tls-key", other)
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("config_invalid", done.stderr)
        self.assertIn("fix:", done.stderr)
