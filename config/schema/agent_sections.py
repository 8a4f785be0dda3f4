"""The sections of an agent's file: every key, its meaning and its default.

`docs/configuration.md` is generated from this file and from `config.schema.agent`.
"""

import re
from typing import Literal, Self

from pydantic import Field, GetJsonSchemaHandler, field_validator, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from config.schema.config_data import ConfigData
from config.schema.model_settings import ModelConfig
from protocol.limits import Budget
from protocol.phase import PhaseKind


class Context(ConfigData):
    tokens: int = Field(80_000, ge=1000)
    """Tokens of a request at which the conversation is compacted."""
    share: float = Field(0.8, gt=0, le=1)
    """The same limit as a share of model.window minus max_output_tokens, if the window is known;
    the smaller limit applies."""

    def compaction_limit(self, model: ModelConfig) -> int:
        """Tokens of a request at which the conversation with this model is compacted."""
        if model.window is None:
            return self.tokens
        return max(1, min(self.tokens, int(self.share * model.window) - model.max_output_tokens))


class Prompts(ConfigData):
    strategic: str
    """Template of the system prompt of strategic phases."""
    tactical: str
    """Template of the system prompt of tactical phases."""
    orientation: str
    """Template of the first message of a phase."""
    archive_summary: str
    """Prompt that summarises a phase for its archive page."""
    reflection_assumption: str
    """Prompt that asks which wrong assumption made an attempt fail."""
    reflection_prevention: str
    """Prompt that asks how to prevent such a failure."""
    context_summary: str
    """Prompt that summarises the older part of a conversation."""
    helper: str
    """System prompt of the helpers that `delegate` starts."""
    handoff_summary: str
    """Prompt that shortens a long summary by a job of a project."""


class Commits(ConfigData):
    single: bool = False
    """Whether a job's work on a repository is one commit, with the summary as its message; else
    each phase that changed something has one."""
    author: str = Field("", pattern=r"^$|^[^<>\r\n]+ <[^<>\s]+@[^<>\s]+>$")
    """Author of the commits, as in Ada <ada@example.org>; empty: longhaul."""
    sign_off: bool = False
    """Whether the author signs off each commit (Signed-off-by)."""

    @model_validator(mode="after")
    def _signed_by_somebody(self) -> Self:
        if self.sign_off and not self.author:
            raise ValueError("sign_off needs the author who signs off")
        return self


class Limits(ConfigData):
    min_todos: int = Field(5, ge=1)
    """Minimum number of todos that a strategic phase hands over."""
    max_todos: int = Field(20, ge=1, le=100)
    """Maximum number of todos of a phase."""
    summary_calls: int = Field(8, ge=0)
    """Model calls of a tactical phase above which the model summarises it for its archive page; in
    a shorter phase the notes on its todos are the summary."""
    rewinds: int = Field(5, ge=0)
    """Rewinds before the job waits for a person."""
    clarifications: int = Field(1, ge=0)
    """Questions to a person in one job; further ones get the agent's default as an answer at once.
    """
    clarification_hours: float = Field(24, gt=0, le=8760)
    """Hours a job waits for an answer before it continues with the agent's default."""
    approve_hours: float | None = Field(None, gt=0, le=8760)
    """Hours a job waits for a person to approve a call before it counts as denied; null: no limit.
    """
    helper_calls: int = Field(20, ge=1, le=200)
    """Maximum number of model calls of one helper of `delegate`."""
    history_events: int = Field(1000, ge=100, le=10_000)
    """Number of history events after which a job continues as new."""
    tool_attempts: int = Field(4, ge=1, le=20)
    """Maximum number of attempts of a failing tool."""
    workspace_tokens: int = Field(4000, ge=100)
    """Maximum tokens of workspace.md in the system prompt."""
    result_characters: int = Field(20_000, ge=500)
    """Maximum characters of a tool result; the middle of a longer one is cut."""
    tools_offered: int = Field(30, ge=1, le=128)
    """Maximum number of tools that are offered at once; an agent with more is offered a core, and
    search_tools finds the others."""
    file_bytes: int = Field(50_000_000, ge=1)
    """Maximum bytes of a file in a checkpoint."""
    repository_files: int = Field(300_000, ge=1)
    """Maximum number of files in the repository of a job or project."""
    repository_bytes: int = Field(5_000_000_000, ge=1)
    """Maximum bytes of its files together, and of the data that git transfers."""
    job: Budget = Field(default_factory=Budget)
    """Limits of a job."""
    phase: Budget = Field(default_factory=Budget)
    """Limits of each phase."""
    wait_seconds: int = Field(86_400, ge=1, le=31_536_000)
    """Maximum seconds of one call of wait."""

    @model_validator(mode="after")
    def _check_todo_bounds(self) -> Self:
        if self.min_todos > self.max_todos:
            raise ValueError(f"min_todos {self.min_todos} is over max_todos {self.max_todos}")
        return self


class ScopeRules(ConfigData):
    from_brief: bool = True
    """Whether each statement of the brief is owed by itself; else the whole brief is one item,
    which any work completes. Listed items are owed in either case."""
    drop_share: float = Field(0.2, ge=0, le=1)
    """Share of the original scope items that the agent may drop by itself."""
    beyond: Literal["ask", "refuse", "list"] = "ask"
    """If more were dropped when the job wants to complete: ask a person, refuse, or complete with
    what was dropped listed."""


