"""Whatever path a model makes up, no file tool touches anything outside the workspace."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from activities.checkpoints import (
    Files,
    FilesError,
    PathRefused,
    open_checkpoints,
    update_projection,
)
from activities.toolkit.registry import REGISTRY
from activities.toolkit.tool_context import ToolContext
from activities.toolkit.tool_errors import ToolError
from config.agent_files import load_agent
from tests.activities.standing import JOB, Standing
from tests.soak import soak

CASES = soak(150, 10_000)
HERE = "canary"
PARTS = [
    "..", ".", "", "...", ".. ", " ..", "..\u2024", "%2e%2e", "%2e%2e%2f", "..%c0%af", "..\\", "~",
    "a", "notes", "loop", "up", "far", "root", "dev", "proc", "deep", "link", ".git", "NUL", "con",
    "\uff0e\uff0e", "\u2025", "\u202e..", "a\u0000b", "..\u0000", "\udc2e\udc2e", "\udcff", "é",
    "e\u0301", "\r\n", "x" * 255, "x" * 256, "x" * 5000, "/etc", "/etc/passwd", "/dev/null",
    "/proc/self/root",
    HERE, "file:///etc/passwd", "C:\\x", "$HOME", "`id`", "*", "?", "errors", "lost+found",
]  # fmt: skip
TARGETS = [
    "/", "/etc/passwd", "..", "../..", "../" * 40 + "etc", "/dev/zero", "/proc/self/environ",
    "loop", ".", "notes", "notes/../../..", "link", "./../" + HERE, "a", "\\..", "far/..",
    "deep/../../x",
]  # fmt: skip
paths = st.lists(st.sampled_from(PARTS) | st.text(max_size=6), min_size=1, max_size=6).map("/".join)
prefixes = st.sampled_from(["", "/", "./", "../", "//", "notes/", "link/", "up/", "\ufeff"])
calls = st.sampled_from(
    ["write_file", "append_file", "edit_file", "read_file", "list_files", "search_files",
     "move_file", "delete_file"]
)  # fmt: skip


@dataclass
class Site:
    """A workspace, a canary beside it, and the context for tools."""

    job: Standing
    outside: Path
    context: ToolContext


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    path = tmp_path_factory.mktemp("paths")
    job = Standing.begin(path)
    snapshot = job.open()
    context = ToolContext(
        files=snapshot.files.write("notes/a.md", b"inside\n"),
        reads=snapshot.reads,
        changes=snapshot.changes,
        state=snapshot.state,
        config=load_agent("generalist"),
        conversation=snapshot.conversation,
        history=snapshot.history,
        root=job.root,
        job="job",
        key="run.1",
    )
    for folder in (path, job.root.path):
        (folder / HERE).write_text("CANARY")
    yield Site(job, path, context)


def _arguments(name: str, path: str, other: str) -> dict[str, str]:
    return {
        "write_file": {"path": path, "content": "x"},
        "append_file": {"path": path, "content": "x"},
        "edit_file": {"path": path, "old": "inside", "new": "x"},
        "search_files": {"path": path, "query": "ANAR"},
        "move_file": {"old": other, "new": path},
    }.get(name, {"path": path})


@settings(
    max_examples=CASES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(calls, prefixes, paths, st.sampled_from(["a", "link", "up", "notes", "far"]),
       st.sampled_from(TARGETS))  # fmt: skip
def test_no_made_up_path_leads_out(
    site: Site, name: str, prefix: str, path: str, link: str, target: str
) -> None:
    files = site.context.files
    try:
        # A link made by a command between two calls.
        site.context.files = files.link(link, target)
    except (FilesError, PathRefused):
        site.context.files = files
    try:
        result = REGISTRY[name].function(site.context, **_arguments(name, prefix + path, "notes"))
    except (ToolError, FilesError, PathRefused) as refused:
        assert "\n" not in str(refused) or "It is now" in str(refused)
    else:
        assert "CANARY" not in result
        assert "root:" not in result
        _stays_inside(site.context.files)
    finally:
        site.context.files = files


def _stays_inside(files: Files) -> None:
    for entry in files.walk():
        assert not entry.path.startswith("/")
        assert ".." not in entry.path.split("/")
        # As the file system resolves it: inside the workspace, however it is spelled.
        raw = os.path.normpath(b"/w/" + entry.path.encode("utf-8", "surrogateescape"))
        assert raw.startswith(b"/w/")


@settings(
    max_examples=soak(25, 100), deadline=None, derandomize=True, database=None,
    suppress_health_check=list(HealthCheck),
)  # fmt: skip
@given(prefixes, paths, st.sampled_from(TARGETS))
def test_nor_does_the_folder_that_is_made_of_it(
    site: Site, prefix: str, path: str, target: str
) -> None:
    before = _listing(site.outside)
    files = site.context.files
    try:
        files = files.link("link", target).write(prefix + path, b"x")
    except (FilesError, PathRefused):
        return
    store = open_checkpoints(site.job.root, JOB)
    update_projection(store, site.job.root, JOB, files, 1)
    assert _listing(site.outside) == before


def _listing(outside: Path) -> list[tuple[str, int]]:
    """List everything next to the workspace and the system's own folder."""
    return [
        (str(path), path.lstat().st_size)
        for folder in (outside, outside / "root")
        for path in sorted(folder.iterdir())
        if path.name not in (JOB, ".longhaul", "root", "lost+found")
    ]
