"""WebSocket through the gateway, with a client and a server that others wrote (python3-websockets)."""
import asyncio
import os
import tempfile
import unittest

import websockets

from processes import OrdersApi, Sluice, gateway, settings

RULES = """
rules:
  - { name: open, key: api_key, algorithm: concurrency, limit: 2, slot_ttl: 5s }
  - { name: opening, key: api_key, limit: 5/min }
"""


def connect(sluice, path="/v1/echo", key="ann", **options):
    return websockets.connect(f"ws://127.0.0.1:{sluice.port}{path}", extra_headers={"X-API-Key": key},
                              open_timeout=20, close_timeout=20, max_size=None, **options)


async def refused(test, sluice, status):
    with test.assertRaises(websockets.InvalidStatusCode) as caught:
        async with connect(sluice):
            pass
    test.assertEqual(caught.exception.status_code, status)
    return caught.exception.headers


class WebSocket(unittest.IsolatedAsyncioTestCase):
    async def test_messages_pass_and_slots_come_back(self):
        with gateway(RULES) as (sluice, orders):
            async with connect(sluice) as first, connect(sluice) as second:
                for size in (0, 1, 125, 126, 65_535, 65_536, 900_000):
                    message = os.urandom(size)
                    await first.send(message)
                    self.assertEqual(await first.recv(), message)
                await second.send("text, \u00e4\u2713")
                self.assertEqual(await second.recv(), "text, \u00e4\u2713")
                headers = await refused(self, sluice, 429)
                self.assertIn('"open";r=0', headers["RateLimit"])
            # Both closed in order; their slots are free, what they charged is not given back.
            for _ in range(3):
                async with connect(sluice) as again:
                    await again.send("x")
                    self.assertEqual(await again.recv(), "x")
            headers = await refused(self, sluice, 429)
            self.assertGreaterEqual(int(headers["Retry-After"]), 1)
            self.assertEqual(orders.count_requests(), 5)

    async def test_a_server_of_another_make_is_served_in_both_directions(self):
        async def serve(socket):
            await socket.send("hello, " + socket.request_headers["X-Forwarded-For"])  # right behind the 101
            async for message in socket:
                await socket.send(message[::-1])

        async with websockets.serve(serve, "127.0.0.1", 0, max_size=None) as server:
            upstream = server.sockets[0].getsockname()[1]
            with tempfile.TemporaryDirectory() as folder:
                sluice = Sluice(settings(upstream, "rules: []"), folder)
                try:
                    async with connect(sluice, "/") as client:
                        self.assertEqual(await client.recv(), "hello, 127.0.0.1")
                        message = os.urandom(1_500_000)
                        await asyncio.gather(*(client.send(message) for _ in range(3)))
                        for _ in range(3):
                            self.assertEqual(await client.recv(), message[::-1])
                        await (await client.ping())
                finally:
                    self.assertEqual(sluice.stop(), 0)

    async def test_a_shutdown_ends_open_connections_at_its_bound(self):
        orders = OrdersApi()
        try:
            with tempfile.TemporaryDirectory() as folder:
                config = settings(orders.port, "rules: []", "drain: 300ms, ")
                sluice = Sluice(config, folder)
                async with connect(sluice) as client:
                    await client.send("x")
                    self.assertEqual(await client.recv(), "x")
                    self.assertEqual(await asyncio.to_thread(sluice.stop), 0)
                    with self.assertRaises(websockets.ConnectionClosed):
                        await client.recv()
        finally:
            orders.stop()


if __name__ == "__main__":
    unittest.main()
