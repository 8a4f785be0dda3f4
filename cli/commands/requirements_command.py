"""The command requirements, for people to use the store of requirements."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from cli.options import Json
from cli.output import OK, UserError, escape_controls, print_json, print_note, print_result
from cli.requirements import requirement_rendering
from cli.requirements.requirement_documents import (
    contradicting_pairs,
    export_marked_document,
    export_matrix,
)
from cli.requirements.requirement_review import review_requirements, show_version_difference
from cli.root_access import run_with_root

if TYPE_CHECKING:
    from activities.requirements.requirement_store import StoredRequirement

Action = Literal[
    "list", "search", "show", "export", "diff", "accept", "reject", "assign", "withdraw", "restore"
]
Format = Literal["csv", "markdown", "json", "reqif", "html", "matrix"]
MOST = 1_000_000
MIN_LIKENESS = 0.2
"""Minimum similarity of a search result."""
What = Annotated[
    list[str] | None,
    typer.Argument(
        help="For show, accept, reject, assign, withdraw and restore the ids, such as "
        "job-1/REQ-001; for diff two jobs; for search the words.",
        show_default=False,
    ),
]


def requirements(
    action: Annotated[Action, typer.Argument(help="What to do.")] = "list",
    what: What = None,
    job: Annotated[str, typer.Option(help="Only requirements of this job.")] = "",
    status: Annotated[
        Literal["draft", "accepted", "rejected", "duplicate"] | None,
        typer.Option(help="Only requirements with this status."),
    ] = None,
    document: Annotated[
        str, typer.Option(help="Only from documents whose path ends with this, such as policy.pdf.")
    ] = "",
    withdrawn: Annotated[
        bool, typer.Option("--withdrawn", help="Include withdrawn requirements.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="Maximum number.")] = MOST,
    format: Annotated[
        Format | None, typer.Option(help="Format of an export; csv if left out.")
    ] = None,
    to: Annotated[Path | None, typer.Option(help="File for an export.", show_default=False)] = None,
    reason: Annotated[
        str, typer.Option(help="Reason of a review, withdrawal or restoration, stored with it.")
    ] = "",
    by: Annotated[
        str, typer.Option(help="The person who reviews, or to whom it is assigned.")
    ] = "",
    json: Json = False,
) -> int:
    """List, search, show, export, compare, review, withdraw or restore requirements in the store.

    diff A B compares the requirements of a job with those of the one that replaced it. accept,
    reject and assign are a person's word on requirements.

    A withdrawn requirement stays withdrawn, whatever its job does: it no longer appears in
    searches, claims and counts, and is removed from the graph. A restored one is back; if it was
    accepted, it is a draft and has to be judged again. Needs no server.
    """
    names = what or []
    if action != "export" and (given := "--format" if format else "--to" if to else ""):
        raise UserError(f"{given} belongs to an export: `starter.py requirements export {given} …`")
    if action == "show":
        return _show_requirements(_require_requirement_names(action, names), json=json)
    if action == "diff":
        return show_version_difference(names, json=json)
    if action in ("accept", "reject", "assign", "withdraw", "restore"):
        chosen = _require_requirement_names(action, names)
        return review_requirements(action, chosen, reason.strip(), by, json)
    if action == "search" and not names:
        raise UserError('requirements search: give the words to look for, such as "kept for years"')
    if action != "search" and names:
        raise UserError(f"requirements {action}: takes no names, but --job, --status, --document")
    only = {"job": job, "status": status or "", "document": document, "withdrawn": withdrawn}
    entries = read_stored_requirements(only)
    if action == "search":
        entries = rank_requirements(" ".join(names), entries)
    entries = entries[:limit]
    if action == "export":
        return _export_requirements(entries, format or "csv", to, document)
    return _print_requirements(entries, json=json)


def _print_requirements(entries: list[StoredRequirement], *, json: bool) -> int:
    if json:
        print_json([requirement_rendering.requirement_json(entry) for entry in entries])
        return OK
    for each in entries:
        print_result(requirement_rendering.requirement_line(each))
    if not entries:
        print_note("no requirements")
    return OK


def _show_requirements(names: list[str], *, json: bool) -> int:
    entries = read_stored_requirements({"refs": names, "withdrawn": True})
    known = {entry.requirement.ref for entry in entries}
    if missing := [name for name in names if name not in known]:
        raise UserError(
            f"there is no requirement {missing[0]}; `starter.py requirements` names them"
        )
    if json:
        print_json([requirement_rendering.requirement_json(each) for each in entries])
        return OK
    for place, each in enumerate(entries):
        print_result(("\n" if place else "") + requirement_rendering.requirement_page(each))
    return OK


def _export_requirements(
    entries: list[StoredRequirement], format: Format, to: Path | None, document: str
) -> int:
    from activities.requirements import export  # noqa: PLC0415 - loads the activities
    from activities.requirements.reqif_export import requirements_as_reqif  # noqa: PLC0415
    from activities.text.safe_text import as_readable_json  # noqa: PLC0415

    if format == "json":
        text = as_readable_json([requirement_rendering.requirement_json(each) for each in entries])
    elif format == "reqif":
        pairs = contradicting_pairs([each.requirement.ref for each in entries])
        time = datetime.now(UTC).isoformat(timespec="seconds")
        text = requirements_as_reqif(entries, time, pairs)
    elif format == "html":
        text = export_marked_document(entries, document)
    elif format == "matrix":
        text = export_matrix(entries)
    else:
        rows = export.requirement_rows(entries, export.group_duplicates(entries))
        text = (
            export.requirements_as_csv(rows)
            if format == "csv"
            else export.requirements_as_table(rows)
        )
    if to is None:
        print(escape_controls(text), end="")
        return OK
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--to {to}: {error.strerror or error}") from None
    print_note(f"{len(entries):,} requirements in {to}")
    return OK


def _require_requirement_names(action: str, names: list[str]) -> list[str]:
    if not names:
        raise UserError(
            f"requirements {action}: name one or more, such as job-1/REQ-001; "
            "`starter.py requirements` names them"
        )
    return list(dict.fromkeys(names))


def rank_requirements(words: str, entries: list[StoredRequirement]) -> list[StoredRequirement]:
    """Sort requirements with all of the words first, then similar ones; drop the rest."""
    from activities.search.text_likeness import compute_text_likeness  # noqa: PLC0415 - loads the activities

    texts = [
        f"{entry.requirement.text} {entry.requirement.citations[0].quote}".casefold()
        for entry in entries
    ]
    query_words = words.casefold().split()
    alike = compute_text_likeness(words, texts, rarity=True)
    has_all_words = [all(word in text for word in query_words) for text in texts]
    ranked = sorted(
        range(len(entries)), key=lambda place: (not has_all_words[place], -alike[place])
    )
    return [
        entries[place] for place in ranked if has_all_words[place] or alike[place] >= MIN_LIKENESS
    ]


def read_stored_requirements(only: dict[str, Any]) -> list[StoredRequirement]:
    from activities.requirements import requirement_store as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    return run_with_root(
        lambda root: RelationalStore(root).read(lambda c: rows.search_requirement_store(c, **only))
    )
