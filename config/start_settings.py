"""Decides what a start may set, and from where it may take what it works on.

Whoever may start a job is no operator of the worker: the configuration decides what runs there,
which of its files are read, and where its keys go. Every way into a configuration passes here:
starts, projects, trials, forks, schedules, and settings of running jobs.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from config.schema.agent import AgentFile, ConfigError
from config.schema.model_settings import Embeddings, ModelConfig
from config.schema.notifications import Notify
from config.schema.signers import SignedApproval
from config.schema.start import ALL, HARMLESS, StartRights
from protocol.publishing import Publish
from protocol.repository_start import STAGED, RepositoryStart

WHERE = "in the worker's configuration (defaults.yaml of a folder that LONGHAUL_CONFIG names)"
_RUNS_CODE = "it names what runs on the worker"
_READS_FILES = "it names files of the worker"
_REACHES_OUT = "it decides what the worker's network and variables are open to"
_MOVES_DATA = "it decides where data and keys of the worker go"
_SAYS_WHO = "it decides whose approval counts"
_REASONS = {
    "signers": _SAYS_WHO,
    "hooks": _RUNS_CODE,
    "mcp": _RUNS_CODE,
    "skills": _READS_FILES,
    "sealed": _READS_FILES,
    "shell.sandbox": _RUNS_CODE,
    "shell.path": _RUNS_CODE,
    "shell.readable": _READS_FILES,
    "shell.network": _REACHES_OUT,
    "shell.setup_network": _REACHES_OUT,
    "shell.environment": _REACHES_OUT,
    "web.allow_private": _REACHES_OUT,
    "web.search": _MOVES_DATA,
    "workspace": _MOVES_DATA,
}
"""Keys that a start may not set unless they are named, each with the reason."""
_COMMANDS = ("tools", "verifiers", "tests", "todos", "shell.setup")
"""Keys that lead to commands, harmless only in a sandbox."""
SHARED = {
    ("model", "requests_per_minute"): (
        "requests_per_minute",
        "tokens_per_minute",
        "requests_at_once",
    ),
    ("model", "weight"): ("weight",),
}
"""What all jobs at an endpoint share: keys of models, by the key that stands for them."""
_FILES = ("prompts", "guards", "judge.prompt", "review.agent")
"""Keys that name files of the configuration."""
Models = Callable[[], Iterable[AgentFile]]


def check_start_settings(
    before: AgentFile, after: AgentFile, rights: StartRights, others: Models
) -> None:
    """Refuse settings that the configuration does not leave to a start.

    Args:
        before: The configuration as the worker has it.
        after: The same with the settings.
        rights: What the worker's configuration allows.
        others: Gives all agents of the worker, whose models count as configured.

    Raises:
        ConfigError: It names the key, the reason, and what would allow it.
    """
    for path in _changed_keys(before.model_dump(), after.model_dump()):
        key = ".".join(path)
        if path[0] == "start":
            raise ConfigError(f"set: {key}: it says what a start may set, so no start can set it")
        if path[0] == "notify":
            _check_start_digest(before.notify, after.notify)
        if _is_named(path, rights.set):
            continue
        if HARMLESS not in rights.set:
            raise _setting_error(key, "the worker's configuration does not leave it to a start")
        if why := _harm(path, before, after):
            raise _setting_error(key, why)
    check_start_models(before, after, rights, others)


def _changed_keys(before: Any, after: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Yield the dotted keys, in parts, whose values differ."""
    if isinstance(before, dict) and isinstance(after, dict) and (before or after):
        for key in sorted({*before, *after}, key=str):
            yield from _changed_keys(before.get(key), after.get(key), (*path, str(key)))
    elif before != after:
        yield path


def _is_named(path: tuple[str, ...], names: Iterable[str]) -> bool:
    return any(
        name == ALL or path[: len(parts := name.split("."))] == tuple(parts) for name in names
    )


