"""Failure drills: two gateways on one Redis under steady load, while Redis fails in one way after another.

    SLUICE_BIN=build/dev/bin SLUICE_DRILL_DEADLINE_MS=5 tests/integration/redis_drills_test.py

Each drill prints a row of the table in docs/redis.md. What was admitted is held against what the rules allow in any
stretch of time (store_load.py), and how long requests waited is what the gateways measured themselves.
"""
import contextlib
import math
import os
import re
import signal
import subprocess
import time
import unittest

from processes import RedisServer, ask, wait_until
from redis_nodes import nodes
from store_load import Load, Timers, admitted, between, bucket, most_above

NODES = 2
DEADLINE_MS = int(os.environ.get("SLUICE_DRILL_DEADLINE_MS", "5"))
TIMER_MS = 5  # so much later than the deadline may an answer be, for 99 of 100
BURST, RATE = 10, 10  # of each rule, for each key
REMEMBERED = 1 / RATE  # seconds that a denial from before may be repeated, as long as its wait
FOLLOW = 0.6  # seconds that two nodes may follow a failover apart, while the old primary and the new both count
KEYS = ["ann", "bob"]
LOAD = 50  # requests a second of each client, over the rules in turn
CLIENTS = 2  # of each key at each node: more than any rule allows, alone at a node too
# What each rule lets pass on every node while Redis is away, as a part of its limit.
SHARES = {"closed": 0, "half": 0.5, "local": 1, "open": math.inf}
MODES = {"closed": "closed", "half": "{ local: 1/2 }", "local": "local", "open": "open"}
REQUESTS = {"closed": ("GET", "/v1/exports"), "half": ("GET", "/v1/headers"), "local": ("GET", "/v1/orders"),
            "open": ("POST", "/v1/orders")}
RULES = "".join(
    f"  - {{ name: {name}, match: {{ method: {method}, path: {path} }}, key: api_key, limit: {RATE}/s, burst: {BURST}, "
    f"on_store_failure: {MODES[name]} }}\n" for name, (method, path) in REQUESTS.items())
FRESH = ("  - { name: fresh, match: { method: POST, path: /v1/headers }, key: api_key, limit: 5/h, "
         "on_store_failure: closed }\n")


def connections(redis):
    """That it has taken since its start."""
    return int(re.search(r"total_connections_received:(\d+)", redis.cli("INFO", "stats")).group(1))


def is_up(sluice):
    return sluice.ready()["shared_store"]["up"]


class Figures:
    """What the gateways have counted so far, in sum."""

    def __init__(self, gateways):
        text = "\n".join(sluice.get_admin("/metrics") for sluice in gateways)
        self.waits = {}  # by seconds: how many were no longer
        for bound, count in re.findall(r'^sluice_redis_wait_seconds_bucket\{le="([^"]+)"\} (\d+)$', text, re.M):
            self.waits[float(bound)] = self.waits.get(float(bound), 0) + int(count)
        self.refused = sum(map(int, re.findall(r"^sluice_redis_refused_total (\d+)$", text, re.M)))
        self.degraded = dict.fromkeys(REQUESTS, 0)
        for rule, count in re.findall(r'^sluice_degraded_decisions_total\{rule="(\w+)",mode="\w+"\} (\d+)$', text, re.M):
            self.degraded[rule] = self.degraded.get(rule, 0) + int(count)

    def longest_wait(self, before, share):
        """Milliseconds that `share` of the requests since `before` did not exceed, as the end of a bucket. Those that
        were refused at once are among them, with a wait of nothing."""
        refused = self.refused - before.refused
        asked = self.waits[math.inf] - before.waits[math.inf] + refused
        return 1000 * next(bound for bound in sorted(self.waits)
                           if self.waits[bound] - before.waits[bound] + refused >= share * asked)


# What is done to Redis. Inside of each block it is away, for the seconds that are told; after it, back.


@contextlib.contextmanager
def killed(redis, _):
    redis.kill()
    yield 2
    redis.start()


@contextlib.contextmanager
def stopped(redis, _):
    redis.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, redis.process.pid, os.WSTOPPED | os.WNOWAIT)  # until it stands still
    yield 5
    redis.process.send_signal(signal.SIGCONT)


@contextlib.contextmanager
def paused(redis, _):
    begin = time.monotonic()
    assert redis.cli("CLIENT", "PAUSE", "3000", "ALL") == "OK"
    yield begin + 2.9 - time.monotonic()
    time.sleep(max(0, begin + 3 - time.monotonic()))


