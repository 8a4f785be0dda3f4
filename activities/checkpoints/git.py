"""The `git` program, for what goes over a wire.

libgit2 speaks to remotes too, but knows neither the credential helpers, nor the ssh configuration,
proxies and certificates that people have set up for git on a worker's host; and it would have to
read our journal through Python. So remotes are git's own business, and all else is libgit2's.
"""

import os
import signal
import subprocess
from pathlib import Path

from activities.checkpoints.errors import NoGit, RemoteAway

SECONDS = 600
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


def git(
    repository: Path | None, *arguments: str, objects: Path | None = None, seconds: float = SECONDS
) -> str:
    """Run one git command; gives what it printed.

    Args:
        repository: The one it is about, if it is about one.
        objects: A further folder of objects that git may read.
        seconds: Time limit.

    Raises:
        NoGit: the program is not installed.
        RemoteAway: it failed, with its last words.
    """
    about = ["--git-dir", str(repository)] if repository else []
    try:
        process = subprocess.Popen(
            ["git", *_OPTIONS, *about, *arguments],
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=_environment(objects),
            # Without a terminal nobody is asked for a password; and all it starts can be ended.
            start_new_session=True,
        )
    except FileNotFoundError:
        raise NoGit(
            "workspace.remote needs the program git, which this worker's host lacks: install it"
        ) from None
    with process:
        try:
            told, error = process.communicate(timeout=seconds)
        except BaseException as problem:
            os.killpg(process.pid, signal.SIGKILL)
            if isinstance(problem, subprocess.TimeoutExpired):
                raise RemoteAway(f"no answer within {seconds:g} s") from None
            raise
    if process.returncode:
        raise RemoteAway(_last_words(error.decode(errors="replace")), told.decode(errors="replace"))
    return told.decode(errors="replace")


def _environment(objects: Path | None) -> dict[str, str]:
    # What points a git at another repository, as inside of hooks, is not meant for ours.
    elsewhere = ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_NAMESPACE")
    held = {
        name: value
        for name, value in os.environ.items()
        if name not in elsewhere and not name.startswith(("GIT_OBJECT_", "GIT_ALTERNATE_"))
    }
    held |= {"GIT_TERMINAL_PROMPT": "0", "GIT_ALLOW_PROTOCOL": _PROTOCOLS, "LC_ALL": "C"}
    if objects:
        path = str(objects).replace("\\", "\\\\").replace('"', '\\"')
        held["GIT_ALTERNATE_OBJECT_DIRECTORIES"] = f'"{path}"'
    return held


def _last_words(text: str) -> str:
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    telling = [line for line in lines if line.startswith(("fatal:", "error:", "remote:"))]
    return " ".join((telling or lines)[:2])[:300] or "git failed and said nothing"
