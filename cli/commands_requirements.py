"""The command requirements, for people to use the store of requirements."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from cli.options import Json
from cli.output import OK, UserError, escape_controls, print_json, print_note, print_result
from cli.signal_effects import signal_sender_name
from engine.workspaces_root import workspaces_root
from protocol.short_text import one_line

if TYPE_CHECKING:
    from activities.checkpoints import Root
    from activities.requirements.requirement import Requirement
    from activities.requirements.requirement_store import StoredRequirement

Action = Literal["list", "search", "show", "export", "withdraw", "restore"]
Format = Literal["csv", "markdown", "json", "reqif"]
TEXT = 100
"""Characters of a requirement's text in a list."""
MOST = 1_000_000
MIN_LIKENESS = 0.2
"""Minimum similarity of a search result."""
T = TypeVar("T")


def requirements(
    action: Annotated[Action, typer.Argument(help="What to do.")] = "list",
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help=(
                "For show, withdraw and restore the ids, such as job-1/REQ-001; for search "
                "the words."
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
        str, typer.Option(help="Reason of the withdrawal or restoration, stored with it.")
    ] = "",
    json: Json = False,
) -> int:
    """List, search, show, export, withdraw or restore requirements in the store.

    A withdrawn requirement stays withdrawn, whatever its job does: it no longer appears in
    searches, claims and counts, and is removed from the graph. A restored one is back; if it was
    accepted, it is a draft and has to be judged again. Needs no server.
    """
    names = what or []
    if action == "show":
        return _show_requirements(_require_requirement_names(action, names), json=json)
    if action in ("withdraw", "restore"):
        change = _run_requirements_withdraw if action == "withdraw" else _run_requirements_restore
        return change(_require_requirement_names(action, names), reason.strip(), json=json)
    if action == "search" and not names:
        raise UserError('requirements search: give the words to look for, such as "kept for years"')
    if action != "search" and names:
        raise UserError(f"requirements {action}: takes no names, but --job, --status, --document")
    only = {"job": job, "status": status or "", "document": document, "withdrawn": withdrawn}
    entries = _read_requirements(only)
    if action == "search":
        entries = _rank_by_likeness(" ".join(names), entries)
    entries = entries[:limit]
    if action == "export":
        return _export_requirements(entries, format, to)
    return _print_requirements(entries, json=json)


def _print_requirements(entries: list[StoredRequirement], *, json: bool) -> int:
    if json:
        print_json([_requirement_data(entry) for entry in entries])
        return OK
    for each in entries:
        print_result(_requirement_line(each))
    if not entries:
        print_note("no requirements")
    return OK


def _show_requirements(names: list[str], *, json: bool) -> int:
    entries = _read_requirements({"refs": names, "withdrawn": True})
    known = {entry.requirement.ref for entry in entries}
    if missing := [name for name in names if name not in known]:
        raise UserError(
            f"there is no requirement {missing[0]}; `starter.py requirements` names them"
        )
    if json:
        print_json([_requirement_data(each) for each in entries])
        return OK
    for place, each in enumerate(entries):
        print_result(("\n" if place else "") + _requirement_page(each))
    return OK


def _run_requirements_withdraw(names: list[str], reason: str, *, json: bool) -> int:
    from activities.requirements import requirement_store as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.errors import StoreRefusedError  # noqa: PLC0415
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    if not reason:
        raise UserError("requirements withdraw: give --reason, which stays in the store")

    def withdraw_all(root: Root) -> list[str]:
        store = RelationalStore(root)
        try:
            was = store.run(
                lambda c: [
                    rows.withdraw_stored_requirement(c, name, signal_sender_name(), reason)
                    for name in names
                ]
            )
        except StoreRefusedError as refusal:
            raise UserError(f"nothing is withdrawn: {refusal}") from None
        accepted = [name for name, status in zip(names, was, strict=True) if status == "accepted"]
        return _drop_withdrawn_from_graph(root, accepted) if accepted else []

    remarks = _with_requirements_root(withdraw_all)
    if json:
        print_json({"withdrawn": names, "remarks": remarks})
        return OK
    for name in names:
        print_result(f"{name} is withdrawn")
    for remark in remarks:
        print_note(remark)
    return OK


def _run_requirements_restore(names: list[str], reason: str, *, json: bool) -> int:
    from activities.requirements import requirement_store as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.errors import StoreRefusedError  # noqa: PLC0415
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    if not reason:
        raise UserError("requirements restore: give --reason, which stays in the store")

    def restore_all(root: Root) -> list[str]:
        try:
            return RelationalStore(root).run(
                lambda c: [
                    rows.restore_requirement(c, name, signal_sender_name(), reason)
                    for name in names
                ]
            )
        except StoreRefusedError as refusal:
            raise UserError(f"nothing is restored: {refusal}") from None

    statuses = dict(zip(names, _with_requirements_root(restore_all), strict=True))
    if json:
        print_json({"restored": statuses})
        return OK
    for name, status in statuses.items():
        print_result(f"{name} is restored: {status}")
    return OK


def _drop_withdrawn_from_graph(root: Root, names: list[str]) -> list[str]:
    """Remove accepted requirements from the graph; return remarks if that fails."""
    from activities.requirements.graph.cypher import drop_node_cypher  # noqa: PLC0415
    from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError  # noqa: PLC0415
    from activities.requirements.graph.selection import open_graph  # noqa: PLC0415
    from config.agent_files import load_agent  # noqa: PLC0415

    schema = load_agent("validator").graph_schema
    try:
        with open_graph(root, schema) as graph:
            graph.write(*(drop_node_cypher(schema, "Requirement", name) for name in names))
    except (GraphUnavailableError, GraphQueryError) as error:
        return [f"{', '.join(names)} may still be in the graph: {error}"]
    return []


