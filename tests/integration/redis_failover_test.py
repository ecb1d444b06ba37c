"""Failovers: two gateways under steady load, whose primary the sentinels replace.

    SLUICE_BIN=build/dev/bin tests/integration/redis_failover_test.py

A primary, two replicas and three sentinels of the test's own. The first two print a row of the table in docs/redis.md,
as redis_drills_test.py does.
"""
import contextlib
import os
import signal
import tempfile
import time
import unittest

import redis_drills_test as drills
from processes import OrdersApi, Sluice, wait_until
from redis_nodes import SentinelGroup, nodes, settings
from store_load import Load, admitted, bucket, most_above

# Less than the second after which the sentinels begin to act.
SURELY_AWAY = 0.8


def state(sluice):
    return sluice.ready()["shared_store"]


@contextlib.contextmanager
def killed(redis, _):
    primary = redis.primary
    primary.kill()
    yield SURELY_AWAY
    redis.wait_for_another(primary)


@contextlib.contextmanager
def stopped(redis, _):
    """It is continued when another is the primary, and does not know of that."""
    primary = redis.primary
    primary.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, primary.process.pid, os.WSTOPPED | os.WNOWAIT)
    yield SURELY_AWAY
    redis.wait_for_another(primary, sentinels=2)
    primary.process.send_signal(signal.SIGCONT)


class Failover(drills.Drill):
    server = SentinelGroup

    def test_a_primary_that_is_killed(self):
        self.drill("its primary killed, failover by Sentinel", killed, forgets=True)

    def test_a_primary_that_stands_still_and_comes_back(self):
        self.drill("its primary stopped, failover, continued", stopped, forgets=True)

    def test_a_primary_that_its_sentinels_have_given_up_and_cannot_tell_so(self):
        """It runs, takes writes, and is reachable for us: the sentinels alone know better."""
        with nodes(drills.RULES, drills.NODES, deadline_ms=50, server=SentinelGroup) as (redis, _, _, gateways):
            old = redis.primary
            self.assertEqual(old.cli("ACL", "SETUSER", "default", "-replicaof", "-slaveof"), "OK")
            load = Load(gateways, drills.KEYS, drills.REQUESTS, drills.LOAD, drills.CLIENTS)
            with load.running():
                time.sleep(1)
                self.assertEqual(redis.sentinels[0].cli("SENTINEL", "FAILOVER", redis.MASTER), "OK")
                promoted = redis.wait_for_another(old)
                redis.wait_for_another(old, sentinels=3)
                new = redis.primary
                wait_until(lambda: all(state(sluice).get("server") == f"127.0.0.1:{new.port}" for sluice in gateways),
                           "all have gone over")
                left_after = time.monotonic() - promoted
                calls = old.calls()
                time.sleep(1)
            self.assertEqual(old.cli("ROLE").splitlines()[0], "master")  # to this day
            self.assertEqual(old.calls(), calls)
        # What the old one counted since the new one heard of it last is a burst at most; then both count for a while.
        more = drills.BURST + drills.RATE * left_after
        for key in drills.KEYS:
            passed = admitted(load.answers, rule="closed", key=key)
            above, _, _ = most_above(passed, lambda begin, end: bucket(drills.BURST, drills.RATE)(begin, end) + more)
            self.assertEqual(above, 0, key)
        print(f"(left an old primary {left_after:.2f} s after the first sentinel knew)", flush=True)
        self.assertLess(left_after, 1)


class Sentinels(unittest.TestCase):
    def test_without_sentinels_what_is_connected_stays_and_what_is_lost_comes_back_with_them(self):
        with nodes(drills.RULES, 1, deadline_ms=500, server=SentinelGroup) as (redis, _, _, (sluice,)):
            primary = redis.primary
            for sentinel in redis.sentinels[1:]:
                sentinel.kill()
            sentinel = redis.sentinels[0]
            sentinel.process.send_signal(signal.SIGSTOP)
            time.sleep(2)
            self.assertTrue(state(sluice)["up"])
            sentinel.kill()
            time.sleep(1)
            self.assertTrue(state(sluice)["up"])
            primary.cli("CLIENT", "KILL", "TYPE", "normal")
            wait_until(lambda: "no sentinel says where `mymaster` is" in state(sluice).get("why", ""), "it says why")
            self.assertIn("Connection refused", state(sluice)["why"])
            sentinel.start()
            wait_until(lambda: state(sluice)["up"], "one sentinel is enough", seconds=5)
            self.assertEqual(state(sluice)["server"], f"127.0.0.1:{primary.port}")
            self.assertEqual(sluice.count(f"shared store answers again.*mymaster at 127.0.0.1:{primary.port}"), 1)

    def test_a_name_that_the_sentinels_do_not_know_is_told(self):
        with contextlib.ExitStack() as ends:
            folder = ends.enter_context(tempfile.TemporaryDirectory())
            redis = SentinelGroup(folder, replicas=0, sentinels=1)
            ends.callback(redis.stop)
            orders = OrdersApi()
            ends.callback(orders.stop)
            text = settings(orders, redis, drills.RULES, ", connect_wait: 0").replace("mymaster", "theirs")
            sluice = Sluice(text, folder)
            ends.callback(sluice.stop)
            wait_until(lambda: "knows no such master" in state(sluice).get("why", ""), "it says why")
            self.assertIn("no sentinel says where `theirs` is", state(sluice)["why"])


if __name__ == "__main__":
    unittest.main()
