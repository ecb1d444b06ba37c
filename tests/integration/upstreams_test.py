"""Upstreams that come and go while the gateway runs: no request is lost."""
import contextlib
import http.client
import tempfile
import threading
import time
import unittest

from processes import OrdersApi, Sluice, ask

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


class Load:
    """A few clients that ask again and again on kept connections, for as long as the block lasts."""

    def __init__(self, port, clients=4):
        self.port = port
        self.statuses = []
        self.errors = []
        self.ending = threading.Event()
        self.threads = [threading.Thread(target=self._ask) for _ in range(clients)]

    def _ask(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=20)
        while not self.ending.is_set():
            try:
                connection.request("GET", "/v1/orders")
                answer = connection.getresponse()
                answer.read()
                self.statuses.append(answer.status)
            except OSError as error:
                self.errors.append(error)
                return
            time.sleep(0.001)
        connection.close()

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        for thread in self.threads:
            thread.join()


class Reload(unittest.TestCase):
    def test_the_list_of_upstreams_changes_under_load_and_no_request_fails(self):
        with two_apis_and_a_gateway() as (sluice, apis):
            with Load(sluice.port) as load:
                for turn in range(6):
                    time.sleep(0.1)
                    sluice.reload(settings([apis[(turn + 1) % 2].port]))
                    self.assertEqual(sluice.count("info +reloaded"), turn + 1, sluice.text())
                    # All that is asked from here on goes to the new one.
                    old = apis[turn % 2]
                    time.sleep(0.05)
                    before = old.count_requests()
                    asked = len(load.statuses)
                    while len(load.statuses) < asked + 20 and not load.errors:
                        time.sleep(0.01)
                    self.assertEqual(old.count_requests(), before)
            self.assertEqual(load.errors, [])
            self.assertEqual(set(load.statuses), {200})
            self.assertEqual(sum(api.count_requests() for api in apis), len(load.statuses))
            counted = sum(sluice.metric(f'sluice_upstream_requests_total{{upstream="127.0.0.1:{api.port}"}}') for api in apis)
            self.assertEqual(counted, len(load.statuses))

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
    CHECK = ", health_check: { path: /healthz, every: 100ms, failures: 2 }"

    def test_one_that_is_gone_gets_nothing_and_a_reload_takes_it_out(self):
        with two_apis_and_a_gateway() as (sluice, apis), Load(sluice.port) as load:
            sluice.reload(settings([api.port for api in apis], self.CHECK))
            up = [f'sluice_upstream_up{{upstream="127.0.0.1:{api.port}"}}' for api in apis]
            self.assertEqual([sluice.metric(name) for name in up], [1, 1])
            apis[1].stop()
            sluice.wait_for("upstream is down: its checks fail upstream=127.0.0.1:" + str(apis[1].port))
            self.assertEqual([sluice.metric(name) for name in up], [1, 0])
            name = f'sluice_upstream_requests_total{{upstream="127.0.0.1:{apis[1].port}"}}'
            sent = sluice.metric(name)
            time.sleep(0.5)
            self.assertEqual(sluice.metric(name), sent)
            failed = f'sluice_upstream_checks_total{{upstream="127.0.0.1:{apis[1].port}",result="failed"}}'
            self.assertGreaterEqual(sluice.metric(failed), 2)
            sluice.reload(settings([apis[0].port], self.CHECK))
            self.assertNotIn(up[1], sluice.get_admin("/metrics"))
            self.assertEqual(load.errors, [])


if __name__ == "__main__":
    unittest.main()
