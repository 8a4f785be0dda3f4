"""Citations: words that the system found itself where the agent says they are."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Annotated

from pydantic import Field

from activities.documents import (
    DocumentError,
    Page,
    is_short,
    nearest_passage,
    page_of,
    pages_with_quote,
    passage_of,
)
from activities.requirements.requirement import MAX_SECTION, MAX_TEXT, Citation
from activities.requirements.text.statements import statements_of
from activities.text.plain import as_json
from activities.toolkit.context import ToolContext
from activities.toolkit.errors import ToolError
from activities.toolkit.registry import tool
from activities.tools.documents import DocumentPath, document_of, document_pages
from activities.web import FOLDER, sources_from
from protocol.state import Data
from protocol.text import one_line

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
FIRST_WORDS = 60
"""Characters of a passage that are told of one that was recorded."""


class Quoted(Data):
    """Words to be cited, and where they stand."""

    path: DocumentPath
    page: int = Field(ge=1, description="Number of the page, as extract_document_text counts.")
    quote: Quote


@citing()
def cite_document(
    context: ToolContext,
    path: DocumentPath,
    page: Annotated[int, Field(ge=1)],
    quote: Quote,
) -> str:
    """Record a citation; refused unless the quote stands on that page.

    White space, line-end hyphens and ligatures do not count. What is recorded is the passage as the
    page has it. Answers with the citation's id, for add_requirement or add_citation.
    """
    passage = find_passage(context, Quoted(path=path, page=page, quote=quote))
    return render_citation(record_citation(context, passage))


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
        for page in pages:
            if passage := passage_of(page.text, quote):
                found = _passage(path, pages, page, passage)
                found |= {"url": url, "accessed": accessed.isoformat()}
                return render_citation(record_citation(context, found))
    if not looked_at:
        raise ToolError(
            f"No page in {FOLDER}/ is from {url}. Fetch it first, and give the address as there."
        )
    raise ToolError(f"That quote is not in {', '.join(looked_at[:5])}: {_wanted(quote)}.")


def find_passage(context: ToolContext, quoted: Quoted) -> dict[str, str | int]:
    """What a citation of these words says, but for its id.

    Raises:
        ToolError: they do not stand there; with the passage that is nearest to them.
    """
    found = document_pages(context, quoted.path)
    try:
        page = page_of(found, quoted.page)
    except DocumentError as error:
        raise ToolError(f"{quoted.path}: {error}") from None
    passage = passage_of(page.text, quoted.quote)
    if passage is None:
        where = f"on page {quoted.page} of {quoted.path}"
        raise ToolError(f"That quote is not {where}. {_elsewhere(found, quoted)}")
    # As it is named elsewhere: "documents/./a.pdf" would pass for another document.
    return _passage(document_of(context, quoted.path), found, page, passage)


def record_citation(context: ToolContext, passage: dict[str, str | int]) -> Citation:
    """Write a citation down under the next number."""
    there = context.files.entry("citations") is not None
    number = len(context.files.children("citations")) + 1 if there else 1
    made = Citation.model_validate({"id": f"CIT-{number:04d}", **passage})
    text = as_json(made.model_dump(exclude_none=True))
    context.files = context.files.write(f"citations/{made.id}.json", text.encode())
    return made


def render_citation(made: Citation) -> str:
    """A citation in a line: id, place, first words."""
    source = f" ({made.url})" if made.url else ""
    words = one_line(made.quote, FIRST_WORDS)
    return f"citation {made.id}: {made.document}, {made.place}{source}: “{words}”"


def _passage(document: str, pages: list[Page], page: Page, passage: str) -> dict[str, str | int]:
    if len(passage) > MAX_TEXT:
        raise ToolError(f"The passage has {len(passage):,} characters; quote less of it.")
    found: dict[str, str | int] = {"document": document, "page": page.number}
    if page.label:
        found["label"] = page.label
    if section := statements_of(pages).section(page, passage):
        found["section"] = section[:MAX_SECTION]
    return found | {"quote": passage}


def _elsewhere(pages: list[Page], quoted: Quoted) -> str:
    """Where the words stand instead, or what is most like them."""
    if others := pages_with_quote(pages, quoted.quote):
        return f"It stands on page {', '.join(map(str, others[:10]))}."
    if is_short(quoted.quote):
        return f"It stands on no page: {_wanted(quoted.quote)}."
    own = [page for page in pages if page.number == quoted.page]
    if near := nearest_passage(own, quoted.quote) or nearest_passage(pages, quoted.quote):
        number, passage = near
        return (
            f"It stands on no page. Nearest, on page {number}: “{passage}”. Quote what stands "
            "there; a sentence that goes on on the next page takes two quotes, one for each page."
        )
    return f"It stands on no page, and no passage is like it: {_wanted(quoted.quote)}."


def _wanted(quote: str) -> str:
    if is_short(quote):
        return "words that short must be a whole line or table cell; quote more of the sentence"
    return "quote the exact words"
