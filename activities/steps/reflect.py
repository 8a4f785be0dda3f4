"""The `reflect` activity: draws a lesson from a failed attempt for the next one.

It asks two questions, so that the wish to fix things does not bias the analysis: which assumption
failed, and then what would prevent it; only the second if a project's findings say what failed. An
answer that names nothing of the job is asked for once more. The result is an entry of
`experiences.md`, shown in the first message of strategic phases.
"""

import asyncio
import re
from collections.abc import Callable
from functools import partial
from typing import Literal

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.job.activity_context import open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.model.client import ModelQuery
from activities.model.prices import priced_usages
from activities.model.prompt import count_prompt_tokens
from activities.model.reply_stream import StreamedReply
from activities.phases.archive import archive_prompt
from activities.phases.orientation import last_archive_page, orientation_experience_part
from activities.redaction.secrets import redact
from activities.runtime.activity_info import activity_schedule_seconds
from activities.runtime.failures import is_failure_retried
from activities.steps.root_activity import ModelActivity, async_step
from protocol.endings import ReflectReply, ReflectRequest
from protocol.short_text import indent_list_entry, shorten_to_start

ReflectionPart = Literal["assumption", "prevention"]
PATH = "experiences.md"
FOUND = "what stands as findings in instructions.md"
MAX_CHARACTERS = 2000
ISSUE_CHARACTERS = 4000
RETRY_PROMPT = (
    "\n\nYour last answer named no file, tool, todo or step, so that nobody could act on it:\n"
    "{text}"
    "\n\nAnswer again, and name them."
)
_ENDING = re.compile(r"(?:[\w-]\.[a-z][a-z0-9]{1,4}|[\w-]{2}\.[a-z])\.?$")
"""A file name such as `a.md` or `main.c`, but not `e.g.` or `3.5`."""
_QUOTED = re.compile(r"`[^`\n]+`|\b\w+(?:_\w+|\(\))|\b[a-z]+[A-Z]\w*|[\"“](?:\w+\W+){0,9}\w+[\"”]")
"""A name of code, or words of the job in quotes."""
_PLACE = re.compile(r"\b(?:step|todo|phase|page|line)\s+\d+\b", re.IGNORECASE)


class ReflectActivity(ModelActivity):
    @activity.defn(name="reflect")
    async def reflect(self, request: ReflectRequest) -> ReflectReply:
        async with async_step():
            paid: list[StreamedReply] = []
            try:
                first = ""
                if not request.has_findings:
                    first = await self._request_answer(request, paid, "assumption")
                second = await self._request_answer(request, paid, "prevention", first)
            except ApplicationError as error:
                if not paid or is_failure_retried(error):
                    raise
                return await asyncio.to_thread(self._give_up, request, paid, error.message)
            return await asyncio.to_thread(self._save_reflection, request, paid, first, second)

    async def _request_answer(
        self,
        request: ReflectRequest,
        paid: list[StreamedReply],
        part: ReflectionPart,
        assumption: str = "",
    ) -> str:
        """Return the model's answer; append every reply to `paid`."""
        question = partial(self._reflection_question, request, part, assumption)
        await self._add_reply(paid, question, f".{part}")
        if await asyncio.to_thread(self._is_generic, request, paid[-1].text):
            again = RETRY_PROMPT.format(text=paid[-1].text[:MAX_CHARACTERS])
            question = partial(self._reflection_question, request, part, assumption, again)
            await self._add_reply(paid, question, f".{part}2")
            if not paid[-1].text.strip():
                return paid[-2].text
        return paid[-1].text

    async def _add_reply(
        self, paid: list[StreamedReply], question: Callable[[], ModelQuery], part: str
    ) -> None:
        """Append the reply; after others, without one, what those that broke off have used."""
        try:
            reply = await self._model_client.request_reply(question, lambda reply: reply, part)
        except ApplicationError:
            if paid:
                paid.append(await self._model_client.empty_reply(part))
            raise
        paid.append(reply)

    def _reflection_question(
        self, request: ReflectRequest, part: ReflectionPart, assumption: str, again: str = ""
    ) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        known = f"\n\n# The assumption that failed\n\n{assumption}" if assumption else ""
        prompt = (
            f"# What made it fail\n\n{_issue_to_reflect_on(snapshot, request)}\n\n# The record\n\n"
            f"{_attempt_to_reflect_on(snapshot)}{known}{again}"
        )
        return ModelQuery.with_own_prompt(snapshot, f"reflection_{part}", prompt)

    def _is_generic(self, request: ReflectRequest, text: str) -> bool:
        return is_generic_reflection(open_activity_snapshot(self._root, request), text)

    def _give_up(
        self, request: ReflectRequest, paid: list[StreamedReply], why: str
    ) -> ReflectReply:
        usage = priced_usages(paid, open_activity_snapshot(self._root, request).config)
        return ReflectReply(commit=request.commit, at=request.at, usage=usage, failure=why)

    def _save_reflection(
        self, request: ReflectRequest, paid: list[StreamedReply], first: str, second: str
    ) -> ReflectReply:
        snapshot = open_activity_snapshot(self._root, request)
        issue = _issue_to_reflect_on(snapshot, request)
        assumption, prevention = (
            _reflection_text(text, MAX_CHARACTERS) for text in (first, second)
        )
        answers = (prevention,) if request.has_findings else (assumption, prevention)
        before = snapshot.files
        lesson = experience_entry(FOUND if request.has_findings else issue, assumption, prevention)
        entry = f"## {failed_attempt_title(snapshot)}\n\n{lesson}"
        present = snapshot.read_text(PATH) or "# Experiences\n"
        snapshot.write_system_file(PATH, f"{present.rstrip()}\n\n{entry}".encode())
        snapshot.record_changes(before)
        if _has_next_attempt_begun(snapshot):
            # The next attempt has just begun: add the lesson before its first request.
            snapshot.conversation = snapshot.conversation.append(
                {"role": "user", "content": orientation_experience_part(snapshot)}
            )
        timestamp = activity_schedule_seconds()
        return ReflectReply(
            commit=snapshot.save(snapshot.commit_message("reflection"), timestamp),
            at=timestamp,
            assumption=assumption,
            prevention=prevention,
            generic=any(is_generic_reflection(snapshot, text) for text in answers),
            issue=issue,
            context=count_prompt_tokens(snapshot),
            usage=priced_usages(paid, snapshot.config),
        )


