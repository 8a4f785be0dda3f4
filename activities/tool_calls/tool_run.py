"""One run of a tool under its guards, and what its outcome means for the call."""

from collections.abc import Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from temporalio import activity

from activities.checkpoints import Change, Files, FilesError, PathRefused, diff_files
from activities.checkpoints.checkpoint_errors import FileMissing
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.commands.check_commands import simple_commands
from activities.guards.call_guards import CallGuards
from activities.guards.call_memory import remember_call
from activities.guards.voting import VotingOutcome
from activities.job.conversation import Conversation
from activities.job.conversation_calls import (
    ERROR_PREFIX,
    find_same_result,
    result_error_line,
    tool_result_message,
    truncate_result,
)
from activities.job.plan_and_todo_files import (
    changed_todo_files,
    parse_plan,
    plan_step_texts,
    with_settled_plan,
)
from activities.job.result_cache import ResultCache
from activities.job.snapshot import Snapshot
from activities.model.prompt import count_prompt_tokens
from activities.phases.snapshot_transition import settle_worked_items
from activities.redaction.credentials import hide_credentials
from activities.redaction.secrets import show_arguments
from activities.runtime.activity_info import activity_schedule_seconds
from activities.runtime.failures import (
    is_storage_failure,
    may_retry_activity,
    typed_failure,
)
from activities.stores.store_errors import StoreUnavailableError
from activities.text import fingerprints
from activities.text.safe_text import replace_surrogates
from activities.toolkit.effects import run_tool_once
from activities.toolkit.misplaced_paths import namesakes_note
from activities.toolkit.path_ownership import check_changed_paths, is_system_path, is_work_path
from activities.toolkit.registry import Tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError, Unfinished
from activities.toolkit.tool_offer import deferred_tool_advice
from activities.tools.delegate_tool import CONVERSATION, delegate_call_answer
from config.schema.shell import ShellConfig
from protocol.errors import Invalid, Refusal
from protocol.evidence import MOST_SEEN
from protocol.job_state import JobState
from protocol.requests import GuardOutcome, ToolReply, ToolRequest, tool_effect_key
from protocol.scope_ledger import vanished_steps
from protocol.short_text import count_noun, first_few, one_line

UNTICKED = (
    "\nTaken back in plan.md: {ticks}. The system ticks a box when a todo that covers it is "
    "completed, or the list of its phase."
)
GONE = (
    "\nNo longer in plan.md, and still owed: {steps}. A todo that names one in `items` covers it; "
    "drop_item(ids, reason) leaves it out."
)
MOST_GONE = 10


class CallRefused(Refusal):
    def __init__(self, outcome: VotingOutcome, *, has_run: bool = False) -> None:
        self.outcome = outcome
        self.has_run = has_run
        """Whether it is about what the tool has changed."""
        super().__init__(f"Refused by {outcome.guard}: {outcome.denied}")


class ToolOutcome(NamedTuple):
    text: str
    added: str
    files: Files
    command_failure: str


def run_tool(
    snapshot: Snapshot, entry: Tool, request: ToolRequest, guards: CallGuards
) -> ToolReply:
    """Run a call, or record its answer or refusal; one that needs approval is not recorded."""
    if request.answer is not None:
        story = snapshot.commit_message(f"{entry.name} answered")
        return record_call_result(snapshot, request, story, request.answer)
    refused = snapshot.commit_message(f"{entry.name} refused")
    if (why := request.refusal) is not None:
        reopened = snapshot.state.reopen_items(request.reopen)
        reply = record_call_result(snapshot, request, refused, why, failed=True)
        if reopened:
            reply.scope = reopened
        return reply
    raw = snapshot.tool_call(request.call)["function"]["arguments"]
    before, ledger = snapshot.files, [item.model_copy() for item in snapshot.state.scope]
    story, todo = snapshot.commit_message(entry.name), snapshot.state.phase.current
    try:
        outcome = _run_guarded_tool_call(snapshot, entry, raw, request, guards)
    except CallRefused as refusal:
        report = guards.report_outcome(refusal.outcome)
        if not refusal.outcome.asks:
            why = str(refusal)
            return record_call_result(snapshot, request, refused, why, report, failed=True)
        return _ask_about_tool_call(request, guards, report, has_run=refusal.has_run)
    except Unfinished as unfinished:
        passed = guards.report_outcome().model_dump(exclude_unset=True)
        return ToolReply(
            commit=request.commit,
            at=tool_call_commit_time(request),
            ok=False,
            pending=unfinished.pending,
            **passed,
        )
    except (ToolError, FilesError, PathRefused) as problem:
        why = _failure_text(snapshot, entry, problem, guards)
        failed = snapshot.commit_message(f"{entry.name} failed")
        return record_call_result(
            snapshot, request, failed, why, guards.report_outcome(), failed=True
        )
    if request.helper:
        tree = snapshot.checkpoints.files(request.helper)
        snapshot.keep_helper(request.call, Conversation(tree.subfolder(CONVERSATION)))
    reply = _record_outcome(snapshot, entry, request, story, before, outcome, guards)
    if news := snapshot.state.items_changed_since(ledger):
        reply.scope = news
    if todo and any(each.id == todo.id and not each.needed for each in snapshot.state.phase.todos):
        reply.passed_over = True
    return reply


