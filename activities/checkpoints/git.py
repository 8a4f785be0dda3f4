"""The `git` program, for what goes over a wire.

libgit2 speaks to remotes too, but knows neither the credential helpers, nor the ssh configuration,
proxies and certificates that people have set up for git on a worker's host; and it would have to
read our journal through Python. So remotes are git's own business, and all else is libgit2's.
"""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from activities.checkpoints.errors import GitNotInstalled, RemoteUnavailable
from activities.redaction.secrets import redact
from protocol.text import one_line

WATCH_SECONDS = 0.5
COMMAND_SECONDS = 600
"""Longest time of one command. A link that carries nothing is given up much sooner."""
_OPTIONS = (
    # A repository on a shared volume may belong to another user id, as in `repository`.
    *("-c", "safe.directory=*"),
    *("-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=30"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    # Few objects come as a pack too: loose ones would stay loose for ever.
    *("-c", "fetch.unpackLimit=1", "-c", "protocol.version=2"),
)
_PROTOCOLS = "file:git:http:https:ssh"
_NO_SSH = ("file://", "git://", "http://", "https://")
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=10"
"""Nobody is asked, no empty passwords are tried, and a dead link is given up as with HTTP."""
_NOT_READ = "fatal: Could not read from remote repository."
_NOBODY_ASKED = "terminal prompts disabled"


def run_git(
    repository: Path | None,
    *arguments: str,
    objects: Path | None = None,
    seconds: float = COMMAND_SECONDS,
    variables: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
) -> str:
    """Run one git command; gives what it printed.

    Args:
        repository: The one it is about, if it is about one.
        objects: A further folder of objects that git may read.
        seconds: Time limit.
        variables: Further variables of its environment.
        watch: Called while it runs; what it raises ends the command.

    Raises:
        GitNotInstalled: the program is not installed.
        RemoteUnavailable: it failed, with its last words.
    """
    about = ["--git-dir", str(repository)] if repository else []
    try:
        process = subprocess.Popen(
            ["git", *_OPTIONS, *about, *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_git_environment(objects) | _ssh_environment(arguments) | dict(variables or {}),
            # Without a terminal nobody is asked for a password; and all it starts can be ended.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise GitNotInstalled(
            "git repositories elsewhere need the program git, which this host lacks: install it"
        ) from None
    with process:
        try:
            stdout, stderr = _output_of(process, seconds, watch)
        except BaseException as problem:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(problem, subprocess.TimeoutExpired):
                raise RemoteUnavailable(f"no answer within {seconds:g} s") from None
            raise
    if process.returncode:
        raise RemoteUnavailable(
            _error_summary(stderr.decode(errors="replace")), stdout.decode(errors="replace")
        )
    return stdout.decode(errors="replace")


def _output_of(
    process: subprocess.Popen[bytes], seconds: float, watch: Callable[[], None] | None
) -> tuple[bytes, bytes]:
    """What a command printed, looked after while it runs."""
    ends = time.monotonic() + seconds
    while watch:
        watch()
        try:
            return process.communicate(timeout=min(WATCH_SECONDS, max(0, ends - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= ends:
                raise
    return process.communicate(timeout=seconds)


def _git_environment(objects: Path | None) -> dict[str, str]:
    # What points a git at another repository, as inside of hooks, is not meant for ours.
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
    # A desktop's window for passwords, which would wait for somebody.
    window = ("SSH_ASKPASS", "SSH_ASKPASS_REQUIRE")
    variables = {
        name: value
        for name, value in os.environ.items()
        if name not in (*elsewhere, *window)
        and not name.startswith(("GIT_OBJECT_", "GIT_ALTERNATE_"))
    }
    variables |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": _PROTOCOLS, "LC_ALL": "C"}
    if objects:
        path = str(objects).replace("\\", "\\\\").replace('"', '\\"')
        variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{path}"'
    return variables


def _ssh_environment(arguments: Sequence[str]) -> dict[str, str]:
    """How git is to call ssh: as it is set up, and without questions."""
    if any(argument.startswith(_NO_SSH) for argument in arguments):
        return {}
    command = os.environ.get("GIT_SSH_COMMAND", "").strip() or _git_setting("core.sshCommand")
    if not command and os.environ.get("GIT_SSH"):
        return {}
    command = command or "ssh"
    if Path(command.split()[0]).name != "ssh":
        return {}  # another program, with other options
    # Of two values ssh takes the first, so what is set up counts.
    return {"GIT_SSH_COMMAND": f"{command} {_SSH_OPTIONS}"}


def _git_setting(name: str) -> str:
    process = subprocess.run(
        ["git", "config", "--get", name],
        cwd="/", env=_git_environment(None), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return process.stdout.strip()


def _error_summary(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    error_lines = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    if error_lines[:1] == [_NOT_READ]:
        # What ssh said stands before it, after banners and warnings in frames.
        ssh_lines = [line for line in lines[: lines.index(_NOT_READ)] if line[0] not in "@*"]
        error_lines = ssh_lines[-2:] or error_lines
    words = (
        one_line(redact(" ".join((error_lines or lines)[:2])), 300) or "git failed and said nothing"
    )
    return words.replace(_NOBODY_ASKED, "this worker's git has no credentials that are taken there")
