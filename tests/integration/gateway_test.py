"""The gateway as a user runs it: our own programs, real sockets, real time."""
import json
import os
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

from processes import BIN, SOURCE, OrdersApi, Raw, Sluice, ask, gateway, settings, wait_until

API = "rules: [{ name: api, key: api_key, limit: 60/min, burst: 3 }]"


def serve_in_vain(path):
    """`sluice serve` on a configuration that ends the start: what it said, and its exit code."""
    return subprocess.run([f"{BIN}/sluice", "serve", "--config", path], capture_output=True, text=True, timeout=20)


class Limiting(unittest.TestCase):
    def test_passes_requests_until_the_limit_then_tells_when_to_come_back(self):
        with gateway("rules: [{ name: api, key: api_key, limit: 1/s, burst: 3 }]") as (sluice, orders):
            for left in (2, 1, 0):
                status, headers, _ = ask(sluice.port)
                self.assertEqual(status, 200)
                self.assertEqual(headers["RateLimit-Policy"], '"api";q=3;w=3')
                self.assertRegex(headers["RateLimit"], rf'^"api";r={left};t=\d$')
            status, headers, body = ask(sluice.port)
            self.assertEqual(status, 429)
            self.assertEqual(headers["Retry-After"], "1")
            self.assertEqual(headers["RateLimit"], '"api";r=0;t=1')
            self.assertEqual(headers["Cache-Control"], "no-store")
            self.assertEqual(headers["Content-Type"], "application/problem+json")
            problem = json.loads(body)
            self.assertEqual(problem["status"], 429)
            self.assertEqual(problem["violated-policies"], ["api"])
            self.assertGreater(problem["retry_after_ms"], 0)
            self.assertLessEqual(problem["retry_after_ms"], 1000)
            self.assertEqual(orders.count_requests(), 3)
            time.sleep(int(headers["Retry-After"]))  # exactly as long as the client was told
            self.assertEqual(ask(sluice.port)[0], 200)

    def test_no_header_stands_twice_when_two_rules_meet_a_request(self):
        rules = """
rules:
  - { name: one, key: api_key, limit: 60/min, burst: 2 }
  - { name: two, key: api_key, limit: 60/min, burst: 3 }
"""
        with gateway(rules) as (sluice, _):
            for expected in (200, 200, 429):
                status, headers, _ = ask(sluice.port)
                self.assertEqual(status, expected)
                for name in ("RateLimit", "RateLimit-Policy"):
                    self.assertEqual(len(headers.get_all(name)), 1)
                    self.assertNotEqual(headers[name].strip(), "")

    def test_headers_none_leaves_the_fields_out_but_not_retry_after(self):
        with gateway("headers: [none]\n" + API) as (sluice, _):
            for expected in (200, 200, 200, 429):
                status, headers, _ = ask(sluice.port)
                self.assertEqual(status, expected)
                self.assertIsNone(headers["RateLimit"])
                self.assertIsNone(headers["RateLimit-Policy"])
            self.assertEqual(headers["Retry-After"], "1")

    def test_a_missing_key_is_401_and_a_closed_path_403(self):
        rules = """
rules:
  - { name: api, match: { path: /v1/** }, key: api_key, limit: 60/min }
  - { name: closed, match: { path: /internal/** }, deny: true }
"""
        with gateway(rules) as (sluice, orders):
            status, headers, body = ask(sluice.port, key=None)
            self.assertEqual(status, 401)
            self.assertIsNone(headers["Retry-After"])
            self.assertIn("the header `X-API-Key`", json.loads(body)["detail"])
            self.assertEqual(ask(sluice.port, "/internal//x/../y")[0], 403)
            self.assertEqual(orders.count_requests(), 0)

    def test_a_cost_that_can_never_be_met_is_422_with_its_ceiling(self):
        rules = "rules: [{ name: api, key: api_key, limit: 60/min, burst: 5, cost: { header: X-Cost, max: 100 } }]"
        with gateway(rules) as (sluice, _):
            status, headers, body = ask(sluice.port, headers={"X-Cost": "6"})
            self.assertEqual(status, 422)
            self.assertIsNone(headers["Retry-After"])
            self.assertEqual(json.loads(body)["max_cost"], 5)
            self.assertEqual(ask(sluice.port, headers={"X-Cost": "5"})[0], 200)

    def test_a_queue_holds_requests_and_lets_them_go_at_the_rate(self):
        rules = """
rules:
  - { name: queue, key: api_key, limit: 5/s, algorithm: leaky-bucket, queue: { requests: 3, wait: 5s } }
"""
        with gateway(rules) as (sluice, orders):
            times = []
            statuses = []

            def one():
                status = ask(sluice.port)[0]
                times.append(time.monotonic())
                statuses.append(status)

            start = time.monotonic()
            threads = [threading.Thread(target=one) for _ in range(6)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(sorted(statuses), [200] * 4 + [429] * 2)
            self.assertGreaterEqual(max(times) - start, 0.6)  # the fourth leaves three intervals later
            self.assertEqual(orders.count_requests(), 4)

    def test_slots_come_back_when_the_answer_ended_or_the_client_left(self):
        rules = """
rules:
  - { name: exports, match: { path: /v1/exports }, key: api_key, algorithm: concurrency, limit: 2, slot_ttl: 30s }
"""
        with gateway(rules) as (sluice, _):
            def export(seconds, results):
                results.append(ask(sluice.port, f"/v1/exports?delay={seconds}s")[0])

            results = []
            threads = [threading.Thread(target=export, args=(1, results)) for _ in range(2)]
            for thread in threads:
                thread.start()
            time.sleep(0.4)
            self.assertEqual(ask(sluice.port, "/v1/exports?delay=0s")[0], 429)
            for thread in threads:
                thread.join()
            self.assertEqual(results, [200, 200])
            self.assertEqual(ask(sluice.port, "/v1/exports?delay=0s")[0], 200)

            leavers = [Raw(sluice.port) for _ in range(2)]
            for leaver in leavers:
                leaver.send(b"GET /v1/exports?delay=20s HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n")
            time.sleep(0.4)
            self.assertEqual(ask(sluice.port, "/v1/exports?delay=0s")[0], 429)
            for leaver in leavers:
                leaver.close()
            deadline = time.monotonic() + 5
            while ask(sluice.port, "/v1/exports?delay=0s")[0] != 200:
                self.assertLess(time.monotonic(), deadline, "slots of clients that left did not come back")
                time.sleep(0.05)

    def test_many_requests_on_one_connection_never_run_out_of_slots(self):
        rules = """
rules:
  - { name: global, key: global, algorithm: concurrency, limit: 3 }
  - { name: route, key: api_key, algorithm: concurrency, limit: 3 }
"""
        with gateway(rules) as (sluice, _), Raw(sluice.port) as raw:
            for _ in range(200):
                raw.send(b"GET /v1/orders HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n")
                self.assertEqual(raw.read_answer()[0], 200)


class Connections(unittest.TestCase):
    def test_the_body_of_a_denied_request_is_never_read_as_the_next_request(self):
        smuggled = b"GET /smuggled HTTP/1.1\r\nHost: a\r\n\r\n"
        body = smuggled + b"x" * (70_000 - len(smuggled))
        head = b"POST /v1/orders HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n"
        whole = head + b"Content-Length: 70000\r\n\r\n"
        chunked = head + b"Transfer-Encoding: chunked\r\n\r\n"
        with gateway(API) as (sluice, orders):
            for _ in range(3):
                ask(sluice.port)
            forms = {
                "whole": [whole + body],
                "chunked": [chunked + b"11170\r\n" + body + b"\r\n0\r\n\r\n"],
                "late": [whole, body],
            }
            for name, parts in forms.items():
                with self.subTest(name), Raw(sluice.port) as raw:
                    try:
                        for part in parts:
                            raw.send(part)
                            time.sleep(0.2)
                    except (BrokenPipeError, ConnectionResetError):
                        pass  # closing is a clean end, too
                    self.assertEqual(raw.read_answer()[0], 429)
                    try:
                        raw.send(b"GET /v1/orders HTTP/1.1\r\nHost: a\r\nX-API-Key: bob\r\n\r\n")
                        status = raw.read_answer()[0]
                    except (BrokenPipeError, ConnectionResetError):
                        status = 0
                    self.assertIn(status, (0, 200))
            passed = orders.count_requests()
            self.assertLessEqual(passed, 3 + len(forms))

    def test_a_denied_client_that_expects_100_is_answered_at_once(self):
        with gateway(API) as (sluice, _):
            request = (b"POST /v1/orders HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n"
                       b"Content-Length: 1000000\r\nExpect: 100-continue\r\n\r\n")
            for _ in range(3):
                ask(sluice.port)
            with Raw(sluice.port) as raw:
                start = time.monotonic()
                raw.send(request)
                self.assertEqual(raw.read_answer()[0], 429)
                self.assertLess(time.monotonic() - start, 2)

    def test_a_malformed_request_is_refused_and_never_forwarded(self):
        good = b"GET /v1/orders HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n"
        forms = {
            "no version": b"GET /v1/orders\r\nHost: a\r\n\r\n",
            "bare LF": b"GET /v1/orders HTTP/1.1\nHost: a\nX-API-Key: ann\n\n",
            "NUL in a value": good + b"X: a\0b\r\n\r\n",
            "NUL in the path": b"GET /v1/\0orders HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n",
            "escaped NUL": b"GET /v1/%00 HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n",
            "bad escape": b"GET /v1/%zz HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n",
            "both lengths": good + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "two lengths": good + b"Content-Length: 4\r\nContent-Length: 5\r\n\r\nabcde",
            "signed length": good + b"Content-Length: +4\r\n\r\nabcd",
            "folding": good + b"X: a\r\n b\r\n\r\n",
            "space before colon": good + b"X : a\r\n\r\n",
            "no host": b"GET /v1/orders HTTP/1.1\r\nX-API-Key: ann\r\n\r\n",
            "two hosts": good + b"Host: b\r\n\r\n",
            "huge head": good + b"X: " + b"a" * 200_000 + b"\r\n\r\n",
            "many fields": good + b"".join(b"X%d: a\r\n" % i for i in range(10_000)) + b"\r\n",
            "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + bytes(range(256)),
        }
        with gateway("rules: [{ name: api, key: api_key, limit: 1000/s }]") as (sluice, orders):
            for name, form in forms.items():
                with self.subTest(name), Raw(sluice.port) as raw:
                    try:
                        raw.send(form)
                    except (BrokenPipeError, ConnectionResetError):
                        pass
                    status = raw.read_answer()[0]
                    expected = (431, 0) if name in ("huge head", "many fields") else (400, )
                    self.assertIn(status, expected)
                    if "escape" not in name:  # those have a form, only no meaning
                        self.assertTrue(raw.closed())
            self.assertEqual(orders.count_requests(), 0)
            self.assertEqual(ask(sluice.port)[0], 200)

    def test_an_upstream_that_is_gone_is_502(self):
        with tempfile.TemporaryDirectory() as folder:
            sluice = Sluice(settings(1, API), folder)
            try:
                status, headers, body = ask(sluice.port)
                self.assertEqual(status, 502)
                self.assertEqual(headers["Content-Type"], "application/problem+json")
                self.assertEqual(json.loads(body)["status"], 502)
            finally:
                self.assertEqual(sluice.stop(), 0)

    def test_the_upstream_sees_the_client_and_no_hop_by_hop_fields(self):
        with gateway("rules: []") as (sluice, _):
            headers = {"X-Forwarded-For": "9.9.9.9", "Connection": "X-Hop, keep-alive", "X-Hop": "1",
                       "TE": "trailers", "Keep-Alive": "timeout=5", "X-Kept": "yes"}
            _, _, body = ask(sluice.port, "/v1/headers", headers=headers)
            seen = {name.lower(): value for name, value in json.loads(body).items()}
            self.assertEqual(seen["x-forwarded-for"], "127.0.0.1")
            self.assertEqual(seen["via"], "1.1 sluice")
            self.assertEqual(seen["x-kept"], "yes")
            self.assertEqual(seen["te"], "trailers")
            for gone in ("x-hop", "keep-alive"):
                self.assertNotIn(gone, seen)

    def test_server_sent_events_arrive_one_by_one(self):
        slots = "rules: [{ name: s, key: api_key, algorithm: concurrency, limit: 1, slot_ttl: 1s }]"
        with gateway(slots) as (sluice, _), Raw(sluice.port) as client:
            client.send(b"GET /v1/stream?events=3&every=700ms HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n")
            arrived = []
            received = b""
            while not received.endswith(b"\r\n0\r\n\r\n"):
                received += client.socket.recv(65536)
                if received.count(b"data:") > len(arrived):
                    arrived.append(time.monotonic())
                    # The stream holds the only slot, also beyond the slot's time to live.
                    if len(arrived) < 3:
                        self.assertEqual(ask(sluice.port)[0], 429)
            self.assertEqual(len(arrived), 3)
            for first, second in zip(arrived, arrived[1:]):
                self.assertGreater(second - first, 0.3)
            deadline = time.monotonic() + 10
            while ask(sluice.port)[0] != 200:  # the slot comes back a moment after the last byte
                self.assertLess(time.monotonic(), deadline)


class Operation(unittest.TestCase):
    def test_every_series_is_there_from_the_start_and_counts(self):
        with gateway(API) as (sluice, _):
            for verdict in ("allowed", "delayed", "limited", "never", "missing_identity", "denied", "shadow_limited"):
                self.assertEqual(sluice.metric(f'sluice_decisions_total{{rule="api",verdict="{verdict}"}}'), 0)
            for _ in range(5):
                ask(sluice.port)
            self.assertEqual(sluice.metric('sluice_decisions_total{rule="api",verdict="allowed"}'), 3)
            self.assertEqual(sluice.metric('sluice_decisions_total{rule="api",verdict="limited"}'), 2)
            # The last answer may be here before its books are closed.
            wait_until(lambda: sluice.metric("sluice_gateway_requests_in_flight") == 0, "nothing is in flight")
            for result, count in (("forwarded", 3), ("failed", 0), ("aborted", 0)):
                self.assertEqual(sluice.metric(f'sluice_gateway_ended_total{{result="{result}"}}'), count)
            self.assertEqual(sluice.metric("sluice_gateway_admitted_total"), 3)
            self.assertEqual(sluice.metric("sluice_gateway_denied_total"), 2)
            self.assertEqual(json.loads(sluice.get_admin("/healthz"))["status"], "ok")
            self.assertEqual(sluice.ready()["status"], "ready")
            self.assertEqual(json.loads(sluice.get_admin("/v1/rules"))["rules"][0]["name"], "api")

    def test_the_access_log_is_rotated_by_name_and_sighup_and_whole_at_the_end(self):
        with tempfile.TemporaryDirectory() as folder:
            orders = OrdersApi()
            config = settings(orders.port, API).replace(
                "gateway: {", "gateway: { access_log: { file: access.log, format: json },")
            sluice = Sluice(config, folder)
            path = os.path.join(folder, "access.log")
            for _ in range(5):
                ask(sluice.port, "/v1/orders?secret")
            os.rename(path, path + ".1")
            sluice.reload(config)
            deadline = time.monotonic() + 10
            while not os.path.exists(path) and time.monotonic() < deadline:
                time.sleep(0.02)
            ask(sluice.port)
            self.assertEqual(sluice.metric("sluice_access_log_dropped_total"), 0)
            self.assertEqual(sluice.stop(), 0)
            orders.stop()
            with open(path + ".1") as old, open(path) as new:
                before = [json.loads(line) for line in old]
                after = [json.loads(line) for line in new]
            self.assertEqual(sorted(line["status"] for line in before), [200] * 3 + [429] * 2)
            self.assertEqual({line["path"] for line in before}, {"/v1/orders"})
            self.assertEqual([line["status"] for line in after], [429])
            self.assertEqual(after[0]["rule"], "api")

    def test_the_access_log_goes_to_standard_output_as_nginx_writes_it(self):
        with tempfile.TemporaryDirectory() as folder:
            orders = OrdersApi()
            sluice = Sluice(settings(orders.port, API).replace(
                "gateway: {", "gateway: { access_log: { file: stdout },"), folder)
            ask(sluice.port, headers={"User-Agent": "a \"b\""})
            sluice.wait_for(r'^127\.0\.0\.1 - - \[\S+ \+0000\] "GET /v1/orders HTTP/1\.1" 200 \d+ "-" "a \\x22b\\x22"$')
            self.assertEqual(sluice.stop(), 0)
            orders.stop()

    def test_an_access_log_that_cannot_be_written_is_told_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sluice.yaml")
            with open(path, "w") as file:
                file.write(settings(1, API).replace("gateway: {", "gateway: { access_log: { file: no/access.log },"))
            done = subprocess.run([f"{BIN}/sluice", "serve", path], capture_output=True, text=True, timeout=20)
            self.assertEqual(done.returncode, 2)
            self.assertIn("no/access.log: No such file or directory", done.stderr)

    def test_a_reload_changes_the_numbers_and_keeps_the_counters(self):
        window = "rules: [{{ name: api, key: api_key, limit: {}/day, algorithm: fixed-window, align: first-hit }}]"
        with gateway(window.format(3)) as (sluice, orders):
            self.assertEqual([ask(sluice.port)[0] for _ in range(4)], [200, 200, 200, 429])
            sluice.reload(settings(orders.port, window.format(5)))
            self.assertEqual([ask(sluice.port)[0] for _ in range(3)], [200, 200, 429])

    def test_a_broken_reload_changes_nothing_and_tells_every_error(self):
        with gateway(API) as (sluice, orders):
            broken = settings(orders.port, "rules:\n  - name: api\n    key: api_kye\n    limit: 0/min\n    brust: 3\n")
            sluice.reload(broken)
            log = sluice.text()
            for message in (r"error +configuration at=\S*sluice.yaml:\d+:\d+ .*api_kye",
                            r"sluice.yaml:\d+:\d+ .*brust"):
                self.assertRegex(log, message)
            self.assertEqual(json.loads(sluice.get_admin("/v1/rules"))["generation"], 1)
            self.assertEqual([ask(sluice.port)[0] for _ in range(4)], [200, 200, 200, 429])

    def test_a_quota_survives_a_restart(self):
        with tempfile.TemporaryDirectory() as folder:
            rest = ("store: { memory: { snapshot: quotas.snapshot } }\n"
                    "rules: [{ name: quota, key: api_key, limit: 2/year, algorithm: calendar, time_zone: UTC }]")
            for expected in ([502, 502, 429], [429]):
                sluice = Sluice(settings(1, rest), folder)
                try:
                    self.assertEqual([ask(sluice.port)[0] for _ in expected], expected)
                finally:
                    self.assertEqual(sluice.stop(), 0)
            path = os.path.join(folder, "quotas.snapshot")
            with open(path, "r+b") as file:
                file.seek(20)
                file.write(b"damage")
            damaged = subprocess.run([f"{BIN}/sluice", "serve", "--config", os.path.join(folder, "sluice.yaml")],
                                     capture_output=True, text=True, timeout=20)
            self.assertEqual(damaged.returncode, 2)
            self.assertRegex(damaged.stderr, "quotas.snapshot.*; move the file away to start with empty counters")

    def test_a_snapshot_belongs_to_one_process_at_a_time(self):
        quota = ("store: { memory: { snapshot: quotas.snapshot } }\n"
                 "rules: [{ name: quota, key: api_key, limit: 2/year, algorithm: calendar, time_zone: UTC }]")
        with tempfile.TemporaryDirectory() as folder:
            first = Sluice(settings(1, quota), folder)
            try:
                self.assertEqual(ask(first.port)[0], 502)
                second = subprocess.run([f"{BIN}/sluice", "serve", "--config", os.path.join(folder, "sluice.yaml")],
                                        capture_output=True, text=True, timeout=20)
                self.assertEqual(second.returncode, 2)
                self.assertIn(f"quotas.snapshot is in use by process {first.process.pid}", second.stderr)
            finally:
                self.assertEqual(first.stop(), 0)

    def test_a_snapshot_that_cannot_be_kept_is_told_at_the_start(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sluice.yaml")
            with open(path, "w") as file:
                file.write(settings(1, "store: { memory: { snapshot: missing/quotas.snapshot } }\nrules: []"))
            run = subprocess.run([f"{BIN}/sluice", "serve", path], capture_output=True, text=True, timeout=20)
            self.assertEqual(run.returncode, 2)
            self.assertRegex(run.stderr,
                             "cannot keep a snapshot at .*missing/quotas.snapshot: .*No such file or directory")

    def test_a_snapshot_that_cannot_be_written_at_the_end_is_told_by_the_exit_code(self):
        with tempfile.TemporaryDirectory() as folder:
            sluice = Sluice(settings(1, "store: { memory: { snapshot: quotas.snapshot } }\nrules: []"), folder)
            os.mkdir(os.path.join(folder, "quotas.snapshot.tmp"))
            self.assertEqual(sluice.stop(), 2)
            self.assertRegex(sluice.text(), "snapshot not written .*quotas.snapshot.tmp")

    def test_a_start_that_fails_leaves_the_snapshot_alone(self):
        quota = ("store: { memory: { snapshot: quotas.snapshot } }\n"
                 "rules: [{ name: quota, key: api_key, limit: 2/year, algorithm: calendar, time_zone: UTC }]")
        with gateway("rules: []") as (other, _), tempfile.TemporaryDirectory() as folder:
            sluice = Sluice(settings(1, quota), folder)
            self.assertEqual(ask(sluice.port)[0], 502)
            self.assertEqual(sluice.stop(), 0)
            snapshot = os.path.join(folder, "quotas.snapshot")
            before = os.stat(snapshot).st_mtime_ns
            path = os.path.join(folder, "sluice.yaml")
            with open(path, "w") as file:
                file.write(settings(1, quota).replace('listen: "127.0.0.1:0", up', f'listen: "127.0.0.1:{other.port}", up'))
            run = serve_in_vain(path)
            self.assertEqual(run.returncode, 2)
            self.assertEqual(os.stat(snapshot).st_mtime_ns, before)

    def test_shutdown_finishes_what_is_in_flight(self):
        with gateway("rules: []") as (sluice, _):
            results = []
            thread = threading.Thread(target=lambda: results.append(ask(sluice.port, "/v1/exports?delay=1s")[0]))
            thread.start()
            time.sleep(0.3)
            self.assertEqual(sluice.stop(), 0)
            thread.join()
            self.assertEqual(results, [200])

    def test_before_the_drain_it_says_503_and_serves_until_a_second_signal(self):
        with tempfile.TemporaryDirectory() as folder:
            orders = OrdersApi()
            sluice = Sluice(settings(orders.port, "rules: []").replace(
                "gateway: {", "gateway: { drain_delay: 60s, health_path: /health,"), folder)
            self.assertEqual(ask(sluice.port, "/health")[0], 200)
            with Raw(sluice.port) as one, Raw(sluice.port) as other:
                sluice.signal(signal.SIGTERM)
                sluice.wait_for("leaving")
                self.assertEqual(ask(sluice.port, "/health")[0], 503)
                self.assertEqual(ask(sluice.admin, "/readyz")[0], 503)
                for kept in one, other:
                    self.assertEqual(ask(sluice.port)[0], 200)  # on new connections
                    kept.send(b"GET /v1/orders HTTP/1.1\r\nHost: a\r\n\r\n")
                    status, head, _ = kept.read_answer()
                    self.assertEqual(status, 200)
                    self.assertIn(b"Connection: close", head)  # let go in order
            begin = time.monotonic()
            self.assertEqual(sluice.stop(), 0)
            self.assertLess(time.monotonic() - begin, 20)
            orders.stop()

    def test_the_delay_before_the_drain_ends_by_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            orders = OrdersApi()
            sluice = Sluice(settings(orders.port, "rules: []").replace(
                "gateway: {", "gateway: { drain_delay: 500ms,"), folder)
            begin = time.monotonic()
            self.assertEqual(sluice.stop(), 0)
            self.assertGreaterEqual(time.monotonic() - begin, 0.5)
            orders.stop()

    def test_a_broken_configuration_at_start_exits_with_2_and_tells_every_error(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sluice.yaml")
            with open(path, "w") as file:
                file.write("rules:\n  - name: a\n    limit: 10/fortnight\n    algorithm: token-bucket\n"
                           "  - name: a\n    key: nobody\n    limit: 5/s\n    burst: 0\n")
            run = serve_in_vain(path)
            self.assertEqual(run.returncode, 2)
            places = re.findall(r"sluice\.yaml:(\d+):(\d+): error:", run.stderr)
            self.assertEqual({int(line) for line, _ in places}, {2, 3, 5, 6, 8})

    def test_a_port_that_is_taken_is_told_by_its_address(self):
        with gateway("rules: []") as (sluice, orders), tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "sluice.yaml")
            with open(path, "w") as file:
                file.write(settings(orders.port, "rules: []").replace('listen: "127.0.0.1:0", up', f'listen: "127.0.0.1:{sluice.port}", up'))
            run = serve_in_vain(path)
            self.assertEqual(run.returncode, 2)
            self.assertIn(f"127.0.0.1:{sluice.port}", run.stderr)


class AccessLog(unittest.TestCase):
    def test_nothing_is_forwarded_that_was_denied(self):
        rules = """
rules: [{ name: by-client, key: header.X-Client, limit: 20/day, algorithm: fixed-window, align: first-hit }]
"""
        with open(os.path.join(SOURCE, "tests/data/apache_sample.log"), encoding="latin1") as file:
            lines = [line.split() for line in file]
        with gateway(rules) as (sluice, orders), Raw(sluice.port) as raw:
            admitted = 0
            seen = {}
            for line in lines:
                client = line[0]
                raw.send(f"GET /v1/orders HTTP/1.1\r\nHost: a\r\nX-Client: {client}\r\n\r\n".encode())
                status = raw.read_answer()[0]
                self.assertEqual(status, 200 if seen.get(client, 0) < 20 else 429)
                seen[client] = seen.get(client, 0) + 1
                admitted += status == 200
            self.assertEqual(len(lines), 1000)
            self.assertEqual(orders.count_requests(), admitted)


if __name__ == "__main__":
    unittest.main()
