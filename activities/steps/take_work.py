"""The `take_work` activity: examines a job's work before it counts.

A job hands back a summary of bounded length. The job's model shortens one that is too long; if no
model is available or the project's limits leave no room, it is clipped. Shortened texts are cached
in the project by the hash of the original, so nothing is summarised twice.
"""

import asyncio
import hashlib

from temporalio import activity

from activities.job.activity_context import check_activity_root
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.model.client import ModelQuery
from activities.model.prices import highest_price, priced_usage
from activities.model.reply_stream import StreamedReply
from activities.projects.project_remote import open_remote_project, push_project
from activities.projects.project_repository import project_repository_path
from activities.projects.work_examination import WorkSummary, examine_work, load_finished_work
from activities.runtime.activity_info import activity_job_id
from activities.steps.root_activity import ModelActivity, async_step
from activities.text import tokens
from protocol.project_requests import ChildWork, TakeWorkRequest
from protocol.usage import Usage

MAX_PROMPT_CHARACTERS = 100_000


class TakeWorkActivity(ModelActivity):
    @activity.defn(name="take_work")
    async def take_work(self, request: TakeWorkRequest) -> ChildWork:
        async with async_step():
            check_activity_root(self._root, request.root, request.remote)
            work, summary = await asyncio.to_thread(self._inspect_work, request)
            if not summary.fits_room:
                summary, work.usage = await self._shorten_summary(request, summary)
            work.report, work.added = summary.clipped_text, summary.tail
            return work

    def _inspect_work(self, request: TakeWorkRequest) -> tuple[ChildWork, WorkSummary]:
        needed = (request.head, request.handoff.inputs.commit)
        repository = open_remote_project(self._root, activity_job_id(), request.remote, *needed)
        result = examine_work(self._root, request, repository)
        push_project(repository, activity_job_id(), request.remote)
        return result

    async def _shorten_summary(
        self, request: TakeWorkRequest, summary: WorkSummary
    ) -> tuple[WorkSummary, Usage]:
        most = request.tokens // 2  # half is reserved for the system's own tail
        named = hashlib.sha256(f"{most}\n{summary.text}".encode()).hexdigest()
        place = (project_repository_path(self._root, activity_job_id()), f"summary-{named}")
        prompt = f"In at most {most:,} tokens:\n\n{summary.text[:MAX_PROMPT_CHARACTERS]}"

        def summary_question() -> ModelQuery:
            return ModelQuery.with_own_prompt(
                self._load_snapshot(request), "handoff_summary", prompt
            )

        def use_reply(reply: StreamedReply) -> tuple[WorkSummary, Usage]:
            text = reply.text.strip() or summary.text
            return WorkSummary(text, summary.room, summary.tail), priced_usage(
                reply, self._load_snapshot(request).config
            )

        is_cached = ResultCache(place[0]).find(place[1]) is not None
        if not is_cached and not await asyncio.to_thread(self._has_room, request, prompt):
            return summary, Usage()
        known = is_cached and activity.info().attempt == 1
        short, usage = await self._model_client.request_summary(
            summary_question, use_reply, reply_key=place
        )
        # A cached summary was paid for by an earlier job.
        return short, Usage() if known else usage

    def _has_room(self, request: TakeWorkRequest, prompt: str) -> bool:
        config = self._load_snapshot(request).config
        sent = tokens.count_tokens(config.templates["handoff_summary"] + prompt)
        received = max(model.max_output_tokens for model in config.models)
        price = highest_price(config)
        cost = price.max_cost(sent, received) if price else 0
        needed = {"model_calls": 1, "tokens": sent + received, "cost": cost}
        return all(needed[key] <= remaining for key, remaining in request.room.items())

    def _load_snapshot(self, request: TakeWorkRequest) -> Snapshot:
        return load_finished_work(self._root, request)
