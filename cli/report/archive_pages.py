"""Archive pages of a job's phases, which the system writes when a phase ends."""

from __future__ import annotations

from dataclasses import dataclass

import yaml

from activities.checkpoints import Files
from cli.report.report_content import MOST_PHASES
from config.yaml_files import YAML

PAGE_BYTES = 500_000


@dataclass(frozen=True)
class ArchivePage:
    """A phase's archive page."""

    outcome: str
    undone: bool = False
    issue: str = ""
    by: str = ""
    todos: int = 0
    """Without those that were not needed."""
    done: int = 0
    not_needed: int = 0
    completed: frozenset[int] = frozenset()
    """Ids of the todos that are done."""


def read_archive_pages(files: Files) -> dict[int, ArchivePage]:
    """Return archive pages by phase number, without those of phases that have not ended."""
    pages: dict[int, ArchivePage] = {}
    if files.entry("archive") is None:
        return pages
    entries = [entry for entry in files.children("archive") if entry.path.endswith(".yaml")]
    for entry in entries[-MOST_PHASES:]:
        number = entry.path.removeprefix("archive/phase_").removesuffix(".yaml")
        if not number.isdecimal() or entry.size > PAGE_BYTES:
            continue
        try:
            data = yaml.load(files.read(entry.path).decode(), YAML)
        except (ValueError, yaml.YAMLError):
            continue
        if isinstance(data, dict) and isinstance(data.get("outcome"), str):
            todos = [todo for todo in data.get("todos") or [] if isinstance(todo, dict)]
            unneeded = sum(todo.get("status") == "not needed" for todo in todos)
            pages[int(number)] = ArchivePage(
                data["outcome"],
                undone=data.get("undone") is True,
                issue=str(data.get("issue") or ""),
                by=str(data.get("by") or ""),
                todos=len(todos) - unneeded,
                done=sum(todo.get("status") == "completed" for todo in todos),
                not_needed=unneeded,
                completed=frozenset(
                    todo["id"]
                    for todo in todos
                    if todo.get("status") == "completed" and isinstance(todo.get("id"), int)
                ),
            )
    return pages
