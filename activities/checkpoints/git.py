"""The `git` program, used for everything that goes over a network.

libgit2 can talk to remotes too, but ignores the credential helpers, ssh configuration, proxies and
certificates that are set up for git on a worker's host, and would read our journal through Python.
So the git program handles remotes, and libgit2 handles everything else.
"""

import os
import re
import shlex
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from activities.checkpoints.checkpoint_errors import GitNotInstalled, RemoteUnavailable
from activities.redaction.secrets import redact
from protocol.short_text import one_line

WATCH_SECONDS = 0.5
COMMAND_SECONDS = 600
"""Time limit of one command. A connection without traffic is given up much sooner."""
_NO_PROGRAMS = ("-c", f"core.hooksPath={os.devnull}", "-c", "core.fsmonitor=false")
_OPTIONS = (
    *_NO_PROGRAMS,
    *("-c", "http.lowSpeedLimit=1", "-c", "http.lowSpeedTime=30"),
    *("-c", "gc.auto=0", "-c", "maintenance.auto=false"),
    # Keep small fetches as packs too: nothing would ever pack loose objects.
    *("-c", "fetch.unpackLimit=1", "-c", "protocol.version=2"),
)
_PROTOCOLS = "file:git:http:https:ssh"
_NO_SSH = ("file://", "git://", "http://", "https://")
_LOCAL = "file://"
_FAR_SIDES = {"fetch": "upload-pack", "ls-remote": "upload-pack", "push": "receive-pack"}
"""Commands that reach a remote, and the program on its side. For others the settings of this
host's git do not count.
"""
_FAR_OPTIONS = (
    *_NO_PROGRAMS,
    *("-c", "core.alternateRefsCommand=", "-c", "receive.autogc=false"),
    # Otherwise a push may write into a work tree, through its filters.
    *("-c", "receive.denyCurrentBranch=refuse"),
)
_PLAIN = {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull}
_VARIABLES = re.compile(
    r"PATH|HOME|USER|LOGNAME|TMPDIR|XDG_(CONFIG_HOME|RUNTIME_DIR)|"
    r"SSH_(AUTH_SOCK|AGENT_PID)|DBUS_SESSION_BUS_ADDRESS|KRB5CCNAME|"
    r"(https?|all|no)_proxy|(HTTPS?|ALL|NO)_PROXY|(SSL_CERT|CURL_CA)_\w+|"
    r"GIT_(ASKPASS|EXEC_PATH|SSH|SSH_COMMAND|SSH_VARIANT|(SSL|HTTP|CONFIG|PROXY)_\w+)"
)
"""Variables that git gets: where programs are, how this host's git reaches others."""
_NAMED = re.compile(r"\$\{?([A-Za-z_]\w*)")
_SSH_OPTIONS = "-o BatchMode=yes -o ConnectTimeout=30 -o ServerAliveInterval=10"
"""Never prompt, never try empty passwords, and give up a dead connection as HTTP does."""
_NOT_READ = "fatal: Could not read from remote repository."
_NOBODY_ASKED = "terminal prompts disabled"


def run_git(
    repository: Path | None,
    *arguments: str,
    objects: Path | None = None,
    seconds: float = COMMAND_SECONDS,
    variables: Mapping[str, str] | None = None,
    watch: Callable[[], None] | None = None,
    stdin: bytes | None = None,
    errors: str = "replace",
) -> str:
    """Run one git command and return its output.

    Args:
        objects: An additional object folder that git may read.
        variables: Further variables of its environment.
        watch: Called while it runs; what it raises ends the command. Not together with `stdin`.
        errors: How bytes of its output that are not UTF-8 are decoded.

    Raises GitNotInstalled, RemoteUnavailable.
    """
    environment = _git_environment(objects)
    if _far_command(arguments):
        environment |= _git_ssh_environment(arguments) | _helper_environment(arguments)
    elif "--global" not in arguments:
        environment |= _PLAIN
    environment |= variables or {}
    with _start_git(repository, arguments, environment, reads=stdin is not None) as process:
        try:
            stdout, stderr = _read_git_output(process, seconds, watch, stdin)
        except BaseException as problem:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(problem, subprocess.TimeoutExpired):
                raise RemoteUnavailable(f"no answer within {seconds:g} s") from None
            raise
    if process.returncode:
        raise RemoteUnavailable(
            _git_error_summary(stderr.decode(errors="replace")), stdout.decode(errors="replace")
        )
    return stdout.decode(errors=errors)


