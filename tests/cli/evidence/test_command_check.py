"""Verifiers of an archive are run by the rules by which the job could end."""

from pathlib import Path

import pytest

from cli.evidence.command_check import CommandRuns, check_verifiers
from tests.activities.commands.test_check_commands import WHY, begun_with

pytestmark = pytest.mark.skipif(WHY is not None, reason=f"no sandbox here: {WHY}")


def test_a_verifier_whose_files_the_job_changed_counts_for_nothing(tmp_path: Path) -> None:
    makefile = "check:\n\t@true\n"
    job = begun_with(tmp_path, {"command": "make check"}, {"Makefile": makefile})
    runs = CommandRuns.prepare(job.root, "tea", job.open().config, asked=True)
    assert check_verifiers(job.open(), runs, completed=True).verdict == "holds"
    job.write("Makefile", f"{makefile}\t@echo 5 passed\n")
    claim = check_verifiers(job.open(), runs, completed=True)
    assert "put back Makefile" in claim.found[0]