def _record_outcome(
    snapshot: Snapshot,
    entry: Tool,
    request: ToolRequest,
    story: str,
    before: Files,
    outcome: ToolOutcome,
    guards: CallGuards,
) -> ToolReply:
    recorded = snapshot.record_changes(before)
    phase = snapshot.state.phase
    ticked = phase.tick_changed(changed_todo_files(snapshot.changes, phase))
    # What the tool itself changed, without hooks.
    first_path, changes = "".join(recorded[:1]), list(diff_files(before, outcome.files))
    raw = snapshot.tool_call(request.call)["function"]["arguments"]
    note_seen_work(
        snapshot.state,
        entry,
        entry.load_arguments(raw),
        changes,
        snapshot.config.shell,
        failed_command=bool(outcome.command_failure),
    )
    paths = [change.path for change in changes]
    unticked = _settle_plan(snapshot) if "plan.md" in paths else ""
    story += f" {first_path}" if first_path else ""
    reply = record_call_result(
        snapshot,
        request,
        story,
        outcome.text + unticked,
        guards.report_outcome(),
        added=outcome.added,
        changed=any(not is_system_path(path) for path in paths),
        polls=entry.polling,
    )
    reply.command_failure = outcome.command_failure
    if ticked:
        reply.ticked = ticked
    return reply


def _failure_text(
    snapshot: Snapshot, entry: Tool, problem: ToolError | Invalid, guards: CallGuards
) -> str:
    # An empty error, such as a server's, would look like a result.
    why = str(problem).strip() or f"{entry.name} failed and did not say why."
    if isinstance(problem, FileMissing):
        why += namesakes_note(snapshot.files, problem.path)
    # Without this note an error about rewritten arguments would puzzle the model.
    return f"{why}\n{note}" if (note := guards.rewrite_note) else why


def _settle_plan(snapshot: Snapshot) -> str:
    """Set the boxes of a changed plan as the ledger has them; return what the model reads."""
    written = snapshot.files
    snapshot.files, unticked = with_settled_plan(written, snapshot.state.scope)
    snapshot.record_changes(written)
    settle_worked_items(snapshot)
    plan = parse_plan(snapshot.read_text("plan.md"))
    gone = vanished_steps(snapshot.state.scope, plan_step_texts(plan))
    text = ""
    if unticked:
        text += UNTICKED.format(ticks=count_noun(len(unticked), "tick"))
    if gone:
        named = first_few([f"{step.id} {one_line(step.text, 60)}" for step in gone], MOST_GONE)
        text += GONE.format(steps=named)
    return text


def _ask_about_tool_call(
    request: ToolRequest, guards: CallGuards, report: GuardOutcome, *, has_run: bool
) -> ToolReply:
    question = report.model_dump(exclude_unset=True)
    if has_run:
        question["has_run"] = True
    if guards.rewritten_arguments:
        question["rewritten_arguments"] = show_arguments(guards.rewritten_arguments)
    return ToolReply(commit=request.commit, at=tool_call_commit_time(request), ok=False, **question)


