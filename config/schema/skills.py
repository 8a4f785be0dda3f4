"""An Agent Skill as a job pins it: https://agentskills.io/specification."""

from __future__ import annotations

from protocol.state import Data

SKILL_FILE = "SKILL.md"
MOST_NAME = 64
MOST_DESCRIPTION = 1024


class Skill(Data):
    """What the system prompt has of a skill; its files lie below `skills/<name>/`."""

    name: str
    description: str
