"""A new version of a document, and the document with its requirements marked."""

from activities.documents.pages import Page
from activities.requirements.marked_document import mark_document
from activities.requirements.requirement import Requirement
from activities.requirements.requirement_store import StoredRequirement
from activities.requirements.versions import compare_versions

SAME = "Every invoice must be kept for ten years."
CHANGED = "An entry must not be changed in such a way that its content is lost."
GONE = "The business year must not be longer than twelve months."
OPEN = "The balance must be signed."


def stored(number: int, quote: str) -> StoredRequirement:
    citation = {"id": f"CIT-{number:04}", "document": "documents/a.md", "page": 1, "quote": quote}
    requirement = Requirement.model_validate(
        {
            "id": f"REQ-{number:03}", "job": "first", "text": quote, "type": "legal",
            "source": "documents/a.md", "citations": [citation], "reasoning": "So.",
            "confidence": 1, "status": "accepted",
        }
    )  # fmt: skip
    return StoredRequirement(requirement, "Yes.", "judge", False, None, None, None, None)


def test_what_stands_is_kept_and_the_rest_is_suspect() -> None:
    new = f"Preface.\n\n{SAME}\n\n{CHANGED.replace('changed', 'later changed')}\n\nIt must be new."
    entries = [stored(1, SAME), stored(2, CHANGED), stored(3, GONE)]
    version = compare_versions(entries, {"documents/b.md": [Page(1, new)]}, "first")
    assert [(each.ref, each.status) for each in version.kept] == [("first/REQ-001", "accepted")]
    assert version.kept[0].citations[0].document == "documents/b.md"
    assert [(each.ref, each.change) for each in version.changed] == [
        ("first/REQ-002", "changed"),
        ("first/REQ-003", "gone"),
    ]
    assert "later changed" in version.changed[0].now


def test_a_document_is_shown_with_its_requirements() -> None:
    pages = [Page(1, f"<b> & more.\n\n{SAME}\n\n{OPEN}")]
    page = mark_document("documents/a.md", pages, [stored(1, SAME)], "It is complete.")
    assert "&lt;b&gt; &amp; more." in page
    assert f'<mark>{SAME}<a id="p-first-REQ-001" href="#r-first-REQ-001">REQ-001</a></mark>' in page
    assert f"<span class=open>{OPEN}</span>" in page
    assert "It is complete." in page
