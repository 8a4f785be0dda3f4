"""The sandbox: what a command may not do, it cannot, and its end is reported in a line."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from activities.commands import memory_use, sandbox
from activities.commands.memory_use import MemoryUse
from activities.redaction.credentials import refresh_credential_values
from config.schema.shell import ShellConfig

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    folder.mkdir()
    return folder


def until(path: Path) -> None:
    """Wait until the file exists."""
    end = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < end
        time.sleep(0.02)


def run(folder: Path, command: str, seconds: float = 20, **config: object) -> sandbox.CommandResult:
    return sandbox.run_sandboxed_command(
        command, folder, ShellConfig.model_validate(config), seconds
    )


def test_a_command_works_in_its_folder_and_tells_how_it_ended(folder: Path) -> None:
    ended = run(folder, "pwd; echo x > made; echo oops >&2; exit 3")
    assert (ended.exit_code, ended.output, ended.trouble) == (3, "/workspace\noops\n", "")
    assert (folder / "made").read_text() == "x\n"


def test_a_virtual_environment_whose_python_is_hidden_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    python, tools = tmp_path / "python" / "bin" / "python3.11", tmp_path / "tools" / "bin"
    for each in (python.parent, tools):
        each.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho brewed\n")
    python.chmod(0o755)
    (tools / "python3").symlink_to("python")
    (tools / "python").symlink_to(python)
    (tools.parent / "pyvenv.cfg").touch()
    path, readable = [str(tools)], [str(tools.parent)]
    with pytest.raises(sandbox.SandboxUnavailable, match=f"Name {python.parent.parent} under"):
        run(folder, "python3", path=path, readable=readable)
    readable.append(str(python.parent.parent))
    assert run(folder, "python3", path=path, readable=readable).output == "brewed\n"


def test_a_python_behind_a_folder_that_is_a_hidden_link_is_refused(
    folder: Path, tmp_path: Path
) -> None:
    patch, minor = tmp_path / "uv" / "python-3.11.9", tmp_path / "uv" / "python-3.11"
    python, tools = patch / "bin" / "python3.11", tmp_path / "tools" / "bin"
    for each in (python.parent, tools):
        each.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho brewed\n")
    python.chmod(0o755)
    minor.symlink_to(patch.name)
    (tools / "python3").symlink_to(minor / "bin" / python.name)
    (tools.parent / "pyvenv.cfg").touch()
    path, readable = [str(tools)], [str(tools.parent)]
    with pytest.raises(sandbox.SandboxUnavailable, match=f"Name {minor} under"):
        run(folder, "python3", path=path, readable=[*readable, str(patch)])
    for seen in (minor, minor.parent):
        ran = run(folder, "python3", path=path, readable=[*readable, str(seen)])
        assert ran.output == "brewed\n"


def test_nothing_of_the_worker_is_in_its_environment(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sesame")
    script = "env; cat /proc/1/environ /proc/$PPID/environ; cat /proc/*/cmdline"
    assert "sesame" not in run(folder, script).output
    assert "sesame" not in run(folder, "env", sandbox="none").output


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_a_variable_of_the_worker_is_seen_and_hidden_in_output(
    folder: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setenv("INDEX_LOGIN", "sesame-open-42")
    refresh_credential_values()
    ended = run(
        folder,
        'echo "$LOGIN"; echo "$LOGIN" | wc -c; printf %s "$LOGIN" > seen; ls /proc/self/fd',
        sandbox=kind,
        environment={"LOGIN": "INDEX_LOGIN"},
    )
    assert ended.output.splitlines()[:2] == ["[redacted]", "15"]
    assert "sesame" not in ended.output
    assert (folder / "seen").read_text() == "sesame-open-42"
    # Standard streams, and the descriptor of the listing itself.
    assert ended.output.splitlines()[2:] == ["0", "1", "2", "3"]


def test_a_variables_value_is_on_no_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INDEX_LOGIN", "sesame-open-42")
    refresh_credential_values()
    shell = ShellConfig(environment={"LOGIN": "INDEX_LOGIN"})
    command = "touch begun; while [ ! -e done ]; do sleep 0.05; done"
    with ThreadPoolExecutor() as pool:
        ended = pool.submit(sandbox.run_sandboxed_command, command, folder, shell, 60)
        until(folder / "begun")
        lines = [path.read_bytes() for path in Path("/proc").glob("[0-9]*/cmdline")]
        (folder / "done").touch()
    assert ended.result().exit_code == 0
    assert any(b"touch begun" in line for line in lines)
    assert not any(b"sesame" in line for line in lines)


def test_a_variable_that_the_worker_lacks_is_named(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INDEX_LOGIN", raising=False)
    for kind in ("bubblewrap", "none"):
        with pytest.raises(
            sandbox.SandboxUnavailable, match=r"LOGIN from the worker's variable INDEX_LOGIN, which"
        ):
            run(folder, ":", sandbox=kind, environment={"LOGIN": "INDEX_LOGIN"})


@pytest.mark.parametrize("name", ["PATH", "HOME", "not a name"])
def test_a_variable_that_cannot_be_set_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"set by the sandbox itself|pattern"):
        ShellConfig.model_validate({"environment": {name: "X"}})


@pytest.mark.parametrize(
    "path", ["/etc/shadow", "/root", "/home", "/sys", "/var", "{beside}", "/proc/1/root/var"]
)
def test_what_lies_outside_cannot_be_read(folder: Path, path: str) -> None:
    beside = folder.parent / "beside"
    beside.write_text("another job's")
    ended = run(folder, f"ls {path.format(beside=beside)}")
    assert ended.exit_code
    assert "another" not in ended.output


def test_what_the_configuration_names_can_be_read_and_not_changed(folder: Path) -> None:
    beside = folder.parent / "beside"
    beside.write_text("a repository")
    ended = run(folder, f"cat {beside}; echo x > {beside}", readable=[str(beside)])
    assert ended.exit_code
    assert ended.output.startswith("a repository")
    assert beside.read_text() == "a repository"
    beside.unlink()
    with pytest.raises(
        sandbox.SandboxUnavailable, match=f"cannot read {beside}: shell.readable names it"
    ):
        run(folder, ":", readable=[str(beside)])


def test_nothing_outside_changes_not_even_modes_and_times(folder: Path) -> None:
    before = Path("/usr/bin/env").stat()
    ended = run(
        folder,
        "chmod 777 /usr/bin/env; touch /usr/bin/env; chown 1 /usr/bin/env; touch /usr/x /x;"
        "ln /usr/bin/env hard; mknod disk b 254 0; mount -t tmpfs x /usr; unshare -r true || :;"
        "ln -s /usr/bin/env soft; echo x > soft; ls",
    )
    assert ended.output.splitlines()[-1] == "soft"
    assert Path("/usr/bin/env").stat().st_mtime == before.st_mtime
    assert Path("/usr/bin/env").stat().st_mode == before.st_mode


def test_there_is_no_network_and_no_socket_of_the_host(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        script = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        assert run(folder, f'python3 -c "{script}"').exit_code
        allowed = run(folder, f'python3 -c "{script}"', network=True)
        assert allowed.exit_code == 0, allowed.output
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0longhaul-test")
        listening.listen()
        script = r"import socket; socket.socket(socket.AF_UNIX).connect('\\0longhaul-test')"
        assert run(folder, f'python3 -c "{script}"').exit_code


def test_one_that_sleeps_for_ever_is_ended(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    watch = sandbox._watch_sandbox_limits

    def watch_at_work(
        process: subprocess.Popen[bytes],
        memory: MemoryUse,
        where: list[Path],
        config: ShellConfig,
        _: float,
        seconds: float,
    ) -> Iterator[str]:
        """Start the time limit once the command has begun, which takes time on a busy machine."""
        until(folder / "begun")
        return watch(process, memory, where, config, time.monotonic() + seconds, seconds)

    monkeypatch.setattr(sandbox, "_watch_sandbox_limits", watch_at_work)
    ended = run(folder, "echo before; touch begun; sleep 1000", seconds=1)
    assert ended.trouble == "it did not end within 1 s"
    assert ended.output == "before\n"


def test_too_many_processes_are_ended(folder: Path) -> None:
    ended = run(folder, "while :; do sleep 30 & done", processes=50)
    # The kernel limits them before they are counted.
    assert ended.exit_code
    assert "fork" in ended.output.lower()


def test_a_fork_bomb_harms_nobody(folder: Path) -> None:
    ended = run(folder, "b() { b | b & }; b; sleep 30", seconds=3, processes=50)
    assert ended.trouble


def test_too_much_memory_is_ended(folder: Path) -> None:
    script = "import time; x = bytearray(300_000_000); time.sleep(30)"
    ended = run(folder, f"python3 -c '{script}'", memory_bytes=100_000_000)
    assert ended.trouble == "it used more than 100,000,000 bytes of memory"


@pytest.mark.parametrize(
    "script",
    [
        "import mmap; m = mmap.mmap(-1, 300_000_000); m.write(bytes(300_000_000))",
        "import os; d = os.memfd_create('x'); [os.write(d, bytes(10**6)) for _ in range(300)]",
        "open('/tmp/x', 'wb').write(bytes(300_000_000))",
    ],
)
def test_shared_memory_and_files_in_memory_count(folder: Path, script: str) -> None:
    command = f'python3 -c "{script}; import time; time.sleep(30)"'
    ended = run(folder, command, memory_bytes=100_000_000)
    assert ended.trouble == "it used more than 100,000,000 bytes of memory"


def test_files_in_memory_count_although_the_machine_frees_as_much(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(memory_use, "_machine_shared_bytes", lambda: 0)
    command = "head -c 300000000 /dev/zero > /tmp/x; sleep 30"
    ended = run(folder, command, memory_bytes=100_000_000)
    assert ended.trouble == "it used more than 100,000,000 bytes of memory"


def test_memory_that_processes_share_counts_once(folder: Path) -> None:
    script = (
        "import mmap, os, time\n"
        "shared = mmap.mmap(-1, 60_000_000)\n"
        "shared.write(bytes(60_000_000))\n"
        "children = [os.fork() for _ in range(3)]\n"
        "sum(shared[::4096])\n"
        "time.sleep(1)\n"
    )
    (folder / "share.py").write_text(script)
    ended = run(folder, "python3 share.py", memory_bytes=200_000_000)
    assert (ended.exit_code, ended.trouble) == (0, "")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
def test_commands_of_a_root_worker_are_nobody(folder: Path, tmp_path: Path) -> None:
    (folder / "given").write_text("tea")
    ended = run(folder, "echo more >> given; touch made; id -u; git init -q .; git status -s")
    assert ended.output.splitlines()[0] == "1000"
    assert (folder / "given").read_text() == "teamore\n"
    assert {path.lstat().st_uid for path in folder.iterdir()} == {65534}
    secret = tmp_path / "owned"
    secret.mkdir(mode=0o700)
    with pytest.raises(sandbox.SandboxUnavailable, match=f"chmod -R o\\+rX {secret}"):
        run(folder, ":", readable=[str(secret)])


def test_a_full_disk_is_ended(folder: Path) -> None:
    fill = "for n in 1 2 3 4 5 6 7 8; do head -c 20000000 /dev/zero > f$n; done; sleep 30"
    ended = run(folder, fill, disk_bytes=50_000_000)
    assert ended.trouble == "it wrote more than 50,000,000 bytes"
    big = run(folder, "head -c 2000000 /dev/zero > big", file_bytes=1_000_000)
    assert big.exit_code
    assert (folder / "big").stat().st_size <= 1_000_000
    assert run(folder, "head -c 9000000 /dev/zero > /tmp/x", tmp_bytes=5_000_000).exit_code


def test_a_hundred_megabytes_of_output_are_cut(folder: Path) -> None:
    ended = run(folder, "echo first; yes | head -c 100000000; echo last")
    assert ended.exit_code == 0
    assert ended.size > 100_000_000
    assert len(ended.output) < 1_100_000
    assert ended.output.startswith("first")
    assert ended.output.endswith("last\n")
    assert "bytes of output left out" in ended.output


@pytest.mark.parametrize("kind", ["bubblewrap", "none"])
def test_nothing_it_leaves_running_outlives_it(folder: Path, kind: str) -> None:
    ended = run(
        folder,
        "(while :; do date > alive; done) & setsid sleep 999 & nohup sleep 999 &"
        "setsid sh -c 'while :; do setsid date > alive; done' & sleep 0.5; echo ok",
        seconds=100,
        sandbox=kind,
    )
    # The sleeping processes were not waited for.
    assert (ended.exit_code, ended.output, ended.trouble) == (0, "ok\n", "")
    (folder / "alive").unlink(missing_ok=True)
    time.sleep(0.2)
    assert not (folder / "alive").exists()


def test_it_can_end_nobody_but_itself(folder: Path) -> None:
    ended = run(folder, f"kill -9 {os.getpid()}; kill -9 -1; kill -9 1 $PPID; echo on")
    assert ended.output.endswith("on\n") or ended.exit_code


def test_it_ends_with_the_worker(folder: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from activities.commands import sandbox\n"
        "from config.schema.shell import ShellConfig\n"
        "sandbox.run_sandboxed_command("
        "'while :; do date > alive; sleep 0.05; done', Path(sys.argv[1]),"
        " ShellConfig(), 60)"
    )
    project_root = Path(__file__).parents[3]
    worker = subprocess.Popen([sys.executable, "-c", code, str(folder)], cwd=project_root)
    until(folder / "alive")
    worker.kill()
    worker.wait()
    for _ in range(100):
        # The kernel ends them one after the other, which may take a while.
        (folder / "alive").unlink(missing_ok=True)
        time.sleep(0.3)
        if not (folder / "alive").exists():
            break
    assert not (folder / "alive").exists()


def test_output_is_given_as_a_screen_shows_it(folder: Path) -> None:
    ended = run(folder, r"printf '\033[32m 1 %%\r50 %%\033[0m\n'")
    assert ended.output == "50 %\n"


def test_usual_programs_work(folder: Path) -> None:
    ended = run(
        folder,
        "set -e; git init -q r; cd r; git config user.email a@b.c; git config user.name n;"
        "echo 1 > a; git add a; git commit -qm one; git log --format=%s; chmod +x a;"
        "python3 -c 'import tempfile, multiprocessing as m; print(m.Pool(2).map(abs, [-1]))'",
    )
    assert ended.output.splitlines() == ["one", "[1]"]


def test_without_a_program_that_confines_nothing_is_run() -> None:
    assert "not installed" in (sandbox.sandbox_problem(None) or "")
    assert "does not run" in (sandbox.sandbox_problem("/nowhere/bwrap") or "")
    assert "cannot confine here" in (sandbox.sandbox_problem("/bin/false") or "")
