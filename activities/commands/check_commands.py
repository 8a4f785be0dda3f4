"""Runs commands with which the system verifies work: `done_when` of todos, and verifiers.

They run in the sandbox on the checkpoint's files; their changes are discarded.
"""

from __future__ import annotations

from dataclasses import dataclass

from activities.checkpoints import Files, FilesError, Root
from activities.commands import sandbox
from activities.commands.pipelines import with_pipefail
from activities.commands.private_folder import private_folder
from activities.commands.sealed_files import sealed_folders, shows_output
from activities.commands.setup_layer import layer_folders
from config.schema.agent import AgentConfig

SHOWN_CHARACTERS = 1500
"""Characters shown of the end of the output, where the reason usually is."""


@dataclass(frozen=True)
class Finding:
    """Why a check did not pass."""

    text: str
    decided: bool = True
    """False if the command was stopped or could not be run, so that it proves nothing."""


@dataclass(frozen=True)
class CheckRunner:
    """Runs checks of one job."""

    root: Root
    job: str
    config: AgentConfig
    by_person: bool = False
    """Whether the configuration has the command; it then sees every sealed file."""

    def run_check(self, files: Files, command: str, seconds: int) -> Finding | None:
        """Return why the command did not exit with 0; None if it did.

        Raises:
            OSError: The machine failed, not the command.
        """
        try:
            with private_folder(files, self.root, self.job) as private:
                shell = self.config.shell
                sealed = [s for s in self.config.sealed if s.done_when or self.by_person]
                folders = {
                    **layer_folders(files, self.root, self.job, shell),
                    **sealed_folders(sealed),
                }
                line = with_pipefail(command)
                ended = sandbox.run_sandboxed_command(line, private.path, shell, seconds, folders)
        except sandbox.SandboxUnavailable as problem:
            return Finding(f"It could not be run. {problem}", decided=False)
        except FilesError as problem:
            return Finding(f"It could not be run. {problem}")
        if ended.exit_code == 0:
            return None
        how = ended.trouble or f"exit code {ended.exit_code}"
        cannot_run = ended.exit_code in (126, 127)
        if cannot_run:
            how += ", which says that a program could not be run"
        text = ended.output.strip()
        if not shows_output(sealed) and not cannot_run:
            text = ""
        shown = f"…{text[-SHOWN_CHARACTERS:]}" if len(text) > SHOWN_CHARACTERS else text
        printed = f" and printed:\n{shown}" if shown else " without output."
        return Finding(f"It failed ({how}){printed}", decided=not (ended.trouble or cannot_run))