@contextlib.contextmanager
def busy(redis, _):
    redis.cli("CONFIG", "SET", "busy-reply-threshold", "50")
    script = subprocess.Popen(["redis-cli", "-p", str(redis.port), "EVAL", "while true do end", "0"],
                              stdout=subprocess.DEVNULL)
    wait_until(lambda: redis.cli("PING").startswith("BUSY"), "it is busy")
    yield 1.5
    assert redis.cli("SCRIPT", "KILL") == "OK"
    script.wait(10)


def proxy_that(mode, number=0, seconds=2):
    @contextlib.contextmanager
    def fault(_, proxy):
        proxy.set(mode, number)
        yield seconds
        proxy.set("pass")
    return fault


class Drill(unittest.TestCase):
    server = RedisServer

    def drill(self, name, fault, proxied=False, forgets=False):
        with nodes(RULES + FRESH, NODES, proxied, DEADLINE_MS, self.server) as (redis, proxy, _, gateways):
            load = Load(gateways, KEYS, REQUESTS, LOAD, CLIENTS)
            with load.running():
                time.sleep(1)
                connected = connections(redis)
                begin = time.monotonic()
                before = Figures(gateways)
                timers = Timers()
                with fault(redis, proxy) as seconds:
                    away = time.monotonic()
                    time.sleep(seconds)
                    self.assertFalse(any(is_up(sluice) for sluice in gateways))
                    returns = time.monotonic()
                back = time.monotonic()
                shared_after = self.wait_until_shared(gateways, back)
                after = Figures(gateways)
                late_ms = 1000 * timers.stop()
                again = time.monotonic()
                time.sleep(1)
            end = Figures(gateways)
            connected = connections(redis) - (0 if forgets else connected)
        strays = {rule: end.degraded[rule] - after.degraded[rule] + before.degraded[rule] for rule in REQUESTS}
        self.tell(name, load.answers, before, after, shared_after, forgets, late_ms)
        self.assertLessEqual({answer.status for answer in load.answers}, {200, 201, 429})
        self.expect_failure_modes(between(load.answers, away + REMEMBERED, returns))
        self.expect_each_node_its_share(between(load.answers, away, returns))
        self.expect_one_limit(load.answers, (begin, again), (returns, back + FOLLOW) if forgets else None, strays)
        for key in KEYS:  # what failure modes let pass is not charged afterwards
            self.assertGreaterEqual(len(admitted(between(load.answers, back, math.inf), rule="closed", key=key)), RATE / 2)
        self.assertLess(connected, 100)
        self.assertLess(shared_after, 1)
        self.assertLessEqual(after.longest_wait(before, 0.99), self.most_to_wait(after, late_ms))

    def wait_until_shared(self, gateways, back):
        """Seconds since `back` until the sixth request of a new key is denied, whichever nodes they were sent to."""
        tries = 0
        while time.monotonic() < back + 5:
            tries += 1
            if not all(is_up(sluice) for sluice in gateways):
                continue
            answers = [ask(gateways[i % NODES].port, "/v1/headers", f"fresh-{tries}", "POST") for i in range(6)]
            seconds = time.monotonic() - back
            if [status for status, _, _ in answers] == [200] * 5 + [429] and b"quota-exceeded" in answers[-1][2]:
                return seconds
        raise AssertionError("nodes do not count together again:\n" + "\n".join(sluice.text() for sluice in gateways))

    @staticmethod
    def most_to_wait(figures, late_ms):
        """Milliseconds, as the end of a bucket. A machine with little else to do wakes whoever sleeps within one."""
        most = DEADLINE_MS + TIMER_MS
        if late_ms < 1:
            return most
        return min(1000 * bound for bound in figures.waits if 1000 * bound >= most + late_ms)

    def expect_failure_modes(self, answers):
        """Of those that were decided while Redis was surely away."""
        for rule in REQUESTS:
            of_rule = [answer for answer in answers if answer.rule == rule]
            self.assertGreater(len(of_rule), 50, rule)
            self.assertEqual({answer.reduced for answer in of_rule}, {rule == "closed"}, rule)
        self.assertEqual(len(admitted(answers, rule="open")), sum(answer.rule == "open" for answer in answers))
        self.assertEqual(admitted(answers, rule="closed"), [])
        for rule in ("half", "local"):
            for key in KEYS:
                for node in range(NODES):
                    passed = admitted(answers, rule=rule, key=key, node=node)
                    own = bucket(BURST * SHARES[rule], RATE * SHARES[rule])
                    self.assertEqual(most_above(passed, own)[0], 0, (rule, key, node))

    def expect_each_node_its_share(self, answers):
        """Of all since Redis went away: a node's own bucket was full then."""
        for rule in ("half", "local"):
            for key in KEYS:
                for node in range(NODES):
                    passed = admitted(answers, rule=rule, key=key, node=node)
                    self.assertGreaterEqual(len(passed), BURST * SHARES[rule], (rule, key, node))

    def expect_one_limit(self, answers, outage, forgotten, strays):
        """Of all: what Redis admits, and on top what failure modes do. `strays` of them were late beside the outage."""
        shared = bucket(BURST, RATE)

        def allowance(rule):
            def most(begin, end):
                most = shared(begin, end) + (strays[rule] if rule != "closed" else 0)
                overlap = min(end, outage[1]) - max(begin, outage[0])
                if overlap > 0 and SHARES[rule] > 0:
                    most += NODES * SHARES[rule] * bucket(BURST, RATE)(0, overlap)
                if forgotten and begin < forgotten[1] and end > forgotten[0]:
                    most += BURST  # begins anew
                return most
            return most

        for rule in REQUESTS:
            for key in KEYS:
                above, begin, end = most_above(admitted(answers, rule=rule, key=key), allowance(rule))
                self.assertEqual(above, 0, (rule, key, begin, end, outage))

    @staticmethod
    def tell(name, answers, before, after, shared_after, forgets, late_ms):
        """Redis alone admits what a rule that fails closed admits."""
        first, last = min(answer.sent for answer in answers), max(answer.received for answer in answers)
        bound = len(KEYS) * (bucket(BURST, RATE)(first, last) + (BURST if forgets else 0))
        degraded = sum(after.degraded.values()) - sum(before.degraded.values())
        print(f"| {name} | {len(admitted(answers, rule='closed'))} | {bound} | {degraded} | "
              f"{after.longest_wait(before, 0.99):g} | {after.longest_wait(before, 1):g} | {shared_after:.2f} s |  "
              f"(the machine's timers: {late_ms:.1f} ms late)", flush=True)


