"""The model call: from a checkpoint to the checkpoint with the reply."""

import asyncio
import json
from contextlib import suppress
from functools import partial

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import FilesError, PathRefused, Root
from activities.guards.call_guards import CallGuards
from activities.job.activity_context import open_activity_snapshot
from activities.job.checkpoint_push import BackgroundPush
from activities.job.commit_messages import new_reply_message
from activities.job.job_folder import JobFolderUpdater
from activities.job.snapshot import Snapshot
from activities.model.client import ModelClient, ModelQuery
from activities.model.endpoint import Connect
from activities.model.prices import priced_usage
from activities.model.prompt import count_prompt_tokens, deliverable_choices, job_prompt_body
from activities.model.providers import REHEARSAL, provider_cache_key
from activities.model.reply_classification import classify_reply
from activities.model.reply_message import (
    reply_message,
    reply_provider_data,
    wrap_unusable_arguments,
)
from activities.model.reply_stream import StreamedReply
from activities.model.window import window_remedy
from activities.redaction.credentials import hide_credentials
from activities.runtime import metrics
from activities.runtime.activity_info import activity_job_id, activity_schedule_seconds
from activities.runtime.failures import amended_failure
from activities.steps.root_activity import async_step
from activities.tool_calls.call_refs import describe_call_ref
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_errors import ToolError
from protocol.failure_details import helps_detail
from protocol.requests import ModelReply, ModelRequest
from protocol.short_text import one_line

REFUSED_CHARACTERS = 200
MAX_SUMMARY = 2000
MOST_RATIO = 2.0
"""Largest correction of our count of tokens by the endpoint's."""


class ModelCallActivity:
    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._client = ModelClient(root, connect, in_turn=True)
        self._folders = JobFolderUpdater(root)

    @activity.defn(name="model_call")
    async def model_call(self, request: ModelRequest) -> ModelReply:
        """Ask the model for the next reply and store it, while folder and remote are updated."""
        async with async_step(), self._folders.update_meanwhile(request.commit):
            push = BackgroundPush(self._root, request.remote, request.commit)

            def build_query() -> ModelQuery:
                query = self._build_query(request)
                # Building the query has fetched the checkpoint if it was missing here.
                push.start()
                return query

            try:
                reply = await self._client.request_reply(
                    build_query,
                    partial(self._record_reply, request),
                    compaction_exhausted=request.compaction_exhausted,
                )
            except ApplicationError as error:
                if error.type != "ContextTooLong":
                    raise
                helps = await asyncio.to_thread(
                    lambda: window_remedy(open_activity_snapshot(self._root, request))
                )
                raise amended_failure(error, helps_detail(helps)) from error
            if behind := await push.wait_for_push():
                reply.behind = behind
            return reply

    def _build_query(self, request: ModelRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        return ModelQuery(
            snapshot.config.model_chain(snapshot.state.phase.kind),
            lambda model: job_prompt_body(
                snapshot,
                model,
                request.correction,
                must_call=request.must_call,
                only=request.only,
                cache_key=provider_cache_key(activity_job_id(), snapshot.state.phase.number),
            ),
        )

    def _record_reply(self, request: ModelRequest, streamed: StreamedReply) -> ModelReply:
        snapshot = open_activity_snapshot(self._root, request)
        estimate = count_prompt_tokens(snapshot)
        streamed = _plain_ending(snapshot, streamed)
        snapshot.state.step = request.step
        snapshot.state.token_ratio = _token_ratio(
            streamed, estimate / snapshot.state.token_ratio, snapshot.state.token_ratio
        )
        snapshot.conversation = snapshot.conversation.append_reply(
            reply_message(request.step, streamed),
            reply_provider_data(request.step, streamed),
        )
        for index, (_, raw) in enumerate(streamed.calls):
            if arguments := wrap_unusable_arguments(raw, cut=streamed.finish == "length"):
                snapshot.keep_arguments(index, arguments)
        if streamed.reasoning:
            snapshot.keep_reasoning(streamed.reasoning)
        # The kept reply has the time at which it came, so that a retry makes the same checkpoint.
        timestamp = max(streamed.received, activity_schedule_seconds())
        names = ", ".join(name for name, _ in streamed.calls) or "text"
        reply = ModelReply(
            commit=snapshot.save(snapshot.commit_message(new_reply_message(names)), timestamp),
            at=timestamp,
            finish=streamed.finish[:40],
            calls=[
                describe_call_ref(name, raw, snapshot.config.limits.wait_seconds)
                for name, raw in streamed.calls
            ],
            usage=priced_usage(streamed, snapshot.config, estimate),
        )
        metrics.add_model_call_metrics(snapshot.config.labels, streamed.model, reply.usage)
        guards = CallGuards(self._root, snapshot)
        if refused := guards.judge_reply(streamed.text or ""):
            reply.guard, reply.refusal = refused.name, refused.message
            metrics.add_refusal_metric(snapshot.config.labels, refused.name)
        elif guards.trials:
            reply.trials = guards.trials
        if not streamed.calls:
            reply.context = count_prompt_tokens(snapshot)
            reply.verdict = (
                "refuses"
                if streamed.is_refusal
                else classify_reply(streamed.text, snapshot.config.wording)
            )
            if reply.verdict == "refuses":
                reply.refused_words = one_line(hide_credentials(streamed.text), REFUSED_CHARACTERS)
        if streamed.dropped_calls:
            reply.dropped = streamed.dropped_calls
        if streamed.is_fallback:
            reply.model = streamed.model
        return reply


def _plain_ending(snapshot: Snapshot, streamed: StreamedReply) -> StreamedReply:
    """Return a plain agent's reply as `job_complete`, if it made a file before and now calls no
    tool, or writes only what is there already.
    """
    if not (snapshot.config.plain and snapshot.state.phase.ends_job):
        return streamed
    made = deliverable_choices(snapshot)
    verdict = classify_reply(streamed.text, snapshot.config.wording)
    refuses = not streamed.calls and (streamed.is_refusal or verdict in {"asks", "refuses"})
    writes = (_writes_nothing_new(snapshot, *call) for call in streamed.calls)
    if not made or refuses or not all(writes):
        return streamed
    summary = streamed.text.strip()[:MAX_SUMMARY] or "Done."
    arguments = json.dumps({"summary": summary, "deliverables": made, "confidence": 0.5})
    return streamed.model_copy(
        update={"text": "", "calls": [("job_complete", arguments)], "items": [], "extras": []}
    )


def _writes_nothing_new(snapshot: Snapshot, name: str, raw: str) -> bool:
    """Whether a call writes a file as it is."""
    with suppress(ValueError, FilesError, PathRefused, ToolError):
        arguments = REGISTRY["write_file"].parse(raw)
        data = snapshot.files.read(arguments["path"])
        return name == "write_file" and data == arguments["content"].encode()
    return False


def _token_ratio(streamed: StreamedReply, estimate: float, before: float) -> float:
    """Return the endpoint's tokens for one of ours, only upwards: caches may be left out."""
    is_counted = "usage" not in streamed.missing_parts and not streamed.is_fallback
    if not is_counted or estimate <= 0 or streamed.model == REHEARSAL:
        return before
    return round(min(max(streamed.usage.prompt_tokens / estimate, 1.0), MOST_RATIO), 2)
