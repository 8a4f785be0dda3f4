"""Tools that cite documents and web pages."""

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated

from pydantic import Field

from activities.documents.pages import Page
from activities.documents.quotes import find_quoted_passage
from activities.requirements.citations import (
    Quote,
    QuotedPassage,
    citation_fields,
    find_cited_passage,
    quote_advice,
    record_citation,
    render_citation,
)
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import read_workspace_pages
from activities.web.page_sources import FOLDER, find_page_sources

FIRST_DAY = date(1995, 1, 1)
"""Earliest date accepted for a web page; hardly any existed before."""
citation_tool = partial(
    tool,
    "citations",
    effect="writes",
    phases=("tactical",),
    local=False,
    seconds=60,
    owns=("citations/",),
)
"""Decorator of tools that record a citation."""


@citation_tool()
def cite_document(
    context: ToolContext, path: DocumentPath, page: Annotated[int, Field(ge=1)], quote: Quote
) -> str:
    """Record a citation; refused unless the quote stands on that page.

    White space, line-end hyphens and ligatures do not count. What is recorded is the passage as the
    page has it. Answers with the citation's id, for add_requirement or add_citation.
    """
    passage = find_cited_passage(context, QuotedPassage(path=path, page=page, quote=quote))
    return render_citation(record_citation(context, passage))


@citation_tool(needs="fetch_page")
def cite_web(
    context: ToolContext,
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://\S+$")],
    quote: Quote,
    accessed: Annotated[date, Field(description="The day that fetch_page gave (ISO 8601).")],
) -> str:
    """Record a citation of a web page; refused unless the quote stands in it as it was fetched.

    The page must be in documents/sources/. Answers with the citation's id, for add_requirement.
    """
    # Allow one day more: the agent's day may begin before the server's.
    latest = (datetime.fromtimestamp(context.time_ms / 1000, UTC) + timedelta(days=1)).date()
    if not FIRST_DAY <= accessed <= latest:
        raise ToolError(
            f"accessed: {accessed} cannot be the day, expected {FIRST_DAY} to {latest}. Give the "
            "one that fetch_page gave."
        )
    looked_at = []
    for path in find_page_sources(context.files, url):
        looked_at.append(path)
        pages: list[Page] = read_workspace_pages(context, path)
        for page in pages:
            if passage := find_quoted_passage(page.text, quote):
                fields = citation_fields(path, pages, page, passage)
                fields |= {"url": url, "accessed": accessed.isoformat()}
                return render_citation(record_citation(context, fields))
    if not looked_at:
        raise ToolError(
            f"No page in {FOLDER}/ is from {url}. Fetch it first, and give the address as there."
        )
    raise ToolError(f"That quote is not in {', '.join(looked_at[:5])}: {quote_advice(quote)}.")
