"""TLS on both sides, as users meet it: curl, openssl, wrk, nginx, WebSocket; certificates replaced under load."""
import asyncio
import http.client
import os
import shutil
import subprocess
import threading
import time
import unittest

import websockets

from certificates import Authority, client_context, s_client, serial_of, served_serial
from load import wrk
from processes import BIN, Raw, WithPrograms, ask, free_port, settings, start_nginx, wait_until

# A renewed certificate is served within a few looks, which come every two seconds.
WITHIN = 12


class Tls(WithPrograms):
    """A folder with an authority."""

    def setUp(self):
        super().setUp()
        self.authority = Authority(self.folder)

    def serve_tls(self, tls="certificate: site.pem, key: site.key", rules="rules: []"):
        """In front of an Orders API, with a certificate for site.test and 127.0.0.1."""
        if not os.path.lexists(self.path("site.pem")):
            self.authority.issue("site.pem", "site.key", "site.test", "127.0.0.1")
        self.orders = self.orders_api()
        self.tls = f"tls: {{ {tls} }}"
        return self.serve(self.config(self.tls, rules))

    def config(self, tls, rules="rules: []"):
        return settings(self.orders.port, rules, f"{tls}, ")

    def curl(self, *arguments, check=True):
        return subprocess.run(["curl", "-s", "-m", "30", "--cacert", self.authority.ca, *arguments],
                              capture_output=True, text=True, check=check)


