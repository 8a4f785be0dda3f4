"""A job's layer: files installed by its `shell.setup` commands, outside its checkpoints.

A layer is identified by its content: the commands, the sandbox settings and the input files that
the configuration names. Each host builds it once; changed content gives another layer. Commands
read it at `/layer`.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path

from activities.checkpoints import Files, Root
from activities.checkpoints.locks import file_lock
from activities.checkpoints.removal import make_removable
from activities.checkpoints.volatile_paths import volatile_matcher
from activities.commands import sandbox
from activities.commands.cache_folder import cache_folder
from activities.commands.private_folder import private_path
from config.schema.shell import LAYER, ShellConfig
from protocol.short_text import as_sentence, fork_command, one_line, shorten_to_end

MAX_SHOWN = 1500
MAX_LAST = 160


class SetupFailed(sandbox.SandboxUnavailable):
    """A command of `shell.setup` failed; the message says which one and what it printed."""


def layer_folders(files: Files, root: Root, job: str, config: ShellConfig) -> Mapping[str, Path]:
    """Return the layer's folder by its path in the sandbox, building it if needed; empty without
    setup.

    Raises SetupFailed, SandboxUnavailable, OSError.
    """
    if not config.setup:
        return {}
    inputs = _read_setup_files(files, config.setup_inputs)
    layers = private_path(root, job) / "layers"
    place = layers / _layer_key(config, inputs)
    layers.mkdir(parents=True, exist_ok=True)
    with file_lock(layers / f"{place.name}.lock", seconds=config.seconds + 60):
        if not (place / "ready").exists():
            # A killed attempt may have left an incomplete layer.
            make_removable(place)
            shutil.rmtree(place, ignore_errors=True)
            seen = _read_setup_files(files, config.setup_sees) | inputs
            network = config.network if config.setup_network is None else config.setup_network
            online = config.model_copy(update={"network": network})
            with cache_folder(root, job, config, "setup") as cache:
                _build_layer(place, online, seen, cache, job)
            (place / "ready").touch()
    return {LAYER: place / "layer"}


def _read_setup_files(files: Files, patterns: list[str]) -> dict[str, bytes]:
    if not patterns:
        return {}
    is_input = volatile_matcher(patterns)
    entries = [each for each in files.walk() if each.kind == "file" and is_input(each.path)]
    return {entry.path: files.read_entry(entry) for entry in entries}


def _layer_key(config: ShellConfig, inputs: dict[str, bytes]) -> str:
    relevant = config.model_dump_json(
        include={"setup", "setup_inputs", "environment", "readable", "path"}
    )
    digest = hashlib.sha256(relevant.encode())
    for path, data in sorted(inputs.items()):
        digest.update(f"\0{path}\0{hashlib.sha256(data).hexdigest()}".encode())
    return digest.hexdigest()[:32]


def _build_layer(
    place: Path, config: ShellConfig, inputs: dict[str, bytes], cache: Path | None, job: str
) -> None:
    layer, workspace = place / "layer", place / "inputs"
    layer.mkdir(parents=True)
    workspace.mkdir()
    for path, data in inputs.items():
        target = workspace / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)
    for command in config.setup:
        ended = sandbox.run_sandboxed_command(
            command, workspace, config, config.seconds, layer=layer, cache=cache, watched=place
        )
        if ended.exit_code != 0:
            raise SetupFailed(_setup_failure_text(command, ended, config, job))
    make_removable(workspace)
    shutil.rmtree(workspace, ignore_errors=True)


def _setup_failure_text(
    command: str, ended: sandbox.CommandResult, config: ShellConfig, job: str
) -> str:
    """Return a first line with the last error and the remedy, and below it the output's end."""
    how = ended.trouble or f"exit code {ended.exit_code}"
    network = "shell.network" if config.setup_network is None else "shell.setup_network"
    if ended.refused:
        how += f"; {network} refused {', '.join(ended.refused)}"
    output = ended.output.strip()
    last = one_line(output.splitlines()[-1], MAX_LAST) if output else ""
    fork = fork_command('shell.setup=["…"]', job)
    return (
        f"The command `{one_line(command, 200)}` of shell.setup failed ({how})"
        f"{f': {as_sentence(last)}' if last else '.'} Mend what it installs from. The job keeps "
        f"shell.setup and {network} as they were at its start; a fork can set others: {fork}."
        f"\nIt printed:\n{shorten_to_end(output, MAX_SHOWN) or 'nothing'}"
    )
