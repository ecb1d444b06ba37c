"""chaos_upstream.py PORT LOG: an upstream that does what a request's path asks for, good or bad.

Each request's id (X-Chaos) is a line in LOG before anything else happens, so that also a process that is
killed has left behind what reached it. Answers bear the id that they answer.

    /AREA/fast        a few bytes with a length          /AREA/silent     no answer
    /AREA/chunked     in chunks, with trailers           /AREA/broken     breaks off midway
    /AREA/big         BIG bytes                          /AREA/reset      a reset instead of an answer
    /AREA/slow        after 200 ms                       /AREA/garbage    no HTTP at all
    /AREA/early       before it reads the body           /AREA/closes     ends a connection that it said to keep
    /AREA/echo        the body's length and checksum     /AREA/interim    early hints first
    /AREA/upgrade     101, then every byte comes back    /AREA/until      without a length, until the end
"""
import asyncio
import contextlib
import os
import re
import socket
import struct
import sys
import zlib

BIG = bytes(range(251)) * 4000


def abort(writer):
    """Ends the connection by a reset."""
    connection = writer.get_extra_info("socket")
    if connection is not None:
        with contextlib.suppress(OSError):  # gone already
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def read_body(reader, head):
    """The body behind `head`: (its length, its checksum)."""
    size = crc = 0

    async def take(length):
        nonlocal size, crc
        while length > 0:
            data = await reader.read(min(length, 65536))
            if not data:
                raise ConnectionError("the body breaks off")
            size += len(data)
            crc = zlib.crc32(data, crc)
            length -= len(data)

    found = re.search(r"(?i)\r\ncontent-length: (\d+)\r\n", head)
    if found:
        await take(int(found.group(1)))
    elif re.search(r"(?i)\r\ntransfer-encoding: chunked\r\n", head):
        while (length := int(await reader.readuntil(b"\r\n"), 16)) > 0:
            await take(length)
            await reader.readexactly(2)
        while await reader.readuntil(b"\r\n") != b"\r\n":
            pass  # trailers
    return size, crc


class Upstream:
    def __init__(self, log):
        self.log = log

    async def serve(self, reader, writer):
        try:
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin1")
                if head.startswith("GET /alive "):  # a health check, no client's request
                    await self.answer(writer, "", b"yes\n")
                    continue
                number = re.search(r"(?i)\r\nx-chaos: (\S+)\r\n", head).group(1)
                os.write(self.log, f"{number}\n".encode())
                does = getattr(self, head.split()[1].split("/")[2])
                goes_on = await does(reader, writer, head, f"X-Chaos: {number}\r\n")
                await writer.drain()
                if not goes_on:
                    break
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the gateway has left, or ended a kept connection
        finally:
            writer.close()

    async def answer(self, writer, tag, body):
        writer.write(f"HTTP/1.1 200 OK\r\n{tag}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        return True

    async def fast(self, reader, writer, head, tag):
        await read_body(reader, head)
        return await self.answer(writer, tag, b"ok\n")

    async def chunked(self, reader, writer, head, tag):
        await read_body(reader, head)
        writer.write(f"HTTP/1.1 200 OK\r\n{tag}Transfer-Encoding: chunked\r\n\r\n".encode())
        for _ in range(4):
            writer.write(b"5\r\nhello\r\n")
            await asyncio.sleep(0.002)
        writer.write(b"0\r\nX-End: yes\r\n\r\n")
        return True

    async def big(self, reader, writer, head, tag):
        await read_body(reader, head)
        return await self.answer(writer, tag, BIG)

    async def slow(self, reader, writer, head, tag):
        await read_body(reader, head)
        await asyncio.sleep(0.2)
        return await self.answer(writer, tag, b"slow\n")

    async def early(self, reader, writer, head, tag):
        await self.answer(writer, tag, b"early\n")
        await writer.drain()
        await read_body(reader, head)
        return True

    async def echo(self, reader, writer, head, tag):
        size, crc = await read_body(reader, head)
        return await self.answer(writer, tag, f"{size} {crc}".encode())

    async def interim(self, reader, writer, head, tag):
        await read_body(reader, head)
        writer.write(b"HTTP/1.1 103 Early Hints\r\nLink: </a>; rel=preload\r\n\r\n")
        await asyncio.sleep(0.002)
        return await self.answer(writer, tag, b"hinted\n")

    async def until(self, reader, writer, head, tag):
        await read_body(reader, head)
        writer.write(f"HTTP/1.1 200 OK\r\n{tag}\r\nuntil the end".encode())
        return False

    async def closes(self, reader, writer, head, tag):
        await read_body(reader, head)
        await self.answer(writer, tag, b"bye\n")
        return False

    async def silent(self, reader, writer, head, tag):
        await reader.read()
        return False

    async def broken(self, reader, writer, head, tag):
        await read_body(reader, head)
        writer.write(f"HTTP/1.1 200 OK\r\n{tag}Content-Length: 1000\r\n\r\nonly so much".encode())
        return False

    async def reset(self, reader, writer, head, tag):
        abort(writer)
        return False

    async def garbage(self, reader, writer, head, tag):
        await read_body(reader, head)
        writer.write(b"220 mail.example.com ESMTP\r\n\r\n")
        return False

    async def upgrade(self, reader, writer, head, tag):
        writer.write(f"HTTP/1.1 101 Switching Protocols\r\n{tag}Connection: upgrade\r\n"
                     "Upgrade: websocket\r\n\r\n".encode())
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
        return False


async def main(port, path):
    upstream = Upstream(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600))
    server = await asyncio.start_server(upstream.serve, "127.0.0.1", port, backlog=1024)
    print(f"listening on {port}", flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]), sys.argv[2]))
