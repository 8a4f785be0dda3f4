"""Caches of commands: shared within a job, bounded, and never needed."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.checkpoints import Root
from activities.checkpoints.locks import file_lock
from activities.commands import sandbox
from activities.commands.cache_folder import cache_folder
from activities.commands.check_commands import CheckRunner
from activities.commands.private_folder import private_path, remove_private_folders
from config.schema.shell import ShellConfig
from tests.activities.standing import JOB, Standing

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")

PIP = {"PIP_CACHE_DIR": "pip"}
SHELL = ShellConfig(caches=PIP, cache_bytes=1_000_000)


def begin(folder: Path, **shell: object) -> Standing:
    keys = {f"shell.{name}": value for name, value in {"caches": PIP, **shell}.items()}
    return Standing.begin(
        folder, kind="tactical", set={"tools": ["files", "todos", "job", "shell"], **keys}
    )


def run(job: Standing, command: str) -> str:
    return job.call("run_command", command=command)


def content(root: Root) -> Path:
    return private_path(root, JOB) / "caches" / "commands" / "content"


def test_the_next_command_has_the_cache_and_no_checkpoint_has_it(tmp_path: Path) -> None:
    job = begin(tmp_path)
    assert run(job, 'echo "$PIP_CACHE_DIR"; echo wheel > "$PIP_CACHE_DIR/a"').endswith("/cache/pip")
    assert run(job, "cat /cache/pip/a") == "Exit code 0.\nwheel"
    assert not any("pip" in path for path in job.paths())
    remove_private_folders(job.root, JOB)
    assert run(job, "ls -A /cache/pip") == "Exit code 0. No output."


def test_a_cache_that_is_too_large_is_emptied(tmp_path: Path) -> None:
    job = begin(tmp_path, cache_bytes=1_000_000)
    run(job, "head -c 800000 /dev/zero > /cache/pip/a")
    assert run(job, "ls /cache/pip") == "Exit code 0.\na"
    run(job, "mkdir /cache/pip/b; head -c 800000 /dev/zero > /cache/pip/b/b; chmod 0 /cache/pip/b")
    assert run(job, "ls /cache/pip") == "Exit code 0. No output."
    assert not (content(job.root).parent / "gone").exists()


def test_a_cache_in_use_is_emptied_by_its_last_user(root: Root) -> None:
    with cache_folder(root, JOB, SHELL, "commands") as folder:
        assert folder is not None
        with cache_folder(root, JOB, SHELL, "commands") as same:
            assert same == folder
            (folder / "a").write_bytes(bytes(2_000_000))
        assert (folder / "a").exists()
    assert not (folder / "a").exists()


def test_commands_side_by_side_share_a_cache(root: Root, tmp_path: Path) -> None:
    def add_file(number: int) -> int | None:
        workspace = tmp_path / str(number)
        workspace.mkdir()
        with cache_folder(root, JOB, SHELL, "commands") as cache:
            command = f"echo {number} > /cache/pip/{number}"
            return sandbox.run_sandboxed_command(
                command, workspace, SHELL, 60, cache=cache
            ).exit_code

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(add_file, range(8))) == [0] * 8
    assert len(list((content(root) / "pip").iterdir())) == 8


def test_a_command_runs_without_a_cache_that_stays_locked(tmp_path: Path) -> None:
    job = begin(tmp_path)
    run(job, "echo wheel > /cache/pip/a")
    with file_lock(content(job.root).parent / "lock", seconds=0):
        assert run(job, "touch /cache/pip/b; ls /cache/pip") == "Exit code 0.\nb"
    assert run(job, "ls /cache/pip") == "Exit code 0.\na"


def test_whatever_a_command_leaves_there_the_next_one_runs(tmp_path: Path) -> None:
    beside = tmp_path / "beside"
    job = begin(tmp_path)
    run(job, f"rmdir /cache/pip; ln -s {beside} /cache/pip; chmod 0 /cache")
    assert run(job, "ls /cache") == "Exit code 0.\npip"
    assert not beside.exists()


def test_a_command_that_fills_the_cache_is_ended(root: Root, tmp_path: Path) -> None:
    shell = SHELL.model_copy(update={"disk_bytes": 50_000_000})
    fill = "for n in 1 2 3 4 5 6 7 8; do head -c 20000000 /dev/zero > /cache/pip/$n; done; sleep 30"
    with cache_folder(root, JOB, shell, "commands") as cache:
        ended = sandbox.run_sandboxed_command(fill, tmp_path, shell, 60, cache=cache)
    assert ended.trouble == "it wrote more than 50,000,000 bytes"


def test_setup_and_checks_do_not_see_what_agents_left(tmp_path: Path) -> None:
    job = begin(tmp_path, setup=["ls -A /cache/pip > /layer/seen; echo x > /cache/pip/setup",
                                 "ls /cache/pip >> /layer/seen"],
                setup_inputs=["a.txt"])  # fmt: skip
    assert run(job, "cat /layer/seen; echo x > /cache/pip/agent") == "Exit code 0.\nsetup"
    job.write("a.txt", "changed")
    assert run(job, "cat /layer/seen; ls /cache/pip") == "Exit code 0.\nsetup\nsetup\nagent"
    snapshot = job.open()
    runner = CheckRunner(job.root, JOB, snapshot.config)
    empty = 'test -z "$(ls /cache/pip)" && touch /cache/pip/x'
    assert runner.run_check(snapshot.files, empty, 60) is None


@pytest.mark.parametrize(
    ("shell", "message"),
    [
        ({"caches": PIP, "sandbox": "none"}, "caches need a sandbox"),
        ({"caches": PIP, "environment": {"PIP_CACHE_DIR": "X"}}, "both set PIP_CACHE_DIR"),
        ({"caches": {"PATH": "pip"}}, "PATH is set by the sandbox"),
        ({"caches": {"PIP_CACHE_DIR": "../pip"}}, "pattern"),
    ],
)
def test_a_cache_that_cannot_be_is_refused(shell: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        ShellConfig.model_validate(shell)
