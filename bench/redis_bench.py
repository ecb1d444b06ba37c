#!/usr/bin/env python3
"""Counters in Redis beside what people write by hand, on one redis-server with one core.

Each round gives each of them the same server for some seconds, in rotated order, with as many decisions on their
way. What counts is the median over the rounds, and its ratio to one script call a decision.

    script     redis-benchmark: a token bucket in Lua, one call a decision
    incr       redis-benchmark: INCR alone, which is no rate limit yet: it has no end and charges denials
    window     redis-benchmark: INCR and EXPIRE in Lua, the usual fixed window
    one        Sluice's store: one rule a request, on keys in turn
    three      three rules a request
    denied     one rule, nearly all denied; without the memory of denials
    hot        one rule, one key for all
    leased     the engine, one rule with leases, one key for all: two threads, on both cores
    exhausted  the same with a limit of 2,000,000 a second, all of which is spent
    gateway    one rule a request through the gateway to the Orders API and back; its load is wrk, on the same core

    bench/redis_bench.py [--rounds 7] [--seconds 2] [--only script,one] [--load PROGRAM]
"""
import argparse
import json
import os
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import time

SERVER_CORE, OTHER_CORE = "0", "1"
CLIENTS, PIPELINE = 50, 16
LOOPS = 4  # of Sluice, as on a machine of four cores; here they share one
KEYS = 10_000

BUCKET = """
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local tat = math.max(tonumber(redis.call('GET', KEYS[1]) or 0), now) + ARGV[1]
if tat > now + ARGV[2] then return {0, tat - now - ARGV[2]} end
redis.call('SET', KEYS[1], string.format('%.0f', tat), 'PX', math.ceil((tat - now) / 1000))
return {1, 0}
"""
WINDOW = """
local count = redis.call('INCR', KEYS[1])
if count == 1 then redis.call('PEXPIRE', KEYS[1], ARGV[1]) end
return count
"""


GATEWAY = """
gateway: {{ listen: "127.0.0.1:{port}", upstream: "http://127.0.0.1:{upstream}" }}
threads: 1
store: {{ redis: {{ url: "redis://127.0.0.1:{redis}", deadline: 100ms }} }}
identity: {{ api_key: {{ header: X-API-Key }} }}
rules: [{{ name: api, key: api_key, limit: 1000000/s }}]
"""
KEYS_IN_TURN = """
local turn = 0
function request()
  turn = (turn + 1) % {}
  wrk.headers["X-API-Key"] = "client-" .. turn
  return wrk.format()
end
"""


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def wait_for_port(port):
    deadline = time.monotonic() + 10
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            if time.monotonic() > deadline:
                sys.exit("the gateway does not listen")
            time.sleep(0.05)


class Server:
    def __init__(self, folder):
        self.socket = os.path.join(folder, "cli.sock")
        self.process = subprocess.Popen(
            ["taskset", "-c", SERVER_CORE, "redis-server", "--port", "0", "--unixsocket", self.socket, "--save", "",
             "--appendonly", "no", "--dir", folder], stdout=subprocess.DEVNULL)
        self.wait()
        # A port of the kernel's choice is nothing that redis-server knows: so one that was free.
        self.port = self.listen()

    def wait(self):
        deadline = time.monotonic() + 10
        while self.cli("PING") != "PONG":
            if time.monotonic() > deadline:
                sys.exit("redis-server does not answer")
            time.sleep(0.05)

    def listen(self):
        port = free_port()
        self.cli("CONFIG", "SET", "port", str(port))
        return port

    def cli(self, *command):
        return subprocess.run(["redis-cli", "-s", self.socket, *command], capture_output=True, text=True).stdout.strip()

    def cpu_seconds(self):
        return sum(float(used) for used in re.findall(r"used_cpu_(?:sys|user):([\d.]+)", self.cli("INFO", "cpu")))

    def bytes_a_key(self):
        key = self.cli("RANDOMKEY")
        return int(self.cli("MEMORY", "USAGE", key)) if key else 0

    def stop(self):
        self.process.terminate()
        self.process.wait()


