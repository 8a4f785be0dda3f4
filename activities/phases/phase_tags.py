"""Git tags for the checkpoint that each phase starts from."""

from __future__ import annotations

import re

from activities.checkpoints import Checkpoints

_TAG = re.compile(r"phase/0*(\d+)")


def phase_tag(number: int) -> str:
    """Return the tag of a phase, such as `phase/0003`."""
    return f"phase/{number:04d}"


def phase_tag_commits(checkpoints: Checkpoints) -> dict[int, str]:
    """Map each phase's number to its start checkpoint."""
    return {
        int(match[1]): commit
        for tag, commit in checkpoints.tags().items()
        if (match := _TAG.fullmatch(tag))
    }
