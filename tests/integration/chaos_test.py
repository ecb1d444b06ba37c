"""Chaos: upstreams are killed, clients vanish, the rules are reloaded, all by chance and under load. Five seconds
after it ends the books must be right to the request.

    SLUICE_CHAOS_SEED=7 SLUICE_CHAOS_SECONDS=60 SLUICE_BIN=build/dev/bin tests/integration/chaos_test.py

The seed is the same in each run; SLUICE_CHAOS_SEED=random draws another, and it is printed. A run lasts until the
least of havoc was done that proves something, and fails if that takes longer than a minute.
"""
import asyncio
import collections
import contextlib
import http.client
import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest
from functools import partial

from certificates import Authority, client_context
from chaos_clients import Results, run_clients
from chaos_seed import SEED, tell_seed
from processes import Program, Sluice, Worker, free_port

SECONDS = float(os.environ.get("SLUICE_CHAOS_SECONDS", "12"))
PATIENCE = max(60.0, SECONDS)
CLIENTS = 300
IDEMPOTENT = {"GET", "PUT"}

SETTINGS = """
threads: 2
gateway:
  listen: "127.0.0.1:0"{tls}
  upstream: {upstreams}{checks}
  upstream_health: {{ failures: 3, rest: 200ms }}
  connect_timeout: 500ms
  response_timeout: 1500ms
  idle_timeout: 2s
  header_timeout: 1s
  body_timeout: 1s
  write_timeout: 2s
  upstream_idle_timeout: {idle}
  tunnel_idle_timeout: 2s
  drain: 3s
admin: {{ listen: "127.0.0.1:0" }}
limits: {{ upstream_connections: 16, idle_upstream_connections: 8 }}
log: {{ level: {level} }}
identity: {{ client: {{ header: X-Client }} }}
rules:
  - {{ name: bucket, match: {{ path: /bucket/** }}, key: client, limit: 10/s, burst: 15 }}
  - name: queue
    match: {{ path: /queue/** }}
    key: client
    algorithm: leaky-bucket
    limit: 10/s
    queue: {{ requests: 10, wait: 700ms }}
  - {{ name: slots, match: {{ path: /slots/** }}, key: client, algorithm: concurrency, limit: 4, slot_ttl: 1s }}
  - {{ name: all, key: global, algorithm: concurrency, limit: {all} }}
  - {{ name: rate, key: global, limit: {rate}/s, burst: 100000 }}
{more}
"""
BUCKET_KEYS = QUEUE_KEYS = 8


def calm_settings(ports, tls):
    upstreams = json.dumps([f"http://127.0.0.1:{port}" for port in ports])
    return SETTINGS.format(tls=tls, upstreams=upstreams, checks="", idle="2s", level="info", all=400, rate=100_000,
                           more="")


def chaos_settings(ports, tls, rng):
    """The rules that are checked keep their numbers; the others change, come and go, and so do the upstreams."""
    more = "  - { name: passing, key: ip, limit: 1000000/s, mode: shadow }" if rng.random() < 0.5 else ""
    if rng.random() < 0.2:
        more += "\n  - { name: broken, key: nobody"
    used = rng.choice((ports, ports, ports[:1], ports[1:]))
    upstreams = [{"url": f"http://127.0.0.1:{port}", "weight": rng.randint(1, 3)} for port in used]
    checks = rng.choice(("", "\n  health_check: { path: /alive, every: 200ms, timeout: 200ms }"))
    return SETTINGS.format(tls=tls, upstreams=json.dumps(upstreams), checks=checks, idle=rng.choice(("1s", "2s")),
                           level=rng.choice(("info", "warning")), all=rng.choice((200, 250, 400)),
                           rate=rng.choice((100_000, 200_000)), more=more)


class Upstream:
    """A place for an upstream process; who dies there is replaced at the same port."""

    def __init__(self, log):
        self.port, self.log = free_port(), log
        self.start()

    def start(self):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "chaos_upstream.py")
        self.program = Program([sys.executable, script, str(self.port), self.log])
        self.program.wait_for("listening on")

    def end(self):
        self.program.kill()
        assert "Traceback" not in self.program.text(), self.program.text()


