"""What the gateway makes of a request, against what h11 makes of the same bytes.

h11 (Python's HTTP/1.1 state machine) reads what a client sends, and again what the gateway forwards of it:

    bytes -> h11                      a list of requests
    bytes -> gateway -> upstream h11  the same list, or less of it: what the gateway refuses it does not forward

The bytes are the smuggling table's and thousands of mutations of good requests, each with a second request
behind it. An nginx behind a second gateway is asked the same and must see the same requests.

    SLUICE_MUTATIONS=100000 SLUICE_MUTATION_SEED=7 SLUICE_BIN=build/dev/bin tests/integration/differential_test.py
"""
import collections
import dataclasses
import os
import random
import re
import selectors
import socket
import tempfile
import time
import unittest

import h11

import smuggling_test
from processes import Sluice, free_port, settings, start_nginx

SEED = os.environ.get("SLUICE_MUTATION_SEED", "1")
MUTATIONS = int(os.environ.get("SLUICE_MUTATIONS", "6000"))
SECOND = b"GET /second HTTP/1.1\r\nHost: b\r\nX-Second: yes\r\n\r\n"

GOOD = [
    b"GET /a/b?c=d HTTP/1.1\r\nHost: a\r\nAccept: */*\r\nCookie: a=b; c=d\r\n\r\n",
    b"HEAD /a HTTP/1.1\r\nHost: a:8080\r\nUser-Agent: x (y; z)\r\n\r\n",
    b"OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n",
    b"GET http://example.com/a?b HTTP/1.1\r\nHost: example.com\r\nX: y\r\n\r\n",
    b"DELETE /a%20b/%C3%BC HTTP/1.1\r\nHost: [::1]:80\r\nX-Quoted: \"x\"\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Type: text/plain\r\n\r\nhello",
    b"PUT /a HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nX-Empty:\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n6\r\n world\r\n0\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: X-T\r\n\r\n"
    b"a;b=c\r\n0123456789\r\n0\r\nX-T: u\r\n\r\n",
    b"POST /a HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc",
    b"GET /a HTTP/1.1\r\nHost: a\r\nConnection: X-Hop, keep-alive\r\nX-Hop: 1\r\nTE: trailers\r\n\r\n",
    b"GET /a HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\n",
    b"PATCH /a HTTP/1.1\r\nhost:a\r\ncontent-length:2\r\nx-a:b  \r\nX-A: \t c\r\n\r\nhi",
]
PIECES = [b"\r\n", b"\n", b"\r", b"\0", b" ", b"\t", b":", b",", b";", b"\"", b"\x0b", b"\x7f", b"\x80", b"\xff",
          b"0", b"1", b"+", b"-",
          b"Content-Length: 0\r\n", b"Content-Length: 4\r\n", b"Content-Length: 50\r\n", b"content-length:5\r\n",
          b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"transfer-encoding:\tCHUNKED\r\n",
          b"Transfer-Encoding: gzip, chunked\r\n", b"Host: c\r\n", b"Connection: close\r\n",
          b"Connection: content-length\r\n",
          b"Connection: transfer-encoding\r\n", b"X-Long: " + b"y" * 200 + b"\r\n", b" folded\r\n",
          b"0\r\n\r\n", b"5\r\nhello\r\n",
          b"Upgrade: websocket\r\nConnection: Upgrade\r\n", b"HTTP/1.1", b"HTTP/1.0", b"HTTP/2.0", b"GET ", b"POST ",
          b"/../", b"%00", b"#f"]

# What the gateway adds or takes away on its way, apart from fields that Connection names.
OURS = {b"connection", b"keep-alive", b"proxy-connection", b"te", b"trailer", b"transfer-encoding", b"upgrade",
        b"http2-settings",
        b"expect", b"content-length", b"host", b"via", b"forwarded", b"x-real-ip", b"x-request-id"}

# Where h11 refuses what the gateway takes on purpose, and what that is.
NOT_FOR_H11 = {
    # As nginx; rules see them as %XX.
    "bytes beyond ASCII in a target": re.compile(rb"(?:^|\n)[^\n]*[\x80-\xff][^\n]* HTTP/1"),
    # It is dropped.
    "framing in a trailer": re.compile(rb"\n0\r\n([^\r\n]+\r\n)*(?i:transfer-encoding|content-length):"),
}


@dataclasses.dataclass
class Request:
    method: bytes
    target: bytes
    fields: list
    body: bytes = b""
    whole: bool = False

    def passes_as(self, forwarded):
        """Whether this, as sent, may be what arrived as `forwarded`."""
        body_fits = self.body == forwarded.body if forwarded.whole else self.body.startswith(forwarded.body)
        return ((self.method, path_of(self.target)) == (forwarded.method, forwarded.target) and body_fits
                and self.whole >= forwarded.whole and kept(self.fields) == kept(forwarded.fields)
                and host_of(self) in (host_of(forwarded), None))  # HTTP/1.0 may leave it open


