"""The command for the store of requirements, for people."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

import typer

from cli.options import Json
from cli.output import OK, Mistake, dump, note, say, visible
from engine.connection import workspaces_root
from protocol.text import one_line

if TYPE_CHECKING:
    from activities.checkpoints import Root
    from activities.stores.requirements import Stored

Action = Literal["list", "search", "show", "export", "withdraw"]
Format = Literal["csv", "markdown", "json"]
TEXT = 100
"""Characters of a requirement's text in a line."""
MOST = 1_000_000
LEAST = 0.2
"""Likeness below which nothing is found."""
BY = "a person"
T = TypeVar("T")


def requirements(
    action: Annotated[Action, typer.Argument(help="What to do.")] = "list",
    what: Annotated[
        list[str] | None,
        typer.Argument(
            help="For show and withdraw which, such as job-1/REQ-001; for search the words.",
            show_default=False,
        ),
    ] = None,
    job: Annotated[str, typer.Option(help="Only of this job.")] = "",
    status: Annotated[
        Literal["draft", "accepted", "rejected", "duplicate"] | None,
        typer.Option(help="Only with this status."),
    ] = None,
    document: Annotated[
        str, typer.Option(help="Only from a document whose path ends so, such as policy.pdf.")
    ] = "",
    withdrawn: Annotated[
        bool, typer.Option("--withdrawn", help="Also those that are withdrawn.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, max=MOST, help="How many at most.")] = MOST,
    format: Annotated[Format, typer.Option(help="Of an export.")] = "csv",
    to: Annotated[
        Path | None, typer.Option(help="The file that an export goes to.", show_default=False)
    ] = None,
    reason: Annotated[
        str, typer.Option(help="Why they are withdrawn; it stays in the store.")
    ] = "",
    json: Json = False,
) -> int:
    """List, search, show, export or withdraw what the store of requirements holds.

    What is withdrawn stays so, whatever its job does: it is found, taken and counted no more, and
    comes out of the graph. Needs no server.
    """
    names = what or []
    if action == "show":
        return _show(_named(action, names), json=json)
    if action == "withdraw":
        return _withdraw(_named(action, names), reason.strip(), json=json)
    if action == "search" and not names:
        raise Mistake('requirements search: give the words to look for, such as "kept for years"')
    if action != "search" and names:
        raise Mistake(f"requirements {action}: takes no names; --job, --status, --document choose")
    only = {"job": job, "status": status or "", "document": document, "withdrawn": withdrawn}
    found = _read(only)
    if action == "search":
        found = _alike(" ".join(names), found)
    found = found[:limit]
    if action == "export":
        return _export(found, format, to)
    if json:
        dump([_data(each) for each in found])
        return OK
    for each in found:
        say(_line(each))
    if not found:
        note("no requirements")
    return OK


def _show(names: list[str], *, json: bool) -> int:
    found = _read({"refs": names, "withdrawn": True})
    there = {each.requirement.ref for each in found}
    if missing := [name for name in names if name not in there]:
        raise Mistake(f"there is no requirement {missing[0]}; `starter.py requirements` names them")
    if json:
        dump([_data(each) for each in found])
        return OK
    for place, each in enumerate(found):
        say(("\n" if place else "") + _page(each))
    return OK


def _withdraw(names: list[str], reason: str, *, json: bool) -> int:
    from activities.stores import requirements as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.away import StoreRefuses  # noqa: PLC0415
    from activities.stores.engine import Store  # noqa: PLC0415

    if not reason:
        raise Mistake("requirements withdraw: give --reason, which stays in the store")

    def work(root: Root) -> list[str]:
        store = Store(root)
        try:
            was = store.run(lambda c: [rows.withdraw(c, name, BY, reason) for name in names])
        except StoreRefuses as refusal:
            raise Mistake(f"nothing is withdrawn: {refusal}") from None
        accepted = [name for name, status in zip(names, was, strict=True) if status == "accepted"]
        return _out_of_graph(root, accepted) if accepted else []

    remarks = _with_root(work)
    if json:
        dump({"withdrawn": names, "remarks": remarks})
        return OK
    for name in names:
        say(f"{name} is withdrawn")
    for remark in remarks:
        note(remark)
    return OK


def _out_of_graph(root: Root, names: list[str]) -> list[str]:
    """Take what was accepted out of the graph; what is to be known of it."""
    from activities.graph.interface import GraphAway, GraphRefused  # noqa: PLC0415
    from activities.graph.opening import open_graph  # noqa: PLC0415
    from activities.graph.statements import drop_node  # noqa: PLC0415
    from config.loader import load_agent  # noqa: PLC0415

    schema = load_agent("validator").graph_schema
    try:
        with open_graph(root, schema) as graph:
            graph.write(*(drop_node(schema, "Requirement", name) for name in names))
    except (GraphAway, GraphRefused) as error:
        return [f"{', '.join(names)} may still be in the graph: {error}"]
    return []


def _export(found: list[Stored], format: Format, to: Path | None) -> int:
    from activities.plain import as_json  # noqa: PLC0415 - loads the activities
    from activities.requirements.export import as_csv, as_table  # noqa: PLC0415

    made = [each.requirement for each in found]
    if format == "json":
        text = as_json([_data(each) for each in found])
    else:
        text = as_csv(made) if format == "csv" else as_table(made)
    if to is None:
        print(visible(text), end="")
        return OK
    try:
        to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise Mistake(f"--to {to}: {error.strerror or error}") from None
    note(f"{len(found):,} requirements in {to}")
    return OK


def _alike(words: str, found: list[Stored]) -> list[Stored]:
    """Those that have all of the words first, then those like them."""
    from activities.search.likeness import likeness  # noqa: PLC0415 - loads the activities

    texts = [
        f"{each.requirement.text} {each.requirement.citations[0].quote}".casefold()
        for each in found
    ]
    wanted = words.casefold().split()
    alike = likeness(words, texts, lambda: None, rarity=True)
    whole = [all(word in text for word in wanted) for text in texts]
    ranked = sorted(range(len(found)), key=lambda place: (not whole[place], -alike[place]))
    return [found[place] for place in ranked if whole[place] or alike[place] >= LEAST]


def _named(action: str, names: list[str]) -> list[str]:
    if not names:
        raise Mistake(
            f"requirements {action}: name one or more, such as job-1/REQ-001; "
            "`starter.py requirements` names them"
        )
    return list(dict.fromkeys(names))


def _read(only: dict[str, Any]) -> list[Stored]:
    from activities.stores import requirements as rows  # noqa: PLC0415 - loads the activities
    from activities.stores.engine import Store  # noqa: PLC0415

    return _with_root(lambda root: Store(root).read(lambda c: rows.search(c, **only)))


def _line(each: Stored) -> str:
    made = each.requirement
    text = one_line(made.text, TEXT)
    return f"{made.ref} · {_status(each)} · {made.force} · {made.citations[0].place} · {text}"


def _status(each: Stored) -> str:
    return "withdrawn" if each.withdrawn else each.requirement.status


def _page(each: Stored) -> str:
    made = each.requirement
    lines = [f"{made.ref} · {_status(each)} · {made.force} · {made.type}", "", made.text, ""]
    for citation in made.citations:
        lines += [f"> {citation.quote}", f"  {citation.document}, {citation.place}"]
        lines += [f"  {citation.url}, read {citation.accessed}"] if citation.url else []
    lines += ["", f"Confidence {made.confidence:g}. {made.reasoning}"]
    if each.decided_by:
        double = f" of {made.duplicate_of}" if made.duplicate_of else ""
        lines.append(f"{made.status.capitalize()}{double} by {each.decided_by}: {each.reasons}")
    if each.withdrawn:
        by = f" by {each.withdrawn_by}: {each.withdrawn_why}" if each.withdrawn_why else ""
        lines.append(f"Withdrawn{by or ': it is no longer in its workspace'}")
    return "\n".join(lines)


def _data(each: Stored) -> dict[str, Any]:
    made = each.requirement
    return {
        "ref": made.ref,
        **made.content,
        "job": made.job,
        "decided_by": each.decided_by,
        "reasons": each.reasons,
        "withdrawn": each.withdrawn,
        "withdrawn_by": each.withdrawn_by,
        "withdrawn_why": each.withdrawn_why,
    }


def _with_root(work: Callable[[Root], T]) -> T:
    from activities.checkpoints import Root, RootError  # noqa: PLC0415 - loads libgit2
    from activities.stores.away import StoreAway  # noqa: PLC0415

    try:
        return work(Root.open(workspaces_root(), create=False))
    except (RootError, StoreAway) as error:
        raise Mistake(str(error)) from None


def add_to(app: typer.Typer) -> None:
    """Register this module's command."""
    app.command()(requirements)
