"""A TCP proxy whose other side can be made to fail. A process of its own, so that a busy test does not slow it.

    proxy = FaultProxy(port)          # passes bytes to 127.0.0.1:port
    proxy.set("slow", 200)            # what comes back is 200 ms late, in order
    proxy.set("pass")

    pass       as it is
    blackhole  what either side sends disappears, and so do new connections' bytes. A connection that lost some stays
               silent for ever: its stream has a hole
    cut N      of what comes back N more bytes pass on each connection, then it is closed
    slow MS    what comes back is late
    reset      connections are reset, new ones too
    refuse     connections are closed, and nobody listens

set() returns when the mode is in force: no byte that comes later is treated as before.
"""
import asyncio
import contextlib
import socket
import struct
import subprocess
import sys

MOST = 65536


class FaultProxy:
    def __init__(self, to):
        self.process = subprocess.Popen([sys.executable, __file__, str(to)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        text=True)
        self.port = int(self.process.stdout.readline())

    def set(self, mode, number=0):
        self.process.stdin.write(f"{mode} {number}\n")
        self.process.stdin.flush()
        told = self.process.stdout.readline().strip()
        assert told == mode, f"{told!r} for {mode!r}"

    def stop(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


class Link:
    """One connection and its way on."""

    def __init__(self, proxy, reader, writer):
        self.proxy = proxy
        self.near = (reader, writer)
        self.far = None
        self.lost = False  # bytes of it
        self.rest = 0  # bytes that still pass, in the mode cut
        self.late = asyncio.Queue()

    async def run(self):
        try:
            if self.proxy.mode == "reset":
                return
            self.far = await asyncio.open_connection("127.0.0.1", self.proxy.to)
            works = [asyncio.ensure_future(work) for work in (self.go(), self.come(), self.deliver())]
            await asyncio.wait(works, return_when=asyncio.FIRST_COMPLETED)
            for work in works:
                work.cancel()
            await asyncio.gather(*works, return_exceptions=True)
        except OSError:
            pass  # the other side refuses
        finally:
            self.proxy.links.discard(self)
            self.close()

    def close(self):
        """Both ends at once; with a reset in that mode."""
        for _, writer in filter(None, (self.near, self.far)):
            if self.proxy.mode == "reset":
                linger = struct.pack("ii", 1, 0)
                with contextlib.suppress(OSError):
                    writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            writer.transport.abort()

    async def go(self):
        while data := await self.near[0].read(MOST):
            self.lost = self.lost or self.proxy.mode == "blackhole"
            if not self.lost:
                self.far[1].write(data)

    async def come(self):
        while data := await self.far[0].read(MOST):
            self.lost = self.lost or self.proxy.mode == "blackhole"
            if self.lost:
                continue
            cut = self.proxy.mode == "cut"
            if cut:
                data, self.rest = data[:self.rest], max(0, self.rest - len(data))
            due = asyncio.get_running_loop().time() + (self.proxy.number / 1000 if self.proxy.mode == "slow" else 0)
            self.late.put_nowait((due, data))
            if cut and self.rest == 0:
                await self.late.join()
                self.near[1].close()  # after what was passed
                return

    async def deliver(self):
        while True:
            due, data = await self.late.get()
            if (wait := due - asyncio.get_running_loop().time()) > 0:
                await asyncio.sleep(wait)
            if not self.lost:
                self.near[1].write(data)
            self.late.task_done()


class Proxy:
    def __init__(self, to):
        self.to = to
        self.mode = "pass"
        self.number = 0
        self.links = set()
        self.server = None
        self.port = 0

    async def listen(self):
        self.server = await asyncio.start_server(self.accept, "127.0.0.1", self.port)
        self.port = self.server.sockets[0].getsockname()[1]

    async def accept(self, reader, writer):
        link = Link(self, reader, writer)
        link.rest = self.number
        self.links.add(link)
        await link.run()

    async def set(self, mode, number):
        self.mode, self.number = mode, number
        for link in self.links:
            link.rest = number
        if mode == "refuse":
            self.server.close()
            self.server = None
        elif self.server is None:
            await self.listen()
        if mode in ("refuse", "reset"):
            for link in list(self.links):
                link.close()


async def main(to):
    proxy = Proxy(to)
    await proxy.listen()
    print(proxy.port, flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := (await commands.readline()).decode():
        mode, number = line.split()
        await proxy.set(mode, int(number))
        print(mode, flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
