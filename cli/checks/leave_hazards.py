"""What would stop or harm a job that nobody watches, each with the setting that mends it.

Pure functions of what `leave_facts` collects.
"""

import base64
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from activities.model.providers import REHEARSAL, endpoint_model_name
from cli.checks.check_result import CheckResult
from config.schema.agent import AgentConfig
from protocol.short_text import first_few
from protocol.status import JobStatus
from protocol.waiting import WaitReason

Hazard = tuple[str, str]
"""What is wrong, and the setting that mends it."""
Hazards = Iterator[Hazard]
SHELL_TOOLS = frozenset({"shell", "run_command"})
VOLATILE_FILE_SYSTEMS = frozenset({"overlay", "tmpfs", "ramfs"})
"""File systems that end with a container or a machine."""
LONGEST_QUESTION = 0.25
"""Share of the absence that a question may wait for an answer."""
NEARLY_USED = 0.8
LEAST_FREE_BYTES = 2_000_000_000
HEADROOM = 3
"""How often the largest earlier job has to fit into what is free."""


@dataclass(frozen=True)
class Absence:
    """A job, or what starts one, and what is known of the place where it runs."""

    hours: float
    config: AgentConfig
    now: float
    variables: Mapping[str, str] = field(default_factory=dict)
    """The environment, which is taken to be the workers'."""
    status: JobStatus | None = None
    """Of a job that is running."""
    elapsed_hours: float = 0.0
    notify_problem: str = ""
    """Why a test notification was not delivered."""
    server_problem: str = ""
    """Why Temporal's server was not reached."""
    workers: int | None = None
    """Workers that poll the task queue; None without the server."""
    roots: tuple[str, ...] = ()
    """Workspaces roots of these workers."""
    retention_hours: float | None = None
    free_bytes: int | None = None
    largest_job_bytes: int = 0
    file_system: str = ""
    """Type of the file system that the workspaces root is on."""
    sandbox_problem: str = ""

    @property
    def seconds(self) -> float:
        return self.hours * 3600


def list_hazards(absence: Absence) -> list[CheckResult]:
    """Return the hazards of the absence, by the reason for which the job would wait."""
    return [
        CheckResult(reason, False, hazard, mend)
        for reason, find in HAZARDS
        for hazard, mend in find(absence)
    ]


def _approvals(absence: Absence) -> Hazards:
    config, hours = absence.config, absence.config.limits.approve_hours
    if config.approve_plan:
        # A plan that nobody approved in time is denied again and again.
        yield "the plan waits for approval before the work begins", "approve_plan=false"
    if hours is not None and hours < absence.hours:
        return
    how = "without end" if hours is None else f"for {hours:g} hours"
    asks = [guard.name for guard in config.rules if guard.decision == "ask"]
    hooks = [hook.title for hook in config.hooks.get("PreToolUse", [])]
    for causes, what in (
        (config.approved_tools, "each call of {} waits for approval"),
        (asks, "what the guards {} catch waits for approval"),
        (hooks, "the hooks {} may ask for approval, which waits"),
        (["the tests"] if config.tests else [], "work that {} do not prove waits for approval"),
    ):
        if causes:
            yield f"{what.format(first_few(causes, 3))} {how}", "limits.approve_hours=1"
    if config.scope.beyond == "ask":
        yield f"an end with many items left out waits for approval {how}", "scope.beyond=list"


def _questions(absence: Absence) -> Hazards:
    limits = absence.config.limits
    hours = limits.clarifications * limits.clarification_hours
    if hours > LONGEST_QUESTION * absence.hours:
        yield (
            f"a question waits {limits.clarification_hours:g} of the {absence.hours:g} hours for "
            "an answer",
            "limits.clarification_hours=1",
        )


