"""Steady load from clients that note when each request was sent and answered; and what may be admitted in between.

A decision falls somewhere between the two instants. So of any requests of which none was sent before S and none was
answered after R all decisions lie in a stretch of R - S, and no more of them may be admitted than a limit has for it:
that holds however late the clients' clocks were read, and a counter that counts twice breaks it.
"""
import collections
import contextlib
import subprocess
import sys
import threading
import time

from processes import Raw, Worker

Answer = collections.namedtuple("Answer", "rule key node sent received status reduced")

# A stretch of the server's clock may be longer than ours by this, once for its steps of a microsecond and each second
# for how fast a clock may be set.
CLOCK_SECONDS, CLOCK_RATE = 0.001, 0.001


class Client(Worker):
    """Sends `requests`, (rule, bytes) each, in turn over one connection, `rate` a second, until `ends` is set."""

    def __init__(self, port, node, key, requests, rate, ends):
        super().__init__()
        self.port, self.node, self.key, self.requests, self.ends = port, node, key, requests, ends
        self.pause = 1 / rate if rate else 0
        self.answers = []

    def work(self):
        with Raw(self.port) as raw:
            due = time.monotonic()
            while not self.ends.is_set():
                for rule, request in self.requests:
                    due = max(due + self.pause, time.monotonic())  # what was missed is not made up for
                    time.sleep(max(0, due - time.monotonic()))
                    self.ask(raw, rule, request)

    def ask(self, raw, rule, request):
        sent = time.monotonic()
        raw.send(request)
        status, _, body = raw.read_answer()
        received = time.monotonic()
        reduced = b"temporary-reduced-capacity" in body
        self.answers.append(Answer(rule, self.key, self.node, sent, received, status, reduced))


def request(method, path, key):
    body = "{}" if method == "POST" else ""
    return (f"{method} {path} HTTP/1.1\r\nHost: api.example\r\nX-API-Key: {key}\r\n"
            f"Content-Length: {len(body)}\r\n\r\n{body}").encode()


class Load:
    """So many clients of each key at each gateway, as long as the block runs; then `answers` has all of them."""

    def __init__(self, gateways, keys, requests, rate=0, clients=1):
        self.ends = threading.Event()
        self.clients = [
            Client(gateway.port, node, key, [(rule, request(method, path, key)) for rule, (method, path) in
                                             requests.items()], rate, self.ends)
            for node, gateway in enumerate(gateways) for key in keys for _ in range(clients)]
        self.answers = []

    @contextlib.contextmanager
    def running(self):
        for client in self.clients:
            client.start()
        try:
            yield self
        finally:
            self.ends.set()
        for client in self.clients:
            client.join(20)
        self.answers = [answer for client in self.clients for answer in client.answers]


class Timers:
    """A process that sleeps for 5 ms again and again: how late it is woken is the machine's doing, and no program's."""

    CODE = """
import select, sys, time
worst = 0
while True:
    due = time.monotonic() + 0.005
    if select.select([sys.stdin], [], [], 0.005)[0]:
        break
    worst = max(worst, time.monotonic() - due)
print(worst)
"""

    def __init__(self):
        self.process = subprocess.Popen([sys.executable, "-c", self.CODE], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)

    def stop(self):
        """Ends it; by how many seconds it was late at worst."""
        return float(self.process.communicate()[0])


def admitted(answers, **which):
    """Those of `answers` that passed and have these fields."""
    return [answer for answer in answers if answer.status < 300
            and all(getattr(answer, name) == value for name, value in which.items())]


def between(answers, begin, end):
    """Those that were surely decided in between."""
    return [answer for answer in answers if answer.sent >= begin and answer.received <= end]


def most_above(passed, allowance):
    """The most by which a stretch of `passed` has more than allowance(begin, end) units; and that stretch."""
    worst = (0, None, None)
    for begin in sorted(answer.sent for answer in passed):
        ends = sorted(answer.received for answer in passed if answer.sent >= begin)
        for count, end in enumerate(ends, 1):
            above = count - allowance(begin, end)
            if above > worst[0]:
                worst = (above, begin, end)
    return worst


def bucket(burst, rate):
    """What a token bucket may admit between two instants."""
    return lambda begin, end: int(burst + rate * ((end - begin) * (1 + CLOCK_RATE) + CLOCK_SECONDS))
