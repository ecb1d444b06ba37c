"""Several gateways on one Redis, in front of one Orders API."""
import contextlib
import os
import random
import socket
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


def bus_port():
    """A free one from below those that the system hands out: the server's other port is one of these."""
    while True:
        port = random.randrange(20000, 30000)
        with socket.socket() as free, contextlib.suppress(OSError):
            free.bind(("127.0.0.1", port))
            return port


class RedisCluster:
    """Primaries that share the slots evenly, each with a replica; a second and a half after one fell its replica has its slots."""

    SLOTS = 16384

    def __init__(self, folder, primaries=3, replicas=1, timeout_ms=1000):
        self.folder = folder
        self.servers = [self._server(i, timeout_ms) for i in range(primaries * (1 + replicas))]
        self.ids = [server.cli("CLUSTER", "MYID") for server in self.servers]
        for i, (server, bus) in enumerate(zip(self.servers, self.buses)):
            assert server.cli("CLUSTER", "SET-CONFIG-EPOCH", str(i + 1)) == "OK"
            if i < primaries:
                first, last = i * self.SLOTS // primaries, (i + 1) * self.SLOTS // primaries - 1
                assert server.cli("CLUSTER", "ADDSLOTSRANGE", str(first), str(last)) == "OK"
            assert self.servers[0].cli("CLUSTER", "MEET", "127.0.0.1", str(server.port), str(bus)) == "OK"
        known = f"cluster_known_nodes:{len(self.servers)}"
        wait_until(lambda: all(known in server.cli("CLUSTER", "INFO") for server in self.servers), "they know each other")
        for i, server in enumerate(self.servers[primaries:]):
            wait_until(lambda i=i, s=server: s.cli("CLUSTER", "REPLICATE", self.ids[i // replicas]) == "OK", "it replicates")
        wait_until(lambda: all("cluster_state:ok" in server.cli("CLUSTER", "INFO") for server in self.servers), "it works")
        wait_until(lambda: all("master_link_status:up" in server.cli("INFO", "replication")
                               for server in self.servers[primaries:]), "replicas follow")
        for server in self.servers:
            server.cli("CONFIG", "RESETSTAT")

    @property
    def buses(self):
        """Ports on which they speak to one another."""
        return [int(server.options[server.options.index("--cluster-port") + 1]) for server in self.servers]

    def _server(self, number, timeout_ms):
        folder = os.path.join(self.folder, f"redis-{number}")
        os.mkdir(folder)
        return RedisServer(folder, "--cluster-enabled", "yes", "--cluster-port", str(bus_port()), "--cluster-node-timeout",
                           str(timeout_ms), "--cluster-require-full-coverage", "no", "--repl-diskless-sync-delay", "0")

    def where(self):
        """Of store.redis."""
        return "cluster: [" + ", ".join(f'"127.0.0.1:{server.port}"' for server in self.servers) + "]"

    def running(self):
        """Tests ask the last of them, and count the connections of the first."""
        return [server for server in self.servers if server.process.poll() is None]

    def owner(self, slot, asked=None):
        """The server that has the slot, by the word of one of them; None: they do not know of one that runs."""
        for line in (asked or self.running()[-1]).cli("CLUSTER", "NODES").splitlines():
            words = line.split()
            ranges = [word.split("-") for word in words[8:] if "[" not in word]
            if "fail" not in words[2] and any(int(range[0]) <= slot <= int(range[-1]) for range in ranges):
                port = int(words[1].split("@")[0].rsplit(":", 1)[1])
                return next(server for server in self.servers if server.port == port)
        return None

    def keys(self):
        """Of the rules, and the server that has each."""
        found = {}
        for server in self.running():
            if server.cli("ROLE").startswith("master"):
                found.update((key, server) for key in server.counters() if ":1u{" not in key)
        return found

    def slot_of(self, key):
        return int(self.running()[-1].cli("CLUSTER", "KEYSLOT", key))

    def move(self, slot, to, pause=0):
        """As redis-cli does it, with a pause before each key."""
        source = self.owner(slot)
        ids = dict(zip(self.servers, self.ids))
        assert to.cli("CLUSTER", "SETSLOT", str(slot), "IMPORTING", ids[source]) == "OK"
        assert source.cli("CLUSTER", "SETSLOT", str(slot), "MIGRATING", ids[to]) == "OK"
        while True:
            time.sleep(pause)
            key = source.cli("CLUSTER", "GETKEYSINSLOT", str(slot), "1")
            if not key:
                break
            assert source.cli("MIGRATE", "127.0.0.1", str(to.port), key, "0", "5000") in ("OK", "NOKEY")
        for server in [to] + [server for server in self.running() if server is not to]:
            server.cli("CLUSTER", "SETSLOT", str(slot), "NODE", ids[to])

    def cli(self, *command):
        return self.running()[0].cli(*command)

    def stop(self):
        for server in self.servers:
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

