"""The proxies that are compared, and the upstream that all of them stand before.

Each proxy has one worker on core 0; the upstream and the load have core 1. All say the same: requests for
/denied have no room, others have more than they use; connections to clients and to the upstream are kept.
"""
import os
import socket
import subprocess
import sys
import time

PROXY_CORE, OTHER_CORE = "0", "1"
KEY = "ann"

UPSTREAM = """
worker_processes 1; daemon off; pid {dir}/upstream.pid; error_log {dir}/upstream.log crit;
events {{ worker_connections 4096; }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 600s; sendfile on;
  open_file_cache max=10 inactive=600s; open_file_cache_valid 600s;
  server {{ listen 127.0.0.1:{port} reuseport backlog=4096; root {dir};
    location /64k {{ default_type application/octet-stream; }}
    location / {{ default_type application/json; return 200 '{{"orders":[]}}'; }} }} }}
"""

NGINX = """
worker_processes 1; daemon off; pid {dir}/{name}.pid; error_log {dir}/{name}.log crit;
events {{ worker_connections 12000; }}
http {{ access_log off; keepalive_requests 100000000; keepalive_timeout 600s;
  {zones}
  upstream up {{ server 127.0.0.1:{upstream}; keepalive 128; keepalive_requests 100000000; }}
  proxy_http_version 1.1; proxy_set_header Connection ""; proxy_set_header Host $host;
  proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for;
  server {{ listen 127.0.0.1:{port} backlog=4096{tls};
    {locations} }} }}
"""
LIMIT_ZONES = """limit_req_zone $http_x_api_key zone=open:32m rate=1000000r/s;
  limit_req_zone $http_x_api_key zone=shut:32m rate=1r/m;
  limit_req_status 429;"""
LIMITED = """location / { limit_req zone=open burst=100000 nodelay; proxy_pass http://up; }
    location /denied { limit_req zone=shut; proxy_pass http://up; }"""
UNLIMITED = "location / { proxy_pass http://up; }"

HAPROXY = """
global
  nbthread 1
  maxconn 12000
  no strict-limits
defaults
  mode http
  http-reuse always
  option forwardfor
  timeout connect 5s
  timeout client 600s
  timeout server 600s
backend open
  stick-table type string len 64 size 100k expire 10s store http_req_rate(1s)
backend shut
  stick-table type string len 64 size 100k expire 24h store http_req_rate(24h)
backend up
  server up 127.0.0.1:{upstream} pool-max-conn 128
frontend clients
  bind 127.0.0.1:{port} backlog 4096{tls}
  http-request track-sc0 req.hdr(X-API-Key) table shut if {{ path /denied }}
  http-request track-sc0 req.hdr(X-API-Key) table open unless {{ path /denied }}
  http-request deny deny_status 429 if {{ path /denied }} {{ sc_http_req_rate(0) gt 1 }}
  http-request deny deny_status 429 if !{{ path /denied }} {{ sc_http_req_rate(0) gt 1000000 }}
  default_backend up
"""

SLUICE = """
threads: 1
gateway:
  listen: "127.0.0.1:{port}"
  upstream: "http://127.0.0.1:{upstream}"
  idle_timeout: 10m{tls}
limits: {{ connections: 30000 }}
log: {{ level: warning }}
identity: {{ api_key: {{ header: X-API-Key }} }}
rules:
  - {{ name: open, exempt: {{ path: /denied }}, key: api_key, limit: 1000000/s, burst: 100000 }}
  - {{ name: shut, match: {{ path: /denied }}, key: api_key, limit: 1/day }}
"""

# In the order in which they are shown; the base of all ratios.
NAMES = ("nginx", "nginx limit_req", "haproxy stick table", "sluice")
BASE = "nginx limit_req"
PROGRAMS = ("nginx", "haproxy", "openssl", "h2load", "wrk", "taskset")


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


def make_certificate(folder):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-keyout", f"{folder}/key.pem",
                    "-out", f"{folder}/cert.pem"], check=True, capture_output=True)
    with open(f"{folder}/both.pem", "w") as both:
        for name in ("cert.pem", "key.pem"):
            with open(f"{folder}/{name}") as part:
                both.write(part.read())


class Process:
    """A server under measurement: itself and all below it."""

    def __init__(self, folder, name, configuration, command, core, port):
        self.port = port
        path = os.path.join(folder, name + ".conf")
        with open(path, "w") as file:
            file.write(configuration)
        argv = ["taskset", "-c", core] + [part.format(file=path) for part in command]
        self.process = subprocess.Popen(argv, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for(self.port)

    def _family(self, pid):
        with open(f"/proc/{pid}/task/{pid}/children") as file:
            children = file.read().split()
        return [pid] + [member for child in children for member in self._family(int(child))]

    def cpu_seconds(self):
        """User and system time, to the nanosecond (/proc/PID/task/TID/schedstat)."""
        nanoseconds = 0
        for pid in self._family(self.process.pid):
            for thread in os.listdir(f"/proc/{pid}/task"):
                with open(f"/proc/{pid}/task/{thread}/schedstat") as file:
                    nanoseconds += int(file.read().split()[0])
        return nanoseconds / 1e9

    def resident_bytes(self):
        pages = 0
        for pid in self._family(self.process.pid):
            with open(f"/proc/{pid}/statm") as file:
                pages += int(file.read().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")

    def stop(self):
        self.process.terminate()
        self.process.wait(20)


def start_upstream(folder):
    with open(os.path.join(folder, "64k"), "wb") as file:
        file.write(os.urandom(65536))
    port = free_port()
    configuration = UPSTREAM.format(dir=folder, port=port)
    return Process(folder, "upstream", configuration, ["nginx", "-c", "{file}"], OTHER_CORE, port)


def start_proxy(name, folder, upstream, sluice, tls=False):
    """Starts one of NAMES in front of `upstream`; `sluice` is the program. With `tls` clients speak HTTPS to it."""
    port = free_port()
    file_name = name.replace(" ", "_") + ("_tls" if tls else "")
    common = {"dir": folder, "name": file_name, "upstream": upstream.port, "port": port}
    if name.startswith("nginx"):
        limited = name != "nginx"
        # By default it would not speak TLS 1.3, which the others do.
        secure = (" ssl; ssl_protocols TLSv1.2 TLSv1.3;"
                  f" ssl_certificate {folder}/cert.pem; ssl_certificate_key {folder}/key.pem")
        configuration = NGINX.format(zones=LIMIT_ZONES if limited else "", locations=LIMITED if limited else UNLIMITED,
                                     tls=secure if tls else "", **common)
        command = ["nginx", "-c", "{file}"]
    elif name.startswith("haproxy"):
        configuration = HAPROXY.format(tls=f" ssl crt {folder}/both.pem alpn http/1.1" if tls else "", **common)
        command = ["haproxy", "-f", "{file}", "-db"]
    else:
        pair = f"\n  tls: {{ certificate: {folder}/cert.pem, key: {folder}/key.pem }}"
        configuration = SLUICE.format(tls=pair if tls else "", **common)
        command = [sluice, "serve", "--config", "{file}"]
    return Process(folder, file_name, configuration, command, PROXY_CORE, port)
