"""Citations: quotes that the system has verified at the place the agent gives."""

from typing import Annotated

from pydantic import Field

from activities.documents.pages import DocumentError, Page, find_page
from activities.documents.quotes import (
    find_quoted_passage,
    is_short_quote,
    nearest_quoted_passage,
    pages_with_quote,
)
from activities.requirements.requirement import MAX_SECTION, MAX_TEXT, Citation
from activities.requirements.text.statements import statements_of
from activities.text.safe_text import as_readable_json
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path, read_workspace_pages
from protocol.data_model import Data
from protocol.short_text import one_line

MAX_REFUSED = 5
"""Number of refused quotes that are shown in full."""
FIRST_CHARACTERS = 60
"""Characters shown of a recorded passage."""
Quote = Annotated[str, Field(min_length=1, max_length=4000, description="The exact words.")]


class QuotedPassage(Data):
    """Words to cite, and their place."""

    path: DocumentPath
    page: int = Field(ge=1, description="Number of the page, as extract_document_text counts.")
    quote: Quote


def find_cited_passage(context: ToolContext, quoted: QuotedPassage) -> dict[str, str | int]:
    """Return a citation's fields, except its id, for a quote in a document.

    Raises:
        ToolError: The quote is not on that page; the message shows the nearest passage.
    """
    pages = read_workspace_pages(context, quoted.path)
    try:
        page = find_page(pages, quoted.page)
    except DocumentError as error:
        raise ToolError(f"{quoted.path}: {error}") from None
    passage = find_quoted_passage(page.text, quoted.quote)
    if passage is None:
        where = f"on page {quoted.page} of {quoted.path}"
        raise ToolError(f"That quote is not {where}. {_citation_location_hint(pages, quoted)}")
    # The canonical path: "documents/./a.pdf" would count as another document.
    return citation_fields(
        canonical_document_path(context.files, quoted.path), pages, page, passage
    )


def record_citation(context: ToolContext, passage: dict[str, str | int]) -> Citation:
    """Write a citation under the next number."""
    has_citations = context.files.entry("citations") is not None
    number = len(context.files.children("citations")) + 1 if has_citations else 1
    citation = Citation.model_validate({"id": f"CIT-{number:04d}", **passage})
    text = as_readable_json(citation.model_dump(exclude_none=True))
    context.files = context.files.write(f"citations/{citation.id}.json", text.encode())
    return citation


def render_citation(citation: Citation) -> str:
    """Render a citation on one line: id, place, first words."""
    source = f" ({citation.url})" if citation.url else ""
    words = one_line(citation.quote, FIRST_CHARACTERS)
    return f"citation {citation.id}: {citation.document}, {citation.place}{source}: “{words}”"


def citation_fields(
    document: str, pages: list[Page], page: Page, passage: str
) -> dict[str, str | int]:
    if len(passage) > MAX_TEXT:
        raise ToolError(f"The passage has {len(passage):,} characters; quote less of it.")
    fields: dict[str, str | int] = {"document": document, "page": page.number}
    if page.label:
        fields["label"] = page.label
    statements = statements_of(pages)
    if section := statements.section_of_passage(page, passage):
        fields["section"] = section[:MAX_SECTION]
    if number := statements.source_id_of_passage(page, passage):
        fields["source_id"] = number[:MAX_SECTION]
    return fields | {"quote": passage}


def _citation_location_hint(pages: list[Page], quoted: QuotedPassage) -> str:
    """Return where the quote is instead, or the passage nearest to it."""
    if others := pages_with_quote(pages, quoted.quote):
        return f"It stands on page {', '.join(map(str, others[:10]))}."
    if is_short_quote(quoted.quote):
        return f"It stands on no page: {quote_advice(quoted.quote)}."
    named_page = [page for page in pages if page.number == quoted.page]
    if near := nearest_quoted_passage(named_page, quoted.quote) or nearest_quoted_passage(
        pages, quoted.quote
    ):
        number, passage = near
        return (
            f"It stands on no page. Nearest, on page {number}: “{passage}”. Quote what stands "
            "there; a sentence that goes on on the next page takes two quotes, one for each page."
        )
    return f"It stands on no page, and no passage is like it: {quote_advice(quoted.quote)}."


def quote_advice(quote: str) -> str:
    if is_short_quote(quote):
        return "words that short must be a whole line or table cell; quote more of the sentence"
    return "quote the exact words"


def read_recorded_citation(context: ToolContext, name: str) -> Citation:
    """Read the citation that `record_citation` recorded under the name."""
    path = f"citations/{name}.json"
    if "/" in name or context.files.entry(path) is None:
        raise ToolError(f"There is no citation {name}. Give its words in quotes instead.")
    return Citation.model_validate_json(context.files.read(path))


def record_all_citations(
    context: ToolContext, quotes: list[QuotedPassage] | None, citations: list[str] | None
) -> list[Citation]:
    """Return the named citations and those of the quotes, recorded only if all are found."""
    cited = [read_recorded_citation(context, name) for name in citations or []]
    passages, refused = [], []
    for number, quoted in enumerate(quotes or [], 1):
        try:
            passages.append(find_cited_passage(context, quoted))
        except ToolError as error:
            refused.append(f"Quote {number}: {error}")
    if refused:
        more = len(refused) - MAX_REFUSED
        shown = [*refused[:MAX_REFUSED], *([f"and {more} more"] if more > 0 else [])]
        # The first line is what notices and later answers show of a failure.
        raise ToolError("\n".join([*shown, "Nothing was written."]))
    cited += [record_citation(context, passage) for passage in passages]
    if not cited:
        raise ToolError("Nothing is cited: give quotes=[{path, page, quote}].")
    return cited
