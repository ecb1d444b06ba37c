"""Load on one proxy, always at a rate that is given, so that the numbers do not depend on who is faster."""
import re
import resource
import socket
import statistics
import subprocess
import sys
import tempfile

from gateway.proxies import KEY, OTHER_CORE

CONNECTIONS = 50


def h2load(url, *arguments):
    """Runs h2load over HTTP/1.1; returns how many answers came, by the first digit of their status."""
    output = subprocess.run(["taskset", "-c", OTHER_CORE, "h2load", "--h1", "-t1", *arguments, "-H", f"X-API-Key: {KEY}",
                             url], capture_output=True, text=True, check=True).stdout
    codes = re.search(r"status codes: (\d+) 2xx, (\d+) 3xx, (\d+) 4xx, (\d+) 5xx", output)
    return {digit: int(count) for digit, count in zip((2, 3, 4, 5), codes.groups())}


def on_kept_connections(url, rate, seconds, *more):
    return h2load(url, f"-c{CONNECTIONS}", f"-D{seconds}", f"--rps={rate / CONNECTIONS}", *more)


def on_new_connections(url, rate, seconds):
    """One request on each connection; `rate` of them begin each second."""
    count = int(rate * seconds)
    return h2load(url, f"-c{count}", f"-n{count}", f"-r{rate}")


def most_per_second(url, seconds):
    """What it answers when it is asked as fast as it can."""
    output = subprocess.run(["taskset", "-c", OTHER_CORE, "wrk", "-t1", f"-c{CONNECTIONS}", f"-d{seconds}s", "-H",
                             f"X-API-Key: {KEY}", url], capture_output=True, text=True, check=True).stdout
    return float(re.search(r"Requests/sec: *([\d.]+)", output).group(1))


def latencies(url, rate, seconds):
    """(50th, 99th) percentile of the microseconds from a request's beginning to its answer's end."""
    with tempfile.NamedTemporaryFile("r") as log:
        on_kept_connections(url, rate, seconds, f"--log-file={log.name}")
        times = [int(line.split()[2]) for line in log]
    cuts = statistics.quantiles(times, n=100)
    return cuts[49], cuts[98]


def allow_open_files(count):
    """Raises the bound of open files of this process, and of those that it starts, as far as it goes."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < count:
        sys.exit(f"gateway_bench needs {count} open files; the hard bound is {hard} (ulimit -Hn)")
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def idle_connections(port, count):
    """Opens `count` connections, each with one answered request behind it."""
    request = f"GET /orders HTTP/1.1\r\nHost: localhost\r\nX-API-Key: {KEY}\r\n\r\n".encode()
    connections = []
    for _ in range(count):
        connection = socket.create_connection(("127.0.0.1", port), 20)
        connection.sendall(request)
        if not connection.recv(65536).startswith(b"HTTP/1.1 200 "):
            sys.exit("an idle connection was not served")
        connections.append(connection)
    return connections
