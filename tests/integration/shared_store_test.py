"""Several gateways on one Redis: one limit for all of them, and what they do while it is gone."""
import contextlib
import http.client
import json
import os
import signal
import tempfile
import time
import unittest

from processes import BIN, Program, Sluice, Worker, ask, free_port, wait_until
from redis_nodes import nodes, settings

NODES = 2


def statuses(gateways, count, **more):
    return [ask(gateways[i % len(gateways)].port, **more)[0] for i in range(count)]


def shared_store(sluice):
    return sluice.ready()["shared_store"]


class OneLimit(unittest.TestCase):
    def test_two_gateways_that_take_turns_deny_the_sixth_request(self):
        with nodes("  - { name: api, key: api_key, limit: 5/h }") as (redis, _, orders, gateways):
            self.assertEqual(statuses(gateways, 8), [200] * 5 + [429] * 3)
            self.assertEqual(orders.count_requests(), 5)
            status, headers, body = ask(gateways[0].port)
            self.assertEqual(headers["RateLimit"].split(";")[:2], ['"api"', "r=0"])
            self.assertGreater(int(headers["Retry-After"]), 600)
            self.assertEqual(ask(gateways[1].port, key="bob")[0], 200)
            keys = redis.counters()
            self.assertEqual(len(keys), 2)
            for key in keys:
                self.assertGreater(int(redis.cli("PTTL", key)), 0)

    def test_the_log_tells_what_the_server_is_like_and_warns_of_what_may_lose_counters(self):
        with nodes("  - { name: api, key: api_key, limit: 5/h }", count=1) as (redis, _, _, gateways):
            gateways[0].wait_for(r"shared store address=127.0.0.1:\d+ server=\"?redis \d")
        with nodes("", count=0) as (redis, _, orders, _), tempfile.TemporaryDirectory() as folder:
            redis.cli("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            redis.cli("CONFIG", "SET", "maxmemory", "100mb")
            sluice = Sluice(settings(orders, redis, "  - { name: api, key: api_key, limit: 5/h }"), folder)
            sluice.wait_for("warning shared store .*allkeys-lru")
            self.assertEqual(sluice.stop(), 0)

    def test_clients_at_the_same_time_get_no_more_than_one_process_would_give_them(self):
        with nodes("  - { name: api, key: api_key, limit: 100/h }", count=4) as (_, _, orders, gateways):
            got = []

            class Client(Worker):
                def __init__(self, port):
                    super().__init__()
                    self.port = port

                def work(self):
                    with contextlib.closing(http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)) as kept:
                        for _ in range(30):
                            kept.request("GET", "/v1/orders", headers={"X-API-Key": "ann"})
                            answer = kept.getresponse()
                            answer.read()
                            got.append(answer.status)

            clients = [Client(gateways[i % 4].port) for i in range(8)]
            for client in clients:
                client.start()
            for client in clients:
                client.join()
            self.assertEqual(sorted(got), [200] * 100 + [429] * 140)
            self.assertEqual(orders.count_requests(), 100)

    def test_slots_are_shared_and_come_back_when_the_answer_has_ended(self):
        rule = "  - { name: exports, key: api_key, algorithm: concurrency, limit: 1, slot_ttl: 10s }"
        with nodes(rule) as (redis, _, _, gateways):
            slow = Worker()
            slow.work = lambda: self.assertEqual(ask(gateways[0].port, "/v1/exports?delay=1s")[0], 200)
            slow.start()
            wait_until(lambda: len(redis.counters()) == 1, "the slot is taken")
            self.assertEqual(ask(gateways[1].port)[0], 429)
            slow.join()
            wait_until(lambda: ask(gateways[1].port)[0] == 200, "the slot has come back", seconds=2)

    def test_a_rule_of_the_node_asks_no_store(self):
        with nodes("  - { name: own, key: api_key, limit: 2/h, scope: node }") as (redis, _, _, gateways):
            self.assertEqual(statuses(gateways, 6), [200] * 4 + [429] * 2)
            self.assertEqual(redis.calls(), 0)

    def test_a_flood_reaches_redis_once_a_second_from_each_node(self):
        with nodes("  - { name: api, key: api_key, limit: 1/h }") as (redis, _, _, gateways):
            self.assertEqual(ask(gateways[0].port)[0], 200)
            before, begin = redis.calls(), time.monotonic()
            for _ in range(300):
                self.assertEqual(set(statuses(gateways, 2)), {429})
            seconds = time.monotonic() - begin
            self.assertLessEqual(redis.calls() - before, NODES * (int(seconds) + 1))
            remembered = sum(sluice.metric('sluice_remembered_denials_total{rule="api"}') for sluice in gateways)
            self.assertGreaterEqual(remembered, 600 - NODES * (int(seconds) + 1))


MODES = """
  - { name: local, match: { method: GET, path: /v1/orders }, key: api_key, limit: 4/h, on_store_failure: { local: 1/2 } }
  - { name: open, match: { method: POST }, key: api_key, limit: 1/h, on_store_failure: open }
  - { name: closed, match: { path: /v1/exports }, key: api_key, limit: 9/h, on_store_failure: closed }
"""