def path_of(target):
    """Of an absolute form what stands behind the authority."""
    found = re.match(rb"(?i)https?://[^/?#]*(.*)", target, re.DOTALL)
    if not found:
        return target
    return found.group(1) if found.group(1).startswith(b"/") else b"/" + found.group(1)


def host_of(request):
    found = re.match(rb"(?i)https?://([^/?#]*)", request.target)
    if found:
        return found.group(1).lower()
    hosts = [value.lower() for name, value in request.fields if name == b"host"]
    return hosts[0] if hosts else None


def named_by_connection(fields):
    return {name.strip().lower() for field, value in fields if field == b"connection" for name in value.split(b",")}


def kept(fields):
    gone = OURS | named_by_connection(fields)
    return [(name, value) for name, value in fields
            if name not in gone and not name.replace(b"_", b"-").startswith(b"x-forwarded-")]


class Reader:
    """The requests on one connection, as h11 reads them."""

    def __init__(self):
        self.connection = h11.Connection(h11.SERVER)
        self.requests = []
        self.problem = None

    def feed(self, data, at_most=1000):
        """`data` came. Returns how many requests it completed."""
        completed = 0
        try:
            self.connection.receive_data(data)
            while True:
                event = self.connection.next_event()
                if isinstance(event, h11.Request):
                    self.requests.append(Request(event.method, event.target, list(event.headers)))
                elif isinstance(event, h11.Data):
                    self.requests[-1].body += bytes(event.data)
                elif isinstance(event, h11.EndOfMessage):
                    self.requests[-1].whole = True
                    completed += 1
                    self.connection.send(h11.Response(status_code=404, headers=[(b"Content-Length", b"0")]))
                    self.connection.send(h11.EndOfMessage())
                    if self.connection.our_state is not h11.DONE or completed == at_most:
                        return completed
                    self.connection.start_next_cycle()
                else:
                    return completed  # more is needed, or the end
        except h11.RemoteProtocolError as error:
            self.problem = str(error)
            return completed


def read_all(data):
    """The requests in all that a client sends, as h11 reads them one by one.

    Two things that HTTP allows and h11 does not are done here: an empty line in front of a request (RFC 9112,
    2.2), and connections that HTTP/1.0 keeps by word (RFC 9112, C.2.2).
    """
    requests = []
    while True:
        while data.startswith(b"\r\n"):
            data = data[2:]
        reader = Reader()
        reader.feed(data, at_most=1)
        requests += reader.requests
        if not requests or not requests[-1].whole or reader.problem:
            return requests
        options = named_by_connection(requests[-1].fields)
        kept_by_word = (reader.connection.their_http_version == b"1.0" and b"keep-alive" in options
                        and b"close" not in options)
        if reader.connection.our_state is not h11.DONE and not kept_by_word:
            return requests
        data = reader.connection.trailing_data[0]


class Upstream:
    """Answers each request that h11 reads, in the thread that sends, so that nothing is left to chance."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.listener.setblocking(False)
        self.port = self.listener.getsockname()[1]
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.listener, selectors.EVENT_READ, self.accept)
        self.readers = {}

    def accept(self, _):
        connection, _ = self.listener.accept()
        self.readers[connection] = Reader()
        self.selector.register(connection, selectors.EVENT_READ, self.read)

    def read(self, connection):
        reader = self.readers[connection]
        try:
            data = connection.recv(1 << 20)
        except ConnectionError:
            data = b""
        if data:
            for request in range(reader.feed(data)):
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        if not data or reader.problem:
            self.selector.unregister(connection)
            connection.close()

    def forget(self):
        """Starts a new case: (requests, problems) since the last one. Connections that were kept stay."""
        requests = [request for reader in self.readers.values() for request in reader.requests]
        problems = [reader.problem for reader in self.readers.values() if reader.problem]
        self.readers = {connection: reader for connection, reader in self.readers.items() if connection.fileno() >= 0}
        for reader in self.readers.values():
            reader.requests = [request for request in reader.requests if not request.whole]
        return requests, problems

    def exchange(self, port, data):
        """Sends `data` to the gateway, says that it was all, serves what comes of it; returns what came back."""
        client = socket.create_connection(("127.0.0.1", port), 10)
        received = []

        def read(_):
            try:
                received.append(client.recv(1 << 20))
            except ConnectionError:
                received.append(b"")

        self.selector.register(client, selectors.EVENT_READ, read)
        try:
            try:
                client.sendall(data)
                client.shutdown(socket.SHUT_WR)
            except OSError:
                pass  # refused before all of it was taken
            deadline = time.monotonic() + 20
            while b"" not in received:
                if time.monotonic() > deadline:
                    raise AssertionError(f"neither an answer nor an end: {data!r}")
                self.serve(1)
        finally:
            self.selector.unregister(client)
            client.close()
        while self.serve(0):
            pass  # what the gateway has written lies here: the loopback keeps nothing under way
        return b"".join(received)

    def serve(self, seconds):
        events = self.selector.select(seconds)
        for key, _ in events:
            key.data(key.fileobj)
        return events

    def close(self):
        for connection in (*self.readers, self.listener):
            connection.close()


def mutate(rng):
    data = bytearray(rng.choice(GOOD))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        place = rng.randrange(len(data) + 1)
        lines = bytes(data).split(b"\r\n")
        how = rng.randrange(8)
        if how == 0 and place < len(data):
            data[place] = rng.randrange(256)
        elif how == 1:
            del data[place:place + rng.choice((1, 1, 2, 5))]
        elif how in (2, 3):
            data[place:place] = rng.choice(PIECES)
        elif how == 4:  # a line of its own
            lines.insert(rng.randrange(1, len(lines)), rng.choice(PIECES).removesuffix(b"\r\n"))
            data = bytearray(b"\r\n".join(lines))
        elif how == 5:  # a line twice
            line = rng.choice(lines)
            lines.insert(rng.randrange(1, len(lines) + 1), line)
            data = bytearray(b"\r\n".join(lines))
        elif how == 6:
            rng.shuffle(lines)
            data = bytearray(b"\r\n".join(lines))
        else:
            data = bytearray(bytes(data).replace(b"\r\n", rng.choice((b"\n", b"\r", b"\r\r\n", b"\r\n ", b" \r\n")), 1))
        if not data:
            return SECOND
    return bytes(data)


def cases():
    for request, _ in smuggling_test.ROWS.values():
        yield request
    for body in smuggling_test.BODIES.values():
        yield smuggling_test.post(b"Transfer-Encoding: chunked\r\n", body + smuggling_test.HIDDEN)
    yield from GOOD
    rng = random.Random(SEED)
    for _ in range(MUTATIONS):
        yield mutate(rng)


NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{ log_format seen escape=none '$status $request_method $request_uri'; access_log {dir}/access.log seen;
  client_body_temp_path {dir}/body;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200; }} }} }}
"""


