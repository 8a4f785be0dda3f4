"""Several guards and hooks, one outcome: deny beats ask beats rewrite beats allow.

Rewritten arguments pass the others again. Whoever rewrote is not asked to rewrite once more, so
there are at most as many rounds as there are judges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

Word = Literal["allow", "deny", "ask", "rewrite"]
STRENGTH: dict[Word, int] = {"deny": 3, "ask": 2, "rewrite": 1, "allow": 0}


@dataclass(frozen=True)
class Opinion:
    """What one judge says."""

    word: Word
    reason: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    """For `rewrite`: all of them, as they shall be; for `ask`: the same once it is approved."""


ALLOW = Opinion("allow")


@dataclass(frozen=True)
class Judge:
    """A guard or a hook: its name, and what it says of arguments."""

    name: str
    ask: Callable[[dict[str, Any]], Opinion]
    costly: bool = False
    """Asked only when nobody who costs nothing denies or rewrites."""


@dataclass(frozen=True)
class Outcome:
    """What came of it."""

    arguments: dict[str, Any]
    denied: str = ""
    """Why the call is not run."""
    asks: str = ""
    """What a person has to approve."""
    guard: str = ""
    """Who denies, or asks."""
    hook: bool = False
    """Whether that is a hook."""
    bypassed: str = ""
    """Whose refusal was passed over."""
    rewritten: tuple[str, ...] = ()
    """Who rewrote, in order."""


def settle(
    judges: Sequence[Judge],
    arguments: dict[str, Any],
    *,
    approved: bool = False,
    bypass: Sequence[str] = (),
) -> Outcome:
    """Ask the judges until none rewrites any more.

    Args:
        approved: A person approved the call, so that who asks lets it pass.
        bypass: Names of judges, the first of whose refusals is passed over.
    """
    passed, rewritten = "", list[str]()
    for _ in range(len(judges) + 1):
        strongest: tuple[Judge, Opinion] | None = None
        for costly in (False, True):
            for judge in (judge for judge in judges if judge.costly is costly):
                opinion = judge.ask(arguments)
                word = opinion.word
                refuses = word == "deny" or (word == "ask" and not approved)
                if refuses and judge.name in bypass and passed in ("", judge.name):
                    passed = judge.name
                    continue
                if word == "ask" and approved:
                    word = "rewrite" if opinion.arguments else "allow"
                if word == "rewrite" and judge.name in rewritten:
                    continue
                opinion = replace(opinion, word=word)
                if strongest is None or STRENGTH[word] > STRENGTH[strongest[1].word]:
                    strongest = (judge, opinion)
                if word == "deny":
                    break
            # A question to a person is worth asking only if nobody denies.
            if strongest and strongest[1].word in ("deny", "rewrite"):
                break
        if strongest is None or strongest[1].word == "allow":
            break
        judge, opinion = strongest
        if opinion.word == "rewrite":
            rewritten.append(judge.name)
            arguments = opinion.arguments
            continue
        said = {"denied" if opinion.word == "deny" else "asks": opinion.reason}
        return Outcome(
            arguments, **said, guard=judge.name, hook=judge.costly, rewritten=tuple(rewritten)
        )
    return Outcome(arguments, bypassed=passed, rewritten=tuple(rewritten))
