"""Gateways that lease units of a hot key from one Redis: one limit all the same, and few questions."""
import contextlib
import http.client
import time
import unittest

from processes import Sluice, Worker, ask, wait_until
from redis_nodes import nodes, settings


class Client(Worker):
    """Asks one gateway on a kept connection, so many times or until told to stop."""

    def __init__(self, port, count=None):
        super().__init__()
        self.port, self.count = port, count
        self.statuses = []
        self.stopping = False

    def work(self):
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as kept:
            while not self.stopping and len(self.statuses) != self.count:
                kept.request("GET", "/v1/orders", headers={"X-API-Key": "ann"})
                answer = kept.getresponse()
                answer.read()
                self.statuses.append(answer.status)


def run(clients, seconds=None):
    for client in clients:
        client.start()
    if seconds is not None:
        time.sleep(seconds)
        for client in clients:
            client.stopping = True
    for client in clients:
        client.join()
    statuses = [status for client in clients for status in client.statuses]
    return statuses.count(200), len(statuses)


def total(gateways, name):
    return sum(sluice.metric(name) for sluice in gateways)


def remaining(sluice):
    """What a request that passes is told."""
    status, headers, _ = ask(sluice.port)
    return int(headers["RateLimit"].split("r=")[1].split(";")[0]) if status == 200 else None


class Leases(unittest.TestCase):
    DAY = "  - {{ name: api, key: api_key, algorithm: fixed-window, limit: {}/day, lease: {{ for: 500ms }} }}"

    def test_two_gateways_admit_what_one_limit_allows_and_ask_seldom(self):
        rule = "  - { name: api, key: api_key, limit: 200/s, burst: 400, lease: { for: 100ms } }"
        with nodes(rule, deadline_ms=1000) as (redis, _, orders, gateways):
            begin = time.monotonic()
            admitted, asked = run([Client(gateways[i % 2].port) for i in range(4)], seconds=3)
            elapsed = time.monotonic() - begin
            self.assertLessEqual(admitted, 400 + 200 * elapsed)
            self.assertGreater(admitted, 0.8 * (400 + 200 * 3))
            self.assertEqual(orders.count_requests(), admitted)
            self.assertGreater(asked, admitted)

    def test_with_room_most_requests_are_answered_from_leases(self):
        with nodes(self.DAY.format(1_000_000), deadline_ms=1000) as (redis, _, _, gateways):
            admitted, asked = run([Client(gateways[i % 2].port, count=1000) for i in range(4)])
            self.assertEqual(admitted, asked)
            leased = total(gateways, 'sluice_leased_decisions_total{rule="api"}')
            self.assertGreater(leased, asked / 2)
            self.assertLess(redis.calls(), asked / 2)
            self.assertEqual(total(gateways, 'sluice_lease_units_total{what="taken"}'), leased)

    def test_with_no_leased_keys_nothing_is_leased(self):
        rules = self.DAY.format(1_000_000) + "\nlimits: { leased_keys: 0 }"
        with nodes(rules, deadline_ms=1000) as (redis, _, _, gateways):
            admitted, asked = run([Client(gateways[i % 2].port, count=100) for i in range(4)])
            self.assertEqual((admitted, asked), (400, 400))
            self.assertEqual(total(gateways, 'sluice_leased_decisions_total{rule="api"}'), 0)
            self.assertEqual(total(gateways, "sluice_redis_requests_total"), 400)

    def test_a_quota_is_used_to_the_last_request_and_no_further(self):
        with nodes(self.DAY.format(2_000), deadline_ms=1000) as (_, _, orders, gateways):
            admitted, _ = run([Client(gateways[i % 2].port, count=800) for i in range(4)])
            # What is held while others are denied comes back, and is there for whoever asks then.
            deadline = time.monotonic() + 10
            while admitted < 2_000 and time.monotonic() < deadline:
                admitted += [ask(sluice.port)[0] for sluice in gateways].count(200)
            self.assertEqual(admitted, 2_000)
            time.sleep(1.2)
            self.assertEqual({ask(sluice.port)[0] for sluice in gateways}, {429})
            self.assertEqual(orders.count_requests(), 2_000)

    def test_what_is_held_goes_back_at_the_end_of_a_process_and_at_a_reload(self):
        rule = ("  - {{ name: api, key: api_key, algorithm: fixed-window, limit: {}/day, "
                "lease: {{ for: 1h }} }}").format
        with nodes(rule(1_000_000), deadline_ms=1000) as (redis, _, orders, gateways):
            for sluice in gateways:
                self.assertEqual(run([Client(sluice.port, count=300)]), (300, 300))
            self.assertGreater(total(gateways, "sluice_leased_keys"), 0)
            gateways[0].reload(settings(orders, redis, rule(1_000_001), deadline_ms=1000))
            wait_until(lambda: gateways[0].metric("sluice_leased_keys") == 0, "what was held has gone back", seconds=2)
            self.assertEqual(gateways[1].stop(), 0)
            self.assertEqual(remaining(gateways[0]), 1_000_001 - 601)


if __name__ == "__main__":
    unittest.main()
