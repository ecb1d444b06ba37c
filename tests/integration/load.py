"""wrk, counting what it was answered. Load is bounded in time and goes to this machine."""
import re
import subprocess
import tempfile
import time

COUNT_STATUSES = """
local threads = {}
function setup(thread) table.insert(threads, thread) end
function init() ok = 0; limited = 0; other = 0 end
function response(status)
  if status == 200 then ok = ok + 1 elseif status == 429 then limited = limited + 1 else other = other + 1 end
end
function done(summary)
  local sum = { ok = 0, limited = 0, other = 0 }
  for _, thread in ipairs(threads) do
    for name in pairs(sum) do sum[name] = sum[name] + thread:get(name) end
  end
  local errors = summary.errors
  io.write(string.format("ok=%d limited=%d other=%d errors=%d seconds=%.3f\\n", sum.ok, sum.limited, sum.other,
    errors.connect + errors.read + errors.write + errors.timeout, summary.duration / 1e6))
end
"""


def wrk(port, seconds, connections=100, path="/v1/orders", scheme="http"):
    """Runs wrk; returns its counts and the seconds from its start to its end as seen from outside."""
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(COUNT_STATUSES)
        script.flush()
        start = time.monotonic()
        output = subprocess.run(
            ["wrk", "-t2", f"-c{connections}", f"-d{seconds}s", "-s", script.name, "-H", "X-API-Key: ann",
             f"{scheme}://127.0.0.1:{port}{path}"], capture_output=True, text=True, check=True, timeout=120).stdout
        outside = time.monotonic() - start
    counts = dict(re.findall(r"(\w+)=([\d.]+)", output))
    return {name: float(value) for name, value in counts.items()}, outside
