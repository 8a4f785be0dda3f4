"""Combine guards and hooks into one outcome: deny beats ask beats rewrite beats allow.

After a rewrite the other voters vote again. A voter that has rewritten may not rewrite again, so
there are at most as many rounds as voters.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

VoteDecision = Literal["allow", "deny", "ask", "rewrite"]
STRENGTH: dict[VoteDecision, int] = {"deny": 3, "ask": 2, "rewrite": 1}


@dataclass(frozen=True)
class Vote:
    decision: VoteDecision
    reason: str = ""
    arguments: dict[str, Any] = field(default_factory=dict)
    """For `rewrite`: the complete new arguments. For `ask`: the arguments to run once approved."""
    undecided: bool = False
    """For `deny`: whether the voter itself failed and says nothing about the call."""


ALLOW = Vote("allow")


@dataclass(frozen=True)
class Voter:
    name: str
    ask: Callable[[dict[str, Any]], Vote]
    costly: bool = False
    """Asked only if no inexpensive voter denies or rewrites."""


@dataclass(frozen=True)
class VotingOutcome:
    arguments: dict[str, Any]
    denied: str = ""
    asks: str = ""
    """What a person has to approve."""
    guard: str = ""
    """The voter that denies or asks."""
    hook: bool = False
    """Whether that voter is a hook."""
    undecided: bool = False
    """Whether the denying voter itself failed and says nothing about the call."""
    bypassed_guard: str = ""
    """The voter whose refusal was bypassed."""
    rewriters: tuple[str, ...] = ()


def settle_votes(
    voters: Sequence[Voter],
    arguments: dict[str, Any],
    *,
    approved: bool = False,
    bypass: Sequence[str] = (),
) -> VotingOutcome:
    """Ask the voters until none of them rewrites.

    Args:
        approved: A person approved the call, so votes to ask count as allow.
        bypass: Names of voters; the first refusal by one of them is ignored.
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
            # A person is asked only if no voter denies.
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
