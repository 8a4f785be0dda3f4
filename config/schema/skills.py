"""An Agent Skill as a job pins it: https://agentskills.io/specification."""

from protocol.data_model import Data

SKILL_FILE = "SKILL.md"
MOST_NAME = 64
MOST_DESCRIPTION = 1024


class Skill(Data):
    """A skill as listed in the system prompt; its files are below `skills/<name>/`."""

    name: str
    description: str
