"""Commands by which the system looks for itself: `done_when` of todos, and verifiers.

They run in the sandbox on the checkpoint's files; what they change is not kept.
"""

from __future__ import annotations

from dataclasses import dataclass

from activities.checkpoints import Files, Root
from activities.commands import sandbox
from activities.commands.private_folder import private_folder
from activities.commands.setup_layer import layer_folders
from config.schema.agent import AgentConfig

SHOWN_CHARACTERS = 1500
"""Characters of the output that a finding shows: its end, where the reason mostly is."""


@dataclass(frozen=True)
class Finding:
    """Why what a command checks does not hold."""

    text: str
    decided: bool = True
    """False where the command came to no end of its own, or could not be run: it says nothing of
    what it checks."""


@dataclass(frozen=True)
class CheckRunner:
    """What is needed to run them for one job."""

    root: Root
    job: str
    config: AgentConfig

    def run_check(self, files: Files, command: str, seconds: int) -> Finding | None:
        """What came of a command that did not exit with 0, or could not be run; else None.

        Raises OSError: the machine failed, not the command.
        """
        try:
            with private_folder(files, self.root, self.job) as private:
                shell = self.config.shell
                layer = layer_folders(files, self.root, self.job, shell)
                ended = sandbox.run_shell_command(command, private.path, shell, seconds, layer)
        except sandbox.SandboxUnavailable as problem:
            return Finding(f"It could not be run. {problem}", decided=False)
        if ended.exit_code == 0:
            return None
        how = ended.trouble or f"exit code {ended.exit_code}"
        cannot_run = ended.exit_code in (126, 127)
        if cannot_run:
            how += ", which says that a program could not be run"
        text = ended.output.strip()
        shown = f"…{text[-SHOWN_CHARACTERS:]}" if len(text) > SHOWN_CHARACTERS else text
        said = f" and printed:\n{shown}" if shown else " without output."
        return Finding(f"It failed ({how}){said}", decided=not (ended.trouble or cannot_run))
