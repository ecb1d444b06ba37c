"""Request smuggling, end to end: bytes that two readers could take apart differently never reach an upstream.

Each row is one request with a second one hidden in it. It goes to the gateway in front of our own API and in
front of nginx. Asked of every row: the first answer is a refusal, the connection is closed behind it, and the
upstream has seen neither the request nor what was hidden in it.
"""
import itertools
import re
import shutil
import socket
import tempfile
import time
import unittest

from processes import OrdersApi, Sluice, free_port, settings, start_nginx

HIDDEN = b"GET /hidden HTTP/1.1\r\nHost: a\r\n\r\n"
CHUNKED_HIDDEN = b"0\r\n\r\n" + HIDDEN


def post(fields, body=HIDDEN):
    return b"POST /first HTTP/1.1\r\nHost: a\r\n" + fields + b"\r\n" + body


def with_length(fields):
    """`fields` with a Content-Length that covers the hidden request."""
    return fields + b"Content-Length: %d\r\n" % len(CHUNKED_HIDDEN)


# What is sent, and the statuses that are a refusal of it.
ROWS = {
    # Two framings at once.
    "CL.TE": (post(with_length(b"Transfer-Encoding: chunked\r\n"), CHUNKED_HIDDEN), {400}),
    "TE.CL": (post(with_length(b"") + b"Transfer-Encoding: chunked\r\n", CHUNKED_HIDDEN), {400}),
    "CL.TE, length 0": (post(b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n", CHUNKED_HIDDEN), {400}),
    "TE in HTTP/1.0": (b"POST /first HTTP/1.0\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED_HIDDEN, {400}),
    # TE.TE: a coding that one reader takes for chunked and another does not.
    "TE in odd quotes": (post(b"Transfer-Encoding: \"chunked\"\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE xchunked": (post(b"Transfer-Encoding: xchunked\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE chunked, identity": (post(b"Transfer-Encoding: chunked, identity\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE identity, chunked": (post(b"Transfer-Encoding: identity, chunked\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE gzip, chunked": (post(b"Transfer-Encoding: gzip, chunked\r\n", CHUNKED_HIDDEN), {501}),
    "TE chunked twice in a line": (post(b"Transfer-Encoding: chunked, chunked\r\n", CHUNKED_HIDDEN), {400}),
    "TE chunked in two lines": (post(b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", CHUNKED_HIDDEN), {400}),
    "TE with a parameter": (post(b"Transfer-Encoding: chunked;a=b\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE empty": (post(b"Transfer-Encoding:\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE with a vertical tab": (post(b"Transfer-Encoding: \x0bchunked\r\n", CHUNKED_HIDDEN), {400, 501}),
    "TE with a NUL": (post(b"Transfer-Encoding: chunked\x00\r\n", CHUNKED_HIDDEN), {400}),
    "a blank before TE's colon": (post(b"Transfer-Encoding : chunked\r\n", CHUNKED_HIDDEN), {400}),
    "a tab before TE's colon": (post(b"Transfer-Encoding\t: chunked\r\n", CHUNKED_HIDDEN), {400}),
    "TE folded": (post(b"Transfer-Encoding:\r\n chunked\r\n", CHUNKED_HIDDEN), {400}),
    "a field folded into TE": (post(b"X: y\r\n Transfer-Encoding: chunked\r\n", CHUNKED_HIDDEN), {400}),
    "a blank before TE's name": (b"POST /first HTTP/1.1\r\n Transfer-Encoding: chunked\r\nHost: a\r\n\r\n" + CHUNKED_HIDDEN, {400}),
    # Lengths.
    "CL twice, different": (post(b"Content-Length: 0\r\nContent-Length: %d\r\n" % len(HIDDEN)), {400}),
    "CL twice, the same": (post(b"Content-Length: 0\r\nContent-Length: 0\r\n"), {400}),
    "CL in a list": (post(b"Content-Length: 0, %d\r\n" % len(HIDDEN)), {400}),
    "CL signed": (post(b"Content-Length: +0\r\n"), {400}),
    "CL negative": (post(b"Content-Length: -1\r\n"), {400}),
    "CL in hex": (post(b"Content-Length: 0x0\r\n"), {400}),
    "CL with a blank inside": (post(b"Content-Length: 0 0\r\n"), {400}),
    "CL too large for 64 bits": (post(b"Content-Length: 18446744073709551616\r\n"), {400}),
    "CL empty": (post(b"Content-Length:\r\n"), {400}),
    "CL folded": (post(b"Content-Length:\r\n 0\r\n"), {400}),
    "a blank before CL's colon": (post(b"Content-Length : 0\r\n"), {400}),
    # Ends of lines.
    "bare LF after a field": (b"GET /first HTTP/1.1\r\nHost: a\r\nX: y\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKED_HIDDEN, {400}),
    "bare LF everywhere": (b"GET /first HTTP/1.1\nHost: a\n\n" + HIDDEN, {400}),
    "bare CR in a value": (post(b"X: y\rTransfer-Encoding: chunked\r\n", CHUNKED_HIDDEN), {400}),
    "bare CR before the end": (b"GET /first HTTP/1.1\r\nHost: a\r\n\r\r\n" + HIDDEN, {400}),
    "LF CR": (b"GET /first HTTP/1.1\n\rHost: a\n\r\n\r" + HIDDEN, {400}),
    "NUL in a value": (post(b"X: a\x00b\r\n"), {400}),
    "NUL in a name": (post(b"X\x00: b\r\n"), {400}),
    "a line without a colon": (post(b"Content-Length\r\n"), {400}),
    "an empty name": (post(b": 0\r\n"), {400}),
    # Targets and hosts.
    "Host twice": (b"GET /first HTTP/1.1\r\nHost: a\r\nHost: b\r\n\r\n" + HIDDEN, {400}),
    "no Host": (b"GET /first HTTP/1.1\r\n\r\n" + HIDDEN, {400}),
    "Host with a path": (b"GET /first HTTP/1.1\r\nHost: a/b\r\n\r\n" + HIDDEN, {400}),
    "authority form": (b"GET a:80 HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "CONNECT": (b"CONNECT a:80 HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {501}),
    "absolute form without a host": (b"GET http:///first HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "a blank in the target": (b"GET /first x HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "NUL in the path": (b"GET /first%00 HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "a broken escape": (b"GET /first%zz HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "an empty segment taken back": (b"GET /a//../first HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "HTTP/0.9": (b"GET /first\r\n\r\n" + HIDDEN, {400}),
    "two versions": (b"GET /first HTTP/1.1 HTTP/1.1\r\nHost: a\r\n\r\n" + HIDDEN, {400}),
    "HTTP/2 preface": (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + HIDDEN, {400, 505}),
    # Upgrades that carry a body, or hide one.
    "upgrade with a body": (post(b"Connection: upgrade\r\nUpgrade: websocket\r\nContent-Length: %d\r\n" % len(HIDDEN)), {400}),
    # Expectations and sizes.
    "an unknown expectation": (post(b"Expect: 200-ok\r\nContent-Length: 0\r\n"), {417}),
    "10,000 fields": (b"GET /first HTTP/1.1\r\nHost: a\r\n" + b"X: y\r\n" * 10_000 + b"\r\n" + HIDDEN, {431}),
    "a field of 1 MB": (post(b"X: " + b"y" * 1_000_000 + b"\r\n"), {431}),
}

# The head is well, the body is not: the request may have gone to the upstream before that was seen, but
# nothing that was hidden in it.
BODIES = {
    "a signed chunk": b"+5\r\nhello\r\n0\r\n\r\n",
    "a chunk size in 0x form": b"0x5\r\nhello\r\n0\r\n\r\n",
    "a chunk size with a blank in front": b" 5\r\nhello\r\n0\r\n\r\n",
    "a chunk size that overflows": b"10000000000000005\r\nhello\r\n0\r\n\r\n",
    "a chunk longer than said": b"3\r\nhello\r\n0\r\n\r\n",
    "bare LF behind a chunk's size": b"5\nhello\r\n0\r\n\r\n",
    "bare LF behind a chunk": b"5\r\nhello\n0\r\n\r\n",
    "bare CR behind a chunk's size": b"5\rhello\r\n0\r\n\r\n",
    "bare LF in an extension": b"5;a\nb\r\nhello\r\n0\r\n\r\n",
    "NUL in an extension": b"5;\x00\r\nhello\r\n0\r\n\r\n",
    "no size": b"\r\nhello\r\n0\r\n\r\n",
    "bare LF at the end": b"5\r\nhello\r\n0\n\n",
    "a folded trailer": b"5\r\nhello\r\n0\r\nX: y\r\n z\r\n\r\n",
    "a blank before a trailer's colon": b"5\r\nhello\r\n0\r\nX : y\r\n\r\n",
}

NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{ log_format paths '$request_method $request_uri'; access_log {dir}/access.log paths;
  client_body_temp_path {dir}/body;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "ok"; }} }} }}
"""


def exchange(port, request):
    """Sends `request`; returns all that comes back until the gateway closes, and whether it did."""
    received = b""
    with socket.create_connection(("127.0.0.1", port), 10) as client:
        client.settimeout(10)
        try:
            client.sendall(request)
        except OSError:
            pass  # refused before all of it was taken
        try:
            while part := client.recv(65536):
                received += part
        except ConnectionResetError:
            pass
        except socket.timeout:
            return received, False
    return received, True


def statuses(received):
    return [int(code) for code in re.findall(rb"(?:^|\r\n|\})HTTP/1\.1 (\d{3}) ", received)]


class Smuggling(unittest.TestCase):
    def check_all(self, port, paths_seen):
        for name, (request, refusals) in ROWS.items():
            with self.subTest(name):
                received, closed = exchange(port, request)
                codes = statuses(received)
                self.assertEqual(len(codes), 1, received[:300])
                self.assertIn(codes[0], refusals, received[:300])
                self.assertTrue(closed, "the connection stays open")
        self.assertEqual(paths_seen(), [], "nothing malformed is forwarded")

        for name, body in BODIES.items():
            with self.subTest(name):
                received, closed = exchange(port, post(b"Transfer-Encoding: chunked\r\n", body + HIDDEN))
                self.assertTrue(closed, "the connection stays open")
                self.assertNotIn(200, statuses(received)[1:], received[:300])
        self.assertNotIn("/hidden", paths_seen())

        # The door still works, and counts.
        received, _ = exchange(port, b"GET /last HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
        self.assertEqual(len(statuses(received)), 1)
        self.assertIn("/last", paths_seen())

    def test_in_front_of_orders_api(self):
        with tempfile.TemporaryDirectory() as folder:
            orders = OrdersApi()
            sluice = Sluice(settings(orders.port, "rules: []"), folder)
            seen = []

            def paths():
                # It counts requests and does not name them: only the last one here is well-formed.
                known = len(seen)
                count = orders.count_requests()
                seen.extend(["/last"] * (count - known))
                return list(seen)

            try:
                self.check_all(sluice.port, paths)
            finally:
                self.assertEqual(sluice.stop(), 0)
                orders.stop()

    def test_in_front_of_nginx(self):
        self.assertIsNotNone(shutil.which("nginx"), "nginx is not installed")
        with tempfile.TemporaryDirectory() as folder:
            port = free_port()
            nginx = start_nginx(NGINX.format(dir=folder, port=port), folder, port)
            sluice = Sluice(settings(port, "rules: []"), folder)

            asked = itertools.count()

            def paths():
                # Its one worker writes the log in order: all that came before the mark stands before it.
                mark = f"/mark-{next(asked)}"
                exchange(port, f"GET {mark} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n".encode())
                deadline = time.monotonic() + 10
                seen = []
                while mark not in seen and time.monotonic() < deadline:
                    with open(f"{folder}/access.log") as log:
                        seen = [line.split()[1] for line in log]
                self.assertIn(mark, seen)
                return [path for path in seen if not path.startswith("/mark-")]

            try:
                self.check_all(sluice.port, paths)
            finally:
                self.assertEqual(sluice.stop(), 0)
                nginx.terminate()
                nginx.wait()


if __name__ == "__main__":
    unittest.main()
