"""Several gateways on one Redis, in front of one Orders API."""
import contextlib
import os
import tempfile
import time

from fault_proxy import FaultProxy
from processes import OrdersApi, RedisServer, Sluice, wait_until


class SentinelGroup:
    """A primary, its replicas and three sentinels, who need half a second or more to see that it is gone."""

    MASTER = "mymaster"

    def __init__(self, folder, replicas=2, sentinels=3, down_after_ms=1000):
        self.folder = folder
        self.servers = [self._server("primary")]
        for i in range(replicas):
            self.servers.append(self._server(f"replica-{i}", "--replicaof", "127.0.0.1", str(self.servers[0].port)))
        wait_until(lambda: self.servers[0].cli("INFO", "replication").count("state=online") == replicas, "replicas follow")
        self.sentinels = [self._sentinel(i, down_after_ms) for i in range(sentinels)]
        wait_until(lambda: all(self._knows(sentinel, replicas, sentinels - 1) for sentinel in self.sentinels),
                   "sentinels know each other")

    def _server(self, name, *options):
        folder = os.path.join(self.folder, name)
        os.mkdir(folder)
        return RedisServer(folder, "--repl-diskless-sync-delay", "0", *options)

    def _sentinel(self, number, down_after_ms):
        folder = os.path.join(self.folder, f"sentinel-{number}")
        os.mkdir(folder)
        path = os.path.join(folder, "sentinel.conf")
        with open(path, "w") as file:
            file.write(f"sentinel monitor {self.MASTER} 127.0.0.1 {self.servers[0].port} 2\n"
                       f"sentinel down-after-milliseconds {self.MASTER} {down_after_ms}\n"
                       f"sentinel failover-timeout {self.MASTER} 5000\n")
        return RedisServer(folder, config=path)

    def _knows(self, sentinel, replicas, others):
        words = sentinel.cli("SENTINEL", "MASTER", self.MASTER).splitlines()
        known = dict(zip(words[::2], words[1::2]))
        return (known.get("num-slaves"), known.get("num-other-sentinels")) == (str(replicas), str(others))

    def where(self):
        """Of store.redis."""
        nodes = ", ".join(f'"127.0.0.1:{sentinel.port}"' for sentinel in self.sentinels)
        return f"sentinel: {{ master: {self.MASTER}, nodes: [{nodes}] }}"

    def told(self, sentinel):
        """The port of the primary, as this one says; 0 if it says nothing."""
        words = sentinel.cli("SENTINEL", "GET-MASTER-ADDR-BY-NAME", self.MASTER).split()
        return int(words[1]) if len(words) == 2 else 0

    @property
    def primary(self):
        """The server that most sentinels name."""
        told = [self.told(sentinel) for sentinel in self.sentinels if sentinel.process.poll() is None]
        return next(server for server in self.servers if server.port == max(told, key=told.count))

    def wait_for_another(self, than, sentinels=1):
        """Until so many sentinels name another primary than this server; the instant."""
        wait_until(lambda: sum(self.told(sentinel) not in (0, than.port) for sentinel in self.sentinels) >= sentinels,
                   "another primary")
        return time.monotonic()

    def cli(self, *command):
        return self.primary.cli(*command)

    def stop(self):
        for server in self.sentinels + self.servers:
            server.stop()


def settings(orders, redis, rules, more="", deadline_ms=50):
    """`redis`: whatever has its port, or says where(). `more`: of store.redis, such as ", connect_wait: 1s"."""
    where = redis.where() if hasattr(redis, "where") else f'url: "redis://127.0.0.1:{redis.port}"'
    return f"""
gateway: {{ listen: "127.0.0.1:0", upstream: "http://127.0.0.1:{orders.port}" }}
admin: {{ listen: "127.0.0.1:0" }}
threads: 2
store: {{ redis: {{ {where}, deadline: {deadline_ms}ms{more} }} }}
identity: {{ api_key: {{ header: X-API-Key }} }}
rules:
{rules}
"""


@contextlib.contextmanager
def nodes(rules, count=2, proxied=False, deadline_ms=50, server=RedisServer):
    """A Redis (server(folder)), a proxy before it or none, an Orders API, so many gateways; all end, and end well, with the block."""
    with contextlib.ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory())
        redis = server(folder)
        ends.callback(redis.stop)
        proxy = FaultProxy(redis.port) if proxied else None
        if proxied:
            ends.callback(proxy.stop)
        orders = OrdersApi()
        ends.callback(orders.stop)
        gateways = []
        for i in range(count):
            own = os.path.join(folder, str(i))
            os.mkdir(own)
            gateways.append(Sluice(settings(orders, proxy or redis, rules, deadline_ms=deadline_ms), own))
        try:
            yield redis, proxy, orders, gateways
        finally:
            codes = [sluice.stop() for sluice in gateways]
        for code, sluice in zip(codes, gateways):
            assert code == 0, f"exit code {code}:\n" + sluice.text()