def _harm(path: tuple[str, ...], before: AgentFile, after: AgentFile) -> str:
    """Return why a start may not set a key to this value; empty if it may."""
    if reason := next((why for key, why in _REASONS.items() if _is_named(path, [key])), ""):
        is_closed = path == ("shell", "network") and after.shell.network is False
        return "" if is_closed else reason
    if before.shell.sandbox == "none" and _is_named(path, _COMMANDS):
        return "commands run unconfined on this worker (shell.sandbox: none)"
    if _is_named(path, _FILES):
        files = [*after.prompt_files.values(), *after.guards]
        files += [after.review.agent] if after.review else []
        if any("/" in name or "\\" in name or name.startswith(".") for name in files):
            return _READS_FILES
    signed = [entry for entry in before.approve if isinstance(entry, SignedApproval)]
    if path[0] == "approve" and any(entry not in after.approve for entry in signed):
        return _SAYS_WHO
    if path[0] == "notify" and not _keeps_keys(before.notify, after.notify):
        return _MOVES_DATA
    return ""


def _check_start_digest(before: Notify | None, after: Notify | None) -> None:
    """Refuse a digest that a start sets. Raises ConfigError."""
    digest = after.digest if after else None
    if digest and digest != (before.digest if before else None):
        raise ConfigError(
            "set: notify.digest: it is about all jobs of an agent, so only the configuration of "
            "the worker can set it"
        )


def _keeps_keys(before: Notify | None, after: Notify | None) -> bool:
    """Whether no variable of the worker goes to an address it was not configured for."""
    if after is None or not (after.headers or after.url_variable):
        return True
    same = ("url", "url_variable", "headers")
    return before is not None and all(getattr(before, k) == getattr(after, k) for k in same)


def check_start_models(
    before: AgentFile, after: AgentFile, rights: StartRights, others: Models
) -> None:
    """Refuse a model that is not configured, and a key for an address it was not configured for.

    Raises ConfigError: as `check_start_settings`.
    """
    if ALL in rights.set:
        return
    for path, keys in SHARED.items():
        is_new = _shared_values(after, keys) - _shared_values(before, keys)
        if is_new and not _is_named(path, rights.set):
            raise _setting_error(".".join(path), "all jobs share an endpoint's quota")
    known = [before]
    for model in _models(after):
        name = getattr(model, "name", None)
        is_named = name is None or _is_named(("model", "name"), rights.set)
        if (is_named or name in _known_names(known)) and _target(model) in _known_targets(known):
            continue
        known = [before, *others()]
        if not is_named and name not in _known_names(known):
            names = ", ".join(sorted(_known_names(known)))
            raise _setting_error(
                "model.name", f"{name} is not among the configured models ({names})",
                "or a price of it under prices",
            )  # fmt: skip
        if _target(model) not in _known_targets(known):
            raise ConfigError(
                f"set: model.base_url: the key in {model.api_key_variable} goes only to the "
                "addresses that it was configured for; an agent with this base_url and "
                f"api_key_variable {WHERE} allows it"
            )


def _models(agent: AgentFile) -> list[ModelConfig | Embeddings]:
    models = [agent.model, *agent.phase_models.values(), *agent.fallbacks]
    models += [agent.judge.model] if agent.judge else []
    return [*models, *([agent.embeddings] if agent.embeddings else [])]


def _shared_values(agent: AgentFile, keys: tuple[str, ...]) -> set[tuple[float | None, ...]]:
    models = (model for model in _models(agent) if isinstance(model, ModelConfig))
    return {tuple(getattr(model, key) for key in keys) for model in models}


def _known_names(agents: list[AgentFile]) -> set[str]:
    named = {getattr(model, "name", "") for agent in agents for model in _models(agent)}
    named |= {name for agent in agents for name in agent.prices}
    return (named | {os.environ.get("LONGHAUL_MODEL", "")}) - {""}


def _known_targets(agents: list[AgentFile]) -> set[tuple[str, str]]:
    return {_target(model) for agent in agents for model in _models(agent)}


def _target(model: ModelConfig | Embeddings) -> tuple[str, str]:
    address = model.base_url or os.environ.get("OPENAI_BASE_URL") or ""
    return address.rstrip("/"), model.api_key_variable


