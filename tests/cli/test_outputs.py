"""`starter.py` as a process: where its output goes, and how it ends when writing fails."""

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from io import BytesIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest

from cli.demo import _print_demo_addresses
from cli.output import escape_unencodable_output, print_json
from engine.development import DevelopmentServer
from protocol.payloads import MAX_INSTRUCTIONS
from tests.cli.conftest import REPOSITORY, run, tries
from tests.soak import soak

HELD = """
import importlib, pathlib, sys, time
here = pathlib.Path(__file__).parent
(here / "loading").touch()
until = time.monotonic() + 60
while not (here / "go-on").exists() and time.monotonic() < until:
    time.sleep(0.02)
assert (here / "go-on").exists(), "it was loaded before the test waited for that"
sys.path.remove(str(here))
del sys.modules[__name__]
importlib.import_module(__name__)
"""
"""A module that replaces the real one and loads it once it is allowed to."""


@pytest.mark.parametrize(
    ("arguments", "stream"),
    [
        ("--help", "stdout"),
        ("config schema", "stdout"),
        ("start nobody --instructions x", "stderr"),
    ],
)
def test_a_reader_that_has_gone_is_no_failure(arguments, stream):
    reader, writer = os.pipe()
    os.close(reader)
    ended = run(*arguments.split(), **{stream: writer})
    os.close(writer)
    assert ended.returncode == 0
    assert not ended.stderr


@pytest.mark.parametrize("arguments", ["--help", "config schema", *soak([], ["tools generalist"])])
def test_output_that_cannot_be_written_is_told_in_one_line(arguments):
    with Path("/dev/full").open("wb") as full:
        ended = run(*arguments.split(), stdout=full)
    errors = [line for line in ended.stderr.splitlines() if line.startswith(b"error")]
    assert errors == [b"error: the output cannot be written: No space left on device"]
    assert b"Traceback" not in ended.stderr
    assert ended.returncode == 2


@pytest.mark.parametrize("closed", [1, 2])
def test_without_a_stream_a_command_ends_as_ever(closed):
    ended = run("config", "schema", preexec_fn=lambda: os.close(closed))
    assert (ended.returncode, ended.stderr) == (0, b"")


def test_what_the_encoding_lacks_is_written_as_escapes():
    noted = run("show", "lat\udce9\N{SNOWMAN}", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert noted.returncode == 2
    assert rb"lat\xe9\u2603" in noted.stderr


def test_help_is_written_in_ascii_as_well():
    completed = run("start", "--help", env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (completed.returncode, completed.stderr) == (0, b"")


def test_json_is_json_in_any_encoding(monkeypatch):
    monkeypatch.setattr("sys.stdout", TextIOWrapper(out := BytesIO(), encoding="ascii"))
    escape_unencodable_output()
    print_json("\N{SNOWMAN}\xe9\N{TEACUP WITHOUT HANDLE}")
    sys.stdout.flush()
    assert json.loads(out.getvalue()) == "\N{SNOWMAN}\xe9\N{TEACUP WITHOUT HANDLE}"


def test_what_the_sdk_logs_is_not_among_results(engine, workspaces, tmp_path):
    large = tmp_path / "large.txt"
    # As many characters as a start takes, and more bytes than the SDK sends without a warning.
    large.write_text("\N{TEACUP WITHOUT HANDLE}" * MAX_INSTRUCTIONS)
    environment = {**os.environ, "TEMPORAL_ADDRESS": engine.address, "LONGHAUL_LOG": "WARNING"}
    ended = run("start", "generalist", "--instructions", f"@{large}", "--json", env=environment)
    # Whether its warning (TMPRL1103) reaches stderr before the command ends is a race.
    assert set(json.loads(ended.stdout)) == {"job_id", "link"}


def test_a_demo_on_other_ports_says_what_other_commands_need(capsys: Any) -> None:
    client: Any = None
    _print_demo_addresses(
        DevelopmentServer(client, "127.0.0.1:7233", "http://localhost:8233"), Path("t.db"), "tea"
    )
    assert "TEMPORAL" not in capsys.readouterr().err
    _print_demo_addresses(
        DevelopmentServer(client, "127.0.0.1:20001", "http://localhost:20002"), Path("t.db"), "tea"
    )
    printed = capsys.readouterr().err
    assert "TEMPORAL_ADDRESS=127.0.0.1:20001\n" in printed
    assert "TEMPORAL_UI_ADDRESS=http://localhost:20002\n" in printed


def demonstrated(*options: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "starter.py", "demo", *options], cwd=REPOSITORY, start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, **environment},
    )  # fmt: skip


def test_a_demo_that_stays_up_gives_a_pipe_its_result(workspaces, tmp_path):
    (document := tmp_path / "tea.md").write_text("# Tea\n\nTea must be hot.\n")
    options = ("--keep", "--agent", "generalist", "--document", str(document))
    demo = demonstrated(*options, PYTHONUNBUFFERED="")
    try:
        assert demo.stdout
        lines: list[str] = []
        while not lines or "stay up until Ctrl-C" not in lines[-1]:
            assert demo.poll() is None
            lines.append(demo.stdout.readline())
        # It does not end by itself; whoever started it decides.
        assert any(line.startswith("workspace ") for line in lines)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)


@pytest.mark.usefixtures("shipped_config")
@pytest.mark.parametrize("whole_group", soak([True], [True, False]))
def test_a_demo_that_is_interrupted_early_ends_soon_and_says_what_is(
    workspaces, tmp_path, whole_group
):
    module_folder = tmp_path / "held"
    module_folder.mkdir()
    # Only the worker needs it.
    (module_folder / "openai.py").write_text(HELD)
    demo = demonstrated(PYTHONPATH=str(module_folder))
    try:
        assert demo.stdout
        # The server is ready, and the worker is loading.
        while not demo.stdout.readline().startswith("server "):
            assert demo.poll() is None
        for _ in tries():
            if (module_folder / "loading").exists():
                break
        assert (module_folder / "loading").exists()
        # As a terminal does it: the server gets it too.
        (os.killpg if whole_group else os.kill)(demo.pid, signal.SIGINT)
        (module_folder / "go-on").touch()
        rest, _ = demo.communicate(timeout=90)
    finally:
        # Its server is killed too, or it would keep the port.
        with suppress(ProcessLookupError):
            os.killpg(demo.pid, signal.SIGKILL)
    assert demo.returncode == 130
    # The server prints a few last lines, and its ports may be in use here.
    lines = [line for line in rest.splitlines() if not line.startswith(("time=", "         port "))]
    assert lines == ["interrupted; no job was started"]
