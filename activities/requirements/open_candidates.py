"""Which candidates are open: no requirement is from them, and no rule sets them aside."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence

from activities.checkpoints import Files
from activities.checkpoints.object_cache import Cache
from activities.requirements.candidate_list import read_candidates
from activities.requirements.coverage import refuted_rules
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement_files import list_requirement_files
from activities.requirements.set_aside_rules import SetAsideRule, read_set_aside_rules
from activities.requirements.text.candidate_sentences import Candidate

MAX_NEAREST = 3
MAX_CACHED_ORIGINS = 50_000
_NUMBER = re.compile(r"\d{1,9}")
Origin = tuple[str, tuple[str, ...]]
"""The candidate that a requirement is from, and the documents that it cites, in order."""
Candidates = Mapping[str, Mapping[str, Candidate]]
"""Candidates by document and id."""
_origins: Cache[str, Origin] = Cache(MAX_CACHED_ORIGINS, lambda _: 1)


def open_candidate_fault(files: Files, id: str, views: Sequence[DocumentView]) -> str:
    """Return why a new requirement cannot be from this candidate; empty if it can.

    Args:
        files: The workspace.
        id: Of a candidate in the text, or of one that an agent added to the list.
        views: The documents that the requirement cites.

    Raises:
        InvalidWorkspaceFile: The list or the rules cannot be read.
    """
    candidates: dict[str, dict[str, Candidate]] = {
        view.path: {each.id: each for each in view.candidates} for view in views
    }
    if any(view.entry(id) for view in views):
        return ""
    listed_rules = read_set_aside_rules(files)
    refuted = {(view.path, n) for view in views for n in refuted_rules(view, listed_rules)}
    rules = [rule for n, rule in enumerate(listed_rules) if (rule.document, n) not in refuted]
    if not any(id in named for named in candidates.values()):
        for listed in read_candidates(files):
            if listed.document in candidates:
                added = {each.id: each for each in listed.candidates}
                candidates[listed.document] = added | candidates[listed.document]
    fault = f"{', '.join(candidates)} has no candidate {id}"
    for path, named in candidates.items():
        if id in named:
            settled = _settled_candidates(files, path, [id], candidates, rules)
            if id not in settled:
                return ""
            fault = f"{id} of {path} is settled: {settled[id]}"
    return _with_nearest_open(files, id, candidates, rules, fault)


def _settled_candidates(
    files: Files,
    document: str,
    ids: Collection[str],
    candidates: Candidates,
    rules: Sequence[SetAsideRule],
) -> dict[str, str]:
    """Return by what each settled candidate of a document is settled, by id."""
    settled: dict[str, str] = {}
    for rule in rules:
        for id in ids:
            if rule.sets_aside(document, candidates[document][id]):
                settled[id] = f"set aside by the rule {rule.description.rstrip('.')}"
    for requirement, (path, blob) in list_requirement_files(files).items():
        id, cited = _origins.get(blob) or _origins.put(blob, _read_origin(files.read(path)))
        if id in ids and _origin_document(id, cited, candidates) == document:
            settled[id] = f"{requirement} is from it"
    return settled


def _origin_document(id: str, cited: Sequence[str], candidates: Candidates) -> str:
    """Return the first cited document that has the candidate, or may have; ids are per document."""
    return next((path for path in cited if id in candidates.get(path, (id,))), "")


def _read_origin(final: bytes) -> Origin:
    try:
        content = json.loads(final)
        documents = dict.fromkeys(str(each["document"]) for each in content["citations"])
        return str(content["candidate"]), tuple(documents)
    except (ValueError, KeyError, TypeError, RecursionError):
        return "", ()


def _with_nearest_open(
    files: Files, id: str, candidates: Candidates, rules: Sequence[SetAsideRule], fault: str
) -> str:
    """Add the open candidates whose numbers are nearest."""
    open_ids = [
        each
        for path, listed in candidates.items()
        for each in sorted(
            listed.keys()
            - _settled_candidates(files, path, listed.keys(), candidates, rules).keys()
        )
    ]
    nearest = sorted(open_ids, key=lambda each: abs(_id_number(each) - _id_number(id)))
    which = ", ".join(sorted(nearest[:MAX_NEAREST])) or "none"
    return f"{fault}. The nearest that are open: {which}"


def _id_number(id: str) -> int:
    number = _NUMBER.search(id)
    return int(number[0]) if number else 0
