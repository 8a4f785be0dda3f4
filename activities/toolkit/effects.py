"""Ledger of effects outside the workspace, by which a retry recognises a call.

It records that a call began and its result, so that no attempt repeats a finished call. A call that
began but did not finish is repeated for tools that pass on an idempotency key, `ToolContext.key`;
for `at_most_once` tools it is reported that it may have happened.
"""

import json
from collections.abc import Callable
from typing import Any

from activities.checkpoints import Files, merge_files
from activities.job.result_cache import ResultCache
from activities.redaction.credentials import hide_credentials
from activities.runtime.heartbeats import check_thread_by_heartbeat
from activities.toolkit.registry import Tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError, Unfinished
from protocol.job_state import JobState
from protocol.requests import Pending
from protocol.short_text import first_few

MAY_HAVE_HAPPENED = (
    "The call was interrupted after it began: it may have happened, wholly or in part, or not. "
    "Nothing of it is in the workspace. Check what is there before you call it again."
)
KEPT = (
    "[Since this call began, others have changed what it changed, and theirs stays as it is. What "
    "the call made of these paths, and below them, is not in the workspace: {paths}]"
)
MOST_KEPT = 10


def effect_state(cache: ResultCache, key: str) -> dict[str, Any] | None:
    stored = cache.find(f"{key}.done")
    state: dict[str, Any] | None = json.loads(stored).get("held") if stored else None
    return state


def run_tool_once(
    entry: Tool, context: ToolContext, arguments: dict[str, Any], results: ResultCache
) -> str:
    """Run the tool; an effect outside is not repeated once it has finished."""
    if not entry.at_most_once and entry.effect != "outside":
        return entry.run(context, arguments)
    key, pending = context.key, context.pending
    if pending:
        key = f"{context.key}.{pending.turn}"
        before = f"{context.key}.{pending.turn - 1}" if pending.turn > 1 else context.key
        state = effect_state(results, before)
        if state is None and not pending.task:
            raise ToolError(MAY_HAVE_HAPPENED)
        context.held = state or {}

    state_key, state_before = f"{key}.state", context.state.model_dump()

    def run_entry() -> tuple[str, Files]:
        text = hide_credentials(entry.run(context, arguments))
        state_after = context.state.model_dump()
        if changed := {
            name: value for name, value in state_after.items() if value != state_before[name]
        }:
            results.put(state_key, json.dumps(changed).encode())
        else:
            # Of an attempt that was killed before its result was recorded.
            results.release(state_key)
        return text, context.files

    text, context.files = run_effect_once(
        results,
        key,
        context.files,
        run_entry,
        # Polling a task changes nothing.
        repeatable=not entry.at_most_once or bool(pending and pending.task),
        activity_id=context.activity_id,
        attempt=context.attempt,
        has_run=context.has_run,
    )
    # Of an earlier attempt as well: a deferred write would be lost without it.
    if stored := results.find(state_key):
        context.state = JobState.model_validate(context.state.model_dump() | json.loads(stored))
    return text


def run_effect_once(
    results: ResultCache,
    key: str,
    files: Files,
    run: Callable[[], tuple[str, Files]],
    *,
    repeatable: bool = False,
    activity_id: str = "",
    attempt: int = 1,
    has_run: bool = False,
    prepare: Callable[[], object] | None = None,
) -> tuple[str, Files]:
    """Run a call once; later attempts get the recorded result and the files it left.

    Args:
        files: The files before the call. What people changed in them since the call first ran is
            in the result as well.
        run: Makes the call. A ToolError is recorded as a result, DependencyUnavailable is not.
        repeatable: Whether an interrupted call may be made again. A finished one never is.
        activity_id: The activity that runs the call. A resumed call runs in another one.
        attempt: Its number. Earlier ones may have run on a host with its own ledger.
        has_run: Whether the call has run to its end in an earlier activity.
        prepare: Makes ready for the call. It is repeated after an interruption, and the call does
            not count as begun before it returns. What it raises is not recorded.

    Raises:
        ToolError: From the tool, or because an earlier attempt was interrupted.
        CancelledError: Nobody waits for this attempt.
        DependencyUnavailable: From the tool; the next attempt may try again.
        Unfinished: From the tool, or as recorded by an earlier attempt.
    """
    # The end of a phase clears the ledger, and a cancelled call may never have been in it.
    check_thread_by_heartbeat()
    done_key, begun_key, passed_key = f"{key}.done", f"{key}.begun", f"{key}.passed"
    stored = results.find(done_key)
    # Otherwise the call or its previous attempt ran on another host, and its outcome is unknown.
    earlier, present = (f"{activity_id} {number}".encode() for number in (attempt - 1, attempt))
    known = not has_run and (attempt == 1 or results.find(passed_key) == earlier)
    if stored is None and prepare and known and results.find(begun_key) is None:
        results.put(passed_key, present)
        prepare()
        stored = results.find(done_key)
    if stored is not None:
        outcome = json.loads(stored)
    elif not repeatable and (not results.claim(begun_key) or not known):
        raise ToolError(MAY_HAVE_HAPPENED)
    else:
        try:
            outcome = _run_effect_to_outcome(run) | {"before": files.id}
        except Unfinished:
            results.release(begun_key)
            raise
        except DependencyUnavailable:
            results.put(passed_key, present)
            results.release(begun_key)
            raise
        results.put(done_key, json.dumps(outcome).encode())
    return _effect_result(outcome, files)


def _run_effect_to_outcome(run: Callable[[], tuple[str, Files]]) -> dict[str, Any]:
    try:
        text, after = run()
        # The result has only the tree's id, so the tree must be on disk first.
        after.store.flush()
    except Unfinished as unfinished:
        if unfinished.again:
            raise
        pending = unfinished.pending.model_dump(exclude_defaults=True)
        return {"pending": pending, "held": unfinished.held}
    except ToolError as error:
        return {"error": str(error)}
    return {"text": text, "files": after.id}


def _effect_result(outcome: dict[str, Any], files: Files) -> tuple[str, Files]:
    if "pending" in outcome:
        raise Unfinished(Pending.model_validate(outcome["pending"]), outcome["held"])
    if "error" in outcome:
        raise ToolError(outcome["error"])
    after = Files(files.store, outcome["files"], limit=files.limit)
    before = outcome.get("before", files.id)
    if before == files.id:
        return outcome["text"], after
    merged = merge_files(Files(files.store, before), after, files)
    if not merged.kept:
        return outcome["text"], merged.files
    note = KEPT.format(paths=first_few(merged.kept, MOST_KEPT))
    return f"{outcome['text']}\n{note}", merged.files
