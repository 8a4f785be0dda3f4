"""The `reflect` activity: what an attempt that failed teaches the next one.

Two questions, so that the wish to mend does not bend the analysis: which assumption failed, and
then what would prevent it. An answer that names no file, tool or step is asked for once more. The
result is an entry of `experiences.md`, which the first message of strategic phases ends with.
"""

from __future__ import annotations

import asyncio
import re
from functools import partial
from typing import Literal

from temporalio import activity
from temporalio.exceptions import ApplicationError

from activities.checkpoints import Root
from activities.job.activity_context import open_snapshot, scheduled_at
from activities.job.snapshot import Snapshot
from activities.model.client import Asking, Question
from activities.model.endpoint import Connect
from activities.model.prices import priced
from activities.model.prompt import context_tokens
from activities.model.stream import Streamed
from activities.phases.archive import archive_question
from activities.phases.orientation import last_experience, last_page
from activities.redaction.secrets import redact
from activities.runtime.failures import is_retried, typed
from activities.runtime.heartbeats import heartbeats
from activities.toolkit.equipment import toolbox
from protocol.reflection import ReflectReply, ReflectRequest
from protocol.requests import Usage
from protocol.text import as_entry, start_of

Part = Literal["assumption", "prevention"]
PATH = "experiences.md"
MOST_CHARACTERS = 2000
ISSUE_CHARACTERS = 4000
AGAIN = (
    "\n\nYour last answer named no file, tool, todo or step, so that nobody could act on it:\n"
    "{text}"
    "\n\nAnswer again, and name them."
)
_ENDING = re.compile(r"(?:[\w-]\.[a-z][a-z0-9]{1,4}|[\w-]{2}\.[a-z])\.?$")
"""A name with an ending: `a.md`, `main.c`, and not `e.g.` or `3.5`."""
_PLACE = re.compile(r"\b(?:step|todo|phase|page|line)\s+\d+\b", re.IGNORECASE)


class Reflecting:
    """The `reflect` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._asking = Asking(root, connect)

    @activity.defn(name="reflect")
    async def reflect(self, request: ReflectRequest) -> ReflectReply:
        """Ask what the attempt before this checkpoint teaches, and write it down."""
        with typed():
            async with heartbeats():
                paid: list[Streamed] = []
                try:
                    first = await self._answer(request, paid, "assumption")
                    second = await self._answer(request, paid, "prevention", first)
                except ApplicationError as error:
                    if not paid or is_retried(error):
                        raise
                    return await asyncio.to_thread(self._given_up, request, paid, error.message)
                return await asyncio.to_thread(self._save, request, paid, first, second)

    async def _answer(
        self, request: ReflectRequest, paid: list[Streamed], part: Part, found: str = ""
    ) -> str:
        """What the model wrote; every reply is noted as paid."""
        question = partial(self._question, request, part, found)
        paid.append(await self._asking.ask(question, lambda made: made, f".{part}"))
        if await asyncio.to_thread(self._generic, request, paid[-1].text):
            again = AGAIN.format(text=paid[-1].text[:MOST_CHARACTERS])
            question = partial(self._question, request, part, found, again)
            paid.append(await self._asking.ask(question, lambda made: made, f".{part}2"))
        return paid[-1].text

    def _question(
        self, request: ReflectRequest, part: Part, found: str, again: str = ""
    ) -> Question:
        snapshot = open_snapshot(self._root, request)
        known = f"\n\n# The assumption that failed\n\n{found}" if found else ""
        asked = (
            f"# What made it fail\n\n{_issue(snapshot, request)}\n\n# The record\n\n"
            f"{_record(snapshot)}{known}{again}"
        )
        return Question.apart(snapshot, f"reflection_{part}", asked)

    def _generic(self, request: ReflectRequest, text: str) -> bool:
        return is_generic(open_snapshot(self._root, request), text)

    def _given_up(self, request: ReflectRequest, paid: list[Streamed], why: str) -> ReflectReply:
        usage = _usage(open_snapshot(self._root, request), paid)
        return ReflectReply(commit=request.commit, at=request.at, usage=usage, failure=why)

    def _save(
        self, request: ReflectRequest, paid: list[Streamed], first: str, second: str
    ) -> ReflectReply:
        snapshot = open_snapshot(self._root, request)
        issue = _issue(snapshot, request)
        assumption, prevention = (_bounded(told, MOST_CHARACTERS) for told in (first, second))
        before, phase = snapshot.files, snapshot.state.phase
        entry = (
            f"## Phase {phase.number}, step {snapshot.state.step}: {phase.name}\n\n"
            f"- Failed: {as_entry(issue)}\n- Assumption: {as_entry(assumption)}\n"
            f"- Next time: {as_entry(prevention)}\n"
        )
        present = snapshot.text(PATH) or "# Experiences\n"
        snapshot.place(PATH, f"{present.rstrip()}\n\n{entry}".encode())
        snapshot.note_changes(before)
        if len(snapshot.conversation) <= 2:
            # The next attempt has begun and has asked nothing yet: it is to know from the start.
            snapshot.conversation = snapshot.conversation.append(
                {"role": "user", "content": last_experience(snapshot)}
            )
        at = scheduled_at()
        return ReflectReply(
            commit=snapshot.save(snapshot.story("reflection"), at),
            at=at,
            assumption=assumption,
            prevention=prevention,
            generic=any(is_generic(snapshot, told) for told in (assumption, prevention)),
            issue=issue,
            context=context_tokens(snapshot),
            usage=_usage(snapshot, paid),
        )


def _usage(snapshot: Snapshot, paid: list[Streamed]) -> Usage:
    usage = Usage()
    for reply in paid:
        usage.add(priced(reply, snapshot.config))
    return usage


def is_generic(snapshot: Snapshot, text: str) -> bool:
    """Whether a reflection names nothing of this job: no file, no tool, no step."""
    if _PLACE.search(text):
        return False
    words = set(re.findall(r"[\w./-]+", text))
    bare = {word.strip("./") for word in words}
    if any(name in bare for name in toolbox(snapshot.config) if "_" in name):
        return False
    folders = {entry.path for entry in snapshot.files.children()}
    return not any(_ENDING.search(word) or _in_folder(word, folders) for word in words)


def _in_folder(word: str, folders: set[str]) -> bool:
    """Whether it is `notes/tea` or `tests/` and not `and/or`."""
    first, slash, rest = word.removeprefix("./").partition("/")
    return bool(slash) and (not rest or first in folders)


def _record(snapshot: Snapshot) -> str:
    """The attempt: its conversation or, where the next has begun already, its archive page."""
    if len(snapshot.conversation) > 2:
        return archive_question(snapshot)
    page = last_page(snapshot)
    return snapshot.text(page) if page else "(nothing is kept)"


def _issue(snapshot: Snapshot, request: ReflectRequest) -> str:
    issue = request.issue
    if request.call is not None:
        issue = snapshot.argument(request.call, "issue")
    return _bounded(issue, ISSUE_CHARACTERS) or "No reason was given."


def _bounded(text: str, most: int) -> str:
    """A text word for word, its white space as it is, without secrets."""
    return start_of(redact(text.strip()), most)
