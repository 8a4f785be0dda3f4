"""The schema of an agent's file, and the configuration that a job pins.

`docs/configuration.md` is generated from this file and from `config.schema.agent_sections`.
"""

from pathlib import Path
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import BeforeValidator, Field, model_validator

from config.schema import agent_sections
from config.schema.config_data import ConfigData
from config.schema.graph import GraphSchema
from config.schema.guards import Guard, Hook, HookEvent
from config.schema.mcp_servers import DeclaredTool, Server, ServerName
from config.schema.model_settings import Embeddings, ModelConfig
from config.schema.notifications import Notify
from config.schema.reply_phrases import Wording
from config.schema.shell import ShellConfig
from config.schema.signers import SignedApproval, signer_problem
from config.schema.skills import Skill
from config.schema.start import StartRights
from config.schema.web import Web
from config.schema.work_checks import RepositoryTests, Sealed, Verifier
from config.schema.workspace import Workspace
from protocol.errors import Invalid
from protocol.phase import PhaseKind
from protocol.stuck_thresholds import StuckThresholds
from protocol.usage import Price


def _none_as_null(value: Any) -> Any:
    return None if value == "none" else value


def _sealed_from_text(value: Any) -> Any:
    return {"path": value} if isinstance(value, str) else value


class AgentFile(ConfigData):
    """`config/agents/<name>/agent.yaml` merged over what it extends."""

    description: str = ""
    """One line on what the agent does."""
    model: ModelConfig
    phase_models: dict[PhaseKind, ModelConfig] = Field(default_factory=dict)
    """For strategic or tactical phases: the keys of `model` that differ."""
    fallbacks: list[ModelConfig] = Field(default_factory=list)
    """Models to use in order if the model fails: the keys of `model` that differ."""
    embeddings: Embeddings | None = None
    """Endpoint for embeddings, for search by meaning; null: the local model, if the extra
    `embeddings` is installed."""
    context: agent_sections.Context = Field(default_factory=agent_sections.Context)
    prompts: agent_sections.Prompts
    tools: list[str] = Field(min_length=1)
    """Tool groups or single tools."""
    approve: list[str | SignedApproval] = Field(default_factory=list)
    """Tools and tool groups that need a person's approval before each call; with `tool` and `by`,
    the signature of one of these people."""
    signers: dict[str, str] = Field(default_factory=dict)
    """Public ssh keys (ed25519) of people who approve calls, by name."""
    folders: list[str]
    """Folders created in every workspace of the agent."""
    keep_days: float | None = Field(None, gt=0)
    """Days after which the schedule of `starter.py forget` deletes a closed job; null: never."""
    needs_documents: bool = False
    """Whether a job needs at least one document."""
    limits: agent_sections.Limits
    prices: dict[str, Price] = Field(default_factory=dict)
    """Prices of models, by the model's name."""
    stuck: StuckThresholds = Field(default_factory=StuckThresholds)
    """When a phase counts as stuck. At `nudge` and each multiple of it, the model gets a hint; at
    `then` only a rewind is accepted, or the job waits for a person."""
    plain: bool = False
    """Whether the model sees the instructions and its calls alone, as small models are used to: no
    todo list, and a reply without a call ends the job once a file was made. Needs `todos.work`."""
    reflection: bool = True
    """Whether the model is asked after a failed attempt what to learn from it."""
    review: Annotated[
        agent_sections.Review | None,
        BeforeValidator(
            _none_as_null, json_schema_input_type=agent_sections.Review | Literal["none"] | None
        ),
    ] = None
    """The agent that judges in a fresh context whether each statement of what was asked for is met,
    before a job ends; none or null: no review."""
    approve_plan: bool = False
    """Whether a person approves the plan before the first work, and later what takes a phase, an
    item or a check out of it."""
    scope: agent_sections.ScopeRules = Field(default_factory=agent_sections.ScopeRules)
    """What the agent may leave out of what was asked for."""
    result_schema: dict[str, Any] | None = None
    """JSON Schema (2020-12) for the file at `result_path`: a job is only complete if it is valid,
    and its content becomes part of the job's result. null: jobs have no such result."""
    result_path: str = Field("output/result.json", min_length=1, max_length=300)
    """The JSON or YAML file with the result."""
    guards: list[str] = Field(default_factory=list)
    """Names of guard files in the agent's own folder guards/ or in config/guards/."""
    learning: agent_sections.Learning = Field(default_factory=agent_sections.Learning)
    """How guards are learned from refusals and corrections in this agent's jobs."""
    hooks: dict[HookEvent, list[Hook]] = Field(default_factory=dict)
    """Commands to run at an event: PreToolUse, PostToolUse, PermissionRequest, Stop, SubagentStop,
    Notification."""
    notify: Notify | None = None
    """Where to send a message when a person is needed, and at the end; null: nowhere."""
    graph: GraphSchema = Field(default_factory=GraphSchema)
    """Nodes and relations of the graph, in addition to those of config/graph/schema.yaml."""
    mcp: dict[ServerName, Server] = Field(default_factory=dict)
    """MCP servers by name; the tools they declare when a job starts are offered in its tactical
    phases."""
    shell: ShellConfig = Field(default_factory=ShellConfig)
    """How run_command runs commands."""
    skills: list[str] = Field(default_factory=list)
    """Folders of Agent Skills on the worker: a skill's folder, or a folder of such folders;
    relative paths begin at config/ or at a folder of LONGHAUL_CONFIG."""
    trust_skills: bool = False
    """Whether to use the skills in the folder .agents/skills/ of the job's repository."""
    verifiers: list[Verifier] = Field(default_factory=list)
    """Commands (build, lint, tests) that must succeed before a phase ends."""
    sealed: list[Annotated[Sealed, BeforeValidator(_sealed_from_text)]] = Field(
        default_factory=list
    )
    """Files of the worker's machine that only verifiers and the project file's proofs may read; a
    plain text is a path."""
    tests: RepositoryTests | None = None
    """How a job on a repository is proved: its tests are run on the untouched tree before the first
    model call and on the work before it ends, a new test has to fail without the change, and what
    was not proved is pushed only after a person's approval; null: nothing of this."""
    commits: agent_sections.Commits = Field(default_factory=agent_sections.Commits)
    """How the work on a repository is committed."""
    judge: agent_sections.PhaseJudge | None = None
    """A model that sees the task and a phase's changes, and can refuse to let the phase end; null:
    none."""
    workspace: Workspace = Field(default_factory=Workspace)
    """Where checkpoints are stored besides the workspaces root."""
    start: StartRights = Field(default_factory=StartRights)
    """What a start of this agent may decide; no start can set it."""
    todos: agent_sections.TodoLists
    settings: agent_sections.AgentSettings = Field(default_factory=agent_sections.AgentSettings)
    """Numbers for the requirement agents."""
    web: Web = Field(default_factory=Web)
    """Addresses that fetch_page may reach, and the provider of web_search."""

    @model_validator(mode="after")
    def _signers_known(self) -> Self:
        if problem := signer_problem(self.approve, self.signers):
            raise ValueError(problem)
        return self

    @model_validator(mode="after")
    def _sealed_confined(self) -> Self:
        for each in self.sealed:
            path = Path(each.path)
            if self.shell.sandbox == "none":
                raise ValueError("sealed files need a sandbox, which hides them from commands")
            if shown := next((p for p in self.shell.readable if path.is_relative_to(p)), None):
                raise ValueError(f"the sealed {path} is in {shown}, which shell.readable shows")
        return self

    @property
    def prompt_files(self) -> dict[str, str]:
        """Names of template files, by role."""
        judge = {"judge": self.judge.prompt} if self.judge else {}
        return {**self.prompts.model_dump(), **judge}

    @property
    def approved_tools(self) -> list[str]:
        """The tools and groups under `approve`."""
        return [entry if isinstance(entry, str) else entry.tool for entry in self.approve]

    @property
    def tool_names(self) -> list[str]:
        """Tool groups and tools, including those that settings add."""
        sees = any(model.vision for model in (self.model, *self.phase_models.values()))
        added = {"web": self.settings.research_web, "images": sees}
        return [*self.tools, *(name for name, is_added in added.items() if is_added)]


