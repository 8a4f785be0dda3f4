"""An adapter's task and outcome, and its agent's tool."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = "You are an agent. Write the files you are asked for, one tool call at a time."
PROMPT_OF_B = "This is the prompt of version B."
TOOL = "Write a text file; an existing one is replaced. Folders on the way are made."
KEY = "none"
"""The endpoint accepts any."""


@dataclass(frozen=True)
class AdapterTask:
    """One run of an agent, until it ends, a limit ends it, or time is up."""

    base_url: str
    model: str
    """Selects the endpoint's behaviour and identifies the run."""
    prompt: str
    folder: str
    """Scratch folder of this run."""
    steps: int
    lifted: bool = False
    """Whether to disable the runner's own limit of turns."""
    cap: float = 60.0
    """Time limit of the run in seconds."""
    scenario: bool = False
    """Whether this is a run of `scenarios`, which an earlier process may have begun."""
    address: str = ""
    """Temporal server that outlives the runner's process."""
    default_limits: bool = False
    """Whether a scenario leaves the runner's time-outs as they are."""
    changed: str = ""
    """What version B changes: `prompt`, with another tool, or `loop`; empty for version A."""

    @property
    def system(self) -> str:
        return f"{SYSTEM} {PROMPT_OF_B}" if self.changed == "prompt" else SYSTEM

    @property
    def events(self) -> Path:
        """Log of what the tool did in a scenario."""
        return Path(self.folder) / "events.jsonl"

    @property
    def files(self) -> Path:
        """Folder that the agent's tool writes to."""
        return Path(self.folder) / "files"


@dataclass(frozen=True)
class Outcome:
    """How a run went. Its cost is measured at the endpoint."""

    ended: str
    """`finished`, `stopped` or `time`."""
    error: str = ""
    """Type and text of the error that stopped it."""
    recorded: list[tuple[int, int]] = field(default_factory=list)
    """Pairs of model calls so far and bytes of history or database, in order."""
    store: int = 0
    """Bytes of any other store at the end."""
    runs: int = 1
    """Number of runs in the workflow's chain."""
    actions: int = 0
    """Actions as the Temporal server counted them; 0 without such a server."""
    made: dict[str, str] | None = None
    """Files by path, if they are not in the task's folder."""


def write_adapter_file(files: Path, path: str, content: str) -> str:
    """The tool, with the same behaviour for every runner without its own file tools."""
    target = files / path.lstrip("/")
    if not target.resolve().is_relative_to(files.resolve()):
        return f"Error: {path} is outside the folder."
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")
    return f"Wrote {len(content):,} characters to {path}."


def failed_adapter_outcome(error: BaseException) -> Outcome:
    """Return the outcome of a run that the error ended, with its innermost cause."""
    while error.__cause__ is not None:
        error = error.__cause__
    kind = getattr(error, "type", None) or type(error).__name__
    return Outcome("stopped", f"{kind}: {error}"[:300])


class AdapterGauge:
    """Records the size of a SQLite database at intervals during a run."""

    def __init__(self, database: Path, every: int) -> None:
        self._database = database
        self._every = max(1, every)
        self._calls = 0
        self.recorded: list[tuple[int, int]] = []

    def called(self) -> None:
        """Count a step."""
        self._calls += 1
        if self._calls % self._every == 0:
            self.look()

    def look(self) -> None:
        """Record the size: all pages, including those in the write-ahead log."""
        with closing(sqlite3.connect(self._database)) as database:
            pages, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "page_size")
            )
        self.recorded.append((self._calls, pages * size))


def task_tool(task: AdapterTask, gauge: AdapterGauge | None = None) -> Callable[[str, str], str]:
    """Return `write_file` for this task's folder, with its name and docstring for the model."""

    def bound(path: str, content: str) -> str:
        if gauge is not None:
            gauge.called()
        return write_adapter_file(task.files, path, content)

    bound.__name__ = "write_file"
    bound.__doc__ = TOOL
    return bound


_current: list[AdapterTask] = []


def begin_adapter_task(task: AdapterTask) -> None:
    """Set the task of this process, for runners whose agents are created on import."""
    _current[:] = [task]


def current_adapter_task() -> AdapterTask:
    return _current[0]


def disable_adapter_telemetry() -> None:
    """Disable telemetry and tracing of all runners."""
    os.environ |= {
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
        "DBOS_TELEMETRY": "false",
    }
