"""Renders stored requirements for the terminal and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.short_text import one_line

if TYPE_CHECKING:
    from activities.requirements.requirement_store import StoredRequirement

DOCUMENTS = "documents/"
"""Folder of a job's documents, which a list leaves out."""
TEXT = 100
"""Characters of a requirement's text in a list."""


def requirement_line(entry: StoredRequirement) -> str:
    requirement = entry.requirement
    text = one_line(requirement.text, TEXT)
    first = requirement.citations[0]
    return (
        f"{requirement.ref} · {_requirement_status_word(entry)} · {requirement.force} · "
        f"{first.document.removeprefix(DOCUMENTS)}, {first.place} · {text}"
    )


def _requirement_status_word(entry: StoredRequirement) -> str:
    if entry.withdrawn:
        return "withdrawn"
    return f"{entry.requirement.status}{', suspect' if entry.suspect else ''}"


def requirement_page(entry: StoredRequirement) -> str:
    from activities.requirements.text.meaning import wording_remarks  # noqa: PLC0415 - loads the activities

    requirement = entry.requirement
    lines = [
        f"{requirement.ref} · {_requirement_status_word(entry)} · {requirement.force} · "
        f"{requirement.type}",
        "",
        requirement.text,
        "",
    ]
    for citation in requirement.citations:
        lines += [f"> {citation.quote}", f"  {citation.document}, {citation.place}"]
        lines += [f"  {citation.url}, read {citation.accessed}"] if citation.url else []
    lines += ["", f"Confidence {requirement.confidence:g}. {requirement.reasoning}"]
    lines += [f"Suspect: {entry.suspect}"] if entry.suspect else []
    fields = {
        "Number": requirement.source_id,
        "Rationale": requirement.rationale,
        "Verification": requirement.verification,
        "Priority": requirement.priority,
        "Owner": entry.owner,
        "Wording": "; ".join(wording_remarks(requirement.text)),
    }
    lines += [f"{name}: {value}" for name, value in fields.items() if value]
    if entry.decided_by:
        double = f" of {requirement.duplicate_of}" if requirement.duplicate_of else ""
        lines.append(
            f"{requirement.status.capitalize()}{double} by {entry.decided_by}: {entry.reasons}"
        )
    if entry.withdrawn_why:
        lines.append(f"Withdrawn by {entry.withdrawn_by}: {entry.withdrawn_why}")
    elif entry.withdrawn:
        lines.append("Withdrawn: it is no longer in its workspace")
    if entry.restored_why:
        lines.append(f"Restored by {entry.restored_by}: {entry.restored_why}")
    return "\n".join(lines)


def requirement_json(entry: StoredRequirement) -> dict[str, Any]:
    requirement = entry.requirement
    details = {name: value for name, value in vars(entry).items() if name != "requirement"}
    own = {"ref": requirement.ref, "job": requirement.job, "source_id": requirement.source_id}
    return {**own, **requirement.content, **details}
