"""Tools of one's own: `tools/*.py` in the folders that LONGHAUL_CONFIG names.

Their code runs in the worker with all that the worker may do, as hooks do. So only folders that the
operator names are looked at, never a workspace or a repository.
"""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from activities.toolkit.registry import REGISTRY, Tool
from config.layers import TOOLS, Layers
from config.schema.agent import ConfigError

PREFIX = "longhaul_own_tools."
"""Begins the names of their modules, which thus collide with no installed package."""
_collected_problems: ContextVar[list[str] | None] = ContextVar("problems", default=None)


@contextmanager
def collecting_tool_problems() -> Iterator[list[str]]:
    """Collect what is wrong with files of tools in place of failing on the first.

    For a command that shows what is wrong. Anything else has to fail: a job without a tool that it
    counts on would go on without it.
    """
    problems: list[str] = []
    token = _collected_problems.set(problems)
    try:
        yield problems
    finally:
        _collected_problems.reset(token)


def load_own_tools(layers: Layers) -> None:
    """Enter the tools of all files, by the files' names; of those with one name, the strongest.

    The order is the same on every worker and the tools stand behind the shipped ones, so that a
    provider's cache holds. Raises ConfigError: A file cannot be imported, or declares a tool
    wrongly; the message names it. Not within `collecting_tool_problems`.
    """
    for path in layers.list_files(f"{TOOLS}/*.py"):
        if path.name.startswith("."):
            continue
        try:
            _import_tool_file(path)
        except ConfigError as error:
            if (problems := _collected_problems.get()) is None:
                raise
            problems.append(str(error))


def own_tool_file(entry: Tool) -> str:
    """Return the file of a tool of one's own; empty for a shipped one."""
    module = entry.function.__module__
    return str(sys.modules[module].__file__) if module.startswith(PREFIX) else ""


def own_tools_by_file() -> dict[str, list[str]]:
    names: dict[str, list[str]] = {}
    for entry in REGISTRY.values():
        if file := own_tool_file(entry):
            names.setdefault(file, []).append(entry.name)
    return names


def _import_tool_file(path: Path) -> None:
    name = f"{PREFIX}{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    # Data classes and annotations of the file are looked up there.
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except ConfigError:
        raise  # of @tool, with the file and the tool
    except (Exception, SystemExit) as error:
        line = _failing_line(error, path)
        raise ConfigError(
            f"{path}: cannot be imported ({type(error).__name__}: {error}{line})"
        ) from error


def _failing_line(error: BaseException, path: Path) -> str:
    """Return `, line 3`; empty for a syntax error, which says it itself."""
    lines, step = [0], error.__traceback__
    while step:
        if step.tb_frame.f_code.co_filename == str(path):
            lines.append(step.tb_lineno)
        step = step.tb_next
    return f", line {lines[-1]}" if lines[-1] else ""
