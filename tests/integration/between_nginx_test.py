"""nginx in front of Sluice and nginx behind it, with connections that are kept on every side:

    client -> nginx (front) -> Sluice -> nginx (behind) -> orders_api, or files

Clients have addresses of their own, 127.0.0.N; the front is the one proxy that Sluice trusts.
"""
import asyncio
import hashlib
import http.client
import os
import subprocess
import tempfile
import time
import unittest

import websockets

from processes import OrdersApi, Raw, Sluice, ask, free_port, settings, start_nginx

NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 512; }}
http {{
  client_body_temp_path {dir}/body; client_max_body_size 100m; proxy_temp_path {dir}/proxy;
  log_format seen '$connection [$http_x_forwarded_for] $request_method $request_uri';
  map $http_upgrade $connection_field {{ default upgrade; '' ''; }}
  proxy_http_version 1.1;
  proxy_set_header Upgrade $http_upgrade;
  proxy_set_header Connection $connection_field;
  proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  proxy_bind 127.0.0.1;
  upstream sluice {{ server 127.0.0.1:{sluice}; keepalive 8; }}
  upstream orders {{ server 127.0.0.1:{orders}; keepalive 8; }}
  server {{ listen 127.0.0.1:{front}; access_log off;
    location / {{ proxy_pass http://sluice; }}
    location /streamed/ {{ proxy_pass http://sluice/; proxy_request_buffering off; proxy_buffering off; }} }}
  server {{ listen 127.0.0.1:{behind}; access_log {dir}/behind.log seen;
    location / {{ proxy_pass http://orders; }}
    location /files/ {{ root {dir}/www; dav_methods PUT; create_full_put_path on; }} }}
}}
"""
RULES = """
rules:
  - name: per-client
    match: {{ path: /v1/orders }}
    key: ip
    limit: {limit}/day
    algorithm: fixed-window
    align: first-hit
"""


class BetweenNginx(unittest.IsolatedAsyncioTestCase):
    limit = 3

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        os.mkdir(f"{self.folder}/www")
        os.chmod(f"{self.folder}/www", 0o777)
        self.orders = OrdersApi()
        self.addCleanup(self.orders.stop)
        self.front, self.behind, port = free_port(), free_port(), free_port()
        nginx = start_nginx(NGINX.format(dir=self.folder, sluice=port, orders=self.orders.port, front=self.front,
                                         behind=self.behind), self.folder, self.front)
        self.addCleanup(nginx.wait, 20)
        self.addCleanup(nginx.terminate)
        config = settings(self.behind, RULES.format(limit=self.limit)).replace("127.0.0.1:0", f"127.0.0.1:{port}", 1)
        config = config.replace("identity: {", "identity: { ip: { trusted_proxies: [127.0.0.1/32] },")
        self.sluice = Sluice(config, self.folder)
        self.addCleanup(lambda: self.assertEqual(self.sluice.stop(), 0))

    def connect(self, address, port):
        """A client at `address`, whose connection is kept."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20, source_address=(address, 0))
        self.addCleanup(connection.close)
        return connection

    def ask(self, connection, path="/v1/orders", method="GET", body=None, headers=()):
        connection.request(method, path, body, dict(headers))
        answer = connection.getresponse()
        return answer.status, answer.read()

    def seen(self, path):
        """(connection, X-Forwarded-For) of each request for `path` that came to the nginx behind."""
        # Its one worker writes the log in order: what came before the mark stands before it.
        mark = f"/files/mark-{time.monotonic_ns()}"
        self.assertEqual(ask(self.behind, mark)[0], 404)
        log, deadline = "", time.monotonic() + 10
        while mark not in log and time.monotonic() < deadline:
            with open(f"{self.folder}/behind.log") as file:
                log = file.read()
        self.assertIn(mark, log)
        lines = [line.split(" ", 1) for line in log.splitlines() if line.endswith(" " + path)]
        return [(connection, rest[1:rest.index("]")]) for connection, rest in lines]

    def test_connections_are_kept_on_every_side(self):
        client = self.connect("127.0.0.2", self.front)
        for _ in range(100):
            self.assertEqual(self.ask(client, "/v1/headers")[0], 200)
        self.assertEqual(self.sluice.metric("sluice_gateway_connections"), 1)
        self.assertEqual(len({connection for connection, _ in self.seen("/v1/headers")}), 1)
        self.assertEqual(self.orders.count_requests(), 100)

    def test_a_client_is_who_the_trusted_proxy_says_and_nobody_else(self):
        forged = {"X-Forwarded-For": "192.0.2.99"}
        for address in ("127.0.0.2", "127.0.0.3"):
            client = self.connect(address, self.front)
            statuses = [self.ask(client, headers=forged)[0] for _ in range(5)]
            self.assertEqual(statuses, [200] * 3 + [429] * 2, address)
        # Around the front: who is not trusted is who it is, and begins the chain anew.
        client = self.connect("127.0.0.4", self.sluice.port)
        statuses = [self.ask(client, headers={"X-Forwarded-For": "127.0.0.2"})[0] for _ in range(5)]
        self.assertEqual(statuses, [200] * 3 + [429] * 2)
        self.assertEqual([chain for _, chain in self.seen("/v1/orders")],
                         ["192.0.2.99, 127.0.0.2, 127.0.0.1"] * 3 + ["192.0.2.99, 127.0.0.3, 127.0.0.1"] * 3
                         + ["127.0.0.4"] * 3)
        self.assertEqual(self.orders.count_requests(), 9)

    def test_nothing_that_was_denied_arrives_and_its_body_spoils_no_connection(self):
        client = self.connect("127.0.0.2", self.front)
        order = b'{"item":"' + b"x" * 30_000 + b'"}'
        self.assertEqual([self.ask(client, method="POST", body=order)[0] for _ in range(3)], [201] * 3)
        for size in (0, 10, 30_000, 200_000):
            for headers in ({}, {"Expect": "100-continue"}):
                self.assertEqual(self.ask(client, method="POST", body=b"G" * size, headers=headers)[0], 429)
                # The front goes on with the connection that it has to Sluice.
                self.assertEqual(self.ask(client, "/v1/headers")[0], 200)
        self.assertEqual(len(self.seen("/v1/orders")), 3)
        self.assertEqual(self.orders.count_requests(), 3 + 8)

    def test_large_bodies_pass_unchanged_in_both_directions(self):
        data = os.urandom(30_000_000)
        with open(f"{self.folder}/data", "wb") as file:
            file.write(data)
        for path in ("files/a", "streamed/files/b"):
            for form in ([], ["-H", "Transfer-Encoding: chunked"], ["-H", "Expect: 100-continue"]):
                with self.subTest(path=path, form=form):
                    url = f"http://127.0.0.1:{self.front}/{path}"
                    put = subprocess.run(["curl", "-s", "-m", "60", "-o", os.devnull, "-w", "%{http_code}", *form, "-T",
                                          f"{self.folder}/data", url], capture_output=True, text=True, check=True)
                    self.assertIn(put.stdout, ("201", "204"))
                    got = subprocess.run(["curl", "-s", "-m", "60", url], capture_output=True, check=True)
                    self.assertEqual(hashlib.sha256(got.stdout).digest(), hashlib.sha256(data).digest())

    def test_100_continue_comes_for_who_is_admitted_alone(self):
        head = b"POST /v1/orders HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\nExpect: 100-continue\r\n\r\n"
        for expected in (201, 201, 201, 429):
            with Raw(self.sluice.port) as client:
                client.send(head)
                status, _, _ = client.read_answer()
                if expected == 429:
                    self.assertEqual(status, 429)
                    continue
                self.assertEqual(status, 100)
                client.send(b'{"item":"ink"}')
                self.assertEqual(client.read_answer()[0], expected)
        self.assertEqual(self.orders.count_requests(), 3)

    async def test_a_websocket_passes_all_of_them(self):
        url = f"ws://127.0.0.1:{self.front}/v1/echo"
        async with websockets.connect(url, max_size=None, open_timeout=20) as first, \
                websockets.connect(url, max_size=None, open_timeout=20) as second:
            for size in (0, 1, 126, 65_536, 900_000):
                message = os.urandom(size)
                await asyncio.gather(first.send(message), second.send(message[::-1]))
                self.assertEqual(await first.recv(), message)
                self.assertEqual(await second.recv(), message[::-1])
        self.assertEqual(self.orders.count_requests(), 2)
        self.assertEqual((await asyncio.to_thread(ask, self.front, "/v1/headers"))[0], 200)


if __name__ == "__main__":
    unittest.main()
