"""Bars of charts over steps: one for each model call, folded if they are many."""

from __future__ import annotations

from cli.report.report_content import Bar


def fold_step_bars(steps: list[Bar], most: int) -> list[Bar]:
    """Return at most `most` bars with equal numbers of steps, except for the last."""
    size = -(-len(steps) // most) or 1
    return [_merge_step_bars(steps[start : start + size]) for start in range(0, len(steps), size)]


def _merge_step_bars(steps: list[Bar]) -> Bar:
    return Bar(
        first=steps[0].first,
        last=steps[-1].last,
        model_calls=sum(step.model_calls for step in steps),
        prompt_tokens=sum(step.prompt_tokens for step in steps),
        cached_tokens=sum(step.cached_tokens for step in steps),
        written_tokens=sum(step.written_tokens for step in steps),
        completion_tokens=sum(step.completion_tokens for step in steps),
        largest_prompt=max(step.largest_prompt for step in steps),
        cost=round(sum(step.cost for step in steps), 9),
    )
