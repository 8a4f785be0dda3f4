"""The command requirements, for people to use the store of requirements."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, TypeVar

import typer

from cli.options import Json
from cli.output import OK, UserError, escape_controls, print_json, print_note, print_result
from cli.requirements.requirement_documents import (
    contradicting_pairs,
    export_marked_document,
    export_matrix,
)
from cli.requirements.requirement_rendering import (
    requirement_json,
    requirement_line,
    requirement_page,
)
from cli.requirements.requirement_review import (
    follow_in_graph,
    review_requirements,
    show_version_difference,
)
from cli.requirements.requirement_search import rank_requirements, read_stored_requirements
from cli.root_access import run_with_root
from cli.signals.signal_sending import signal_sender_name

if TYPE_CHECKING:
    from activities.checkpoints import Root
    from activities.requirements.requirement_store import StoredRequirement

Action = Literal[
    "list", "search", "show", "export", "diff", "accept", "reject", "assign", "withdraw", "restore"
]
Format = Literal["csv", "markdown", "json", "reqif", "html", "matrix"]
MOST = 1_000_000
T = TypeVar("T")


def requirements(
    action: Annotated[Action, typer.Argument(help="What to do.")] = "list",
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help=(
                "For show, accept, reject, assign, withdraw and restore the ids, such as "
                "job-1/REQ-001; for diff two jobs; for search the words."
            ),
            show_default=False,
        ),
    ] = None,
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
    format: Annotated[Format, typer.Option(help="Format of an export.")] = "csv",
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
    if action == "show":
        return _show_requirements(_require_requirement_names(action, names), json=json)
    if action == "diff":
        return show_version_difference(names, json=json)
    if action in ("accept", "reject", "assign"):
        chosen = _require_requirement_names(action, names)
        return review_requirements(action, chosen, reason.strip(), by or signal_sender_name(), json)
    if action in ("withdraw", "restore"):
        chosen = _require_requirement_names(action, names)
        return _change_requirements(action, chosen, reason.strip(), json=json)
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
        return _export_requirements(entries, format, to, document)
    return _print_requirements(entries, json=json)


def _print_requirements(entries: list[StoredRequirement], *, json: bool) -> int:
    if json:
        print_json([requirement_json(entry) for entry in entries])
        return OK
    for each in entries:
        print_result(requirement_line(each))
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
        print_json([requirement_json(each) for each in entries])
        return OK
    for place, each in enumerate(entries):
        print_result(("\n" if place else "") + requirement_page(each))
    return OK


def _change_requirements(action: str, names: list[str], reason: str, *, json: bool) -> int:
    """Withdraw or restore requirements."""
    from activities.requirements import requirement_withdrawal as withdrawal  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from activities.stores.store_errors import StoreRefusedError  # noqa: PLC0415

    done = "withdrawn" if action == "withdraw" else "restored"
    if not reason:
        raise UserError(f"requirements {action}: give --reason, which stays in the store")
    change = (
        withdrawal.withdraw_requirement if action == "withdraw" else withdrawal.restore_requirement
    )

    def change_all(root: Root) -> tuple[list[str], list[str]]:
        try:
            statuses = RelationalStore(root).run(
                lambda c: [change(c, name, signal_sender_name(), reason) for name in names]
            )
        except StoreRefusedError as refusal:
            raise UserError(f"nothing is {done}: {refusal}") from None
        each = zip(names, statuses, strict=True)
        accepted = [name for name, was in each if was == "accepted" and action == "withdraw"]
        return statuses, follow_in_graph(root, [], accepted)

    statuses, remarks = run_with_root(change_all)
    if json and action == "withdraw":
        print_json({"withdrawn": names, "remarks": remarks})
    elif json:
        print_json({"restored": dict(zip(names, statuses, strict=True))})
    else:
        for name, status in zip(names, statuses, strict=True):
            print_result(f"{name} is {done}" + (f": {status}" if action == "restore" else ""))
        for remark in remarks:
            print_note(remark)
    return OK


def _export_requirements(
    entries: list[StoredRequirement], format: Format, to: Path | None, document: str
) -> int:
    from activities.requirements.export import (  # noqa: PLC0415 - loads the activities
        group_duplicates,
        requirement_rows,
        requirements_as_csv,
        requirements_as_table,
    )
    from activities.text.safe_text import as_readable_json  # noqa: PLC0415

    if format == "json":
        text = as_readable_json([requirement_json(each) for each in entries])
    elif format == "reqif":
        text = _export_as_reqif(entries)
    elif format == "html":
        text = export_marked_document(entries, document)
    elif format == "matrix":
        text = export_matrix(entries)
    else:
        rows = requirement_rows(entries, group_duplicates(entries))
        text = requirements_as_csv(rows) if format == "csv" else requirements_as_table(rows)
    if to is None:
        print(escape_controls(text), end="")
        return OK
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--to {to}: {error.strerror or error}") from None
    print_note(f"{len(entries):,} requirements in {to}")
    return OK


def _export_as_reqif(entries: list[StoredRequirement]) -> str:
    try:
        from activities.requirements.reqif_export import requirements_as_reqif  # noqa: PLC0415 - of an extra
    except ImportError:
        raise UserError(
            "--format reqif needs the extra reqif: pip install '.[reqif]' in the checkout, or "
            "`reqif` beside the installed package"
        ) from None
    pairs = contradicting_pairs([each.requirement.ref for each in entries])
    return requirements_as_reqif(entries, datetime.now(UTC).isoformat(timespec="seconds"), pairs)


def _require_requirement_names(action: str, names: list[str]) -> list[str]:
    if not names:
        raise UserError(
            f"requirements {action}: name one or more, such as job-1/REQ-001; "
            "`starter.py requirements` names them"
        )
    return list(dict.fromkeys(names))
