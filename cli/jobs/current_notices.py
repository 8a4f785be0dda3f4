"""Which notices of a job still matter: those that `show` prints.

A job keeps its newest notices until it ends, and `show --json` and the report have them all.
"""

from __future__ import annotations

import re
from typing import Any

from engine.program_names import name_running_program

RECENT_STEPS = 10
"""Steps for which a notice of one step matters."""
_STEP = re.compile(r"(?:stuck: )?step (\d+)[:,] ")
_PHASE = re.compile(r"phase (\d+): ")
_REFUSAL = re.compile(r"step (\d+): (?:guard .* refused |job_complete was refused)")
_REFUSED_SIGNAL = re.compile(r"refused: signal (\w+): ")
_TIME = re.compile(r" at \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC")
_DOCUMENT = "document "
_FOLDER = "the folder may lack the last steps: "
_SUPERSEDED = (
    "the model is set: ",
    _FOLDER,
    "traces are kept for later: ",
    "the report did not reach project ",
)
"""Beginnings of notices of which only the newest matters."""


def render_current_notices(status: dict[str, Any]) -> list[str]:
    """Return lines on the notices that matter now, each repeated one once with its count."""
    notices = [str(notice) for notice in status.get("notices") or []]
    current = [
        notice
        for place, notice in enumerate(notices)
        if not _is_notice_past(notice, status)
        and not _is_notice_superseded(notice, notices[place + 1 :], status)
    ]
    counts: dict[str, int] = {}
    newest: dict[str, str] = {}
    for notice in current:
        subject = _notice_subject(notice)
        counts[subject] = counts.pop(subject, 0) + 1
        newest[subject] = notice
    lines = [
        f"notice: {newest[subject]}" + (f" ({count} times)" if count > 1 else "")
        for subject, count in counts.items()
    ]
    if settled_count := len(notices) - len(current):
        which = (
            "1 settled notice is" if settled_count == 1 else f"{settled_count} settled notices are"
        )
        hint = name_running_program("`starter.py report` and `show --json` have all")
        lines.append(f"{which} left out; {hint}")
    return lines


def _is_notice_past(notice: str, status: dict[str, Any]) -> bool:
    """Whether the job has gone on from what a notice says of one step or phase."""
    step, phase = int(status.get("step") or 0), status.get("phase") or {}
    if status.get("result") and notice.startswith(_DOCUMENT):
        # The result's notes have it too.
        return True
    if refusal := _REFUSAL.match(notice):
        # While the job waits, a person may want to know what it was refused.
        least = RECENT_STEPS if status.get("waiting_for") else 1
        return step - int(refusal[1]) >= least
    if match := _STEP.match(notice):
        return step - int(match[1]) >= RECENT_STEPS
    if match := _PHASE.match(notice):
        return int(phase.get("number") or 0) - int(match[1]) > 1
    return False


def _is_notice_superseded(notice: str, later: list[str], status: dict[str, Any]) -> bool:
    """Whether a later notice takes the place of this one."""
    people = [act for act in status.get("people") or [] if not act["refused"]]
    signals = [_act_signal(other, people) for other in later]
    if notice.startswith(_FOLDER) and "resume" in signals:
        # A job that goes on brings its folder up to date.
        return True
    for beginning in _SUPERSEDED:
        if notice.startswith(beginning):
            return any(other.startswith(beginning) for other in later)
    if refused := _REFUSED_SIGNAL.match(notice):
        return refused[1] in signals
    signal = _act_signal(notice, people)
    ends = {signal, "resume", "rewind"} if signal == "pause" else {signal}
    return bool(signal) and not ends.isdisjoint(signals)


def _act_signal(notice: str, people: list[dict[str, Any]]) -> str:
    """Return the signal of the act that a notice reports; empty if it reports none."""
    for act in people:
        if notice.startswith(f"{act['by'] or 'A person'} {act['did']}") and _TIME.search(notice):
            return str(act["signal"])
    return ""


def _notice_subject(notice: str) -> str:
    """Return what a notice says, without the step at which it happened."""
    return _STEP.sub("", notice, count=1)
