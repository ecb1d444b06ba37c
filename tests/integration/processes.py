"""Starts the programs under test on free ports, and ends them; raw HTTP for what curl cannot send."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

BIN = os.environ.get("SLUICE_BIN", "build/dev/bin")
SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


class Worker(threading.Thread):
    """A thread whose work() does something beside the test; what it raises is raised in join()."""

    def __init__(self):
        super().__init__(daemon=True)  # a test that fails does not wait for it
        self.error = None

    def run(self):
        try:
            self.work()
        except Exception as error:
            self.error = error

    def join(self, timeout=120):
        super().join(timeout)
        if self.is_alive():
            raise AssertionError(f"did not end within {timeout} s")
        if self.error is not None:
            raise self.error


def wait_until(holds, what, seconds=20, worker=None):
    """Polls until `holds()`. Fails when the time is over, or as soon as `worker` did."""
    deadline = time.monotonic() + seconds
    while not holds():
        if worker is not None and worker.error is not None:
            raise worker.error
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {seconds} s: {what}")
        time.sleep(0.02)


class Program:
    """A child process whose output is read line by line."""

    def __init__(self, argv, **kwargs):
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **kwargs)
        self.lines = []
        self.grown = threading.Condition()
        self.reader = threading.Thread(target=self._read, daemon=True)
        self.reader.start()

    def _read(self):
        for line in self.process.stdout:
            with self.grown:
                self.lines.append(line.rstrip("\n"))
                self.grown.notify_all()
        with self.grown:
            self.lines.append(None)  # the end
            self.grown.notify_all()

    def wait_for(self, pattern, seconds=20):
        """The first line, from the start of the output, in which `pattern` is found."""
        deadline = time.monotonic() + seconds
        seen = 0
        with self.grown:
            while True:
                for line in self.lines[seen:]:
                    if line is None:
                        raise AssertionError(f"ended before {pattern!r}:\n" + self.text())
                    found = re.search(pattern, line)
                    if found:
                        return found
                seen = len(self.lines)
                if not self.grown.wait(deadline - time.monotonic()):
                    raise AssertionError(f"no {pattern!r} within {seconds} s:\n" + self.text())

    def count(self, pattern):
        with self.grown:
            return sum(1 for line in self.lines if line is not None and re.search(pattern, line))

    def text(self):
        return "\n".join(line for line in self.lines if line is not None)

    def signal(self, number):
        self.process.send_signal(number)

    def stop(self, seconds=20):
        """Ends it as an operator would; returns the exit code."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError("did not end within {} s:\n{}".format(seconds, self.text())) from None
        self._close()
        return code

    def kill(self):
        """Ends it as a crash would."""
        self.process.kill()
        self.process.wait()
        self._close()

    def _close(self):
        self.reader.join()
        self.process.stdout.close()


class OrdersApi(Program):
    def __init__(self):
        super().__init__([f"{BIN}/orders_api", "--listen", "127.0.0.1:0"])
        self.port = int(self.wait_for(r"listening on http://127\.0\.0\.1:(\d+)").group(1))

    def count_requests(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/count") as answer:
            return json.load(answer)["requests"]


class Sluice(Program):
    """`sluice serve` on a configuration whose ports are 0; `port` and `admin` are the real ones."""

    def __init__(self, config, folder):
        self.path = os.path.join(folder, "sluice.yaml")
        self.write(config)
        super().__init__([f"{BIN}/sluice", "serve", "--config", self.path])
        self.port = self._listens("gateway")
        self.admin = self._listens("admin") if re.search(r"^admin:", config, re.MULTILINE) else None

    def _listens(self, door):
        """The port of a door, from the log in either of its formats."""
        pattern = rf'"?door"?[=:]"?{door}"?[ ,]"?address"?[=:]"?[^" ]+:(\d+)'
        return int(self.wait_for(pattern).group(1))

    def write(self, config):
        with open(self.path, "w") as file:
            file.write(config)

    def get_admin(self, path):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.admin}{path}") as answer:
            return answer.read().decode()

    def ready(self):
        """What /readyz says. Its door opens a moment before all doors are open."""
        deadline = time.monotonic() + 10
        while True:
            try:
                return json.loads(self.get_admin("/readyz"))
            except urllib.error.HTTPError as error:
                if error.code != 503 or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def metric(self, name):
        found = re.search("^" + re.escape(name) + r" (\d+)$", self.get_admin("/metrics"), re.MULTILINE)
        return int(found.group(1))

    def reload(self, config):
        """Writes the file, asks for a reload, and waits until the log tells how it ended."""
        before = self.count("reload")
        self.write(config)
        self.signal(signal.SIGHUP)
        deadline = time.monotonic() + 10
        while self.count("reload") == before and time.monotonic() < deadline:
            time.sleep(0.02)


