"""A person's word on requirements, and how two versions of a document differ in theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cli.output import OK, UserError, print_json, print_note, print_result
from cli.root_access import run_with_root

if TYPE_CHECKING:
    from activities.checkpoints import Root

Review = Literal["accept", "reject", "assign"]


def review_requirements(action: Review, names: list[str], reason: str, by: str, json: bool) -> int:
    """Accept, reject or assign requirements. Raises UserError if nothing was changed."""
    from activities.requirements import requirement_review  # noqa: PLC0415 - loads the activities
    from activities.stores.relational_store import RelationalStore  # noqa: PLC0415
    from activities.stores.store_errors import StoreRefusedError  # noqa: PLC0415

    if action == "reject" and not reason:
        raise UserError("requirements reject: give --reason, which stays in the store")

    def review(root: Root) -> tuple[list[str], list[str]]:
        try:
            outcomes = RelationalStore(root).run(
                lambda c: [
                    requirement_review.review_requirement(c, name, action, by, reason)
                    for name in names
                ]
            )
        except StoreRefusedError as refusal:
            raise UserError(f"nothing is changed: {refusal}") from None
        accepted, rejected = (names if action == each else [] for each in ("accept", "reject"))
        return outcomes, follow_in_graph(root, accepted, rejected)

    outcomes, remarks = run_with_root(review)
    if json:
        print_json(dict(zip(names, outcomes, strict=True)))
        return OK
    for name, outcome in zip(names, outcomes, strict=True):
        print_result(f"{name} is {outcome}")
    for remark in remarks:
        print_note(remark)
    return OK


def follow_in_graph(root: Root, accepted: list[str], gone: list[str]) -> list[str]:
    """Put accepted requirements into the graph and remove others; return remarks if that fails."""
    from activities.requirements.graph import graph_writes  # noqa: PLC0415 - loads the activities
    from activities.requirements.graph.cypher import drop_node_cypher, put_node_cypher  # noqa: PLC0415
    from activities.requirements.graph.interface import GraphQueryError, GraphUnavailableError  # noqa: PLC0415
    from activities.requirements.graph.selection import open_graph  # noqa: PLC0415
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
    found = run_with_root(
        lambda root: RelationalStore(root).read(lambda c: version_difference(c, *names))
    )
    if json:
        print_json(
            {
                "unchanged": found.unchanged,
                "suspect": dict(found.suspect),
                "new": [each.ref for each in found.new],
            }
        )
        return OK
    print_result(f"unchanged: {len(found.unchanged):,}")
    for name, why in found.suspect:
        print_result(f"{name} · {why}")
    for each in found.new:
        print_result(f"{each.ref} · new · {each.text}")
    return OK
