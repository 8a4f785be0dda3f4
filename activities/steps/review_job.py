"""The acceptance review: another agent judges in a separate conversation what was asked for.

One activity is one reply of the reviewer plus the results of its look-ups. The conversation is kept
in the checkpoint (`review/`), so an interrupted review continues. Its verdicts are kept with the
statements; only what it finds unmet, with a quote that is there, sends a job back.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from itertools import chain
from typing import Any

from temporalio import activity

from activities.acceptance.missed_statements import add_missed_statements
from activities.acceptance.reviewer_quotes import checked_verdict
from activities.acceptance.shown_work import (
    PART_TOKENS,
    ShownWork,
    evidence_line,
    shown_work,
    statement_lines,
)
from activities.checkpoints import CheckpointMissing, Files, FilesError, PathRefused
from activities.job.activity_context import open_activity_snapshot
from activities.job.conversation import Conversation
from activities.job.conversation_calls import tool_result_message, truncate_result
from activities.job.deliverables import explained_items
from activities.job.snapshot import Snapshot
from activities.model.client import ModelQuery
from activities.model.prices import priced_usage
from activities.model.prompt import conversation_prompt_body
from activities.model.providers import provider_cache_key
from activities.model.reply_message import reply_message, reply_provider_data
from activities.model.reply_stream import StreamedReply
from activities.preparation.agent_resolution import resolve_reviewer_tools
from activities.runtime.activity_info import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_seconds,
)
from activities.steps.root_activity import ModelActivity, async_step
from activities.text.tokens import clip_to_tokens, token_encoding_name
from activities.tool_catalogue import REGISTRY
from activities.toolkit.job_extensions import EXTENSIONS
from activities.toolkit.path_ownership import work_fingerprint
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.verdict import MAX_FINDINGS, ReadVerdicts, read_verdicts
from config.schema.agent import AgentConfig
from config.templates import render_template
from protocol.contract import numbered_statements
from protocol.endings import MAX_LOOK_UPS, ReviewReply, ReviewRequest
from protocol.evidence import Evidence
from protocol.scope_ledger import Statement
from protocol.short_text import one_line, shorten_to_start

BRIEF_TOKENS = 2500
RESULT_CHARACTERS = 8000
ERROR = "Error: "
TOO_MANY = f"Not run: at most {MAX_LOOK_UPS} calls of a reply are carried out."
DECIDE = "Call judge_statements once, with a verdict for each id above."
READ_OR_DECIDE = "Read on with a tool, or call judge_statements once, with a verdict for each id."
LAST_REPLY = "This is your last reply: call judge_statements, with a verdict for each id."
NOT_JUDGED = "the reviewer gave no verdict that could be read"
OMITTED = "the reviewer left this out"


class ReviewJobActivity(ModelActivity):
    @activity.defn(name="review_job")
    async def review_job(self, request: ReviewRequest) -> ReviewReply:
        async with async_step():
            return await self._model_client.request_reply(
                partial(self._review_question, request), partial(self._record_reply, request)
            )

    def _review_question(self, request: ReviewRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        reviewer = _reviewer_config(snapshot)
        conversation = _review_conversation(snapshot, request)
        key = provider_cache_key(activity_job_id(), "review")
        tools = [
            entry
            for entry in resolve_reviewer_tools(reviewer)
            if entry.group == "verdict" or not request.last
        ]
        return ModelQuery(
            reviewer.model_chain("strategic"),
            lambda model: conversation_prompt_body(model, tools, conversation, key),
        )

    def _record_reply(self, request: ReviewRequest, streamed: StreamedReply) -> ReviewReply:
        snapshot = open_activity_snapshot(self._root, request)
        reviewer = _reviewer_config(snapshot)
        number = request.number + 1
        conversation = _review_conversation(snapshot, request).append_reply(
            reply_message(number, streamed), reply_provider_data(number, streamed)
        )
        reply = ReviewReply(
            commit="", at=activity_schedule_seconds(), usage=priced_usage(streamed, snapshot.config)
        )
        reply.usage.sent_calls = len(streamed.calls)
        read = read_verdicts(streamed.calls, streamed.text)
        if read is not None or request.last:
            unmet = judge_job(snapshot, request, read)
            reply.verdict = "sent back" if unmet else "accepted"
            reply.findings = unmet or (
                shorten_to_start(read.findings, MAX_FINDINGS) if read else ""
            )
            reply.usage.tool_calls = int(bool(streamed.calls))
        else:
            results = self._run_look_ups(snapshot, reviewer, conversation, streamed.calls)
            run = results[:MAX_LOOK_UPS]
            reply.usage.tool_calls, reply.usage.refused_calls = len(run), len(results) - len(run)
            reply.usage.failed_calls = sum(text.startswith(ERROR) for text in run)
            conversation = conversation.append(
                *(tool_result_message(number, place, text) for place, text in enumerate(results)),
                *([] if results else [{"role": "user", "content": READ_OR_DECIDE}]),
            )
        snapshot.review = conversation.files
        reply.context = conversation.count_tokens(
            token_encoding_name(reviewer.model_for("strategic").name)
        )
        story = snapshot.commit_message(f"review {number}: {reply.verdict or 'reads'}")
        reply.commit = snapshot.save(story, reply.at)
        return reply

    def _run_look_ups(
        self,
        snapshot: Snapshot,
        reviewer: AgentConfig,
        conversation: Conversation,
        calls: list[tuple[str, str]],
    ) -> list[str]:
        offered = {entry.name: entry for entry in resolve_reviewer_tools(reviewer)}
        context = replace(
            ToolContext.of(snapshot, self._root, activity_effect_key()),
            reads=Files.empty(snapshot.checkpoints.store),
            config=reviewer,
            conversation=conversation,
        )
        results = []
        for name, raw in calls[:MAX_LOOK_UPS]:
            try:
                if name not in offered:
                    known = ", ".join(offered)
                    raise ToolError(f"There is no tool {name!r}. The tools are: {known}.")
                text = offered[name].run(context, offered[name].load_arguments(raw))
            except (ToolError, FilesError, PathRefused) as problem:
                text = f"{ERROR}{problem}"
            results.append(truncate_result(text, RESULT_CHARACTERS))
        return results + [f"{ERROR}{TOO_MANY}"] * len(calls[MAX_LOOK_UPS:])


def _reviewer_config(snapshot: Snapshot) -> AgentConfig:
    assert snapshot.config.reviewer is not None, "only an agent with a reviewer is reviewed"
    return snapshot.config.reviewer


def _review_conversation(snapshot: Snapshot, request: ReviewRequest) -> Conversation:
    if request.number:
        conversation = Conversation(snapshot.review)
    else:
        system = render_template(_reviewer_config(snapshot).instructions_template, instructions="")
        conversation = Conversation(Files.empty(snapshot.checkpoints.store)).append(
            {"role": "system", "content": system},
            {"role": "user", "content": review_task(snapshot, request)},
        )
    if request.last and request.number:
        conversation = conversation.append({"role": "user", "content": LAST_REPLY})
    return conversation


def review_task(snapshot: Snapshot, request: ReviewRequest) -> str:
    claim, state = _claimed_result(snapshot, request.call), snapshot.state
    ledger, seen = state.scope, state.phase_seen
    if seen.calls:
        # The end completes what is open by the work of this phase.
        here = Evidence.of("on the spot", state.phase.number, seen, snapshot.commit)
        ledger = [
            item.model_copy(update={"evidence": here})
            if item.status == "open" and item.evidence is None
            else item
            for item in ledger
        ]
    work = _work_to_review(snapshot, request, claim)
    parts = {
        "Statements": statement_lines(ledger),
        "Listed as not done": clip_to_tokens(
            "\n".join(f"- {line}" for line in claim["unresolved"]),
            PART_TOKENS,
            "the rest is not shown",
        ),
        "The brief (instructions.md)": clip_to_tokens(
            snapshot.read_text("instructions.md"), BRIEF_TOKENS, "the rest is not shown"
        ),
        "The work: what was changed" if work.is_diff else "The work": work.text,
        "What the system counted": clip_to_tokens(
            "\n".join(_counted_lines(snapshot)), PART_TOKENS, "the rest is not shown"
        ),
    }
    shown = [f"# {heading}\n\n{text}" for heading, text in parts.items() if text]
    return "\n\n".join([*shown, DECIDE if request.last else READ_OR_DECIDE])


def judge_job(snapshot: Snapshot, request: ReviewRequest, read: ReadVerdicts | None) -> str:
    """Keep the verdicts in the ledger, their quotes checked, and return why the job may not end.

    Returns:
        The unmet statements with the findings, bounded; empty if there is none, except for those
        that the job itself names as not done.
    """
    claim, state = _claimed_result(snapshot, request.call), snapshot.state
    work = _work_to_review(snapshot, request, claim).quoted
    scope = [item for item in state.scope if not item.is_step]
    admitted = explained_items(scope, claim["unresolved"])
    verdicts = read.verdicts if read else {}
    silent = Statement(text="", finding=OMITTED if verdicts else NOT_JUDGED)
    said = {id_: verdicts.get(id_, silent) for id_, _, _ in numbered_statements(state.scope)}
    missed = [*(read.added if read else ()), *(v for id_, v in verdicts.items() if id_ not in said)]
    rows = [(given, False) for given in said.values()]
    for place, added in add_missed_statements(state.scope, work.brief, missed):
        rows.insert(place, (added, True))
    unmet, judged = [], dict[str, list[Statement]]()
    for (id_, item, statement), (given, is_new) in zip(
        numbered_statements(state.scope), rows, strict=True
    ):
        checked = checked_verdict(statement, evidence_line(item.evidence), work, given)
        judged.setdefault(item.id, []).append(checked)
        # What the agent wrote of an item before is no answer to what the review adds to it.
        left_out = item.status == "dropped" or (item.id in admitted and not is_new)
        if checked.verdict == "unmet" and not left_out:
            unmet.append(f"{id_} {one_line(checked.text, 100)!r}: {one_line(checked.finding, 300)}")
    for item in state.scope:
        item.statements = judged.get(item.id, item.statements)
    state.judged = work_fingerprint(snapshot)
    also = [read.findings] if unmet and read and read.findings else []
    return shorten_to_start("\n".join(f"- {each}" for each in [*unmet, *also]), MAX_FINDINGS)


def _work_to_review(snapshot: Snapshot, request: ReviewRequest, claim: dict[str, Any]) -> ShownWork:
    try:
        start = Snapshot.load(snapshot.checkpoints, request.since) if request.since else None
    except CheckpointMissing:
        start = None
    work = shown_work(snapshot, claim["deliverables"], claim["summary"], start)
    work.quoted.others = chain(work.quoted.others, _counted_lines(snapshot))
    return work


def _counted_lines(snapshot: Snapshot) -> Iterator[str]:
    """Yield what extensions counted, since a reviewer is not shown the documents that were read."""
    for extension in EXTENSIONS:
        yield from extension.completion_notes(snapshot)


def _claimed_result(snapshot: Snapshot, call: int) -> dict[str, Any]:
    claim = REGISTRY["job_complete"].parse(snapshot.tool_call(call)["function"]["arguments"])
    return {
        "summary": claim["summary"],
        "deliverables": claim["deliverables"],
        "unresolved": [entry for entry in claim["unresolved"] or [] if isinstance(entry, str)],
    }