class RedisDrills(Drill):
    def test_killed_and_started_again(self):
        self.drill("`kill -9`, started after 2 s", killed, forgets=True)

    def test_stopped(self):
        self.drill("`SIGSTOP` for 5 s", stopped)

    def test_paused(self):
        self.drill("`CLIENT PAUSE 3000 ALL`", paused)

    def test_busy_with_a_script(self):
        self.drill("a script that does not end, for 1.5 s", busy)

    def test_a_network_that_loses_all(self):
        self.drill("nothing comes through, for 2.2 s", proxy_that("blackhole", seconds=2.2), proxied=True)

    def test_replies_that_end_in_the_middle(self):
        self.drill("cut in each reply, for 2 s", proxy_that("cut", 7), proxied=True)

    def test_replies_that_are_late(self):
        self.drill("replies 200 ms late, for 2 s", proxy_that("slow", 200), proxied=True)

    def test_connections_that_are_reset(self):
        self.drill("connections reset, for 2 s", proxy_that("reset"), proxied=True)

    def test_connections_that_are_refused(self):
        self.drill("connections refused, for 2 s", proxy_that("refuse"), proxied=True)


class ManyClients(unittest.TestCase):
    def test_four_gateways_admit_what_one_would_in_any_stretch(self):
        limit = 40
        requests = {"bucket": ("GET", "/v1/orders"), "strict": ("GET", "/v1/headers")}
        algorithms = {"bucket": f"token-bucket, burst: {limit}", "strict": "sliding-window-strict"}
        rules = "".join(
            f"  - {{ name: {name}, match: {{ path: {path} }}, key: api_key, limit: {limit}/s, "
            f"algorithm: {algorithms[name]}, on_store_failure: closed }}\n" for name, (_, path) in requests.items())
        allowances = {"bucket": bucket(limit, limit), "strict": lambda begin, end: limit * (int(end - begin) + 1)}
        with nodes(rules, count=4, deadline_ms=500) as (_, _, _, gateways):
            load = Load(gateways, ["ann"], requests, clients=4)
            with load.running():
                time.sleep(3)
        self.assertEqual({answer.status for answer in load.answers}, {200, 429})
        for rule, allowance in allowances.items():
            passed = admitted(load.answers, rule=rule)
            above, begin, end = most_above(passed, allowance)
            self.assertEqual(above, 0, (rule, begin, end))
            self.assertGreaterEqual(len(passed), 2.5 * limit, rule)


if __name__ == "__main__":
    unittest.main()