class Differential(unittest.TestCase):
    def setUp(self):
        self.upstream = Upstream()
        self.addCleanup(self.upstream.close)
        self.nginx_port = free_port()
        folders = [self.enterContext(tempfile.TemporaryDirectory()) for _ in range(2)]
        self.log = f"{folders[1]}/access.log"
        nginx = start_nginx(NGINX.format(dir=folders[1], port=self.nginx_port), folders[1], self.nginx_port)
        self.addCleanup(nginx.wait, 20)
        self.addCleanup(nginx.terminate)
        self.before_h11 = self.start(self.upstream.port, folders[0])
        self.before_nginx = self.start(self.nginx_port, folders[1])

    def start(self, port, folder):
        sluice = Sluice(settings(port, "rules: []"), folder)
        self.addCleanup(lambda: self.assertEqual(sluice.stop(), 0))
        return sluice

    def seen_by_nginx(self):
        """(requests by method and target, how many it refused, as methods that are not in capitals)."""
        with open(self.log, "rb") as log:
            lines = [line.rstrip(b"\n").split(b" ", 2) for line in log]
        served = collections.Counter((method, target) for status, method, target in lines if status == b"200")
        return served, len(lines) - served.total()

    def test_what_is_accepted_is_read_the_same_way(self):
        print(f"\nseed {SEED}, {MUTATIONS} mutations")
        counts = collections.Counter()
        expected, broken_off = collections.Counter(), collections.Counter()
        for case in cases():
            data = case + SECOND
            left_out = [why for why, form in NOT_FOR_H11.items() if form.search(data)]
            if left_out:
                counts[left_out[0]] += 1
                continue
            oracle = read_all(data)
            self.upstream.exchange(self.before_h11.port, data)
            forwarded, problems = self.upstream.forget()
            with self.subTest(data):
                self.assertEqual(problems, [])
                self.check(oracle, forwarded)
            counts[f"{len(forwarded)} of {len(oracle)} forwarded"] += 1
            self.upstream.exchange(self.before_nginx.port, data)
            expected.update((request.method, request.target) for request in forwarded if request.whole)
            broken_off.update((request.method, path_of(request.target)) for request in oracle if not request.whole)
        print(", ".join(f"{what}: {count}" for what, count in sorted(counts.items())))
        # Good requests do pass: a gateway that refused all would be no gateway.
        self.assertGreater(counts["2 of 2 forwarded"], MUTATIONS / 20)
        self.check_nginx(expected, broken_off)

    def check(self, oracle, forwarded):
        self.assertLessEqual(len(forwarded), len(oracle), forwarded)
        for sent, arrived in zip(oracle, forwarded):
            self.assertTrue(sent.passes_as(arrived), f"sent {sent}\narrived {arrived}")

    def check_nginx(self, expected, broken_off):
        """It saw each whole request once, or refused it, and besides at most those whose body broke off."""
        deadline = time.monotonic() + 10
        while True:
            seen, refused = self.seen_by_nginx()
            missing = expected - seen
            if missing.total() <= refused or time.monotonic() > deadline:
                break
            time.sleep(0.05)
        self.assertLessEqual(missing.total(), refused)
        self.assertLess(missing.total(), expected.total() / 2)
        self.assertEqual(dict(seen - expected - broken_off), {})


if __name__ == "__main__":
    unittest.main()
