import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from activities.checkpoints import Checkpoints, Files, Root, RootError, job_folder_name


def test_the_id_stays(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "w", create=True)
    assert len(root.id) == 12
    assert Root.open(tmp_path / "w", create=False) == Root.open(tmp_path / "w", create=True) == root


def test_a_root_that_is_gone_or_another_one_is_noticed(tmp_path: Path) -> None:
    root = Root.open(tmp_path / "w", create=True)
    root.check_presence()
    root.path.rename(tmp_path / "away")
    with pytest.raises(RootError, match="has no workspaces root"):
        root.check_presence()
    Root.open(tmp_path / "w", create=True)
    with pytest.raises(RootError, match="has another root"):
        root.check_presence()


def test_where_things_lie(root: Root) -> None:
    assert root.workspace("a/b") == root.path / "a%2Fb"
    assert root.repository("j") == root.path / ".longhaul" / "checkpoints" / "j.git"
    assert root.lost_found("j") == root.path / "lost+found" / "j"
    assert root.staged == root.path / ".longhaul" / "staged"


def test_processes_that_make_it_at_once_agree(
    tmp_path: Path, start: Callable[..., subprocess.Popen[str]]
) -> None:
    code = (
        "import sys, pathlib\n"
        "from activities.checkpoints import Checkpoints, Root\n"
        "print('ready', flush=True)\n"
        "sys.stdin.readline()\n"
        "root = Root.open(pathlib.Path(sys.argv[1]), create=True)\n"
        "print(root.id, Checkpoints.create(root, 'job').store.git.is_bare)\n"
    )
    children = [start(code, str(tmp_path / "w")) for _ in range(4)]
    for child in children:
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    outputs = {child.communicate()[0] for child in children}
    assert outputs == {f"{Root.open(tmp_path / 'w', create=False).id} True\n"}
    checkpoints = tmp_path / "w" / ".longhaul" / "checkpoints"
    assert [path.name for path in checkpoints.iterdir()] == ["job.git"]


def test_a_root_that_is_not_there_or_not_usable_says_so(tmp_path: Path) -> None:
    with pytest.raises(RootError, match="LONGHAUL_WORKSPACES"):
        Root.open(tmp_path / "none", create=False)
    (tmp_path / "file").write_text("")
    with pytest.raises(RootError, match="cannot be used"):
        Root.open(tmp_path / "file", create=True)
    Root.open(tmp_path / "w", create=True)
    (tmp_path / "w" / ".longhaul" / "root-id").write_text("")
    with pytest.raises(RootError, match="damaged"):
        Root.open(tmp_path / "w", create=True)


READ_ONLY = 'mount --bind "$1" "$1" && mount -o remount,ro,bind "$1" && exec "$2" -c "$3" "$1" "$4"'
LOOK = """
import sys, pathlib
from activities.checkpoints import Root, RootError, open_checkpoints
path = pathlib.Path(sys.argv[1])
checkpoints = open_checkpoints(Root.open(path, create=False), "j")
print(*(entry.message for entry in checkpoints.log(sys.argv[2], 9)))
try:
    Root.open(path, create=True)
except RootError as error:
    print(error)
"""


def test_one_that_can_only_be_read_is_good_enough_to_look_at(root: Root) -> None:
    unshare = ["unshare", "-m" if os.geteuid() == 0 else "-rm"]
    if subprocess.run([*unshare, "true"], capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    checkpoints = Checkpoints.create(root, "j")
    tree = Files.empty(checkpoints.store).write("a.md", b"tea").id
    commit = checkpoints.commit(tree, [], "one", 0)
    output = subprocess.run(
        [*unshare, "sh", "-c", READ_ONLY, "-", root.path, sys.executable, LOOK, commit],
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert output == f"one\nThe workspaces root {root.path} is not writable; change its mode.\n"


@settings(deadline=None)
@given(st.text(max_size=300), st.text(max_size=300))
def test_folder_names_are_safe_and_distinct(one: str, other: str) -> None:
    name = job_folder_name(one)
    assert 0 < len(name.encode()) <= 200
    assert not set(name) & set("/\\\0:+ ")
    assert not name.startswith(".")
    assert (job_folder_name(other) == name) == (one == other)


@pytest.mark.parametrize(
    ("job", "name"),
    [
        ("invoice-2024.1", "invoice-2024.1"),
        ("lost+found", "lost%2Bfound"),
        ("..", "%2E."),
        (".longhaul", "%2Elonghaul"),
        ("Prüfung", "Prüfung"),
        ("a b", "a%20b"),
    ],
)
def test_folder_names_are_readable(job: str, name: str) -> None:
    assert job_folder_name(job) == name
