"""The sections of an agent's file: every key, its meaning and its default.

`docs/configuration.md` is generated from this file and from `config.schema.agent`.
"""

from __future__ import annotations

from typing import Literal, Self

from pydantic import Field, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema

from protocol.limits import Budget
from protocol.state import Data, PhaseKind


class ModelConfig(Data):
    name: str = Field(description="Model name sent to the endpoint; LONGHAUL_MODEL overrides it.")
    base_url: str | None = Field(
        None,
        description="Address of the endpoint, to which `/chat/completions` or `/responses` is "
        "added (of a deployment of Azure's with its `?api-version=…`); null takes OPENAI_BASE_URL.",
    )
    api: Literal["auto", "chat", "responses"] = Field(
        "auto",
        description="Which of the two APIs is called: `chat` is Chat Completions, `responses` the "
        "Responses API; `auto` goes by the address and by what the endpoint refuses.",
    )
    api_key_variable: str = Field(
        "OPENAI_API_KEY", description="Environment variable of the worker that holds the key."
    )
    temperature: float | None = Field(
        0, ge=0, le=2, description="Sampling temperature; null sends none."
    )
    reasoning_effort: str | None = Field(
        None, description="Reasoning effort, for models that have one."
    )
    max_output_tokens: int = Field(8000, ge=1, description="Limit of one reply, in tokens.")
    timeout_seconds: int = Field(
        600, ge=1, le=86_400, description="Time limit of one model call, in seconds."
    )
    stall_seconds: int = Field(
        120, ge=1, le=86_400, description="Longest silence within a streamed reply, in seconds."
    )
    patience_seconds: int = Field(
        600,
        ge=1,
        le=86_400,
        description="Seconds of failed attempts after which the job shows as waiting for its "
        "endpoint; it goes on trying.",
    )
    stream: bool = Field(True, description="Whether replies are asked for as a stream.")
    send_reasoning: bool | None = Field(
        None,
        description="Whether the model is sent back the reasoning it returned; null sends back "
        "what is signed or encrypted, and the rest where the endpoint demands it.",
    )
    cache_marks: Literal["auto", "none", "breakpoint", "cache_control"] = Field(
        "auto",
        description="How requests mark what the endpoint should cache: `breakpoint` as OpenAI does "
        "from gpt-5.6 on, `cache_control` as gateways to Anthropic's models do; `auto` goes by the "
        "model's name.",
    )
    vision: bool = Field(
        False, description="Whether the model can look at images: it then has view_image."
    )
    window: int | None = Field(
        None, ge=1000, description="Tokens of the model's context window; null when unknown."
    )


class Embeddings(Data):
    model: str = Field(min_length=1, description="Model name sent to the endpoint.")
    base_url: str | None = Field(
        None, description="Address of the endpoint; null takes OPENAI_BASE_URL."
    )
    api_key_variable: str = Field(
        "OPENAI_API_KEY", description="Environment variable of the worker that holds the key."
    )


class Context(Data):
    tokens: int = Field(
        80_000, ge=1000, description="Size of a request at which the conversation is compacted."
    )
    share: float = Field(
        0.8,
        gt=0,
        le=1,
        description="The same as a share of model.window where that is known, the reply's "
        "max_output_tokens taken off; the smaller of the two counts.",
    )

    def compaction_limit(self, model: ModelConfig) -> int:
        """Tokens of a request at which the conversation with this model is compacted."""
        if model.window is None:
            return self.tokens
        return max(1, min(self.tokens, int(self.share * model.window) - model.max_output_tokens))


class Prompts(Data):
    strategic: str = Field(description="Template of the system prompt of strategic phases.")
    tactical: str = Field(description="Template of the system prompt of tactical phases.")
    orientation: str = Field(description="Template of the first message of a phase.")
    archive_summary: str = Field(description="Prompt that summarises a phase for its archive page.")
    reflection_assumption: str = Field(
        description="Prompt that asks which assumption made an attempt fail."
    )
    reflection_prevention: str = Field(description="Prompt that asks what would prevent it.")
    context_summary: str = Field(
        description="Prompt that summarises the older part of a conversation."
    )
    helper: str = Field(description="Prompt of a helper that `delegate` has read.")
    handoff_summary: str = Field(
        description="Prompt that shortens what a job of a project hands back, where it is long."
    )


