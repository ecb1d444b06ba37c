"""Gateways that end under load: no request is lost, and a whole fleet is replaced without one that fails."""
import os
import re
import socket
import tempfile
import threading
import time
import unittest

from load import wrk
from processes import OrdersApi, Sluice, Worker, free_port, gateway, settings, start_nginx, wait_until


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


class Fleet(unittest.TestCase):
    def test_two_gateways_behind_nginx_are_replaced_under_wrk_and_no_request_fails(self):
        with tempfile.TemporaryDirectory() as folder:
            orders = OrdersApi()
            self.addCleanup(orders.stop)
            ports = [free_port(), free_port()]
            sluices = [self.start(orders, folder, ports, index) for index in range(2)]
            front = free_port()
            nginx = start_nginx(NGINX.format(dir=folder, sluices=ports, port=front), folder, front)
            self.addCleanup(nginx.wait, 20)
            self.addCleanup(nginx.terminate)
            result = {}
            load = threading.Thread(target=lambda: result.update(wrk(front, 8, 40)[0]))
            load.start()
            time.sleep(0.7)
            served = []
            for index in (0, 1, 0):
                served.append(sluices[index].metric("sluice_gateway_requests_total"))
                self.assertEqual(sluices[index].stop(), 0)
                time.sleep(0.2)
                sluices[index] = self.start(orders, folder, ports, index)
                time.sleep(1.2)
            load.join()
            served += [sluice.metric("sluice_gateway_requests_total") for sluice in sluices]
            for sluice in sluices:
                self.assertEqual(sluice.stop(), 0)
            print(f"\n{int(result['ok'])} answered; seen by the five gateways before their end: {served}")
            self.assertEqual((result["other"], result["limited"], result["errors"]), (0, 0, 0))
            self.assertGreater(result["ok"], 1000)
            self.assertGreater(min(served), 0)

    def start(self, orders, folder, ports, index):
        own = os.path.join(folder, str(index))
        os.makedirs(own, exist_ok=True)
        config = settings(orders.port, "rules: []").replace("127.0.0.1:0", f"127.0.0.1:{ports[index]}", 1)
        return Sluice(config, own)


if __name__ == "__main__":
    unittest.main()