class PredefinedTodo(ConfigData):
    """An entry of `todos`; a text alone stands for its `content`."""

    content: str = Field(min_length=1, max_length=500)
    """One concrete step."""
    updates: str = Field("", max_length=300)
    """The file that it updates: a change of this file in the phase shows that the todo is done."""
    archived: bool = False
    """Whether the archive page of the previous phase fulfils it."""

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        mapping = super().__get_pydantic_json_schema__(core, handler)
        return {"anyOf": [{"type": "string"}, handler.resolve_ref_schema(mapping)]}

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return {"content": data} if isinstance(data, str) else data


class TodoLists(ConfigData):
    """Lists of todos, each a text or `{content, updates, archived}`."""

    bootstrap: list[PredefinedTodo] = Field(min_length=1)
    """Todos of the first phase."""
    work: list[PredefinedTodo] = Field(default_factory=list)
    """All todos of an agent whose work is one list: its jobs begin with them, in a tactical phase.
    The final phase follows, except for agents with commands, those that are shown no todos
    (`plain`), and where the last of them calls job_complete; a judge always has the final phase."""
    transition: list[PredefinedTodo] = Field(min_length=1)
    """Todos of a strategic phase between two tactical ones."""
    rewind: list[PredefinedTodo] = Field(min_length=1)
    """Todos of a phase after a rewind."""
    fork: list[PredefinedTodo] = Field(default_factory=list)
    """Todos of a fork's first phase; empty: those of `rewind`."""
    final: list[PredefinedTodo] = Field(min_length=1)
    """Todos of the last phase; job_complete is always the last."""

    @property
    def work_calls_job_complete(self) -> bool:
        """Whether the list of work has the end of the job in it."""
        return bool(self.work) and "job_complete" in self.work[-1].content


class AgentSettings(ConfigData):
    """Figures that only some agents use."""

    confidence_threshold: float = Field(0.5, ge=0, le=1)
    """Candidates below this confidence are left out."""
    replaces: str = ""
    """Job on an earlier version of the document, whose requirements are kept."""
    items: list[str] = Field(default_factory=list)
    """Regular expressions of the numbers that are requirements, such as V[0-9.]+; each number of
    such a form is cited or set aside."""
    forms: list[Literal["statements", "will"]] = Field(default_factory=list)
    """Further forms that count as binding: statements about a named actor (The system logs …), and
    sentences with will."""
    sample_size: int = Field(20, ge=1, le=500)
    """Sentences that nothing cites which are read to begin with."""
    may_be_missed: float = Field(0.05, gt=0, le=1)
    """Share of those sentences that may be requirements at most (95 %), for the document to be
    complete."""
    chunk_tokens: int = Field(1500, ge=50)
    """Tokens of one chunk of a document."""
    chunk_overlap: int = Field(150, ge=0)
    """Tokens that neighbouring chunks share."""
    research_web: bool = False
    """Whether the agent also has the tools of the group web."""

    relevance_threshold: float = Field(0.4, ge=0, le=1)
    """Below this score, assess_relevance answers: not relevant."""
    similar_threshold: float = Field(0.3, ge=0, le=1)
    """Minimum similarity for find_similar_requirements to list a requirement."""
    duplicate_threshold: float = Field(0.85, ge=0, le=1)
    """Similarity from which two requirements are compared by numbers, units, force, negation and
    words; without a difference they are duplicates."""
    take_hours: float = Field(24, gt=0, le=8760)
    """Hours after which an undecided requirement that a job has taken is free again."""

    @field_validator("items")
    @classmethod
    def _check_item_patterns(cls, patterns: list[str]) -> list[str]:
        for pattern in patterns:
            try:
                re.compile(pattern)
            except re.error as error:
                raise ValueError(f"{pattern!r} is no regular expression: {error}") from None
        return patterns

    @model_validator(mode="after")
    def _check_chunk_overlap(self) -> Self:
        if self.chunk_overlap >= self.chunk_tokens:
            raise ValueError(
                f"chunk_overlap {self.chunk_overlap} is not under chunk_tokens {self.chunk_tokens}"
            )
        return self


class Learning(ConfigData):
    traces: int = Field(5, ge=2)
    """Number of similar traces from which a guard is proposed."""
    jobs: int = Field(2, ge=1)
    """Minimum number of jobs that these traces come from."""
    evaluations: int = Field(20, ge=1)
    """Number of evaluations after which a guard on trial may be promoted."""
    ready_share: float = Field(0.05, ge=0, le=1)
    """Maximum share of wrong evaluations for a promotion."""
    back_share: float = Field(0.1, ge=0, le=1)
    """Share of wrong evaluations above which an active guard returns to trial."""
    silent_jobs: int = Field(20, ge=1)
    """Number of consecutive jobs without a hit after which a guard is retired."""
    promote: bool = False
    """Whether a ready guard becomes active without a person's approval."""


class Review(ConfigData):
    agent: str
    """The reviewing agent; its tools may only read."""
    attempts: int = Field(2, ge=1, le=20)
    """Number of times a job is sent back for what is not met. After that it ends, and its result
    names what is not accepted."""
    calls: int = Field(1, ge=1, le=100)
    """Maximum number of replies in one review. With 1 the reviewer judges by what it is shown, with
    more it can read on with its tools."""
    projects: bool = False
    """Whether jobs of projects are reviewed as well; a project has its own proof."""


class PhaseJudge(ConfigData):
    prompt: str = "judge.md"
    """Template of its system prompt."""
    model: ModelConfig
    """The keys of `model` that differ."""
    phases: list[PhaseKind] = Field(["tactical"])
    """Kinds of phase at whose end it is asked."""
    attempts: int = Field(3, ge=1, le=20)
    """Number of refusals in a phase before the job waits for a person."""
