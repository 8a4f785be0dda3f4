"""Runs commands with which the system verifies work: `done_when` of todos, and verifiers.

They run in the sandbox on the checkpoint's files; their changes are discarded.
"""

import shlex
from dataclasses import dataclass

from activities.checkpoints import Files, FilesError, Root
from activities.commands import sandbox
from activities.commands.private_folder import private_folder
from activities.commands.sealed_files import sealed_folders, shows_output
from activities.commands.setup_layer import layer_folders
from config.schema.agent import AgentConfig

SHOWN_CHARACTERS = 1500
"""Characters shown of the end of the output, where the reason usually is."""


@dataclass(frozen=True)
class Finding:
    text: str
    decided: bool = True
    """False if the command was stopped or could not be run, so that it proves nothing."""


@dataclass(frozen=True)
class CheckRunner:
    root: Root
    job: str
    config: AgentConfig
    by_person: bool = False
    """Whether the configuration has the command; it then sees every sealed file."""

    def run_check(self, files: Files, command: str, seconds: int) -> Finding | None:
        """Return why the command did not exit with 0, or None; OSError if the machine failed."""
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


FILTERS = frozenset(
    ("cat", "column", "cut", "fold", "nl", "rev", "sort", "tac", "tail", "tee", "tr", "uniq", "wc")
)
"""Programs that read their whole input and end with 0 whatever it says. `head` and `sed` may stop
reading early, which would make the command before them fail."""
_SUBSTITUTIONS = ("$(", "`")
_OPERATORS = ";&|()\n"


def with_pipefail(command: str) -> str:
    """Return the shell line for a check, in which the failure of any part of a pipe counts.

    It is the command itself unless every pipe ends in a filter: after `… | grep -q refused` the
    exit code is a statement about the output, and the command before it may well fail. The same
    is true of a pipe whose output is substituted, as in `test $(grep refused log | wc -l) = 0`.
    """
    if any(mark in command for mark in _SUBSTITUTIONS):
        return command
    ends = _pipeline_end_programs(command)
    if not ends or not all(end in FILTERS for end in ends):
        return command
    return f"exec bash --noprofile --norc -o pipefail -c {shlex.quote(command)}"


def simple_commands(command: str) -> list[list[str]]:
    """Return the words of each simple command, in order; none if the shell cannot read the line."""
    commands, words = list[list[str]](), list[str]()
    for word in [*_shell_words(command), ";"]:
        if set(word) <= set(_OPERATORS):
            commands += [words] if words else []
            words = []
        else:
            words.append(word)
    return commands


def _shell_words(command: str) -> list[str]:
    lexer = shlex.shlex(command, posix=True, punctuation_chars=_OPERATORS)
    lexer.commenters, lexer.whitespace, lexer.whitespace_split = "", " \t\r", True
    try:
        return list(lexer)
    except ValueError:
        # The shell says what is wrong.
        return []


def _pipeline_end_programs(command: str) -> list[str]:
    words = _shell_words(command)
    ends, end, is_piped, is_first = list[str](), "", False, True
    for word in [*words, ";"]:
        if set(word) <= set(_OPERATORS):
            # A pipe may follow a closing bracket without a space.
            is_pipe = "|" in word and "||" not in word
            ends += [end] if is_piped and not is_pipe else []
            is_piped, is_first = is_pipe, True
        elif is_first:
            end, is_first = word.rpartition("/")[2], False
    return ends
