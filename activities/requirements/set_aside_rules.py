"""Rules that set sentences aside, with a reason, so that they need no citation."""

from __future__ import annotations

from typing import Protocol

from pydantic import Field, TypeAdapter, ValidationError

from activities.checkpoints import Files
from activities.documents.pages import parse_page_range
from activities.requirements.requirement_files import InvalidWorkspaceFile
from activities.text.safe_text import as_readable_json
from protocol.data_model import Data

PATH = "requirements/set_aside.json"


class Passage(Protocol):
    """A candidate, an entry or another sentence, as rules select it."""

    @property
    def id(self) -> str: ...
    @property
    def page(self) -> int: ...
    @property
    def section(self) -> str: ...
    @property
    def text(self) -> str: ...
    @property
    def confidence(self) -> float: ...


class SetAsideRule(Data):
    """The sentences of a document that are set aside, and why. All conditions must hold."""

    document: str
    reason: str
    covered_by: str | None = None
    """Id of the requirement that covers them."""
    ids: list[str] = Field(default_factory=list)
    pages: str | None = None
    section: str | None = None
    """Includes its subsections."""
    containing: str | None = None
    below: float | None = None
    """If set, the rule applies only to candidates with less confidence."""

    @property
    def takes_whole_document(self) -> bool:
        """Whether the rule has no condition besides the document."""
        return not (self.ids or self.pages or self.section or self.containing or self.below)

    @property
    def description(self) -> str:
        """One line, such as `documents/a.pdf, pages 2-5: the annex`."""
        parts = [self.document]
        parts += [f"pages {self.pages}"] if self.pages else []
        parts += [f"section {self.section}"] if self.section else []
        parts += [f"containing {self.containing!r}"] if self.containing else []
        parts += [f"confidence below {self.below:g}"] if self.below else []
        parts += [f"{', '.join(self.ids[:5])}{' …' if self.ids[5:] else ''}"] if self.ids else []
        covered = f" (covered by {self.covered_by})" if self.covered_by else ""
        return f"{', '.join(parts)}: {self.reason}{covered}"

    @property
    def takes_places(self) -> bool:
        """Whether the rule takes all that stands in a place, whatever it says."""
        return not (self.ids or self.containing or self.below)

    def sets_aside(self, document: str, candidate: Passage) -> bool:
        """Return whether the rule applies to this sentence."""
        first, last = parse_set_aside_pages(self.pages)
        return (
            document == self.document
            and (not self.ids or candidate.id in self.ids)
            and first <= candidate.page <= last
            and (self.section is None or _is_in_set_aside_section(candidate.section, self.section))
            and (
                self.containing is None
                or " ".join(self.containing.lower().split()) in candidate.text.lower()
            )
            and (self.below is None or candidate.confidence < self.below)
        )


def parse_set_aside_pages(pages: str | None) -> tuple[int, int]:
    """Return first and last page of "3" or "2-5", all pages for None. Raises ValueError."""
    if pages is None:
        return 0, 10_000_000
    return parse_page_range(pages)


def _is_in_set_aside_section(section: str, above: str) -> bool:
    return section == above or section.startswith((f"{above}.", f"{above} "))


_FILE = TypeAdapter(list[SetAsideRule])


def read_set_aside_rules(files: Files) -> list[SetAsideRule]:
    """Return the rules, oldest first. Raises InvalidWorkspaceFile if the file is not in our
    format."""
    if files.entry(PATH) is None:
        return []
    try:
        return _FILE.validate_json(files.read(PATH))
    except ValidationError as error:
        raise InvalidWorkspaceFile(f"{PATH}: {error.errors()[0]['msg']}") from None


def put_rules(files: Files, rules: list[SetAsideRule]) -> Files:
    """Replace the rules in the file."""
    content = [rule.model_dump(exclude_defaults=True) for rule in rules]
    return files.write(PATH, as_readable_json(content).encode())
