"""A network that can be cut: a TCP proxy with its own port in front of another port."""

from __future__ import annotations

import asyncio
from contextlib import suppress

PIECE = 1 << 16


class Proxy:
    """Passes connections on to a port of this machine; an async context manager."""

    def __init__(self, target: int) -> None:
        self._target = target
        self._flows = asyncio.Event()
        self._flows.set()
        self._open: set[asyncio.StreamWriter] = set()
        self._running: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.port = 0
        self.delay = 0.0
        """Delay of each piece, in seconds."""

    async def __aenter__(self) -> Proxy:
        await self.accept()
        return self

    async def __aexit__(self, *_: object) -> None:
        self.refuse()
        for task in list(self._running):
            task.cancel()
        await asyncio.gather(*self._running, return_exceptions=True)

    async def accept(self) -> None:
        """Accept connections, on the same port as before."""
        if self._server is None:
            self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
            self.port = self._server.sockets[0].getsockname()[1]

    def refuse(self) -> None:
        """Close all connections and accept none."""
        if self._server is not None:
            self._server.close()
            self._server = None
        self.cut()

    def cut(self) -> None:
        """Reset the present connections; new ones are accepted."""
        for writer in list(self._open):
            writer.transport.abort()

    def stall(self) -> None:
        """Hold all data back without closing anything, as if packets were lost."""
        self._flows.clear()

    def flow(self) -> None:
        """Release the data that was held back."""
        self._flows.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._running.add(task)
        self._open.add(writer)
        ends = [writer]
        try:
            await self._flows.wait()
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target)
            self._open.add(far_writer)
            ends.append(far_writer)
            await asyncio.gather(self._pass(reader, far_writer), self._pass(far_reader, writer))
        except (OSError, asyncio.CancelledError):
            pass  # one end is gone, or we are closing
        finally:
            for end in ends:
                end.transport.abort()
                self._open.discard(end)
            self._running.discard(task)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(PIECE):
            if self.delay:
                await asyncio.sleep(self.delay)
            await self._flows.wait()
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()