class Clients(Tls):
    def test_curl_gets_200_then_429_over_http_1_1(self):
        sluice = self.serve_tls(rules="rules: [{ name: api, key: api_key, limit: 1/min, burst: 2 }]")
        url = f"https://127.0.0.1:{sluice.port}/v1/headers"
        for code in ("200", "200", "429"):
            for_one = self.curl("--http2", "-o", "/dev/null", "-w", "%{http_code} %{http_version}", "-H",
                                "X-API-Key: ann", url)
            self.assertEqual(for_one.stdout, f"{code} 1.1")
        seen = self.curl("-H", "X-API-Key: bob", url).stdout
        self.assertIn('"X-Forwarded-Proto":"https"', seen)
        several = self.curl("-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n", "-H", "X-API-Key: eve",
                            f"https://127.0.0.1:{sluice.port}/v1/orders?page=[1-3]").stdout
        self.assertEqual(several, "200 1\n200 0\n429 0\n")  # one connection

    def test_large_bodies_pass_in_both_directions(self):
        sluice = self.serve_tls()
        with open(self.path("order"), "w") as file:
            file.write('{"item":"' + "x" * 60_000 + '"}')
        url = f"https://127.0.0.1:{sluice.port}/v1/orders"
        self.assertEqual(self.curl("-d", f"@{self.path('order')}", "-o", "/dev/null", "-w", "%{http_code}", url).stdout,
                         "201")
        self.assertIn("x" * 60_000, self.curl(url).stdout)

    def test_a_certificate_is_chosen_by_the_name(self):
        self.authority.issue("site.pem", "site.key", "site.test")
        self.authority.issue("api.pem", "api.key", "api.test", "*.api.test")
        sluice = self.serve_tls("certificates: [{ certificate: site.pem, key: site.key }, "
                                "{ certificate: api.pem, key: api.key }]")
        site, api = serial_of(self.path("site.pem")), serial_of(self.path("api.pem"))
        for name, serial in (("site.test", site), ("api.test", api), ("v1.API.test", api), ("a.b.api.test", site),
                             ("other.test", site)):
            self.assertEqual(served_serial(sluice.port, name), serial, name)

    def test_old_versions_and_other_protocols_are_refused(self):
        sluice = self.serve_tls()
        old = s_client(sluice.port, "-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0")
        self.assertIn("alert protocol version", old)
        for version, name in (("-tls1_2", "TLSv1.2"), ("-tls1_3", "TLSv1.3")):
            self.assertIn(f"{name}, Cipher is", s_client(sluice.port, version).replace("New, ", ""))
        self.assertIn("ALPN protocol: http/1.1", s_client(sluice.port, "-alpn", "h2,http/1.1"))
        self.assertIn("alert no application protocol", s_client(sluice.port, "-alpn", "h2"))
        sluice.reload(self.config('tls: { certificate: site.pem, key: site.key, min_version: "1.3" }'))
        self.assertIn("alert protocol version", s_client(sluice.port, "-tls1_2"))

    def test_plain_http_is_told_to_ask_by_https_and_harms_nobody(self):
        sluice = self.serve_tls()
        with Raw(sluice.port) as raw:
            raw.send(b"GET /v1/orders HTTP/1.1\r\nHost: a\r\nX-API-Key: ann\r\n\r\n")
            status, _, body = raw.read_answer()
            self.assertEqual(status, 400)
            self.assertIn(b"https://", body)
            self.assertTrue(raw.closed())
        with Raw(sluice.port):  # says nothing, and is still there
            self.assertEqual(self.curl(f"https://127.0.0.1:{sluice.port}/v1/orders").returncode, 0)
        self.assertEqual(self.orders.count_requests(), 1)

    def test_handshakes_are_counted(self):
        sluice = self.serve_tls()
        for begin in ("-sess_out", "-sess_in"):
            s_client(sluice.port, "-tls1_2", begin, self.path("session"))
        with Raw(sluice.port) as raw:
            raw.send(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n")
            self.assertEqual(raw.read_answer()[0], 400)
        self.assertEqual(sluice.metric('sluice_gateway_tls_handshakes_total{resumed="false"}'), 1)
        self.assertEqual(sluice.metric('sluice_gateway_tls_handshakes_total{resumed="true"}'), 1)
        self.assertEqual(sluice.metric("sluice_gateway_tls_failures_total"), 1)

    def test_messages_of_a_websocket_pass(self):
        asyncio.run(self.echo(self.serve_tls()))

    async def echo(self, sluice):
        async with websockets.connect(f"wss://127.0.0.1:{sluice.port}/v1/echo", ssl=client_context(self.authority.ca),
                                      extra_headers={"X-API-Key": "ann"}, max_size=None) as client:
            for size in (0, 1, 65_536, 900_000):
                message = os.urandom(size)
                await client.send(message)
                self.assertEqual(await client.recv(), message)


class Starting(Tls):
    def start(self, tls):
        with open(self.path("sluice.yaml"), "w") as file:
            file.write(settings(1, "rules: []", f"tls: {{ {tls} }}, "))
        return subprocess.run([f"{BIN}/sluice", "serve", self.path("sluice.yaml")], capture_output=True, text=True,
                              timeout=30)

    def test_what_cannot_be_used_ends_the_start_and_is_named(self):
        self.authority.issue("site.pem", "site.key", "site.test")
        self.authority.issue("other.pem", "other.key", "other.test")
        with open(self.path("empty.pem"), "w"):
            pass
        rows = (("certificate: site.pem, key: other.key", "other.key", "another certificate"),
                ("certificate: site.pem, key: none.key", "none.key", "No such file"),
                ("certificate: empty.pem, key: site.key", "empty.pem", "no PEM file"))
        for tls, file, why in rows:
            with self.subTest(tls):
                done = self.start(tls)
                self.assertEqual(done.returncode, 2)
                self.assertIn(file, done.stderr)
                self.assertIn(why, done.stderr)

    def test_a_certificate_near_its_end_is_told_of(self):
        self.authority.issue("site.pem", "site.key", "site.test", days=5)
        sluice = self.serve_tls()
        sluice.wait_for(r"certificate expires soon file=\S+site\.pem expires=")
        left = sluice.metric(f'sluice_tls_certificate_not_after_seconds{{file="{self.path("site.pem")}",'
                             'name="site.test"}') - time.time()
        self.assertAlmostEqual(left, 5 * 86_400, delta=600)


class Replacing(Tls):
    """While clients go on asking: none of them loses a request."""

    def ask_all_the_time(self, sluice):
        """Load on kept connections, on one kept by us, and on new ones. Call it to end it: the failures."""
        stopping = threading.Event()
        failures = []
        kept = http.client.HTTPSConnection("127.0.0.1", sluice.port, timeout=20,
                                           context=client_context(self.authority.ca))
        kept.connect()
        first = kept.sock
        asked = [0]

        def loop():
            while not stopping.wait(0.02):
                fresh = http.client.HTTPSConnection("127.0.0.1", sluice.port, timeout=20,
                                                    context=client_context(self.authority.ca))
                for connection in (kept, fresh):
                    try:
                        connection.request("GET", "/v1/orders")
                        answer = connection.getresponse()
                        answer.read()
                        asked[0] += 1
                        if answer.status != 200:
                            failures.append(answer.status)
                    except (OSError, http.client.HTTPException) as error:
                        failures.append(error)
                fresh.close()

        thread = threading.Thread(target=loop)
        thread.start()

        def end():
            stopping.set()
            thread.join()
            if kept.sock is not first:
                failures.append("the kept connection was closed")
            kept.close()
            self.assertGreater(asked[0], 20)
            return failures

        return end

    def replaced(self, sluice, replace):
        """Replaces the files while wrk and others ask; the new certificate is served, and nobody noticed."""
        counts = {}
        load = threading.Thread(target=lambda: counts.update(wrk(sluice.port, 8, 20, scheme="https")[0]))
        end = self.ask_all_the_time(sluice)
        load.start()
        time.sleep(1)
        serial = replace()
        wait_until(lambda: served_serial(sluice.port) == serial, "the new certificate is served", WITHIN)
        load.join()
        self.assertEqual(end(), [])
        self.assertEqual((counts["other"], counts["errors"]), (0, 0))
        self.assertGreater(counts["ok"], 1000)

    def test_files_that_are_renamed(self):
        sluice = self.serve_tls()

        def replace():
            self.authority.issue("new.pem", "new.key", "site.test", "127.0.0.1")
            serial = serial_of(self.path("new.pem"))
            os.rename(self.path("new.pem"), self.path("site.pem"))
            time.sleep(3)  # the key comes later than the first look
            os.rename(self.path("new.key"), self.path("site.key"))
            return serial

        self.replaced(sluice, replace)
        self.assertEqual(sluice.metric('sluice_tls_reloads_total{result="succeeded"}'), 1)
        self.assertEqual(sluice.metric('sluice_tls_reloads_total{result="failed"}'), 0)
        self.assertEqual(sluice.count(r"certificate in use file=\S+site\.pem names=\"site\.test, 127\.0\.0\.1\" "), 2)

    def test_a_mounted_secret_that_is_exchanged(self):
        for folder in ("..1", "..2"):
            self.authority.issue(f"{folder}/site.pem", f"{folder}/site.key", "site.test", "127.0.0.1")
        os.symlink("..1", self.path("..data"))
        for name in ("site.pem", "site.key"):
            os.symlink(f"..data/{name}", self.path(name))
        sluice = self.serve_tls()

        def replace():
            os.symlink("..2", self.path("..new"))
            os.rename(self.path("..new"), self.path("..data"))
            shutil.rmtree(self.path("..1"))
            return serial_of(self.path("..2/site.pem"))

        self.replaced(sluice, replace)

    def test_a_reload_takes_other_files_at_once(self):
        sluice = self.serve_tls()
        self.authority.issue("other.pem", "other.key", "site.test", "127.0.0.1")

        def replace():
            sluice.reload(self.config("tls: { certificate: other.pem, key: other.key }"))
            self.assertEqual(served_serial(sluice.port), serial_of(self.path("other.pem")))
            return serial_of(self.path("other.pem"))

        self.replaced(sluice, replace)
        sluice.reload(self.config("tls: { certificate: other.pem, key: site.key }"))
        sluice.wait_for(r"reload failed.*site\.key")
        self.assertEqual(served_serial(sluice.port), serial_of(self.path("other.pem")))

    def test_what_is_broken_leaves_the_old_one_in_force(self):
        sluice = self.serve_tls()
        old = serial_of(self.path("site.pem"))
        shutil.copy(self.path("site.pem"), self.path("old.pem"))
        self.authority.issue("site.pem", "lost.key", "site.test", "127.0.0.1")
        sluice.wait_for(r"changed certificates cannot be used; the old ones stay in force why=.*site\.key", 30)
        self.assertEqual(served_serial(sluice.port), old)
        self.assertEqual(sluice.metric('sluice_tls_reloads_total{result="failed"}'), 1)
        # Nor does a reload go by halves.
        sluice.reload(self.config(self.tls, "rules: [{ name: all, key: ip, limit: 1/min }]"))
        sluice.wait_for(r"reload failed.*site\.key")
        twice = self.curl("-o", "/dev/null", "-w", "%{http_code} ",
                          f"https://127.0.0.1:{sluice.port}/v1/orders?page=[1-2]").stdout
        self.assertEqual(twice, "200 200 ")
        os.rename(self.path("lost.key"), self.path("site.key"))
        wait_until(lambda: served_serial(sluice.port) == serial_of(self.path("site.pem")), "repaired", WITHIN)
        self.assertEqual(sluice.count("changed certificates cannot be used"), 1)


NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path {dir}/body;
  server {{ listen 127.0.0.1:{port} ssl; ssl_certificate {dir}/up.pem; ssl_certificate_key {dir}/up.key;
    ssl_client_certificate {dir}/ca.pem; ssl_verify_client optional;
    location / {{ return 200 "sni=$ssl_server_name client=$ssl_client_verify proto=$ssl_protocol\\n"; }} }} }}
