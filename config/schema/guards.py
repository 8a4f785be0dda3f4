"""The schema of guards (`config/guards/*.yaml`) and hooks (`hooks`)."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from config.patterns import Pattern, compile_cached_pattern
from protocol.notifications import OCCASIONS, Occasion
from protocol.state import Data, PhaseKind

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


class FieldMatch(Data):
    """A change of a field of a JSON file."""

    path: list[str] = Field(min_length=1, description="Shell patterns of the file's path.")
    field: str = Field(
        min_length=1,
        description="The field: its name wherever it stands, or a dotted path from the top in "
        "which `*` is any key or place.",
    )


class Match(Data):
    """Conditions that must all hold; without any, the guard applies to everything."""

    tool: list[str] = Field(default_factory=list, description="Shell patterns of the tool's name.")
    path: list[str] = Field(
        default_factory=list,
        description="Shell patterns of a path that the call names, as it is given or as its links "
        "lead.",
    )
    arguments: dict[str, Pattern] = Field(
        default_factory=dict, description="A pattern for each argument that has to fit."
    )
    content: list[Pattern] = Field(
        default_factory=list,
        description="Patterns, one of which has to be found: before a tool in an argument, after "
        "it in the result, in the text of a reply.",
    )
    ignoring: list[str] = Field(
        default_factory=list, description="Arguments in which the content is not looked for."
    )
    random: float | None = Field(
        None,
        ge=0,
        le=8,
        description="Bits per character that the group `value` of a content pattern must have, "
        "in patterns that have such a group: words have about 3, keys more.",
    )
    longer: int | None = Field(None, ge=0, description="The content has more characters than this.")
    reads_lines: int | None = Field(
        None,
        ge=1,
        description="A read of a file with more lines than this, without a range or with one of "
        "more lines than this.",
    )
    changes: FieldMatch | None = Field(
        None, description="The call would change this field of this file, whatever tool it is."
    )
    todo: Pattern | None = Field(None, description="A pattern that is in the current todo's text.")
    not_ran: list[str] = Field(
        default_factory=list,
        description="Shell patterns of tools, none of which was carried out since the current todo "
        "began.",
    )
    phase: PhaseKind | None = Field(None, description="Kind of the running phase.")
    agent: list[str] = Field(default_factory=list, description="Shell patterns of the agent.")
    not_agent: list[str] = Field(
        default_factory=list, description="Shell patterns of agents that it does not concern."
    )


class Guard(Data):
    """A rule: its point, its conditions and its decision."""

    name: str = Field(
        pattern=r"^[a-z0-9][a-z0-9_.-]{0,63}$", description="By which people and reports name it."
    )
    point: GuardPoint = Field(description="Where it stands.")
    match: Match = Field(default_factory=Match, description="What it concerns.")
    decision: GuardDecision = Field(description="What it decides.")
    message: str = Field("", max_length=2000, description="Why, worded for the model.")
    rewrite: dict[str, Any] = Field(
        default_factory=dict,
        description="For the decision rewrite: arguments with new values, in which `{{ name }}` is "
        "an argument as it was or a named group of an argument's pattern.",
    )
    stage: GuardStage = Field(
        "active",
        description="An active guard acts; one in experiment is asked, and what it says is noted.",
    )

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


class Hook(Data):
    """An executable that decides."""

    name: str = Field("", description="By which people name it; empty: the command's first word.")
    matcher: Pattern = Field(
        "",
        description="Pattern of the whole name of the tool, ours or the protocol's, such as "
        "`Write|Edit`; for Notification of what it is for, such as `waiting|end`; empty or `*`: "
        "all.",
    )
    command: str = Field(
        pattern=r"\S", max_length=4000, description="What is run, by `/bin/sh -c` in the workspace."
    )
    timeout: float = Field(10, gt=0, le=600, description="Seconds until it is killed.")
    fail: Literal["closed", "open"] = Field(
        "closed", description="Whether a hook that fails denies, or lets pass."
    )
    environment: list[str] = Field(
        default_factory=list,
        description="Variables of the worker that it gets beside PATH, HOME, LANG and the like.",
    )

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
        if not self.matcher:
            return list(OCCASIONS)
        return [each for each in OCCASIONS if compile_cached_pattern(self.matcher).fullmatch(each)]
