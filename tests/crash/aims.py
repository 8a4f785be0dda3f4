"""Moments within steps, observed from outside, at which to kill or freeze a worker.

An aim watches what the job's processes write to disk or request from the model, and returns when it
sees its moment or its time is up. It polls in well under a millisecond, faster than a checkpoint.
"""

import random
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

POLL = 0.0005
POLL_CALLS = 0.005
"""For what the model sees: a call takes a tenth of a second, and the end is far off."""
PATIENCE = 15.0
"""Seconds to wait for a moment; on a busy machine a phase may take as long."""


@dataclass
class View:
    """What an aim can observe of a worker's jobs."""

    repositories: list[Path]
    ending: Callable[[], bool]
    """Whether all jobs have received their last reply."""
    in_flight: Callable[[], bool]
    """Whether a model call is under way."""
    delay: float
    """Minimum duration of a model call in seconds."""
    random: random.Random


Aim = Callable[[View], bool]
"""Waits; true if the moment came."""


def during_a_model_call(view: View) -> bool:
    """The request has arrived and its answer has not been sent."""
    return _seen(view.in_flight, poll=POLL_CALLS) and _later(view, view.delay)


def during_a_checkpoint(view: View) -> bool:
    """Objects have just been appended to the journal, or are about to be."""
    return _grown(view) and _later(view, 0.002)


def before_the_effect(view: View) -> bool:
    """A model call was answered, or is about to be, and nothing of the answer is stored."""
    if not _seen(view.in_flight, poll=POLL_CALLS):
        return False
    time.sleep(view.delay)
    return True


def after_the_effect(view: View) -> bool:
    """A reply is stored and its activity has not been reported as complete."""
    return _touched(view, "replies") and _later(view, 0.001)


def while_the_folder_is_brought_up_to_date(view: View) -> bool:
    """The projection has noted what it begins, and now makes drafts beside the note."""
    return _touched(view, "") and _later(view, 0.002)


def at_a_phase_end(view: View) -> bool:
    """The new phase's checkpoint is being tagged or its objects are being packed."""
    return _touched(view, "refs/tags/phase", "objects/pack", "packing") and _later(view, 0.02)


def at_any_time(view: View) -> bool:
    """Any time before the end."""
    return _later(view, 1.0) and not view.ending()


def at_the_end(view: View) -> bool:
    """The last checkpoint is being packed or tagged."""
    return _seen(view.ending, patience=60, poll=POLL_CALLS) and _touched(
        view, "objects/pack", "refs/tags"
    )


# Those that recur.
AIMS: tuple[Aim, ...] = (
    during_a_model_call,
    during_a_checkpoint,
    before_the_effect,
    after_the_effect,
    while_the_folder_is_brought_up_to_date,
    at_a_phase_end,
    at_any_time,
)


def _seen(happening: Callable[[], bool], *, patience: float = PATIENCE, poll: float = POLL) -> bool:
    until = time.monotonic() + patience
    while time.monotonic() < until:
        if happening():
            return True
        time.sleep(poll)
    return False


def _touched(view: View, *names: str) -> bool:
    """Return whether one of these folders, in any repository, appears or gets a new or renamed
    entry.
    """
    folders = [repository / name for repository in view.repositories for name in names]
    before = _times(folders)
    return _seen(lambda: _times(folders) != before)


def _grown(view: View) -> bool:
    """Return whether the journal of any repository grows."""
    before = _sizes(view)
    return _seen(lambda: _sizes(view) != before)


def _sizes(view: View) -> list[int]:
    sizes = []
    for repository in view.repositories:
        for file in (repository / "journal").glob("*.log"):
            with suppress(FileNotFoundError):
                sizes.append(file.stat().st_size)
    return sizes


def _times(folders: Iterable[Path]) -> list[int]:
    return [_time(folder) for folder in folders]


def _time(folder: Path) -> int:
    try:
        return folder.stat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _later(view: View, seconds: float) -> bool:
    """Wait for a random time of up to `seconds`."""
    time.sleep(view.random.uniform(0, seconds))
    return True