def experience_entry(issue: str, assumption: str, prevention: str) -> str:
    """Return a lesson as a list; a model that answers nothing leaves no line."""
    parts = {"Failed": issue, "Assumption": assumption, "Next time": prevention}
    return "".join(
        f"- {name}: {indent_list_entry(text)}\n" for name, text in parts.items() if text.strip()
    )


def is_generic_reflection(snapshot: Snapshot, text: str) -> bool:
    """Return whether a reflection names no file, tool, step or thing in quotes of this job."""
    if _PLACE.search(text) or _QUOTED.search(text):
        return False
    words = set(re.findall(r"[\w./-]+", text))
    folders = {entry.path for entry in snapshot.files.children()}
    return not any(_ENDING.search(word) or _is_workspace_path_word(word, folders) for word in words)


def _is_workspace_path_word(word: str, folders: set[str]) -> bool:
    """Return whether the word is a path, such as `notes/tea` or `tests/`, and not `and/or`."""
    first, slash, rest = word.removeprefix("./").partition("/")
    return bool(slash) and (not rest or first in folders)


def _has_next_attempt_begun(snapshot: Snapshot) -> bool:
    return len(snapshot.conversation) <= 2


def failed_attempt_title(snapshot: Snapshot) -> str:
    """Return the phase of the failed attempt, such as `Phase 2, step 9: Write`."""
    phase = snapshot.state.phase
    if _has_next_attempt_begun(snapshot) and (page := last_archive_page(snapshot)):
        return snapshot.read_text(page).partition("\n")[0].removeprefix("# ")
    return f"Phase {phase.number}, step {snapshot.state.step}: {phase.name}"


def _attempt_to_reflect_on(snapshot: Snapshot) -> str:
    if not _has_next_attempt_begun(snapshot):
        return archive_prompt(snapshot)
    page = last_archive_page(snapshot)
    return snapshot.read_text(page) if page else "(nothing is kept)"


def _issue_to_reflect_on(snapshot: Snapshot, request: ReflectRequest) -> str:
    issue = request.issue
    if request.call is not None:
        issue = snapshot.text_argument(request.call, "issue")
    return _reflection_text(issue, ISSUE_CHARACTERS) or "No reason was given."


def _reflection_text(text: str, most: int) -> str:
    return shorten_to_start(redact(text.strip()), most)
