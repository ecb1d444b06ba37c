"""Slow heads, slow bodies and slow readers, all at once, by a tool made for it (slowhttptest): they cost nobody else
anything, and are gone when their time is over."""
import os
import re
import subprocess
import tempfile
import threading
import time
import unittest

from processes import Sluice, Worker, ask, free_port, settings, start_nginx

SECONDS = 12
LARGE = 64 << 20  # more than the kernel takes for a client that does not read
BOUNDS = "header_timeout: 2s, body_timeout: 2s, write_timeout: 2s, "
# Slow readers are few, since the kernel keeps some megabytes for each.
ATTACKS = {
    "heads": ["-H", "-c", "200", "-i", "1", "-u", "/small"],
    "bodies": ["-B", "-c", "200", "-i", "3", "-s", "1000000", "-u", "/up"],  # longer than a body may stand still
    "readers": ["-X", "-c", "40", "-n", "1", "-z", "5", "-w", "10", "-y", "20", "-u", "/large"],
}

# An upstream that answers a POST when it has read all of it.
NGINX = """
daemon off; worker_processes 1; pid {dir}/pid; error_log {dir}/error.log crit;
events {{ worker_connections 2048; }}
http {{ access_log off; client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy;
  server {{ listen 127.0.0.1:{port} backlog=1024; root {dir}/www;
    location /small {{ return 200 "small\n"; }}
    location /up {{ proxy_pass http://127.0.0.1:{port}/small; }} }} }}
"""


class GoodClient(Worker):
    """Asks all the while; `slowest` is what it has waited for one answer, in seconds."""

    def __init__(self, port):
        super().__init__()
        self.port = port
        self.stopping = threading.Event()
        self.answers = []
        self.slowest = 0.0

    def work(self):
        while not self.stopping.wait(0.01):
            start = time.monotonic()
            self.answers.append(ask(self.port, "/small")[::2])
            self.slowest = max(self.slowest, time.monotonic() - start)


class SlowClients(unittest.TestCase):
    def attack(self, port, arguments):
        *options, path = arguments
        return subprocess.Popen(["slowhttptest", *options, f"http://127.0.0.1:{port}{path}",
                                 "-r", "200", "-l", str(SECONDS), "-p", "5", "-v", "1"],
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def test_they_cost_nobody_anything_and_are_ended_in_time(self):
        with tempfile.TemporaryDirectory() as folder:
            os.mkdir(f"{folder}/www")
            with open(f"{folder}/www/large", "wb") as large:
                large.truncate(LARGE)
            port = free_port()
            nginx = start_nginx(NGINX.format(dir=folder, port=port), folder, port)
            self.addCleanup(nginx.wait, 20)
            self.addCleanup(nginx.terminate)
            sluice = Sluice(settings(port, "rules: []", BOUNDS), folder)
            self.addCleanup(lambda: self.assertEqual(sluice.stop(), 0))
            good = GoodClient(sluice.port)
            good.start()
            try:
                attacks = {name: self.attack(sluice.port, arguments) for name, arguments in ATTACKS.items()}
                most, least = self.watch_connections(sluice, attacks)
            finally:
                good.stopping.set()
                good.join()
            for name, attack in attacks.items():
                with self.subTest(name):
                    said = re.sub(r"\x1b\[[\d;]*m", "", attack.stdout.read())
                    attack.stdout.close()
                    self.assertRegex(said, r"service available: +YES", said)
                    self.assertNotRegex(said, r"service available: +NO", said)
                    if name != "readers":  # they do not see the end for want of reading
                        self.assertIn("No open connections left", said)
            print(f"\n{most} connections at once, later {least}; beside them {len(good.answers)} answers, "
                  f"the slowest in {good.slowest:.2f} s")
            self.assertGreater(most, 200)
            self.assertLess(least, 10)
            self.assertEqual(set(good.answers), {(200, b"small\n")})
            self.assertGreater(len(good.answers), 50)
            self.assertLess(good.slowest, 5)
            deadline = time.monotonic() + 10
            while sluice.metric("sluice_gateway_connections") > 0 and time.monotonic() < deadline:
                time.sleep(0.05)
            for gauge in ("sluice_gateway_connections", "sluice_gateway_requests_in_flight"):
                self.assertEqual(sluice.metric(gauge), 0)

    def watch_connections(self, sluice, attacks):
        """How many connections were open, at most and from then on at least, while the slow readers held on."""
        most = least = 0
        begin = time.monotonic()
        while time.monotonic() - begin < SECONDS - 2:
            self.assertIsNone(attacks["readers"].poll())
            now = sluice.metric("sluice_gateway_connections")
            most, least = (now, now) if now > most else (most, min(least, now))
            time.sleep(0.1)
        for attack in attacks.values():
            attack.wait()
        return most, least


if __name__ == "__main__":
    unittest.main()
