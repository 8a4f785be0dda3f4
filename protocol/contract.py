"""The contract of a job: each statement with what was done for it and what the review found.

`activities.acceptance.contract_rows` builds them; results, reports and people's views show them.
"""

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from protocol.data_model import Data
from protocol.scope_ledger import ScopeItem, Statement
from protocol.short_text import count_noun, first_few

MAX_ROWS = 200
"""Most rows that a result has; those that are not met come before those that are."""
MOST_NAMED = 10
Acceptance = Literal["met", "unmet", "cannot tell", "not reviewed"]


class ContractRow(Data):
    """One statement of the contract."""

    id: str
    """`B3`; `B3.2` for the second statement of an item that groups several."""
    item: str
    statement: str
    place: str = ""
    status: Literal["completed", "dropped", "unresolved", "open"] = "open"
    reason: str = ""
    phase: int = 0
    todo: int = 0
    files: list[str] = Field(default_factory=list)
    checks: list[str] = Field(default_factory=list)
    claim: str = ""
    """What the agent says that it looked at, if the item rests on nothing else."""
    verdict: Acceptance = "not reviewed"
    quote: str = ""
    finding: str = ""

    @property
    def is_accepted(self) -> bool:
        """Whether it is done and, if there was a review, met."""
        return self.status == "completed" and self.verdict in ("met", "not reviewed")

    @property
    def word(self) -> str:
        if self.status == "completed":
            return f"{self.verdict}, claimed only" if self.claim else self.verdict
        if self.status == "dropped" and self.verdict != "not reviewed":
            return f"dropped, {self.verdict}"
        return self.status

    @property
    def details(self) -> list[str]:
        claimed = [f"the agent says: {self.claim}"] if self.claim else []
        return [*self.files, *self.checks, *claimed]


class Contract(Data):
    """The rows of a contract, bounded, with the counts of all of them."""

    rows: list[ContractRow] = Field(default_factory=list)
    statements: int = 0
    met: int = 0
    """Statements that the review found met, and code not amiss."""


def numbered_statements(scope: Sequence[ScopeItem]) -> list[tuple[str, ScopeItem, Statement]]:
    return [
        (item.id if len(stated) == 1 else f"{item.id}.{number}", item, statement)
        for item in scope
        if not item.is_step
        for stated in [item.statements or [Statement(text=item.text)]]
        for number, statement in enumerate(stated, 1)
    ]


def contract_line(statements: int, met: int, rows: Sequence[ContractRow]) -> str:
    """`11 of 12 statements met`, or that nothing was reviewed; empty without statements."""
    if not statements:
        return ""
    if all(row.verdict == "not reviewed" for row in rows):
        return f"{count_noun(statements, 'statement')}, not reviewed"
    dropped = sum(row.status == "dropped" for row in rows)
    left_out = f", {dropped} left out" if dropped else ""
    return f"{met} of {count_noun(statements, 'statement')} met{left_out}"


def not_accepted_line(rows: Sequence[ContractRow]) -> str:
    """`not accepted: B3 (cannot tell), B7 (dropped)`; empty if everything is accepted."""
    named = [f"{row.id} ({row.word})" for row in rows if not row.is_accepted]
    return f"not accepted: {first_few(named, MOST_NAMED)}" if named else ""