def _setting_error(key: str, why: str, otherwise: str = "") -> ConfigError:
    also = f", {otherwise}," if otherwise else ""
    return ConfigError(
        f"set: {key}: a start may not set it: {why}; start: {{set: [{HARMLESS}, {key}]}}{also} "
        f"{WHERE} allows it"
    )


def check_start_tools(rights: StartRights, added: Iterable[str]) -> None:
    """Refuse tools of the worker's own, which run in it. Raises ConfigError."""
    if (name := next(iter(added), "")) and not _is_named(("tools",), rights.set):
        raise _setting_error("tools", f"{name} is a tool of this worker's own, and runs in it")


def check_start_notify(agent: AgentFile, wanted: Notify) -> None:
    """Refuse recipients of a project that would get a key of the worker. Raises ConfigError."""
    _check_start_digest(agent.notify, wanted)
    if not _is_named(("notify",), agent.start.set) and not _keeps_keys(agent.notify, wanted):
        raise _setting_error("notify", _MOVES_DATA)


def check_start_documents(rights: StartRights, documents: Iterable[str]) -> None:
    """Refuse documents of the worker's disk from outside the folders. Raises ConfigError."""
    for source in documents:
        is_handed_over = source.startswith((STAGED, "http://", "https://"))
        if not is_handed_over and not _is_below(source, rights.documents):
            raise ConfigError(
                f"document {source}: a start may not name a file of the worker's; `starter.py "
                "start --document` hands over one of yours, and start.documents with its folder "
                f"{WHERE} allows it"
            )


def check_start_places(
    rights: StartRights,
    repository: RepositoryStart | None,
    publish: Publish | None,
    records: Path,
) -> None:
    """Refuse folders and addresses that the configuration does not leave to a start.

    Args:
        rights: What the worker's configuration allows.
        repository: What the work begins from.
        publish: Where the branch goes, if it is pushed.
        records: The folder with the records of all jobs, which no start names.

    Raises:
        ConfigError: It names the folder or variable, and what would allow it.
    """
    folder = repository.folder if repository else ""
    is_foreign = bool(folder) and not folder.startswith(STAGED)
    if is_foreign and not _is_below(folder, rights.folders or []):
        raise ConfigError(
            f"repository folder {folder}: a start may not name a folder of the worker's; "
            "`starter.py start --folder` hands over one of yours, and start.folders with it "
            f"{WHERE} allows it"
        )
    used = [(repository.url, repository.token_variable, "repository")] if repository else []
    used += [(publish.remote, publish.token_variable, "publish")] if publish else []
    for address, variable, key in used:
        _check_address(rights, address, key, records)
        if variable and not any(
            allowed == ALL or _is_address_below(address, allowed)
            for allowed in rights.tokens.get(variable, [])
        ):
            raise ConfigError(
                f"{key}: token_variable: the value of {variable} may not go to {address}; "
                f"start.tokens with {variable}: [{address}] {WHERE} allows it"
            )


def _check_address(rights: StartRights, address: str, key: str, records: Path) -> None:
    if not address.startswith("file://"):
        return
    path = unquote(address.removeprefix("file://"))
    is_outside = rights.folders is not None and not _is_below(path, rights.folders)
    if is_outside or _is_below(path, [str(records)]):
        raise ConfigError(
            f"{key}: a start may not name {address}, a repository of the worker's; start.folders "
            f"with its folder {WHERE} allows it"
        )


def _is_below(path: str, folders: Iterable[str]) -> bool:
    try:
        real = Path(path).resolve()
    except (OSError, ValueError, RuntimeError):
        return False
    return Path(path).is_absolute() and any(
        real.is_relative_to(Path(folder).resolve()) for folder in folders
    )


def _is_address_below(address: str, allowed: str) -> bool:
    """Whether an address has the scheme, host and port of another, and its path or one below."""
    this, other = urlsplit(address), urlsplit(allowed)
    try:
        same = (this.scheme, this.hostname, this.port) == (other.scheme, other.hostname, other.port)
    except ValueError:
        return False
    parts, first = this.path.strip("/").split("/"), other.path.strip("/")
    begins = not first or parts[: len(first.split("/"))] == first.split("/")
    return same and begins and ".." not in parts
