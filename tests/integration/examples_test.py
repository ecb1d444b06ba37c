"""Each file of docs/examples, and the README's: served as it stands, and held to what it promises.

Only what belongs to a machine is exchanged: ports, upstreams, the folder of a snapshot, and who counts as
a proxy. A client that must not be on the list of exempt addresses comes from another loopback address.
"""
import asyncio
import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import threading
import time
import unittest

import websockets

from certificates import Authority, client_context, s_client, serial_of, served_serial
from processes import SOURCE, OrdersApi, RedisServer, Sluice, WithPrograms, ask, free_port, start_nginx

EXAMPLES = os.path.join(SOURCE, "docs", "examples")
OTHER_ADDRESS = "127.0.0.2"  # as good as a client from elsewhere


def example(name):
    with open(os.path.join(EXAMPLES, name)) as file:
        return file.read()


def in_redis(text, port):
    """The example's text with its Redis at this port."""
    text, urls = re.subn(r"redis://127\.0\.0\.1:6379", f"redis://127.0.0.1:{port}", text)
    assert urls == 1, f"{urls} servers"
    return text


def on_this_machine(text, *upstream_ports):
    """The example's text with free ports to listen on, and its upstreams, in order, at these ports."""
    ports = iter(upstream_ports)
    text = re.sub(r"listen: (\"[^\"]+\"|[^\s,}]+)", 'listen: "127.0.0.1:0"', text)
    text, urls = re.subn(r'"?(https?)://[\w.]+:\d+"?', lambda url: f'"{url[1]}://127.0.0.1:{next(ports)}"', text)
    assert urls == len(upstream_ports), f"{urls} upstreams, not {len(upstream_ports)}"
    return text


class Example(WithPrograms):
    """Orders APIs and a Sluice in front of them."""

    def serve_example(self, name):
        self.orders = self.orders_api()
        return self.serve(on_this_machine(example(name), self.orders.port))

    def statuses(self, sluice, count, path="/v1/orders", method="GET", headers=None, source=None):
        """So many requests on one connection, as fast as they go: their statuses, and the seconds it took."""
        connection = http.client.HTTPConnection("127.0.0.1", sluice.port, timeout=20,
                                                source_address=(source, 0) if source else None)
        statuses = []
        start = time.monotonic()
        for _ in range(count):
            connection.request(method, path, headers=headers or {})
            answer = connection.getresponse()
            self.answer = answer
            self.body = answer.read()
            statuses.append(answer.status)
        connection.close()
        return statuses, time.monotonic() - start

    def assert_admitted(self, statuses, burst, per_second, seconds, passed=200):
        """The burst at once, then the rate, and not one more; and somebody was denied."""
        self.assertEqual(statuses[:burst], [passed] * burst)
        self.assertLessEqual(statuses.count(passed), burst + per_second * seconds + 1)
        self.assertIn(429, statuses)
        self.assertEqual(set(statuses), {passed, 429})

    def two_at_a_time(self, sluice, key):
        """Two exports run at once, a third is denied; returns the third's answer."""
        results = []
        threads = [threading.Thread(target=lambda: results.append(ask(sluice.port, "/v1/exports?delay=1s", key)[0]))
                   for _ in range(2)]
        for thread in threads:
            thread.start()
        deadline = time.monotonic() + 10
        while sluice.metric("sluice_store_slots_used") < 2 and time.monotonic() < deadline:
            time.sleep(0.02)
        third = ask(sluice.port, "/v1/exports?delay=0s", key)
        for thread in threads:
            thread.join()
        self.assertEqual(results, [200, 200])
        self.assertEqual(third[0], 429)
        return third


class FirstLimit(Example):
    def test_ten_requests_a_second_for_each_address(self):
        sluice = self.serve_example("first-limit.yaml")
        statuses, seconds = self.statuses(sluice, 40)
        self.assert_admitted(statuses, 10, 10, seconds)
        self.assertEqual(self.answer.headers["Retry-After"], "1")
        self.assertEqual(self.statuses(sluice, 1, source=OTHER_ADDRESS)[0], [200])


