"""The outline of a job, a project or a trial: what people are shown of it, in order.

Printers turn it into lines for a terminal, Markdown for Temporal Web, and HTML for the report.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

from protocol.repository_start import PinnedSource
from protocol.short_text import count_noun
from protocol.status import ItemStatus, Limits, RemoteStatus, ScopeCounts, Status, UnderWay
from protocol.usage import Usage
from protocol.waiting import WaitState

DOES = {
    "prepare": "preparation (the files, the set-up, the tests as they came)",
    "judge_ending": "check of the end (guards, verifiers, the tests that prove the work)",
    "take_work": "take-over of the work (the tests that prove it)",
}
"""What activities do that may take minutes, where their names do not say it."""
MARKS = {
    "completed": "☑",
    "current": "▶",
    "in_progress": "▶",
    "running": "▶",
    "open": "☐",
    "pending": "☐",
    "passed over": "·",
}
"""A character for how an entry of a list stands; `mark` gives those of any other."""
CURRENT = MARKS["current"]
ITEM_COLUMNS = ("Item", "State", "From", "Text")
SectionName = Literal[
    "needs",
    "result",
    "deliverables",
    "scope",
    "list",
    "jobs",
    "figures",
    "place",
    "notices",
    "report",
]
"""`report` is what only the report shows."""


def mark(status: str) -> str:
    """Return the character of a status; of one that ended otherwise than completed, `☒`."""
    return MARKS.get(status, "☒")


@dataclass(frozen=True)
class Row:
    """One entry of a section."""

    text: str
    mark: str = ""
    cells: tuple[str, ...] = ()
    """The same as columns, where the section is a table."""
    below: tuple[str, ...] = ()
    link: str = ""
    is_detail: bool = False
    """Whether only pages show it."""
    is_quoted: bool = False
    """Whether it is somebody's text, to be shown verbatim."""


@dataclass(frozen=True)
class Section:
    """One part of an outline."""

    name: SectionName
    heading: str = ""
    lead: str = ""
    """What is said of all its rows."""
    rows: tuple[Row, ...] = ()
    columns: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.lead or self.rows or (self.name == "list" and self.heading))


@dataclass(frozen=True)
class Outline:
    """What people are shown of a job, a project or a trial."""

    id: str
    title: str
    word: str
    """`waiting`."""
    ending: str
    """The same, with what was met: `completed, 11 of 12 statements met`."""
    facts: tuple[str, ...] = ()
    """Agent and model."""
    place: str = ""
    """`phase 2 · tactical · Extraction · plan 1 of 3`, or the progress of a project or trial."""
    progress: tuple[int, int] = (0, 0)
    """How much of the list is done, and of how much."""
    wait: str = ""
    sections: list[Section] = field(default_factory=list)

    @property
    def head(self) -> str:
        return " · ".join(filter(None, [self.id, self.title]))

    @property
    def steps(self) -> tuple[Row, ...]:
        """The list: todos, units or configurations."""
        return next((each.rows for each in self.sections if each.name == "list"), ())

    @property
    def line(self) -> str:
        done, total = self.progress
        current = [row.text for row in self.steps if row.mark == CURRENT][:1]
        count = f"{done}/{total}" if total and f"{done} of {total} " not in self.place else ""
        return " · ".join(filter(None, [self.wait or self.word, self.place, count, *current]))


def outline_sections(sections: Iterable[Section]) -> list[Section]:
    return [section for section in sections if section]


def text_rows(*texts: str | None) -> tuple[Row, ...]:
    return tuple(Row(text) for text in texts if text)


def wait_line(waiting: WaitState | None, reason: str | None = None) -> str:
    """`waiting (credentials): The key was refused. Set OPENAI_API_KEY and resume.`"""
    if waiting is None:
        return f"waiting ({reason})" if reason else ""
    message, remedy = waiting.message.strip(), waiting.remedy.strip()
    several = "\n" in message
    if message and remedy and not several and not message.endswith((".", "!", "?")):
        # Messages of endpoints often lack a full stop.
        message += "."
    # The end of a command's output must not run on into the advice.
    text = f"{message}{chr(10) if several else ' '}{remedy}".strip()
    return f"waiting ({waiting.reason})" + (f": {text}" if text else "")


