"""The disturbances of a piece of work, drawn from a seed: the same seed, the same plan."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from tests.crash import aims

Kind = Literal[
    "kill worker", "kill server", "kill both", "freeze worker",
    "refuse temporal", "cut temporal", "stall temporal", "delay temporal",
    "refuse model", "cut model", "stall model", "delay model",
    "model 429", "model 500", "model breaks off", "model falls silent", "model is slow",
    "full disk", "clock ahead", "clock back",
    "key expires", "deploy",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)[:-2]
"""Those of drawn plans; the last two take an operator, whom only `two_days` has."""
NETWORK = ("refuse", "cut", "stall", "delay")
MODEL = tuple(kind for kind in KINDS if kind.endswith(" model") or kind.startswith("model "))

AIMS = {aim.__name__: aim for aim in aims.AIMS}
SECONDS: dict[str, tuple[float, float]] = {
    "kill server": (0.0, 3.0),
    "kill both": (0.0, 3.0),
    # Longer than the heartbeat's time-out of 5 seconds.
    "freeze worker": (6.0, 9.0),
    "full disk": (2.0, 12.0),
}
"""Minimum and maximum duration of each."""
OTHERWISE = (1.0, 7.0)


@dataclass(frozen=True)
class Blow:
    """One disturbance."""

    kind: Kind
    after: int
    """New model calls to wait for first."""
    aim: str
    """The moment within a step to wait for then, by its name in `crash.aims`."""
    seconds: float
    """Its duration, if it lasts."""
    meanwhile: Kind | None = None
    """A second disturbance during this one."""

    @property
    def kinds(self) -> list[Kind]:
        """All disturbances of this blow."""
        return [self.kind, self.meanwhile] if self.meanwhile else [self.kind]

    def __str__(self) -> str:
        also = f", {self.meanwhile} in its midst" if self.meanwhile else ""
        aim = self.aim.replace("_", " ")
        return f"{self.kind} {self.seconds:.1f} s, {aim} after {self.after} calls{also}"


def draw(seed: int, name: str, calls: int, count: int, kinds: Sequence[Kind]) -> list[Blow]:
    """Draw the disturbances for the work of this name.

    Args:
        calls: Model calls of the work when nobody disturbs it; the blows are spread over them.
        count: How many.
        kinds: Those that can be done here; each comes once before any comes again.
    """
    dice = random.Random(f"{seed} {name}")
    deck: list[Kind] = []
    while len(deck) < count:
        deck += dice.sample(kinds, len(kinds))
    most = max(1, calls // (2 * count))
    return [
        Blow(
            kind,
            after=dice.randint(1, most),
            aim=dice.choice(sorted(AIMS)),
            seconds=round(dice.uniform(*SECONDS.get(kind, OTHERWISE)), 1),
            meanwhile=_meanwhile(kind, kinds, dice),
        )
        for kind in deck[:count]
    ]


def _meanwhile(kind: Kind, kinds: Sequence[Kind], dice: random.Random) -> Kind | None:
    """Add a killed worker, or a disturbance of another part, to half of those that last."""
    if not _lasts(kind) or dice.random() < 0.5:
        return None
    others = [other for other in kinds if _lasts(other) and _part(other) != _part(kind)]
    return dice.choice(others) if others and dice.random() < 0.5 else "kill worker"


def _lasts(kind: Kind) -> bool:
    """Return whether something else can happen during it."""
    return not kind.startswith(("kill", "freeze", "cut"))


def _part(kind: Kind) -> str:
    """Return the part of the system that it disturbs."""
    if kind in MODEL:
        return "model"
    return kind.split()[-1] if kind.startswith(NETWORK) else kind.split()[0]