def _export_requirements(entries: list[StoredRequirement], format: Format, to: Path | None) -> int:
    from activities.requirements.export import requirements_as_csv, requirements_as_table  # noqa: PLC0415
    from activities.text.safe_text import as_readable_json  # noqa: PLC0415 - loads the activities

    records = [entry.requirement for entry in entries]
    if format == "json":
        text = as_readable_json([_requirement_data(each) for each in entries])
    elif format == "reqif":
        text = _as_reqif(records)
    else:
        text = requirements_as_csv(records) if format == "csv" else requirements_as_table(records)
    if to is None:
        print(escape_controls(text), end="")
        return OK
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UserError(f"--to {to}: {error.strerror or error}") from None
    print_note(f"{len(entries):,} requirements in {to}")
    return OK


def _as_reqif(records: list[Requirement]) -> str:
    try:
        from activities.requirements.reqif_export import requirements_as_reqif  # noqa: PLC0415 - of an extra
    except ImportError:
        raise UserError(
            "--format reqif needs the extra reqif: pip install '.[reqif]' in the checkout, or "
            "`reqif` beside the installed package"
        ) from None
    return requirements_as_reqif(records, datetime.now(UTC).isoformat(timespec="seconds"))


def _rank_by_likeness(words: str, entries: list[StoredRequirement]) -> list[StoredRequirement]:
    """Sort requirements with all of the words first, then similar ones; drop the rest."""
    from activities.search.text_likeness import compute_likeness  # noqa: PLC0415 - loads the activities

    texts = [
        f"{entry.requirement.text} {entry.requirement.citations[0].quote}".casefold()
        for entry in entries
    ]
    query_words = words.casefold().split()
    alike = compute_likeness(words, texts, lambda: None, rarity=True)
    has_all_words = [all(word in text for word in query_words) for text in texts]
    ranked = sorted(
        range(len(entries)), key=lambda place: (not has_all_words[place], -alike[place])
    )
    return [
        entries[place] for place in ranked if has_all_words[place] or alike[place] >= MIN_LIKENESS
    ]


def _require_requirement_names(action: str, names: list[str]) -> list[str]:
    if not names:
        raise UserError(
            f"requirements {action}: name one or more, such as job-1/REQ-001; "
            "`starter.py requirements` names them"
        )
    return list(dict.fromkeys(names))


def _read_requirements(only: dict[str, Any]) -> list[StoredRequirement]:
    from activities.requirements import requirement_store as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    return _with_requirements_root(
        lambda root: RelationalStore(root).read(lambda c: rows.search_requirement_store(c, **only))
    )


def _requirement_line(entry: StoredRequirement) -> str:
    requirement = entry.requirement
    text = one_line(requirement.text, TEXT)
    return (
        f"{requirement.ref} · {_requirement_status_word(entry)} · {requirement.force} · "
        f"{requirement.citations[0].place} · {text}"
    )


def _requirement_status_word(entry: StoredRequirement) -> str:
    return "withdrawn" if entry.withdrawn else entry.requirement.status


def _requirement_page(entry: StoredRequirement) -> str:
    requirement = entry.requirement
    lines = [
        f"{requirement.ref} · {_requirement_status_word(entry)} · {requirement.force} · "
        f"{requirement.type}",
        "",
        requirement.text,
        "",
    ]
    for citation in requirement.citations:
        lines += [f"> {citation.quote}", f"  {citation.document}, {citation.place}"]
        lines += [f"  {citation.url}, read {citation.accessed}"] if citation.url else []
    lines += ["", f"Confidence {requirement.confidence:g}. {requirement.reasoning}"]
    if entry.decided_by:
        double = f" of {requirement.duplicate_of}" if requirement.duplicate_of else ""
        lines.append(
            f"{requirement.status.capitalize()}{double} by {entry.decided_by}: {entry.reasons}"
        )
    if entry.withdrawn_why:
        lines.append(f"Withdrawn by {entry.withdrawn_by}: {entry.withdrawn_why}")
    elif entry.withdrawn:
        lines.append("Withdrawn: it is no longer in its workspace")
    if entry.restored_why:
        lines.append(f"Restored by {entry.restored_by}: {entry.restored_why}")
    return "\n".join(lines)


def _requirement_data(entry: StoredRequirement) -> dict[str, Any]:
    requirement = entry.requirement
    return {
        "ref": requirement.ref,
        **requirement.content,
        "job": requirement.job,
        "decided_by": entry.decided_by,
        "reasons": entry.reasons,
        "withdrawn": entry.withdrawn,
        "withdrawn_by": entry.withdrawn_by,
        "withdrawn_why": entry.withdrawn_why,
        "restored_by": entry.restored_by,
        "restored_why": entry.restored_why,
    }


def _with_requirements_root(work: Callable[[Root], T]) -> T:
    from activities.checkpoints import Root, RootError  # noqa: PLC0415 - loads libgit2
    from activities.stores.errors import StoreUnavailableError  # noqa: PLC0415

    try:
        return work(Root.open(workspaces_root(), create=False))
    except (RootError, StoreUnavailableError) as error:
        raise UserError(str(error)) from None


def add_requirements_command(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(requirements)
