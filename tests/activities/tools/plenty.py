"""An office's worth of tools: 40 of them, in the registry for as long as a test runs."""

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Annotated, Literal

from pydantic import Field

from activities.toolkit.registry import REGISTRY, tool
from activities.toolkit.tool_context import ToolContext

GROUP = "office"
GROUPS = ["files", "todos", "job", GROUP]
THINGS = {
    "customer": "a person or company that buys, with addresses, contacts and terms of payment",
    "invoice": "a demand for payment, with its positions, taxes, due date and reminders",
    "contract": "an agreement with its term, notice period, signatures and annexes",
    "supplier": "a company we buy from, with its ratings, bank account and delivery times",
    "shipment": "goods under way, with carrier, tracking number, customs papers and arrival",
    "employee": "a member of staff, with role, department, working hours and absences",
    "ticket": "a complaint or question from outside, with its priority, thread and solution",
    "meeting": "an appointment, with its participants, room, agenda and minutes",
}
Id = Annotated[str, Field(description="Identifier of the record, such as R-2024-00017.")]
Tenant = Annotated[
    str | None,
    Field(max_length=40, description="Short name of the branch office; the head office if left."),
]
Language = Annotated[
    Literal["en", "de", "fr", "es", "it", "pl"],
    Field(description="Language in which labels, units and messages of the answer are written."),
]
Reason = Annotated[
    str,
    Field(min_length=3, max_length=500, description="Why, in a sentence; kept in the audit trail."),
]
Fields = Annotated[
    list[str] | None,
    Field(max_length=50, description="Names of the fields to answer with; all of them if left."),
]
Since = Annotated[
    str | None,
    Field(pattern=r"^\d{4}-\d\d-\d\d$", description="Only records changed on this day or later."),
]
Until = Annotated[
    str | None,
    Field(pattern=r"^\d{4}-\d\d-\d\d$", description="Only records changed on this day or before."),
]
Status = Annotated[
    Literal["draft", "open", "waiting", "approved", "rejected", "closed", "archived"] | None,
    Field(description="Only records that stand at this point of their life."),
]


@contextmanager
def plenty() -> Iterator[list[str]]:
    """Return the names of the tools, which are removed from the registry at the end."""
    before = set(REGISTRY)
    try:
        for thing, description in THINGS.items():
            _enter(thing, description)
        yield [name for name in REGISTRY if name not in before]
    finally:
        for name in set(REGISTRY) - before:
            del REGISTRY[name]


def _enter(thing: str, description: str) -> None:
    def listed(
        context: ToolContext,
        matching: Annotated[str, Field(max_length=200, description="Words to look for.")] = "",
        status: Status = None,
        since: Since = None,
        until: Until = None,
        fields: Fields = None,
        order: Annotated[
            Literal["newest", "oldest", "name", "number"],
            Field(description="What comes first in the answer."),
        ] = "newest",
        page: Annotated[int, Field(ge=1, le=1000, description="Page of 50, from 1.")] = 1,
        branch: Tenant = None,
        language: Language = "en",
    ) -> str:
        return f"No {thing} yet."

    def changed(
        context: ToolContext,
        id: Id,
        values: Annotated[
            dict[str, str], Field(description="New values by field; others stay as they are.")
        ],
        reason: Reason,
        expected_version: Annotated[
            int | None,
            Field(ge=1, description="Version that was read; refused if there is a newer one."),
        ] = None,
        notify: Annotated[
            list[str] | None,
            Field(max_length=20, description="Mail addresses that are told about the change."),
        ] = None,
        effective: Since = None,
        draft: Annotated[
            bool, Field(description="Keep it as a proposal that somebody has to approve.")
        ] = False,
        branch: Tenant = None,
        language: Language = "en",
    ) -> str:
        return f"Changed {id}."

    def merged(
        context: ToolContext,
        keep: Id,
        drop: Annotated[
            list[str],
            Field(min_length=1, max_length=20, description="Identifiers that become aliases."),
        ],
        reason: Reason,
        prefer: Annotated[
            Literal["kept", "newest", "longest"],
            Field(description="Whose value stands where two records differ in a field."),
        ] = "kept",
        threshold: Annotated[
            float,
            Field(ge=0, le=1, description="Refused when the records are less alike than this."),
        ] = 0.8,
        rehearse: Annotated[
            bool, Field(description="Answer with what would become of it and change nothing.")
        ] = False,
        branch: Tenant = None,
        language: Language = "en",
    ) -> str:
        return f"Merged into {keep}."

    def exported(
        context: ToolContext,
        since: Since = None,
        until: Until = None,
        status: Status = None,
        fields: Fields = None,
        separator: Annotated[
            Literal["comma", "semicolon", "tab"],
            Field(description="What stands between two values of a line of the table."),
        ] = "comma",
        header: Annotated[
            bool, Field(description="Whether the first line holds the names of the fields.")
        ] = True,
        branch: Tenant = None,
        language: Language = "en",
    ) -> str:
        data = json.dumps({"since": since, "header": header}).encode()
        context.files = context.files.write(f"output/{thing}s.csv", data)
        return f"Wrote output/{thing}s.csv."

    def assigned(
        context: ToolContext,
        id: Id,
        person: Annotated[
            str, Field(max_length=100, description="Mail address of who is to see to it.")
        ],
        reason: Reason,
        due: Annotated[
            str | None,
            Field(pattern=r"^\d{4}-\d\d-\d\d$", description="Day by which it is to be done."),
        ] = None,
        priority: Annotated[
            Literal["low", "normal", "high", "urgent"],
            Field(description="How soon it is looked at; urgent rings somebody's telephone."),
        ] = "normal",
        watchers: Annotated[
            list[str] | None,
            Field(max_length=20, description="Mail addresses that are told of every change."),
        ] = None,
        branch: Tenant = None,
        language: Language = "en",
    ) -> str:
        return f"Assigned {id}."

    description = f"A record is {description}."
    verbs: dict[str, tuple[Callable[..., str], str, str]] = {
        "list_{}s": (listed, "List {}s, filtered and sorted, a page at a time.", "Read only."),
        "update_{}": (changed, "Change fields of one {}.", "Refused while somebody edits it."),
        "merge_{}s": (merged, "Merge duplicate {}s into one record.", "Cannot be undone."),
        "export_{}s": (exported, "Export {}s as a table into output/.", "A line a record."),
        "assign_{}": (assigned, "Give one {} to a colleague to see to.", "They get a mail."),
    }
    for name, (function, line, rest) in verbs.items():
        function.__name__ = name.format(thing)
        function.__doc__ = f"{line.format(thing)}\n\n{description} {rest}"
        tool(GROUP, effect="writes")(function)
