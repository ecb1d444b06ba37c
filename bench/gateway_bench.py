#!/usr/bin/env python3
"""The gateway beside nginx, with and without limit_req, and HAProxy with a stick table, on the same upstream.

Each round gives every proxy the same requests at the same rate, in rotated order. What counts is the median
over the rounds, and its ratio to nginx with limit_req.

    small     small answers on kept connections: CPU microseconds a request, user and system
    64k       answers of 64 KiB on kept connections
    new       a new connection for each request
    tls       small answers on kept connections over TLS
    tls-new   a TLS handshake for each request
    denied    every request is denied
    idle      memory for each of 10,000 connections that wait after a request
    latency   p50 and p99 at half of what the slowest of them can do, and what the upstream alone takes

    bench/gateway_bench.py [--only small,idle] [--rounds 7] [--seconds 2] [--load 1.0] [--sluice PROGRAM]
"""
import argparse
import os
import shutil
import statistics
import sys
import tempfile

from gateway import load
from gateway.proxies import BASE, NAMES, PROGRAMS, make_certificate, start_proxy, start_upstream

IDLE = 10_000
LIMITING = tuple(name for name in NAMES if name != "nginx")
# name: (title, path, requests a second, how they are sent, who takes part, the status that is expected)
CPU_SCENARIOS = {
    "small": ("small answers", "/orders", 8000, load.on_kept_connections, NAMES, 2),
    "64k": ("answers of 64 KiB", "/64k", 3000, load.on_kept_connections, NAMES, 2),
    "new": ("a new connection for each request", "/orders", 2000, load.on_new_connections, NAMES, 2),
    "tls": ("small answers over TLS", "/orders", 6000, load.on_kept_connections, NAMES, 2),
    "tls-new": ("a TLS handshake for each request", "/orders", 400, load.on_new_connections, NAMES, 2),
    "denied": ("all denied", "/denied", 8000, load.on_kept_connections, LIMITING, 4),
}
SCENARIOS = (*CPU_SCENARIOS, "idle", "latency")


class Bench:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        self.upstream = start_upstream(folder)
        self.running = [self.upstream]
        self.proxies = {name: self.start(name) for name in NAMES}
        self.tls_proxies = {}

    def start(self, name, tls=False):
        proxy = start_proxy(name, self.folder, self.upstream, self.options.sluice, tls)
        self.running.append(proxy)
        return proxy

    def stop(self):
        for server in self.running:
            server.stop()

    def in_rounds(self, names, measure):
        """`measure(name)` of each in rotated order, once to warm up and then for each round."""
        samples = {name: [] for name in names}
        order = list(names)
        for index in range(-1, self.options.rounds):
            order = order[1:] + order[:1]
            for name in order:
                sample = measure(name)
                if index >= 0:
                    samples[name].append(sample)
        return samples

    def cpu(self, scenario):
        title, path, rate, send, names, expected = CPU_SCENARIOS[scenario]
        rate = int(rate * self.options.load)
        tls = scenario.startswith("tls")
        if tls and not self.tls_proxies:
            self.tls_proxies = {name: self.start(name, tls=True) for name in NAMES}

        def measure(name):
            proxy = (self.tls_proxies if tls else self.proxies)[name]
            before = proxy.cpu_seconds()
            counts = send(f"{'https' if tls else 'http'}://127.0.0.1:{proxy.port}{path}", rate, self.options.seconds)
            used = proxy.cpu_seconds() - before
            others = sum(counts.values()) - counts[expected]
            # The first two of the denied are not.
            if counts[expected] == 0 or others > (2 if scenario == "denied" else 0):
                sys.exit(f"{name}, {title}: unexpected answers {counts}")
            return 1e6 * used / sum(counts.values())

        samples = self.in_rounds(names, measure)
        show_cpu(f"{title}, {rate}/s offered", self.options.rounds, samples)

    def idle(self):
        per_connection = {}
        for name in NAMES:
            proxy = self.start(name)
            first = load.idle_connections(proxy.port, 10)
            before = proxy.resident_bytes()
            connections = load.idle_connections(proxy.port, IDLE)
            per_connection[name] = (proxy.resident_bytes() - before) / IDLE
            for connection in first + connections:
                connection.close()
            self.running.pop().stop()
        print(f"\n{IDLE} idle connections\n{'':30} {'bytes each':>15} {'':16} {'ratio':>8}")
        for name, size in per_connection.items():
            print(f"{name:30} {size:15.0f} {'':16} {size / per_connection[BASE]:8.2f}")

    def latency(self):
        urls = {name: f"http://127.0.0.1:{proxy.port}/orders" for name, proxy in self.proxies.items()}
        most = {name: load.most_per_second(url, self.options.seconds) for name, url in urls.items()}
        rate = int(min(most.values()) / 2)
        urls["the upstream alone"] = f"http://127.0.0.1:{self.upstream.port}/orders"
        samples = self.in_rounds(urls, lambda name: load.latencies(urls[name], rate, self.options.seconds))
        print(f"\nlatency at half load: {rate}/s offered, medians of {self.options.rounds} interleaved rounds\n"
              f"{'':30} {'p50 us':>15} {'p99 us':>16} {'most/s':>10}")
        for name, values in samples.items():
            middle, high = (statistics.median(column) for column in zip(*values))
            print(f"{name:30} {middle:15.0f} {high:16.0f} " + (f"{most[name]:10.0f}" if name in most else f"{'-':>10}"))


def show_cpu(title, rounds, samples):
    print(f"\n{title}, medians of {rounds} interleaved rounds")
    print(f"{'':30} {'CPU us/request':>15} {'min - max':>16} {'ratio':>8}")
    base = statistics.median(samples[BASE])
    for name, values in samples.items():
        median = statistics.median(values)
        spread = f"{min(values):.1f} - {max(values):.1f}"
        print(f"{name:30} {median:15.1f} {spread:>16} {median / base:8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(SCENARIOS), help="scenarios, with commas between them")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2, help="of one measurement")
    parser.add_argument("--load", type=float, default=1.0, help="times the rate that a scenario offers")
    parser.add_argument("--sluice", default="build/release/bin/sluice", type=os.path.abspath)
    options = parser.parse_args()
    chosen = options.only.split(",")
    unknown = set(chosen) - set(SCENARIOS)
    if unknown:
        parser.error(f"no scenario {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    for program in PROGRAMS:
        if shutil.which(program) is None:
            sys.exit(f"gateway_bench needs {program}")
    load.allow_open_files(IDLE + 1000)
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        make_certificate(folder)
        bench = Bench(folder, options)
        try:
            for scenario in chosen:
                if scenario in CPU_SCENARIOS:
                    bench.cpu(scenario)
                else:
                    getattr(bench, scenario)()
        finally:
            bench.stop()


if __name__ == "__main__":
    main()
