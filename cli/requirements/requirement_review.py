"""A person's word on requirements, and how two versions of a document differ in theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cli.output import OK, UserError, print_json, print_note, print_result
from cli.root_access import run_with_root
from cli.signals.signal_sending import signal_sender_name

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from activities.checkpoints import Root

Review = Literal["accept", "reject", "assign", "withdraw", "restore"]


def review_requirements(action: Review, names: list[str], reason: str, by: str, json: bool) -> int:
    """Change requirements by a person's word. Raises UserError if nothing was changed."""
    from activities.requirements import requirement_withdrawal as withdrawal  # noqa: PLC0415 - loads the activities
    from activities.requirements import validation_claims  # noqa: PLC0415
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from activities.stores.store_errors import StoreRefusedError  # noqa: PLC0415

    if action in ("reject", "withdraw", "restore") and not reason:
        raise UserError(f"requirements {action}: give --reason, which stays in the store")
    sender = signal_sender_name()

    def change_one(connection: Connection, name: str) -> str:
        if action == "withdraw":
            return withdrawal.withdraw_requirement(connection, name, sender, reason)
        if action == "restore":
            return withdrawal.restore_requirement(connection, name, sender, reason)
        return validation_claims.review_requirement(connection, name, action, by or sender, reason)

    done = {"withdraw": "withdrawn", "restore": "restored"}.get(action, "changed")

    def change_all(root: Root) -> tuple[list[str], list[str]]:
        try:
            outcomes = RelationalStore(root).run(
                lambda connection: [change_one(connection, name) for name in names]
            )
        except StoreRefusedError as refusal:
            raise UserError(f"nothing is {done}: {refusal}") from None
        gone = names if action == "reject" else []
        if action == "withdraw":
            each = zip(names, outcomes, strict=True)
            gone = [name for name, was in each if was == "accepted"]
        return outcomes, _follow_in_graph(root, names if action == "accept" else [], gone)

    outcomes, remarks = run_with_root(change_all)
    by_name = dict(zip(names, outcomes, strict=True))
    if json:
        withdrawn = {"withdrawn": names, "remarks": remarks}
        restored = {"restored": by_name}
        print_json({"withdraw": withdrawn, "restore": restored}.get(action, by_name))
        return OK
    for name, outcome in by_name.items():
        said = {"withdraw": "withdrawn", "restore": f"restored: {outcome}"}.get(action, outcome)
        print_result(f"{name} is {said}")
    for remark in remarks:
        print_note(remark)
    return OK


def _follow_in_graph(root: Root, accepted: list[str], gone: list[str]) -> list[str]:
    """Put accepted requirements into the graph and remove others; return remarks if that fails."""
    from activities.requirements.graph import graph_writes, open_graph  # noqa: PLC0415 - loads the activities
    from activities.requirements.graph.cypher import drop_node_cypher, put_node_cypher  # noqa: PLC0415
    from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError  # noqa: PLC0415
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from config.agent_files import load_agent  # noqa: PLC0415

    if not accepted and not gone:
        return []
    schema = load_agent("validator").graph_schema
    kind = graph_writes.REQUIREMENT
    own = {"status": "accepted", "suspect": ""}
    known = {name: value for name, value in own.items() if name in schema.nodes[kind].properties}
    queries = [drop_node_cypher(schema, kind, name) for name in gone]
    for name in accepted:
        stored = graph_writes.stored_properties(RelationalStore(root), name)
        values = stored | known | {"id": name}
        queries.append(put_node_cypher(schema, kind, values, name.rpartition("/")[0]))
    try:
        with open_graph(root, schema) as graph:
            graph.write(*queries)
    except (GraphUnavailableError, GraphQueryError) as error:
        return [f"The graph does not show it of {', '.join([*accepted, *gone])}: {error}"]
    return []


def show_version_difference(names: list[str], *, json: bool) -> int:
    """Show what is unchanged, suspect and new in a job that replaced another."""
    from activities.requirements.versions import version_difference  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415

    if len(names) != 2:
        raise UserError("requirements diff: name two jobs, the earlier and the later one")
    unchanged, suspect, new = run_with_root(
        lambda root: RelationalStore(root).read(lambda c: version_difference(c, *names))
    )
    if json:
        print_json({"unchanged": unchanged, "suspect": suspect, "new": list(new)})
        return OK
    print_result(f"unchanged: {len(unchanged):,}")
    for name, why in suspect.items():
        print_result(f"{name} · {why}")
    for name, text in new.items():
        print_result(f"{name} · new · {text}")
    return OK
