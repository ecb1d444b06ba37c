"""Real clients and servers: curl, wrk, nginx. Load is bounded in time and goes to this machine."""
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
import unittest

from load import wrk
from processes import Sluice, ask, free_port, gateway, settings, start_nginx


class Curl(unittest.TestCase):
    def curl(self, *arguments):
        return subprocess.run(["curl", "-s", "-m", "30", *arguments], capture_output=True, check=True).stdout

    def test_the_loop_of_the_readme_gets_200s_then_a_429(self):
        with gateway("rules: [{ name: api, key: api_key, limit: 30/min, burst: 5 }]") as (sluice, _):
            url = f"http://127.0.0.1:{sluice.port}/v1/orders"
            codes = [self.curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "X-API-Key: ann", url).decode()
                     for _ in range(7)]
            self.assertEqual(codes, ["200"] * 5 + ["429"] * 2)
            head = self.curl("-i", "-H", "X-API-Key: ann", url).decode()
            wait = int(re.search(r"(?i)\r\nretry-after: (\d+)\r\n", head).group(1))
            self.assertRegex(head, r'\r\nRateLimit: "api";r=0;t=\d+\r\n')
            time.sleep(wait)
            self.assertEqual(self.curl("-o", "/dev/null", "-w", "%{http_code}", "-H", "X-API-Key: ann", url), b"200")

    def test_many_requests_on_kept_connections(self):
        with gateway("rules: []") as (sluice, orders):
            url = f"http://127.0.0.1:{sluice.port}/v1/orders?page=[1-50]"
            codes = self.curl("-o", "/dev/null", "-w", "%{http_code} %{num_connects}\n", url).decode().split("\n")[:-1]
            self.assertEqual([line.split()[0] for line in codes], ["200"] * 50)
            self.assertEqual(sum(int(line.split()[1]) for line in codes), 1)
            self.assertEqual(orders.count_requests(), 50)

    def test_events_arrive_one_by_one(self):
        with gateway("rules: [{ name: streams, key: api_key, algorithm: concurrency, limit: 1 }]") as (sluice, _):
            url = f"http://127.0.0.1:{sluice.port}/v1/stream?events=4&every=600ms"
            with subprocess.Popen(["curl", "-sN", "-m", "30", "-H", "X-API-Key: ann", url], stdout=subprocess.PIPE,
                                  text=True) as curl:
                arrived = {line.strip(): time.monotonic() for line in curl.stdout if line.startswith("data:")}
            self.assertEqual(curl.returncode, 0)
            self.assertEqual(list(arrived), [f'data: {{"event":{number}}}' for number in (1, 2, 3, 4)])
            times = list(arrived.values())
            for first, second in zip(times, times[1:]):
                self.assertGreater(second - first, 0.3)  # in one lump there would be next to nothing between them


class Wrk(unittest.TestCase):
    def test_admits_the_rate_and_the_burst_and_not_one_more(self):
        with gateway("rules: [{ name: api, key: api_key, limit: 1000/s, burst: 1000 }]") as (sluice, orders):
            counts, outside = wrk(sluice.port, 10)
            admitted = orders.count_requests()
            print(f"\nadmitted {admitted} in {counts['seconds']} s ({outside:.3f} s from outside), "
                  f"denied {int(counts['limited'])}")
            self.assertLessEqual(admitted, 1000 + 1000 * outside)
            self.assertGreaterEqual(admitted, 0.99 * (1000 + 1000 * counts["seconds"]))
            self.assertEqual(counts["other"], 0)
            self.assertEqual(counts["errors"], 0)
            self.assertGreater(counts["limited"], 0)

    def test_reloads_broken_or_not_lose_no_request(self):
        rules = "rules: [{{ name: api, key: api_key, limit: 1000000/s, burst: {} }}]"
        with gateway(rules.format(1_000_000)) as (sluice, orders):
            result = {}
            load = threading.Thread(target=lambda: result.update(wrk(sluice.port, 6, 50)[0]))
            load.start()
            time.sleep(1)
            for burst in (900_000, "much", 800_000, "0", 700_000):
                sluice.reload(settings(orders.port, rules.format(burst)))
                time.sleep(0.3)
            load.join()
            self.assertEqual(result["other"], 0)
            self.assertEqual(result["limited"], 0)
            self.assertEqual(result["errors"], 0)
            self.assertGreater(result["ok"], 1000)
            self.assertIn('"generation":4', sluice.get_admin("/v1/rules"))


NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log;
events {{ worker_connections 256; }}
http {{ access_log off; client_body_temp_path {dir}/body; client_max_body_size 100m;
  server {{ listen 127.0.0.1:{port}; root {dir}/www;
    location /files/ {{ dav_methods PUT; create_full_put_path on; }}
    location /empty {{ return 204; }}
    location /moved {{ return 301 /files/; }} }} }}
"""


class Nginx(unittest.TestCase):
    """An nginx as the upstream: files in both directions."""

    def setUp(self):
        self.assertIsNotNone(shutil.which("nginx"), "nginx is not installed")
        self.folder = tempfile.TemporaryDirectory()
        os.mkdir(f"{self.folder.name}/www")
        os.chmod(f"{self.folder.name}/www", 0o777)
        self.port = free_port()
        self.nginx = start_nginx(NGINX.format(dir=self.folder.name, port=self.port), self.folder.name, self.port)
        self.sluice = Sluice(settings(self.port, "rules: []"), self.folder.name)

    def tearDown(self):
        code = self.sluice.stop()
        self.nginx.terminate()
        self.nginx.wait(10)
        self.folder.cleanup()
        self.assertEqual(code, 0)

    def test_large_bodies_pass_unchanged_in_both_directions(self):
        data = os.urandom(20_000_000)
        for form in ([], ["-H", "Transfer-Encoding: chunked"]):
            with self.subTest(form):
                path = f"{self.folder.name}/data"
                with open(path, "wb") as file:
                    file.write(data)
                url = f"http://127.0.0.1:{self.sluice.port}/files/a"
                put = subprocess.run(["curl", "-s", "-m", "60", "-o", "/dev/null", "-w", "%{http_code}", *form,
                                      "-T", path, url], capture_output=True, text=True, check=True)
                self.assertIn(put.stdout, ("201", "204"))
                got = subprocess.run(["curl", "-s", "-m", "60", "--limit-rate", "30M", url], capture_output=True,
                                     check=True)
                self.assertEqual(hashlib.sha256(got.stdout).digest(), hashlib.sha256(data).digest())

    def test_answers_without_a_body_leave_the_connection_usable(self):
        for path, status in (("/empty", 204), ("/moved", 301), ("/nothing", 404)):
            for method in ("GET", "HEAD"):
                self.assertEqual(ask(self.sluice.port, path, method=method)[0], status)
        output = subprocess.run(
            ["curl", "-s", "-m", "20", "-w", "%{http_code} ", "-I", f"http://127.0.0.1:{self.sluice.port}/empty",
             "--next", "-s", "-w", "%{http_code} ", "-o", "/dev/null", f"http://127.0.0.1:{self.sluice.port}/moved",
             "--next", "-s", "-w", "%{http_code} ", f"http://127.0.0.1:{self.sluice.port}/empty"],
            capture_output=True, text=True, check=True).stdout
        self.assertRegex(output, r"204 301 204 $")


if __name__ == "__main__":
    unittest.main()