def _run_guarded_tool_call(
    snapshot: Snapshot, entry: Tool, raw_arguments: str, request: ToolRequest, guards: CallGuards
) -> ToolOutcome:
    state = snapshot.state
    kind = state.phase.kind
    try:
        sent_arguments = entry.load_arguments(raw_arguments)
        entry.check_arguments(sent_arguments)
    except ToolError as error:
        advice = deferred_tool_advice(
            snapshot.config, kind, state.found_tools, state.unused_tools, entry.name
        )
        raise ToolError(" ".join(filter(None, [str(error), advice]))) from None
    points = ("todo_complete",) if entry.name == "todo_complete" else ()
    allowed = (
        VotingOutcome(sent_arguments)
        if request.guards_passed
        else guards.judge_call(entry.name, sent_arguments, *points)
    )
    if allowed.guard:
        raise CallRefused(allowed)
    arguments = allowed.arguments
    context = _tool_context(snapshot, request, guards)
    try:
        text = _run_tool_with_typed_failures(entry, context, arguments, snapshot)
    except (ToolError, FilesError, PathRefused):
        remember_call(snapshot, entry.name, arguments, context.time_ms, ok=False)
        raise
    remember_call(snapshot, entry.name, arguments, context.time_ms, ok=not context.command_failure)
    check_changed_paths(
        diff_files(snapshot.files, context.files),
        snapshot.state.phase.kind,
        entry.owns,
        is_shell=entry.group == "shell",
    )
    vote = guards.judge_change(entry.name, arguments, context.files)
    if vote.guard:
        raise CallRefused(vote, has_run=True)
    added, snapshot.files = guards.add_feedback(entry.name, arguments, text, context.files)
    snapshot.reads = context.reads
    snapshot.state = context.state
    for image in context.images:
        snapshot.keep_image(image.data, image.mime, image.pointer, image.tokens)
    note = guards.rewrite_note
    return ToolOutcome(
        f"{note}\n{text}" if note else text, added, context.files, context.command_failure
    )


def _tool_context(snapshot: Snapshot, request: ToolRequest, guards: CallGuards) -> ToolContext:
    run_id = activity.info().workflow_run_id or ""
    key = request.effect_key or tool_effect_key(run_id, request.commit, request.call)
    if request.pending:
        key = request.pending.key
    return replace(
        ToolContext.of(snapshot, guards.root, key),
        pending=request.pending,
        gives_up=request.gives_up,
        activity_id=activity.info().activity_id,
        attempt=activity.info().attempt if snapshot.config.workspace.remote else 1,
        has_run=request.has_run,
        waited_seconds=request.waited_seconds or 0,
        answer=delegate_call_answer(snapshot.checkpoints.files(request.helper))
        if request.helper
        else "",
    )


def _run_tool_with_typed_failures(
    entry: Tool, context: ToolContext, arguments: dict[str, Any], snapshot: Snapshot
) -> str:
    """Run the tool; turn trouble that the model cannot fix into a typed failure."""
    try:
        return run_tool_once(entry, context, arguments, ResultCache(snapshot.checkpoints.path))
    except (DependencyUnavailable, StoreUnavailableError) as error:
        raise typed_failure("Dependency", str(error), retry=may_retry_activity()) from error
    except OSError as error:
        if is_storage_failure(error):
            raise
        # The tool's own error: a refused connection is no failure of the workspaces root.
        what = f"{type(error).__name__}: {error}"
        raise typed_failure("Unforeseen", what[:1000], retry=may_retry_activity()) from error
    except ToolError:
        # Count what the refusal showed as read, or the same edit would be refused again.
        snapshot.reads = context.reads
        raise


RHYTHM = frozenset(("todos", "job", "traces", "discovery", "skills", "verdict"))
"""Groups of tools that only move the job along."""
LOOKING_PROGRAMS = frozenset(
    (
        *("[", "basename", "cal", "cat", "cd", "date", "df", "diff", "dirname", "du", "echo"),
        *("env", "exit", "expr", "false", "file", "find", "grep", "egrep", "fgrep", "rg", "head"),
        *("hostname", "id", "less", "ls", "more", "printf", "ps", "pwd", "sleep", "sort", "stat"),
        *("tail", "test", "tree", "true", "type", "uname", "uniq", "wc", "which", "whoami", ":"),
    )
)
"""Programs that change nothing, also where a command reaches more than the workspace."""
READING_PROGRAMS = LOOKING_PROGRAMS - {
    *("[", "diff", "egrep", "expr", "fgrep", "file", "find", "grep", "rg", "stat", "test", "uniq"),
    "wc",
}
"""Those of which no result can be told that is not in what they read."""
COMMAND_CHARACTERS = 80


