"""The review of a completion: another agent reads in a separate conversation and decides.

One activity is one reply of the reviewer plus the results of its look-ups. The conversation is kept
in the checkpoint (`review/`), so an interrupted review continues. The reviewer can only read, and
only `accept` accepts.
"""

from __future__ import annotations

from functools import partial

from temporalio import activity

from activities.checkpoints import Files, FilesError, PathRefused, Root
from activities.job.activity_context import (
    activity_effect_key,
    activity_job_id,
    activity_schedule_time,
    open_activity_snapshot,
)
from activities.job.conversation import Conversation
from activities.job.snapshot import Snapshot
from activities.job.tool_messages import tool_result_message
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import conversation_prompt_body
from activities.model.providers import provider_cache_key
from activities.model.reply_message import reply_message, reply_provider_data
from activities.model.reply_stream import StreamedReply
from activities.preparation.agent_resolution import resolve_reviewer_tools
from activities.runtime.failures import typed_failures
from activities.runtime.heartbeats import heartbeats
from activities.text.tokens import clip_to_tokens, token_encoding_name
from activities.tool_catalogue import REGISTRY
from activities.toolkit.result_text import truncate_result
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from activities.tools.verdict import read_verdict
from config.schema.agent import AgentConfig, ConfigError
from config.templates import render_template
from protocol import scope_ledger
from protocol.endings import MAX_LOOK_UPS, ReviewReply, ReviewRequest

PART_TOKENS = 6000
RESULT_CHARACTERS = 8000
ERROR = "Error: "
TOO_MANY = f"Not run: at most {MAX_LOOK_UPS} calls of a reply are carried out."
BEFORE = (
    "You sent the job back for this. See whether it was put right, and ask for nothing that "
    "contradicts it."
)
DECIDE = "Read on with a tool, or decide: call accept, or send_back with findings."
LAST_REPLY = "This is your last reply: call accept, or send_back with findings."


class ReviewJobActivity:
    """The `review_job` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._model_client = ModelClient(root, connect)

    @activity.defn(name="review_job")
    async def review_job(self, request: ReviewRequest) -> ReviewReply:
        """Get one reply of the reviewer: look-ups with their results, or the verdict."""
        with typed_failures():
            async with heartbeats():
                return await self._model_client.request_reply(
                    partial(self._review_question, request), partial(self._record_reply, request)
                )

    def _review_question(self, request: ReviewRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        reviewer = _reviewer_config(snapshot)
        conversation = _review_conversation(snapshot, request)
        tools, key = (
            resolve_reviewer_tools(reviewer),
            provider_cache_key(activity_job_id(), "review"),
        )
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
            commit="", at=activity_schedule_time(), usage=priced_usage(streamed, snapshot.config)
        )
        reply.usage.sent_calls = len(streamed.calls)
        verdict, findings = read_verdict(streamed.calls)
        if verdict:
            reply.verdict, reply.findings = verdict, findings
            snapshot.state.review_findings = findings if verdict == "sent back" else ""
            reply.usage.tool_calls = 1
        else:
            results = self._run_look_ups(snapshot, reviewer, conversation, streamed.calls)
            run = results[:MAX_LOOK_UPS]
            reply.usage.tool_calls, reply.usage.refused_calls = len(run), len(results) - len(run)
            reply.usage.failed_calls = sum(text.startswith(ERROR) for text in run)
            conversation = conversation.append(
                *(tool_result_message(number, place, text) for place, text in enumerate(results)),
                *([] if results else [{"role": "user", "content": DECIDE}]),
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
        """Return the results of the reviewer's calls, in order."""
        offered = {entry.name: entry for entry in resolve_reviewer_tools(reviewer)}
        context = ToolContext(
            files=snapshot.files,
            reads=Files.empty(snapshot.checkpoints.store),
            changes=snapshot.changes,
            state=snapshot.state.model_copy(deep=True),
            config=reviewer,
            conversation=conversation,
            history=snapshot.history,
            root=self._root,
            job=activity_job_id(),
            key=activity_effect_key(),
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
    if snapshot.config.reviewer is None:
        raise ConfigError(f"agent {snapshot.config.name}: no reviewer is configured")
    return snapshot.config.reviewer


def _review_conversation(snapshot: Snapshot, request: ReviewRequest) -> Conversation:
    """Return the review so far, with the next message to the reviewer."""
    if request.number:
        conversation = Conversation(snapshot.review)
    else:
        system = render_template(_reviewer_config(snapshot).instructions_template, instructions="")
        conversation = Conversation(Files.empty(snapshot.checkpoints.store)).append(
            {"role": "system", "content": system},
            {"role": "user", "content": review_task(snapshot, request.call)},
        )
    if request.last:
        conversation = conversation.append({"role": "user", "content": LAST_REPLY})
    return conversation


def review_task(snapshot: Snapshot, call: int) -> str:
    """Return the reviewer's task: the job's claim beside its instructions."""
    claim = REGISTRY["job_complete"].parse(snapshot.tool_call(call)["function"]["arguments"])
    ledger = snapshot.state.scope
    parts = {
        "Instructions (instructions.md)": snapshot.read_text("instructions.md"),
        f"Scope ({scope_ledger.scope_ledger_line(ledger)})": _review_bullet_list(
            [f"{item.line} {item.reason}".strip() for item in ledger]
        ),
        "Deliverables": _review_bullet_list(claim["deliverables"]),
        "What the agent says was done": claim["summary"],
        "Its notes": claim["notes"],
        "Its confidence": str(claim["confidence"]),
        "What it lists as unresolved": _review_bullet_list(claim["unresolved"] or []),
    }
    # A reviewer who does not know them may ask for the opposite.
    if findings := snapshot.state.review_findings:
        parts["What you found before"] = f"{BEFORE}\n\n{findings}"
    shown = [
        "# "
        f"{heading}\n\n{clip_to_tokens(text, PART_TOKENS, 'the files hold the rest') or 'nothing'}"
        for heading, text in parts.items()
    ]
    return "\n\n".join(["The agent says that this job is done.", *shown, DECIDE])


def _review_bullet_list(lines: list[str]) -> str:
    return "\n".join(f"- {line}" for line in lines)