def _budget(absence: Absence) -> Hazards:
    config, budget = absence.config, absence.config.limits.job
    amounts = {"model_calls": budget.model_calls, "tokens": budget.tokens, "cost": budget.cost}
    if not any(amounts.values()):
        yield "nothing limits what the job spends", "limits.job.cost=…, or limits.job.model_calls"
    if budget.seconds is not None and budget.seconds < absence.seconds:
        yield (
            f"the job's clock ends after {budget.seconds / 3600:g} hours of work",
            f"limits.job.seconds={absence.seconds:.0f}",
        )
    costs = budget.cost is not None or config.limits.phase.cost is not None
    unpriced = sorted({model.name for model in config.models} - {*config.prices, REHEARSAL})
    if costs and unpriced:
        yield f"cost is limited, and {first_few(unpriced, 3)} has no price", "prices"
    used = absence.status.limits if absence.status else {}
    for scope, uses in used.items():
        for key, use in uses.items():
            named = f"limits.{scope}.{key}"
            if use.spent >= NEARLY_USED * use.limit:
                yield f"{use.spent:g} of {use.limit:g} of {named} are used", _limit_command(named)
            elif scope == "job" and key != "seconds" and absence.elapsed_hours > 0.1:
                ahead = use.spent * (1 + absence.hours / absence.elapsed_hours)
                if ahead > use.limit:
                    yield (
                        f"{named} of {use.limit:g} is used up before then at the present rate",
                        _limit_command(named),
                    )


def _limit_command(named: str) -> str:
    key = named.removeprefix("limits.").removeprefix("job.")
    return f"starter.py limit JOB {key}=…"


def _endpoint(absence: Absence) -> Hazards:
    if endpoint_model_name(absence.config.model) == REHEARSAL:
        yield "no endpoint is configured: the rehearsal model answers", "OPENAI_BASE_URL"
    if not absence.config.fallbacks:
        yield "no other model is asked if the endpoint fails", "fallbacks"


def _credentials(absence: Absence) -> Hazards:
    for name in _credential_names(absence.config):
        expires = token_expiry(absence.variables.get(name, ""))
        if expires is not None and expires < absence.now + absence.seconds:
            hours = max(0.0, (expires - absence.now) / 3600)
            yield f"{name} expires in {hours:.0f} hours", f"a new {name} for the workers"


def _credential_names(config: AgentConfig) -> list[str]:
    """Return the variables that may hold a key or token, each once."""
    names = [model.api_key_variable for model in config.models]
    names += list(config.notify.headers.values()) if config.notify else []
    names += list(config.shell.environment.values())
    return list(dict.fromkeys([*names, "TEMPORAL_API_KEY"]))


def token_expiry(value: str) -> float | None:
    """Return when a JSON Web Token expires, in epoch seconds; None for anything else."""
    # Variables for headers hold the scheme before the token.
    parts = value.strip().rpartition(" ")[2].split(".")
    if len(parts) != 3:
        return None
    with suppress(ValueError, TypeError, AttributeError):
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + "=" * (-len(parts[1]) % 4)))
        return float(claims["exp"]) if "exp" in claims else None
    return None


def _storage(absence: Absence) -> Hazards:
    need = max(LEAST_FREE_BYTES, HEADROOM * absence.largest_job_bytes)
    if absence.free_bytes is not None and absence.free_bytes < need:
        yield (
            f"{absence.free_bytes / 1e9:.1f} GB are free on the disk of the workspaces root, and "
            f"jobs may need {need / 1e9:.1f}",
            "free space there, or keep_days for closed jobs",
        )
    config = absence.config
    if absence.file_system in VOLATILE_FILE_SYSTEMS and not config.workspace.remote:
        yield (
            f"the workspaces root is on {absence.file_system}, which ends with its container, and "
            "there is no copy",
            "workspace.remote, or LONGHAUL_WORKSPACES on a volume",
        )
    if config.keep_days is not None and config.keep_days * 24 < absence.hours:
        yield (
            f"closed jobs are deleted after {config.keep_days:g} days, before anybody is back",
            f"keep_days={absence.hours / 24 + 1:.0f}",
        )
    if len(absence.roots) > 1:
        yield (
            f"workers with several workspaces roots poll this queue: {', '.join(absence.roots)}",
            "the same LONGHAUL_WORKSPACES for all, or LONGHAUL_TASK_QUEUE for each",
        )


