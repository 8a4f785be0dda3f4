"""Tools that assess a statement's relevance and list a document's terms."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from activities.requirements.text.mentions import find_mentions
from activities.requirements.text.relevance import judge_relevance
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import read_workspace_pages

MAX_LISTED = 60


@tool("requirements", effect="reads", phases=("tactical",))
def assess_relevance(
    context: ToolContext,
    text: Annotated[str, Field(min_length=1, max_length=4000, description="A statement.")],
) -> str:
    """Assess whether a statement is relevant as a requirement, with a figure from 0 to 1.

    By its language of obligation (English and German), the regulations it speaks of and its form:
    an indication, not a verdict. Below the agent's threshold it is called not relevant.
    """
    result = judge_relevance(text)
    threshold = context.config.settings.relevance_threshold
    verdict = "relevant" if result.score >= threshold else "not relevant"
    return (
        f"Relevance {result.score:.2f} by its wording, {verdict} (threshold {threshold:g}): "
        + "; ".join(result.signs)
    )


@tool("requirements", effect="reads", phases=("tactical",), local=False, seconds=180)
def extract_entity_mentions(context: ToolContext, path: DocumentPath) -> str:
    """List what a document speaks of: regulations, abbreviations, defined terms, names.

    Each with how often and on which pages it stands; those that stand most often come first.
    """
    terms = find_mentions(read_workspace_pages(context, path))
    if not terms:
        return f"No terms in {path}."
    lines = [
        f"{mention.text} · {mention.kind} · {mention.count} · "
        f"p.{', '.join(map(str, mention.pages))}"
        for mention in terms[:MAX_LISTED]
    ]
    if len(terms) > MAX_LISTED:
        lines.append(f"[TRUNCATED {len(terms) - MAX_LISTED} more that stand less often]")
    return "\n".join([f"{len(terms)} terms in {path}:", *lines])