class SeveralGateways(Example):
    def setUp(self):
        super().setUp()
        self.redis = RedisServer(self.folder)
        self.addCleanup(self.redis.stop)
        orders = self.orders_api()
        text = in_redis(on_this_machine(example("several-gateways.yaml"), orders.port), self.redis.port)
        self.gateways = []
        for name in "12":
            folder = self.path(name)
            os.mkdir(folder)
            sluice = Sluice(text, folder)
            self.addCleanup(lambda sluice=sluice: self.assertEqual(sluice.stop(), 0, sluice.text()))
            self.gateways.append(sluice)

    def in_turns(self, count, key):
        return [ask(self.gateways[i % 2].port, key=key)[0] for i in range(count)]

    def test_the_sixth_request_is_denied_by_either(self):
        self.assertEqual(self.in_turns(7, "ann"), [200] * 5 + [429] * 2)

    def test_without_redis_each_counts_half_and_nobody_logs_in(self):
        self.redis.kill()
        self.assertEqual(self.in_turns(6, "bob"), [200] * 4 + [429] * 2)
        status, headers, _ = ask(self.gateways[0].port, "/login", method="POST", body="{}")
        self.assertEqual((status, headers["Retry-After"]), (429, "1"))


class Demo(Example):
    def test_five_at_once_exports_two_at_a_time_and_a_rule_on_trial(self):
        sluice = self.serve_example("demo.yaml")
        self.assertEqual(self.statuses(sluice, 6, headers={"X-API-Key": "ann"})[0], [200] * 5 + [429])
        self.assertEqual(self.statuses(sluice, 1)[0], [401])
        self.assertEqual(self.statuses(sluice, 1, method="OPTIONS")[0], [405])  # the upstream's own answer
        self.two_at_a_time(sluice, "bob")
        self.assertEqual([ask(sluice.port, key="eve", method="POST", body="{}")[0] for _ in range(5)], [201] * 5)
        self.assertEqual(sluice.metric('sluice_decisions_total{rule="new-orders",verdict="shadow_limited"}'), 2)


class Login(Example):
    def test_guessers_are_stopped_by_address_and_watched_by_account(self):
        sluice = self.serve_example("login.yaml")
        account = {"X-Account": "ann"}
        statuses, _ = self.statuses(sluice, 21, "/Login", "POST", account, OTHER_ADDRESS)
        self.assertEqual(statuses, [404] * 20 + [429])  # 404: the Orders API has no such page
        denial = json.loads(self.body)
        self.assertIn("reset your password", denial["detail"])
        self.assertGreater(denial["retry_after_ms"], 14 * 60_000)
        self.assertLessEqual(denial["retry_after_ms"], 15 * 60_000)
        self.assertGreater(sluice.metric('sluice_decisions_total{rule="login-by-account",verdict="shadow_limited"}'), 0)
        self.assertEqual(self.statuses(sluice, 25, "/login", "POST", account)[0], [404] * 25)  # exempt
        self.assertEqual(self.statuses(sluice, 1, "/admin/users", source=OTHER_ADDRESS)[0], [403])


class PublicApi(Example):
    def setUp(self):
        super().setUp()
        shutil.copy(os.path.join(EXAMPLES, "plans.csv"), self.folder)

    def test_each_plan_has_its_rate(self):
        sluice = self.serve_example("public-api.yaml")
        statuses, seconds = self.statuses(sluice, 40, headers={"X-API-Key": "somebody"})
        self.assert_admitted(statuses, 20, 100 / 60, seconds)
        self.assertEqual(self.statuses(sluice, 100, headers={"X-API-Key": "k-demo-1"})[0], [200] * 100)
        self.assertEqual(self.statuses(sluice, 1)[0], [401])

    def test_nobody_floods_it_and_exports_run_two_at_a_time(self):
        sluice = self.serve_example("public-api.yaml")
        third = self.two_at_a_time(sluice, "k-demo-2")
        self.assertIn("Two exports may run at once", json.loads(third[2])["detail"])
        statuses, seconds = self.statuses(sluice, 400, headers={"X-API-Key": "k-demo-2"})
        self.assertIn(429, statuses)
        self.assertLessEqual(statuses.count(200), 200 + 50 * seconds + 1)
        self.assertEqual(self.statuses(sluice, 50, "/healthz")[0], [200] * 50)  # exempt


