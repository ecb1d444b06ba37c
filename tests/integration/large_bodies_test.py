"""Bodies of 1 GiB in both directions at constant memory; one side's slowness holds the other side back."""
import re
import tempfile
import threading
import time
import unittest

import bulk
from bulk import BulkUpstream, download, upload
from processes import Raw, Sluice, settings

GIB = 1 << 30
MIB = 1 << 20
# More than twice what the kernel holds of one body on its two connections, in four buffers.
STOPPED = 256 * MIB


class LargeBodies(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.gib = bulk.checksum(GIB)

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.upstream = BulkUpstream()
        self.sluice = Sluice(settings(self.upstream.port, "rules: []"), self.folder.name)

    def tearDown(self):
        code = self.sluice.stop()
        self.upstream.close()
        self.folder.cleanup()
        self.assertEqual(code, 0)

    def memory(self, name):
        """A line of /proc/PID/status, in bytes: VmRSS, or VmHWM, the most since the last begin()."""
        with open(f"/proc/{self.sluice.process.pid}/status") as file:
            return int(re.search(rf"{name}:\s*(\d+) kB", file.read()).group(1)) * 1024

    def begin(self):
        """From here on VmHWM counts anew (proc(5), clear_refs)."""
        with open(f"/proc/{self.sluice.process.pid}/clear_refs", "w") as file:
            file.write("5")
        return self.memory("VmRSS")

    def grown(self, before):
        return self.memory("VmHWM") - before

    def check_passes_at_constant_memory(self, transfer):
        for chunked in (False, True):
            with self.subTest(chunked=chunked):
                transfer(self.sluice.port, MIB, chunked)  # what is allocated once is there
                before = self.begin()
                start = time.monotonic()
                status, length, crc = transfer(self.sluice.port, GIB, chunked)
                seconds = time.monotonic() - start
                grown = self.grown(before)
                print(f"\n{transfer.__name__}, {'chunked' if chunked else 'with a length'}: 1 GiB in "
                      f"{seconds:.1f} s, memory {before // 1024} KiB, at most {grown // 1024} KiB more", end="")
                self.assertRegex(status, r"^HTTP/1\.1 200 ")
                self.assertEqual((length, crc), (GIB, self.gib))
                self.assertLess(grown, 1 * MIB)

    def test_1_gib_comes_down_at_constant_memory(self):
        self.check_passes_at_constant_memory(download)

    def test_1_gib_goes_up_at_constant_memory(self):
        self.check_passes_at_constant_memory(upload)

    def check_stops_with_the_reader(self, reader, sent, transfer):
        """The reader stops early on; so must the writer, whatever is left; then all arrives."""
        before = self.begin()
        result = []
        run = threading.Thread(target=lambda: result.append(transfer()))
        run.start()
        try:
            held = wait_until_quiet(lambda: sent[0])
            self.assertGreaterEqual(held, MIB)
            self.assertLess(held, STOPPED / 2)
        finally:
            reader.set()
            run.join()
        self.assertEqual(result[0][1:], (STOPPED, bulk.checksum(STOPPED)))
        self.assertLess(self.grown(before), 1 * MIB)

    def test_a_client_that_stops_reading_stops_the_upstream(self):
        reader = threading.Event()
        self.check_stops_with_the_reader(
            reader, self.upstream.sent,
            lambda: download(self.sluice.port, STOPPED, chunked=False, pause=reader.wait))

    def test_an_upstream_that_stops_reading_stops_the_client(self):
        reader = threading.Event()
        self.upstream.pause = reader.wait
        sent = [0]
        self.check_stops_with_the_reader(
            reader, sent, lambda: upload(self.sluice.port, STOPPED, chunked=True, progress=sent))

    def test_slow_writers_take_two_buffers_each_and_no_more(self):
        held = threading.Event()
        self.upstream.pause = held.wait
        clients = []
        before = self.begin()
        try:
            for _ in range(50):
                client = Raw(self.sluice.port)
                client.socket.setblocking(False)
                clients.append(client)
                client.socket.send(b"PUT /up HTTP/1.1\r\nHost: a\r\nContent-Length: %d\r\n\r\n" % GIB)
            # Each offers as much as is taken; nothing is read at the far end.
            offered = [0] * len(clients)

            def offer():
                for index, client in enumerate(clients):
                    try:
                        offered[index] += client.socket.send(bulk.BLOCK)
                    except BlockingIOError:
                        pass
                return sum(offered)

            wait_until_quiet(offer)
            self.assertGreater(min(offered), MIB)
            self.assertLess(self.grown(before) / len(clients), 2 * 64 * 1024 + 32 * 1024)
        finally:
            held.set()
            for client in clients:
                client.close()


def wait_until_quiet(look, seconds=0.5):
    """Looks until nothing has changed for so long; returns what is seen then."""
    seen, since = look(), time.monotonic()
    while time.monotonic() - since < seconds:
        time.sleep(0.01)
        now = look()
        if now != seen:
            seen, since = now, time.monotonic()
    return seen


if __name__ == "__main__":
    unittest.main()
