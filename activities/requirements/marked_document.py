"""A document's own text as one HTML file, with each requirement marked and linked.

What a requirement cites is marked; binding sentences that none cites are underlined, and the rest
is grey. The file needs nothing else: no script, no font, no other file.
"""

from collections.abc import Sequence
from html import escape
from itertools import pairwise

from activities.documents.pages import Page
from activities.documents.quotes import FoldedPage
from activities.requirements.requirement import place_word
from activities.requirements.requirement_store import StoredRequirement
from activities.requirements.text.statements import statements_of

_STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--pale:#666;--ground:#fff;--mark:#fff2b3;--line:#ddd}
@media (prefers-color-scheme:dark){:root{--ink:#eee;--pale:#a3a3a3;--ground:#161616;
--mark:#574c12;--line:#333}}
*{box-sizing:border-box}body{margin:0;background:var(--ground);color:var(--ink);
font:16px/1.5 system-ui,sans-serif}
header,main{max-width:84rem;margin:auto;padding:1rem}
main{display:grid;grid-template-columns:minmax(0,3fr) minmax(0,2fr);gap:2rem}
section p{white-space:pre-wrap;overflow-wrap:anywhere;color:var(--pale);margin:0 0 1.5rem}
h1{font-size:1.4rem;overflow-wrap:anywhere}h2{font-size:1rem;border-bottom:1px solid var(--line)}
mark{background:var(--mark);color:var(--ink)}
mark a{font-size:.75rem;margin-left:.25em;white-space:nowrap}
a{color:inherit}.open{text-decoration:underline dotted;color:var(--ink)}
aside ol{list-style:none;padding:0}aside li{border-bottom:1px solid var(--line);padding:.5rem 0;
overflow-wrap:anywhere}small{color:var(--pale)}:target{outline:2px solid currentColor}
@media (max-width:50rem){main{display:block}}
"""


def mark_document(
    name: str, pages: Sequence[Page], entries: Sequence[StoredRequirement], statement: str
) -> str:
    """Return the HTML of a document with its requirements.

    Args:
        name: The document's path, as citations name it.
        entries: Requirements that cite it, in order.
        statement: What is complete of it and on which ground; may be empty.
    """
    linked: set[str] = set()
    sections = [_mark_page(name, page, pages, entries, linked) for page in pages]
    listed = [_list_entry(name, entry) for entry in entries]
    title = escape(name.rpartition("/")[2])
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title>'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<style>{_STYLE}</style></head><body><header><h1>{title}</h1>"
        f"<p>{escape(statement)}</p>"
        "<p><mark>marked</mark>: a requirement cites it; <span class=open>underlined</span>: it "
        "binds and no requirement cites it; grey: other text.</p></header>"
        f"<main><div>{''.join(sections)}</div><aside><h2>Requirements</h2>"
        f"<ol>{''.join(listed)}</ol></aside></main></body></html>\n"
    )


def _anchor(ref: str) -> str:
    return escape(ref.replace("/", "-"), quote=True)


def _own_anchor(ref: str, linked: set[str]) -> str:
    if ref in linked:
        return ""
    linked.add(ref)
    return f' id="p-{_anchor(ref)}"'


def _list_entry(name: str, entry: StoredRequirement) -> str:
    requirement, ref = entry.requirement, entry.requirement.ref
    places = "; ".join(
        escape(each.place) for each in requirement.citations if each.document == name
    )
    number = f" · {escape(requirement.source_id)}" if requirement.source_id else ""
    state = f"{requirement.status}{', suspect' if entry.suspect else ''}"
    return (
        f'<li id="r-{_anchor(ref)}"><a href="#p-{_anchor(ref)}"><b>{escape(ref)}</b></a>{number} · '
        f"{requirement.force} · {state}<br>{escape(requirement.text)}<br>"
        f"<small>{places}</small></li>"
    )


def _mark_page(
    name: str,
    page: Page,
    pages: Sequence[Page],
    entries: Sequence[StoredRequirement],
    linked: set[str],
) -> str:
    folded = FoldedPage(page.text)
    marks: list[tuple[int, int, str]] = []
    for entry in entries:
        for citation in entry.requirement.citations:
            if citation.document == name and citation.page == page.number:
                marks += [
                    (*place, entry.requirement.ref)
                    for place in folded.find_places(citation.quote)[:1]
                ]
    open_ = [
        (*place, "")
        for candidate in statements_of(pages).candidates
        if candidate.page == page.number and candidate.binds
        for place in folded.find_places(candidate.text)[:1]
        if not any(start < place[1] and place[0] < end for start, end, _ in marks)
    ]
    label = f" ({escape(page.label)})" if page.label else ""
    return (
        f'<section id="page-{page.number}"><h2>{place_word(name).capitalize()} {page.number}{label}'
        f"</h2><p>{_mark_text(page.text, marks + open_, linked)}</p></section>"
    )


def _mark_text(text: str, marks: Sequence[tuple[int, int, str]], linked: set[str]) -> str:
    """Return the text with its marks; of marks that overlap, each part has all of its links.

    The list leads to the first passage of a requirement; `linked` has those that were met.
    """
    bounds = sorted({0, len(text), *(bound for start, end, _ in marks for bound in (start, end))})
    parts = []
    for start, end in pairwise(bounds):
        here = [mark for mark in marks if mark[0] <= start and end <= mark[1]]
        words = escape(text[start:end])
        refs = [ref for _, _, ref in here if ref]
        begins = [ref for first, _, ref in here if ref and first == start]
        if refs:
            links = "".join(
                f'<a{_own_anchor(ref, linked)} href="#r-{_anchor(ref)}">'
                f"{escape(ref.rpartition('/')[2])}</a>"
                for ref in begins
            )
            parts.append(f"<mark>{words}{links}</mark>")
        else:
            parts.append(f"<span class=open>{words}</span>" if here else words)
    return "".join(parts)