class WithoutTheStore(unittest.TestCase):
    def expect_failure_modes(self, sluice, key):
        """Each rule does what it says, within the deadline."""
        begin = time.monotonic()
        self.assertEqual([ask(sluice.port, key=key)[0] for _ in range(3)], [200, 200, 429])
        self.assertEqual([ask(sluice.port, key=key, method="POST", body="{}")[0] for _ in range(3)], [201] * 3)
        status, headers, body = ask(sluice.port, "/v1/exports", key=key)
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))
        self.assertIn("temporary-reduced-capacity", json.loads(body)["type"])
        self.assertLess(time.monotonic() - begin, 5)

    def test_rules_do_what_they_say_while_it_is_killed_and_it_counts_again_within_a_second(self):
        with nodes(MODES) as (redis, _, _, gateways):
            self.assertEqual(statuses(gateways, 6), [200] * 4 + [429] * 2)
            redis.kill()
            for sluice in gateways:
                wait_until(lambda: not shared_store(sluice)["up"], "it is told that the store is gone")
                self.expect_failure_modes(sluice, "bob")
                self.assertEqual(sluice.metric("sluice_redis_up"), 0)
                self.assertEqual(sluice.metric('sluice_degraded_decisions_total{rule="closed",mode="closed"}'), 1)
                self.assertEqual(sluice.count("shared store does not answer"), 1)
            redis.start()
            back = time.monotonic()
            for sluice in gateways:
                wait_until(lambda: shared_store(sluice)["up"], "it is told that the store is back", seconds=5)
            self.assertLess(time.monotonic() - back, 1.5)
            # What Redis lost is counted anew, and shared.
            self.assertEqual(statuses(gateways, 6, key="eve"), [200] * 4 + [429] * 2)
            for sluice in gateways:
                self.assertEqual(sluice.count("shared store answers again"), 1)

    def test_a_store_that_hangs_costs_its_deadline_until_it_is_left_alone(self):
        with nodes(MODES) as (redis, _, _, gateways):
            sluice = gateways[0]
            self.assertEqual(ask(sluice.port, key="warm")[0], 200)
            redis.process.send_signal(signal.SIGSTOP)
            begin = time.monotonic()
            self.expect_failure_modes(sluice, "bob")
            for _ in range(100):
                self.assertEqual(ask(sluice.port, method="POST", body="{}")[0], 201)
            # 50 ms for each until the breaker opens, in each of two loops; then nothing.
            self.assertLess(time.monotonic() - begin, 4)
            wait_until(lambda: not shared_store(sluice)["up"], "it is told that the store is gone")
            redis.process.send_signal(signal.SIGCONT)
            back = time.monotonic()
            wait_until(lambda: shared_store(sluice)["up"], "it is told that the store is back", seconds=5)
            self.assertLess(time.monotonic() - back, 1.5)
            self.assertEqual(statuses(gateways, 6, key="eve"), [200] * 4 + [429] * 2)

    def test_doors_open_after_connect_wait_and_failure_modes_decide(self):
        with nodes(MODES, count=0) as (redis, _, orders, _), tempfile.TemporaryDirectory() as folder:
            redis.kill()
            sluice = Sluice(settings(orders, redis, MODES, ", connect_wait: 100ms"), folder)
            sluice.wait_for("doors open without the shared store")
            self.expect_failure_modes(sluice, "bob")
            redis.start()
            wait_until(lambda: shared_store(sluice)["up"], "it is told that the store is there", seconds=5)
            self.assertEqual(statuses([sluice], 6, key="eve"), [200] * 4 + [429] * 2)
            self.assertEqual(sluice.stop(), 0)

    def test_nodes_that_count_by_other_rules_are_told_of(self):
        rules = "  - { name: api, key: api_key, limit: 5/h }"
        with nodes(rules) as (redis, _, orders, gateways):
            one, other = gateways
            for sluice in gateways:
                wait_until(lambda: sluice.metric("sluice_nodes") == 2, "the nodes know of each other")
                self.assertEqual(sluice.metric("sluice_nodes_with_other_rules"), 0)
            changed = settings(orders, redis, "  - { name: api, key: api_key, limit: 6/h }")
            one.reload(changed)
            other.wait_for("nodes count by other rules than this one .*nodes=2")
            self.assertEqual(other.metric("sluice_nodes_with_other_rules"), 1)
            other.reload(changed)
            other.wait_for("all nodes count by the same rules nodes=2")

    def test_a_signal_ends_a_start_that_waits_for_the_store(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sluice.yaml")
            with open(path, "w") as file:
                file.write(f"store: {{ redis: {{ url: 'redis://127.0.0.1:{free_port()}', connect_wait: 60s }} }}\n"
                           "admin: { listen: 127.0.0.1:0 }\n")
            sluice = Program([f"{BIN}/sluice", "serve", "--config", path])
            sluice.wait_for("shared store does not answer")
            self.assertEqual(sluice.stop(), 0)
            self.assertEqual(sluice.count("listening"), 0)

    def test_a_server_that_forgot_the_script_or_all_it_knew_is_asked_on(self):
        with nodes("  - { name: api, key: api_key, limit: 2/h }") as (redis, _, _, gateways):
            self.assertEqual(statuses(gateways, 2), [200, 200])
            redis.cli("SCRIPT", "FLUSH")
            self.assertEqual(statuses(gateways, 2, key="bob"), [200, 200])
            redis.cli("FLUSHALL")
            self.assertEqual(statuses(gateways, 2, key="bob"), [200, 200])
            for sluice in gateways:
                self.assertEqual(sluice.metric('sluice_degraded_decisions_total{rule="api",mode="local"}'), 0)

    def test_an_error_of_the_server_is_no_denial(self):
        with nodes(MODES) as (redis, _, _, gateways):
            self.assertEqual(statuses(gateways, 2), [200, 200])
            redis.cli("CONFIG", "SET", "maxmemory", "1")
            self.expect_failure_modes(gateways[0], "bob")
            self.assertGreaterEqual(gateways[0].metric('sluice_redis_errors_total{kind="oom"}'), 1)
            redis.cli("CONFIG", "SET", "maxmemory", "0")
            wait_until(lambda: shared_store(gateways[0])["up"], "the store decides again", seconds=3)
            self.assertEqual(statuses(gateways, 6, key="eve"), [200] * 4 + [429] * 2)


if __name__ == "__main__":
    unittest.main()
