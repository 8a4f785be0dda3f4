"""The schema of guards (`config/guards/*.yaml`) and hooks (`hooks`)."""

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from config.regexes import Pattern, compile_cached_regex
from config.schema.config_data import ConfigData
from protocol.notification_requests import DIGEST, OCCASIONS, Occasion
from protocol.phase import PhaseKind

GuardPoint = Literal[
    "reply",
    "before_tool",
    "after_tool",
    "todo_complete",
    "phase_end",
    "job_complete",
    "subagent_end",
]
GuardDecision = Literal["allow", "deny", "ask", "rewrite", "feedback"]
GuardStage = Literal["draft", "experiment", "active", "retired"]
HookEvent = Literal[
    "PreToolUse", "PostToolUse", "PermissionRequest", "Stop", "SubagentStop", "Notification"
]
ALLOWED_DECISIONS: dict[str, tuple[str, ...]] = {
    "before_tool": ("allow", "deny", "ask", "rewrite"),
    "after_tool": ("allow", "feedback"),
}
"""Decisions by point; at all other points a guard allows or denies."""


class FieldMatch(ConfigData):
    """A change of a field of a JSON file."""

    path: list[str] = Field(min_length=1)
    """Shell patterns for the file's path."""
    field: str = Field(min_length=1)
    """The field: its name at any level, or a dotted path from the top, where `*` matches any key or
    index."""


class HistoryMatch(ConfigData):
    """Earlier calls of the job; exactly one of `count`, `sum` and `missing` says what of them."""

    tool: list[str] = Field(min_length=1)
    """Shell patterns for the tools of earlier calls."""
    within: str | None = Field(None, pattern=r"^[1-9][0-9]*[smhd]$")
    """Only calls of so long ago at most: `90s`, `10m`, `24h`, `7d`."""
    same: list[str] = Field(default_factory=list)
    """Arguments in which an earlier call equals this one; for `count` and `sum` whatever their case
    and spacing."""
    count: int = Field(0, ge=0)
    """Applies once so many such calls were made, failed ones included."""
    sum: dict[str, float] = Field(default_factory=dict)
    """The most that an argument may add up to, with this call. What is no number is too much."""
    missing: bool = False
    """Applies if no such call has succeeded, such as an approval."""

    @model_validator(mode="after")
    def _one_condition(self) -> Self:
        if sum(map(bool, (self.count, self.sum, self.missing))) != 1:
            raise ValueError("history: expected one of count, sum and missing")
        return self

    @property
    def within_ms(self) -> int:
        """The window in milliseconds; 0 without one."""
        units = {"s": 1, "m": 60, "h": 3600, "d": 86_400}
        return int(self.within[:-1]) * units[self.within[-1]] * 1000 if self.within else 0


class Match(ConfigData):
    """Conditions that must all hold; without any, the guard applies to everything."""

    tool: list[str] = Field(default_factory=list)
    """Shell patterns for the tool's name."""
    path: list[str] = Field(default_factory=list)
    """Shell patterns for a path in the call, both as written and with links resolved."""
    arguments: dict[str, Pattern] = Field(default_factory=dict)
    """Patterns by argument, each of which the argument's value must match."""
    content: list[Pattern] = Field(default_factory=list)
    """Patterns, one of which must occur: before a tool runs in an argument, afterwards in its
    result, for a reply in its text."""
    ignoring: list[str] = Field(default_factory=list)
    """Arguments that are not searched for the content."""
    random: float | None = Field(None, ge=0, le=8)
    """Minimum bits of entropy per character in the group `value` of a content pattern, if it has
    such a group: words have about 3, keys more."""
    longer: int | None = Field(None, ge=0)
    """Applies if the content has more characters than this."""
    reads_lines: int | None = Field(None, ge=1)
    """Applies to reading more lines than this from a file, with or without a range."""
    changes: FieldMatch | None = None
    """Applies if the call would change this field of this file, whatever the tool."""
    todo: Pattern | None = None
    """A pattern that must occur in the current todo's text."""
    not_ran: list[str] = Field(default_factory=list)
    """Shell patterns for tools; applies if none of them has run since the current todo began."""
    history: HistoryMatch | None = None
    """What the job must have called before, for the guard to apply."""
    phase: PhaseKind | None = None
    """Kind of the running phase."""
    agent: list[str] = Field(default_factory=list)
    """Shell patterns for the agent's name."""
    not_agent: list[str] = Field(default_factory=list)
    """Shell patterns for agents to which it does not apply."""


class Guard(ConfigData):
    """A rule: its point, its conditions and its decision."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$")
    """Name for people and reports."""
    point: GuardPoint
    """Where it is consulted."""
    match: Match = Field(default_factory=Match)
    """What it applies to."""
    decision: GuardDecision
    """Its decision."""
    message: str = Field("", max_length=2000)
    """The reason, addressed to the model."""
    rewrite: dict[str, Any] = Field(default_factory=dict)
    """For the decision rewrite: new values by argument, in which `{{ name }}` stands for an
    argument's old value or a named group of an argument's pattern."""
    stage: GuardStage = "active"
    """An active guard decides; the decisions of one in experiment are only recorded."""

    @model_validator(mode="after")
    def _decision_fits(self) -> Self:
        may = ALLOWED_DECISIONS.get(self.point, ("allow", "deny"))
        if self.decision not in may:
            raise ValueError(
                f"decision: found {self.decision!r} at the point {self.point}, expected "
                f"{' or '.join(may)}"
            )
        if (self.decision == "rewrite") is not bool(self.rewrite):
            raise ValueError("rewrite: expected new arguments with the decision rewrite, only then")
        if self.decision not in {"allow", "rewrite"} and not self.message:
            raise ValueError("message: expected a sentence that says why and what to do instead")
        return self


class Hook(ConfigData):
    """An executable that decides."""

    name: str = ""
    """Name for people; empty: the command's first word."""
    matcher: Pattern = ""
    """Pattern for the whole name of the tool, ours or the protocol's, such as `Write|Edit`; for
    Notification, pattern for the occasion, such as `waiting|end`; empty or `*`: all."""
    command: str = Field(pattern=r"\S", max_length=4000)
    """Command, run by `/bin/sh -c` in the workspace."""
    timeout: float = Field(10, gt=0, le=600)
    """Seconds after which it is killed."""
    fail: Literal["closed", "open"] = "closed"
    """Whether a failing hook denies (closed) or allows (open)."""
    environment: list[str] = Field(default_factory=list)
    """Variables of the worker that it receives, besides PATH, HOME, LANG and the like."""

    @model_validator(mode="before")
    @classmethod
    def _star_is_everything(cls, data: Any) -> Any:
        if isinstance(data, dict) and data.get("matcher") == "*":
            return {**data, "matcher": ""}
        return data

    @property
    def title(self) -> str:
        """Its name among guards, such as in the signal `bypass`."""
        return self.name or self.command.split()[0].rpartition("/")[2]

    @property
    def occasions(self) -> list[Occasion]:
        """The occasions of a hook of Notification."""
        every = [*OCCASIONS, DIGEST]
        if not self.matcher:
            return every
        return [each for each in every if compile_cached_regex(self.matcher).fullmatch(each)]
