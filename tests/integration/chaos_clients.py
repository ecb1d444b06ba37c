"""Hundreds of clients, each by chance good, slow, rude or broken. All they do follows from their seed and
from how the gateway and the machine answer in time."""
import asyncio
import collections
import logging
import random
import re
import zlib

from chaos_upstream import BIG, abort

# What an upstream is asked to do, and how often. Its misdeeds are rare, else it would always rest.
DOINGS = {"fast": 40, "chunked": 10, "big": 4, "slow": 8, "early": 4, "echo": 10, "interim": 3, "until": 3,
          "closes": 10, "silent": 2, "broken": 1, "reset": 1, "garbage": 1, "upgrade": 4}
AREAS = ("bucket", "queue", "slots", "free")
# How a client behaves on a request.
MANNERS = {"good": 60, "half_close": 4, "leave_in_head": 3, "leave_in_body": 4, "leave_at_once": 5,
           "leave_later": 5, "leave_in_answer": 4, "slow_head": 2, "slow_body": 2, "bad_chunks": 3, "nonsense": 3,
           "pipelines": 5}
PATIENCE = 10  # seconds; each of the gateway's bounds is far below


class Results:
    def __init__(self):
        self.numbers = 0
        self.sent_by = {}  # id -> (area, doing, method)
        self.statuses = {}  # id -> status of an answer whose head came
        self.whole = set()  # ids whose answer came to its end
        self.manners = collections.Counter()
        self.wrong = []  # what no chance may bring about

    def new_id(self, area, doing, method):
        self.numbers += 1
        self.sent_by[str(self.numbers)] = (area, doing, method)
        return str(self.numbers)


class Request:
    def __init__(self, rng, results):
        self.area = rng.choice(AREAS)
        self.doing = rng.choices(list(DOINGS), DOINGS.values())[0]
        self.method = "GET" if self.doing == "upgrade" else rng.choice(("GET", "GET", "POST", "PUT"))
        self.number = results.new_id(self.area, self.doing, self.method)
        self.client = rng.randrange(8)
        self.body = rng.randbytes(rng.choice((0, 5, 3000, 300_000))) if self.method != "GET" else b""
        self.chunked = self.method != "GET" and rng.random() < 0.5
        self.said_all = False  # the client has closed its side
        self.expects = bool(self.body) and rng.random() < 0.1

    def head(self):
        lines = [f"{self.method} /{self.area}/{self.doing} HTTP/1.1", "Host: a", f"X-Chaos: {self.number}",
                 f"X-Client: {self.client}"]
        if self.doing == "upgrade":
            lines += ["Connection: upgrade", "Upgrade: websocket"]
        if self.chunked:
            lines.append("Transfer-Encoding: chunked")
        elif self.method != "GET":
            lines.append(f"Content-Length: {len(self.body)}")
        if self.expects:
            lines.append("Expect: 100-continue")
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def body_on_the_wire(self):
        if not self.chunked:
            return self.body
        if not self.body:
            return b"0\r\n\r\n"
        half = len(self.body) // 2 or 1
        parts = [part for part in (self.body[:half], self.body[half:]) if part]
        return b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"

    def expected_body(self):
        return {"fast": b"ok\n", "chunked": b"hello" * 4, "big": BIG, "slow": b"slow\n", "early": b"early\n",
                "echo": f"{len(self.body)} {zlib.crc32(self.body)}".encode(), "interim": b"hinted\n",
                "until": b"until the end", "closes": b"bye\n"}.get(self.doing)


