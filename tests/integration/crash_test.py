"""A gateway that is killed under load and started again: it comes up by itself, forgets at most what came after
its last snapshot, and invents nothing.

    SLUICE_CHAOS_SEED=7 SLUICE_BIN=build/dev/bin tests/integration/crash_test.py
"""
import os
import random
import re
import tempfile
import threading
import time
import unittest

from chaos_seed import SEED, tell_seed
from processes import OrdersApi, Sluice, ask, settings, wait_until

ROUNDS = 3
THREADS = 16
LIMIT = 10_000_000
RULES = f"""
store: {{ memory: {{ snapshot: counters.snapshot, snapshot_every: 1s }} }}
rules:
  - {{ name: quota, key: api_key, limit: {LIMIT}/year, algorithm: calendar, time_zone: UTC }}
  - {{ name: slots, key: api_key, algorithm: concurrency, limit: {2 * THREADS}, slot_ttl: 1s, hide: true }}
"""


class Load:
    """Threads that ask until nobody answers any more."""

    def __init__(self, port):
        self.port = port
        self.sent = [0] * THREADS
        self.answered = [0] * THREADS
        self.error = None
        self.threads = [threading.Thread(target=self.run, args=(index,)) for index in range(THREADS)]
        for thread in self.threads:
            thread.start()

    def run(self, index):
        try:
            while True:
                self.sent[index] += 1
                status = ask(self.port)[0]
                assert status == 200, status
                self.answered[index] += 1
        except OSError:  # also http.client's for an answer that broke off: RemoteDisconnected
            pass
        except Exception as error:
            self.error = error

    def join(self):
        for thread in self.threads:
            thread.join()
        if self.error is not None:
            raise self.error


class Crash(unittest.TestCase):
    def setUp(self):
        tell_seed()

    def used(self):
        """What the quota says after one more request, which must be served."""
        status, headers, _ = ask(self.sluice.port)
        self.assertEqual(status, 200)
        self.sent += 1
        return LIMIT - int(re.search(r'"quota";r=(\d+)', headers["RateLimit"]).group(1))

    def wait_for_snapshots(self, count):
        """So many more are written. The second was begun after this was called."""
        for _ in range(count):
            before = self.snapshot_time()
            deadline = time.monotonic() + 20
            while self.snapshot_time() == before:
                self.assertLess(time.monotonic(), deadline, "no snapshot is written")
                time.sleep(0.01)

    def snapshot_time(self):
        try:
            return os.stat(self.snapshot).st_mtime_ns
        except FileNotFoundError:
            return None

    def wait_for_the_moment(self, rng):
        """A moment by chance; every other time the one at which a snapshot is being written."""
        seconds = rng.uniform(0.2, 1.2)
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.round % 2 == 1 and os.path.exists(self.snapshot + ".tmp"):
                return
            time.sleep(0)

    def test_a_killed_gateway_comes_up_again_and_remembers_its_snapshot(self):
        rng = random.Random(SEED)
        orders = OrdersApi()
        self.addCleanup(orders.stop)
        with tempfile.TemporaryDirectory() as folder:
            self.snapshot = os.path.join(folder, "counters.snapshot")
            self.sent = kept = 0
            for self.round in range(ROUNDS):
                self.sluice = Sluice(settings(orders.port, RULES), folder)
                try:
                    # Slots died with their holders; a quota never counts what was not asked.
                    self.assertEqual(self.sluice.metric("sluice_store_slots_used"), 0)
                    used = self.used()
                    self.assertGreaterEqual(used, kept)
                    self.assertLessEqual(used, self.sent)
                    for _ in range(20):
                        kept = self.used()
                    self.wait_for_snapshots(2)
                    load = Load(self.sluice.port)
                    wait_until(lambda: load.error or sum(load.answered) > THREADS, "the load is answered", 60)
                    self.wait_for_the_moment(rng)
                finally:
                    self.sluice.kill()
                load.join()
                self.sent += sum(load.sent)
                print(f"killed after {self.sent} requests, {sum(load.answered)} answered in this round; kept {kept}")
            self.sluice = Sluice(settings(orders.port, RULES), folder)
            used = self.used()
            self.assertEqual(self.sluice.stop(), 0)
            self.assertGreaterEqual(used, kept)
            self.assertLessEqual(used, self.sent)
            self.assertFalse(os.path.exists(self.snapshot + ".tmp"))


if __name__ == "__main__":
    unittest.main()
