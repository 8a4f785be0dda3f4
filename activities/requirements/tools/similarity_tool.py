"""The tool that finds similar requirements in the store and this workspace."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.requirements import requirement_store as rows
from activities.requirements.requirement_files import readable_requirement_files
from activities.search import EmbeddingsFailed, choose_embedder
from activities.search.text_likeness import compute_text_likeness
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreUnavailableError
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext

MAX_LISTED = 20
TEXT = 300


@tool("requirements", effect="outside", phases=("tactical",), local=False, seconds=120)
def find_similar_requirements(
    context: ToolContext,
    text: Annotated[str, Field(min_length=10, max_length=4000, description="A statement.")],
    threshold: Annotated[
        float | None, Field(ge=0, le=1, description="Least likeness, from 0 to 1.")
    ] = None,
) -> str:
    """Find requirements like this text, in this workspace and in the store of all jobs.

    The most alike come first, with their likeness; those that are duplicates by the agent's
    settings are called so. Requirements of this job are named REQ-001, others job/REQ-001. The one
    that this job has taken is left out.
    """
    settings = context.config.settings
    least = settings.similar_threshold if threshold is None else threshold
    candidates = list(readable_requirement_files(context.files))
    remark = ""
    try:
        stored = RelationalStore(context.root).read(rows.list_live_requirements)
        candidates += [
            (each.ref, each.status, each.text)
            for each in stored
            # Leave out the requirement this job has to judge.
            if each.ref.rpartition("/")[0] != context.job and each.taken_by != context.job
        ]
    except StoreUnavailableError as error:
        remark = f"\nOnly this workspace was searched: {error}"
    statement = [statement for _, _, statement in candidates]
    try:
        by = choose_embedder(context.config.embeddings) if context.config.embeddings else None
        alike = compute_text_likeness(text, statement, context.heartbeat, by, rarity=True)
    except EmbeddingsFailed as error:
        remark += f"\nCompared by words alone: {error}"
        by, alike = None, compute_text_likeness(text, statement, context.heartbeat, rarity=True)
    matches = sorted(
        ((value, *entry) for value, entry in zip(alike, candidates, strict=True) if value >= least),
        key=lambda entry: (-entry[0], entry[1]),
    )
    lines = [
        f"{value:.2f} · {'duplicate' if value >= settings.duplicate_threshold else 'similar'} · "
        f"{ref} · {status} · {' '.join(statement.split())[:TEXT]}"
        for value, ref, status, statement in matches[:MAX_LISTED]
    ]
    if by is None and len(matches) < len(candidates):
        # Without this remark "0 of 9" would be read as: no other requirement says this.
        remark += "\nOne that says it in other words may not be among them: threshold=0 shows more."
    if len(matches) > MAX_LISTED:
        lines.append(f"[TRUNCATED {len(matches) - MAX_LISTED} more; raise the threshold]")
    how = "by their words" if by is None else "by what they mean"
    head = (
        f"{len(matches)} of {len(candidates)} requirements are alike {how} (threshold {least:.2f})"
    )
    return "\n".join([head + (":" if lines else "."), *lines]) + remark
