"""Citations: words that the system found itself where the agent says they are."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated

from pydantic import Field

from activities.documents import (
    DocumentError,
    Page,
    contains_quote,
    is_short,
    page_of,
    pages_with_quote,
)
from activities.plain import as_json
from activities.requirements.requirement import Citation
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError
from activities.toolkit.registry import tool
from activities.tools.documents import DocumentPath, document_of, document_pages
from activities.web import FOLDER, sources_from

Quote = Annotated[str, Field(min_length=1, max_length=4000, description="The exact words.")]
FIRST_DAY = date(1995, 1, 1)
"""Of a citation of the web, which there was hardly any of before."""
citing = partial(
    tool,
    "citations",
    effect="writes",
    phases=("tactical",),
    local=False,
    seconds=60,
    owns=("citations/",),
)
"""A tool that records a citation."""


@citing()
def cite_document(
    context: ToolContext,
    path: DocumentPath,
    page: Annotated[int, Field(ge=1)],
    quote: Quote,
) -> str:
    """Record a citation; refused unless the quote stands on that page.

    Answers with the citation's id, for add_requirement.
    """
    found = document_pages(context, path)
    try:
        text = page_of(found, page).text
    except DocumentError as error:
        raise ToolError(f"{path}: {error}") from None
    if not contains_quote(text, quote):
        others = pages_with_quote(found, quote)
        where = (
            f"It stands on page {', '.join(map(str, others[:10]))}."
            if others
            else f"It stands on no page: {_wanted(quote)}. A sentence that goes on on the next "
            "page takes two citations, one for each page."
        )
        raise ToolError(f"That quote is not on page {page} of {path}. {where}")
    # As it is named elsewhere: "documents/./a.pdf" would pass for another document.
    return _keep(context, document=document_of(context, path), page=page, quote=quote)


@citing(needs="fetch_page")
def cite_web(
    context: ToolContext,
    url: Annotated[str, Field(max_length=2000, pattern=r"^https?://\S+$")],
    quote: Quote,
    accessed: Annotated[
        date, Field(description="The day that fetch_page told, such as 2026-03-01.")
    ],
) -> str:
    """Record a citation of a web page; refused unless the quote stands in it as it was fetched.

    The page must be in documents/sources/. Answers with the citation's id, for add_requirement.
    """
    # A day more, since the agent's may have begun where the server's has not.
    latest = (datetime.fromtimestamp(context.at / 1000, UTC) + timedelta(days=1)).date()
    if not FIRST_DAY <= accessed <= latest:
        raise ToolError(
            f"accessed: {accessed} cannot be the day, expected {FIRST_DAY} to {latest}. Give the "
            "one that fetch_page told."
        )
    looked_at = []
    for path in sources_from(context.files, url):
        context.heartbeat()
        looked_at.append(path)
        pages: list[Page] = document_pages(context, path)
        if where := pages_with_quote(pages, quote):
            details = {"url": url, "accessed": accessed.isoformat()}
            return _keep(context, document=path, page=where[0], quote=quote, **details)
    if not looked_at:
        raise ToolError(
            f"No page in {FOLDER}/ is from {url}. Fetch it first, and give the address as there."
        )
    raise ToolError(f"That quote is not in {', '.join(looked_at[:5])}: {_wanted(quote)}.")


def _wanted(quote: str) -> str:
    if is_short(quote):
        return "words that short must be a whole line or table cell; quote more of the sentence"
    return "quote the exact words"


def _keep(context: ToolContext, **details: str | int) -> str:
    """Write a citation down under the next number."""
    there = context.files.entry("citations") is not None
    number = len(context.files.children("citations")) + 1 if there else 1
    made = Citation.model_validate({"id": f"CIT-{number:04d}", **details})
    text = as_json(made.model_dump(exclude_none=True))
    context.files = context.files.write(f"citations/{made.id}.json", text.encode())
    source = f" ({made.url})" if made.url else ""
    return f"citation {made.id}: {made.document}, page {made.page}{source}"
