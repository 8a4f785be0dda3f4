"""The sandbox is left on none of the ways that `ways_out` tries, whoever the worker is."""

import json
import os
import platform
import shlex
import shutil
import socket
from pathlib import Path

import pytest
import seccompy
from seccompy import syscalls

from activities.commands import sandbox
from config.schema.shell import ShellConfig
from tests.security import ways_out

WHY = sandbox.sandbox_problem(sandbox.find_bwrap())
pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


def kernel_settings() -> dict[str, str]:
    """Return the settings that do not change by themselves."""
    names = ("kernel/core_pattern", "kernel/hostname", "vm/overcommit_memory")
    return {name: Path("/proc/sys", name).read_text() for name in names}


def test_no_way_leads_out_of_the_sandbox(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, beside = tmp_path / "workspace", tmp_path / "beside"
    folder.mkdir()
    beside.write_text("another job's")
    shutil.copy(ways_out.__file__, folder / "ways_out.py")
    monkeypatch.setenv("TEAM_PASSWORD", ways_out.SECRET)
    names = [name for name in dir(syscalls) if name.startswith(seccompy.arch().upper())]
    before = kernel_settings()
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
    ):
        abstract.bind("\0longhaul-ways-out")
        abstract.listen()
        given = {
            "calls": getattr(syscalls, names[0]),
            "machine": platform.machine(),
            "worker": os.getpid(),
            "line": Path("/proc/self/cmdline").read_text(),
            "port": server.getsockname()[1],
            "abstract": "longhaul-ways-out",
            "beside": str(beside),
        }
        ended = sandbox.run_sandboxed_command(
            f"python3 ways_out.py {shlex.quote(json.dumps(given))}", folder, ShellConfig(), 60
        )
    assert ended.exit_code == 0, ended.output
    reached = json.loads(ended.output)
    assert len(reached) > 60
    assert {way: what for way, what in reached.items() if what} == {}
    assert kernel_settings() == before
    assert beside.read_text() == "another job's"
    assert not (folder / "disk").exists()


def test_a_web_server_of_a_test_is_reached_by_its_name(tmp_path: Path) -> None:
    script = (
        "import http.server as h, threading, urllib.request as u\n"
        "served = h.HTTPServer(('localhost', 0), h.SimpleHTTPRequestHandler)\n"
        "threading.Thread(target=served.serve_forever, daemon=True).start()\n"
        "print(u.urlopen(f'http://localhost:{served.server_port}/').status)\n"
    )
    (tmp_path / "server.py").write_text(script)
    command = "python3 server.py 2> log"
    ended = sandbox.run_sandboxed_command(command, tmp_path, ShellConfig(), 30)
    assert ended.output == "200\n"
