"""Git tags for the checkpoint that each phase starts from."""

import re

from activities.checkpoints import CheckpointMissing, Checkpoints, Files
from activities.job.snapshot import snapshot_workspace

_TAG = re.compile(r"phase/0*(\d+)")


def phase_tag(number: int) -> str:
    return f"phase/{number:04d}"


def phase_tag_commits(checkpoints: Checkpoints) -> dict[int, str]:
    return {
        int(match[1]): commit
        for tag, commit in checkpoints.tags().items()
        if (match := _TAG.fullmatch(tag))
    }


def job_start_files(checkpoints: Checkpoints) -> Files | None:
    tags = phase_tag_commits(checkpoints)
    try:
        return snapshot_workspace(checkpoints, tags[min(tags)]) if tags else None
    except CheckpointMissing:
        return None
