"""Known ways in which jobs go wrong, as pure functions over a job's figures."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from cli.report.report_content import Pattern, PhaseLine, RefusalLine
from protocol.short_text import count_noun, one_line

OFTEN = 3
"""Number of refusals of one kind that count as repeated."""
SURE, UNSURE = 0.8, 0.5
MOSTLY, MANY_CALLS = 0.9, 20
"""Share of model calls, of at least that many, from which a job mostly plans."""
MOST_DETAILS = 10
UNSEEN_DAYS = timedelta(days=7)
"""Age from which a trace that nobody was shown is worth a look."""
REASON_CHARACTERS = 140


def planning_only_pattern(phases: Sequence[PhaseLine], *, has_work: bool = True) -> Pattern:
    """Find consecutive strategic phases, and jobs in which next to nothing else was done.

    The final one verifies, and one that a person sent back is not the agent's doing.

    Args:
        has_work: Whether the job changed the work, or had an effect outside.
    """
    runs: list[list[PhaseLine]] = [[]]
    for phase in phases:
        if phase.kind == "tactical" or phase.by:
            runs.append([])
        elif phase.purpose != "final":
            runs[-1].append(phase)
    long = [run for run in runs if len(run) > 1]
    calls = sum(phase.model_calls for phase in phases)
    strategic = sum(phase.model_calls for phase in phases if phase.kind == "strategic")
    mostly = calls >= MANY_CALLS and strategic >= MOSTLY * calls
    share = f"{strategic} of {count_noun(calls, 'model call')} planned"
    details = [] if has_work or not calls else [f"no file of the work changed; {share}"]
    if mostly and has_work:
        details.append(share)
    longest = max((len(run) for run in runs), default=0)
    figure = f"at most {longest} strategic in a row"
    return Pattern(
        name="planning_only",
        title="Phases that only plan",
        figure=figure + (f"; {strategic / calls:.0%} of model calls plan" if calls else ""),
        found=bool(long or details),
        meaning=(
            "Plans were replaced before anything was done by them, or took nearly all of the job: "
            "the work may be too vague for the agent, or a gate refuses what it plans."
        ),
        details=[
            *details,
            *(
                f"phases {run[0].number} to {run[-1].number}: "
                + ", ".join(phase.purpose for phase in run)
                for run in long[:MOST_DETAILS]
            ),
        ],
    )


def swinging_plans_pattern(
    plans: Sequence[tuple[int, frozenset[str]]], undone: Collection[int] = ()
) -> Pattern:
    """Find plan lines that vanish and come back.

    Args:
        plans: For each phase its number, and the plan lines at its start.
        undone: Numbers of phases that a rewind took back, whose plans decided nothing.
    """
    dropped: dict[str, int] = {}
    back: list[str] = []
    before: frozenset[str] = frozenset()
    for number, plan in plans:
        if number in undone:
            continue
        back += [
            f"gone at phase {dropped.pop(text)}, back at {number}: {text}"
            for text in sorted(plan & dropped.keys())
        ]
        dropped |= dict.fromkeys(before - plan, number)
        before = plan
    return Pattern(
        name="swinging_plans",
        title="Plans that swing",
        figure=f"{count_noun(len(back), 'line')} came back; {len(dropped)} went for good",
        found=bool(back),
        meaning=(
            "What was taken out of plan.md and put in again later was decided at least twice: the "
            "reasons for a decision do not reach the phase that makes the next one. Have them "
            "written into plan.md or workspace.md."
        ),
        details=back[:MOST_DETAILS],
    )


def repeated_refusals_pattern(rows: Sequence[RefusalLine]) -> Pattern:
    """Find refusals and errors of one kind that occur too often to be chance."""
    often = sorted((row for row in rows if row.count >= OFTEN), key=lambda row: -row.count)
    return Pattern(
        name="repeated_refusals",
        title="The same mistake again",
        figure=f"{len(often)} kinds came {OFTEN} times or more",
        found=bool(often),
        meaning=(
            "A refusal is a lesson once; the same one again means that the message does not show "
            "the agent what to do instead, or that its prompt asks for what is refused."
        ),
        details=[
            f"{row.count} × {_repeated_refusal_name(row)}"  # noqa: RUF001
            + (f": {one_line(row.reason, REASON_CHARACTERS)}" if row.reason else "")
            for row in often[:MOST_DETAILS]
        ],
    )


def _repeated_refusal_name(row: RefusalLine) -> str:
    if row.kind == "tool error":
        return f"error of {row.tool}"
    return f"{row.by} ({row.tool})" if row.tool else row.by


def self_assessment_pattern(
    confidence: float | None,
    unresolved: int,
    refused: int,
    failing: Sequence[str] = (),
    *,
    closed: bool,
) -> Pattern:
    """Compare the agent's confidence with unresolved points, refusals and failed commands.

    Args:
        failing: Commands whose last run failed.
    """
    confidence_text = "none given" if confidence is None else f"{confidence:.2f}"
    over = confidence is not None and confidence >= SURE and unresolved > 0
    under = confidence is not None and confidence < UNSURE and not unresolved
    details = []
    if over:
        details.append(f"sure, with {unresolved} unresolved")
    if under:
        details.append("unsure, and nothing is listed as unresolved")
    if confidence is not None and confidence >= SURE and refused:
        details.append(
            f"completion was refused {count_noun(refused, 'time')} before it was accepted"
        )
    if confidence is not None and confidence >= SURE:
        details += [f"sure, though this failed when it was last run: {ran}" for ran in failing]
    return Pattern(
        name="self_assessment",
        title="Self-assessment",
        figure=f"confidence {confidence_text}; {unresolved} unresolved; {refused} "
        "completions refused; "
        f"{len(failing)} commands failed when last run"
        if closed
        else "the job has not ended",
        found=bool(details),
        meaning=(
            "Confidence that does not fit what is unresolved, what the gates found or how tests "
            "ended cannot be relied on: look at the deliverables rather than at the summary."
        ),
        details=details[:MOST_DETAILS],
    )


def premature_completion_pattern(open_ones: Sequence[str], refused: int | None) -> Pattern:
    """Find completions that were accepted although something was open."""
    counted = "" if refused is None else f"; {refused} refused"
    return Pattern(
        name="premature_completion",
        title="Premature completion",
        figure=f"{int(bool(open_ones))} let through{counted}",
        found=bool(open_ones),
        meaning=(
            "What is open, missing or judged unmet at the last checkpoint of a completed job, and "
            "not named with a reason as unresolved, should have kept it from ending; so should it "
            "that nothing was done."
        ),
        details=list(open_ones[:MOST_DETAILS]),
    )


def unretrieved_traces_pattern(traces: Sequence[Mapping[str, Any]], now: datetime) -> Pattern:
    """Count traces that no agent has seen since; those of the last days need not have been."""
    unseen = [str(trace["time"]) for trace in traces if not trace.get("retrieved")]
    never, lately = len(unseen), f"{now - UNSEEN_DAYS:%Y-%m-%d %H:%M}"
    share = f"; {1 - never / len(traces):.0%} retrieved" if traces else ""
    return Pattern(
        name="unretrieved_traces",
        title="Traces that nobody was shown",
        figure=f"{never} of {len(traces)}{share}",
        found=any(time < lately for time in unseen),
        meaning=(
            "A trace teaches only whom it reaches. For a job that has just ended this is usual; of "
            "those older than a week it means that no later situation is like theirs, or is "
            "described otherwise."
        ),
    )


def generic_reflections_pattern(traces: Sequence[Mapping[str, Any]]) -> Pattern:
    """Find reflections that name no file, tool or step even after a second request."""
    all_of_them = [trace for trace in traces if str(trace.get("guard")).endswith("reflection")]
    empty = [trace for trace in all_of_them if trace.get("guard") == "generic reflection"]
    return Pattern(
        name="generic_reflections",
        title="Reflections that name nothing",
        figure=f"{len(empty)} of {len(all_of_them)}",
        found=bool(empty),
        meaning=(
            "A reflection without a file, tool or step cannot be acted on: the model may be too "
            "weak for it, or the record of the attempt too thin."
        ),
        details=[
            f"phase {trace.get('phase')}, step {trace.get('step')}"
            for trace in empty[:MOST_DETAILS]
        ],
    )
