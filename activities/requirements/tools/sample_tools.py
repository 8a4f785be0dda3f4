"""The sample of the sentences that nothing cites: it is drawn, judged and published."""

from collections import Counter
from collections.abc import Mapping
from typing import Annotated

from pydantic import Field

from activities.requirements import candidate_list
from activities.requirements.completeness import PATH as DECISIONS
from activities.requirements.completeness import SampledSentence, put_decisions, read_decisions
from activities.requirements.coverage import untouched_sentences
from activities.requirements.document_view import DocumentView
from activities.requirements.requirement import normalized_words
from activities.requirements.requirement_survey import RequirementSurvey, survey_requirements
from activities.requirements.text.candidate_sentences import MAX_TEXT, Candidate
from activities.requirements.text.sentences import cut_sentence
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.document_tools import DocumentPath
from activities.tools.workspace_documents import canonical_document_path
from protocol.data_model import Data
from protocol.short_text import one_line, shorten_list

SAMPLE_TEXT = 400


class SampleMark(Data):
    """Whether a sampled sentence is a requirement."""

    id: str = Field(max_length=20, description="Such as S-001.")
    is_requirement: bool
    reason: str = Field(min_length=3, max_length=300)


@tool("requirements", effect="writes", local=False, seconds=180, owns=(DECISIONS,))
def judge_sample(
    context: ToolContext,
    path: DocumentPath,
    marks: Annotated[list[SampleMark], Field(min_length=1, max_length=500)],
) -> str:
    """Say of each sampled sentence of a document whether it is a requirement, with the reason.

    A requirement has then to be cited, and so have the sentences like it, or they are set aside; a
    new sample follows. What the sample does not show bounds what may have been missed.
    """
    path = canonical_document_path(context.files, path)
    now = survey(context)
    if path not in now.views:
        raise ToolError(f"{path}: {now.badly_read.get(path, 'is no input document')}")
    view = now.views[path]
    unread = {each.id: each for r in view.decisions.rounds for each in r.unread}
    if unknown := {mark.id for mark in marks} - unread.keys():
        raise ToolError(
            f"{path} has no unread sentence {', '.join(sorted(unknown)[:5])}; those are: "
            f"{', '.join(shorten_list(list(unread))) or 'none'}."
        )
    contradictory = _contradictory_marks(view, marks, unread)
    for mark in marks:
        if mark.id not in contradictory:
            unread[mark.id].is_requirement = mark.is_requirement
            unread[mark.id].reason = mark.reason
    if all(mark.is_requirement is False for mark in marks):
        _draw_sample(context, now, path)
    else:
        _put_decisions(context, now)
    refused = [
        f"Not recorded: {', '.join(contradictory)}. They bind by their words or form, and the "
        "reason given is that of others: say of each what shows that it is none."
    ]
    state = sample_state(survey(context), path)
    return "\n".join([*(refused if contradictory else []), *state])


def _contradictory_marks(
    view: DocumentView, marks: list[SampleMark], unread: Mapping[str, SampledSentence]
) -> list[str]:
    """Return the marks by which what binds is no requirement, for the same reason as others."""
    binding = view.binding
    reasons = Counter(normalized_words(mark.reason) for mark in marks)
    reasons.update(
        normalized_words(each.reason)
        for each_round in view.decisions.rounds
        for each in each_round.drawn
        if each.is_requirement is False
    )
    return [
        mark.id
        for mark in marks
        if not mark.is_requirement
        and reasons[normalized_words(mark.reason)] > 1
        and _key(unread[mark.id]) in binding
    ]


def _key(sentence: SampledSentence) -> tuple[int, str]:
    return sentence.page, cut_sentence(sentence.text, MAX_TEXT)


def survey(context: ToolContext) -> RequirementSurvey:
    """Read the requirements of a call's workspace, and how far they cover its documents."""
    return survey_requirements(context.files, context.job, context.config.settings)


def draw_samples(context: ToolContext, now: RequirementSurvey) -> None:
    for each in now.coverage.documents:
        if not each.out_of_scope:
            _draw_sample(context, now, each.path)


def _draw_sample(context: ToolContext, now: RequirementSurvey, path: str) -> None:
    """Draw what the sample of a document lacks, and keep the decisions."""
    view = now.views[path]
    settings = context.config.settings
    untouched = untouched_sentences(view, [*now.requirements, *now.kept], now.rules)
    coverage = next(each for each in now.coverage.documents if each.path == path)
    view.decisions.next_sample(
        untouched, settings.sample_size, settings.may_be_missed, coverage.found_count
    )
    _put_decisions(context, now)


def _put_decisions(context: ToolContext, now: RequirementSurvey) -> None:
    decided = {path: view.decisions for path, view in now.views.items()}
    context.files = put_decisions(context.files, read_decisions(context.files) | decided)


def sample_state(now: RequirementSurvey, path: str) -> list[str]:
    """Describe what the sample of a document says and which of its sentences are to be read."""
    coverage = next(each for each in now.coverage.documents if each.path == path)
    rounds = now.views[path].decisions.rounds
    lines = [now.statements[[each.path for each in now.coverage.documents].index(path)]]
    if rounds and rounds[-1].hits:
        lines.append(
            "Cite the requirements found, and what is like them, or set it aside; then "
            "collect_requirements draws anew:"
        )
        lines += shorten_list([uncovered_candidate_line(path, each) for each in coverage.uncovered])
    lines += [f"Undecided numbers: {each.description}." for each in coverage.undecided]
    if rounds and rounds[-1].unread:
        lines += [f"To be read, for judge_sample(path={path!r}, marks):"]
        binding = now.views[path].binding
        lines += [
            f"- {each.id} · p.{each.page} · {one_line(each.text, SAMPLE_TEXT)}"
            + (" [binds, and was set aside: a reason of its own]" if _key(each) in binding else "")
            for each in rounds[-1].unread
        ]
    return lines


def sample_lines(now: RequirementSurvey) -> list[str]:
    """Describe every sentence of the samples, for a person to judge."""
    return [
        f"{path}, page {each.page}: {one_line(each.text, SAMPLE_TEXT)} - "
        + (
            "not read"
            if each.is_requirement is None
            else f"{'a' if each.is_requirement else 'no'} requirement: {each.reason}"
        )
        for path, view in now.views.items()
        for each_round in view.decisions.rounds
        for each in each_round.drawn
    ]


def uncovered_candidate_line(document: str, candidate: Candidate, most: int | None = 60) -> str:
    """Describe a candidate on one line, with its document."""
    return f"- {document}: {candidate_list.describe_candidate(candidate, most)}"
