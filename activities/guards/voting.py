"""Several guards and hooks, one outcome: deny beats ask beats rewrite beats allow.

Rewritten arguments pass the others again. Whoever rewrote is not asked to rewrite once more, so
there are at most as many rounds as there are voters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

VoteDecision = Literal["allow", "deny", "ask", "rewrite"]
STRENGTH: dict[VoteDecision, int] = {"deny": 3, "ask": 2, "rewrite": 1}


@dataclass(frozen=True)
class Vote:
    """What one voter says."""

    decision: VoteDecision
    reason: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    """For `rewrite`: all of them, as they shall be; for `ask`: the same once it is approved."""
    undecided: bool = False
    """For `deny`: whether the voter failed itself, and says nothing of the call."""


ALLOW = Vote("allow")


@dataclass(frozen=True)
class Voter:
    """A guard or a hook: its name, and what it says of arguments."""

    name: str
    ask: Callable[[dict[str, Any]], Vote]
    costly: bool = False
    """Asked only when nobody who costs nothing denies or rewrites."""


@dataclass(frozen=True)
class VotingOutcome:
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
    undecided: bool = False
    """Whether who denies failed itself, and says nothing of the call."""
    bypassed_guard: str = ""
    """Whose refusal was passed over."""
    rewriters: tuple[str, ...] = ()
    """Who rewrote, in order."""


def settle_votes(
    voters: Sequence[Voter],
    arguments: dict[str, Any],
    *,
    approved: bool = False,
    bypass: Sequence[str] = (),
) -> VotingOutcome:
    """Ask the voters until none rewrites any more.

    Args:
        approved: A person approved the call, so that who asks lets it pass.
        bypass: Names of voters, the first of whose refusals is passed over.
    """
    passed, rewritten = "", list[str]()
    for _ in range(len(voters) + 1):
        strongest: tuple[Voter, Vote] | None = None
        for costly in (False, True):
            for voter in (voter for voter in voters if voter.costly is costly):
                vote = voter.ask(arguments)
                word = vote.decision
                refuses = word == "deny" or (word == "ask" and not approved)
                if refuses and voter.name in bypass and passed in ("", voter.name):
                    passed = voter.name
                    continue
                if word == "ask" and approved:
                    word = "rewrite" if vote.arguments else "allow"
                if word == "allow" or (word == "rewrite" and voter.name in rewritten):
                    continue
                vote = replace(vote, decision=word)
                if strongest is None or STRENGTH[word] > STRENGTH[strongest[1].decision]:
                    strongest = (voter, vote)
                if word == "deny":
                    break
            # A question to a person is worth asking only if nobody denies.
            if strongest and strongest[1].decision in ("deny", "rewrite"):
                break
        if strongest is None:
            break
        voter, vote = strongest
        if vote.decision == "rewrite":
            rewritten.append(voter.name)
            arguments = vote.arguments
            continue
        denies = vote.decision == "deny"
        return VotingOutcome(
            arguments,
            denied=vote.reason if denies else "",
            asks="" if denies else vote.reason,
            guard=voter.name,
            hook=voter.costly,
            undecided=vote.undecided,
            rewriters=tuple(rewritten),
        )
    return VotingOutcome(arguments, bypassed_guard=passed, rewriters=tuple(rewritten))
