"""The network of the chaos runs forwards, cuts, refuses, delays and resumes connections."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.chaos.proxy import Proxy

PATIENCE = 30
"""Seconds to wait for something that comes at once, unless a busy machine stops for a moment."""
A_WHILE = 0.3
"""Seconds during which nothing arrives."""


@asynccontextmanager
async def echo() -> AsyncIterator[Proxy]:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(100):
            writer.write(data.upper())
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server, Proxy(server.sockets[0].getsockname()[1]) as proxy:
        yield proxy


async def say(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, seconds: float = PATIENCE
) -> bytes:
    writer.write(b"a")
    return await asyncio.wait_for(reader.read(1), seconds)


async def test_what_is_cut_is_reset_and_a_new_connection_is_taken() -> None:
    async with echo() as proxy:
        ends = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await say(*ends) == b"A"
        proxy.cut()
        with pytest.raises(ConnectionError):
            await say(*ends)
        assert await say(*await asyncio.open_connection("127.0.0.1", proxy.port)) == b"A"


async def test_what_is_refused_is_accepted_later_on_the_same_port() -> None:
    async with echo() as proxy:
        port = proxy.port
        proxy.refuse()
        with pytest.raises(ConnectionError):
            await asyncio.open_connection("127.0.0.1", port)
        await proxy.accept()
        assert await say(*await asyncio.open_connection("127.0.0.1", port)) == b"A"


async def test_what_is_stalled_comes_through_afterwards() -> None:
    async with echo() as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        assert await say(reader, writer) == b"A"
        proxy.stall()
        with pytest.raises(TimeoutError):
            await say(reader, writer, A_WHILE)
        proxy.flow()
        assert await asyncio.wait_for(reader.read(1), PATIENCE) == b"A"
