"""Rules that set sentences aside, with a reason, so that they need no citation."""

from pydantic import Field, TypeAdapter

from activities.checkpoints import Files
from activities.documents.pages import PageRanges
from activities.requirements.requirement_files import read_workspace_list
from activities.requirements.text.candidate_sentences import Candidate
from activities.requirements.text.numbering import NumberedEntry
from activities.text.safe_text import as_readable_json
from protocol.data_model import Data

PATH = "requirements/set_aside.json"


Passage = Candidate | NumberedEntry


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
        return (
            document == self.document
            and (not self.ids or candidate.id in self.ids)
            and (self.pages is None or candidate.page in PageRanges.parse(self.pages))
            and (self.section is None or _is_in_set_aside_section(candidate.section, self.section))
            and (
                self.containing is None
                or " ".join(self.containing.lower().split()) in candidate.text.lower()
            )
            and (self.below is None or candidate.confidence < self.below)
        )


def _is_in_set_aside_section(section: str, above: str) -> bool:
    return section == above or section.startswith((f"{above}.", f"{above} "))


_FILE = TypeAdapter(list[SetAsideRule])


def read_set_aside_rules(files: Files) -> list[SetAsideRule]:
    """Return the rules, oldest first. Raises InvalidWorkspaceFile if the file is not in our
    format."""
    return read_workspace_list(files, PATH, _FILE) or []


def put_rules(files: Files, rules: list[SetAsideRule]) -> Files:
    content = [rule.model_dump(exclude_defaults=True) for rule in rules]
    return files.write(PATH, as_readable_json(content).encode())
