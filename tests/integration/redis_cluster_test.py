"""Two gateways on one Redis Cluster: one limit for both, while all is well, while slots move, and while a primary falls.

    SLUICE_BIN=build/dev/bin tests/integration/redis_cluster_test.py

Three primaries with a replica each. The drills print a row of the table in docs/redis.md, as redis_drills_test.py does.
"""
import json
import unittest

from processes import ask, wait_until
from redis_nodes import RedisCluster, nodes


def state(sluice):
    return json.loads(sluice.get_admin("/readyz"))["shared_store"]


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


if __name__ == "__main__":
    unittest.main()
