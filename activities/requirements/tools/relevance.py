"""Texts assessed: whether a statement is a requirement, and what a document speaks of."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.requirements.text.mentions import mentions
from activities.requirements.text.relevance import relevance
from activities.toolkit.context import ToolContext
from activities.toolkit.registry import tool
from activities.tools.documents import DocumentPath, document_pages

LISTED = 60


@tool("requirements", effect="reads", phases=("tactical",))
def assess_relevance(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=4000, description="A statement.")],
) -> str:
    """Assess whether a statement is relevant as a requirement, with a figure from 0 to 1.

    By its language of obligation (English and German), the regulations it speaks of and its form:
    an indication, not a verdict. Below the agent's threshold it is called not relevant.
    """
    found = relevance(text)
    threshold = context.config.settings.relevance_threshold
    verdict = "relevant" if found.score >= threshold else "not relevant"
    return (
        f"Relevance {found.score:.2f} by its wording, {verdict} (threshold {threshold:g}): "
        + "; ".join(found.signs)
    )


@tool("requirements", effect="reads", phases=("tactical",), local=False, seconds=180)
def extract_entity_mentions(context: ToolContext, path: DocumentPath) -> str:
    """List what a document speaks of: regulations, abbreviations, defined terms, names.

    Each with how often and on which pages it stands; those that stand most often come first.
    """
    found = mentions(document_pages(context, path))
    if not found:
        return f"No terms in {path}."
    lines = [
        f"{mention.text} · {mention.sort} · {mention.count} · "
        f"p.{', '.join(map(str, mention.pages))}"
        for mention in found[:LISTED]
    ]
    if len(found) > LISTED:
        lines.append(f"[TRUNCATED {len(found) - LISTED} more that stand less often]")
    return "\n".join([f"{len(found)} terms in {path}:", *lines])
