"""Remarks on how a requirement is worded; they never refuse it."""

from __future__ import annotations

import re

from activities.requirements.text.imperatives import find_order
from activities.requirements.text.meaning import StatementFacts
from activities.text.indicators import shipped_indicators

_VAGUE = re.compile(
    r"(?i)\b(?:appropriate(?:ly)?|adequate(?:ly)?|reasonabl[ey]|sufficient(?:ly)?|timely|etc|"
    r"as far as possible|where possible|if necessary|user.friendly|easy|fast|and/or|suitable|"
    r"angemessen\w*|geeignet\w*|hinreichend\w*|ausreichend\w*|m\u00f6glichst|zeitnah\w*|usw|"
    r"gegebenenfalls|bei bedarf|unverz\u00fcglich)\b"
)
_LIMITS = re.compile(
    r"(?i)\b(?:within|at least|at most|minimum|maximum|innerhalb|mindestens|h\u00f6chstens)\b"
)


def wording_remarks(text: str) -> list[str]:
    """Return what makes it hard to test: several duties, vague words, no actor or measure."""
    remarks = []
    duties = [hit for hit in shipped_indicators().find(text) if hit.modality]
    if len(duties) > 1:
        remarks.append(f"{len(duties)} words of obligation in one statement")
    if vague := dict.fromkeys(match[0].lower() for match in _VAGUE.finditer(text)):
        remarks.append(f"vague: {', '.join(vague)}")
    facts = StatementFacts(text)
    if not facts.actor and find_order(text, item=True) is None:
        remarks.append("no actor is named")
    if _LIMITS.search(text) and not facts.measures:
        remarks.append("a limit without a measure")
    return remarks