class AgentConfig(AgentFile):
    """An agent as a job pins it, with everything resolved, templates included."""

    name: str
    templates: dict[str, str]
    """Prompt texts by role (`strategic`, …), front matter removed."""
    instructions_template: str
    wording: Wording
    """Phrases that classify replies without tool calls."""
    team: str = ""
    """The team of its job, for metrics; empty unless the configuration lists it."""
    reviewer: "AgentConfig | None" = None
    """The agent named under `review`."""
    rules: list[Guard] = Field(default_factory=list)
    """The guards of the files named in `guards`."""
    graph_schema: GraphSchema = Field(default_factory=GraphSchema)
    """The shipped schema with the additions of `graph`."""
    server_tools: list[DeclaredTool] = Field(default_factory=list)
    """Tools that the MCP servers declared when the job began."""
    unavailable_servers: dict[str, str] = Field(default_factory=dict)
    """Unavailable MCP servers, each with the reason."""
    skill_entries: list[Skill] = Field(default_factory=list)
    """The skills that existed when the job began."""

    @property
    def labels(self) -> dict[str, str]:
        """Whose job it is, as metrics have it."""
        return {"agent": self.name, **({"team": self.team} if self.team else {})}

    @property
    def toolset(self) -> list[str]:
        """`tool_names`, plus the tool that loads skills if there are any."""
        return [*super().tool_names, *(["skills"] if self.skill_entries else [])]

    @property
    def models(self) -> list[ModelConfig]:
        """Every model that the agent may use."""
        others = [self.judge.model] if self.judge else []
        others += self.reviewer.models if self.reviewer else []
        return [self.model, *self.phase_models.values(), *self.fallbacks, *others]

    def model_for(self, kind: PhaseKind) -> ModelConfig:
        return self.phase_models.get(kind, self.model)

    @property
    def has_vision(self) -> bool:
        """Whether the model of any kind of phase can look at pictures."""
        return any(self.model_for(kind).vision for kind in get_args(PhaseKind))

    def model_chain(self, kind: PhaseKind) -> list[ModelConfig]:
        """The model of this kind of phase, then its fallbacks."""
        return [self.model_for(kind), *self.fallbacks]


class ConfigError(Invalid):
    """An invalid configuration; the message is one line with file, key, found and expected."""