class Havoc(Worker):
    """Kills upstreams and reloads the rules, until it is told to stop; then both upstreams run."""

    def __init__(self, rng, sluice, upstreams, tls):
        super().__init__()
        self.rng, self.sluice, self.upstreams, self.tls = rng, sluice, upstreams, tls
        self.stopping = threading.Event()
        self.kills = self.reloads = 0

    def work(self):
        deeds = []
        while not self.stopping.wait(self.rng.uniform(0.1, 0.6)):
            deeds = deeds or self.rng.sample((self.kill_an_upstream, self.reload), 2)
            deeds.pop()()

    def kill_an_upstream(self):
        upstream = self.rng.choice(self.upstreams)
        upstream.end()
        self.kills += 1
        self.stopping.wait(self.rng.choice((0, 0, 0.1, 0.5)))
        upstream.start()

    def reload(self):
        self.reloads += 1
        self.sluice.write(chaos_settings([upstream.port for upstream in self.upstreams], self.tls, self.rng))
        self.sluice.signal(signal.SIGHUP)

    def stop(self):
        self.stopping.set()
        self.join()


class Chaos(unittest.TestCase):
    tls = None  # how clients come in; none: in plain HTTP

    def setUp(self):
        tell_seed()

    def test_the_books_are_right_five_seconds_after_chaos(self):
        self.run_chaos(CLIENTS, SECONDS)

    def test_the_books_are_right_over_tls_too(self):
        with tempfile.TemporaryDirectory() as folder:
            authority = Authority(folder)
            authority.issue("site.pem", "site.key", "127.0.0.1")
            self.tls = client_context(authority.ca)
            # Fewer, since most of them reconnect all the time and Python's handshakes are slow.
            pair = f"certificate: {folder}/site.pem, key: {folder}/site.key"
            self.run_chaos(CLIENTS // 4, SECONDS / 2, f"\n  tls: {{ {pair} }}")

    def run_chaos(self, count, lasting, tls=""):
        rng = random.Random(SEED)
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            self.upstreams = [Upstream(os.path.join(folder, f"upstream{index}.log")) for index in range(2)]
            for upstream in self.upstreams:
                stack.callback(upstream.end)
            ports = [upstream.port for upstream in self.upstreams]
            self.sluice = Sluice(calm_settings(ports, tls), folder)
            stop = stack.enter_context(contextlib.ExitStack())
            stop.callback(self.sluice.stop)
            self.assertEqual(self.ask("/free/fast", "first", 0), 200)
            files = self.open_files()

            self.results = Results()
            havoc = Havoc(rng, self.sluice, self.upstreams, tls)
            start = time.monotonic()
            havoc.start()
            try:
                asyncio.run(self.let_it_happen(havoc, count, lasting))
            finally:
                havoc.stop()
            time.sleep(5)
            seconds = time.monotonic() - start
            self.tell_what_was_done(havoc)
            self.check_clients()
            self.check_books()
            self.check_limits(seconds)
            self.assertLessEqual(self.open_files(), files + 2)  # the admin port's
            self.check_slots_are_free()
            stop.pop_all()
            self.assertEqual(self.sluice.stop(), 0)

    async def let_it_happen(self, havoc, count, lasting):
        """Clients and havoc, for so long and until enough was done."""
        clients = asyncio.create_task(
            run_clients(self.sluice.port, SEED, count, PATIENCE, self.results, self.tls))
        start = time.monotonic()
        while not clients.done() and havoc.error is None:
            await asyncio.sleep(0.5)
            missing = await asyncio.to_thread(self.missing, havoc)
            if not missing and time.monotonic() > start + lasting:
                break
        clients.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await clients

    def ask(self, path, number, client):
        """The status of one good request."""
        connect = http.client.HTTPConnection
        if self.tls is not None:
            connect = partial(http.client.HTTPSConnection, context=self.tls)
        with contextlib.closing(connect("127.0.0.1", self.sluice.port, timeout=20)) as connection:
            connection.request("GET", path, headers={"X-Chaos": number, "X-Client": str(client)})
            return connection.getresponse().status

    def open_files(self):
        return len(os.listdir(f"/proc/{self.sluice.process.pid}/fd"))

    def metric(self, name):
        return self.sluice.metric(name)

    def ended(self, result):
        return self.metric(f'sluice_gateway_ended_total{{result="{result}"}}')

    def arrivals(self):
        """How often each id reached an upstream, dead ones included."""
        arrived = collections.Counter()
        for upstream in self.upstreams:
            with open(upstream.log) as file:
                arrived.update(file.read().split())
        return arrived

    def missing(self, havoc):
        """What has yet to happen: chaos that did not happen would prove nothing."""
        succeeded = self.metric('sluice_reloads_total{result="succeeded"}')
        allowed = self.metric('sluice_decisions_total{rule="bucket",verdict="allowed"}')
        done = {"kills": (havoc.kills, 4), "reloads that succeeded": (succeeded, 2),
                "retries": (self.metric("sluice_gateway_retries_total"), 1),
                # Twice the burst that each key has: the rate and the reloads have been met.
                "allowed by the bucket": (allowed, 2 * BUCKET_KEYS * 15), "queued": (self.queued(), 5 * QUEUE_KEYS)}
        statuses = collections.Counter(list(self.results.statuses.values()))
        # Over TLS there are too few clients for limits and places to be short.
        answers = (101, 200, 502, 504) if self.tls else (101, 200, 429, 502, 503, 504)
        done |= {f"answers {status}": (statuses[status], 1) for status in answers}
        done |= {result: (self.ended(result), 1) for result in ("forwarded", "failed", "aborted")}
        return {what: count for what, (count, least) in done.items() if count < least}

    def queued(self):
        """How often a request that had to queue reached an upstream."""
        return sum(count for number, count in self.arrivals().items()
                   if number != "first" and self.results.sent_by[number][0] == "queue")

    def tell_what_was_done(self, havoc):
        results = self.results
        statuses = collections.Counter(results.statuses.values())
        print(f"{results.numbers} requests, {havoc.kills} upstreams killed, {havoc.reloads} reloads; answers "
              + ", ".join(f"{status}: {count}" for status, count in sorted(statuses.items())))
        print("forwarded {}, failed {}, aborted {}, retried {}".format(
            *map(self.ended, ("forwarded", "failed", "aborted")), self.metric("sluice_gateway_retries_total")))
        self.assertEqual(self.missing(havoc), {}, f"of havoc, within {PATIENCE} s")

    def check_clients(self):
        """Nobody got another's answer, a body that was changed, or neither an answer nor an end."""
        self.assertEqual(self.results.wrong, [])
        known = {100, 101, 200, 400, 408, 429, 502, 503, 504}
        self.assertEqual(set(self.results.statuses.values()) - known, set())

    def check_books(self):
        self.assertEqual(self.metric("sluice_gateway_requests_in_flight"), 0)
        self.assertEqual(self.metric("sluice_store_slots_used"), 0)
        self.assertEqual(self.metric("sluice_gateway_connections"), 0)
        admitted = self.metric("sluice_gateway_admitted_total")
        forwarded, failed, aborted = map(self.ended, ("forwarded", "failed", "aborted"))
        self.assertEqual(admitted, forwarded + failed + aborted)
        self.assertEqual(admitted + self.metric("sluice_gateway_denied_total"),
                         self.metric("sluice_gateway_requests_total"))

        # What a client saw whole was forwarded; what it was told had failed, failed.
        seen = collections.Counter(status for number, status in self.results.statuses.items()
                                   if number in self.results.whole)
        self.assertLessEqual(seen[200] + seen[101], forwarded)
        self.assertLessEqual(seen[502] + seen[503] + seen[504], failed)
        self.assertLessEqual(seen[429], self.metric("sluice_gateway_denied_total"))

        # What reached an upstream was admitted, once; what was denied did not.
        arrived = self.arrivals()
        self.assertLessEqual(sum(arrived.values()), admitted + self.metric("sluice_gateway_retries_total"))
        again = {number: count for number, count in arrived.items() if count > 1}
        self.assertLessEqual(sum(count - 1 for count in again.values()), self.metric("sluice_gateway_retries_total"))
        for number in again:
            self.assertIn(self.results.sent_by[number][2], IDEMPOTENT)
        denied = {number for number, status in self.results.statuses.items() if status == 429}
        self.assertEqual(denied & set(arrived), set())
        answered = {number for number, status in self.results.statuses.items() if status in (101, 200)}
        self.assertEqual(answered - set(arrived), set())

    def check_limits(self, seconds):
        """Neither kills nor reloads nor clients that leave let anybody beyond the burst and the rate."""
        allowed = self.metric('sluice_decisions_total{rule="bucket",verdict="allowed"}')
        self.assertLessEqual(allowed, BUCKET_KEYS * (15 + 10 * seconds))
        retries = self.metric("sluice_gateway_retries_total")
        self.assertLessEqual(self.queued(), QUEUE_KEYS * (1 + 10 * seconds) + retries)

    def check_slots_are_free(self):
        """Every slot of every client can be had, and not one more."""
        for client in range(8):
            statuses = []
            threads = [threading.Thread(target=lambda: statuses.append(
                self.ask("/slots/slow", f"after-{client}", client))) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(statuses, [200] * 4)


if __name__ == "__main__":
    unittest.main()
