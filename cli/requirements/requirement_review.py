"""A person's word on requirements, and how two versions of a document differ in theirs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from cli.output import OK, UserError, print_json, print_result
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

    def review(root: Root) -> list[str]:
        try:
            return RelationalStore(root).run(
                lambda c: [
                    requirement_review.review_requirement(c, name, action, by, reason)
                    for name in names
                ]
            )
        except StoreRefusedError as refusal:
            raise UserError(f"nothing is changed: {refusal}") from None

    outcomes = dict(zip(names, run_with_root(review), strict=True))
    if json:
        print_json(outcomes)
        return OK
    for name, outcome in outcomes.items():
        print_result(f"{name} is {outcome}")
    return OK


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