class Limits(Data):
    min_todos: int = Field(5, ge=1, description="Fewest todos a strategic phase may hand over.")
    max_todos: int = Field(20, ge=1, le=100, description="Most todos a phase may have.")
    summary_calls: int = Field(
        8,
        ge=0,
        description="Model calls of a tactical phase above which the model summarises it for its "
        "archive page; up to that the notes on its todos are the summary.",
    )
    rewinds: int = Field(5, ge=0, description="Rewinds before the job waits for a person.")
    clarifications: int = Field(
        1, ge=0, description="Questions to a person in one job; further ones are answered at once."
    )
    clarification_hours: float = Field(
        24,
        gt=0,
        le=8760,
        description="Hours a job waits for an answer before it goes on with the agent's default.",
    )
    approve_hours: float | None = Field(
        None,
        gt=0,
        le=8760,
        description="Hours a job waits for a person to approve a call before it counts as denied; "
        "null: as long as it takes.",
    )
    helper_calls: int = Field(
        20, ge=1, le=200, description="Model calls that one helper of `delegate` may take."
    )
    history_events: int = Field(
        1000, ge=100, le=10_000, description="Events after which a job continues as new."
    )
    tool_attempts: int = Field(4, ge=1, le=20, description="Attempts of a tool that fails.")
    workspace_tokens: int = Field(
        4000, ge=100, description="Most tokens of workspace.md in the system prompt."
    )
    result_characters: int = Field(
        20_000, ge=500, description="Longest tool result; the middle of a longer one is cut."
    )
    tools_offered: int = Field(
        30,
        ge=1,
        le=128,
        description="Most tools that are all offered; of more, only the core is, and search_tools "
        "finds the rest.",
    )
    file_bytes: int = Field(50_000_000, ge=1, description="Largest file a checkpoint takes.")
    repository_files: int = Field(
        300_000, ge=1, description="Most files of a repository that a job or project begins with."
    )
    repository_bytes: int = Field(
        5_000_000_000,
        ge=1,
        description="Most bytes of its files together, and of what git sends for it.",
    )
    job: Budget = Field(default_factory=Budget, description="What a job may use.")
    phase: Budget = Field(default_factory=Budget, description="What each phase may use.")
    wait_seconds: int = Field(
        86_400, ge=1, le=31_536_000, description="Longest time that one call of wait may take."
    )

    @model_validator(mode="after")
    def _some_count_passes(self) -> Self:
        if self.min_todos > self.max_todos:
            raise ValueError(f"min_todos {self.min_todos} is over max_todos {self.max_todos}")
        return self


