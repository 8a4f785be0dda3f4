"""How the rehearsal model lets tools list what it made, and reads what they say of it."""

from __future__ import annotations

from rehearsal.replay import Steps, closing, insist

REVIEW = "notes/review.md"


def collect(tool: str) -> Steps:
    """The result file, written by the tool."""
    told = yield from insist(tool)
    return " ".join(told.splitlines()[:2])


def check(tool: str) -> Steps:
    """What the tool says of the result, kept for people."""
    told = yield from insist(tool)
    note = f"What is cited and what is missing is in {REVIEW}."
    return (yield from closing(note, "append_file", path=REVIEW, content=f"{told}\n\n"))