def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


class RedisServer:
    """A redis-server of the test's own, on a port that stays the same over a restart; with `config`, a file, a sentinel."""

    def __init__(self, folder, *options, config=None):
        self.folder = folder
        self.options = options
        self.config = config
        self.port = free_port()
        self.start()

    def start(self):
        kind = [self.config, "--sentinel"] if self.config else ["--save", "", "--appendonly", "no"]
        self.process = subprocess.Popen(
            ["redis-server", *kind, "--port", str(self.port), "--bind", "127.0.0.1", "--dir", self.folder,
             "--daemonize", "no", *self.options], stdout=subprocess.DEVNULL)
        wait_until(lambda: self.cli("PING") == "PONG", "redis-server answers")

    def cli(self, *command):
        done = subprocess.run(["redis-cli", "-p", str(self.port), *command], capture_output=True, text=True)
        return done.stdout.strip()

    def counters(self):
        """The keys that are not of the channel between nodes."""
        return [key for key in self.cli("KEYS", "*").splitlines() if ":{channel}:" not in key]

    def calls(self):
        """How often the script was called."""
        for line in self.cli("INFO", "commandstats").splitlines():
            if line.startswith("cmdstat_evalsha:calls="):
                return int(line.split("=")[1].split(",")[0])
        return 0

    def kill(self):
        self.process.kill()
        self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.terminate()
            self.process.wait()


def start_nginx(configuration, folder, port):
    """An nginx with this configuration text, once it takes connections on `port`."""
    path = os.path.join(folder, "nginx.conf")
    with open(path, "w") as file:
        file.write(configuration)
    os.chmod(folder, 0o777)  # its worker is another user
    nginx = subprocess.Popen(["nginx", "-c", path])
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return nginx
        except OSError:
            time.sleep(0.05)
    nginx.terminate()
    raise AssertionError("nginx does not listen")


def settings(upstream_port, rest, door=""):
    """A configuration; `door` is more of the gateway's own settings, such as "drain: 1s, "."""
    return f"""
gateway: {{ listen: "127.0.0.1:0", {door}upstream: "http://127.0.0.1:{upstream_port}" }}
admin: {{ listen: "127.0.0.1:0" }}
identity: {{ api_key: {{ header: X-API-Key }} }}
{rest}
"""


@contextlib.contextmanager
def gateway(rest, door=""):
    """An Orders API and a Sluice in front of it; both end, and end well, with the block."""
    with tempfile.TemporaryDirectory() as folder:
        orders = OrdersApi()
        try:
            sluice = Sluice(settings(orders.port, rest, door), folder)
            try:
                yield sluice, orders
            finally:
                code = sluice.stop()
            assert code == 0, f"exit code {code}:\n" + sluice.text()
        finally:
            orders.stop()


def ask(port, path="/v1/orders", key="ann", method="GET", headers=None, body=None):
    """One request on a connection of its own: (status, headers, body)."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=20)
    try:
        all_headers = dict(headers or {})
        if key is not None:
            all_headers["X-API-Key"] = key
        connection.request(method, path, body=body, headers=all_headers)
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read()
    finally:
        connection.close()


class WithPrograms(unittest.TestCase):
    """A folder, and programs that end, and end well, with the test."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def path(self, name):
        return os.path.join(self.folder, name)

    def orders_api(self):
        orders = OrdersApi()
        self.addCleanup(orders.stop)
        return orders

    def serve(self, config):
        sluice = Sluice(config, self.folder)
        self.addCleanup(lambda: self.assertEqual(sluice.stop(), 0, sluice.text()))
        return sluice


class Raw:
    """A socket for bytes that no client library would send."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), 10)
        self.buffer = b""

    def send(self, data):
        self.socket.sendall(data)

    def read_answer(self):
        """One answer with Content-Length, or what came before the end: (status, head, body)."""
        while b"\r\n\r\n" not in self.buffer and self._more():
            pass
        head, _, rest = self.buffer.partition(b"\r\n\r\n")
        found = re.search(rb"(?i)\r\ncontent-length: *(\d+)", head)
        length = int(found.group(1)) if found else 0
        self.buffer = rest
        while len(self.buffer) < length and self._more():
            pass
        body, self.buffer = self.buffer[:length], self.buffer[length:]
        status = int(head.split()[1]) if head else 0
        return status, head, body

    def closed(self):
        """Whether the other side ends the connection, without a further byte."""
        return self.buffer == b"" and not self._more() and self.buffer == b""

    def _more(self):
        try:
            data = self.socket.recv(65536)
        except ConnectionResetError:
            return False
        self.buffer += data
        return data != b""

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
