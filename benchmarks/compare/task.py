"""What an adapter is asked for, what it gives back, and the tool that its agent has."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

SYSTEM = "You are an agent. Write the files you are asked for, one tool call at a time."
TOOL = "Write a text file; an existing one is replaced. Folders on the way are made."
KEY = "none"
"""The endpoint takes any."""


@dataclass(frozen=True)
class Task:
    """One run of an agent, until it ends by itself, is ended by a limit, or the time is up."""

    base_url: str
    """Of the endpoint."""
    model: str
    """Name by which the endpoint knows which behaviour is asked for, and by whom."""
    prompt: str
    folder: str
    """Scratch folder of this run."""
    steps: int
    lifted: bool = False
    """Whether the runner's own limit of turns is raised out of the way."""
    cap: float = 60.0
    """Seconds after which the run is given up."""
    items: int = 0
    """Size of the scope, where there is one: `item_01.md` and so on are to be made."""

    @property
    def files(self) -> Path:
        """Where the agent's tool writes."""
        return Path(self.folder) / "files"


@dataclass(frozen=True)
class Outcome:
    """How a run went. What it took is measured at the endpoint."""

    ended: str
    """`finished`, `stopped` or `time`."""
    error: str = ""
    """Type and text of what stopped it."""
    recorded: list[tuple[int, int]] = field(default_factory=list)
    """Bytes of history or database after so many model calls, in order."""
    store: int = 0
    """Bytes of any other store, at the end."""
    runs: int = 1
    """Runs of the workflow's chain."""
    made: dict[str, str] | None = None
    """Files by path, where they are not in the task's folder."""


def write_file(files: Path, path: str, content: str) -> str:
    """The tool: what it does and says is the same for every runner that has none of its own."""
    target = files / path.lstrip("/")
    if not target.resolve().is_relative_to(files.resolve()):
        return f"Error: {path} is outside the folder."
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")
    return f"Wrote {len(content):,} characters to {path}."


def failed(error: BaseException) -> Outcome:
    """The outcome of a run that this error ended: its innermost cause names the reason."""
    while error.__cause__ is not None:
        error = error.__cause__
    kind = getattr(error, "type", None) or type(error).__name__
    return Outcome("stopped", f"{kind}: {error}"[:300])


class Gauge:
    """Size of a SQLite database as a run goes on, looked at now and then."""

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
        """Note the size: all pages, those in the write-ahead log included."""
        with closing(sqlite3.connect(self._database)) as database:
            pages, size = (
                database.execute(f"PRAGMA {name}").fetchone()[0]
                for name in ("page_count", "page_size")
            )
        self.recorded.append((self._calls, pages * size))


def tool(task: Task, gauge: Gauge | None = None) -> Callable[[str, str], str]:
    """`write_file` of this task's folder, with the name and words that the model is shown."""

    def bound(path: str, content: str) -> str:
        if gauge is not None:
            gauge.called()
        return write_file(task.files, path, content)

    bound.__name__ = "write_file"
    bound.__doc__ = TOOL
    return bound


_current: list[Task] = []


def begin(task: Task) -> None:
    """Make this the task of the process, for runners whose agents are made on import."""
    _current[:] = [task]


def current() -> Task:
    return _current[0]


def quiet() -> None:
    """No runner reports home or traces."""
    os.environ |= {
        "OPENAI_AGENTS_DISABLE_TRACING": "1",
        "LANGSMITH_TRACING": "false",
        "DBOS_TELEMETRY": "false",
    }