def needs_section(status: Status, *more: str) -> Section:
    """What needs a person, and what happens meanwhile."""
    waiting = status.waiting
    # What the message says already is left out.
    about = [
        Row(f"{name}: {value}", is_quoted=True)
        for name, value in (waiting.about if waiting else {}).items()
        if name != "question" or value not in (waiting.message if waiting else "")
    ]
    rows = [
        *text_rows(status.error, wait_line(waiting, status.waiting_for)),
        *about,
        *text_rows(*more, *(f"retrying {text}" for text in status.retrying)),
        *text_rows(*map(_under_way_line, status.under_way)),
    ]
    return Section("needs", rows=tuple(rows))


def _under_way_line(activity: UnderWay) -> str:
    job = f"{activity.job}: " if activity.job else ""
    passed = timedelta(seconds=activity.seconds)
    does = DOES.get(activity.activity, activity.activity.replace("_", " "))
    return f"{job}{does} under way for {passed}"


def scope_section(counts: ScopeCounts, items: Sequence[ItemStatus]) -> Section:
    """The scope of something that is not over: how much is done, and each item for pages."""
    rows = tuple(
        Row(
            f"{item.id} ({item.status}): {item.text}",
            cells=(
                item.id,
                item.status,
                item.source,
                f"{item.text} (reason: {item.reason})" if item.reason else item.text,
            ),
            is_detail=True,
        )
        for item in items
    )
    return Section("scope", "Scope", counts.line, rows, ITEM_COLUMNS if rows else ())


def listed_section(name: SectionName, heading: str, entries: Sequence[str]) -> Section:
    return Section(name, heading, rows=text_rows(*entries))


def notices_section(notices: Sequence[object]) -> Section:
    return listed_section("notices", "Notices", [*map(str, notices)])


def usage_line(usage: Usage) -> str:
    """`12 model calls · 30 tool calls · 45,678 tokens · cost 0.0123`, as far as known."""
    if usage == Usage():
        return ""
    tokens = usage.prompt_tokens + usage.completion_tokens
    read, written = usage.cached_tokens, usage.written_tokens
    details = usage.call_details if usage.sent_calls else ""
    return (
        f"{count_noun(usage.model_calls, 'model call')} · "
        f"{count_noun(usage.tool_calls, 'tool call')}"
        + (f" ({details})" if details else "")
        + f" · {tokens:,} tokens"
        + (f" (cache: {read:,} read, {written:,} written)" if read or written else "")
        + (f" ({usage.unfinished_details})" if usage.unfinished_details else "")
        + (f" · cost {usage.cost:.4f}" if usage.cost else "")
    )


def limits_line(limits: Limits) -> str:
    parts = [
        f"{scope} {key.replace('_', ' ')} {use.spent:,.10g} of {use.limit:,.10g}"
        for scope, uses in limits.items()
        for key, use in uses.items()
    ]
    return f"limits: {' · '.join(parts)}" if parts else ""


def origin_line(origin: PinnedSource | None) -> str:
    if origin is None:
        return ""
    ref = f" at {origin.ref}" if origin.ref else ""
    return f"begun from {origin.source}{ref}, commit {origin.commit[:12]}"


def remote_line(remote: RemoteStatus | None, *, ended: bool) -> str:
    """What the remote lacks; empty if it lacks nothing."""
    if remote is None or not remote.behind:
        return ""
    if ended:
        # A closed job cannot learn of the push that its worker makes once the remote is back.
        return (
            f"when the job ended, the remote {remote.url} lacked checkpoints, which a "
            f"worker of that host pushes later: {remote.behind}"
        )
    return f"the remote {remote.url} lacks checkpoints: {remote.behind}"
