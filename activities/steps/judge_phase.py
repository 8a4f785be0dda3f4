"""The judge of a phase: a model that sees the task and the phase's diff, and can only say no."""

from __future__ import annotations

from functools import partial

from temporalio import activity

from activities.checkpoints import Root
from activities.job.activity_context import open_snapshot, scheduled_at
from activities.job.snapshot import Snapshot
from activities.job.volatile_paths import without_volatile
from activities.model.client import Asking, Question
from activities.model.endpoint import Connect
from activities.model.prices import priced
from activities.model.prompt import plain_body
from activities.model.stream import Streamed
from activities.phases.changes import phase_diff
from activities.redaction.secrets import redact
from activities.runtime.failures import typed
from activities.runtime.heartbeats import heartbeats
from activities.text.plain import plain
from activities.text.tokens import clip
from config.schema.agent import Problem
from config.schema.agent_sections import PhaseJudge
from protocol.endings import JudgeReply, JudgeRequest

TASK = "The task (instructions.md)"
"""The heading that a judge's question begins with."""
PART_TOKENS = 4000
FINDINGS = 1800
"""Characters of the findings that the model gets."""
NO_REASON = "The judge says no and gives no reason. Compare each todo with what was done for it."
UNREADABLE = (
    "The judge's answer could not be read, which counts as no. See that what was done for each "
    "todo can be found in the files, then call todo_complete again."
)


class Judging:
    """The `judge_phase` activity."""

    def __init__(self, root: Root, connect: Connect) -> None:
        self._root = root
        self._asking = Asking(root, connect)

    @activity.defn(name="judge_phase")
    async def judge_phase(self, request: JudgeRequest) -> JudgeReply:
        """The judge's answer on the phase that a call would end; kept in the checkpoint."""
        with typed():
            async with heartbeats():
                return await self._asking.ask(
                    partial(self._question, request), partial(self._after, request)
                )

    def _question(self, request: JudgeRequest) -> Question:
        snapshot = open_snapshot(self._root, request)
        judge, asked = _judge(snapshot), question(snapshot, request.call, request.since)
        system = snapshot.config.templates["judge"]
        return Question(
            [judge.model, *snapshot.config.fallbacks],
            lambda model: plain_body(model, system, asked),
        )

    def _after(self, request: JudgeRequest, streamed: Streamed) -> JudgeReply:
        snapshot = open_snapshot(self._root, request)
        finding = verdict(streamed)
        snapshot.keep_judgement(plain(streamed.text))
        at = scheduled_at()
        commit = snapshot.save(snapshot.story(f"judge: {'no' if finding else 'yes'}"), at)
        judged = JudgeReply(commit=commit, at=at, usage=priced(streamed, snapshot.config))
        if finding:
            judged.refusal = redact(f"Refused by the judge: {finding}")
        return judged


def verdict(streamed: Streamed) -> str | None:
    """Why the answer is no, or None for a yes: `PASS` and nothing else."""
    text = plain(streamed.text).strip()
    if streamed.calls:
        return UNREADABLE
    if text == "PASS":
        return None
    if not text.startswith("FAIL"):
        return UNREADABLE
    return text.removeprefix("FAIL").lstrip(":").strip()[:FINDINGS] or NO_REASON


def question(snapshot: Snapshot, call: int, since: str) -> str:
    """What the judge is shown.

    Args:
        snapshot: The phase as it would end.
        call: The call that would end it; its notes are those on the last todo.
        since: The phase's start checkpoint.
    """
    phase = snapshot.state.phase
    lines = []
    for todo in phase.todos:
        notes = todo.notes or (snapshot.argument(call, "notes") if todo is phase.current else "")
        lines.append(f"{todo.id}. {todo.content}" + (f"\n   Notes: {notes}" if notes else ""))
    volatile = snapshot.config.shell.volatile
    before = Snapshot.load(snapshot.checkpoints, since).files
    parts = {
        TASK: _clipped(snapshot.text("instructions.md")),
        f"The phase: {phase.name}": _clipped(phase.description),
        "Its todos": _clipped("\n".join(lines)),
        "What it changed": phase_diff(
            without_volatile(before, volatile),
            without_volatile(snapshot.files, volatile),
        ),
    }
    return "\n\n".join(f"# {heading}\n\n{text or 'nothing'}" for heading, text in parts.items())


def _clipped(text: str) -> str:
    return clip(text, PART_TOKENS, "this part is left out")


def _judge(snapshot: Snapshot) -> PhaseJudge:
    if snapshot.config.judge is None:
        raise Problem(f"agent {snapshot.config.name}: no judge is configured")
    return snapshot.config.judge
