"""Commands, run in a sandbox on a private copy of the workspace."""

import json
import shlex
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from pydantic import Field
from temporalio.exceptions import ApplicationError

from activities.checkpoints import CheckpointMissing, Files
from activities.commands import sandbox
from activities.commands.cache_folder import cache_folder
from activities.commands.check_commands import with_pipefail
from activities.commands.private_folder import private_folder
from activities.commands.setup_layer import SetupFailed, layer_folders
from activities.job.result_cache import ResultCache
from activities.projects.project_remote import open_remote_project
from activities.projects.working_copy import WorkingCopyOrigin, working_copy_git
from activities.text.safe_text import cut_middle
from activities.toolkit import effects
from activities.toolkit.path_ownership import restore_owned_paths
from activities.toolkit.registry import tool
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import DependencyUnavailable, ToolError
from protocol.short_text import first_few

FOLDER = "commands/"
LOG = f"{FOLDER}log.jsonl"
SHOWN_CHARACTERS = 8000
"""Characters of output in a result; a few screens of text."""
END_CHARACTERS = 200
"""Characters kept from the output's end; test runners summarise there."""
MAX_NAMED = 10
SUCCESS = "Exit code 0."
_NAME_WHAT_IS_LEFT = """\
/bin/sh -c {command}
code=$?
left=
for place in /proc/[0-9]*; do
  read -r id name state rest 2>/dev/null < "$place/stat" || continue
  case $id:$state in 1:*|$$:*|*:Z) continue ;; esac
  name=${{name#(}}
  [ ${{#left}} -lt 100 ] && left="$left ${{name%)}}"
done
[ "$left" ] && printf '\\n[Ended with this command, since nothing outlives it:%s]\\n' "$left"
exit $code
"""
"""A command, after which the processes that it leaves running are named.

The kernel ends them when the sandbox ends. A model that does not know waits for them in vain.
"""


@tool(
    "shell", effect="writes", phases=("tactical",), local=False, seconds=3700, owns=("commands/",)
)
def run_command(
    context: ToolContext,
    command: Annotated[str, Field(min_length=1, max_length=20_000, description="For /bin/sh.")],
    timeout: Annotated[
        int | None, Field(ge=1, description="Seconds after which it is ended.")
    ] = None,
) -> str:
    """Run a shell command in a sandbox, in the top folder of the workspace.

    Gives the exit code and the output. What it changes in the workspace is kept, /tmp is not, and
    nothing it leaves running outlives it. A failing program is not hidden by a filter such as tail
    after it. There is no network unless the job's configuration
    allows it. Output too long to show is in a file under commands/. Files that are not yours to
    write are put back as they were. In the folder of a project or repository git can be read
    (status, diff, log, blame, show); the system makes the commits.
    """
    config = context.config.shell
    seconds = timeout or config.seconds
    if seconds > config.seconds:
        raise ToolError(f"timeout may be at most {config.seconds} seconds here.")
    if "\0" in command:
        raise ToolError("command holds a NUL character, which no shell takes; write \\0 in it.")

    run = partial(_run_sandboxed, context, command, seconds)
    if config.network:
        results = ResultCache(context.files.store.path)
        text, context.files = effects.run_effect_once(
            results,
            context.key,
            context.files,
            run,
            activity_id=context.activity_id,
            attempt=context.attempt,
            has_run=context.has_run,
            # If the worker was killed during setup, the command has not begun.
            prepare=partial(_build_command_layer, context) if config.setup else None,
        )
    else:
        text, context.files = run()
    if not text.startswith(SUCCESS):
        context.command_failure = text.partition(". ")[0].partition("\n")[0].rstrip(".")
    return text