def _dependencies(absence: Absence) -> Hazards:
    config = absence.config
    if absence.sandbox_problem and not SHELL_TOOLS.isdisjoint(config.tools):
        yield f"its commands have no sandbox: {absence.sandbox_problem}", "the extra sandbox"
    missing = [name for name in config.shell.environment.values() if name not in absence.variables]
    if missing:
        yield f"its commands need {first_few(missing, 3)}, not set here", "shell.environment"
    retention = absence.retention_hours
    if retention is not None and retention < absence.hours:
        yield (
            f"the server forgets ended jobs after {retention:g} hours, before anybody is back",
            "the namespace's retention",
        )


def _workers(absence: Absence) -> Hazards:
    if absence.server_problem:
        yield absence.server_problem, "TEMPORAL_ADDRESS"
    if absence.workers == 0:
        yield "no worker polls the task queue", "python worker.py"
    elif absence.workers == 1:
        yield "one worker alone serves the job", "a second worker, best on another host"
    if not absence.variables.get("LONGHAUL_ALIVE"):
        yield "nobody notices when no worker works", "LONGHAUL_ALIVE"


def _notifications(absence: Absence) -> Hazards:
    notify, hooks = absence.config.notify, absence.config.hooks.get("Notification", [])
    occasions = {each for hook in hooks for each in hook.occasions}
    has_address = notify is not None and (notify.url is not None or notify.url_variable is not None)
    if notify and has_address:
        occasions |= set(notify.on)
    if not occasions:
        yield "nobody learns that the job waits or has ended", "notify.url"
    elif lacking := [each for each in ("waiting", "limit", "end") if each not in occasions]:
        yield f"nobody learns of: {', '.join(lacking)}", "notify.on"
    if absence.notify_problem:
        yield f"a test notification did not arrive: {absence.notify_problem}", "notify"


def _job(absence: Absence) -> Hazards:
    status = absence.status
    if status and status.waiting:
        waiting = status.waiting.of_job(status.job_id)
        yield f"it waits already ({waiting.reason}): {waiting.message}", waiting.command
    if status and status.retrying:
        yield f"it is tried again: {status.retrying[0]}", f"starter.py show {status.job_id}"


HAZARDS = (
    ("job", _job),
    ("approval", _approvals),
    ("clarification", _questions),
    ("budget", _budget),
    ("credentials", _credentials),
    ("endpoint", _endpoint),
    ("storage", _storage),
    ("dependency", _dependencies),
    ("worker", _workers),
    ("notify", _notifications),
)


def describe_wait_reasons(config: AgentConfig) -> dict[WaitReason, str]:
    """Return for each reason to wait what an unattended job does, so that none is a surprise."""
    limits = config.limits
    ceilings = [
        f"{value:g} {key.replace('_', ' ')}"
        for key, value in limits.job.model_dump(exclude_none=True).items()
    ]
    denied = (
        f"counts as denied after {limits.approve_hours:g} hours"
        if limits.approve_hours
        else "waits without end"
    )
    return {
        "approval": denied,
        "clarification": f"ends after {limits.clarification_hours:g} hours by the agent's default",
        "budget": f"waits at {', '.join(ceilings) or 'no limit'}",
        "rewinds": f"waits after {limits.rewinds} rewinds",
        "stuck": "waits once neither hints nor a rewind have helped",
        "review": "waits once its completion was refused too often",
        "credentials": "waits for a valid key",
        "endpoint": "keeps trying" + (", with fallbacks" if config.fallbacks else ""),
        "storage": "waits for the disk; no step is lost",
        "quota": "begins once its team is below its quota",
        "dependency": "waits for what does not answer",
        "tool": "waits after an unforeseen failure of a tool",
        "paused": "waits only if a person pauses it",
    }
