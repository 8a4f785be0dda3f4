"""Bubblewrap's command line: what a command in the sandbox sees, and as whom it runs."""

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TypedDict

from activities.commands.host_proxy import proxy_variables
from activities.commands.system_calls import system_call_filter
from activities.commands.user_namespace import (
    NOBODY,
    SANDBOX_USER,
    give_to_nobody,
    is_machine_root,
    nobody_namespace,
)
from activities.redaction.credentials import credential_value
from config.schema.shell import CACHE, LAYER, ShellConfig
from protocol.short_text import fork_command

SANDBOX_WORKSPACE = "/workspace"
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


class Owner(TypedDict, total=False):
    user: int
    group: int
    extra_groups: list[int]


def sandbox_python() -> str:
    """Return the Python that opens the proxy's socket: the system's, or the worker's."""
    worker = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    system = Path("/usr/bin/python3")
    return str(system if system.exists() and not worker.is_relative_to("/usr") else worker)


def sandbox_path(config: ShellConfig) -> str:
    layer = [f"{LAYER}/bin"] if config.setup else []
    return ":".join([*config.path, *layer, PATH])


def bubblewrap_command(
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

    Raises OSError: The worker is root, and cannot run commands as another user; or there is no
    filter of system calls for this machine.
    """
    passed = [_pass_data(stack, system_call_filter())]
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
    variables["PATH"] = sandbox_path(config)
    variables |= {name: f"{CACHE}/{place}" for name, place in config.caches.items()}
    if config.hosts:
        variables |= proxy_variables(config.hosts)
    for name, value in variables.items():
        arguments += ["--setenv", name, value]
    passed.append(_pass_data(stack, command_variable_arguments(config)))
    arguments += ["--args", str(passed[-1])]
    arguments += _system_mounts(stack, passed, config)
    arguments += _folder_mounts(folder, config, extra_folders or {}, layer, cache)
    return [*arguments, "--remount-ro", "/", "--chdir", SANDBOX_WORKSPACE, "--"], passed


def command_owner() -> Owner:
    """Return as whom bubblewrap runs. Its processes can only end each other as the same user."""
    if not is_machine_root():
        return {}
    return {"user": NOBODY, "group": NOBODY, "extra_groups": []}


def _pass_data(stack: ExitStack, data: bytes) -> int:
    descriptor = os.memfd_create("data")
    stack.callback(os.close, descriptor)
    os.write(descriptor, data)
    os.lseek(descriptor, 0, os.SEEK_SET)
    return descriptor


def _system_mounts(stack: ExitStack, passed: list[int], config: ShellConfig) -> list[str]:
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


def _folder_mounts(
    folder: Path,
    config: ShellConfig,
    extra_folders: Mapping[str, Path],
    layer: Path | None,
    cache: Path | None,
) -> list[str]:
    arguments = []
    # Mount it after /tmp, which would otherwise hide a Python below the host's /tmp.
    if config.hosts and not Path(sandbox_python()).is_relative_to("/usr"):
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
    arguments += ["--bind", str(folder), SANDBOX_WORKSPACE]
    for host_path, place in shown_layer_folders(folder, config, extra_folders):
        inside = f"{SANDBOX_WORKSPACE}/{place.relative_to(folder)}"
        arguments += ["--ro-bind", str(host_path), inside]
    return arguments


def shown_layer_folders(
    folder: Path, config: ShellConfig, extra_folders: Mapping[str, Path]
) -> Iterator[tuple[Path, Path]]:
    """Yield the layer's folders that the workspace shows, each with its free place there."""
    for inside, name in config.setup_shows.items() if LAYER in extra_folders else ():
        host_path, place = extra_folders[LAYER] / name, folder / inside
        # A command may have put a link where the folder was.
        is_within = place.parent.resolve() == folder.resolve() / Path(inside).parent
        if (
            host_path.is_dir()
            and is_within
            and place.parent.is_dir()
            and not os.path.lexists(place)
        ):
            yield host_path, place


def missing_variables(config: ShellConfig) -> dict[str, str]:
    """Return the variables of commands whose value the worker lacks, with the worker's names."""
    sources = config.environment.items()
    return {name: source for name, source in sources if not credential_value(source)}


def missing_variable(config: ShellConfig) -> str | None:
    """Return which worker variable is missing and what to do, or None."""
    for name, source in missing_variables(config).items():
        return (
            f"shell.environment takes {name} from the worker's variable {source}, which is not "
            f"set or empty. Set {source} where workers start, or take {name} out of "
            "shell.environment; a job under way needs a fork for that: "
            f"{fork_command('shell.environment={…}')}"
        )
    return None


def read_variables(config: ShellConfig) -> dict[str, str]:
    """Return the variables of commands; from now on their values are redacted."""
    return {name: credential_value(source) or "" for name, source in config.environment.items()}


def command_variable_arguments(config: ShellConfig) -> bytes:
    """Return `--setenv` arguments, read from a descriptor since users can see command lines."""
    return b"".join(
        b"--setenv\0" + name.encode() + b"\0" + os.fsencode(value) + b"\0"
        for name, value in read_variables(config).items()
    )
