"""The command `sandbox`: tries a command as those of an agent's jobs are run."""

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer
from temporalio.exceptions import ApplicationError

from cli.options import Folder, Ref, Repository, Set, Subfolder, TokenVariable
from cli.output import FAILED, OK, UserError, print_note, print_result
from cli.start.job_settings import parse_job_settings
from cli.start.repository_input import repository_input_fields
from config.agent_files import load_agent
from config.schema.agent import AgentConfig, ConfigError
from config.schema.shell import ShellConfig
from protocol.errors import Unavailable
from protocol.repository_link import FOLDER
from protocol.repository_start import RepositoryStart

JOB = "sandbox"


def sandbox(
    agent: Annotated[str, typer.Argument(help="Agent whose sandbox it is, such as mender.")],
    command: Annotated[
        list[str] | None,
        typer.Argument(help="Command to run, after `--`; without one, what a command may do."),
    ] = None,
    *,
    set: Set = None,
    repository: Repository = None,
    ref: Ref = None,
    folder: Folder = None,
    subfolder: Subfolder = "",
    token_variable: TokenVariable = None,
) -> int:
    """Run a command as the commands of an agent's jobs are run, without a job, server or model.

    It ends with the command's exit code. Set-up is run first. What the command changes is
    discarded. Example: `starter.py sandbox mender --folder . -- python3 -m pytest -q`.
    """
    begins_from = repository_input_fields(repository, ref, None, folder, subfolder, token_variable)
    try:
        config = load_agent(agent, parse_job_settings(set or []))
        if not command:
            print_result(_permissions(config.shell))
            return OK
        with TemporaryDirectory(prefix="sandbox-") as place:
            return _run(config, Path(place), begins_from, command)
    except (ConfigError, Unavailable, ApplicationError) as error:
        raise UserError(str(error)) from None


def _permissions(shell: ShellConfig) -> str:
    return f"""\
sandbox: {shell.sandbox}
network: {", ".join(shell.hosts) or ("all" if shell.network else "none")}
writes: the workspace and /tmp
reads: {", ".join(["the system's programs", *shell.readable])}
programs that come first: {", ".join(shell.path) or "none"}
variables: {", ".join(shell.environment) or "none"}
set-up: {"; ".join(shell.setup) or "none"}
limits: {shell.seconds} s, {shell.memory_bytes:,} bytes of memory, {shell.processes} processes, \
{shell.disk_bytes:,} bytes written"""


def _run(config: AgentConfig, place: Path, begins_from: dict[str, Any], command: list[str]) -> int:
    # The activities take a second to load.
    from activities.checkpoints import Files, Root, open_checkpoints  # noqa: PLC0415
    from activities.commands.private_folder import private_folder  # noqa: PLC0415
    from activities.commands.sandbox import run_sandboxed_command  # noqa: PLC0415
    from activities.commands.setup_layer import layer_folders  # noqa: PLC0415
    from activities.projects import project_repository, start_tests  # noqa: PLC0415
    from activities.source_repository import repository_bounds, repository_fetch  # noqa: PLC0415
    from activities.source_repository.staged_folder import stage_folder  # noqa: PLC0415

    root = Root.open(place / "root", create=True)
    files, inside = Files.empty(open_checkpoints(root, JOB, create=True).store), "."
    shells = [config.shell]
    if begins_from:
        start = RepositoryStart.model_validate(begins_from)
        bounds = repository_bounds.RepositoryBounds.of_agents(config)
        if start.folder:
            path = Path(start.folder).expanduser().resolve()
            start.folder = stage_folder(path, root.staged, bounds)
        origin = repository_fetch.fetch_pinned_repository(root, JOB, start, bounds)
        for note in origin.notes:
            print_note(note)
        fetched = project_repository.project_repository_path(root, JOB)
        repository = project_repository.ProjectRepository(fetched)
        files = repository.put_into(files, origin.commit, FOLDER)
        inside = "/".join(filter(None, (FOLDER, start.subfolder)))
        recipe = start_tests.shell_with_recipe(config, files, FOLDER, start.subfolder)
        shells += [recipe] if recipe.setup != config.shell.setup else []
    line = f"cd {shlex.quote(inside)} && {shlex.join(command)}"
    for shell in shells:
        if shell is not config.shell:
            print_note(f"once more, with what its files say: {'; '.join(shell.setup)}")
        with private_folder(files, root, JOB) as private:
            layer = layer_folders(files, root, JOB, shell)
            ended = run_sandboxed_command(line, private.path, shell, shell.seconds, layer)
        print_result(ended.output.rstrip())
        for host in ended.refused:
            print_note(f"shell.network refused: {host}")
        if ended.trouble:
            print_note(f"ended: {ended.trouble}")
        if ended.exit_code == 0:
            break
    return FAILED if ended.exit_code is None else ended.exit_code