class Bench:
    def __init__(self, server, options):
        self.server, self.options = server, options
        self.bucket = server.cli("SCRIPT", "LOAD", BUCKET)
        self.window = server.cli("SCRIPT", "LOAD", WINDOW)
        self.counts = {}  # how many fill the time, learnt in the round that warms up

    def redis_benchmark(self, *command):
        """Decisions a second, with a count that takes about as long as the others run."""
        count = self.counts.get(command, 100_000)
        output = subprocess.run(
            ["taskset", "-c", OTHER_CORE, "redis-benchmark", "-p", str(self.server.port), "-c", str(CLIENTS), "-P",
             str(PIPELINE), "-n", str(count), "-r", str(KEYS), "--csv", *command], capture_output=True, text=True,
            check=True).stdout
        rate = float(output.splitlines()[-1].split('","')[1])
        self.counts[command] = int(rate * self.options.seconds)
        return count, rate

    def sluice(self, keys, rules, limit):
        done = subprocess.run(
            ["taskset", "-c", OTHER_CORE, self.options.load, str(self.server.port), str(LOOPS),
             str(CLIENTS * PIPELINE),
             str(self.options.seconds), str(keys), str(rules), str(limit)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"redis_store_load ended with {done.returncode}: {done.stdout}{done.stderr}")
        told = json.loads(done.stdout)
        return told["per_second"] * self.options.seconds, told["per_second"]

    def leased(self, loops, limit):
        done = subprocess.run([self.options.leased_load, str(self.server.port), str(loops), str(self.options.seconds),
                               str(limit), "1"], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"leased_load ended with {done.returncode}: {done.stdout}{done.stderr}")
        told = json.loads(done.stdout)
        return told["per_second"] * self.options.seconds, told["per_second"]

    def gateway(self):
        folder = os.path.dirname(self.server.socket)
        port, upstream = free_port(), free_port()
        with open(os.path.join(folder, "sluice.yaml"), "w") as file:
            file.write(GATEWAY.format(port=port, upstream=upstream, redis=self.server.port))
        with open(os.path.join(folder, "keys.lua"), "w") as file:
            file.write(KEYS_IN_TURN.format(KEYS))
        commands = (("orders_api", "--listen", f"127.0.0.1:{upstream}"),
                    ("sluice", "serve", "--config", os.path.join(folder, "sluice.yaml")))
        programs = [subprocess.Popen(["taskset", "-c", OTHER_CORE, os.path.join(self.options.bin, name), *arguments],
                                     stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                    for name, *arguments in commands]
        try:
            wait_for_port(port)
            output = subprocess.run(
                ["taskset", "-c", OTHER_CORE, "wrk", "-t1", f"-c{CLIENTS}", f"-d{self.options.seconds}s", "-s",
                 os.path.join(folder, "keys.lua"), f"http://127.0.0.1:{port}/v1/orders"], capture_output=True, text=True,
                check=True).stdout
        finally:
            for program in programs:
                program.terminate()
                program.wait()
        if "Non-2xx" in output:
            sys.exit(f"the gateway denied or failed:\n{output}")
        rate = float(re.search(r"Requests/sec: *([\d.]+)", output).group(1))
        return rate * self.options.seconds, rate

    def measure(self, name):
        self.server.cli("FLUSHALL")
        before = self.server.cpu_seconds()
        decided, rate = SCENARIOS[name][1](self)
        used = self.server.cpu_seconds() - before
        return rate, 1e6 * used / decided, self.server.bytes_a_key()

    def run(self):
        names = [name for name in SCENARIOS if name in self.options.only]
        samples = {name: [] for name in names}
        order = list(names)
        for index in range(-1, self.options.rounds):
            order = order[1:] + order[:1]
            for name in order:
                sample = self.measure(name)
                if index >= 0:
                    samples[name].append(sample)
        return {name: [statistics.median(column) for column in zip(*taken)] for name, taken in samples.items()}


SCENARIOS = {
    "script": ("a token bucket in Lua, one call each",
               lambda b: b.redis_benchmark("EVALSHA", b.bucket, "1", "key:__rand_int__", "1000", "1000000")),
    "incr": ("INCR, no limit", lambda b: b.redis_benchmark("INCR", "key:__rand_int__")),
    "window": ("INCR and EXPIRE in Lua", lambda b: b.redis_benchmark("EVALSHA", b.window, "1", "key:__rand_int__",
                                                                     "60000")),
    "one": ("sluice, one rule", lambda b: b.sluice(KEYS, 1, 1000)),
    "three": ("sluice, three rules", lambda b: b.sluice(KEYS, 3, 1000)),
    "denied": ("sluice, denied", lambda b: b.sluice(100, 1, 1)),
    "hot": ("sluice, one key", lambda b: b.sluice(1, 1, 1_000_000)),
    "leased": ("sluice, one key, leased by two threads", lambda b: b.leased(2, 100_000_000)),
    "exhausted": ("... and its limit spent", lambda b: b.leased(2, 2_000_000)),
    "gateway": ("sluice, one rule, through the gateway", lambda b: b.gateway()),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=int, default=2)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(SCENARIOS))
    parser.add_argument("--load", default="build/release/bench/redis_store_load")
    parser.add_argument("--bin", default="build/release/bin", help="where sluice and orders_api are")
    parser.add_argument("--leased-load", default="build/release/bench/leased_load")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = Server(folder)
        try:
            results = Bench(server, options).run()
        finally:
            server.stop()
    base = results.get("script", [None])[0]
    print(f"{CLIENTS * PIPELINE} decisions on their way, {KEYS} keys, medians of {options.rounds} interleaved rounds\n"
          f"{'':40} {'a second':>10} {'ratio':>7} {'server us':>10} {'bytes a key':>12}")
    for name, (rate, cpu, size) in results.items():
        ratio = f"{rate / base:7.2f}" if base else f"{'-':>7}"
        print(f"{SCENARIOS[name][0]:40} {rate:10.0f} {ratio} {cpu:10.2f} {size:12.0f}")


if __name__ == "__main__":
    main()
