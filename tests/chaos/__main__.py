"""`make chaos`: disturbs work of every kind in every way, seed after seed."""

import argparse
import asyncio
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from activities.commands import sandbox
from tests.chaos import clock, disk
from tests.chaos.evidence import Evidence
from tests.chaos.plan import KINDS, Blow, Kind, draw
from tests.chaos.trial import Ground, Outcome, run
from tests.chaos.works import WORKS, Work
from tests.crash.processes import nursery

BLOWS = 6
"""For each piece of work and seed."""


def main() -> int:
    options = _options()
    disk.enter_private_mounts()
    folder = Path(tempfile.mkdtemp(prefix="longhaul-chaos-"))
    library = clock.find_library()
    kinds = _kinds(library)
    works = _works(options.work)
    print(f"logs in {folder}", flush=True)
    with ExitStack() as stack:
        logs = folder / "workers"
        logs.mkdir()
        more = clock.preloaded(library) if library else {}
        ground = Ground(
            folder, stack.enter_context(nursery(logs, more)), disk.can_mount(), bool(library)
        )
        code = asyncio.run(_all(ground, works, kinds, options))
    if code == 0:
        shutil.rmtree(folder)
    return code


async def _all(
    ground: Ground, works: Sequence[Work], kinds: Sequence[Kind], options: argparse.Namespace
) -> int:
    until = time.monotonic() + 60 * options.minutes
    quiet: dict[str, Evidence] = {}
    undisturbed = (run(ground, work, f"{work.name}-undisturbed") for work in works)
    for work, outcome in zip(works, await asyncio.gather(*undisturbed), strict=True):
        _tell(outcome)
        if outcome.evidence is not None:
            quiet[work.name] = outcome.evidence
        if outcome.faults:
            return 1
    failed, seeds = 0, 0
    for seed in range(options.seed, options.seed + options.seeds):
        # The first seed is run however long it takes.
        if seeds and time.monotonic() > until:
            print(f"time is up: {seeds} of {options.seeds} seeds", flush=True)
            break
        seeds += 1
        failed += await _round(ground, works, kinds, quiet, seed, options.blows)
    print(
        f"{seeds} seeds from {options.seed}, {seeds * len(works)} pieces of work, {failed} failed"
    )
    return 1 if failed else 0


async def _round(
    ground: Ground,
    works: Sequence[Work],
    kinds: Sequence[Kind],
    quiet: dict[str, Evidence],
    seed: int,
    count: int,
) -> int:
    """Run all works side by side under one seed; return the number of failures."""
    plans = {
        work.name: draw(seed, work.name, len(quiet[work.name].answered), count, kinds)
        for work in works
    }

    async def one(work: Work) -> bool:
        plan = plans[work.name]
        outcome = await run(ground, work, f"{work.name}-{seed}", plan, quiet[work.name], seed)
        _tell(outcome, plan)
        if outcome.faults:
            print(
                f"  again: make chaos ARGS='--seed {seed} --seeds 1 --blows {count} "
                f"--work {work.name}'\n  logs: {ground.folder}/{outcome.name}, "
                f"{ground.folder}/workers",
                flush=True,
            )
        return bool(outcome.faults)

    return sum(await asyncio.gather(*map(one, works)))


def _tell(outcome: Outcome, blows: Sequence[Blow] = ()) -> None:
    print(
        f"{'✗' if outcome.faults else '✓'} {outcome.name}: {outcome.seconds:.0f} s, "
        f"{outcome.fell} blows, {outcome.hits} at their moment",
        flush=True,
    )
    for blow in blows:
        print(f"  {blow}", flush=True)
    for reason in outcome.parked:
        print(f"  waited: {reason[:300]}", flush=True)
    for fault in outcome.faults:
        print(f"  FAULT {fault}", flush=True)


def _kinds(library: Path | None) -> list[Kind]:
    """Return the disturbances that are possible here; print which are not."""
    kinds = list(KINDS)
    if not disk.can_mount():
        print("skipped: full disk (no file system can be mounted here: unshare is refused)")
        kinds.remove("full disk")
    if library is None:
        print("skipped: clock jumps (libfaketime is not here; apt install libfaketime)")
        kinds = [kind for kind in kinds if not kind.startswith("clock")]
    return kinds


def _works(names: Sequence[str]) -> list[Work]:
    chosen = [work for name, work in WORKS.items() if name in names or not names]
    if why := sandbox.sandbox_problem(sandbox.find_bwrap()):
        for work in [each for each in chosen if each.needs_sandbox]:
            print(f"skipped: {work.name} (it runs commands, and there is no sandbox: {why})")
            chosen.remove(work)
    return chosen


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make chaos", description=__doc__)
    parser.add_argument(
        "--seed", type=int, default=random.SystemRandom().randrange(1, 1_000_000),
        help="the first seed; drawn when not given",
    )  # fmt: skip
    parser.add_argument("--seeds", type=int, default=100, help="how many at most")
    parser.add_argument("--minutes", type=float, default=8, help="no seed is begun after these")
    parser.add_argument("--blows", type=int, default=BLOWS, help="of each piece of work")
    parser.add_argument("--work", action="append", default=[], choices=list(WORKS))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