def _build_command_layer(context: ToolContext) -> Mapping[str, Path]:
    shell = context.config.shell
    try:
        return layer_folders(context.files, context.root, context.job, shell)
    except SetupFailed as error:
        if shell.setup_inputs:
            # The agent may have written the inputs and can correct them.
            raise ToolError(str(error)) from error
        raise DependencyUnavailable(str(error)) from error
    except sandbox.SandboxUnavailable as error:
        raise DependencyUnavailable(str(error)) from error


def _fetch_git_for_shell_command(context: ToolContext, place: WorkingCopyOrigin | None) -> None:
    remote = context.config.workspace.remote
    if place is not None and remote:
        # Without it a command has the files, and no git.
        with suppress(ApplicationError, CheckpointMissing):
            open_remote_project(context.root, place.owner, remote, place.commit)


def _run_sandboxed(context: ToolContext, command: str, seconds: int) -> tuple[str, Files]:
    before = context.files
    layer = _build_command_layer(context)
    try:
        with private_folder(before, context.root, context.job) as private:
            shell = context.config.shell
            confined = shell.sandbox == "bubblewrap"
            place = WorkingCopyOrigin.from_links(context.project_link, context.repository)
            _fetch_git_for_shell_command(context, place)
            with (
                working_copy_git(context.root, place, private.path, confined=confined) as shown,
                cache_folder(context.root, context.job, shell, "commands") as cache,
            ):
                folders = {**(shown or {}), **layer}
                line = with_pipefail(command)
                script = _NAME_WHAT_IS_LEFT.format(command=shlex.quote(line))
                ended = sandbox.run_sandboxed_command(
                    # Outside of the sandbox /proc shows the processes of the whole machine.
                    script if confined else line,
                    private.path,
                    shell,
                    seconds,
                    folders,
                    cache=cache,
                )
            after = private.read_back(hide_credentials=bool(shell.environment))
            notes, hidden = private.notes, private.hidden
    except sandbox.SandboxUnavailable as error:
        raise DependencyUnavailable(str(error)) from error
    if hidden:
        notes = [*notes, f"Credentials became [redacted] in: {first_few(hidden, MAX_NAMED)}"]
    if ended.refused:
        notes = [*notes, f"shell.network refused: {first_few(ended.refused, MAX_NAMED)}"]
    after, put_back = restore_owned_paths(context.state.phase.kind, before, after)
    if put_back:
        back = first_few(put_back, MAX_NAMED)
        notes = [*notes, f"Put back as they were, since they are not yours to write: {back}"]
    after, path = _store_command_output(context, after, ended)
    entry = {
        "step": context.state.step,
        "phase": context.state.phase.number,
        "command": command,
        "exit_code": ended.exit_code,
        "trouble": ended.trouble,
        "bytes": ended.size,
        "end": ended.output.rstrip()[-END_CHARACTERS:],
        "output": path,
    }
    log = after.read(LOG) if after.entry(LOG) else b""
    after = after.write(LOG, log + json.dumps(entry, ensure_ascii=False).encode() + b"\n")
    return _command_result_text(ended, path, notes), after


def _store_command_output(
    context: ToolContext, files: Files, ended: sandbox.CommandResult
) -> tuple[Files, str]:
    if len(ended.output) <= SHOWN_CHARACTERS:
        return files, ""
    step = context.state.step
    names = [f"{FOLDER}{step:06d}.txt", *(f"{FOLDER}{step:06d}-{n}.txt" for n in range(2, 1000))]
    path = next(name for name in names if files.entry(name) is None)
    return files.write(path, ended.output.encode()), path


def _command_result_text(ended: sandbox.CommandResult, path: str, notes: list[str]) -> str:
    head = f"Ended: {ended.trouble}." if ended.trouble else f"Exit code {ended.exit_code}."
    text = ended.output
    if path:
        text = cut_middle(
            text, SHOWN_CHARACTERS, f"[{{gone}} characters left out; all of it: {path}]"
        )
    body = f"\n{text.rstrip()}" if text.strip() else " No output."
    return head + body + "".join(f"\n[{note}]" for note in notes[:MAX_NAMED])