def note_seen_work(
    state: JobState,
    entry: Tool,
    arguments: dict[str, Any],
    changes: Sequence[Change],
    shell: ShellConfig,
    *,
    failed_command: bool,
) -> None:
    """Record what a call that ran did, for the current todo and for its phase, without caches.

    A command in the sandbox that changed no file is a look, whatever its program is.
    """
    if entry.group in RHYTHM:
        return
    paths = [replace_surrogates(change.path) for change in changes]
    is_volatile = volatile_matcher(shell.volatile)
    files = [path for path in paths if is_work_path(path) and not is_volatile(path)]
    gone = {path for path, change in zip(paths, changes, strict=True) if change.new is None}
    command = one_line(replace_surrogates(str(arguments.get("command", ""))), COMMAND_CHARACTERS)
    ran = "" if failed_command else f"{command}: exit code 0" if command else entry.name
    has_effect = entry.has_effect
    if entry.group == "shell":
        is_confined = shell.sandbox == "bubblewrap" and not shell.network
        acts = bool(files) if is_confined else not _only_looks(str(arguments.get("command", "")))
        has_effect = acts and not failed_command
    if files or has_effect:
        for seen in (state.seen, state.phase_seen):
            seen.add_work(files, ran if has_effect else "", gone)
        return
    looked = command or next(
        (str(arguments[key]) for key in ("path", "url", "query") if arguments.get(key)), entry.name
    )
    kept = [path for path in paths if path.startswith("notes/")]
    for seen in (state.seen, state.phase_seen):
        # A failure may be what came of it: "reproduced".
        has_run = bool(command) and not _only_looks(str(arguments["command"]), READING_PROGRAMS)
        seen.add_look(replace_surrogates(looked), ran if command else "", ran=has_run)
        seen.kept = list(dict.fromkeys([*seen.kept, *kept]))[-MOST_SEEN:]


def _only_looks(command: str, looking: Set[str] = LOOKING_PROGRAMS) -> bool:
    """Return whether each program of a command is one that changes nothing; git by its word, and
    any that only says its version.
    """
    programs = simple_commands(command)
    looks = {"status", "diff", "log", "show", "blame", "branch", "ls-files", "grep", "rev-parse"}
    return all(
        words[0].rpartition("/")[2] in looking
        or words[1:] in (["--version"], ["-V"], ["--help"], ["version"])
        or (words[0].rpartition("/")[2] == "git" and any(word in looks for word in words[1:3]))
        for words in programs
    )


SAME_RESULT = "The same result as that of {call} above, to the letter; nothing of it has changed."


def tool_call_commit_time(request: ToolRequest) -> int:
    """Return the commit's date; a local activity uses that of the last regular one."""
    return request.at if activity.info().is_local else activity_schedule_seconds()


def record_call_result(
    snapshot: Snapshot,
    request: ToolRequest,
    story: str,
    text: str,
    report: GuardOutcome | None = None,
    *,
    failed: bool = False,
    added: str = "",
    changed: bool = False,
    polls: bool = False,
) -> ToolReply:
    """Append the result of a call to the conversation, and save the checkpoint."""
    # A server's answer may contain the key that was sent to it.
    text = hide_credentials(text)
    content = truncate_result(
        text + hide_credentials(added), snapshot.config.limits.result_characters
    )
    if not failed and (
        same := find_same_result(snapshot.conversation, content, snapshot.view.first_uncleared)
    ):
        content = SAME_RESULT.format(call=same)
    snapshot.conversation = snapshot.conversation.append(
        tool_result_message(
            request.step, request.call, f"{ERROR_PREFIX}{content}" if failed else content
        )
    )
    snapshot.append_images()
    guarded = report.model_dump(exclude_unset=True) if report else {}
    time_ms = tool_call_commit_time(request)
    commit = snapshot.save(story, time_ms)
    mark = fingerprints.poll_fingerprint(text) if polls else fingerprints.result_fingerprint(text)
    reply = ToolReply(commit=commit, at=time_ms, ok=not failed, fingerprint=mark, **guarded)
    if changed:
        reply.changed = True
    reply.context = count_prompt_tokens(snapshot)
    if failed:
        if request.refused_by:
            reply.refused_by = request.refused_by
        reply.error_fingerprint = fingerprints.error_fingerprint(text)
        reply.error = result_error_line(text)
    return reply
