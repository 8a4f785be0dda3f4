"""Reads `teams.yaml`: the teams that may start jobs on this worker, with their quotas."""

from typing import Annotated

from pydantic import Field, ValidationError

from config.layers import TEAMS, configuration_layers
from config.schema.agent import ConfigError
from config.yaml_files import explain_yaml_error, read_yaml_mapping
from protocol.data_model import Data
from protocol.teams import TeamName

MOST_TEAMS = 200
"""Each is a label of metrics."""


class TeamQuota(Data):
    """What a team may use; null: without end."""

    jobs: Annotated[int, Field(ge=1)] | None = None
    """Jobs at once."""
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = None
    """Spend of a day in UTC, after which no job begins."""
    tokens: Annotated[int, Field(gt=0)] | None = None
    """The same in tokens."""


class TeamsFile(Data):
    teams: dict[TeamName, TeamQuota] = Field(default_factory=dict, max_length=MOST_TEAMS)


def load_teams() -> dict[str, TeamQuota]:
    """The teams of the configuration, which need not list any. Raises ConfigError."""
    path = configuration_layers().find_file(TEAMS)
    if not path.is_file():
        return {}
    try:
        return TeamsFile.model_validate({"teams": read_yaml_mapping(path)}).teams
    except ValidationError as error:
        raise ConfigError(f"{path}: {explain_yaml_error(error, TeamsFile)}") from None


def team_quota(team: str) -> TeamQuota | None:
    """The quota of a start's team; None where the configuration lists no teams.

    Raises ConfigError: it lists some, and not this one.
    """
    teams = load_teams()
    if not teams:
        return None
    if team not in teams:
        wrong = f"there is no team {team!r}" if team else "a start names its team"
        raise ConfigError(f"team: {wrong}; this configuration has {', '.join(sorted(teams))}")
    return teams[team]
