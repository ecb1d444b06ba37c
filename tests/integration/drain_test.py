"""Gateways that end under load: no request is lost, and a whole fleet is replaced without one that fails."""
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest

from load import wrk
from processes import OrdersApi, Sluice, Worker, ask, free_port, gateway, settings, start_nginx, wait_until


class KeptClient(Worker):
    """Asks one request after another on a connection that it keeps, until nobody listens any more.

    A request can meet a connection that the gateway is just closing (RFC 9112, 9.3.1): it then ends without a
    byte of an answer, `unanswered`, and may be sent again if nobody has acted on it.
    """

    def __init__(self, port, path):
        super().__init__()
        self.port = port
        self.request = f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n".encode()
        self.answered = self.unanswered = self.cut = self.told = 0

    def work(self):
        while True:
            try:
                connection = socket.create_connection(("127.0.0.1", self.port), 60)
            except ConnectionRefusedError:
                return
            except ConnectionResetError:
                continue  # it stood in the queue of a port that was just closed
            with connection:
                while self.ask(connection):
                    pass

    def ask(self, connection):
        """Whether the connection can be used again."""
        received = b""
        try:
            connection.sendall(self.request)
            while not self.is_whole(received):
                data = connection.recv(65536)
                if not data:
                    break
                received += data
        except ConnectionError:
            pass
        if received == b"":
            self.unanswered += 1
            return False
        if not self.is_whole(received):
            self.cut += 1
            return False
        assert received.startswith(b"HTTP/1.1 200 "), received
        self.answered += 1
        closes = b"\r\nConnection: close\r\n" in received
        self.told += closes
        return not closes

    @staticmethod
    def is_whole(received):
        head, end, body = received.partition(b"\r\n\r\n")
        found = re.search(rb"\r\nContent-Length: (\d+)", head)
        return bool(end) and len(body) == int(found.group(1))


class Drain(unittest.TestCase):
    def test_all_is_served_during_the_delay(self):
        with gateway("rules: []", "drain_delay: 30s, health_path: /ready, ") as (sluice, _):
            result = {}
            load = threading.Thread(target=lambda: result.update(wrk(sluice.port, 3, 40)[0]))
            load.start()
            time.sleep(1)
            self.assertEqual(ask(sluice.port, "/ready")[0], 200)
            sluice.signal(signal.SIGTERM)
            sluice.wait_for("leaving|drain")
            self.assertEqual(ask(sluice.port, "/ready")[0], 503)
            load.join()
            self.assertEqual((result["other"], result["limited"], result["errors"]), (0, 0, 0))
            self.assertEqual(ask(sluice.port)[0], 200)
            # The second SIGTERM, from the end of this block, is patient no longer.

    def test_what_reached_the_upstream_is_answered_and_kept_connections_are_told(self):
        with gateway("rules: []", "drain: 60s, ") as (sluice, orders):
            clients = [KeptClient(sluice.port, "/v1/orders") for _ in range(30)]
            slow = [KeptClient(sluice.port, "/v1/exports?delay=10s") for _ in range(10)]
            for client in slow:
                client.start()
            wait_until(lambda: orders.count_requests() == len(slow), "the slow requests have reached the upstream")
            for client in clients:
                client.start()
            for client in clients:
                wait_until(lambda: client.answered > 0, "everybody is answered", worker=client)
            self.assertEqual([client.answered for client in slow], [0] * len(slow))
            self.assertEqual(sluice.stop(60), 0)
            for client in clients + slow:
                client.join()
            answered, unanswered, cut, told = (sum(getattr(client, name) for client in clients + slow)
                                               for name in ("answered", "unanswered", "cut", "told"))
            print(f"\n{answered} answered, {told} with the word that the connection closes, {unanswered} met its end")
            self.assertEqual(cut, 0)
            # Nothing that an upstream acted on was left without its answer.
            self.assertEqual(orders.count_requests(), answered)
            # Those in the middle of a request learn it from the answer.
            self.assertEqual([client.told for client in slow], [1] * len(slow))
            self.assertEqual([client.unanswered for client in slow], [0] * len(slow))


NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log crit;
events {{ worker_connections 512; }}
http {{ access_log off; keepalive_requests 1000000;
  upstream sluices {{ keepalive 32;
    server 127.0.0.1:{sluices[0]} max_fails=0; server 127.0.0.1:{sluices[1]} max_fails=0; }}
  server {{ listen 127.0.0.1:{port};
    location / {{ proxy_pass http://sluices; proxy_http_version 1.1; proxy_set_header Connection ""; }} }} }}
"""


# Nothing hides a failure: HAProxy neither tries again nor elsewhere. It asks each gateway how it is.
HAPROXY = """
global
  maxconn 1000
defaults
  mode http
  retries 0
  timeout connect 2s
  timeout client 20s
  timeout server 20s
frontend clients
  bind 127.0.0.1:{port}
  default_backend sluices
backend sluices
  option httpchk GET /ready
  default-server check inter 100ms fall 1 rise 1
  server first 127.0.0.1:{sluices[0]}
  server second 127.0.0.1:{sluices[1]}
"""


class Fleet(unittest.TestCase):
    """Two gateways behind a load balancer are ended and started again in turn, under wrk."""

    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.orders = OrdersApi()
        self.addCleanup(self.orders.stop)
        self.ports = [free_port(), free_port()]
        self.front = free_port()

    def start(self, index, door):
        own = os.path.join(self.folder, str(index))
        os.makedirs(own, exist_ok=True)
        config = settings(self.orders.port, "rules: []", door)
        return Sluice(config.replace("127.0.0.1:0", f"127.0.0.1:{self.ports[index]}", 1), own)

    def check_replaced(self, seconds, door="", settle=1.0):
        sluices = [self.start(index, door) for index in range(2)]
        time.sleep(settle)
        result = {}
        load = threading.Thread(target=lambda: result.update(wrk(self.front, seconds, 40)[0]))
        load.start()
        time.sleep(0.7)
        served = []
        for index in (0, 1, 0):
            served.append(sluices[index].metric("sluice_gateway_requests_total"))
            self.assertEqual(sluices[index].stop(), 0)
            time.sleep(0.2)
            sluices[index] = self.start(index, door)
            time.sleep(settle)
        load.join()
        served += [sluice.metric("sluice_gateway_requests_total") for sluice in sluices]
        for sluice in sluices:
            self.assertEqual(sluice.stop(), 0)
        print(f"\n{int(result['ok'])} answered; seen by the five gateways, three of them before their end: {served}")
        self.assertEqual((result["other"], result["limited"], result["errors"]), (0, 0, 0))
        self.assertGreater(result["ok"], 1000)
        self.assertGreater(min(served), 0)

    def test_behind_nginx_no_request_fails(self):
        nginx = start_nginx(NGINX.format(dir=self.folder, sluices=self.ports, port=self.front), self.folder, self.front)
        self.addCleanup(nginx.wait, 20)
        self.addCleanup(nginx.terminate)
        self.check_replaced(7)

    def test_behind_a_balancer_that_never_tries_again_the_health_path_and_the_delay_see_to_it(self):
        path = os.path.join(self.folder, "haproxy.cfg")
        with open(path, "w") as file:
            file.write(HAPROXY.format(sluices=self.ports, port=self.front))
        haproxy = subprocess.Popen(["haproxy", "-f", path, "-db"], stderr=subprocess.DEVNULL)
        self.addCleanup(haproxy.wait, 20)
        self.addCleanup(haproxy.terminate)
        self.check_replaced(9, "health_path: /ready, drain_delay: 1s, ")


if __name__ == "__main__":
    unittest.main()
