"""Describes a job's interface in Markdown: start input, signals, the `status` query."""

import json

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from config.schema.config_data import field_texts
from protocol.job_record import JobRecord
from protocol.job_state import JobState
from protocol.limits import JobLimits
from protocol.payloads import SIGNALS, JobStart
from protocol.phase import Phase
from protocol.project_start import ProjectStart
from protocol.scope_ledger import ScopeItem
from protocol.todo_list import Todo
from protocol.usage import Usage
from scripts.docs.markdown import markdown_table
from workflows.jobs.job_status import job_status_answer
from workflows.runtime.inbox import Inbox

MEANING = {
    "agent": "The agent that does the job. Only a fork may leave it out.",
    "instructions": "What to do. May be empty if the agent has its own instructions.",
    "documents": "Paths that the worker can read, http(s) addresses, or files that "
    "`starter.py` staged.",
    "brief": "Documents that say what to do: each of their statements becomes part of the scope. "
    '`{"path": "…", "brief": true}` among `documents` means the same.',
    "items": "Scope items: what the job must cover; without any, the statements of the brief.",
    "approve_plan": "Whether a person approves the plan before the work begins.",
    "set": "Configuration for this job alone: values by dotted key.",
    "fork": '`{"job": "…", "phase": N}`: continue from the start of a phase of another '
    "job; without `phase`, from the end of a closed one.",
    "repository": "The repository or folder that the job [works on](repositories.md): `{url, "
    "ref, depth}` or `{folder}`.",
    "publish": "The branch to which its work is pushed at the end: `{remote, branch}`.",
    "project": "Set by the project that the job works for.",
    "trial": "Set by the trial that the job is a run of: its share of the trial's limits.",
    "team": "The [team](people.md#teams) whose quota it counts for, and whose spend it is.",
    "by": "Who starts it, such as `ada@host`; `starter.py` fills it in.",
}


def start_keys() -> str:
    """Describe the keys of a job's input."""
    return _signal_table(JobStart, MEANING)


def project_start_keys() -> str:
    """Describe the keys of a project's input."""
    return _signal_table(ProjectStart, field_texts(ProjectStart))


def signals() -> str:
    """Describe every signal with its payload and effect."""
    rows = []
    for name, spec in SIGNALS.items():
        keys = ", ".join(
            f"`{key}` ({needed})" for key, needed in _describe_payload_keys(spec.payload)
        )
        rows.append((f"`{name}`", keys or "none", spec.effect))
    return "\n".join([*markdown_table(("signal", "payload", "effect"), rows), ""])


def status_example() -> str:
    """Return the result of the `status` query for a job in its second phase."""
    todos = [Todo(id=1, content="Read the policy", done=True), Todo(id=2, content="List its terms")]
    phase = Phase(
        number=2, kind="tactical", purpose="work", name="Read", todos=todos,
        plan_position=1, plan_total=3,
    )  # fmt: skip
    job = JobRecord(
        agent="creator",
        model="gpt-5-mini",
        title="Extract every requirement",
        root="0b54d1d7a3c2",
        commit="5f2c0e…",
        at=0,
        state=JobState(phase=phase, scope=[ScopeItem(id="S1", text="chapter 3")]),
        step=9,
        tools=[],
        limits=JobLimits(),
        usage=Usage(model_calls=9, tool_calls=11, prompt_tokens=41210, completion_tokens=1733),
        phases={1: "a91b44…", 2: "c03d1f…"},
    )
    answer = job_status_answer(job, Inbox(), "creator-57507a").model_dump(mode="json")
    text = json.dumps(answer, ensure_ascii=False, indent=2)
    return f"```json\n{text}\n```\n"


def _signal_table(kind: type[BaseModel], meaning: dict[str, str]) -> str:
    rows = [(f"`{name}`", needed, meaning[name]) for name, needed in _describe_payload_keys(kind)]
    return "\n".join([*markdown_table(("key", "", ""), rows), ""])


def _describe_payload_keys(kind: type[BaseModel]) -> list[tuple[str, str]]:
    return [(name, _payload_key_need(field)) for name, field in kind.model_fields.items()]


def _payload_key_need(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    default = field.get_default()
    return f"optional, else {default}".lower() if isinstance(default, bool) else "optional"