def _start_git(
    repository: Path | None,
    arguments: Sequence[str],
    environment: Mapping[str, str],
    *,
    reads: bool,
) -> subprocess.Popen[bytes]:
    about = ["--git-dir", str(repository)] if repository else []
    try:
        return subprocess.Popen(
            ["git", *_OPTIONS, *about, *_with_far_side(arguments)],
            cwd="/",
            stdin=subprocess.PIPE if reads else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            # Without a terminal there is no password prompt, and the whole process group can be
            # ended.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise GitNotInstalled(
            "git repositories elsewhere need the program git, which this host lacks: install it"
        ) from None


def _far_command(arguments: Sequence[str]) -> str:
    return next((each for each in arguments if each in _FAR_SIDES), "")


def _read_git_output(
    process: subprocess.Popen[bytes],
    seconds: float,
    watch: Callable[[], None] | None,
    stdin: bytes | None,
) -> tuple[bytes, bytes]:
    ends = time.monotonic() + seconds
    while watch:
        watch()
        try:
            return process.communicate(timeout=min(WATCH_SECONDS, max(0, ends - time.monotonic())))
        except subprocess.TimeoutExpired:
            if time.monotonic() >= ends:
                raise
    return process.communicate(stdin, timeout=seconds)


def _with_far_side(arguments: Sequence[str]) -> list[str]:
    """Return a command that starts no program which the repository at a local address names."""
    command = _far_command(arguments)
    if not command or not any(each.startswith(_LOCAL) for each in arguments):
        return list(arguments)
    side = _FAR_SIDES[command]
    program = shlex.join(["git", *_FAR_OPTIONS, side])
    place = arguments.index(command) + 1
    return [*arguments[:place], f"--{side}={program}", *arguments[place:]]


def _git_environment(objects: Path | None) -> dict[str, str]:
    variables = {name: value for name, value in os.environ.items() if _VARIABLES.fullmatch(name)}
    variables |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": _PROTOCOLS, "LC_ALL": "C"}
    if objects:
        path = str(objects).replace("\\", "\\\\").replace('"', '\\"')
        variables["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{path}"'
    return variables


def _helper_environment(arguments: Sequence[str]) -> dict[str, str]:
    """Return the variables that this host's settings of git name, for its credential helpers."""
    if not any(each.startswith(("http://", "https://")) for each in arguments):
        return {}
    listed = _ask_git_config("--list", "-z")
    return {name: os.environ[name] for name in _NAMED.findall(listed) if name in os.environ}


def _git_ssh_environment(arguments: Sequence[str]) -> dict[str, str]:
    """Return the environment that makes git call ssh as configured, but without prompts."""
    if any(each.startswith(_NO_SSH) for each in arguments):
        return {}
    command = os.environ.get("GIT_SSH_COMMAND", "").strip() or (
        _ask_git_config("--get", "core.sshCommand").strip()
    )
    if not command and os.environ.get("GIT_SSH"):
        return {}
    command = command or "ssh"
    if Path(command.split()[0]).name != "ssh":
        return {}  # another program, with other options
    # Of two values ssh takes the first, so what is set up counts.
    return {"GIT_SSH_COMMAND": f"{command} {_SSH_OPTIONS}"}


def _ask_git_config(*arguments: str) -> str:
    process = subprocess.run(
        ["git", "config", *arguments],
        cwd="/", env=_git_environment(None), capture_output=True, text=True, check=False,
    )  # fmt: skip
    return process.stdout


def _git_error_summary(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    error_lines = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    if error_lines[:1] == [_NOT_READ]:
        # ssh's own message comes first, after banners and framed warnings.
        ssh_lines = [line for line in lines[: lines.index(_NOT_READ)] if line[0] not in "@*"]
        error_lines = ssh_lines[-2:] or error_lines
    words = (
        one_line(redact(" ".join((error_lines or lines)[:2])), 300) or "git failed and said nothing"
    )
    return words.replace(_NOBODY_ASKED, "this worker's git has no credentials that are taken there")