"""


class Upstreams(Tls):
    """An nginx with TLS as the upstream."""

    def serve_upstream(self, *names):
        self.assertIsNotNone(shutil.which("nginx"), "nginx is not installed")
        self.authority.issue("up.pem", "up.key", *names)
        self.upstream = free_port()
        nginx = start_nginx(NGINX.format(dir=self.folder, port=self.upstream), self.folder, self.upstream)
        self.addCleanup(lambda: (nginx.terminate(), nginx.wait(10)))

    def config_for(self, upstream_tls, host="127.0.0.1"):
        return settings(self.upstream, "rules: []").replace(
            f"http://127.0.0.1:{self.upstream}\"", f"https://{host}:{self.upstream}\", upstream_tls: {upstream_tls}")

    def test_its_certificate_must_hold(self):
        self.serve_upstream("orders.internal", "127.0.0.1")
        Authority(self.folder, "stranger")
        sluice = self.serve(self.config_for("{ ca: ca.pem }"))
        status, _, body = ask(sluice.port, "/")
        self.assertEqual(status, 200)
        self.assertIn(b"sni= client=NONE proto=TLSv1.", body)  # an address is no name to ask for
        rows = (("{ ca: stranger.pem }", 502, b""), ("{ ca: ca.pem, server_name: orders.internal }", 200,
                                                     b"sni=orders.internal "),
                ("{ ca: ca.pem, server_name: other.internal }", 502, b""), ("{ verify: false }", 200, b""),
                ("{}", 502, b""))  # the system does not know our authority
        for upstream_tls, expected, text in rows:
            with self.subTest(upstream_tls):
                sluice.reload(self.config_for(upstream_tls))
                status, _, body = ask(sluice.port, "/")
                self.assertEqual(status, expected)
                self.assertIn(text, body)

    def test_a_name_is_asked_for_and_a_certificate_shown(self):
        self.serve_upstream("localhost")
        self.authority.issue("own.pem", "own.key", "gateway.internal")
        sluice = self.serve(self.config_for("{ ca: ca.pem, certificate: own.pem, key: own.key }", "localhost"))
        self.assertIn(b"sni=localhost client=SUCCESS", ask(sluice.port, "/")[2])

    def test_another_authority_is_believed_once_its_file_is_there(self):
        self.serve_upstream("127.0.0.1")
        Authority(self.folder, "stranger")
        shutil.copy(self.path("stranger.pem"), self.path("believed.pem"))
        sluice = self.serve(self.config_for("{ ca: believed.pem }"))
        self.assertEqual(ask(sluice.port, "/")[0], 502)
        failures = sluice.metric(f'sluice_upstream_failures_total{{upstream="127.0.0.1:{self.upstream}"}}')
        self.assertGreaterEqual(failures, 1)
        shutil.copy(self.authority.ca, self.path("believed.pem"))
        wait_until(lambda: ask(sluice.port, "/")[0] == 200, "the new authority is believed", WITHIN)
        self.assertEqual(sluice.metric('sluice_tls_reloads_total{result="succeeded"}'), 1)


if __name__ == "__main__":
    unittest.main()
