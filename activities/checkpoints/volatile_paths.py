"""Paths that differ from run to run: indexes, logs and caches that commands leave.

They are kept like all files, and ignored where two runs are compared.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache

from activities.checkpoints import Files
from activities.checkpoints.entries import without_entry


def volatile_matcher(patterns: Sequence[str]) -> Callable[[str], bool]:
    """Return a predicate for such paths: `*` matches within a name, `**` any number of folders."""
    return _volatile_path_matcher(tuple(patterns))


@lru_cache(maxsize=64)
def _volatile_path_matcher(patterns: tuple[str, ...]) -> Callable[[str], bool]:
    if not patterns:
        return lambda path: False
    expression = re.compile("|".join(map(_volatile_glob_expression, patterns)), re.DOTALL)
    return lambda path: expression.fullmatch(path) is not None


def _volatile_glob_expression(pattern: str) -> str:
    wildcards = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    parts = re.split(r"(\*\*/|\*\*|\*|\?)", pattern)
    return "".join(wildcards.get(part) or re.escape(part) for part in parts)


def without_volatile(files: Files, patterns: Sequence[str]) -> Files:
    """Return the files without volatile ones, and without named folders that held nothing else."""
    matches = volatile_matcher(patterns)
    entries = [
        entry for entry in files.walk() if matches(entry.path + "/" * (entry.kind == "folder"))
    ]
    for entry in entries:
        files = without_entry(files, entry.path, lambda folder: matches(f"{folder}/"))
    return files
