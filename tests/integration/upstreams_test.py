"""Upstreams that come and go while the gateway runs: no request is lost."""
import contextlib
import http.client
import tempfile
import threading
import time
import unittest

from processes import OrdersApi, Sluice, Worker, ask, wait_until

NOBODY = "nobody" * 12  # too long for a name, so that no name server is asked


def settings(ports, more=""):
    urls = ", ".join(f'"http://127.0.0.1:{port}"' for port in ports)
    return f"""
gateway: {{ listen: "127.0.0.1:0", upstream: [{urls}]{more} }}
admin: {{ listen: "127.0.0.1:0" }}
rules: []
"""


@contextlib.contextmanager
def two_apis_and_a_gateway(more=""):
    """Two Orders APIs, and a Sluice in front of the first."""
    with contextlib.ExitStack() as ends, tempfile.TemporaryDirectory() as folder:
        apis = []
        for _ in range(2):
            apis.append(OrdersApi())
            ends.callback(apis[-1].stop)
        sluice = Sluice(settings([apis[0].port], more), folder)
        try:
            yield sluice, apis
        finally:
            code = sluice.stop()
        assert code == 0, f"exit code {code}:\n" + sluice.text()


class Client(Worker):
    """Asks again and again on one connection that is kept, until it is told to end."""

    def __init__(self, port):
        super().__init__()
        self.port = port
        self.statuses = []
        self.ending = threading.Event()

    def work(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        with contextlib.closing(connection):
            while not self.ending.wait(0.001):
                connection.request("GET", "/v1/orders")
                answer = connection.getresponse()
                answer.read()
                self.statuses.append(answer.status)


class Load:
    """A few clients that ask for as long as the block lasts, and are answered 200 each time."""

    def __init__(self, port, clients=4):
        self.clients = [Client(port) for _ in range(clients)]

    def answered(self):
        for client in self.clients:
            if client.error is not None:
                raise client.error
        return sum(len(client.statuses) for client in self.clients)

    def goes_on(self, answers=20):
        """So many more answers come."""
        before = self.answered()
        wait_until(lambda: self.answered() >= before + answers, f"{answers} answers", 60)

    def __enter__(self):
        for client in self.clients:
            client.start()
        return self

    def __exit__(self, *_):
        for client in self.clients:
            client.ending.set()
        for client in self.clients:
            client.join()
        statuses = {status for client in self.clients for status in client.statuses}
        assert statuses == {200}, statuses


def settled(count, seconds=0.2):
    """What count() says once it has said the same for so long."""
    last, since = count(), time.monotonic()
    deadline = since + 60
    while time.monotonic() < since + seconds:
        assert time.monotonic() < deadline, f"never stands still; now {last}"
        time.sleep(0.02)
        now = count()
        if now != last:
            last, since = now, time.monotonic()
    return last


class Reload(unittest.TestCase):
    def test_the_list_of_upstreams_changes_under_load_and_no_request_fails(self):
        with two_apis_and_a_gateway() as (sluice, apis):
            with Load(sluice.port) as load:
                for turn in range(6):
                    load.goes_on()
                    sluice.reload(settings([apis[(turn + 1) % 2].port]))
                    self.assertEqual(sluice.count("info +reloaded"), turn + 1, sluice.text())
                    # All that is asked from here on goes to the new one.
                    old = apis[turn % 2]
                    before = settled(old.count_requests)
                    load.goes_on()
                    self.assertEqual(old.count_requests(), before)
            answered = load.answered()
            self.assertEqual(sum(api.count_requests() for api in apis), answered)
            names = [f'sluice_upstream_requests_total{{upstream="127.0.0.1:{api.port}"}}' for api in apis]
            self.assertEqual(sum(sluice.metric(name) for name in names), answered)

    def test_an_upstream_that_cannot_be_found_changes_nothing_not_even_the_rules(self):
        with two_apis_and_a_gateway() as (sluice, apis):
            closed = settings([apis[0].port]).replace("rules: []", "rules: [{ name: closed, deny: true }]")
            sluice.reload(closed.replace(f"http://127.0.0.1:{apis[0].port}", f"http://{NOBODY}:80"))
            sluice.wait_for("reload failed; the old configuration stays in force.*" + NOBODY)
            self.assertEqual(ask(sluice.port)[0], 200)
            sluice.reload(closed)
            self.assertEqual(ask(sluice.port)[0], 403)

    def test_only_what_needs_a_restart_is_told_to_need_one(self):
        with two_apis_and_a_gateway() as (sluice, apis):
            changed = settings([apis[0].port], ", response_timeout: 5s, health_path: /up, drain: 1s")
            sluice.reload("headers: [x-delta]\nbody: json\nlimits: { header_fields: 50, slots: 10 }\n"
                          + changed.replace('listen: "127.0.0.1:0", up', 'listen: "127.0.0.1:1", up'))
            sluice.wait_for("info +reloaded")
            self.assertEqual(sluice.count("takes effect at the next start"), 2, sluice.text())
            self.assertEqual(sluice.count("next start setting=gateway.listen"), 1, sluice.text())
            self.assertEqual(sluice.count("next start setting=limits.slots"), 1, sluice.text())
            self.assertEqual(ask(sluice.port, "/up")[2], b"ok\n")


class HealthChecks(unittest.TestCase):
    # By its failures alone an upstream is never left out here.
    CHECK = (", health_check: { path: /healthz, every: 100ms, failures: 2 }"
             ", upstream_health: { failures: 1000, rest: 100ms }")

    def test_one_that_is_gone_gets_nothing_and_a_reload_takes_it_out(self):
        with two_apis_and_a_gateway() as (sluice, apis), Load(sluice.port) as load:
            sluice.reload(settings([api.port for api in apis], self.CHECK))
            up = [f'sluice_upstream_up{{upstream="127.0.0.1:{api.port}"}}' for api in apis]
            self.assertEqual([sluice.metric(name) for name in up], [1, 1])
            apis[1].stop()
            sluice.wait_for("upstream is down: its checks fail upstream=127.0.0.1:" + str(apis[1].port))
            self.assertEqual([sluice.metric(name) for name in up], [1, 0])
            # Nobody is there who could count requests; each one that tried would count a failure.
            name = f'sluice_upstream_failures_total{{upstream="127.0.0.1:{apis[1].port}"}}'
            failures = settled(lambda: sluice.metric(name))
            load.goes_on(100)
            self.assertEqual(sluice.metric(name), failures)
            failed = f'sluice_upstream_checks_total{{upstream="127.0.0.1:{apis[1].port}",result="failed"}}'
            self.assertGreaterEqual(sluice.metric(failed), 2)
            sluice.reload(settings([apis[0].port], self.CHECK))
            self.assertNotIn(up[1], sluice.get_admin("/metrics"))


if __name__ == "__main__":
    unittest.main()