class Quotas(Example):
    def left(self, sluice, tokens):
        self.statuses(sluice, 1, "/v1/completions", "POST", {"X-Tenant": "acme", "X-Token-Estimate": str(tokens)})
        return int(re.search(r'"tokens-a-month";r=(\d+)', self.answer.headers["RateLimit"]).group(1))

    def test_tokens_are_counted_and_kept_over_a_restart(self):
        text = example("quotas.yaml").replace("/var/lib/sluice/", "")
        orders = self.orders_api()
        text = on_this_machine(text, orders.port)
        batch = ("/v1/batches", "POST", {"X-Tenant": "acme", "X-Priority": "low"})
        sluice = Sluice(text, self.folder)
        try:
            self.assertEqual(self.left(sluice, 60_000), 49_940_000)
            self.assertEqual(self.statuses(sluice, 11, *batch)[0], [404] * 10 + [429])
        finally:
            self.assertEqual(sluice.stop(), 0)
        sluice = self.serve(text)
        self.assertEqual(self.left(sluice, 40_000), 49_900_000)
        self.assertEqual(self.statuses(sluice, 1, *batch)[0], [429])
        urgent = {"X-Tenant": "acme", "X-Priority": "high"}
        self.assertEqual(self.statuses(sluice, 1, "/v1/batches", "POST", urgent)[0], [404])


