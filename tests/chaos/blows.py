"""What each kind of disturbance does and how it is undone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from tests.chaos import disk
from tests.chaos.place import Place
from tests.chaos.plan import Blow, Kind

HELD_SECONDS = 0.3
"""Delay of each piece in a slow network."""
JUMP_SECONDS = 3600
BACK_SECONDS = 1.5
"""Time until every worker has noticed that a clock is right again."""


async def strike(place: Place, blow: Blow) -> bool:
    """Cause the disturbance and undo it if possible. Return whether the intended moment came."""
    hit = await place.aim(blow.aim)
    match blow.kind:
        case "kill worker":
            await place.kill_worker()
            place.start_worker()
        case "freeze worker":
            await _freeze(place, blow.seconds)
        case "cut temporal":
            place.to_temporal.cut()
        case "cut model":
            place.to_model.cut()
        case _:
            async with _lasting(place, blow.kind):
                await asyncio.sleep(blow.seconds / 2)
                async with _lasting(place, blow.meanwhile):
                    await asyncio.sleep(blow.seconds / 2)
            if blow.meanwhile == "kill worker" or not place.workers:
                place.start_worker()
    return hit


async def _freeze(place: Place, seconds: float) -> None:
    """Freeze a worker past its time-outs while another one serves, then wake it."""
    frozen = place.worker
    frozen.freeze()
    place.start_worker()
    await asyncio.sleep(seconds)
    frozen.wake()
    # Both workers go on; of three, one is drained.
    while len(place.workers) > 2:
        place.workers.pop(0).drain()


@asynccontextmanager
async def _lasting(place: Place, kind: Kind | None) -> AsyncIterator[None]:
    if kind in (None, "kill worker"):
        # Another worker is started after the cut, because it could not connect before.
        if kind:
            await place.kill_worker()
        yield
        return
    what, _, rest = kind.partition(" ")
    proxy = place.to_temporal if rest == "temporal" else place.to_model
    if kind in ("kill server", "kill both"):
        place.server.kill()
        if kind == "kill both":
            await place.kill_worker()
        yield
        place.server.start()
        await place.server.client()
    elif what == "refuse":
        proxy.refuse()
        yield
        await proxy.accept()
    elif what == "stall":
        proxy.stall()
        yield
        proxy.flow()
    elif what == "delay":
        proxy.delay = HELD_SECONDS
        yield
        proxy.delay = 0
    elif what == "model":
        place.moody.mood = kind
        yield
        place.moody.mood = None
    elif kind == "full disk":
        ballast = disk.fill(place.disk)
        yield
        ballast.unlink()
    else:
        place.clock.set(JUMP_SECONDS if kind == "clock ahead" else -JUMP_SECONDS)
        yield
        place.clock.set(0)
        await asyncio.sleep(BACK_SECONDS)
