"""Relevance of a statement as a requirement, by its wording."""

import re
from dataclasses import dataclass

from activities.requirements.text.imperatives import find_imperative
from activities.text.indicators import Modality, shipped_indicators

_WEIGHT: dict[Modality, float] = {
    "prohibition": 0.8,
    "obligation": 0.8,
    "recommendation": 0.6,
    "permission": 0.45,
}
_NAMES: dict[Modality, str] = {
    "prohibition": "forbids",
    "obligation": "obliges",
    "recommendation": "recommends",
    "permission": "permits",
}
NO_DEMAND = 0.2
_MEASURE = re.compile(r"\d")
_ASIDE = re.compile(
    r"^\s*(?:for (?:example|instance)|e\.\s?g\.|note:|background|zum beispiel|z\.\s?b\.|"
    r"beispielsweise|hinweis:|hintergrund)|\b(?:is defined as|means the|im sinne dieses)\b",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class Relevance:
    """A score from 0 to 1, and the signs for and against."""

    score: float
    signs: list[str]


def judge_relevance(text: str, lead_in: str = "") -> Relevance:
    """Judge a statement by its modal words, the regulations it names, and its form.

    Args:
        lead_in: For an item the words before the list, with which it is judged.
    """
    hits = shipped_indicators().find(text)
    demands = [hit for hit in hits if hit.modality]
    score, signs = NO_DEMAND, ["no word that obliges, forbids, recommends or permits"]
    if demands:
        best = max(demands, key=lambda hit: _WEIGHT[hit.modality or "permission"])
        modality = best.modality or "permission"
        score, signs = _WEIGHT[modality], [f"{_NAMES[modality]} ({best.words})"]
    elif order := find_imperative(text, item=True):
        score = _WEIGHT[order.modality]
        signs = [f"{_NAMES[order.modality]} by its form ({order.words})"]
    if lead_in and score < (with_lead := judge_relevance(f"{lead_in.rstrip(':')} {text}")).score:
        return Relevance(with_lead.score, [*with_lead.signs, "with the words before its list"])
    if regulations := sorted({hit.regulation for hit in hits if hit.regulation}):
        score += 0.1
        signs.append(f"speaks of {', '.join(regulations)}")
    if _MEASURE.search(text):
        score += 0.05
        signs.append("has a figure that can be tested")
    if text.rstrip().endswith("?"):
        score -= 0.3
        signs.append("is a question")
    if len(text.split()) < 5 and (demands or score == NO_DEMAND):
        score -= 0.2
        signs.append("is no whole statement")
    if _ASIDE.search(text):
        score -= 0.3
        signs.append("reads like an example, a note or a definition")
    return Relevance(round(min(0.99, max(0.01, score)), 2), signs)
