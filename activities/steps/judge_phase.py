"""The judge of a phase: a model that sees the task and the phase's diff, and can only refuse."""

import re
from functools import partial

from temporalio import activity

from activities.checkpoints.volatile_paths import without_volatile
from activities.job.activity_context import open_activity_snapshot
from activities.job.snapshot import Snapshot
from activities.model.client import ModelQuery
from activities.model.prices import priced_usage
from activities.model.prompt import simple_prompt_body
from activities.model.reply_stream import StreamedReply
from activities.phases.phase_diff import phase_diff
from activities.redaction.secrets import redact
from activities.runtime.activity_info import activity_schedule_seconds
from activities.steps.root_activity import ModelActivity, async_step
from activities.text.safe_text import replace_surrogates
from activities.text.tokens import clip_to_tokens
from protocol.endings import JudgeReply, JudgeRequest

TASK = "The task (instructions.md)"
PART_TOKENS = 4000
FINDINGS = 1800
NO_REASON = "The judge says no and gives no reason. Compare each todo with what was done for it."
UNREADABLE = (
    "The judge said neither PASS nor FAIL, which counts as no. See that what was done for each "
    "todo can be found in the files, then call todo_complete again."
)
EARLIER = "What you said of this phase before"
MOST_EARLIER = 2
"""Number of earlier answers that a judge is shown: without them it may ask for the opposite."""
EARLIER_TOKENS = 500
"""Most tokens of each. The workflow reserves room for the whole prompt."""
_FAIL = re.compile(r"^\W*FAIL\b\W*", re.MULTILINE)


class JudgePhaseActivity(ModelActivity):
    @activity.defn(name="judge_phase")
    async def judge_phase(self, request: JudgeRequest) -> JudgeReply:
        async with async_step():
            return await self._model_client.request_reply(
                partial(self._judge_question, request), partial(self._record_verdict, request)
            )

    def _judge_question(self, request: JudgeRequest) -> ModelQuery:
        snapshot = open_activity_snapshot(self._root, request)
        judge, system = snapshot.config.judge, snapshot.config.templates["judge"]
        assert judge is not None, "only an agent with a judge is judged"
        prompt = judge_prompt(snapshot, request.call, request.since)
        return ModelQuery(
            [judge.model, *snapshot.config.fallbacks],
            lambda model: simple_prompt_body(model, system, prompt),
        )

    def _record_verdict(self, request: JudgeRequest, streamed: StreamedReply) -> JudgeReply:
        snapshot = open_activity_snapshot(self._root, request)
        finding = judge_refusal(streamed)
        snapshot.keep_judgement(replace_surrogates(streamed.text))
        timestamp = activity_schedule_seconds()
        commit = snapshot.save(
            snapshot.commit_message(f"judge: {'no' if finding else 'yes'}"), timestamp
        )
        judged = JudgeReply(
            commit=commit, at=timestamp, usage=priced_usage(streamed, snapshot.config)
        )
        if finding:
            judged.finding = redact(finding)
        return judged


def judge_refusal(streamed: StreamedReply) -> str | None:
    """Return why the judge refuses; None only if the answer is exactly `PASS`."""
    text = replace_surrogates(streamed.text).strip()
    if streamed.calls or not text:
        return UNREADABLE
    if text == "PASS":
        return None
    if not (no := _FAIL.search(text)):
        return f"{UNREADABLE} It said: {text[:FINDINGS]}"
    findings = text[no.end() :].strip() or text[: no.start()].strip()
    return findings[:FINDINGS] or NO_REASON


def judge_prompt(snapshot: Snapshot, call: int, since: str) -> str:
    phase = snapshot.state.phase
    lines = []
    for todo in phase.todos:
        notes = todo.notes or (
            snapshot.text_argument(call, "notes") if todo is phase.current else ""
        )
        lines.append(f"{todo.id}. {todo.content}" + (f"\n   Notes: {notes}" if notes else ""))
    earlier = [
        entry
        for entry in snapshot.judge.walk()
        if int(entry.path.removesuffix(".md")) > phase.since
    ][-MOST_EARLIER:]
    volatile = snapshot.config.shell.volatile
    before = Snapshot.load(snapshot.checkpoints, since).files
    parts = {
        TASK: _clip_judge_prompt_part(snapshot.read_text("instructions.md")),
        f"The phase: {phase.name}": _clip_judge_prompt_part(phase.description),
        "Its todos": _clip_judge_prompt_part("\n".join(lines)),
        "What it changed": phase_diff(
            without_volatile(before, volatile),
            without_volatile(snapshot.files, volatile),
        ),
    }
    if earlier:
        answers = (snapshot.judge.read_entry(entry).decode() for entry in earlier)
        parts[EARLIER] = "\n\n".join(
            _clip_judge_prompt_part(answer, EARLIER_TOKENS) for answer in answers
        )
    return "\n\n".join(f"# {heading}\n\n{text or 'nothing'}" for heading, text in parts.items())


def _clip_judge_prompt_part(text: str, limit: int = PART_TOKENS) -> str:
    return clip_to_tokens(text, limit, "this part is left out")
