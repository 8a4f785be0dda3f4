"""Tests for the file of a trial and the table of its runs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.commands_trial import read_trial_file, trial_table_lines
from cli.output import UserError
from protocol.requests import Usage
from protocol.trial import TrialRun

EXAMPLE = Path(__file__).parents[2] / "examples/trials/fewer-calls.yaml"


def test_shipped_example_is_valid() -> None:
    start = read_trial_file(EXAMPLE)
    assert list(start.configurations) == ["now", "few"]
    assert start.job_start("few")["set"] == {"limits.job.model_calls": 10}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("start: [", "not valid YAML"),
        ("start: {agent: generalist}\nruns: 2\nconfigurations: {now: {}}", "configurations"),
        ("start: {agent: nobody}\nruns: 2\nconfigurations: {a: {}, b: {}}", "nobody"),
        (
            "start: {agent: generalist}\nruns: 2\n"
            "configurations: {a: {}, b: {set: {limits.jbo: 2}}}",
            "jbo",
        ),
    ],
)
def test_invalid_file_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "bad.yaml"
    file.write_text(text)
    with pytest.raises(UserError) as refused:
        read_trial_file(file)
    assert message in str(refused.value)
    assert str(file) in str(refused.value)


def test_table_has_shares_figures_and_the_comparison() -> None:
    def ended(name: str, calls: int | None, status: str) -> TrialRun:
        usage = None if calls is None else Usage(model_calls=calls, prompt_tokens=10 * calls)
        return TrialRun.model_validate(
            {"job": "j", "configuration": name, "status": status, "usage": usage}
        )

    runs = [ended("now", calls, "completed") for calls in (3, 4, 9)]
    runs += [ended("few", None, "late") for _ in range(3)] + [ended("few", None, "cancelled")]
    lines = trial_table_lines(runs)
    assert lines[0] == "now: completed 3 of 3 (95 % interval 44% to 100%)"
    assert "calls 4 (3 to 9), tokens 40 (30 to 90)" in lines[1]
    assert lines[2].startswith("few: completed 0 of 3")
    assert "so few runs cannot show any difference" in lines[3]
