"""The zero-cost model behind a local port, for hundreds of calls that wait at once.

It is one loop that reads only the end of a request, so that the load on the machine is the
worker's. `python -m benchmarks.latent_model` prints its address; a GET returns the numbers of calls
that were answered and that were refused.
"""

import argparse
import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress

import httpx2

from benchmarks.bare_engine import bare_latencies
from benchmarks.zero_cost import ZeroCost
from benchmarks.zero_cost_transport import EVENTS, zero_cost_answer_events

MINUTE = 60.0
REFUSAL = b'{"error": {"message": "Rate limit reached"}}'
GONE = (asyncio.IncompleteReadError, ConnectionError)


class Latent:
    """Answers chat completions after `delay` seconds on average.

    Args:
        quota: Calls that it answers within any minute; 0 is no limit.
        names_quota: Whether its answers name the quota in a header.
    """

    def __init__(
        self, model: ZeroCost, delay: float, quota: int = 0, *, names_quota: bool = False
    ) -> None:
        self._model = model
        self._latencies = bare_latencies(delay)
        self._quota = quota
        self._named = f"x-ratelimit-limit-requests: {quota}\r\n" if names_quota else ""
        self._recent = deque[float](maxlen=quota or 1)
        self._calls = self._refused = 0

    async def serve(self, report: Callable[[str], None]) -> None:
        """Serve until cancelled; call `told` with the address."""
        async with await asyncio.start_server(self._connected, "127.0.0.1", backlog=1024) as server:
            host, port = server.sockets[0].getsockname()
            report(f"http://{host}:{port}/v1")
            await server.serve_forever()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(*GONE):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                length = int(head.partition(b"\r\ncontent-length:")[2].partition(b"\r")[0] or 0)
                body = await reader.readexactly(length)
                writer.write(await self._reply(body))
                await writer.drain()
        writer.close()

    async def _reply(self, body: bytes) -> bytes:
        kind, status, named = "text/plain", "200 OK", self._named
        body_bytes = f"{self._calls} {self._refused}".encode()
        if body and self._is_over_quota():
            self._refused += 1
            kind, status, body_bytes = "application/json", "429 Too Many Requests", REFUSAL
            named += "retry-after: 2\r\n"
        elif body:
            self._calls += 1
            kind, body_bytes = EVENTS["content-type"], zero_cost_answer_events(self._model, body)
            await asyncio.sleep(next(self._latencies))
        head = (
            f"HTTP/1.1 {status}\r\n{named}content-type: {kind}\r\n"
            f"content-length: {len(body_bytes)}\r\n\r\n"
        )
        return head.encode() + body_bytes

    def _is_over_quota(self) -> bool:
        """Return whether the quota is used up, else count the call."""
        now = time.monotonic()
        is_full = self._quota and len(self._recent) == self._quota
        if is_full and now - self._recent[0] < MINUTE:
            return True
        self._recent.append(now)
        return False


def serve_latent_model() -> None:
    options = argparse.ArgumentParser(prog="python -m benchmarks.latent_model", description=__doc__)
    options.add_argument("--delay", type=float, default=15.0, help="seconds a call takes")
    options.add_argument(
        "--steps", type=int, default=1000, help="model calls of the tactical phase"
    )
    options.add_argument("--quota", type=int, default=0, help="most calls within any minute")
    options.add_argument("--names-quota", action="store_true", help="name it in a header")
    arguments = options.parse_args()
    latent = Latent(
        ZeroCost(steps=arguments.steps), arguments.delay, arguments.quota,
        names_quota=arguments.names_quota,
    )  # fmt: skip
    asyncio.run(latent.serve(lambda address: print(f"listening on {address}", flush=True)))


async def count_latent_model_calls(endpoint: str) -> int:
    """Return the number of calls the model has answered."""
    return (await count_latent_model_answers(endpoint))[0]


async def count_latent_model_answers(endpoint: str) -> tuple[int, int]:
    """Return how many calls the model has answered, and how many it has refused."""
    async with httpx2.AsyncClient(timeout=60) as client:
        answered, refused = (await client.get(endpoint)).text.split()
        return int(answered), int(refused)


if __name__ == "__main__":
    serve_latent_model()