class Client:
    """One after another, connections with a few requests each, until it is cancelled."""

    def __init__(self, port, rng, results, tls=None):
        self.port, self.rng, self.results, self.tls = port, rng, results, tls

    async def run(self):
        while True:
            try:
                # Now and then somebody speaks plain HTTP to the port for TLS.
                tls = self.tls if self.rng.random() < 0.95 else None
                reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=tls)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            try:
                for _ in range(self.rng.randint(1, 10)):
                    manner = self.rng.choices(list(MANNERS), MANNERS.values())[0]
                    self.results.manners[manner] += 1
                    goes_on = await getattr(self, manner)(reader, writer)
                    if not goes_on:
                        break
                    await asyncio.sleep(self.rng.random() * 0.05)
            except (OSError, asyncio.IncompleteReadError):
                pass  # closed by the gateway; whether that was right is seen from the books
            except TimeoutError:
                self.results.wrong.append(f"no answer and no end within {PATIENCE} s: {manner}")
            finally:
                self.leave(writer)

    def leave(self, writer):
        if self.rng.random() < 0.5:
            abort(writer)
        else:
            writer.close()

    # The manners. True: the connection can be used again.

    async def good(self, reader, writer):
        request = Request(self.rng, self.results)
        writer.write(request.head())
        writer.write(request.body_on_the_wire())
        return await self.read_answer(reader, writer, request)

    async def pipelines(self, reader, writer):
        requests = [Request(self.rng, self.results) for _ in range(3)]
        requests = [request for request in requests if request.method == "GET" and request.doing != "upgrade"]
        writer.write(b"".join(request.head() for request in requests))
        for request in requests:
            if not await self.read_answer(reader, writer, request):
                return False
        return True

    async def half_close(self, reader, writer):
        request = Request(self.rng, self.results)
        writer.write(request.head() + request.body_on_the_wire())
        request.said_all = writer.can_write_eof()  # not over TLS
        if request.said_all:
            writer.write_eof()
        await self.read_answer(reader, writer, request)
        return False

    async def leave_in_head(self, reader, writer):
        writer.write(Request(self.rng, self.results).head()[:-self.rng.randint(1, 30)])
        return False

    async def leave_in_body(self, reader, writer):
        request = Request(self.rng, self.results)
        body = request.body_on_the_wire()
        writer.write(request.head() + body[:self.rng.randint(0, len(body))])
        await asyncio.sleep(self.rng.random() * 0.1)
        return False

    async def leave_at_once(self, reader, writer):
        request = Request(self.rng, self.results)
        writer.write(request.head() + request.body_on_the_wire())
        return False

    async def leave_later(self, reader, writer):
        request = Request(self.rng, self.results)
        writer.write(request.head() + request.body_on_the_wire())
        await asyncio.sleep(self.rng.random() * 0.4)
        return False

    async def leave_in_answer(self, reader, writer):
        request = Request(self.rng, self.results)
        writer.write(request.head() + request.body_on_the_wire())
        async with asyncio.timeout(PATIENCE):
            await reader.read(self.rng.randint(1, 300))
        return False

    async def slow_head(self, reader, writer):
        for byte in Request(self.rng, self.results).head():
            writer.write(bytes([byte]))
            await asyncio.sleep(0.03)  # over the bound for heads before it is through
        return False

    async def slow_body(self, reader, writer):
        request = Request(self.rng, self.results)
        writer.write(request.head())
        for byte in request.body_on_the_wire()[:20]:
            writer.write(bytes([byte]))
            await asyncio.sleep(0.05)
        return False

    async def bad_chunks(self, reader, writer):
        request = Request(self.rng, self.results)
        request.method, request.chunked, request.doing = "POST", True, "fast"
        bad = self.rng.choice((b"-1\r\n", b"zz\r\n", b"5\nhello", b"\r\n\r\n"))
        writer.write(request.head() + b"5\r\nhello\r\n" + bad)
        async with asyncio.timeout(PATIENCE):
            await reader.read()
        return False

    async def nonsense(self, reader, writer):
        hello = b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + self.rng.randbytes(50)
        writer.write(self.rng.choice((hello, b"GET\r\n\r\n", self.rng.randbytes(300),
                                      b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", b"A" * 100_000)))
        async with asyncio.timeout(PATIENCE):
            await reader.read()
        return False

    # Answers.

    async def read_answer(self, reader, writer, request):
        async with asyncio.timeout(PATIENCE):
            status, head = 100, ""
            while status < 200 and status != 101:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
                status = int(head.split()[1])
            self.results.statuses[request.number] = status
            if status == 101:
                return await self.talk(reader, writer, request)
            body = await self.read_body(reader, head)
        self.results.whole.add(request.number)
        if status == 200:
            self.check(request, head, body)
        return "\r\nConnection: close" not in head

    def check(self, request, head, body):
        """The answer is the one to this request, byte for byte."""
        answered = re.search(r"(?i)\r\nx-chaos: (\S+)", head)
        if answered is None or answered.group(1) != request.number:
            self.results.wrong.append(f"request {request.number} ({request.doing}) got the answer: {head!r}")
        if body != request.expected_body():
            self.results.wrong.append(f"{request.doing}: the body came as {len(body)} bytes {body[:60]!r}")

    async def read_body(self, reader, head):
        found = re.search(r"(?i)\r\ncontent-length: (\d+)\r\n", head)
        if found:
            return await reader.readexactly(int(found.group(1)))
        if not re.search(r"(?i)\r\ntransfer-encoding: chunked\r\n", head):
            return await reader.read()
        body = b""
        while length := int(await reader.readuntil(b"\r\n"), 16):
            body += await reader.readexactly(length)
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass
        return body

    async def talk(self, reader, writer, request):
        """Through a tunnel every byte comes back, in order, until somebody leaves."""
        for _ in range(0 if request.said_all else self.rng.randint(0, 3)):
            message = self.rng.randbytes(self.rng.choice((1, 100, 100_000)))
            writer.write(message)
            if await reader.readexactly(len(message)) != message:
                self.results.wrong.append("a tunnel has changed bytes")
        if writer.can_write_eof() and (request.said_all or self.rng.random() < 0.5):
            writer.write_eof()
            await reader.read()
        self.results.whole.add(request.number)
        return False


async def run_clients(port, seed, count, seconds, results, tls=None):
    """`count` clients for so long, or until it is cancelled; then all leave at once, wherever they are."""
    logging.getLogger("asyncio").setLevel(logging.ERROR)  # it warns of each write to who has left
    clients = [Client(port, random.Random(f"{seed}/{index}"), results, tls) for index in range(count)]
    tasks = [asyncio.create_task(client.run()) for client in clients]
    try:
        done, _ = await asyncio.wait(tasks, timeout=seconds, return_when=asyncio.FIRST_EXCEPTION)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
    for task in done:
        task.result()  # a client ends by itself only by a mistake of this file
