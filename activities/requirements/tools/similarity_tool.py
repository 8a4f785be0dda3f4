"""The tool that finds similar requirements in the store and this workspace."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from activities.requirements.requirement import normalized_words
from activities.requirements.requirement_files import readable_requirements
from activities.requirements.requirement_store import ComparableRequirement, list_live_requirements
from activities.requirements.text.meaning import compare_statements
from activities.search.embedding import Embedder, EmbeddingsFailed, choose_embedder
from activities.search.text_likeness import compute_text_likeness
from activities.stores.relational_store import RelationalStore
from activities.stores.store_errors import StoreUnavailableError
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext

MAX_LISTED = 20
TEXT = 300


@tool("requirements", effect="outside", looks=True, phases=("tactical",), local=False, seconds=120)
def find_similar_requirements(
    context: ToolContext,
    text: Annotated[str, Field(min_length=10, max_length=4000, description="A statement.")],
    threshold: Annotated[
        float | None, Field(ge=0, le=1, description="Least likeness, from 0 to 1.")
    ] = None,
) -> str:
    """Find requirements like this text, in this workspace and in the store of all jobs.

    The most alike come first, with their likeness and what they differ in: numbers, units, force,
    negation, other words. Only those without any difference are called duplicates. Requirements of
    this job are named REQ-001, others job/REQ-001. What this job has taken itself is left out.
    """
    settings = context.config.settings
    least = settings.similar_threshold if threshold is None else threshold
    candidates, remark = list_comparable_requirements(context)
    # Leave out the requirement that this job has to judge.
    words = normalized_words(text)
    candidates = [
        each
        for each in candidates
        if each.taken_by != context.job or normalized_words(each.text) != words
    ]
    matches, by, failed = rank_like_requirements(context, text, candidates, least)
    lines = [describe_like(each) for each in matches[:MAX_LISTED]]
    if by is None and len(matches) < len(candidates):
        # Without this remark "0 of 9" would be read as: no other requirement says this.
        remark += "\nOne that says it in other words may not be among them: threshold=0 shows more."
    if len(matches) > MAX_LISTED:
        lines.append(f"[TRUNCATED {len(matches) - MAX_LISTED} more; raise the threshold]")
    how = "by their words" if by is None else "by what they mean"
    head = (
        f"{len(matches)} of {len(candidates)} requirements are alike {how} (threshold {least:.2f})"
    )
    return "\n".join([head + (":" if lines else "."), *lines]) + failed + remark


@dataclass(frozen=True)
class LikeRequirement:
    """A requirement that is like a statement."""

    likeness: float
    label: str
    """`similar`, `duplicate`, or what the two differ in."""
    other: ComparableRequirement


def list_comparable_requirements(context: ToolContext) -> tuple[list[ComparableRequirement], str]:
    """Return the requirements of this workspace and the store, and a remark if that is away."""
    similar = [
        ComparableRequirement(id, each.status, each.text)
        for id, each in readable_requirements(context.files)
    ]
    try:
        stored = RelationalStore(context.root).read(list_live_requirements)
    except StoreUnavailableError as error:
        return similar, f"\nOnly this workspace was searched: {error}"
    return similar + [each for each in stored if each.ref.rpartition("/")[0] != context.job], ""


def rank_like_requirements(
    context: ToolContext, text: str, candidates: Sequence[ComparableRequirement], least: float
) -> tuple[list[LikeRequirement], Embedder | None, str]:
    """Return those that are like the text, most alike first; by what; and a remark on a failure."""
    statements = [each.text for each in candidates]
    failed = ""
    try:
        by = choose_embedder(context.config.embeddings) if context.config.embeddings else None
        alike = compute_text_likeness(text, statements, by, rarity=True)
    except EmbeddingsFailed as error:
        failed = f"\nCompared by words alone: {error}"
        by, alike = None, compute_text_likeness(text, statements, rarity=True)
    threshold = context.config.settings.duplicate_threshold
    ranked = sorted(
        (each for each in zip(alike, candidates, strict=True) if each[0] >= least),
        key=lambda each: (-each[0], each[1].ref),
    )
    matches = [
        LikeRequirement(
            value, similarity_label(text, other.text, value, threshold, by_meaning=bool(by)), other
        )
        for value, other in ranked
    ]
    return matches, by, failed


def describe_like(like: LikeRequirement) -> str:
    """Describe it on one line, as the rehearsal model and others read it."""
    words = " ".join(like.other.text.split())[:TEXT]
    return f"{like.likeness:.2f} · {like.label} · {like.other.ref} · {like.other.status} · {words}"


def similarity_label(
    text: str, other: str, likeness: float, threshold: float, *, by_meaning: bool
) -> str:
    """Say what a like statement is: likeness alone makes no duplicate."""
    if likeness < threshold:
        return "similar"
    difference = compare_statements(text, other)
    if by_meaning and not difference.hard and difference.is_paraphrase:
        return "duplicate"
    return str(difference or "duplicate")
