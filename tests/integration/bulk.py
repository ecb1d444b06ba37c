"""Bodies of any length over plain sockets: told apart by what they are made of, checked to the last byte.

A body is one block of random bytes repeated. The block's length is a prime, so no piece of it stands at the
same place of two buffers: bytes that are lost, doubled or swapped change the checksum.
"""
import os
import re
import socket
import threading
import zlib

BLOCK = os.urandom(1_048_573)
CHUNK = 100_000
PIECE = 1 << 20


def checksum(size):
    """Of a body of `size` bytes."""
    crc = 0
    for piece in pieces(size):
        crc = zlib.crc32(piece, crc)
    return crc


def pieces(size, at_most=len(BLOCK)):
    """A body of `size` bytes, piece by piece."""
    block = memoryview(BLOCK)
    place = 0
    while place < size:
        start = place % len(BLOCK)
        end = min(start + at_most, len(BLOCK), start + size - place)
        yield block[start:end]
        place += end - start


def head_of(file):
    """The lines of a head; empty when the other side has ended."""
    lines = []
    while (line := file.readline()) not in (b"\r\n", b""):
        lines.append(line.decode("latin1").rstrip())
    return lines


def field(head, name):
    for line in head[1:]:
        found = re.match(rf"(?i){name}: *(.*)", line)
        if found:
            return found.group(1)
    return None


def framing_of(size, chunked):
    return "Transfer-Encoding: chunked" if chunked else f"Content-Length: {size}"


def write_body(sock, size, chunked, progress=None):
    """Sends a body; `progress[0]` is how much of it the kernel has taken."""
    for piece in pieces(size, CHUNK if chunked else len(BLOCK)):
        if chunked:
            sock.sendall(b"%x\r\n" % len(piece) + piece + b"\r\n")
        else:
            sock.sendall(piece)
        if progress is not None:
            progress[0] += len(piece)
    if chunked:
        sock.sendall(b"0\r\n\r\n")


def read_body(file, head, progress=None, pause=lambda: None):
    """Reads the body behind `head`: (its length, its checksum). Calls `pause` before each piece."""
    buffer = memoryview(bytearray(PIECE))
    total = crc = 0

    def take(length):
        nonlocal total, crc
        while length > 0:
            pause()
            size = file.readinto1(buffer[:min(length, PIECE)])
            if size == 0:
                raise AssertionError(f"the body breaks off after {total} bytes")
            crc = zlib.crc32(buffer[:size], crc)
            total += size
            length -= size
            if progress is not None:
                progress[0] = total

    if field(head, "Content-Length") is not None:
        take(int(field(head, "Content-Length")))
        return total, crc
    assert field(head, "Transfer-Encoding") == "chunked", head
    while (length := int(file.readline(), 16)) > 0:
        take(length)
        assert file.readline() == b"\r\n"
    assert file.readline() == b"\r\n"
    return total, crc


class BulkUpstream:
    """GET /SIZE/length and /SIZE/chunked give a body; PUT takes one and answers its length and checksum.

    `sent[0]` and `read[0]` tell how far the last body has come; `pause` is called before each piece is read.
    """

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.pause = lambda: None
        self.sent = [0]
        self.read = [0]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            with connection, connection.makefile("rb", PIECE) as file:
                while head := head_of(file):
                    self._answer(connection, file, head)
        except (OSError, AssertionError):
            pass  # the gateway has left; what that means is for the test to say

    def _answer(self, connection, file, head):
        method, target = head[0].split()[:2]
        if method == "GET":
            _, size, form = target.split("/")
            chunked = form == "chunked"
            self.sent[0] = 0
            connection.sendall(f"HTTP/1.1 200 OK\r\n{framing_of(size, chunked)}\r\n\r\n".encode())
            write_body(connection, int(size), chunked, self.sent)
        else:
            self.read[0] = 0
            told = "{} {}".format(*read_body(file, head, self.read, lambda: self.pause()))
            connection.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {len(told)}\r\n\r\n{told}".encode())

    def close(self):
        self.listener.close()


def download(port, size, chunked, pause=lambda: None):
    """One GET on a connection of its own: (status line, the body's length, its checksum)."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        form = "chunked" if chunked else "length"
        client.sendall(f"GET /{size}/{form} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        with client.makefile("rb", PIECE) as file:
            head = head_of(file)
            return (head[0], *read_body(file, head, pause=pause))


def upload(port, size, chunked, progress=None):
    """One PUT on a connection of its own: (status line, the body's length, its checksum), as the upstream told."""
    with socket.create_connection(("127.0.0.1", port), 60) as client:
        client.sendall(f"PUT /up HTTP/1.1\r\nHost: a\r\n{framing_of(size, chunked)}\r\n\r\n".encode())
        write_body(client, size, chunked, progress)
        with client.makefile("rb") as file:
            head = head_of(file)
            length, crc = file.read(int(field(head, "Content-Length"))).split()
            return head[0], int(length), int(crc)
