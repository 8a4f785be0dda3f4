"""`benchmarks.scale` refuses options that measure nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import scale

REPOSITORY = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--jobs", "-5"], "argument --jobs: found '-5', expected a whole number from 1"),
        (["--jobs", "0"], "argument --jobs: found '0'"),
        (["--busy", "2.5"], "argument --busy: found '2.5'"),
        (["--busy", "many"], "argument --busy: found 'many'"),
        (["--latency", "-1"], "argument --latency: found '-1', expected a number above 0"),
        (["--latency", "nan"], "argument --latency: found 'nan'"),
        (["--window", "inf"], "argument --window: found 'inf'"),
        (["--window", "0"], "argument --window: found '0'"),
        (["--job", "3"], "unrecognized arguments: --job 3"),
    ],
)
def test_an_option_that_measures_nothing_is_refused(
    arguments: list[str],
    message: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(sys, "argv", ["scale", *arguments])
    with pytest.raises(SystemExit) as ended:
        scale.benchmark_scale()
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_a_refusal_of_the_command_shows_no_traceback() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "benchmarks.scale", "--jobs", "-5"],
        cwd=REPOSITORY, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert ended.returncode == 2
    assert "argument --jobs: found '-5', expected a whole number from 1" in ended.stderr
    assert "Traceback" not in ended.stderr
