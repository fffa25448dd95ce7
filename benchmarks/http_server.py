"""A server that streams one canned answer to everybody, as quickly as it is told to.

It has a process of its own, so that what it costs is not counted. The path of a request
begins with the milliseconds between two events: ``/5``. It prints its port.
"""

import asyncio
import sys

from benchmarks.streams import all_streams

_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


async def serve(text_deltas: int) -> None:
    """Serve until standard input is closed."""
    frames = all_streams(text_deltas)[0].frames
    chunks = [b"%x\r\n%s\r\n" % (len(frame), frame) for frame in frames]

    async def answer(  # noqa: ASYNC910  # it reads first
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = head.lower().partition(b"content-length:")[2].split()[0]
                await reader.readexactly(int(length))
                pause = int(head.split(b"/")[1].split()[0].partition(b"?")[0]) / 1000
                writer.write(_HEAD)
                for chunk in chunks:
                    writer.write(chunk)
                    await asyncio.sleep(pause)
                writer.write(b"0\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, backlog=4096)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1])))
