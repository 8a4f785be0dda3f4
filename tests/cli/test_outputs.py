"""`starter.py` as a process: where its output goes, and how it ends when that fails."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

REPOSITORY = Path(__file__).parents[2]


def run(*arguments: str, **more: Any) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "starter.py", *arguments], cwd=REPOSITORY, timeout=20, check=False,
        **{"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **more},
    )  # fmt: skip


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
