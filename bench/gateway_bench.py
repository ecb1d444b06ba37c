#!/usr/bin/env python3
"""Server CPU per request: the gateway beside nginx with limit_req, in front of the same upstream.

Both proxies run at once, each with one worker on core 0; the load generator and the upstream (an
nginx that answers a few bytes) have core 1. Each round gives every proxy the same number of requests
at the same offered rate, in rotated order; what counts is the median of CPU microseconds a request
(user and system, from /proc) and the ratio of the medians.

    bench/gateway_bench.py [--rounds 7] [--seconds 3] [--rate 8000] [--sluice build/release/bin/sluice]
"""
import argparse
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

CONNECTIONS = 50

NGINX_UPSTREAM = """
worker_processes 1; daemon off; pid {dir}/upstream.pid; error_log {dir}/upstream.log;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 100000000;
  server {{ listen 127.0.0.1:{port} reuseport; location / {{ default_type application/json;
    return 200 '{{"orders":[]}}'; }} }} }}
"""

NGINX_PROXY = """
worker_processes 1; daemon off; pid {dir}/proxy.pid; error_log {dir}/proxy.log crit;
events {{ worker_connections 1024; }}
http {{ access_log off; keepalive_requests 100000000;
  limit_req_zone $http_x_api_key zone=open:32m rate=1000000r/s;
  limit_req_zone $http_x_api_key zone=shut:32m rate=1r/m;
  limit_req_status 429;
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 100000000; }}
  server {{ listen 127.0.0.1:{port};
    location / {{ limit_req zone=open burst=100000 nodelay; proxy_pass http://up;
      proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; }}
    location /denied {{ limit_req zone=shut; proxy_pass http://up; }} }} }}
"""

SLUICE = """
threads: 1
gateway: {{ listen: "127.0.0.1:{port}", upstream: "http://127.0.0.1:{upstream}" }}
log: {{ level: warning }}
identity: {{ api_key: {{ header: X-API-Key }} }}
rules:
  - {{ name: open, match: {{ path: /orders }}, key: api_key, limit: 1000000/s, burst: 100000 }}
  - {{ name: shut, match: {{ path: /denied }}, key: api_key, limit: 1/day }}
"""


def free_port():
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        return sock.getsockname()[1]


def wait_for(port):
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 0.2).close()
            return
        except OSError:
            time.sleep(0.05)
    sys.exit(f"nothing listens on port {port}")


def family(pid):
    """The process and all below it."""
    children = open(f"/proc/{pid}/task/{pid}/children").read().split()
    return [pid] + [member for child in children for member in family(int(child))]


def cpu_seconds(pid):
    ticks = 0
    for member in family(pid):
        fields = open(f"/proc/{member}/stat").read().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / os.sysconf("SC_CLK_TCK")


class Servers:
    def __init__(self, folder, sluice):
        self.folder = folder
        self.processes = []
        self.upstream = free_port()
        self.start("upstream", NGINX_UPSTREAM.format(dir=folder, port=self.upstream), 1,
                   ["nginx", "-c", "{file}"], self.upstream)
        self.ports = {"nginx": free_port(), "sluice": free_port()}
        self.pids = {}
        self.pids["nginx"] = self.start(
            "proxy", NGINX_PROXY.format(dir=folder, port=self.ports["nginx"], upstream=self.upstream),
            0, ["nginx", "-c", "{file}"], self.ports["nginx"])
        self.pids["sluice"] = self.start(
            "sluice", SLUICE.format(port=self.ports["sluice"], upstream=self.upstream), 0,
            [sluice, "serve", "--config", "{file}"], self.ports["sluice"])

    def start(self, name, config, core, command, port):
        path = os.path.join(self.folder, name + ".conf")
        with open(path, "w") as file:
            file.write(config)
        argv = ["taskset", "-c", str(core)] + [part.format(file=path) for part in command]
        process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.processes.append(process)
        wait_for(port)
        return process.pid

    def stop(self):
        for process in self.processes:
            process.terminate()
        for process in self.processes:
            process.wait(10)


def load(port, path, rate, seconds):
    """Offers `rate` requests a second for `seconds`; returns how many were answered, by status."""
    output = subprocess.run(
        ["taskset", "-c", "1", "h2load", "--h1", "-t1", f"-c{CONNECTIONS}", f"-D{seconds}",
         f"--rps={rate / CONNECTIONS}", "-H", "X-API-Key: ann", f"http://127.0.0.1:{port}{path}"],
        capture_output=True, text=True, check=True).stdout
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output)
    return [int(code) for code in codes.groups()]


def measure(servers, path, good, options):
    samples = {name: [] for name in servers.pids}
    order = list(servers.pids)
    for round_number in range(-1, options.rounds):
        order = order[1:] + order[:1]
        for name in order:
            before = cpu_seconds(servers.pids[name])
            codes = load(servers.ports[name], path, options.rate, options.seconds)
            used = cpu_seconds(servers.pids[name]) - before
            if sum(codes) != codes[good] and not (good == 2 and sum(codes) - codes[good] <= 1):
                sys.exit(f"{name} {path}: unexpected answers {codes}")
            if round_number >= 0:
                samples[name].append(1e6 * used / sum(codes))
    return samples


def report(title, samples):
    base = statistics.median(samples["nginx"])
    print(f"\n{title}")
    print(f"{'':30} {'CPU us/request':>15} {'min - max':>16} {'x nginx':>8}")
    for name, values in samples.items():
        median = statistics.median(values)
        spread = f"{min(values):.1f} - {max(values):.1f}"
        print(f"{name:30} {median:15.1f} {spread:>16} {median / base:8.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=3)
    parser.add_argument("--rate", type=int, default=8000, help="requests a second, offered to each")
    parser.add_argument("--sluice", default="build/release/bin/sluice")
    options = parser.parse_args()
    for tool in ("nginx", "h2load", "taskset"):
        if shutil.which(tool) is None:
            sys.exit(f"gateway_bench needs {tool}")
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        servers = Servers(folder, os.path.abspath(options.sluice))
        try:
            passed = measure(servers, "/orders", 0, options)
            denied = measure(servers, "/denied", 2, options)
        finally:
            servers.stop()
    rate = f"{options.rate}/s offered, medians of {options.rounds} interleaved rounds"
    report(f"Gateway, small answers, all admitted ({rate})", passed)
    report(f"Gateway, all denied ({rate})", denied)


if __name__ == "__main__":
    main()
