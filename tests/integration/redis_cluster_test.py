"""Two gateways on one Redis Cluster: one limit for both, while all is well, while slots move, and while a primary falls.

    SLUICE_BIN=build/dev/bin tests/integration/redis_cluster_test.py

Three primaries with a replica each. The drills print a row of the table in docs/redis.md, as redis_drills_test.py does.
"""
import contextlib
import os
import signal
import time
import unittest

import redis_drills_test as drills
from processes import ask, wait_until
from redis_nodes import RedisCluster, nodes
from store_load import Load, Timers, admitted, bucket, most_above

# Less than the cluster's node timeout, after which the others begin to act.
SURELY_AWAY = 0.8


def state(sluice):
    return sluice.ready()["shared_store"]


class OneLimit(unittest.TestCase):
    def test_gateways_that_take_turns_admit_what_one_would_for_keys_on_every_server(self):
        rules = ("  - { name: api, key: api_key, limit: 5/h }\n"
                 "  - { name: everybody, key: global, limit: 200/h }\n")
        with nodes(rules, server=RedisCluster, deadline_ms=500) as (redis, _, orders, gateways):
            for key in (f"key-{i}" for i in range(20)):
                got = [ask(gateways[i % 2].port, key=key)[0] for i in range(8)]
                self.assertEqual(got, [200] * 5 + [429] * 3, key)
            self.assertEqual(orders.count_requests(), 100)
            self.assertEqual({server.port for server in redis.keys().values()},
                             {server.port for server in redis.servers[:3]})
            # What the other rule was charged for requests that one had denied came back.
            got = [ask(gateways[i % 2].port, key=f"more-{i}")[0] for i in range(110)]
            self.assertEqual(got, [200] * 100 + [429] * 10)
            for sluice in gateways:
                self.assertEqual(sluice.metric("sluice_redis_slots_missing"), 0)
                self.assertEqual(sluice.metric("sluice_redis_primaries"), 3)
                self.assertEqual(state(sluice)["server"], "a cluster of 3 primaries")
                for server in redis.servers[:3]:
                    sluice.wait_for(rf"shared store address=127.0.0.1:{server.port} server=\"?redis \d")
            wait_until(lambda: all(sluice.metric("sluice_nodes") == 2 for sluice in gateways), "they know each other")


def slots(redis):
    """Of the keys that the drills count by."""
    return sorted({redis.slot_of(key) for key in redis.keys() if key.endswith(tuple(f":{name}" for name in drills.KEYS))})


def gather(redis):
    """Brings all that is counted to one primary, under load; that one, and a slot of it."""
    first, *more = slots(redis)
    owner = redis.owner(first)
    for slot in more:
        if redis.owner(slot) is not owner:
            redis.move(slot, owner)
    return owner, first


def wait_for_another(redis, than, slot):
    wait_until(lambda: redis.owner(slot) not in (None, than), "its replica is promoted")


@contextlib.contextmanager
def killed(redis, _):
    victim, slot = gather(redis)
    victim.kill()
    yield SURELY_AWAY
    wait_for_another(redis, victim, slot)


@contextlib.contextmanager
def stopped(redis, _):
    """It is continued when another has its slots, and does not know of that."""
    victim, slot = gather(redis)
    victim.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, victim.process.pid, os.WSTOPPED | os.WNOWAIT)
    yield SURELY_AWAY
    wait_for_another(redis, victim, slot)
    victim.process.send_signal(signal.SIGCONT)


class Drills(drills.Drill):
    server = RedisCluster

    def test_a_primary_that_is_killed(self):
        self.drill("Cluster: a primary killed, its replica promoted", killed, forgets=True)

    def test_a_primary_that_stands_still_and_comes_back(self):
        self.drill("Cluster: a primary stopped, its replica promoted, continued", stopped, forgets=True)

    def test_slots_that_move(self):
        with nodes(drills.RULES, drills.NODES, deadline_ms=drills.DEADLINE_MS, server=RedisCluster) as (redis, _, _, gateways):
            load = Load(gateways, drills.KEYS, drills.REQUESTS, drills.LOAD, drills.CLIENTS)
            with load.running():
                time.sleep(1)
                before, timers, moves = drills.Figures(gateways), Timers(), 0
                end = time.monotonic() + 5
                while time.monotonic() < end:
                    for slot in slots(redis):
                        primaries = redis.servers[:3]
                        others = [server for server in primaries if server is not redis.owner(slot)]
                        redis.move(slot, others[moves % 2], pause=0.01)
                        moves += 1
                after = drills.Figures(gateways)
                late_ms = 1000 * timers.stop()
            followed = sum(sluice.metric('sluice_redis_redirects_total{kind="moved"}') for sluice in gateways)
        print(f"({moves} moves of a slot, {followed} requests sent elsewhere)", flush=True)
        self.tell("Cluster: slots move from server to server, for 5 s", load.answers, before, after, 0, False, late_ms)
        for key in drills.KEYS:
            passed = admitted(load.answers, rule="closed", key=key)
            self.assertEqual(most_above(passed, bucket(drills.BURST, drills.RATE))[0], 0, key)
            self.assertGreaterEqual(len(passed), 4 * drills.RATE, key)
        self.assertGreater(moves, 5)
        self.assertGreater(followed, moves)
        self.assertLessEqual(after.longest_wait(before, 0.99), self.most_to_wait(after, late_ms))


if __name__ == "__main__":
    unittest.main()
