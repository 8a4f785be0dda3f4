"""Archive pages of a job's phases, which the system writes when a phase ends."""

from __future__ import annotations

import yaml
from pydantic import Field, ValidationError

from activities.checkpoints import Files
from cli.report.report_content import MOST_PHASES
from config.yaml_files import YAML
from protocol.data_model import Data

PAGE_BYTES = 500_000


class PageTodo(Data):
    """A todo of a phase that has ended."""

    id: int = 0
    status: str = ""


class ArchivePage(Data):
    """A phase's archive page, as far as the report reads it."""

    outcome: str
    undone: bool = False
    issue: str = ""
    by: str = ""
    todos: list[PageTodo] = Field(default_factory=list)

    @property
    def completed(self) -> frozenset[int]:
        """Ids of the todos that are done."""
        return frozenset(todo.id for todo in self.todos if todo.status == "completed")

    @property
    def not_needed(self) -> int:
        return sum(todo.status == "not needed" for todo in self.todos)


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
            pages[int(number)] = ArchivePage.model_validate(data, extra="ignore")
        except (ValueError, ValidationError, yaml.YAMLError):
            continue
    return pages