class PredefinedTodo(Data):
    """An entry of `todos`; a text alone stands for its `content`."""

    content: str = Field(min_length=1, max_length=500, description="One concrete step.")
    updates: str = Field(
        "",
        max_length=300,
        description="The file it brings up to date: a change of it in the phase shows it is done.",
    )
    archived: bool = Field(
        False, description="Whether the archive page of the phase before is what it asks for."
    )

    @classmethod
    def __get_pydantic_json_schema__(
        cls, core: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        return {"anyOf": [{"type": "string"}, handler.resolve_ref_schema(handler(core))]}

    @model_validator(mode="before")
    @classmethod
    def _from_text(cls, data: object) -> object:
        return {"content": data} if isinstance(data, str) else data


class TodoLists(Data):
    """Lists of todos, each a text or `{content, updates, archived}`."""

    bootstrap: list[PredefinedTodo] = Field(min_length=1, description="Todos of the first phase.")
    work: list[PredefinedTodo] = Field(
        default_factory=list,
        description="The whole work, for an agent whose work is one list: its jobs begin with it, "
        "in a tactical phase, and the final phase follows.",
    )
    transition: list[PredefinedTodo] = Field(
        min_length=1, description="Todos of a strategic phase between two tactical ones."
    )
    rewind: list[PredefinedTodo] = Field(
        min_length=1, description="Todos of a phase after a rewind."
    )
    fork: list[PredefinedTodo] = Field(
        default_factory=list,
        description="Todos of a fork's first phase; empty takes those of rewind.",
    )
    final: list[PredefinedTodo] = Field(
        min_length=1, description="Todos of the last phase; job_complete is always the last."
    )


class Settings(Data):
    """Figures that only some agents use."""

    confidence_threshold: float = Field(
        0.5, ge=0, le=1, description="Candidates below this confidence are left out."
    )
    chunk_tokens: int = Field(1500, ge=50, description="Tokens of one chunk of a document.")
    chunk_overlap: int = Field(150, ge=0, description="Tokens that neighbouring chunks share.")
    research_web: bool = Field(
        False, description="Whether the agent has the tools of the group web besides its own."
    )

    relevance_threshold: float = Field(
        0.4, ge=0, le=1, description="Below this assess_relevance says: not relevant."
    )
    similar_threshold: float = Field(
        0.3, ge=0, le=1, description="Likeness from which find_similar_requirements names another."
    )
    duplicate_threshold: float = Field(
        0.85, ge=0, le=1, description="Likeness from which it calls the other a duplicate."
    )
    take_hours: float = Field(
        24,
        gt=0,
        le=8760,
        description="Hours after which a requirement that a job took and did not decide is free.",
    )

    @model_validator(mode="after")
    def _chunks_advance(self) -> Self:
        if self.chunk_overlap >= self.chunk_tokens:
            raise ValueError(
                f"chunk_overlap {self.chunk_overlap} is not under chunk_tokens {self.chunk_tokens}"
            )
        return self


class Learning(Data):
    traces: int = Field(5, ge=2, description="Traces alike from which a guard is proposed.")
    jobs: int = Field(2, ge=1, description="Jobs that they must come from at least.")
    evaluations: int = Field(
        20, ge=1, description="Evaluations after which a guard on trial may be promoted."
    )
    ready_share: float = Field(
        0.05, ge=0, le=1, description="Most of them, as a share, that may have been wrong."
    )
    back_share: float = Field(
        0.1, ge=0, le=1, description="Share above which an active guard goes back to its trial."
    )
    silent_jobs: int = Field(
        20, ge=1, description="Jobs with a guard that spoke in none of them; it is retired then."
    )
    promote: bool = Field(
        False, description="Whether a guard that is ready becomes active without a person."
    )


class Review(Data):
    agent: str = Field(description="Agent that reviews; its tools only read.")
    attempts: int = Field(
        2, ge=1, le=20, description="Times a job may be sent back before it waits for a person."
    )
    calls: int = Field(12, ge=1, le=100, description="Replies that one review may take.")


class Verifier(Data):
    name: str = Field(min_length=1, max_length=60, description="By which people name it.")
    command: str = Field(
        min_length=1, description="Run in the sandbox on a copy; exit code 0 lets the phase end."
    )
    seconds: int = Field(300, ge=1, le=3600, description="Most seconds it may take.")
    phases: list[PhaseKind] = Field(
        ["tactical"],
        description="Kinds of phase at whose end it runs; it always runs before a job completes.",
    )


class PhaseJudge(Data):
    prompt: str = Field("judge.md", description="Template of its system prompt.")
    model: ModelConfig = Field(description="The keys of model that differ.")
    phases: list[PhaseKind] = Field(
        ["tactical"], description="Kinds of phase at whose end it is asked."
    )
    attempts: int = Field(
        3, ge=1, le=20, description="Noes in a phase before the job waits for a person."
    )
