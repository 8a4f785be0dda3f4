"""Builds the contract of a job from its ledger, its review and what it lists as unresolved."""

from collections.abc import Sequence

from activities.job.deliverables import explained_items
from activities.job.snapshot import Snapshot
from activities.job.statement_checks import statement_problems
from activities.toolkit.path_ownership import work_fingerprint
from protocol.contract import MAX_ROWS, Contract, ContractRow, numbered_statements
from protocol.evidence import Evidence
from protocol.scope_ledger import ScopeItem, Statement
from protocol.short_text import one_line

TEXT_CHARACTERS = 200
MAX_ROWS_BYTES = 200_000
"""Most bytes of a result's rows: the result must fit into one payload."""
NAMES = 4


def job_contract(snapshot: Snapshot, unresolved: Sequence[str]) -> Contract:
    """Return what the job owes and how each statement stands; verdicts count for judged work."""
    state = snapshot.state
    judged = bool(state.judged) and state.judged == work_fingerprint(snapshot)
    explained = explained_items([item for item in state.scope if not item.is_step], unresolved)
    rows = []
    for id_, item, statement in numbered_statements(state.scope):
        row = ContractRow(
            id=id_,
            item=item.id,
            statement=one_line(statement.text, TEXT_CHARACTERS),
            place=statement.place,
            status=item.status,
            **_evidence_fields(item.evidence),
        )
        if item.status == "dropped":
            row.reason = one_line(item.reason, TEXT_CHARACTERS)
        elif item.id in explained:
            row.status = "unresolved"
            about = (each for each in unresolved if item.id in explained_items([item], [each]))
            row.reason = one_line(next(about), TEXT_CHARACTERS)
        _add_verdict(row, statement if judged else Statement(text=statement.text))
        _add_code_findings(row, snapshot, item, statement)
        rows.append(row)
    met = sum(row.status == "completed" and row.verdict == "met" for row in rows)
    return Contract(rows=_bounded_rows(rows), statements=len(rows), met=met)


def _bounded_rows(rows: list[ContractRow]) -> list[ContractRow]:
    sizes = [len(row.model_dump_json().encode()) for row in rows]
    if len(rows) <= MAX_ROWS and sum(sizes) <= MAX_ROWS_BYTES:
        return rows
    rows_within, total = [], 0
    for row, size in sorted(zip(rows, sizes, strict=True), key=lambda each: each[0].is_accepted)[
        :MAX_ROWS
    ]:
        total += size
        if total > MAX_ROWS_BYTES:
            break
        rows_within.append(row)
    return rows_within


def _evidence_fields(evidence: Evidence | None) -> dict[str, object]:
    if evidence is None:
        return {}
    return {
        "phase": evidence.phase,
        "todo": evidence.todo,
        "files": evidence.files[-NAMES:],
        "checks": evidence.checks[-NAMES:],
        "claim": one_line(evidence.claim, TEXT_CHARACTERS),
    }


def _add_verdict(row: ContractRow, statement: Statement) -> None:
    if statement.verdict:
        row.verdict = statement.verdict
        row.quote = one_line(statement.quote, TEXT_CHARACTERS)
        row.finding = one_line(statement.finding, TEXT_CHARACTERS)


def _add_code_findings(
    row: ContractRow, snapshot: Snapshot, item: ScopeItem, statement: Statement
) -> None:
    """Add what code finds amiss: a statement that is amiss is not met, whoever says so."""
    alone = item.model_copy(update={"statements": [statement]})
    if problems := statement_problems(snapshot.files, alone):
        row.verdict = "unmet" if row.verdict == "met" else row.verdict
        problem_text = f"code finds: {'; '.join(problems)}"
        row.finding = one_line(
            "; ".join(filter(None, [problem_text, row.finding])), TEXT_CHARACTERS
        )