class BehindALoadBalancer(Example):
    def serve_behind(self, balancer):
        self.orders = self.orders_api()
        text = example("behind-a-load-balancer.yaml")
        self.assertIn("10.0.0.0/8", text)
        return self.serve(on_this_machine(text.replace("10.0.0.0/8", balancer), self.orders.port))

    def left(self, sluice, client, source=None):
        headers = {"Forwarded": f'for="{client}"'}
        self.assertEqual(self.statuses(sluice, 1, "/v1/orders", headers=headers, source=source)[0], [200])
        return int(re.search(r'"per-address";r=(\d+)', self.answer.headers["RateLimit"]).group(1))

    def test_clients_are_told_apart_by_what_the_balancer_says(self):
        sluice = self.serve_behind("127.0.0.1")
        self.assertEqual([self.left(sluice, "192.0.2.1") for _ in range(3)], [599, 598, 597])
        self.assertEqual(self.left(sluice, "192.0.2.2"), 599)
        self.assertEqual(self.left(sluice, "[2001:db8:0:1::1]"), 599)
        self.assertEqual(self.left(sluice, "[2001:db8:0:2::1]"), 598)  # of the same /56
        # Who is not the balancer can say what it likes.
        self.assertEqual([self.left(sluice, f"198.51.100.{i}", OTHER_ADDRESS) for i in range(3)], [599, 598, 597])
        self.assertTrue(all(line.startswith("{") for line in sluice.lines), sluice.text())  # log: json

    def test_reports_queue_up(self):
        sluice = self.serve_behind("127.0.0.1")
        times = []

        def report():
            status = ask(sluice.port, "/v1/reports/7", headers={"Forwarded": "for=192.0.2.9"})[0]
            times.append((status, time.monotonic()))

        start = time.monotonic()
        threads = [threading.Thread(target=report) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        # One at once, five more within the wait of 5 s; the other two would have to wait longer.
        self.assertEqual(sorted(status for status, _ in times), [404] * 6 + [429] * 2)
        self.assertGreaterEqual(max(when for _, when in times) - start, 4.9)


class SeveralUpstreams(Example):
    NAME = "several-upstreams.yaml"
    ANN = {"X-API-Key": "ann"}

    def test_shared_by_weight_and_left_out_while_it_fails(self):
        large, small = self.orders_api(), OrdersApi()
        sluice = self.serve(on_this_machine(example(self.NAME), large.port, small.port))
        try:
            self.assertEqual(self.statuses(sluice, 40, headers=self.ANN)[0], [200] * 40)
            self.assertEqual((large.count_requests(), small.count_requests()), (30, 10))
        finally:
            small.stop()
        self.assertEqual(self.statuses(sluice, 40, headers=self.ANN)[0], [200] * 40)
        self.assertEqual(large.count_requests(), 70)
        deadline = time.monotonic() + 20
        up = f'sluice_upstream_up{{upstream="127.0.0.1:{small.port}"}}'
        while sluice.metric(up) == 1 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertEqual(sluice.metric(f'sluice_upstream_up{{upstream="127.0.0.1:{small.port}"}}'), 0)
        self.assertEqual(sluice.metric(f'sluice_upstream_up{{upstream="127.0.0.1:{large.port}"}}'), 1)
        self.assertEqual(self.statuses(sluice, 1, "/.sluice/health")[0], [200])

    def test_scripts_in_browsers_can_read_denials(self):
        ports = self.orders_api().port, self.orders_api().port
        sluice = self.serve(on_this_machine(example(self.NAME), *ports))
        browser = {"Origin": "https://app.example.com", **self.ANN}
        statuses, seconds = self.statuses(sluice, 120, headers=browser)
        self.assert_admitted(statuses, 100, 100 / 60, seconds)
        headers = self.answer.headers
        self.assertEqual(headers["Access-Control-Allow-Origin"], "https://app.example.com")
        self.assertEqual((headers["X-RateLimit-Limit"], headers["X-RateLimit-Remaining"]), ("100", "0"))
        self.assertIn('"api";r=0', headers["RateLimit"])
        self.assertIn(int(headers["Retry-After"]), range(1, 4))  # 1 s, and up to 2 s more
        preflight = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST"}
        self.assertEqual(self.statuses(sluice, 1, method="OPTIONS", headers=preflight)[0], [405])  # the upstream's

    def test_a_websocket_holds_its_slot(self):
        asyncio.run(self.five_sockets())

    async def five_sockets(self):
        async def echo(socket):
            async for message in socket:
                await socket.send(message)

        async with websockets.serve(echo, "127.0.0.1", 0) as one, websockets.serve(echo, "127.0.0.1", 0) as other:
            ports = [server.sockets[0].getsockname()[1] for server in (one, other)]
            sluice = await asyncio.to_thread(self.serve, on_this_machine(example(self.NAME), *ports))

            def connect():
                return websockets.connect(f"ws://127.0.0.1:{sluice.port}/v1/socket", extra_headers=self.ANN)

            sockets = [await connect() for _ in range(5)]
            for socket in sockets:
                await socket.send("hello")
                self.assertEqual(await socket.recv(), "hello")
            with self.assertRaises(websockets.InvalidStatusCode) as denied:
                await connect()
            self.assertEqual(denied.exception.status_code, 429)
            for socket in sockets:
                await socket.close()
            deadline = time.monotonic() + 10
            while sluice.metric("sluice_store_slots_used") > 0 and time.monotonic() < deadline:
                await asyncio.sleep(0.02)
            async with connect() as socket:
                await socket.send("again")
                self.assertEqual(await socket.recv(), "again")


class Tls(Example):
    def ask_as(self, sluice, host, ca, headers=None):
        """One request over TLS to a host of this name: the answer, and the names of the certificate."""
        connection = http.client.HTTPSConnection("127.0.0.1", sluice.port, timeout=20)
        connection.sock = client_context(ca).wrap_socket(socket.create_connection(("127.0.0.1", sluice.port), 20),
                                                         server_hostname=host)
        names = {name for _, name in connection.sock.getpeercert()["subjectAltName"]}
        connection.request("GET", "/v1/headers", headers={"Host": host, **(headers or {})})
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, names, body

    def test_each_name_has_its_certificate_which_is_replaced_when_its_file_changes(self):
        authority = Authority(self.folder)
        shop = ("tls/shop.example/fullchain.pem", "tls/shop.example/privkey.pem", "shop.example")
        authority.issue(*shop)
        authority.issue("tls/api.example/fullchain.pem", "tls/api.example/privkey.pem", "api.example", "*.api.example")
        sluice = self.serve_example("tls.yaml")
        status, names, body = self.ask_as(sluice, "shop.example", authority.ca)
        self.assertEqual((status, names), (200, {"shop.example"}))
        self.assertEqual(json.loads(body)["X-Forwarded-Proto"], "https")
        key = {"X-API-Key": "ann"}
        statuses = []
        start = time.monotonic()
        for _ in range(40):
            status, names, _ = self.ask_as(sluice, "v1.api.example", authority.ca, key)
            self.assertEqual(names, {"api.example", "*.api.example"})
            statuses.append(status)
        self.assert_admitted(statuses, 20, 100 / 60, time.monotonic() - start)
        self.assertIn("TLSv1.2", s_client(sluice.port, "-tls1_2"))
        self.assertEqual(served_serial(sluice.port, "other.example"), serial_of(authority.path(shop[0])))
        authority.issue(*shop)
        deadline = time.monotonic() + 15
        while served_serial(sluice.port, "shop.example") != serial_of(authority.path(shop[0])):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.2)
        self.assertEqual(self.ask_as(sluice, "shop.example", authority.ca)[0], 200)


