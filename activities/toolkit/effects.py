"""What a call does outside the workspace, so that a retry recognises it.

This ledger notes that a call began and what came of it: no attempt makes a call that was finished.
One that began and was not finished is made again by tools that hand the other side an idempotency
key, `ToolContext.key`; for those declared `at_most_once` it is said that it may have happened.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from activities.checkpoints import Files
from activities.job.result_cache import ResultCache
from activities.runtime.heartbeats import check_wanted_in_thread
from activities.toolkit.errors import DependencyUnavailable, ToolError, Unfinished
from protocol.requests import Pending

MAY_HAVE_HAPPENED = (
    "The call was interrupted after it began: it may have happened, wholly or in part, or not. "
    "Nothing of it is in the workspace. Check what is there before you call it again."
)


def held_by(kept: ResultCache, key: str) -> dict[str, Any] | None:
    """What a turn of the call left for the next one; None where its ledger is not here."""
    found = kept.find(f"{key}.done")
    held: dict[str, Any] | None = json.loads(found).get("held") if found else None
    return held


def run_once(
    results: ResultCache,
    key: str,
    files: Files,
    run: Callable[[], tuple[str, Files]],
    *,
    repeatable: bool = False,
    attempt: int = 1,
) -> tuple[str, Files]:
    """The result of `run` and the files it left, from the first attempt that came that far.

    Args:
        kept: Where the job keeps what attempts have in common.
        key: The call's idempotency key.
        files: Those the call starts from; gives the handle that reads the kept tree.
        run: Does it. A ToolError is a result like any other; DependencyUnavailable is none.
        repeatable: Whether a call that was interrupted may be made again. One that was finished
            is not: an attempt that wakes up late would undo what came after.
        attempt: Which one this is, where the ones before may have been made on another host, whose
            ledger is not here.

    Raises:
        ToolError: as the tool raised it, or because an earlier attempt was interrupted.
        CancelledError: nobody waits for this attempt any more.
        DependencyUnavailable: as the tool raised it; the next attempt may try again.
        Unfinished: as the tool raised it, from the first attempt that came that far.
    """
    # A phase end forgets the ledger, and a call that was cancelled may never have been in it.
    check_wanted_in_thread()
    done_key, begun_key, passed_key = f"{key}.done", f"{key}.begun", f"{key}.passed"
    if (stored := results.find(done_key)) is not None:
        outcome = json.loads(stored)
    elif not repeatable and (
        not results.claim(begun_key)
        # Of the attempt before nothing is known here: it was made elsewhere.
        or (attempt > 1 and results.find(passed_key) != b"%d" % (attempt - 1))
    ):
        raise ToolError(MAY_HAVE_HAPPENED)
    else:
        try:
            text, after = run()
            # Kept by its id alone: what it stands for has to be on the disk before.
            after.store.flush()
            outcome = {"text": text, "files": after.id}
        except Unfinished as unfinished:
            if unfinished.again:
                results.release(begun_key)
                raise
            pending = unfinished.pending.model_dump(exclude_defaults=True)
            outcome = {"pending": pending, "held": unfinished.held}
        except ToolError as error:
            outcome = {"error": str(error)}
        except DependencyUnavailable:
            results.put(passed_key, b"%d" % attempt)
            results.release(begun_key)
            raise
        results.put(done_key, json.dumps(outcome).encode())
    if "pending" in outcome:
        raise Unfinished(Pending.model_validate(outcome["pending"]), outcome["held"])
    if "error" in outcome:
        raise ToolError(outcome["error"])
    return outcome["text"], Files(files.store, outcome["files"], limit=files.limit)
