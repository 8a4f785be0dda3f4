"""Surveys the tree of a repository: its size, and which contents will be missing."""

import re
from dataclasses import dataclass, field
from typing import cast

import pygit2
from pygit2.enums import FileMode

from activities.checkpoints.entry_names import is_dot_git_name, name_from_bytes
from activities.source_repository.repository_bounds import RepositoryBounds
from activities.text.safe_text import replace_surrogates
from config.schema.agent import ConfigError
from protocol.short_text import first_few

POINTER = b"version https://git-lfs.github.com/spec/"
MOST_POINTER = 1024
"""Maximum size of an LFS pointer in bytes, by its specification."""
MOST_NAMED = 10


@dataclass
class TreeSurvey:
    file_count: int = 0
    bytes: int = 0
    submodules: list[str] = field(default_factory=list)
    pointers: list[str] = field(default_factory=list)
    """Paths of files whose content is in Git LFS."""
    filters: set[str] = field(default_factory=set)
    """Names of filters that the tree's attributes give to files; git runs none of them."""
    is_cut: bool = False
    """Whether the repository has only the newest part of the history."""

    @property
    def notes(self) -> list[str]:
        notes = []
        if self.submodules:
            named = replace_surrogates(first_few(self.submodules, MOST_NAMED))
            notes.append(f"Submodules are not fetched, their folders are missing: {named}.")
        if self.pointers:
            named = replace_surrogates(first_few(self.pointers, MOST_NAMED))
            notes.append(
                "Git LFS is not followed, these files are pointers only, on which tests may fail "
                f"(a clone with their content can be given as a folder): {named}."
            )
        if filters := self.filters - {"lfs"}:
            named = replace_surrogates(first_few(sorted(filters), MOST_NAMED))
            notes.append(f"No filter of .gitattributes is run, files are as committed: {named}.")
        if self.is_cut:
            notes.append("Its history is not whole there: it begins at the oldest commit it has.")
        return notes


def survey_tree(
    repository: pygit2.Repository, tree: pygit2.Tree, source: str, bounds: RepositoryBounds
) -> TreeSurvey:
    """Inspect every entry of a tree, reading small files. Raises ConfigError for what is unfit."""
    survey = TreeSurvey()
    small: list[tuple[str, pygit2.Oid]] = []
    todo = [("", tree)]
    while todo:
        above, folder = todo.pop()
        for entry in folder:
            name = name_from_bytes(entry.raw_name or b"")
            path = f"{above}{name}"
            if name in ("", ".", "..") or "/" in name or "\0" in name or is_dot_git_name(name):
                raise ConfigError(
                    f"repository {source}: the name {path!r} cannot be used in a folder"
                )
            if isinstance(entry, pygit2.Tree):
                todo.append((f"{path}/", entry))
            elif entry.filemode == FileMode.COMMIT:
                survey.submodules.append(path)
            else:
                survey.file_count += 1
                bounds.check_files(source, survey.file_count)
                size = int(repository.odb.read_header(entry.id)[1])
                bounds.check_file(source, path, size)
                survey.bytes += size
                if size <= MOST_POINTER:
                    small.append((path, entry.id))
                if name == ".gitattributes":
                    survey.filters |= _named_filters(cast("pygit2.Blob", entry).data)
    bounds.check_bytes(source, survey.bytes, "its files have")
    if "lfs" in survey.filters:
        survey.pointers = sorted(
            path for path, oid in small if repository.odb.read(oid)[1].startswith(POINTER)
        )
    survey.submodules.sort()
    return survey


def _named_filters(attributes: bytes) -> set[str]:
    named = re.findall(rb"(?m)^[^#\n]*?\sfilter=(\S+)", attributes)
    return {name.decode("utf-8", "surrogateescape") for name in named}