class HttpsUpstream(Example):
    NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path {dir}/body;
  ssl_certificate {dir}/up.pem; ssl_certificate_key {dir}/up.key;
  ssl_client_certificate {dir}/tls/internal-ca.pem; ssl_verify_client on;
  server {{ listen 127.0.0.1:{one} ssl; location / {{ return 200 "one $ssl_server_name $ssl_client_s_dn"; }} }}
  server {{ listen 127.0.0.1:{other} ssl; location / {{ return 200 "other $ssl_server_name $ssl_client_s_dn"; }} }} }}
"""

    def serve_upstreams(self, name):
        """Two servers whose certificate is for `name`; the gateway in front of them."""
        authority = Authority(self.folder)
        authority.issue("up.pem", "up.key", name)
        authority.issue("tls/gateway.pem", "tls/gateway-key.pem", "gateway.internal")
        shutil.copy(authority.ca, authority.path("tls/internal-ca.pem"))
        one, other = free_port(), free_port()
        nginx = start_nginx(self.NGINX.format(dir=self.folder, one=one, other=other), self.folder, other)
        self.addCleanup(lambda: (nginx.terminate(), nginx.wait(10)))
        return self.serve(on_this_machine(example("https-upstream.yaml"), one, other))

    def test_both_sides_show_who_they_are(self):
        sluice = self.serve_upstreams("orders.internal")
        # Each loop of the gateway begins with the first, so as many connections as there may be loops, and some.
        answers = [ask(sluice.port, "/")[2] for _ in range(4)]
        with contextlib.closing(http.client.HTTPConnection("127.0.0.1", sluice.port, timeout=10)) as kept:
            for _ in range(2):
                kept.request("GET", "/")
                answers.append(kept.getresponse().read())
        self.assertEqual(set(answers),
                         {b"one orders.internal CN=gateway.internal", b"other orders.internal CN=gateway.internal"})
        statuses, seconds = self.statuses(sluice, 200)
        self.assert_admitted(statuses, 94, 50, seconds + 6 / 50)  # six were taken above

    def test_a_server_of_another_name_is_not_spoken_to(self):
        sluice = self.serve_upstreams("wiki.internal")
        self.assertEqual(ask(sluice.port, "/")[0], 502)


class Readme(Example):
    def test_its_configuration_does_what_its_comments_say(self):
        with open(os.path.join(SOURCE, "README.md")) as file:
            block = re.search(r"```yaml\n(# sluice\.yaml\n.*?)```", file.read(), re.DOTALL).group(1)
        orders = self.orders_api()
        sluice = self.serve(on_this_machine(block, orders.port))
        ann = {"X-API-Key": "ann"}
        self.assertEqual(self.statuses(sluice, 1)[0], [401])
        statuses, seconds = self.statuses(sluice, 30, headers=ann)
        self.assert_admitted(statuses, 20, 100 / 60, seconds)
        self.assertEqual(self.statuses(sluice, 21, "/login", "POST", ann)[0], [404] * 20 + [429])
        self.two_at_a_time(sluice, "bob")
        self.assertEqual(self.statuses(sluice, 12, "/v1/search", headers={"X-API-Key": "eve"})[0], [404] * 12)
        self.assertEqual(sluice.metric('sluice_decisions_total{rule="stricter",verdict="shadow_limited"}'), 2)


class All(unittest.TestCase):
    def test_no_example_is_without_a_test(self):
        with open(os.path.abspath(__file__)) as file:
            tested = set(re.findall(r'"([\w-]+\.yaml)"', file.read()))
        self.assertEqual(tested, {name for name in os.listdir(EXAMPLES) if name.endswith(".yaml")})


if __name__ == "__main__":
    unittest.main()
