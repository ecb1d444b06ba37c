"""Several gateways on one Redis, in front of one Orders API."""
import contextlib
import os
import tempfile

from fault_proxy import FaultProxy
from processes import OrdersApi, RedisServer, Sluice


def settings(orders, redis, rules, more="", deadline_ms=50):
    """`redis`: whatever has its port. `more`: of store.redis, such as ", connect_wait: 1s"."""
    return f"""
gateway: {{ listen: "127.0.0.1:0", upstream: "http://127.0.0.1:{orders.port}" }}
admin: {{ listen: "127.0.0.1:0" }}
threads: 2
store: {{ redis: {{ url: "redis://127.0.0.1:{redis.port}", deadline: {deadline_ms}ms{more} }} }}
identity: {{ api_key: {{ header: X-API-Key }} }}
rules:
{rules}
"""


@contextlib.contextmanager
def nodes(rules, count=2, proxied=False, deadline_ms=50):
    """A Redis, a proxy before it or none, an Orders API, so many gateways; all end, and end well, with the block."""
    with contextlib.ExitStack() as ends:
        folder = ends.enter_context(tempfile.TemporaryDirectory())
        redis = RedisServer(folder)
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

